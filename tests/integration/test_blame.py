"""F-A2 … F-A6, F-A14: trouble costs the one thing that makes it.

Each command times each way of failing, at one folder or one message of a
server that does all else well.
"""

import contextlib
import glob
import os
import subprocess
import time

import pytest

from crooked import Crooked, Fault
from herd import SOURCE, Client, message
from proxy import Proxy
from servers import Dovecot, give, wait_for

IMPATIENT = {"command_timeout": 2, "select_timeout": 20}


def folders(**counts):
    return {name: [message(f"{name} {n}") for n in range(count)]
            for name, count in counts.items()}


def rows(h, account, folder="INBOX"):
    return {uid for (uid,) in h.sql(
        "SELECT s.uid FROM mailherd.message_state s JOIN mailherd.mailbox b "
        "ON b.id = s.mailbox_id WHERE b.account_id = %s AND b.path = %s "
        "AND s.deleted_at IS NULL AND b.deleted_at IS NULL",
        (account, folder))}


def aside(h, account):
    return [(r["mailbox"], r["uid_from"], r["step"], r["state"])
            for r in h.ctl("quarantine", "list", account)]


def crooked(stack, way, fault, **counts):
    server = stack.enter_context(Crooked(folders(**counts)))
    server.way = way
    server.faults.append(fault)
    return server


def each(servers, check, limit, what):
    """`check` becomes true of each server; says of which it did not."""
    left = list(servers)

    def done():
        left[:] = [s for s in left if not check(s)]
        return not left
    try:
        wait_for(done, limit, what, every=0.2)
    except AssertionError as e:
        raise AssertionError(f"{what}: not for {[s.way for s in left]}") \
            from e


def is_live(h):
    return lambda s: h.account(s.account)["state"] == "live"


def parked(h, s):
    return [a for a in aside(h, s.account) if a[3] == "parked"]


# --- one message ------------------------------------------------------------

MESSAGE_WAYS = ("bye", "close", "cut", "silence", "nonsense", "no", "bad",
                "busy", "nil")


def test_one_message_at_a_new_account(herd):
    h = herd(**IMPATIENT)
    with contextlib.ExitStack() as stack:
        servers = [crooked(stack, way, Fault("FETCH", way, "INBOX", 4),
                           INBOX=8, Work=3) for way in MESSAGE_WAYS]
        h.start_both()
        for s in servers:
            s.account = h.add_account(s, f"{s.way}")
        each(servers, is_live(h), 40, "live")
        for s in servers:
            assert rows(h, s.account) == set(range(1, 9)) - {4}, s.way
            assert rows(h, s.account, "Work") == {1, 2, 3}, s.way
        # It is asked for again, put aside, and all who ask are told so.
        each(servers, lambda s: aside(h, s.account) ==
             [("INBOX", 4, "fetch", "parked")], 30, "parked")
        for s in servers:
            assert h.ctl1("account", "show", s.account)["quarantined"] == 1
            assert h.ctl1("explain", s.account)["quarantined"] == 1
            (entry,) = h.ctl("quarantine", "list", s.account)
            if s.way in ("no", "bye"):
                assert "Internal error" in entry["reason"]
            # What is well again comes by itself, in time, or at once.
            s.faults.clear()
            h.ctl("account", "refresh", s.account)
        each(servers, lambda s: rows(h, s.account) == set(range(1, 9)), 30,
             "stored")
        each(servers, lambda s: not aside(h, s.account), 20, "cleared")


def test_one_message_at_a_hot_account(herd):
    """The other mail, and what arrives meanwhile, in seconds: nobody waits
    for the end of command_timeout, a minute here."""
    h = herd(poll_warm=2, poll_cold=5)
    with contextlib.ExitStack() as stack:
        servers = [crooked(stack, way, Fault("FETCH", way, "INBOX", 1004),
                           INBOX=1000)
                   for way in ("bye", "silence", "no", "nil")]
        h.start_both()
        user = h.add_user("ann@users.example.org")
        for s in servers:
            s.account = h.add_account(s, s.way, user)
        each(servers, is_live(h), 60, "live")
        for s in servers:
            h.wait_owned(s.account)
        h.ctl("user", "active", user)
        each(servers, lambda s: s.count("IDLE") > 0, 30, "IDLE")
        well = set(range(1, 1013)) - {1004}
        for s in servers:
            begun = time.monotonic()
            for n in range(12):
                s.deliver(message(f"New {n}"))
            wait_for(lambda s=s: rows(h, s.account) >= well, 15, "the others")
            took = time.monotonic() - begun
            uid = s.deliver(message("Later"))
            wait_for(lambda s=s, uid=uid: uid in rows(h, s.account), 15,
                     "later mail")
            later = time.monotonic() - begun - took
            print(f"{s.way}: {took:.1f} s, later mail {later:.1f} s")


