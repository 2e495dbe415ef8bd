"""The mock server speaks real IMAP, and mailherd lives with it in every set of
capabilities."""

import hashlib
import imaplib
import os
import re
import socket
import ssl
import time

import pytest

from servers import wait_for, within, write_file


def client(mock, login="u1"):
    conn = imaplib.IMAP4("127.0.0.1", mock.port)
    conn.login(login, mock.password)
    return conn


def ok(answer):
    kind, data = answer
    assert kind == "OK", answer
    return data


class Raw:
    """A connection that sees each line."""

    def __init__(self, port, login="u1"):
        self.socket = socket.create_connection(("127.0.0.1", port), 20)
        self.file = self.socket.makefile("rb")
        self.greeting = self.line()
        self.tag = 0
        if login:
            self.ok(f"LOGIN {login} secret")

    def line(self):
        return self.file.readline().decode().rstrip("\r\n")

    def say(self, text):
        self.socket.sendall(f"{text}\r\n".encode())

    def ask(self, text):
        """(untagged lines, the tagged one without its tag)"""
        self.tag += 1
        self.say(f"a{self.tag} {text}")
        return self.until(f"a{self.tag} ")

    def until(self, start):
        lines = []
        while True:
            line = self.line()
            if line.startswith(start) or not line:
                return lines, line[len(start):]
            lines.append(line)

    def ok(self, text):
        lines, answer = self.ask(text)
        assert answer.startswith("OK"), (text, lines, answer)
        return lines


def test_select_fetch_search(mock):
    m = mock(inbox=12, size=2000)
    with client(m) as c:
        assert ok(c.select()) == [b"12"]
        data = ok(c.uid("FETCH", "1:*", "(UID FLAGS BODY.PEEK[])"))
        state = m.server_state("u1")["INBOX"]
        found = {}
        for head, raw in (d for d in data if isinstance(d, tuple)):
            uid = int(re.search(rb"UID (\d+)", head).group(1))
            found[uid] = hashlib.sha256(raw).hexdigest()
            assert raw.endswith(b"\r\n") and b"\r\n\r\n" in raw
        assert found == {u: d for u, (_, d) in state.items()}
        assert ok(c.uid("SEARCH", "UNSEEN")) == [b"8 9 10 11 12"]
        subject = re.search(r"Subject: (.*?)\r", ok(c.fetch(
            "3", "(BODY.PEEK[HEADER.FIELDS (SUBJECT)])"))[0][1].decode())
        assert b"3" in ok(c.search(
            None, "SUBJECT", f'"{subject.group(1)}"'))[0].split()
        # the same bytes again, whole or in parts
        whole = ok(c.uid("FETCH", "5", "(BODY.PEEK[])"))[0][1]
        part = ok(c.uid("FETCH", "5", "(BODY.PEEK[]<100.300>)"))[0][1]
        assert part == whole[100:400]


def test_same_seed_same_mail(mock):
    a, b = mock(name="a", seed=7), mock(name="b", seed=7)
    c = mock(name="c", seed=8)
    assert a.server_state("u5") == b.server_state("u5")
    assert a.server_state("u5") != c.server_state("u5")


def peak_kb(m):
    with open(f"/proc/{m.proc.pid}/status") as f:
        return int(re.search(r"VmHWM:\s+(\d+) kB", f.read()).group(1))


def test_big_message_is_made_as_it_is_read(mock, monkeypatch):
    """What it grows by: a build with sanitizers starts out large, and keeps
    what was freed unless told not to."""
    monkeypatch.setenv("ASAN_OPTIONS", "quarantine_size_mb=0:"
                       "thread_local_quarantine_size_kb=0")
    m = mock()
    before = peak_kb(m)
    m.deliver("u1", size=30_000_000)
    with client(m) as c:
        ok(c.select())
        raw = ok(c.uid("FETCH", "21", "(BODY.PEEK[])"))[0][1]
        digest = m.server_state("u1")["INBOX"][21][1]
        assert hashlib.sha256(raw).hexdigest() == digest
        assert len(raw) >= 30_000_000
    assert peak_kb(m) - before < 20_000


