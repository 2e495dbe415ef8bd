"""F-A3 … F-A10, F-B2 … F-B5, F-B13, F-B17: servers that are odd in other ways.

An Odd is a Crooked with hooks: {command: function(session, tag, rest)}, which
return True when they have answered.
"""

import contextlib
import re
import threading

import pytest

from crooked import Crooked, Ended, Session
from herd import message
from servers import wait_for

IMPATIENT = {"command_timeout": 2, "select_timeout": 10}


class OddSession(Session):
    def command(self, line):
        tag, name, rest = (line.split(" ", 2) + ["", ""])[:3]
        if name.upper() == "UID":
            name, rest = "UID " + rest.split(" ", 1)[0], rest.split(" ", 1)[1]
        hook = self.server.hooks.get(name.upper())
        if hook in (idle_bad, idle_bye, idle_ends):
            self.server.commands.append("IDLE")
        if hook is None or not hook(self, tag, rest):
            super().command(line)
        else:
            self.server.commands.append(f"{name} {rest}")


class Odd(Crooked):
    def __init__(self, folders, hooks, **more):
        self.hooks = hooks
        super().__init__(folders, **more)

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=OddSession(self, sock).run,
                             daemon=True).start()


def folders(**counts):
    return {name: [message(f"{name} {n}") for n in range(count)]
            for name, count in counts.items()}


def rows(h, account, folder="INBOX"):
    return {uid for (uid,) in h.sql(
        "SELECT s.uid FROM mailherd.message_state s JOIN mailherd.mailbox b "
        "ON b.id = s.mailbox_id WHERE b.account_id = %s AND b.path = %s "
        "AND s.deleted_at IS NULL AND b.deleted_at IS NULL",
        (account, folder))}


def ids(h, account):
    return dict(h.sql("SELECT subject, id FROM mailherd.messages WHERE "
                      "account_id = %s AND deleted_at IS NULL", (account,)))


# --- A3 … A6: one thing at the server ---------------------------------------------

def opens_and_falls_silent(s, tag, rest):
    if '"Shared"' not in rest:
        return False
    s.line("* 1 EXISTS")
    s.sock.settimeout(3600)
    while s.file.readline():
        pass
    raise Ended


def says_a_login_word(s, tag, rest):
    if '"Shared"' not in rest:
        return False
    s.no(tag, b"NO [AUTHENTICATIONFAILED] Invalid credentials")
    return True


def says_over_quota(s, tag, rest):
    if '"Shared"' not in rest:
        return False
    s.no(tag, b"NO [OVERQUOTA] Mailbox is full, try again later")
    return True


def bye_unavailable(s, tag, rest):
    if '"Shared"' not in rest:
        return False
    s.line("* BYE [UNAVAILABLE] Temporary problem with this mailbox")
    raise Ended


def announces_more(s, tag, rest):
    """The literal of UID 4 never ends."""
    if "BODY" not in rest or s.name != "INBOX" or \
            4 not in [u for _, u in s.chosen(rest.split(" ")[0], True)]:
        return False
    raw = s.folder.messages[4][0]
    s.say(b"* 4 FETCH (UID 4 BODY[] {%d}\r\n" % (len(raw) + 5000) + raw)
    s.sock.settimeout(3600)
    while s.file.readline():
        pass
    raise Ended


def two_tags_for_one(s, tag, rest):
    """OK at once, then what was asked for: of UID 4 only."""
    if "BODY" not in rest or s.name != "INBOX" or \
            4 not in [u for _, u in s.chosen(rest.split(" ")[0], True)]:
        return False
    s.line(f"{tag} OK done")
    s.line(f"{tag} OK done again")
    return True


def refuses_with_login_word(s, tag, rest):
    if "BODY" not in rest or s.name != "INBOX" or \
            4 not in [u for _, u in s.chosen(rest.split(" ")[0], True)]:
        return False
    s.no(tag, b"NO [AUTHORIZATIONFAILED] Message is quarantined")
    return True


OBJECTS = {
    "select: exists, then silence": {"SELECT": opens_and_falls_silent},
    "select: login word": {"SELECT": says_a_login_word},
    "select: over quota": {"SELECT": says_over_quota},
    "select: BYE unavailable": {"SELECT": bye_unavailable},
    "fetch: literal too short": {"UID FETCH": announces_more},
    "fetch: answered twice": {"UID FETCH": two_tags_for_one},
    "fetch: login word": {"UID FETCH": refuses_with_login_word},
}


