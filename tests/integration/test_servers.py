"""What Cyrus and Courier do otherwise than Dovecot, as far as one sees it."""

import subprocess

import pytest

from courier import Courier
from cyrus import Cyrus
from herd import Client, deliver, is_alive, message
from servers import Dovecot, descendants, end_process, run_as, wait_for

others = pytest.mark.parametrize("imap_kind", ["cyrus", "courier"],
                                 indirect=True)
ROLES = {"INBOX": "inbox", "Sent": "sent", "Drafts": "drafts",
         "Archive": "archive", "Trash": "trash", "Junk": "junk"}


@others
def test_roles(herd, imap_kind, login):
    """Cyrus says them (SPECIAL-USE); at Courier names must do, below
    INBOX."""
    h = herd()
    h.start_both()
    account = h.add_account(imap_kind, login)
    h.wait_live(account)
    found = dict(h.sql("SELECT path, role FROM mailboxes "
                       "WHERE account_id = %s", (account,)))
    root = getattr(imap_kind, "root", "")
    assert found == {name if name == "INBOX" or not root
                     else f"{root}.{name}": role
                     for name, role in ROLES.items()}


@others
def test_news_by_idle(herd, imap_kind, login):
    """No poll comes in the meantime: mail, a flag and an expunge of another
    client arrive by IDLE."""
    h = herd(poll_warm=3600, poll_cold=3600, idle_restart_secs=1500)
    sync, _ = h.start_both()
    with Client(imap_kind, login) as client:
        for n in range(3):
            client.append("INBOX", message(f"Start {n}"))
    account = h.add_account(imap_kind, login)
    h.wait_live(account)
    wait_for(lambda: [c for c in sync.ctl("ps")
                      if c["kind"] == "hot" and c["activity"] == "idle"],
             what="a hot child idles")
    deliver(imap_kind, login, message("Fresh"))
    h.assert_same(account, imap_kind, login, 20)
    with Client(imap_kind, login) as client:
        client.select("INBOX")
        client.store(client.uids()[:1], "+FLAGS", ["\\Flagged"])
        client.leave()
        h.assert_same(account, imap_kind, login, 20)
        client.select("INBOX")
        client.expunge(client.uids()[1:2])
    h.assert_same(account, imap_kind, login, 20)


@pytest.mark.parametrize("kind", [Cyrus, Courier, Dovecot])
def test_a_server_ends_alone(kind, test_dir):
    """Cyrus ends its process group with itself: the servers of all tests at
    work beside this one, when it was ours."""
    bystander = subprocess.Popen(["sleep", "100"], **run_as())
    try:
        with kind(test_dir) as server:
            pids = [server.proc.pid, *descendants(server.proc.pid)]
        wait_for(lambda: not any(is_alive(p) for p in pids), 10,
                 "all of the server has ended")
        assert is_alive(bystander.pid)
    finally:
        end_process(bystander)


@others
def test_wrong_password(herd, imap_kind, login):
    """A refusal is understood as one, whatever its words."""
    h = herd(auth_refusals=1)
    h.start_both()
    account = h.add_account(imap_kind, login, password="wrong")
    found = h.wait_state(account, "error")
    assert "refused the login" in found["state_reason"]
