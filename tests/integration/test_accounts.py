"""States of an account: refusals, networks, disable, delete."""

import socket

import pytest

from herd import Client, message
from servers import wait_for
from test_changes import started


def test_wrong_password_then_new_one(herd, dovecot, login):
    """R-LIFE-6"""
    h = herd(auth_refusals=1, auth_pause=1)
    h.start_both()
    account = h.add_account(dovecot, login, password="wrong")
    found = h.wait_state(account, "error", 60)
    assert "refused the login" in found["state_reason"]
    wait_for(lambda: dovecot.logins(login) != (0, 0), what="it is in the log")
    assert dovecot.logins(login) == (0, 1)
    h.ctl("account", "set", account, "--password-file", "-",
          stdin=dovecot.password + "\n")
    h.ctl("account", "enable", account)
    h.wait_live(account, 60)
    h.assert_same(account, dovecot, login)
    assert not h.account(account)["last_error"]


@pytest.mark.slow
def test_password_changed_while_live(herd, dovecot, login, events):
    h, account = started(herd, dovecot, login, 3, auth_refusals=2,
                         auth_pause=1)
    wait_for(lambda: h.account(account)["tier"] == "hot" and
             login in dovecot.doveadm("who"), what="connected")
    dovecot.set_password(login, "changed")
    dovecot.doveadm("kick", login)
    # Never more than 2 logins in 120 s, so the second refusal takes time.
    found = h.wait_state(account, "error", 180)
    assert "refused the login" in found["state_reason"]
    events.wait("account.state_changed", account_id=account, state="error")
    wait_for(lambda: not h.account(account)["owner"], what="lease released")
    h.ctl("account", "set", account, "--password-file", "-",
          stdin="changed\n")
    h.ctl("account", "enable", account)
    h.wait_live(account, 60)
    with Client(dovecot, login, "changed") as client:
        client.append("INBOX", message("Back again"))
    wait_for(lambda: h.sql("SELECT 1 FROM messages WHERE account_id = %s "
                           "AND subject = 'Back again'", (account,)),
             what="synced again")


@pytest.mark.slow
def test_network_refused_is_not_an_auth_error(herd, dovecot, login):
    """R-LIFE-6: nobody listens; the account is retried, not condemned."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))  # taken, but not listening
        h = herd(auth_refusals=2, auth_pause=1)
        h.start_both()
        account = h.add_account(dovecot, login, port=s.getsockname()[1])
        found = wait_for(lambda: (a := h.account(account)) and
                         a["last_error"] and a, what="an error is shown")
        assert "refused" in found["last_error"].lower()
        wait_for(lambda: sum(
            j["attempts"] for j in h.ctl("job", "list")
            if j["account_id"] == account) >= 2, 90, "two attempts")
        found = h.account(account)
        assert found["state"] in ("new", "bootstrapping")
        assert "refused the login" not in (found["state_reason"] or "")


def test_server_away_and_back(herd, dovecot, login):
    h, account = started(herd, dovecot, login, 3)
    dovecot.stop()
    wait_for(lambda: h.account(account)["last_error"], what="error shown")
    dovecot.start()
    with Client(dovecot, login) as client:
        client.append("INBOX", message("Was away"))
    h.assert_same(account, dovecot, login)
    assert h.account(account)["state"] == "live"
    wait_for(lambda: not h.account(account)["last_error"],
             what="error cleared")


def test_disable_closes_connections(herd, dovecot, login):
    """R-LIFE-2: no provider call after that."""
    h, account = started(herd, dovecot, login, 3)
    h.wait_owned(account)
    h.ctl("account", "disable", account)
    wait_for(lambda: login not in dovecot.doveadm("who"), 30, "logged out")
    wait_for(lambda: not h.redis.client().get(f"sync:lease:{account}"), 30,
             "lease released")
    calls = dovecot.logins(login)
    # Other accounts make the scheduler turn meanwhile.
    other = h.add_account(dovecot, "u1999")
    h.wait_live(other)
    h.wait_owned(other)
    assert dovecot.logins(login) == calls
    assert not h.redis.client().sismember("sync:live", account)
    h.ctl("account", "enable", account)
    h.wait_live(account)
    with Client(dovecot, login) as client:
        client.append("INBOX", message("Enabled"))
    h.assert_same(account, dovecot, login)


def test_delete_removes_rows(herd, dovecot, login):
    """R-LIFE-5"""
    h, account = started(herd, dovecot, login, 5, purge_interval=1)
    h.ctl("account", "delete", "--yes", account)
    wait_for(lambda: login not in dovecot.doveadm("who"), 30, "logged out")
    wait_for(lambda: h.sql("SELECT count(*) FROM messages "
                           "WHERE account_id = %s", (account,)) == [(0,)],
             60, "rows removed")