def test_one_thing_at_the_server(herd):
    h = herd(**IMPATIENT)
    with contextlib.ExitStack() as stack:
        servers = []
        for way, hooks in OBJECTS.items():
            s = stack.enter_context(Odd(folders(INBOX=6, Shared=1, Work=2),
                                        hooks))
            s.way = way
            servers.append(s)
        h.start_both()
        for n, s in enumerate(servers):
            s.account = h.add_account(s, f"odd{n}")
        bad = []

        def well(s):
            inbox = {1, 2, 3, 5, 6} if s.way.startswith("fetch") else \
                set(range(1, 7))
            return h.account(s.account)["state"] == "live" and \
                rows(h, s.account) >= inbox and \
                rows(h, s.account, "Work") == {1, 2}
        with contextlib.suppress(AssertionError):
            wait_for(lambda: all(map(well, servers)), 60, "live")
        bad = [s.way for s in servers if not well(s)]
        assert not bad, [(s.way, h.account(s.account)) for s in servers
                         if s.way in bad]
        for s in servers:
            wait_for(lambda s=s: h.ctl("quarantine", "list", s.account), 40,
                     f"told: {s.way}")
            later = s.deliver(message("Later"))
            wait_for(lambda s=s, later=later: later in rows(h, s.account), 30,
                     f"later mail: {s.way}")


# --- A8: IDLE that does not work ----------------------------------------------------

def idle_bad(s, tag, rest):
    s.line(f"{tag} BAD IDLE disabled by policy")
    return True


def idle_bye(s, tag, rest):
    s.line("+ idling")
    s.line("* BYE idle for too long")
    raise Ended


def idle_ends(s, tag, rest):
    s.line("+ idling")
    s.line(f"{tag} OK done")
    return True


def test_idle_that_does_not_work_is_no_storm(herd):
    h = herd(poll_warm=3, poll_cold=6, backoff_first=1, backoff_max=8)
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Odd(folders(INBOX=2), {"IDLE": f}))
                   for f in (idle_bad, idle_bye, idle_ends)]
        h.start_both()
        user = h.add_user("ann@users.example.org")
        for n, s in enumerate(servers):
            s.account = h.add_account(s, f"idle{n}", user)
        for s in servers:
            h.wait_live(s.account)
        h.ctl("user", "active", user)
        with contextlib.suppress(AssertionError):
            wait_for(lambda: all(s.count("IDLE") for s in servers), 30,
                     "IDLE is tried")
        assert [s.count("IDLE") > 0 for s in servers] == [True] * 3, \
            h.ctl("explain", servers[0].account)
        for n in range(3):
            for s in servers:
                uid = s.deliver(message(f"News {n}"))
                wait_for(lambda s=s, uid=uid: uid in rows(h, s.account), 30,
                         "news come all the same")
        for s in servers:
            assert len(s.commands) < 400, len(s.commands)


# --- A10: rows that somebody holds ---------------------------------------------------

@pytest.mark.parametrize("held", [
    "SELECT 1 FROM mailherd.accounts WHERE id = %s FOR UPDATE",
    "SELECT 1 FROM mailherd.mailbox WHERE account_id = %s FOR UPDATE",
    "SELECT 1 FROM mailherd.account_fence WHERE account_id = %s FOR SHARE",
], ids=["account", "folder", "fence shared"])
def test_a_held_row_is_its_accounts_trouble(herd, held):
    h = herd(poll_warm=2)
    with Crooked(folders(INBOX=2)) as one, Crooked(folders(INBOX=2)) as other:
        h.start_both()
        accounts = [h.add_account(s, f"held{n}")
                    for n, s in enumerate((one, other))]
        for a in accounts:
            h.wait_live(a)
            h.wait_owned(a)
        with contextlib.closing(h.pg.connect(h.dbname)) as db, \
                db.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(held, (accounts[0],))
            one.deliver(message("Held up"))
            for n in range(3):
                uid = other.deliver(message(f"Free {n}"))
                wait_for(lambda uid=uid: uid in rows(h, accounts[1]), 15,
                         "the other account goes on")
        wait_for(lambda: 3 in rows(h, accounts[0]), 60, "and then this one")


