"""kill -9 of anything at any time: nothing missing, nothing double.

R-SYNC-4, R-OPS-2.  Children die at random while mail is downloaded and while
it changes; masters die too.  At the end copy = server.
"""

import contextlib
import os
import random
import signal
import time

import pytest

from herd import Client, deliver, message
from histories import Account
from servers import wait_for, within
from test_changes import started


def kill_one(daemon, rng):
    """Any process below a master: the template and the clerk, too."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(rng.choice(daemon.pids()), signal.SIGKILL)


def kill_at_work(daemon, rng, is_over=None):
    """A child that has an account, as soon as there is one: that is what
    the tests count.  False: it was over before."""
    def strike():
        pids = [c["pid"] for c in daemon.ctl("ps") if c["account_id"]]
        if pids:
            os.kill(rng.choice(pids), signal.SIGKILL)
            return "struck"
        return is_over and is_over() and "over"
    return wait_for(strike, what="a child at work") == "struck"


def fill(imap, login, count, size=2000):
    rng = random.Random(login)
    with Client(imap, login) as client:
        for n in range(count):
            text = "".join(rng.choice("abcdefghij \n")
                           for _ in range(rng.randrange(size)))
            client.append(rng.choice(["INBOX", "INBOX", "Sent", "Archive"]),
                          message(f"Bulk {n}", text,
                                  f"{login}.{n}@example.org"))


def nothing_double(h):
    assert not h.sql("SELECT mailbox_id, uid FROM messages "
                     "WHERE deleted_at IS NULL "
                     "GROUP BY 1, 2 HAVING count(*) > 1")
    # Same Message-ID, same account: the histories above never copy.
    assert not h.sql("SELECT account_id, message_id FROM messages "
                     "WHERE deleted_at IS NULL AND message_id LIKE '%%.%%' "
                     "GROUP BY 1, 2 HAVING count(*) > 1")


@pytest.mark.slow
def test_children_killed_during_backfill(herd, dovecot, login):
    rng = random.Random(1)
    fill(dovecot, login, 1500)
    h = herd(batch_messages=20, risk_attempts=10)
    sync, jobs = h.start_both()
    account = h.add_account(dovecot, login)
    killed = 0
    end = time.monotonic() + within(120)

    def is_live():
        return h.account(account)["state"] == "live"

    while killed < 12 and kill_at_work(jobs, rng, is_live):
        assert time.monotonic() < end, "the backfill does not get anywhere"
        killed += 1
        if killed % 4 == 0:
            kill_one(jobs, rng)
        stored = h.account(account)["messages"]
        # Let it get a little further before the next blow.
        wait_for(lambda: h.account(account)["messages"] > stored
                 or is_live(), 30, "the backfill goes on")
    h.wait_live(account, 90)
    h.assert_same(account, dovecot, login, 60)
    nothing_double(h)
    h.run_ctl("blob", "verify")
    assert killed


@pytest.mark.slow
def test_children_killed_during_sync(herd, dovecot, logins):
    rng = random.Random(2)
    h = herd(risk_attempts=10)
    sync, jobs = h.start_both()
    runs = []
    for seed in range(31, 35):
        history = Account(seed, dovecot, next(logins))
        runs.append((history, h.add_account(dovecot, history.login)))
    for history, account in runs:
        h.wait_live(account)
        h.wait_owned(account)
    for n in range(16):
        for history, _ in runs:
            history.begin()
            history.turn()
        kill_at_work(sync, rng)
        if n % 4 == 0:
            kill_one(sync, rng)
    for history, account in runs:
        h.assert_same(account, dovecot, history.login, 90)
    h.run_ctl("blob", "verify")


@pytest.mark.slow
def test_masters_killed(herd, dovecot, login):
    """A new master of the host takes over at once (R-LEASE-10)."""
    fill(dovecot, login, 400)
    h = herd(batch_messages=20)
    sync, jobs = h.start_both()
    account = h.add_account(dovecot, login)
    wait_for(lambda: h.account(account)["messages"] > 20, what="half way")
    jobs.kill()
    jobs = h.start("jobs")
    h.wait_live(account, 60)
    for n in range(3):
        wait_for(lambda: h.account(account)["owner"], what="owned")
        sync.kill()
        deliver(dovecot, login, message(f"While dead {n}", "",
                                        f"dead.{n}@example.org"))
        sync = h.start("sync")
        h.assert_same(account, dovecot, login, 40)
    nothing_double(h)


def test_one_child_killed_at_a_time(herd, dovecot, login):
    """The short form for every run."""
    h, account = started(herd, dovecot, login, 30)
    sync = h.daemons[0]
    for n, kind in enumerate(("hot", "pool", "clerk", "hot")):
        victim = wait_for(lambda: [p for p, k in sync.children().items()
                                   if k == kind], what=f"a {kind} child")[0]
        os.kill(victim, signal.SIGKILL)
        deliver(dovecot, login, message(f"After the death of {kind} {n}"))
        h.assert_same(account, dovecot, login)
    assert sync.proc.poll() is None


def test_sigterm_is_quick_and_clean(herd, dovecot, login):
    """R-OPS-2"""
    h, account = started(herd, dovecot, login, 3)
    sync, jobs = h.daemons
    h.wait_owned(account)
    begun = time.monotonic()
    assert sync.stop() == 0
    assert jobs.stop() == 0
    assert time.monotonic() - begun < within(10)
    assert not h.redis.client().keys("sync:lease:*")
    assert not h.redis.client().keys("sync:workers:*")
    assert "fenced" not in sync.log_text().lower().replace("fenced=0", "")
    wait_for(lambda: login not in dovecot.doveadm("who"), 10,
             "Dovecot has seen it, too")


def test_sigterm_during_backfill(herd, dovecot, login):
    fill(dovecot, login, 300)
    h = herd(batch_messages=10)
    _, jobs = h.start_both()
    account = h.add_account(dovecot, login)
    wait_for(lambda: h.account(account)["messages"] > 0, what="it began")
    begun = time.monotonic()
    assert jobs.stop() == 0
    assert time.monotonic() - begun < within(10)
    h.start("jobs")
    h.wait_live(account, 60)
    h.assert_same(account, dovecot, login)
    nothing_double(h)