def test_idle_tells_at_once(mock):
    m = mock()
    c = Raw(m.port)
    c.ok("SELECT INBOX")
    c.say("i IDLE")
    assert c.line().startswith("+")
    begun = time.monotonic()
    m.deliver("u1", count=2)
    assert c.line() == "* 22 EXISTS"
    m.call("flags", account="u1", uids="3", add=["\\Flagged"])
    assert c.line() == "* 3 FETCH (UID 3 FLAGS (\\Seen \\Flagged))"
    m.call("expunge", account="u1", uids="1:2")
    assert [c.line(), c.line()] == ["* 1 EXPUNGE", "* 1 EXPUNGE"]
    assert time.monotonic() - begun < within(5)
    assert m.status("u1")["idle"] == 1
    c.say("DONE")
    assert c.line() == "i OK Idle ended"
    status = m.status("u1")
    assert (status["idle"], status["idle_peak"]) == (0, 1)
    kinds = [e["kind"] for e in m.calls(account="u1")]
    assert [k for k in kinds if k in ("idle", "told", "done")] == \
        ["idle", "told", "told", "told", "done"]


def test_qresync_tells_what_was_missed(mock):
    m = mock()
    c = Raw(m.port)
    c.ok("ENABLE QRESYNC")
    lines = c.ok("SELECT INBOX")
    validity = next(re.search(r"UIDVALIDITY (\d+)", i).group(1)
                    for i in lines if "UIDVALIDITY" in i)
    modseq = next(re.search(r"HIGHESTMODSEQ (\d+)", i).group(1)
                  for i in lines if "HIGHESTMODSEQ" in i)
    c.ok("UNSELECT")
    m.call("expunge", account="u1", uids="4:6,9")
    m.call("flags", account="u1", uids="12", add=["\\Answered", "word"])
    lines = c.ok(f"SELECT INBOX (QRESYNC ({validity} {modseq}))")
    assert "* VANISHED (EARLIER) 4:6,9" in lines
    assert any(re.match(r"\* 8 FETCH \(UID 12 FLAGS "
                        r"\(\\Seen \\Answered word\) MODSEQ \(\d+\)\)", i)
               for i in lines)
    assert sum("FETCH" in i for i in lines) == 1


def test_move_copy_append(mock):
    m = mock(inbox=5)
    before = m.server_state("u1")
    with client(m) as c:
        ok(c.select())
        ok(c.uid("MOVE", "2:3", "Archive"))
        ok(c.uid("COPY", "4", '"Trash"'))
        ok(c.append("Drafts", "(\\Draft)", None, b"From: a\r\n\r\nHi\r\n"))
        ok(c.create('"Projects/New"'))
        ok(c.rename('"Projects/New"', '"Projects/Old"'))
    after = m.server_state("u1")
    assert set(after["INBOX"]) == {1, 4, 5}
    assert [d for _, d in after["Archive"].values()][-2:] == \
        [before["INBOX"][2][1], before["INBOX"][3][1]]
    assert after["Trash"][4][1] == before["INBOX"][4][1]
    assert after["Drafts"][4] == (
        frozenset({"\\draft"}),
        hashlib.sha256(b"From: a\r\n\r\nHi\r\n").hexdigest())
    assert after["Projects/Old"] == {}


def test_faults(mock):
    m = mock()
    m.fault("answer", at="LOGIN", account="u2", times=1,
            text="NO [LIMIT] too many connections")
    c = Raw(m.port, None)
    assert c.ask("LOGIN u2 secret")[1].startswith("NO [LIMIT]")
    c.ok("LOGIN u2 secret")
    m.fault("stall", at="NOOP", msecs=300, times=1)
    begun = time.monotonic()
    c.ok("NOOP")
    assert time.monotonic() - begun >= 0.3
    m.fault("say", at="NOOP", text="* OK [ALERT] hello", times=1)
    assert c.ok("NOOP") == ["* OK [ALERT] hello"]
    m.fault("modseq", account="u2", text="frozen")
    assert any("[HIGHESTMODSEQ 7]" in i for i in c.ok("SELECT INBOX"))
    m.fault("drop", at="UID FETCH", bytes=700)
    c.say("x UID FETCH 1 (BODY.PEEK[])")
    assert len(c.file.read()) == 700
    m.clear()
    m.call("group", name="default", max_connections=1)
    first = Raw(m.port, "u3")
    assert Raw(m.port, None).ask("LOGIN u3 secret")[1].startswith("NO [LIMIT]")
    assert m.status("u3")["refused"] == 1
    first.ok("LOGOUT")