# --- B2, B13, B17: what servers say and is not so ------------------------------------

def selected_with(line):
    def hook(s, tag, rest):
        name = rest[1:rest.index('"', 1)]
        if name != "INBOX":
            return False
        with s.server.lock:
            s.name, s.folder = name, s.server.folders[name]
            s.seen = sorted(s.folder.messages)
        s.line(f"* {len(s.seen)} EXISTS\r\n* OK [UIDVALIDITY "
               f"{s.folder.validity}] v\r\n* OK [UIDNEXT "
               f"{line(s)}] n")
        s.line(f"{tag} OK [READ-WRITE] selected")
        return True
    return hook


LIES = {
    "UIDNEXT 1": lambda s: 1,
    "UIDNEXT far above": lambda s: s.folder.uidnext + 100000,
    "UIDNEXT in the middle": lambda s: 3,
    "UIDNEXT up and down": lambda s: s.folder.uidnext +
    (50 if len(s.server.commands) % 2 else 0),
}


def test_uidnext_that_lies_deletes_nothing(herd):
    h = herd(poll_warm=2)
    with contextlib.ExitStack() as stack:
        servers = []
        for way, lie in LIES.items():
            s = stack.enter_context(Odd(folders(INBOX=6, Work=2),
                                        {"SELECT": selected_with(lie)}))
            s.way = way
            servers.append(s)
        h.start_both()
        for n, s in enumerate(servers):
            s.account = h.add_account(s, f"lies{n}")
        for s in servers:
            h.wait_live(s.account)
            wait_for(lambda s=s: rows(h, s.account) == set(range(1, 7)), 30,
                     f"all: {s.way}")
            s.before = ids(h, s.account)
        for n in range(3):
            for s in servers:
                uid = s.deliver(message(f"New {n}"))
                wait_for(lambda s=s, uid=uid: uid in rows(h, s.account), 30,
                         f"new mail: {s.way}")
        for s in servers:
            now = ids(h, s.account)
            assert all(now[k] == v for k, v in s.before.items()), s.way
            deleted = h.sql("SELECT count(*) FROM mailherd.messages WHERE "
                            "account_id = %s AND deleted_at IS NOT NULL",
                            (s.account,))[0][0]
            assert deleted == 0, (s.way, deleted)


def sizes(size):
    def hook(s, tag, rest):
        what, items = rest.split(" ", 1)
        body = re.search(r"BODY\.PEEK(\[.*?\])", items)
        for seq, uid in s.chosen(what, True):
            raw = s.folder.messages[uid][0]
            text = f"* {seq} FETCH (UID {uid} FLAGS () RFC822.SIZE {size}"
            if "INTERNALDATE" in items:
                text += ' INTERNALDATE "01-Mar-2026 10:00:00 +0000"'
            if body:
                part = raw if body.group(1) == "[]" else \
                    raw[:raw.index(b"\r\n\r\n") + 4]
                s.say(f"{text} BODY{body.group(1)} {{{len(part)}}}\r\n"
                      .encode() + part + b")\r\n")
            else:
                s.line(text + ")")
        s.line(f"{tag} OK done")
        return True
    return hook


@pytest.mark.parametrize("size", ["0", "18446744073709551615", "4294967296",
                                  "1"])
def test_sizes_that_lie_cost_no_bytes(herd, size):
    h = herd()
    with Odd(folders(INBOX=4), {"UID FETCH": sizes(size)}) as s:
        h.start_both()
        account = h.add_account(s, "sizes")
        h.wait_live(account, 30)
        wait_for(lambda: rows(h, account) == {1, 2, 3, 4}, 30, "all")
        wait_for(lambda: not h.difference(account, s, ""), 30,
                 "with their bytes")


# --- B3, B4: which message is which --------------------------------------------------

