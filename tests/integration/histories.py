"""Random histories: what a second client does, and whether the copy follows.

A history is a few turns.  In a turn a second client does one to six things to
the folders of an account, then a pass is ordered, which is waited for or not.
At the end the copy must become what the server has, and a message that was only
moved must be the row it was.  The next history of the account begins where
that one ended, so that they start from all kinds of states.

What is done follows from the account's seed and the number of the history
alone; only what a pass sees that nobody waits for does not.  A failure names
both, what was done, and the command that does it again.
"""

import contextlib
import hashlib
import os
import random
import signal
import smtplib
import time
from concurrent.futures import ThreadPoolExecutor

from fleet import ask
from herd import (Client, Refusal, deliver, message, server_state,
                  state_differences, uid_set)
from servers import Timeout, wait_for, within

SYSTEM_FLAGS = ["\\Seen", "\\Flagged", "\\Answered", "\\Draft"]
KEYWORDS = ["$Forwarded", "$Junk", "Work", "x.y-z", "Later"]
MANY_FOLDERS, MANY_MESSAGES = 6, 40


class Account:
    """A person with two mail programs and too little sleep."""

    ACTIONS = {
        "deliver": 5, "append": 3, "append_again": 1, "flag": 5, "keyword": 4,
        "mark_deleted": 1, "expunge": 3, "move": 6, "move_all": 1,
        "move_in_two_steps": 1, "copy": 2, "create": 2, "rename": 2,
        "swap_names": 1, "delete": 1, "replace": 1, "uidvalidity": 1,
    }

    def __init__(self, seed, imap, login):
        self.seed, self.imap, self.login = seed, imap, login
        self.number = 0
        self.counter = 0
        self.random = random.Random(seed)
        self.last = None    # the bytes of the last message
        self.done = []      # in this history
        self.copied = set()  # digests of what was copied in it
        self.id = None      # mailherd's
        self.rows = {}      # {digest: row id} of what is there once
        with Client(imap, login) as client:
            for _ in range(self.random.randrange(3, 9)):
                with contextlib.suppress(Refusal):
                    client.append("INBOX", self.raw())

    def begin(self):
        self.number += 1
        self.random = random.Random(f"{self.seed}.{self.number}")
        self.done, self.copied = [], set()

    def turn(self):
        with Client(self.imap, self.login) as client:
            for _ in range(self.random.randrange(1, 7)):
                self.step(client)

    def step(self, client):
        r = self.random
        client.leave()
        paths = sorted(client.folders())
        path = r.choice(paths + ["INBOX"] * 3)
        action = r.choices(list(self.ACTIONS), self.ACTIONS.values())[0]
        try:
            getattr(self, action)(client, paths, path)
        # A folder with folders below it, say, or a message that is none.
        except (Refusal, smtplib.SMTPException) as e:
            self.tell(str(e))

    def tell(self, text):
        self.done.append(text)

    def raw(self):
        self.counter += 1
        name = self.counter
        if self.random.random() < 0.05:  # some programs use an id again
            name = self.random.randrange(1, self.counter + 1)
        name = f"h{self.seed}.{name}@example.org"
        headers = []
        if self.counter > 1 and self.random.random() < 0.4:
            other = self.random.randrange(1, self.counter)
            headers = [f"References: <h{self.seed}.{other}@example.org>"]
        text = "".join(self.random.choice("abcdefgh \n")
                       for _ in range(self.random.randrange(400)))
        self.last = message(f"History {self.counter}", text, name, headers)
        if self.random.random() < 0.1:
            self.last = self.odd(self.last)
        return self.last

    def odd(self, raw):
        """What is no proper message is mail all the same."""
        head, _, body = raw.partition(b"\r\n\r\n")
        octets = bytes(self.random.randrange(128, 256) for _ in range(50))
        return self.random.choice([
            head + b"\r\n\r\n" + body.rstrip(), head + b"\r\n\r\n",
            head + b"\r\n", b"\r\n" + body, body or b"x",
            head + b"\r\n\r\n" + octets + body,
            b"X-Octets: " + octets + b"\r\n" + raw,
            head + b"\r\n\r\n" + b"long " * 5000, raw + body * 500])

    def some(self, client, path, most=4):
        client.select(path)
        uids = client.uids()
        if len(uids) > MANY_MESSAGES:
            most = len(uids)
        count = min(len(uids), self.random.randrange(1, most + 1))
        return sorted(self.random.sample(uids, count))

    def own(self, paths):
        return [p for p in paths if "Own" in p]

    # -- actions --

    def deliver(self, *_):
        self.tell(f"deliver {self.counter + 1}")
        deliver(self.imap, self.login, self.raw())

    def append(self, client, _, path):
        flags = self.random.sample(SYSTEM_FLAGS + KEYWORDS,
                                   self.random.randrange(3))
        self.tell(f"append {self.counter + 1} to {path} {flags}")
        client.append(path, self.raw(), flags)

    def append_again(self, client, _, path):
        if self.last:
            self.tell(f"append the last message again to {path}")
            self.copied.add(hashlib.sha256(self.last).hexdigest())
            client.append(path, self.last)

    def flag(self, client, _, path):
        self.store(client, path, ["+FLAGS", "-FLAGS"], SYSTEM_FLAGS)

    def keyword(self, client, _, path):
        self.store(client, path, ["+FLAGS", "-FLAGS", "FLAGS"], KEYWORDS)

    def mark_deleted(self, client, _, path):
        self.store(client, path, ["+FLAGS", "-FLAGS"], ["\\Deleted"])

    def store(self, client, path, changes, flags):
        uids = self.some(client, path)
        if uids:
            change, flag = self.random.choice(changes), \
                self.random.choice(flags)
            self.tell(f"{change} {flag} of {path}/{uids}")
            client.store(uids, change, [flag])

    def expunge(self, client, _, path):
        uids = self.some(client, path)
        if uids:
            self.tell(f"expunge {path}/{uids}")
            client.expunge(uids)

    def move(self, client, paths, path):
        uids = self.some(client, path)
        target = self.random.choice(paths + ["INBOX"] * 2)
        if uids and target != path:
            self.tell(f"move {path}/{uids} to {target}")
            client.move(uids, target)

    def move_all(self, client, paths, path):
        client.select(path)
        uids = client.uids()
        target = self.random.choice(paths)
        if uids and target != path:
            self.tell(f"move all of {path}/{uids} to {target}")
            client.move(uids, target)

    def move_in_two_steps(self, client, paths, path):
        """As programs do that do not know MOVE."""
        uids = self.some(client, path)
        target = self.random.choice(paths)
        if uids and target != path:
            self.tell(f"copy and expunge {path}/{uids} to {target}")
            client.copy(uids, target)
            client.expunge(uids)

    def copy(self, client, paths, path):
        uids = self.some(client, path)
        target = self.random.choice(paths)
        if uids:
            self.tell(f"copy {path}/{uids} to {target}")
            self.copied |= {digest for _, digest in
                            client.fetch(uid_set(uids)).values()}
            client.copy(uids, target)

    def create(self, client, paths, _):
        if len(self.own(paths)) >= MANY_FOLDERS:
            return
        self.counter += 1
        path = f"Own {self.counter}" + self.random.choice(["", "/Ü", "&x"])
        self.tell(f"create {path}")
        client.create(path)

    def rename(self, client, paths, _):
        if self.own(paths):
            self.counter += 1
            path = self.random.choice(self.own(paths))
            self.tell(f"rename {path} to Own renamed {self.counter}")
            client.rename(path, f"Own renamed {self.counter}")

    def swap_names(self, client, paths, _):
        if len(self.own(paths)) >= 2:
            one, other = self.random.sample(self.own(paths), 2)
            self.tell(f"swap the names of {one} and {other}")
            for old, new in ((one, "Own meanwhile"), (other, one),
                             ("Own meanwhile", other)):
                client.rename(old, new)

    def delete(self, client, paths, _):
        if self.own(paths):
            path = self.random.choice(self.own(paths))
            self.tell(f"delete {path}")
            client.delete(path)

    def replace(self, client, paths, _):
        """Another folder of the same name, with the same UIDs."""
        if self.own(paths):
            path = self.random.choice(self.own(paths))
            client.select(path)
            count = len(client.uids())
            self.tell(f"replace {path} by another with {count} messages")
            client.leave()  # or the server hangs up
            client.delete(path)
            client.create(path)
            for _ in range(count):
                with contextlib.suppress(Refusal):
                    client.append(path, self.raw())

    def uidvalidity(self, client, _, path):
        client.select(path, readonly=True)  # Courier counts them then
        client.leave()
        number = 1_800_000_000 + 1000 * self.counter + self.number
        self.tell(f"UIDVALIDITY {number} for {path}")
        self.imap.new_uidvalidity(self.login, path, number)


