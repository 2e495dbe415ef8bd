"""A message is the same message wherever it goes, and nothing is deleted that
the server still shows, whatever it says."""

import pytest

from crooked import Crooked
from herd import Client, deliver, message
from servers import wait_for


def ids(h, account, folder=None):
    """{(path, uid): id} of what lives."""
    return {(path, uid): i for path, uid, i in h.sql(
        "SELECT b.path, m.uid, m.id FROM messages m "
        "JOIN mailboxes b ON b.id = m.mailbox_id "
        "WHERE m.account_id = %s AND m.deleted_at IS NULL", (account,))
        if folder in (None, path)}


def ever(h, account):
    """How many messages there have been."""
    return h.sql("SELECT count(*) FROM messages WHERE account_id = %s",
                 (account,))[0][0]


def gone(h, account):
    return h.sql("SELECT count(*) FROM messages WHERE account_id = %s "
                 "AND deleted_at IS NOT NULL", (account,))[0][0]


def refresh(h, account):
    h.ctl("account", "refresh", account)


def raw_text(n, body="text"):
    return (f"From: a@example.org\r\nMessage-ID: <{n}@test>\r\n"
            f"Subject: {n}\r\n\r\n{body}\r\n")


# -- moves, in either order of seeing them (F-B4) -----------------------------

@pytest.mark.parametrize("imap_kind", ["full", "condstore", "plain"],
                         indirect=True)
def test_moves_into_inbox_keep_the_id(herd, imap_kind, login):
    """A hot child sees INBOX at once, and the old place long after."""
    imap = imap_kind
    with Client(imap, login) as c:
        for path in ("Archive", "Junk"):
            if path not in c.folders():
                c.create(path)
        for path in ("Archive", "Junk"):
            c.append(path, message(f"from {path}", "", f"{path}@{login}"))
    deliver(imap, login, message("stays", "", f"inbox@{login}"))
    h = herd(poll_warm=3600, poll_cold=3600)
    h.start_both()
    user = h.add_user(f"{login}@users.example.org")
    account = h.add_account(imap, login, user)
    h.wait_live(account)
    h.wait_owned(account)
    h.assert_same(account, imap, login)
    h.ctl("user", "active", user)
    before = {i for (path, _), i in ids(h, account).items()
              if path in ("Archive", "Junk")}
    assert len(before) == 2
    with Client(imap, login) as c:
        for path in ("Archive", "Junk"):
            c.select(path)
            c.move(c.uids(), "INBOX")
    wait_for(lambda: len(ids(h, account, "INBOX")) == 3,
             what="the hot child has seen them arrive")
    refresh(h, account)
    h.assert_same(account, imap, login)
    assert before <= set(ids(h, account, "INBOX").values())
    # And a copy is a message of its own.
    with Client(imap, login) as c:
        c.select("INBOX")
        c.copy(c.uids(), "Archive")
    refresh(h, account)
    h.assert_same(account, imap, login)
    assert len(set(ids(h, account).values())) == 6


# -- one expunge (F-E4) --------------------------------------------------------

@pytest.mark.parametrize("capabilities, limit", [
    ("condstore", 4096), ("full", 4096)])
def test_an_expunge_costs_kilobytes(herd, mock, capabilities, limit):
    m = mock(inbox=20000, other=0, size=200, capabilities=capabilities)
    h = herd(poll_warm=3600, poll_cold=3600)
    h.start_both()
    user = h.add_user("ann@users.example.org")
    account = h.add_account(m, "u1", user)
    h.wait_live(account, 60)
    h.wait_owned(account)
    h.ctl("user", "active", user)
    wait_for(lambda: m.idle("u1") == 1, what="IDLE")
    before = m.status("u1")["bytes_out"]
    m.call("expunge", account="u1", uids="12345")
    wait_for(lambda: gone(h, account) == 1, what="it is gone here")
    wait_for(lambda: m.idle("u1") == 1, what="IDLE again")
    cost = m.status("u1")["bytes_out"] - before
    print(f"{capabilities}: {cost} bytes")
    assert cost <= limit
    assert ("INBOX", 12345) not in ids(h, account)


# -- contradictions (F-B2) -------------------------------------------------------

@pytest.mark.parametrize("capabilities", ["full", "condstore", "plain"])
@pytest.mark.parametrize("kind, number", [
    ("uidnext", 5), ("exists", 3), ("uidnext", 4294967295)])
def test_a_number_that_is_wrong_deletes_nothing(herd, mock, capabilities,
                                                kind, number):
    m = mock(inbox=30, other=2, capabilities=capabilities)
    h = herd(poll_warm=1, poll_cold=1)
    h.start_both()
    account = h.add_account(m, "u1")
    h.wait_live(account)
    h.wait_owned(account)
    h.assert_same(account, m, "u1")
    before = ids(h, account)
    m.fault(kind, bytes=number)
    m.call("flags", account="u1", uids="7", add=["\\Flagged"])
    refresh(h, account)
    wait_for(lambda: h.sql("SELECT 1 FROM messages WHERE account_id = %s "
                           "AND uid = 7 AND flagged", (account,)) or
             kind == "exists" and not h.sql(
                 "SELECT 1 FROM jobs WHERE account_id = %s AND state IN "
                 "('queued', 'running')", (account,)), what="a look")
    assert ids(h, account) == before
    assert gone(h, account) == 0
    # It stays wrong, and mail goes on coming; then it is right again.
    if kind == "uidnext":
        m.deliver("u1", count=2)
        m.call("expunge", account="u1", uids="3")
        refresh(h, account)
        h.assert_same(account, m, "u1")
        del before["INBOX", 3]
    m.clear()
    m.deliver("u1")
    refresh(h, account)
    h.assert_same(account, m, "u1")
    after = ids(h, account)
    assert {k: after[k] for k in before} == before
    assert gone(h, account) == (kind == "uidnext")