def test_messages_that_change_their_uids_in_a_hot_folder(herd):
    """Two of them swap their UIDs, a third becomes another one."""
    h = herd(poll_warm=2)
    mail = [message(f"Mail {n}", message_id=f"m{n}@x") for n in range(5)]
    with Crooked({"INBOX": mail}) as s:
        h.start_both()
        user = h.add_user("ann@users.example.org")
        account = h.add_account(s, "swap", user)
        h.wait_live(account)
        h.wait_owned(account)
        h.ctl("user", "active", user)
        wait_for(lambda: s.count("IDLE") > 0, 20, "IDLE")
        with s.changed:
            m = s.folders["INBOX"].messages
            m[2], m[4] = m[4], m[2]
            m[3] = [message("Mail 9", message_id="m9@x"), set()]
            s.changed.notify_all()
        # When all is compared again, which happens once a day.
        h.sql("UPDATE mailherd.mailbox SET verified_at = now() - "
              "interval '2 days' WHERE account_id = %s", (account,))
        s.deliver(message("News"))
        h.ctl("account", "refresh", account)
        wait_for(lambda: not h.difference(account, s, ""), 40, "as it is")


def test_sixty_messages_moved_while_one_looks(herd):
    """Seen to come before they are seen to go, and back again."""
    h = herd(poll_warm=2)
    with Crooked(folders(INBOX=60, Archive=1, Work=1)) as s:
        h.start_both()
        account = h.add_account(s, "mover")
        h.wait_live(account)
        before = ids(h, account)
        for source, target in (("INBOX", "Archive"), ("Archive", "Work"),
                               ("Work", "INBOX")):
            with s.changed:
                moved = {u: m for u, m in
                         s.folders[source].messages.items()
                         if m[0].split(b"Subject: ")[1][:5] == b"INBOX"}
                for raw, _ in moved.values():
                    s.folders[target].add(raw)
            h.poll(account)
            wait_for(lambda: len(rows(h, account, target)) >= 60, 30,
                     "seen to come")
            with s.changed:
                for uid in moved:
                    del s.folders[source].messages[uid]
            h.poll(account)
            wait_for(lambda: not h.difference(account, s, ""), 30,
                     "seen to go")
            assert ids(h, account) == before, target


# --- A7, A9, B13: names, numbers and flags that nobody expects ------------------------

NAMES = [
    b'* LIST () "/" {70000}\r\n' + b"n" * 70000 + b"\r\n",
    b'* LIST () "/" {9}\r\nline\r\nend\r\n',
    b'* LIST () "/" "Work "\r\n', b'* LIST () "/" " Work"\r\n',
    b'* LIST () "/" "caf\xe9"\r\n', b'* LIST () "/" "caf\xc3\xa9"\r\n',
    b'* LIST () "/" "cafe\xcc\x81"\r\n', b'* LIST () "/" "&AOk-&-&"\r\n',
    b'* LIST () "/" "a/b//c/"\r\n', b'* LIST () NIL "../../etc"\r\n',
    b'* LIST () "\\\\" "back\\\\slash\\"quote"\r\n', b'* LIST () "/" ""\r\n',
    b'* LIST (\\Noselect \\NonExistent) "/" "gone"\r\n',
    b'* LIST () "/" "WORK"\r\n', b'* LIST () "/" "inbox/under"\r\n',
]


def lists_odd_names(s, tag, _):
    for line in NAMES:
        s.say(line)
    s.line('* LIST () "/" "INBOX"')
    s.line('* LIST () "/" "Work"')
    s.line(f"{tag} OK done")
    return True


def knows_no_odd_names(s, tag, rest):
    name = rest[1:rest.index('"', 1)] if rest.startswith('"') else rest
    if name in s.server.folders:
        return False
    s.no(tag, b"NO no such mailbox")
    return True


def test_names_that_nobody_expects(herd):
    h = herd(poll_warm=2)
    hooks = {"LIST": lists_odd_names, "STATUS": knows_no_odd_names,
             "SELECT": knows_no_odd_names}
    with Odd(folders(INBOX=3, Work=2), hooks) as s:
        h.start_both()
        account = h.add_account(s, "names")
        h.wait_live(account, 60)
        assert rows(h, account) == {1, 2, 3}
        assert rows(h, account, "Work") == {1, 2}
        uid = s.deliver(message("Later"), "Work")
        wait_for(lambda: uid in rows(h, account, "Work"), 30, "new mail")


def selects(text):
    def hook(s, tag, rest):
        name = rest[1:rest.index('"', 1)]
        if name != "Odd":
            return False
        with s.server.lock:
            s.name, s.folder = name, s.server.folders[name]
            s.seen = sorted(s.folder.messages)
        for line in text:
            s.line(line)
        s.line(f"{tag} OK [READ-WRITE] selected")
        return True
    return hook


