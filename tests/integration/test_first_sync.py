"""From `account add` to a live, searchable copy that follows the server."""

import hashlib

import pytest

from herd import Client, deliver, message
from servers import wait_for


def fill(imap, login, folders=("INBOX", "Sent", "Größe & Maß"), each=20):
    """Mail that was there before mailherd: {digest of each message}."""
    digests = set()
    with Client(imap, login) as client:
        for path in folders:
            if path not in client.folders():
                client.create(path)
            for n in range(each):
                raw = message(f"{path} number {n}", f"Text {n} of {path}.\n",
                              f"{login}.{n}.{hash(path) % 1000}@example.org")
                client.append(path, raw, ["\\Seen"] if n % 2 else [])
                digests.add(hashlib.sha256(raw).hexdigest())
    return digests


def test_account_add_to_live_copy(herd, dovecot, login, events):
    """R-LIFE-1, R-JOB-8, R-MSG-1..5"""
    digests = fill(dovecot, login)
    with Client(dovecot, login) as client:
        client.append("INBOX", message(
            "Quarterly zebrafish report", "The aquarium is doing well.\n",
            "zebra@example.org"))
        client.append("INBOX", message(
            "Re: Quarterly zebrafish report", "Splendid!\n",
            "answer@example.org", ["In-Reply-To: <zebra@example.org>",
                                   "References: <zebra@example.org>"]))
    h = herd()
    h.start_both()
    account = h.add_account(dovecot, login)
    h.wait_live(account)
    h.assert_same(account, dovecot, login)

    stored = {digest for folder in h.copy(account).values()
              for _, digest in folder.values()}
    assert digests <= stored

    # The stored bytes come back unchanged.
    listed = h.ctl("message", "list", "--account", account, "--limit", 200)
    assert len(listed) == 62
    for item in listed[:5]:
        digest = hashlib.sha256(h.raw(item["id"])).hexdigest()
        assert digest in stored

    # Threads.
    threads = {i["subject"]: i["thread_id"] for i in listed}
    assert threads["Quarterly zebrafish report"] == \
        threads["Re: Quarterly zebrafish report"]
    assert len(set(threads.values())) > 10

    # Search in subject and text.
    for query, count in (("zebrafish", 2), ("aquarium", 1), ("splendid", 1)):
        found = wait_for(lambda: h.ctl("message", "search", "--account",
                                       account, query), what=query)
        assert len(found) == count, found

    # What an application was told.
    events.wait("account.state_changed", account_id=account, state="live")
    assert events.of("sync.progress", account_id=account)
    wait_for(lambda: sum(e["payload"]["count"] for e in events.of(
        "message.new", account_id=account)) == 62, what="all are announced")

    # What a person is shown.
    shown = h.account(account)
    for key in ("id email user_id state state_reason state_since tier owner "
                "lease_ttl lease_epoch last_mail_at last_sync_at last_error "
                "next_try mailboxes messages").split():
        assert key in shown, key
    assert shown["messages"] == 62
    assert shown["mailboxes"] == 7
    boxes = {b["path"]: b for b in h.ctl("mailbox", "list", account)}
    assert boxes["INBOX"]["role"] == "inbox"
    assert boxes["Sent"]["role"] == "sent"
    assert boxes["Größe & Maß"]["messages"] == 20
    h.run_ctl("blob", "verify")


def test_delivery_to_a_hot_account_comes_by_idle(herd, dovecot, login,
                                                 events):
    """R-TIER-2: polls are an hour apart, so only IDLE can have seen it."""
    h = herd(poll_warm=3600, poll_cold=3600)
    sync, _ = h.start_both()
    user = h.add_user(f"{login}@users.example.org")
    account = h.add_account(dovecot, login, user)
    h.wait_live(account)
    h.ctl("user", "active", user)
    wait_for(lambda: any(c["kind"] == "hot" and c["account_id"] == account
                         for c in sync.ctl("ps")), what="a hot child")
    wait_for(lambda: idles(dovecot, login), what="IDLE on the server")
    for n in range(3):
        deliver(dovecot, login, message(f"Fresh {n}"))
        wait_for(lambda: h.sql(
            "SELECT 1 FROM messages WHERE account_id = %s AND subject = %s",
            (account, f"Fresh {n}")), what="the row")
        events.wait("message.new", count=n + 1, account_id=account)
    h.assert_same(account, dovecot, login)


def idles(imap, login):
    return f"{login} " in imap.doveadm("who", "-1") or login in \
        imap.doveadm("who")


def test_pool_polls_find_mail_in_every_folder(herd, dovecot, login):
    """R-TIER-2, R-SYNC-2"""
    h = herd()
    h.start_both()
    account = h.add_account(dovecot, login)
    h.wait_live(account)
    with Client(dovecot, login) as client:
        client.create("Projects/2026")
        for path in ("INBOX", "Sent", "Drafts", "Archive", "Trash", "Junk",
                     "Projects/2026"):
            client.append(path, message(f"In {path}"))
    h.assert_same(account, dovecot, login)