def test_operator_reaches_a_running_hot_child(herd):
    h = herd(poll_warm=600, poll_cold=600)
    with Crooked(folders(INBOX=5)) as server:
        h.start_both()
        user = h.add_user("ann@users.example.org")
        account = h.add_account(server, "ann", user)
        h.wait_live(account, 30)
        h.wait_owned(account)
        h.ctl("user", "active", user)
        wait_for(lambda: server.count("IDLE") > 0, 20, "IDLE")
        server.faults += [Fault("FETCH", "no", "INBOX", uid)
                          for uid in (6, 7)]
        for n in range(3):
            server.deliver(message(f"New {n}"))
        wait_for(lambda: rows(h, account) == {1, 2, 3, 4, 5, 8} and
                 len(aside(h, account)) == 2, 20, "the good one is there")
        server.faults.clear()
        first, second = sorted(h.ctl("quarantine", "list", account),
                               key=lambda r: r["uid_from"])
        h.ctl("quarantine", "skip", second["id"])
        h.ctl("quarantine", "retry", first["id"])
        wait_for(lambda: 6 in rows(h, account), 10, "tried at once")
        assert rows(h, account) == {1, 2, 3, 4, 5, 6, 8}
        assert aside(h, account) == [("INBOX", 7, "fetch", "skipped")]


# --- one folder -------------------------------------------------------------

FOLDER_WAYS = ("bye", "close", "silence", "nonsense", "no", "busy", "after")


def is_free(at, way):
    """STATUS is a question of economy: its refusal costs nothing."""
    return at == "STATUS" and way in ("no", "busy")


def test_one_folder(herd):
    h = herd(**IMPATIENT)
    with contextlib.ExitStack() as stack:
        servers = [crooked(stack, (at, way), Fault(at, way, "Shared"),
                           INBOX=2, Projects=1, Shared=1, Zebra=1)
                   for at in ("STATUS", "SELECT", "FLAGS")
                   for way in FOLDER_WAYS]
        h.start_both()
        for s in servers:
            s.account = h.add_account(s, "-".join(s.way).lower())
        each(servers, is_live(h), 60, "live")
        for s in servers:
            for folder in ("INBOX", "Projects", "Zebra"):
                assert rows(h, s.account, folder), (s.way, folder)
        each([s for s in servers if not is_free(*s.way)], lambda s:
             ("Shared", 0, "folder", "parked") in aside(h, s.account), 40,
             "parked")
        for s in servers:
            note = next(r["note"] for r in h.ctl("mailbox", "list", s.account)
                        if r["path"] == "Shared")
            assert is_free(*s.way) or note.startswith("parked: "), s.way
            s.deliver(message("Later"), "INBOX")
            s.deliver(message("Later"), "Zebra")
        each(servers, lambda s: 3 in rows(h, s.account) and
             2 in rows(h, s.account, "Zebra"), 30, "new mail elsewhere")
        for s in servers:
            s.faults.clear()
            h.ctl("account", "refresh", s.account)
        each(servers, lambda s: not h.difference(s.account, s, ""), 40,
             "all is there")
        each(servers, lambda s: not aside(h, s.account), 30, "cleared")


def test_folder_that_takes_its_time(herd):
    """It says so all the time, for longer than a command may take."""
    h = herd(command_timeout=3, select_timeout=30)
    with Crooked(folders(INBOX=2, Shared=1)) as server:
        server.faults.append(Fault("SELECT", "still here", folder="Shared",
                                   secs=6))
        h.start("jobs")
        account = h.add_account(server, "ann")
        h.wait_live(account, 60)
        assert rows(h, account, "Shared") == {1}
        assert not aside(h, account)


