"""No credential leaves before the peer is verified; the error says why not."""

import os
import signal

import pytest

from herd import Client, message
from proxy import Proxy
from servers import Dovecot, wait_for, write_file


def refused(h, account):
    """Once mailherd has tried and said so."""
    found = wait_for(lambda: (a := h.account(account)) and
                     a["last_error"] and a, what="an error is shown")
    assert found["state"] != "live"
    assert "refused the login" not in (found["state_reason"] or "")
    return found["last_error"].lower()


@pytest.mark.parametrize("tls", ["tls", "starttls"])
@pytest.mark.parametrize("cert,words", [
    ("self-signed", ["self-signed", "self signed", "issuer", "authority",
                     "not trusted", "chain"]),
    ("wrong-host", ["name", "host"]),
    ("expired", ["expired", "date"]),
])
def test_bad_certificate(herd, test_dir, certs, cert, words, tls):
    with Dovecot(test_dir, certs, cert) as imap:
        h = herd()
        h.start_both()
        account = h.add_account(imap, "u0001", tls=tls)
        error = refused(h, account)
        assert any(w in error for w in words), error
        assert imap.logins() == (0, 0)


@pytest.mark.parametrize("tls", ["tls", "starttls"])
def test_good_certificate(herd, dovecot, login, tls):
    with Client(dovecot, login) as client:
        client.append("INBOX", message("Sealed"))
    h = herd()
    h.start_both()
    account = h.add_account(dovecot, login, tls=tls)
    h.wait_live(account)
    h.assert_same(account, dovecot, login)
    wait_for(lambda: any(f"Login: user=<{login}>" in line and "TLS" in line
                         for line in dovecot.log_text().splitlines()),
             what="TLS in the log")


def test_unknown_authority_without_ca_file(herd, dovecot, login):
    h = herd(ca_file="")
    h.start_both()
    account = h.add_account(dovecot, login, tls="tls")
    refused(h, account)
    assert dovecot.logins(login) == (0, 0)


def test_an_authority_is_renewed(herd, test_dir, certs, dovecot, login):
    """Its file has the same name and other contents; SIGHUP is enough."""
    path = os.path.join(test_dir, "trusted.pem")
    write_file(path, open(certs["self-signed"][0], encoding="ascii").read())
    h = herd(ca_file=path)
    _, jobs = h.start_both()
    account = h.add_account(dovecot, login, tls="tls")
    refused(h, account)
    write_file(path, open(certs.ca, encoding="ascii").read())
    for d in h.daemons:
        os.kill(d.pid, signal.SIGHUP)
    h.wait_live(account)
    assert "read before stay" not in jobs.log_text()
    # One that cannot be read changes nothing.
    write_file(path, "no certificate")
    for d in h.daemons:
        os.kill(d.pid, signal.SIGHUP)
    wait_for(lambda: "read before stay" in jobs.log_text(), what="told")
    with Client(dovecot, login) as client:
        client.append("INBOX", message("Still trusted"))
    h.assert_same(account, dovecot, login)


@pytest.mark.slow
def test_starttls_stripped_again_and_again(herd, dovecot, login):
    """The second try, half a minute later, is no more trusting."""
    starttls_stripped(herd, dovecot, login, tries=2)


def test_starttls_stripped(herd, dovecot, login):
    starttls_stripped(herd, dovecot, login, tries=1)


def starttls_stripped(herd, dovecot, login, tries):
    """A man in the middle takes the offer away: nothing secret is said."""
    with Proxy(dovecot.port, strip_starttls=True) as proxy:
        h = herd()
        h.start_both()
        account = h.add_account(dovecot, login, tls="starttls",
                                port=proxy.port)
        error = refused(h, account)
        assert "starttls" in error, error
        wait_for(lambda: proxy.connections >= tries, 90, "another try")
        said = "\n".join(proxy.said).upper()
        assert "LOGIN " not in said and "AUTHENTICATE" not in said
    assert dovecot.logins(login) == (0, 0)


def test_plaintext_server_that_wants_tls(herd, test_dir, certs):
    """LOGINDISABLED is honoured, not tested."""
    with Dovecot(test_dir, certs, plaintext=False,
                 extra="\nlogin_trusted_networks =\n") as imap:
        if "LOGINDISABLED" not in greeting(imap):
            pytest.skip("Dovecot trusts loopback")
        h = herd()
        h.start_both()
        account = h.add_account(imap, "u0001", tls="none")
        refused(h, account)
        assert imap.logins() == (0, 0)


def greeting(imap):
    import socket
    with socket.create_connection(("127.0.0.1", imap.port), 5) as s:
        return s.recv(2000).decode()