def test_polls_go_on_with_the_session_of_the_last(herd, dovecot, login):
    """A session costs PostgreSQL tens of milliseconds; one that was ended
    meanwhile is replaced."""
    h = herd(poll_warm=3600, poll_cold=3600, pool_max=1)
    h.start_both()
    account = h.add_account(dovecot, login)
    h.wait_live(account)
    h.wait_owned(account)

    def backend():
        return h.sql("SELECT pid FROM pg_stat_activity WHERE datname = "
                     "current_database() AND application_name = "
                     "'mailherd pool'")

    def poll(subject):
        with Client(dovecot, login) as client:
            client.append("Archive", message(subject))
        h.poll(account)
        h.assert_same(account, dovecot, login)
        return wait_for(backend, 30, "the pool child rests")

    first = poll("One")
    assert poll("Two") == first and len(first) == 1
    h.sql("SELECT pg_terminate_backend(%s)", (first[0][0],))
    assert poll("Three") != first


def test_refresh_and_poll_on_request(herd, dovecot, login):
    """R-JOB-7: `account refresh` and `poll` do not wait for the interval."""
    h = herd(poll_warm=3600, poll_cold=3600, tier_hot_activity_h=1)
    h.start_both()
    account = h.add_account(dovecot, login)
    h.wait_live(account)
    h.wait_owned(account)
    with Client(dovecot, login) as client:
        client.append("Archive", message("Refresh finds me"))
    h.ctl("account", "refresh", account)
    h.assert_same(account, dovecot, login)
    with Client(dovecot, login) as client:
        client.append("Archive", message("Poll finds me"))
    h.poll(account)
    h.assert_same(account, dovecot, login)


def test_same_file_twice_two_rows_one_blob(herd, dovecot, login):
    h = herd()
    h.start_both()
    raw = message("Twice")
    with Client(dovecot, login) as client:
        client.append("INBOX", raw)
        client.append("INBOX", raw)
    account = h.add_account(dovecot, login)
    h.wait_live(account)
    h.assert_same(account, dovecot, login)
    rows = h.sql("SELECT id, blob FROM messages WHERE account_id = %s",
                 (account,))
    assert len(rows) == 2
    assert len({bytes(blob) for _, blob in rows}) == 1


def test_two_accounts_of_one_user_and_no_crosstalk(herd, dovecot, logins):
    h = herd()
    h.start_both()
    user = h.add_user("both@users.example.org")
    pair = []
    for word in ("first", "second"):
        name = next(logins)
        with Client(dovecot, name) as client:
            client.append("INBOX", message(word, "same text\n", "x@example"))
        pair.append((name, h.add_account(dovecot, name, user)))
    for name, account in pair:
        h.wait_live(account)
        h.assert_same(account, dovecot, name)
    a, b = (h.sql("SELECT thread_id FROM messages WHERE account_id = %s",
                  (account,)) for _, account in pair)
    assert a != b


def test_message_above_the_limit_has_its_row_and_no_blob(herd, dovecot,
                                                         login):
    """R-MSG-2: header, place and flags are there; the rest goes on."""
    h = herd(stream_parse_mb=1, max_message_mb=1)
    h.start_both()
    large = message("Very large", "x" * 70 + "\n" * 2, "large@example.org")
    large += b"y" * 78 + b"\r\n"
    large += (b"z" * 78 + b"\r\n") * 20000
    with Client(dovecot, login) as client:
        client.append("INBOX", message("Before"))
        client.append("INBOX", large, ["\\Flagged"])
        client.append("INBOX", message("After"))
    account = h.add_account(dovecot, login)
    h.wait_live(account)
    rows = h.sql("SELECT subject, size, blob IS NULL, flagged, parse_state, "
                 "message_id FROM messages WHERE account_id = %s ORDER BY uid",
                 (account,))
    assert [r[0] for r in rows] == ["Before", "Very large", "After"]
    assert rows[1] == ("Very large", len(large), True, True, "partial",
                       "large@example.org")
    assert [r[2] for r in rows] == [False, True, False]


@pytest.mark.parametrize("said", [1000, 4294967295, 2 << 20])
def test_the_bytes_decide_not_the_size(herd, mock, said):
    """F-B17: what RFC822.SIZE says of small messages and of a large one."""
    m = mock(inbox=3, other=0, folders=0)
    h = herd(stream_parse_mb=1, max_message_mb=1)
    h.start_both()
    large = m.deliver("u1", size=1500000)[0]
    m.deliver("u1")
    m.fault("size", account="u1", bytes=said)
    account = h.add_account(m, "u1")
    h.wait_live(account)
    rows = h.sql("SELECT uid, blob IS NULL, parse_state FROM messages WHERE "
                 "account_id = %s ORDER BY uid", (account,))
    assert len(rows) == 5
    assert [r[1:] for r in rows if r[0] == large] == [(True, "partial")]
    assert {r[1:] for r in rows if r[0] != large} == {(False, "ok")}
    assert h.sql("SELECT count(*) FROM quarantine") == [(0,)]
    # Whole, and byte for byte: only the large one differs from the server.
    assert m.status("u1")["connections_peak"] <= 2