# What must hold of all rows, whatever happened.
INVARIANTS = {
    "a UID twice": """
        SELECT mailbox_id, uid FROM messages WHERE deleted_at IS NULL
        GROUP BY 1, 2 HAVING count(*) > 1""",
    "messages of a folder miscounted": """
        SELECT b.path, b.messages, count(m.id) FROM mailboxes b
        LEFT JOIN messages m ON m.mailbox_id = b.id AND m.uid IS NOT NULL
            AND m.deleted_at IS NULL
        GROUP BY b.id, b.path, b.messages HAVING b.messages <> count(m.id)""",
    "messages of a thread miscounted": """
        SELECT t.id, t.messages, count(m.id) FROM threads t
        LEFT JOIN messages m ON m.thread_id = t.id AND m.deleted_at IS NULL
        GROUP BY t.id, t.messages HAVING t.messages <> count(m.id)""",
}


class Run:
    """Accounts side by side, a history of each at a time; every second
    account idles at INBOX, the others are polled."""

    SETTLE = 30   # seconds until copy = server
    AGAIN = 1.0   # seconds until the next pass is ordered
    KILLS = 0.2   # children killed a turn

    def __init__(self, herd, imap, kind, logins, seeds):
        self.herd, self.imap, self.kind = herd, imap, kind
        self.random = random.Random(seeds[0])
        self.count = self.kills = self.lost_ids = 0
        self.failures = []
        self.pool = ThreadPoolExecutor(8)
        self.daemons = herd.start_both()
        self.accounts = list(self.pool.map(
            lambda seed, login: Account(seed, imap, login),
            seeds, [next(logins) for _ in seeds]))
        user = herd.add_user("histories@users.example.org")
        for a in self.accounts:
            a.id = herd.add_account(imap, a.login, user)
        for a in self.accounts:
            herd.wait_live(a.id)
        for a in self.accounts:
            herd.wait_owned(a.id)
            self.ask("tier", a, tier="hot" if a.seed % 2 else "cold")
        self.settle()

    def ask(self, command, account, **more):
        answer = ask(self.daemons[0], command, account=account.id, **more)
        assert answer["ok"], f"{command}: {answer}"
        return answer

    def one_each(self):
        """One history of each account."""
        for a in self.accounts:
            a.begin()
        turns = {a: a.random.randrange(1, 4) for a in self.accounts}
        for n in range(max(turns.values(), default=0)):
            list(self.pool.map(self.turn, (
                a for a, count in turns.items() if n < count)))
            if self.random.random() < self.KILLS:
                self.kill_a_child()
        self.count += len(self.accounts)
        self.settle()

    def turn(self, account):
        """Every second pass is waited for, the next one is overtaken by what
        happens then."""
        account.turn()
        before = self.ask("explain", account)["passes"]
        self.ask("poll", account)
        if account.random.random() < 0.5:
            with contextlib.suppress(Timeout):  # a child was killed, say
                wait_for(lambda: self.ask("explain", account)["passes"]
                         > before, 3)

    def kill_a_child(self):
        pids = [pid for d in self.daemons for pid in d.pids()]
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.random.choice(pids), signal.SIGKILL)
            self.kills += 1

    def settle(self):
        """Waits until copy = server, account by account."""
        servers = dict(zip(self.accounts, self.pool.map(
            lambda a: server_state(self.imap, a.login), self.accounts)))
        begun, ordered = time.monotonic(), 0
        while servers:
            now = time.monotonic()
            copies = self.herd.copies([a.id for a in servers])
            words = {a: state_differences(servers[a], copies[a.id])
                     for a in servers}
            servers = {a: s for a, s in servers.items() if words[a]}
            if servers and now - begun > within(self.SETTLE):
                self.differ({a: words[a] for a in servers})
                break
            if servers and now - ordered > self.AGAIN:
                ordered = now
                for a in servers:
                    self.ask("poll", a)
            time.sleep(0.05)  # between two looks; the loop ends by what is seen
        self.compare_ids()

    def compare_ids(self):
        """A message that was there once before and is there once now is the
        row it was."""
        rows = {a.id: {} for a in self.accounts}
        for account, digest, row in self.herd.sql(
                "SELECT account_id::text, encode(blob, 'hex'), min(id) "
                "FROM messages WHERE deleted_at IS NULL "
                "GROUP BY 1, 2 HAVING count(*) = 1"):
            if account in rows:
                rows[account][digest] = row
        words = {}
        for a in self.accounts:
            changed = [(d[:8], row, rows[a.id][d])
                       for d, row in a.rows.items()
                       if rows[a.id].get(d, row) != row and
                       d not in a.copied]
            if changed:
                words[a] = f"other ids (digest, before, now): {changed}"
            a.rows = rows[a.id]
        self.differ(words)
        self.lost_ids += len(words)

    def differ(self, words):
        """What goes wrong with an account is told at the end; the others go
        on without it."""
        for a, text in words.items():
            self.failures.append(
                f"{self.kind}, seed {a.seed}, history {a.number} of "
                f"{a.login}: {text}\n    " + "\n    ".join(a.done)
                + f"\n  again: HISTORIES=1x{a.number}@{a.seed} pytest "
                f"test_histories.py -k {self.kind}\n")
            self.accounts.remove(a)

    def finish(self):
        self.pool.shutdown()
        assert not self.failures, \
            f"{len(self.failures)} of {self.count} histories\n" + \
            "\n".join(self.failures)
        for what, query in INVARIANTS.items():
            found = self.herd.sql(query)
            assert not found, f"{self.kind}: {what}: {found[:10]}"
        self.herd.run_ctl("blob", "verify")