NUMBERS = {
    "more than there are": ["* 4294967295 EXISTS",
                            "* OK [UIDVALIDITY 7] v", "* OK [UIDNEXT 3] n"],
    "no number": ["* -1 EXISTS", "* OK [UIDVALIDITY -7] v",
                  "* OK [UIDNEXT 99999999999999999999] n"],
    "nothing at all": [],
    "zero": ["* 0 EXISTS", "* OK [UIDVALIDITY 0] v", "* OK [UIDNEXT 0] n"],
}


def test_numbers_that_nobody_expects(herd):
    """Whatever is made of that folder: the others are whole, and soon."""
    h = herd(poll_warm=2, **IMPATIENT)
    with contextlib.ExitStack() as stack:
        servers = []
        for way, text in NUMBERS.items():
            s = stack.enter_context(Odd(folders(INBOX=2, Odd=2, Work=2),
                                        {"SELECT": selects(text)}))
            s.way = way
            servers.append(s)
        h.start_both()
        for n, s in enumerate(servers):
            s.account = h.add_account(s, f"numbers{n}")
        for s in servers:
            wait_for(lambda s=s: rows(h, s.account) == {1, 2} and
                     rows(h, s.account, "Work") == {1, 2}, 60, s.way)
            h.wait_live(s.account, 60)
            assert sum("FETCH" in c for c in s.commands) < 300, s.way


FLAGS = {
    "(\\Seen (\\Flagged) Work)": ["Work"],
    '(\\Seen "two words" Work)': ["Work"],
    "(\\Seen NIL Work)": ["Work"],
    "(\\Seen " + "k" * 5000 + " Work)": ["Work"],
    "(\\Seen \\seen \\SEEN Work work)": ["Work"],
}


def test_flags_that_nobody_expects(herd):
    h = herd()

    def fetches(flags):
        def hook(s, tag, rest):
            what, items = rest.split(" ", 1)
            for seq, uid in s.chosen(what, True):
                raw = s.folder.messages[uid][0]
                text = (f"* {seq} FETCH (UID {uid} FLAGS {flags} "
                        f"RFC822.SIZE {len(raw)}")
                if "INTERNALDATE" in items:
                    text += ' INTERNALDATE "01-Mar-2026 10:00:00 +0000"'
                if "BODY.PEEK[]" in items:
                    s.say(f"{text} BODY[] {{{len(raw)}}}\r\n".encode() +
                          raw + b")\r\n")
                else:
                    s.line(text + ")")
            s.line(f"{tag} OK done")
            return True
        return hook
    with contextlib.ExitStack() as stack:
        servers = []
        for flags, wanted in FLAGS.items():
            s = stack.enter_context(Odd(folders(INBOX=3),
                                        {"UID FETCH": fetches(flags),
                                         "FETCH": fetches(flags)}))
            s.flags, s.wanted = flags, wanted
            servers.append(s)
        h.start_both()
        for n, s in enumerate(servers):
            s.account = h.add_account(s, f"flags{n}")
        for s in servers:
            h.wait_live(s.account, 60)
            found = h.sql("SELECT seen, keywords FROM mailherd.messages WHERE "
                          "account_id = %s AND deleted_at IS NULL",
                          (s.account,))
            assert len(found) == 3, s.flags[:40]
            for seen, keywords in found:
                assert seen, s.flags[:40]
                assert set(s.wanted) <= set(keywords), (s.flags[:40],
                                                        keywords)


# --- B5: two who change an account --------------------------------------------------

def test_what_is_deleted_stays_deleted(herd):
    h = herd()
    with Crooked(folders(INBOX=2)) as s:
        h.start_both()
        user = h.add_user("ann@users.example.org")
        account = h.add_account(s, "ann", user)
        h.wait_live(account)
        h.ctl("account", "delete", "--yes", account)
        for words in (("account", "enable", account),
                      ("account", "disable", account),
                      ("account", "enable", account),
                      ("account", "refresh", account)):
            with contextlib.suppress(AssertionError):
                h.ctl(*words)
        left = h.sql("SELECT state FROM accounts WHERE id = %s", (account,))
        assert left in ([], [("deleted",)]), left