def test_eleven_damaged_folders_at_a_server_that_counts_refusals(herd):
    h = herd(poll_warm=2)
    bad = [f"Bad {n:02}" for n in range(11)]
    with Crooked({**folders(INBOX=2, Zebra=1),
                  **{name: [message(name)] for name in bad}}) as server:
        server.faults += [Fault("SELECT", "no", folder=name) for name in bad]
        server.refusals_max = 10
        h.start_both()
        account = h.add_account(server, "ann")
        h.wait_live(account, 20)
        assert rows(h, account, "Zebra") == {1}
        wait_for(lambda: len(aside(h, account)) == 11, 20, "parked")
        for folder in ("INBOX", "Zebra"):
            uid = server.deliver(message("Later"), folder)
            wait_for(lambda: uid in rows(h, account, folder), 15, "new mail")


# --- the whole server -------------------------------------------------------

def test_whole_server(herd):
    """Nothing is put aside, and all is there when it is well again; also where
    jobs make room for others all the time, and empty folders are well."""
    h = herd(command_timeout=2)
    with contextlib.ExitStack() as stack:
        servers = [crooked(stack, (at, way), Fault(at, way), INBOX=5,
                           Projects=4, Shared=1, Trash=0, Zebra=1)
                   for at in ("STATUS", "SELECT", "FLAGS", "FETCH")
                   for way in ("bye", "silence", "no", "busy")]
        h.start("jobs", bulk_concurrency=8)
        for s in servers:
            s.account = h.add_account(s, "-".join(s.way).lower())

        def suffers(s):
            if s.way == ("STATUS", "no"):
                return is_live(h)(s)
            if s.way[1] == "busy":
                return "unavailable" in h.ctl1("account", "show",
                                               s.account)["last_error"]
            return s.faults[0].struck >= 8
        each(servers, suffers, 90, "asked often")
        for s in servers:
            assert not parked(h, s), (s.way, aside(h, s.account))
            s.faults.clear()
        # Some were asked to wait a minute.
        h.sql("UPDATE mailherd.accounts SET next_try_at = NULL")
        h.sql("UPDATE mailherd.jobs SET run_at = now() "
              "WHERE state = 'queued'")
        each(servers, is_live(h), 60, "live")
        h.start("sync")
        each(servers, lambda s: not h.difference(s.account, s, ""), 60,
             "all is there")
        each(servers, lambda s: not aside(h, s.account), 30, "cleared")


# --- a real server ----------------------------------------------------------

def pass_over(h, account):
    """Two passes have ended: one of them began after this."""
    def passes():
        return h.ctl1("explain", account).get("passes", 0)
    before = passes()
    h.poll(account)
    wait_for(lambda: passes() >= before + 2, 20, "two passes")


def comparisons(proxy):
    return sum("FETCH 1:" in line and "(UID FLAGS" in line
               for line in proxy.said)


def test_shortened_file_of_dovecot(herd, test_dir, login):
    """A Maildir file that is shorter than its S= says: FETCH ends with BYE.
    Nor is it a reason to compare the folder again and again (F-A14)."""
    with Dovecot(test_dir, format="maildir", name="shortened") as dovecot:
        with Client(dovecot, login) as client:
            for n in range(8):
                client.append("INBOX", message(f"Meal {n}", "x" * 500))
        path = sorted(glob.glob(os.path.join(
            dovecot.mail, login, "Maildir", "*", "*,S=*")))[3]
        with open(path, "r+b") as f:
            f.truncate(136)
        with Proxy(dovecot.port) as proxy:
            h = herd()
            h.start_both()
            account = h.add_account(dovecot, login, port=proxy.port)
            h.wait_live(account, 30)
            assert len(rows(h, account)) == 7
            wait_for(lambda: [a[3] for a in aside(h, account)] == ["parked"],
                     20, "parked")
            entry = h.ctl("quarantine", "list", account)[0]
            assert "closed the connection" in entry["reason"] or \
                "FETCH failed" in entry["reason"], entry
            h.ctl("quarantine", "skip", entry["id"])
            # As if a quarter of an hour had passed.
            before = comparisons(proxy)
            h.sql("UPDATE mailherd.mailbox SET last_poll_at = now() - "
                  "interval '1 hour' WHERE account_id = %s", (account,))
            pass_over(h, account)
            assert comparisons(proxy) == before
            assert len(rows(h, account)) == 7


