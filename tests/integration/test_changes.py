"""What a second client does on the server arrives, whatever the server can.

Each test runs against Dovecot with all it has, with CONDSTORE but without
QRESYNC, and as a plain IMAP4rev1 server (R-SYNC-3), against Cyrus and against
Courier.  What many changes in a row do is in test_histories.py.
"""

import threading

import pytest

from herd import Client, deliver, message
from proxy import Proxy
from servers import wait_for

KINDS = ["full", "condstore", "plain", "cyrus", "courier"]
every_kind = pytest.mark.parametrize("imap_kind", KINDS, indirect=True)


def started(herd, imap, login, count=12, **settings):
    with Client(imap, login) as client:
        for n in range(count):
            client.append("INBOX", message(f"Start {n}", f"{login} {n}\n",
                                           f"{login}.start.{n}@example.org"))
    h = herd(**settings)
    h.start_both()
    account = h.add_account(imap, login)
    h.wait_live(account)
    h.assert_same(account, imap, login)
    return h, account


def ids(h, account):
    """{Message-ID: row id} of what is there."""
    return dict(h.sql("SELECT message_id, id FROM messages "
                      "WHERE account_id = %s AND deleted_at IS NULL",
                      (account,)))


@every_kind
def test_flags_and_keywords(herd, imap_kind, login):
    h, account = started(herd, imap_kind, login)
    with Client(imap_kind, login) as client:
        client.select("INBOX")
        uids = client.uids()
        client.store(uids[:4], "+FLAGS", ["\\Seen", "\\Flagged"])
        client.store(uids[2:6], "+FLAGS", ["\\Answered", "$Forwarded"])
        h.assert_same(account, imap_kind, login)
        client.store(uids[:3], "-FLAGS", ["\\Seen"])
        client.store(uids[3:5], "FLAGS", ["Work", "$Junk"])
        client.store(uids[-1:], "+FLAGS", ["\\Draft"])
        h.assert_same(account, imap_kind, login)


@every_kind
def test_expunge_is_soft(herd, imap_kind, login, events):
    h, account = started(herd, imap_kind, login)
    with Client(imap_kind, login) as client:
        client.select("INBOX")
        uids = client.uids()
        client.expunge(uids[::3])
    h.assert_same(account, imap_kind, login)
    gone = h.sql("SELECT count(*) FROM messages WHERE account_id = %s "
                 "AND deleted_at IS NOT NULL", (account,))
    assert gone == [(len(uids[::3]),)]
    events.wait("message.deleted", account_id=account)


@every_kind
def test_everything_expunged_then_new_mail(herd, imap_kind, login):
    h, account = started(herd, imap_kind, login)
    with Client(imap_kind, login) as client:
        client.select("INBOX")
        client.expunge(client.uids())
        client.append("INBOX", message("After the flood"))
    h.assert_same(account, imap_kind, login)


@every_kind
def test_move_keeps_identity(herd, imap_kind, login):
    """R-SYNC-5"""
    h, account = started(herd, imap_kind, login)
    before = ids(h, account)
    with Client(imap_kind, login) as client:
        client.select("INBOX")
        client.move(client.uids()[:5], "Archive")
    h.assert_same(account, imap_kind, login)
    assert ids(h, account) == before


@every_kind
def test_folders_created_renamed_removed(herd, imap_kind, login, events):
    """R-SYNC-1"""
    h, account = started(herd, imap_kind, login)
    with Client(imap_kind, login) as client:
        client.create("Reisen/Köln")
        client.create("Short lived")
        client.append("Reisen/Köln", message("Trip", "", "trip@example.org"))
        client.append("Short lived", message("Bye", "", "bye@example.org"))
    h.assert_same(account, imap_kind, login)
    before = ids(h, account)
    with Client(imap_kind, login) as client:
        client.rename("Reisen/Köln", "Reisen/Bonn & Köln")
        client.delete("Short lived")
    h.assert_same(account, imap_kind, login)
    after = ids(h, account)
    assert after["trip@example.org"] == before["trip@example.org"]
    assert "bye@example.org" not in after
    events.wait("mailbox.changed", account_id=account)


def all_quiet(h, imap, account, login):
    """Disables the account; the server then tells what each session
    fetched."""
    h.ctl("account", "disable", account)
    wait_for(lambda: not imap.is_logged_in(login), what="logged out")


