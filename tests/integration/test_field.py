"""Cases from the field that need a whole mailherd; tests/field-cases.tsv."""

import re

from herd import Client, deliver, message
from proxy import Proxy
from servers import wait_for
from test_changes import all_quiet, ids, started


def fill(imap, login, count, path="INBOX"):
    with Client(imap, login) as client:
        for n in range(count):
            client.append(path, message(f"{path} {n}", f"{login} {n}\n",
                                        f"{path}.{n}.{login}@example.org"))


def test_commands_that_break_servers_are_not_said(herd, dovecot, login):
    """L133 NAMESPACE, L140 SEARCH, L136 bodies but by BODY.PEEK[], L101 and
    L109 EXPUNGE and CLOSE."""
    fill(dovecot, login, 5)
    fill(dovecot, login, 2, "Sent")
    with Proxy(dovecot.port) as proxy:
        h = herd()
        h.start_both()
        account = h.add_account(dovecot, login, port=proxy.port)
        h.wait_live(account)
        with Client(dovecot, login) as client:
            client.select("INBOX")
            client.store(client.uids()[:2], "+FLAGS", ["\\Seen"])
            client.expunge(client.uids()[-1:])
        h.assert_same(account, dovecot, login)
        said = [line.upper() for line in proxy.said]
    assert any("BODY.PEEK[]" in line for line in said)
    for word in ("NAMESPACE", "SEARCH", "EXPUNGE", "CLOSE", "RFC822 ",
                 "RFC822)", " BODY[", "STORE", "ENVELOPE", "BODYSTRUCTURE"):
        word = rf"(?<![A-Z-]){re.escape(word)}"
        found = [line for line in said if re.search(word, line)]
        assert not found, found[:3]


def test_mail_marked_deleted_is_kept_and_marked(herd, dovecot, login):
    """L107: its row stays, marked, until the server has expunged it."""
    h, account = started(herd, dovecot, login, 3)
    with Client(dovecot, login) as client:
        client.select("INBOX")
        client.store(client.uids()[:1], "+FLAGS", ["\\Deleted"])
    h.assert_same(account, dovecot, login)
    assert h.sql("SELECT count(*) FROM messages WHERE account_id = %s "
                 "AND marked_deleted AND deleted_at IS NULL",
                 (account,)) == [(1,)]


def test_uidvalidity_change_with_new_mail(herd, dovecot, login):
    """L084: two messages came while all UIDs got another meaning."""
    h, account = started(herd, dovecot, login, 8)
    before = ids(h, account)
    all_quiet(h, dovecot, account, login)
    deliver(dovecot, login, message("Meanwhile 1", "", "m1@example.org"))
    dovecot.doveadm("mailbox", "update", "-u", login, "--uid-validity",
                    "1900000002", "INBOX")
    deliver(dovecot, login, message("Meanwhile 2", "", "m2@example.org"))
    h.ctl("account", "enable", account)
    h.assert_same(account, dovecot, login)
    after = ids(h, account)
    assert set(after) - set(before) == {"m1@example.org", "m2@example.org"}
    assert {k: after[k] for k in before} == before


def test_vanished_that_names_the_living(herd, dovecot, login):
    """L075: iCloud's QRESYNC named mail that was there."""
    fill(dovecot, login, 9)
    with Proxy(dovecot.port) as proxy:
        h = herd()
        h.start_both()
        account = h.add_account(dovecot, login, port=proxy.port)
        h.wait_live(account)
        h.assert_same(account, dovecot, login)
        lies = []

        def lie(data):
            data, n = re.subn(rb"VANISHED \(EARLIER\) [\d:,]+",
                              b"VANISHED (EARLIER) 3:7", data)
            lies.append(n)
            return data
        proxy.rewrite = lie
        with Client(dovecot, login) as client:
            client.select("INBOX")
            client.expunge(["5"])
        wait_for(lambda: h.sql("SELECT 1 FROM messages WHERE account_id = %s "
                               "AND deleted_at IS NOT NULL", (account,)),
                 what="the one is gone")
        h.assert_same(account, dovecot, login)
        assert any(lies)
        assert h.sql("SELECT count(*) FROM messages WHERE account_id = %s "
                     "AND deleted_at IS NOT NULL", (account,)) == [(1,)]
        wait_for(lambda: "CONDSTORE is not trusted" in h.log_text(),
                 what="no trust any more")


def test_connection_that_dies_silently_in_idle(herd, dovecot, login):
    """L091: no FIN, no news; a bound is kept all the same."""
    with Proxy(dovecot.port) as proxy:
        h = herd(poll_warm=3600, poll_cold=3600, idle_restart_secs=3,
                 command_timeout=3)
        sync, _ = h.start_both()
        user = h.add_user(f"{login}@users.example.org")
        account = h.add_account(dovecot, login, user, port=proxy.port)
        h.wait_live(account)
        h.ctl("user", "active", user)
        wait_for(lambda: any(s.said[-1:] and s.said[-1].endswith(" IDLE")
                             for s in proxy.sessions if s.ended is None),
                 what="IDLE on the server")
        proxy.silence()
        deliver(dovecot, login, message("Unheard of"))
        h.assert_same(account, dovecot, login, 30)


def test_one_mailbox_for_two_users(herd, dovecot, login):
    """L238: rows of one never collide with the other's."""
    fill(dovecot, login, 4)
    h = herd()
    h.start_both()
    pair = [h.add_account(dovecot, login) for _ in range(2)]
    for account in pair:
        h.wait_live(account)
        h.assert_same(account, dovecot, login)
    deliver(dovecot, login, message("For both"))
    for account in pair:
        h.assert_same(account, dovecot, login)
    assert not set(ids(h, pair[0]).values()) & set(ids(h, pair[1]).values())