def test_message_that_is_counted_and_never_shown(herd, dovecot, login):
    """F-A14: compared once, and not again while nothing changes."""
    with Client(dovecot, login) as client:
        for n in range(8):
            client.append("INBOX", message(f"Meal {n}"))
    with Proxy(dovecot.port) as proxy:
        h = herd()
        h.start_both()
        account = h.add_account(dovecot, login, port=proxy.port)
        h.wait_live(account)
        # We have one less than the server says that there are.
        h.sql("UPDATE mailherd.mailbox SET messages = messages - 1 "
              "WHERE account_id = %s AND path = 'INBOX'", (account,))
        before, told = comparisons(proxy), []
        for _ in range(3):
            h.sql("UPDATE mailherd.mailbox SET last_poll_at = now() - "
                  "interval '1 hour' WHERE account_id = %s AND path = "
                  "'INBOX'", (account,))
            pass_over(h, account)
            told.append(comparisons(proxy) - before)
        assert told[0] >= 1
        assert told[1:] == [told[0]] * 2


# --- the child --------------------------------------------------------------

def fatal(subject):
    """A message that ends the process which parses it (fatal.c)."""
    return (f"Subject: {subject}\r\nMessage-ID: <{subject}@x>\r\n"
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n"
            "Hello\r\n--b--\r\n").encode()


@pytest.fixture
def deadly(herd, test_dir):
    """A factory of herds whose parser dies of such messages."""
    library = os.path.join(test_dir, "fatal.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, os.path.join(
        SOURCE, "tests", "integration", "fatal.c")], check=True)
    os.chmod(library, 0o755)
    give(library)

    def make(**settings):
        h = herd(**settings)
        plain = h.daemon_env
        h.daemon_env = lambda: {**plain(), "LD_PRELOAD": " ".join(filter(
            None, (h.programs.sanitizer, plain().get("LD_PRELOAD"),
                   library)))}
        return h
    return make


def parse_states(h, account):
    return dict(h.sql("SELECT parse_state, count(*) FROM messages WHERE "
                      "account_id = %s AND deleted_at IS NULL GROUP BY 1",
                      (account,)))


def test_22_fatal_messages_among_24(deadly):
    h = deadly()
    mail = [fatal(f"F{n}") for n in range(22)]
    mail.insert(9, message("Well"))
    mail.append(message("Well, too"))
    with Crooked({"INBOX": mail}) as server:
        h.start("jobs", backoff_first=2, sweep_interval=5)
        begun = time.monotonic()
        account = h.add_account(server, "ann")
        h.wait_live(account, 120)
        took = time.monotonic() - begun
        print(f"live after {took:.1f} s")
        assert parse_states(h, account) == {"ok": 2, "unparsed": 22}
        assert took < 60
        assert len(aside(h, account)) == 22


def test_fatal_message_at_a_hot_account(deadly):
    h = deadly(poll_warm=2, poll_cold=5)
    with Crooked(folders(INBOX=100)) as server:
        h.start_both()
        user = h.add_user("ann@users.example.org")
        account = h.add_account(server, "ann", user)
        h.wait_live(account, 30)
        h.wait_owned(account)
        h.ctl("user", "active", user)
        wait_for(lambda: server.count("IDLE") > 0, 20, "IDLE")
        begun = time.monotonic()
        for n in range(12):
            server.deliver(fatal("F") if n == 3 else message(f"New {n}"))
        well = set(range(1, 113)) - {104}
        wait_for(lambda: rows(h, account) >= well, 15, "the others")
        print(f"the others after {time.monotonic() - begun:.1f} s")
        uid = server.deliver(message("Later"))
        wait_for(lambda: uid in rows(h, account), 15, "later mail")
        wait_for(lambda: 104 in rows(h, account), 20, "stored unparsed")
        assert parse_states(h, account) == {"ok": 112, "unparsed": 1}
