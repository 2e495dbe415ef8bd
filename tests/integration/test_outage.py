"""PostgreSQL or Redis away for a while, or empty when it comes back."""

import pytest

from herd import Client, deliver, message
from servers import Postgres, Redis, wait_for
from test_changes import started


@pytest.fixture
def own_pg(test_dir):
    with Postgres(test_dir) as pg:
        yield pg


def test_postgresql_restarted(own_pg, herd, dovecot, login):
    h, account = started(herd, dovecot, login, 3, pg=own_pg)
    for stop in (own_pg.stop, own_pg.crash):
        stop()
        deliver(dovecot, login, message("PostgreSQL was away"))
        own_pg.start()
        h.assert_same(account, dovecot, login, 60)
    assert h.account(account)["state"] == "live"


def test_a_row_that_somebody_has_locked(pg, herd, dovecot, login):
    """F-A10: psql left in a transaction costs that account, no other, and
    nobody thinks that PostgreSQL is away."""
    h, account = started(herd, dovecot, login, 3)
    owner = h.wait_owned(account)
    others = [h.add_account(dovecot, login) for _ in range(3)]
    for other in others:
        h.wait_live(other)
        h.wait_owned(other)
    psql = pg.connect(h.dbname)
    psql.autocommit = False
    cursor = psql.cursor()
    cursor.execute("SELECT FROM mailherd.account_fence WHERE account_id = %s "
                   "FOR UPDATE", (account,))
    h.daemons[0].stop()
    h.start("sync", "1")
    for other in others:
        wait_for(lambda: (h.account(other).get("owner") or owner) != owner,
                 20, "another account is owned again")
        deliver(dovecot, login, message("While one is locked"))
        h.assert_same(other, dovecot, login, 20)
    wait_for(lambda: "not taken over" in h.log_text(), what="it was tried")
    assert "locked by another PostgreSQL session" in h.log_text()
    assert "PostgreSQL is away" not in h.log_text()
    psql.rollback()
    psql.close()
    h.assert_same(account, dovecot, login, 30)


def test_redis_restarted_empty(herd, dovecot, login, redis):
    """R-LEASE-11: heals by itself within one reconcile."""
    h, account = started(herd, dovecot, login, 3)
    h.wait_owned(account)
    redis.restart()
    deliver(dovecot, login, message("Redis was away"))
    h.assert_same(account, dovecot, login, 60)
    wait_for(lambda: redis.client().sismember("sync:live", account), 30,
             "sync:live is filled again")
    wait_for(lambda: redis.client().get(f"sync:lease:{account}"), 30,
             "owned again")


def test_redis_flushed(herd, dovecot, login, redis, events):
    """What is lost with Redis is not announced again as new (L234)."""
    h, account = started(herd, dovecot, login, 3)
    h.wait_owned(account)

    def announced():
        return sum(e["payload"]["count"]
                   for e in events.of("message.new", account_id=account))
    wait_for(lambda: announced() == 3, what="the first three are announced")
    redis.client().flushall()
    # Its children are killed for it, and who dies between commit and event
    # takes the event with him (mailherdctl(8), events): not during that.
    wait_for(lambda: "lease lost" in h.log_text(), 30, "the loss is noticed")
    deliver(dovecot, login, message("Redis was wiped"))
    h.assert_same(account, dovecot, login, 60)
    wait_for(lambda: redis.client().get(f"sync:lease:{account}"), 30,
             "owned again")
    wait_for(lambda: announced() >= 4, what="the new one is announced")
    assert announced() == 4


def test_redis_loses_the_queue_during_backfill(herd, dovecot, login, redis):
    """R-JOB-3: pending work is found in PostgreSQL."""
    with Client(dovecot, login) as client:
        for n in range(5):
            client.append("INBOX", message(f"Waiting {n}"))
    h = herd()
    account = h.add_account(dovecot, login)
    redis.client().flushall()
    h.start_both()
    h.wait_live(account)
    h.assert_same(account, dovecot, login)


def test_start_without_redis_and_database_heals(herd, dovecot, login,
                                                redis):
    h = herd()
    sync, jobs = h.start_both()
    redis.stop()
    account = None
    redis.start()
    account = h.add_account(dovecot, login)
    h.wait_live(account)
    h.assert_same(account, dovecot, login)
