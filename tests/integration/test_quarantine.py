"""R-SYNC-9: what kills a child twice is put aside, the rest goes on.

No hook in the product: a proxy goes silent in the middle of one message, and
the child that waits there is killed, as a crash in the parser would.
"""

import os
import signal

import pytest

from herd import Client, message
from proxy import Proxy
from servers import wait_for


def kill_readers(daemon, proxy, seen):
    """Kills the children whose connection the proxy has made silent."""
    stalled = [s for s in proxy.sessions
               if s.is_stalled and s.ended is None and s not in seen]
    for session in stalled:
        seen.append(session)
        for row in daemon.ctl("ps"):
            if row["kind"] in ("job", "pool", "hot") and row["account_id"]:
                try:
                    os.kill(row["pid"], signal.SIGKILL)
                except ProcessLookupError:
                    pass
    return len(seen)


@pytest.mark.slow
def test_killer_message_is_quarantined(herd, dovecot, login):
    with Client(dovecot, login) as client:
        for n in range(12):
            headers = ["X-Poison: deadly-nightshade"] if n == 6 else []
            client.append("INBOX", message(f"Meal {n}", headers=headers))
        client.append("Sent", message("Elsewhere"))
    with Proxy(dovecot.port) as proxy:
        proxy.stall = b"deadly-nightshade"
        h = herd()
        _, jobs = h.start_both()
        account = h.add_account(dovecot, login, port=proxy.port)
        seen = []

        def aside():
            kill_readers(jobs, proxy, seen)
            kill_readers(h.daemons[0], proxy, seen)
            return [r["state"] for r in h.ctl("quarantine", "list", account)
                    ] == ["parked"] and \
                h.sql("SELECT count(*) FROM messages WHERE account_id = %s",
                      (account,)) == [(12,)]
        wait_for(aside, 120, "all but one are there", every=0.2)
        assert len(seen) >= 2
        proxy.stall = None
        h.wait_live(account, 60)
        # It is tried again by itself.
        h.assert_same(account, dovecot, login, 60)
        wait_for(lambda: not h.ctl("quarantine", "list", account), 20,
                 "out of quarantine")


# F-A1: a bad value, and a statement that takes longer than it may.
@pytest.mark.parametrize("sqlstate", ["22023", "57014"])
def test_row_that_postgresql_refuses(herd, dovecot, login, sqlstate):
    """The batches behind it wait, are planned again, and nothing is lost:
    the message is there in the end, without what was refused."""
    with Client(dovecot, login) as client:
        for n in range(150):
            client.append("INBOX", message(f"Meal {n}"))
    h = herd(batch_messages=10)
    h.sql(f"""
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'no such meal' USING ERRCODE = '{sqlstate}';
        END $$""")
    h.sql("CREATE TABLE told (words text); GRANT ALL ON told TO PUBLIC")
    h.sql("""
        CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO told VALUES (new.last_error);
            RETURN new;
        END $$""")
    h.sql("CREATE TRIGGER tell BEFORE UPDATE ON accounts FOR EACH ROW "
          "WHEN (new.last_error <> '') EXECUTE FUNCTION tell()")
    h.sql("CREATE TRIGGER refuse BEFORE INSERT ON message FOR EACH ROW "
          "WHEN (new.subject = 'Meal 77') EXECUTE FUNCTION refuse()")
    h.start("jobs")
    account = h.add_account(dovecot, login)
    h.wait_live(account, 60)
    assert h.sql("SELECT count(*), count(DISTINCT uid) FROM messages "
                 "WHERE account_id = %s AND deleted_at IS NULL",
                 (account,)) == [(150, 150)]
    (odd,) = h.sql("SELECT subject, parse_state FROM messages WHERE "
                   "account_id = %s AND subject IS DISTINCT FROM "
                   "'Meal ' || (uid - 1)", (account,))
    assert odd == (None, "unparsed")
    # The account's row has told of it, and does not any more.
    assert h.sql("SELECT words FROM told LIMIT 1") == [
        (f"PostgreSQL: no such meal ({sqlstate})",)]
    assert h.account(account)["last_error"] == ""
    h.assert_same(account, dovecot, login, 60)