@every_kind
def test_uidvalidity_change_keeps_ids(herd, imap_kind, login):
    """R-SYNC-6: neither downloaded again nor given a new id."""
    h, account = started(herd, imap_kind, login, 30)
    before = ids(h, account)
    all_quiet(h, imap_kind, account, login)
    bodies, _ = imap_kind.fetched(login)
    assert bodies
    imap_kind.new_uidvalidity(login, "INBOX", 1900000001)
    h.ctl("account", "enable", account)
    # Not compared with a client here: its own downloads would be counted.
    wait_for(lambda: h.sql(
        "SELECT 1 FROM mailboxes b JOIN messages m ON m.mailbox_id = b.id "
        "WHERE b.account_id = %s AND b.path = 'INBOX' AND m.uid > 0 "
        "AND uidvalidity = 1900000001 AND m.deleted_at IS NULL "
        "HAVING count(*) = 30", (account,)), what="the folder is remapped")
    all_quiet(h, imap_kind, account, login)
    assert imap_kind.fetched(login)[0] == bodies
    assert ids(h, account) == before
    h.ctl("account", "enable", account)
    h.assert_same(account, imap_kind, login)


@every_kind
def test_folder_deleted_and_made_again(herd, imap_kind, login):
    h, account = started(herd, imap_kind, login, 1)
    with Client(imap_kind, login) as client:
        for n in range(3):
            client.create("Again")
            client.append("Again", message(f"Generation {n}", f"{n}\n" * n))
            h.assert_same(account, imap_kind, login)
            client.delete("Again")
        client.create("Again")
    h.assert_same(account, imap_kind, login)


def test_a_flag_between_look_and_idle_is_not_missed(herd, dovecot, login):
    """IDLE without CONDSTORE: what the server tells along with the answer to
    something else it does not tell again."""
    armed, done = threading.Event(), threading.Event()

    def rewrite(data):
        for word in (b" CONDSTORE", b" QRESYNC", b" ENABLE"):
            data = data.replace(word, b"")
        if armed.is_set() and b" FETCH (" in data and b"BODY[" not in data:
            armed.clear()
            with Client(dovecot, login) as client:
                client.select("INBOX")
                client.store(client.uids()[:1], "+FLAGS", ["\\Flagged"])
            done.set()
        return data

    with Client(dovecot, login) as client:
        for n in range(3):
            client.append("INBOX", message(f"Start {n}"))
    with Proxy(dovecot.port) as proxy:
        proxy.rewrite = rewrite
        h = herd(idle_restart_secs=1500)
        h.start_both()
        account = h.add_account(dovecot, login, port=proxy.port)
        h.wait_live(account)
        wait_for(lambda: any("IDLE" in line for line in proxy.said), 60,
                 "IDLE")
        armed.set()
        deliver(dovecot, login, message("Wakes"))
        wait_for(done.is_set, 60, "the flag is set in the middle of a look")
        wait_for(lambda: h.sql(
            "SELECT 1 FROM messages WHERE account_id = %s AND subject = "
            "'Start 0' AND flagged", (account,)), 30, "the flag arrives")


def test_a_row_that_was_missed_is_found_later(herd, dovecot, login):
    """R-SYNC-8: the cursor says all is here; the rows are counted, too."""
    h = herd(poll_warm=1, poll_cold=1)
    h.start_both()
    with Client(dovecot, login) as client:
        for n in range(3):
            client.append("Archive", message(f"Number {n}"))
    account = h.add_account(dovecot, login)
    h.wait_live(account)
    h.assert_same(account, dovecot, login)
    h.sql("SELECT messages_remove(%s, array_agg(id)) FROM messages "
          "WHERE account_id = %s AND subject = 'Number 1'",
          (account, account))
    h.sql("UPDATE mailbox SET messages = messages - 1, "
          "last_poll_at = now() - interval '1 hour' "
          "WHERE account_id = %s AND path = 'Archive'", (account,))
    h.assert_same(account, dovecot, login)


def test_new_mail_beside_one_that_came_and_went(herd, dovecot, login):
    """The cursor counts a message that was gone before it could be fetched;
    QRESYNC tells of old messages only: the numbers add up, and yet there is
    a new one."""
    h = herd(poll_warm=3600, poll_cold=3600)
    h.start_both()
    with Client(dovecot, login) as client:
        for n in range(3):
            client.append("Archive", message(f"Number {n}"))
    account = h.add_account(dovecot, login)
    h.wait_live(account)
    h.wait_owned(account)
    h.poll(account)
    h.assert_same(account, dovecot, login)
    h.sql("UPDATE mailbox SET server_messages = server_messages + 1 "
          "WHERE account_id = %s AND path = 'Archive'", (account,))
    with Client(dovecot, login) as client:
        client.select("Archive")
        client.conn.uid("STORE", "1", "+FLAGS", "(\\Flagged)")
        client.append("Archive", message("New"))
    h.poll(account)
    h.assert_same(account, dovecot, login)
