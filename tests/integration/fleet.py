"""Many accounts on a mock server, and what the server saw of them.

For the acceptance tests and tests/soak.  Times are of the server's call log,
CLOCK_MONOTONIC, the clock of time.monotonic().
"""

import calendar
import json
import os
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor

from herd import state_differences
from servers import wait_for


class Fleet:
    """Accounts u0, u1, ... of one Mailherd at one Mock."""

    def __init__(self, herd, mock, redis, tls="none"):
        self.herd, self.mock, self.redis, self.tls = herd, mock, redis, tls
        self.accounts = {}  # login: account id
        self.users = []     # (user id, its logins)

    def add(self, users, each=1):
        """Users with `each` accounts; the ids of the users.  They become live
        when a jobs worker runs."""
        numbers = range(len(self.users), len(self.users) + users)
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(
                lambda n: self._add_user(n, each), numbers))
        for user, accounts in found:
            self.users.append((user, list(accounts)))
            self.accounts.update(accounts)
        return [user for user, _ in found]

    def _add_user(self, number, each):
        user = self.herd.add_user(f"user{number}@users.example.org")
        logins = [f"u{number * each + k}" for k in range(each)]
        return user, {login: self.herd.add_account(
            self.mock, login, user, tls=self.tls) for login in logins}

    def __len__(self):
        return len(self.accounts)

    @property
    def logins(self):
        return list(self.accounts)

    def wait_live(self, deadline=None):
        def all_live():
            (n,), = self.herd.sql("SELECT count(*) FROM accounts "
                                  "WHERE state = 'live'")
            assert n >= len(self), f"{n} of {len(self)}"
            return True
        wait_for(all_live, deadline, f"{len(self)} accounts live")

    def activate(self, *users):
        """As an application does on a login: key, then event."""
        client = self.redis.client()
        for user in users:
            client.set(f"sess:active:{user}", "1", ex=1800)
            client.publish("events:user.active", json.dumps(
                {"event": "user.active", "ts": int(time.time()),
                 "payload": {"user_id": user}}))

    def activate_all(self):
        self.activate(*(user for user, _ in self.users))

    def wait_idle(self, count=None, deadline=None):
        count = len(self) if count is None else count

        def idle():
            n = self.mock.status()["idle"]
            assert n == count, f"{n} idle"
            return True
        wait_for(idle, deadline, f"{count} in IDLE on the server")

    def owned_by(self, daemon):
        """Logins that a worker owns, by Redis."""
        client = self.redis.client()
        logins = self.logins
        owners = client.mget([f"sync:lease:{self.accounts[i]}"
                              for i in logins])
        return [login for login, owner in zip(logins, owners)
                if owner and f":{daemon.pid}:" in owner]

    def wait_owned(self, deadline=None):
        def all_owned():
            owned = len(self.redis.client().keys("sync:lease:*"))
            assert owned >= len(self), f"{owned} of {len(self)}"
            return True
        wait_for(all_owned, deadline, "all owned")

    def mark(self):
        """Where the call log is now."""
        return self.mock.call("log", limit=0, since=2**62)["next"]

    def first_idle(self, since, logins=None):
        """{login: seconds} of the first IDLE answered from there on."""
        found = {}
        for e in self.mock.calls(since, kinds=["idle"]):
            found.setdefault(e["account"], e["mono_us"] / 1e6)
        return {i: found[i] for i in logins or found if i in found}

    def wait_first_idle(self, since, logins, deadline=None):
        def all_there():
            found = self.first_idle(since, logins)
            assert len(found) == len(logins), \
                f"{len(found)} of {len(logins)} idle again"
            return found
        return wait_for(all_there, deadline, "IDLE again on the server",
                        every=0.1)

    def assert_same(self, logins=None, deadline=None):
        """The copies are what the server has."""
        ids = {self.accounts[i]: i for i in logins or self.logins}

        def same():
            for account, copy in self.herd.copies(list(ids)).items():
                words = state_differences(
                    self.mock.server_state(ids[account]), copy)
                assert not words, f"{ids[account]}: {words}"
                del ids[account]
            return True
        wait_for(same, deadline, "copy = server", every=0.2)

    def release(self, daemon, login):
        """False: it was not the owner."""
        return ask(daemon, "release", account=self.accounts[login])["ok"]

    def assert_nothing_double(self):
        assert not self.herd.sql(
            "SELECT mailbox_id, uid FROM messages WHERE uid IS NOT NULL "
            "AND deleted_at IS NULL GROUP BY 1, 2 HAVING count(*) > 1")
        # Mail of the mock has one place each unless somebody copies it.
        assert not self.herd.sql(
            "SELECT account_id, message_id FROM messages "
            "WHERE deleted_at IS NULL GROUP BY 1, 2 HAVING count(*) > 1")


def ask(daemon, cmd, **arguments):
    """One line of the control socket, without a process for it."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        s.connect(daemon.socket)
        s.sendall(json.dumps({"cmd": cmd, **arguments}).encode() + b"\n")
        return json.loads(s.makefile("rb").readline())


# --- who owned what when, by the workers' own logs ---------------------------

STAMP = re.compile(r"(\S+Z) .*?worker_id=(\S+) account_id=(\S+)")
BEGIN = "account taken over epoch="
FENCED = "fenced: the epoch"
END = ("account released", "lease lost", FENCED)


def log_time(stamp):
    """Seconds since the epoch of "2026-03-03T09:00:00.123Z"."""
    whole, millis = stamp.rstrip("Z").split(".")
    return calendar.timegm(time.strptime(
        whole, "%Y-%m-%dT%H:%M:%S")) + float("0." + millis)


def tenures(daemons, ended=None):
    """{account: [(begin, end, worker)]} in wall time.  `ended` says when a
    worker that could not say so itself ended: {worker's pid: time}."""
    found = {}
    for daemon in daemons:
        if daemon.role != "sync":
            continue
        is_open = {}
        for line in daemon.log_text().splitlines():
            match = STAMP.match(line)
            if not match:
                continue
            at, worker, account = match.groups()
            account = account.rstrip(":")
            if BEGIN in line:
                is_open[account] = (log_time(at), worker)
            elif any(word in line for word in END) and account in is_open:
                begin, worker = is_open.pop(account)
                found.setdefault(account, []).append(
                    (begin, log_time(at), worker))
        end = (ended or {}).get(daemon.pid, time.time())
        for account, (begin, worker) in is_open.items():
            found.setdefault(account, []).append((begin, end, worker))
    return found


def assert_one_owner(daemons, ended=None):
    """No account was ever two workers' at once; how many tenures."""
    n = 0
    for account, spans in tenures(daemons, ended).items():
        spans.sort()
        n += len(spans)
        for (_, end, first), (begin, _, second) in zip(spans, spans[1:]):
            assert begin >= end, \
                f"{account}: {second} began {end - begin:.3f} s before " \
                f"{first} ended"
    return n


# --- figures -----------------------------------------------------------------

def figure(what, limit, **values):
    words = " ".join(f"{k}={v}" for k, v in values.items())
    print(f"measured: {what}: {words} (limit {limit})")
    path = os.environ.get("MAILHERD_FIGURES")
    if path:
        with open(path, "a", encoding="utf-8") as f:
            f.write(json.dumps({"what": what, "limit": limit,
                                "load": os.getloadavg()[0],
                                **values}) + "\n")


def percentile(values, share):
    """Nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def spread(values):
    return {"n": len(values), "p50": round(percentile(values, 0.5), 2),
            "p99": round(percentile(values, 0.99), 2),
            "max": round(max(values), 2)}