def test_tls_and_starttls(mock, certs):
    m = mock()
    context = ssl.create_default_context(cafile=certs.ca)
    with imaplib.IMAP4_SSL("localhost", m.tls_port,
                           ssl_context=context) as c:
        c.login("u1", "secret")
        m.deliver("u1", size=3_000_000)
        ok(c.select())
        raw = ok(c.uid("FETCH", "21", "(BODY.PEEK[])"))[0][1]
        assert hashlib.sha256(raw).hexdigest() == \
            m.server_state("u1")["INBOX"][21][1]
    with imaplib.IMAP4("localhost", m.port) as c:
        c.starttls(context)
        c.login("u2", "secret")
        assert ok(c.select()) == [b"20"]


def test_nonsense_is_bad_and_harms_nobody(mock):
    m = mock()
    c = Raw(m.port)
    for line in ("FETCH", "UID", "SELECT", "SELECT  INBOX", "FETCH 1 FLAGS",
                 "LIST (", "STATUS INBOX (NONE)", "SEARCH ALL",
                 'LOGIN "u1', "ENABLE", "APPEND INBOX ()",
                 "SELECT INBOX (QRESYNC (1 2))"):
        answer = c.ask(line)[1]
        assert answer.startswith(("BAD", "OK")), (line, answer)
    c.ok("SELECT INBOX")
    for line in ("FETCH 0 FLAGS", "FETCH 1: FLAGS", "UID FETCH 1,,2 FLAGS",
                 "SEARCH (" * 50, "SEARCH OR", "STORE 1 FLAGS (\\Nothing)",
                 "FETCH 1 (BODY[HEADER.FIELDS])", "UID EXPUNGE"):
        assert c.ask(line)[1].startswith("BAD"), line
    c.say("broken")
    assert c.line().startswith("* BAD")
    c.say("x" * 100_000)
    assert c.line().startswith("* BYE")
    Raw(m.port).ok("NOOP")


@pytest.mark.parametrize("capabilities, tls", [
    ("full", "tls"), ("condstore", "starttls"), ("plain", "none")])
def test_mailherd_follows(herd, mock, capabilities, tls):
    """Bootstrap, then everything a second client does."""
    m = mock(inbox=60, other=10, folders=2, capabilities=capabilities)
    h = herd()
    h.start_both()
    user = h.add_user("ann@users.example.org")
    account = h.add_account(m, "u1", user, tls=tls)
    h.wait_live(account)
    h.assert_same(account, m, "u1")

    h.wait_owned(account)
    h.ctl("user", "active", user)
    if capabilities != "plain":
        wait_for(lambda: m.idle("u1") == 1, what="IDLE")
    uids = m.deliver("u1", count=3)
    h.assert_same(account, m, "u1")
    m.call("flags", account="u1", uids=f"{uids[0]},2:9",
           add=["\\Flagged", "word"], remove=["\\Seen"])
    m.call("move", account="u1", uids=f"{uids[1]},10:12", to="Archive")
    m.call("expunge", account="u1", uids="20:25")
    m.call("create", account="u1", folder="Later")
    m.call("rename", account="u1", folder="Folder 1", to="Other")
    m.deliver("u1", folder="Later", count=2)
    h.assert_same(account, m, "u1")
    m.call("uidvalidity", account="u1", folder="Archive")
    m.call("delete", account="u1", folder="Folder 2")
    h.assert_same(account, m, "u1")
    assert m.status("u1")["idle_peak"] <= 1
    assert m.status("u1")["connections_peak"] <= 4


def test_server_known_to_count_is_not_asked_for_one_too_many(herd, mock,
                                                             test_dir):
    """conn_cap of quirks.conf: not one login is refused (R-CONN-3)."""
    m = mock(inbox=20, other=5, folders=2)
    m.call("group", name="default", max_connections=1)
    quirks = os.path.join(test_dir, "strict.conf")
    write_file(quirks, 'server "Strict" {\n\thosts = { "127.0.0.1", '
               '"localhost" }\n\tconn_cap = 1\n}\n')
    h = herd(quirks_file=quirks, poll_warm=1, poll_cold=2)
    h.start_both()
    user = h.add_user("ann@users.example.org")
    account = h.add_account(m, "u1", user)
    h.wait_live(account)
    h.wait_owned(account)
    h.ctl("user", "active", user)
    for _ in range(3):
        m.deliver("u1")
        h.ctl("account", "refresh", account)
        h.assert_same(account, m, "u1")
    assert m.status("u1")["refused"] == 0
    assert m.status("u1")["connections_peak"] == 1
    assert m.status("u1")["idle_peak"] == 0