# -- the same UID for another message (F-B3) ------------------------------------

@pytest.mark.parametrize("capabilities", ["full", "plain"])
def test_a_uid_given_to_another_message(herd, mock, capabilities):
    m = mock(inbox=5, other=1, capabilities=capabilities)
    uid = m.call("append", account="u1", text=raw_text("old"))["uid"]
    h = herd(poll_warm=3600, poll_cold=3600)
    h.start_both()
    account = h.add_account(m, "u1")
    h.wait_live(account)
    h.wait_owned(account)
    h.assert_same(account, m, "u1")
    before = ids(h, account)
    m.call("replace", account="u1", uid=uid,
           text=raw_text("new", "another text"))
    if capabilities == "full":
        # Nothing tells: found when the server contradicts itself.
        m.fault("uidnext", bytes=uid)
    refresh(h, account)
    h.assert_same(account, m, "u1")
    after = ids(h, account)
    assert after["INBOX", uid] != before["INBOX", uid]
    del before["INBOX", uid]
    assert {k: after[k] for k in before} == before


def test_sizes_that_are_never_right_change_no_message(herd, mock):
    """The Message-ID decides."""
    m = mock(inbox=6, other=1, capabilities="plain")
    h = herd(poll_warm=3600, poll_cold=3600)
    h.start_both()
    account = h.add_account(m, "u1")
    h.wait_live(account)
    h.wait_owned(account)
    h.assert_same(account, m, "u1")
    before = ids(h, account)
    m.fault("size", bytes=4711)
    m.call("flags", account="u1", uids="2", add=["\\Flagged"])
    refresh(h, account)
    h.assert_same(account, m, "u1")
    assert ids(h, account) == before
    assert ever(h, account) == len(before)


# -- numbers as large as can be (F-A9) -------------------------------------------

@pytest.mark.parametrize("capabilities", ["full", "plain"])
def test_billions_of_messages_that_nobody_has(herd, mock, capabilities):
    m = mock(inbox=3, other=1, capabilities=capabilities)
    m.fault("exists", account="u1", bytes=4_000_000_000)
    m.fault("uidnext", account="u1", bytes=4_294_967_295)
    h = herd(poll_warm=3600, poll_cold=3600)
    h.start_both()
    account = h.add_account(m, "u1")
    h.wait_live(account)
    assert len(ids(h, account, "INBOX")) == 3
    assert m.status("u1")["commands"] < 1000
    m.deliver("u1")
    refresh(h, account)
    wait_for(lambda: len(ids(h, account, "INBOX")) == 4, what="the new one")
    assert gone(h, account) == 0


# -- a folder with another name (F-E8) -------------------------------------------

@pytest.mark.parametrize("capabilities", ["full", "plain"])
def test_a_rename_downloads_nothing(herd, mock, capabilities):
    m = mock(inbox=2, other=50, folders=1, capabilities=capabilities)
    h = herd(poll_warm=3600, poll_cold=3600)
    h.start_both()
    account = h.add_account(m, "u1")
    h.wait_live(account)
    h.wait_owned(account)
    h.assert_same(account, m, "u1")
    before = ids(h, account, "Folder 1")
    bodies = m.status("u1")["bodies"]
    m.call("rename", account="u1", folder="Folder 1", to="Other")
    refresh(h, account)
    h.assert_same(account, m, "u1")
    assert sorted(ids(h, account, "Other").values()) == \
        sorted(before.values())
    assert m.status("u1")["bodies"] == bodies


def test_folders_that_swap_their_names_and_differ_in_nothing(herd):
    """With the same UIDVALIDITY, UIDNEXT and number of messages, as Cyrus has
    it for folders of one second: MAILBOXID tells (RFC 8474)."""
    h = herd(poll_warm=2)
    with Crooked({"INBOX": [], "One": [message("Of one")],
                  "Two": [message("Of two")]},
                 capabilities=("UNSELECT", "IDLE", "OBJECTID")) as server:
        one, two = server.folders["One"], server.folders["Two"]
        two.validity = one.validity
        h.start_both()
        account = h.add_account(server, "swapper")
        h.wait_live(account, 30)
        h.wait_owned(account)

        def by_path():
            return {path: i for (path, _), i in ids(h, account).items()}
        before = by_path()
        wait_for(lambda: not h.sql("SELECT id FROM mailbox WHERE "
                                   "account_id = %s AND object_id IS NULL",
                                   (account,)), 20, "their ids are known")
        with server.lock:
            server.folders["One"], server.folders["Two"] = two, one
        wait_for(lambda: not h.difference(account, server, ""), 20,
                 "each has what the other had")
        assert by_path() == {"One": before["Two"], "Two": before["One"]}
