"""PostgreSQL that fails over: the primary dies, its standby takes its place.

Chaos as in test_chaos.py, but what is struck again and again is the primary:
its standby is cut off for a moment, it dies without another instruction, the
standby is promoted, and the dead one becomes the new standby.  Synchronous
replication loses nothing that was told to be committed.  Asynchronous
replication loses the last seconds: rows, cursors, take-overs, jobs, accounts.
The copy must become what the server has all the same.

    tests/chaos -f [-s SEED] [-t SECONDS]
"""

import contextlib
import os
import random
import shutil
import socket
import threading

import psycopg2
import pytest
import redis as redis_client

from fleet import BEGIN, FENCED, STAMP, Fleet, figure
from herd import deliver, message
from servers import Pair, Postgres, Timeout, wait_for
from test_changes import started
from test_chaos import SEED, Chaos, look_at_log, settle

SECONDS = float(os.environ.get("CHAOS_SECONDS", "5"))


class Failovers(Chaos):
    """The blows of Chaos, and a primary that dies every few seconds."""

    BLOWS = (["child_killed"] * 6 + ["child_stopped"] * 3 +
             ["worker_killed"] * 3 + ["worker_ended"] * 2 +
             ["master_stopped"] * 2 + ["family_stopped"] * 2 +
             ["redis_wiped"] + ["kicked"] * 2 + ["faulty"] * 4 +
             ["user_comes"] * 3 + ["refreshed"] * 4 + ["account_comes"])

    def __init__(self, seed, *servers):
        super().__init__(seed, *servers)
        self.times = random.Random(seed + 1)
        self.sockets, self.threads, self.came = [], [], {}
        self.failovers = self.comers = 0
        self.is_over = False

    def run(self, seconds, ttl):
        self.after(self.times.uniform(0, 1), "the standby is cut off",
                   self.cut)
        super().run(seconds, ttl)

    def cut(self):
        self.pg.cut()
        self.first_lost, = self.pg.sql(
            "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")[0]
        self.move_owners()
        # Who waits for a standby is not to wait for long.
        self.after(self.times.uniform(0.2, 1 if self.pg.is_synchronous
                                      else 3),
                   "kill -9 of the primary", self.kill)

    def move_owners(self):
        """Take-overs are what a lost commit makes dangerous."""
        for d in self.workers.values():
            if d.proc.poll() is not None:
                continue
            for login in self.times.sample(self.fleet.logins, 3):
                with contextlib.suppress(OSError):
                    s = socket.socket(socket.AF_UNIX)
                    self.sockets.append(s)  # who is stopped hears it later
                    s.setblocking(False)
                    s.connect(d.socket)
                    s.sendall(b'{"cmd":"release","account":"%s"}\n' %
                              self.fleet.accounts[login].encode())

    def kill(self):
        if not self.pg.is_synchronous:
            self.lose_something()
        self.pg.kill()
        self.after(self.times.uniform(0.1, 2), "the standby is promoted",
                   self.promote)

    def lose_something(self):
        """Unless nobody is at work, a write has ended since the cut."""
        for login in self.fleet.logins:
            self.mock.deliver(login)
        with contextlib.suppress(Timeout):
            wait_for(lambda: self.pg.sql(
                "SELECT 1 WHERE pg_snapshot_xmin(pg_current_snapshot())"
                "::text::bigint > %s", (self.first_lost,)), 5)

    def promote(self):
        lost = self.pg.promote()
        self.failovers += 1
        self.tell(f"commits that are lost: {lost}")
        self.after(self.times.uniform(0.1, 2), "it gets a standby", self.mend)

    def mend(self):
        self.pg.mend()
        if not self.is_over:
            self.after(self.times.uniform(0.5, 4), "the standby is cut off",
                       self.cut)

    def calm_down(self):
        self.is_over = True
        while self.later:
            self.run_due(everything=True)
        for thread in self.threads:
            thread.join(30)
        self.fleet.accounts.update(self.came)
        for s in self.sockets:
            s.close()
        super().calm_down()

    # -- users, who wait as long as a commit waits for a standby --

    def let(self, user):
        thread = threading.Thread(target=user, daemon=True)
        thread.start()
        self.threads.append(thread)

    def refreshed(self, pick, _):
        account = self.fleet.accounts[self.fleet.logins[
            pick % len(self.fleet)]]
        self.tell("a refresh is asked for")

        def ask_for_it():
            with contextlib.suppress(psycopg2.Error,
                                     redis_client.RedisError):
                (job,), = self.herd.sql("SELECT mailherd.refresh(%s)::text",
                                        (account,))
                self.redis.client().lpush("jobs:interactive", job)
        self.let(ask_for_it)

    def account_comes(self, *_):
        if self.comers == 8:
            return
        login = f"u{100 + self.comers}"
        self.comers += 1
        self.tell(f"account {login} comes")

        def come():
            with contextlib.suppress(AssertionError):
                self.came[login] = self.herd.add_account(
                    self.mock, login, self.fleet.users[0][0])
        self.let(come)

    def forget_lost_accounts(self):
        """What an operator has to do again."""
        rows = {account for account, in self.herd.sql(
            "SELECT id::text FROM accounts")}
        lost = [i for i in self.fleet.logins
                if self.fleet.accounts[i] not in rows]
        for login in lost:
            del self.fleet.accounts[login]
        return lost


def epochs(log):
    """{(account, epoch): the workers that got it}"""
    found = {}
    for line in log:
        match = STAMP.match(line)
        if match and BEGIN in line:
            epoch = int(line.split(BEGIN)[1].split()[0])
            found.setdefault((match.group(3), epoch), set()).add(
                match.group(2))
    return found


@pytest.fixture
def pair(test_dir, request):
    with Pair(test_dir, request.param == "synchronous") as pair:
        yield pair


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["asynchronous", "synchronous"],
                         indirect=True)
def test_chaos_of_failovers(pair, herd, mock, redis):
    """F-B12, issue 9: 0 double owners, 0 lost, copy = server."""
    print(f"again: tests/chaos -f -s {SEED} -t {SECONDS:g}")
    h = herd(pg=pair, bulk_concurrency=12, per_host_conn_cap=1000,
             risk_attempts=10, command_timeout=5, connect_timeout=5,
             backoff_max=4)
    m = mock(inbox=20, other=3, size=1500)
    f = Fleet(h, m, redis)
    c = Failovers(SEED, f, h, pair, redis, m)
    c.start_jobs()
    f.add(4, 3)
    f.wait_live()
    f.activate_all()
    for n in range(3):
        c.start_worker(str(n))
    f.wait_owned()
    try:
        c.run(SECONDS, ttl=10)
    finally:
        c.calm_down()
    lost_accounts = c.forget_lost_accounts()
    f.wait_live()
    settle(c, f, m)
    assert_jobs_end(h)
    garbage = assert_blobs_are_sound(h)
    faults = look_at_log(m, c.frozen)  # IDLE twice, for one
    assert not faults, "\n".join(faults[:10])
    log = [line for path in {d.log for d in h.daemons}
           for line in open(path, encoding="utf-8")]
    assert c.failovers > 0
    if not pair.is_synchronous:
        assert pair.lost > 0
    figure("failovers", "copy = server",
           is_synchronous=pair.is_synchronous, rounds=c.failovers,
           blows=len(c.done), commits_not_at_standby=pair.lost,
           lost_accounts=len(lost_accounts), garbage=garbage,
           idle_peak=1, fenced=sum(FENCED in text for text in log),
           epochs_given_twice=sum(len(w) > 1 for w in epochs(log).values()))


def assert_jobs_end(h):
    def ended():
        rows = h.sql("SELECT kind, state, attempts, last_error FROM jobs "
                     "WHERE state IN ('queued', 'running')")
        assert not rows, rows
        return True
    wait_for(ended, 60, "all jobs ended")
    assert not h.sql("SELECT kind, last_error FROM jobs "
                     "WHERE state = 'dead'")


def assert_blobs_are_sound(h):
    """What no row names is garbage, what a row names is there."""
    found = h.ctl1("blob", "verify")
    assert found["damaged"] == found["missing"] == 0, found
    return found["unreferenced"]


# --- other ways in which PostgreSQL is not what it was -------------------------

@pytest.fixture
def own_pg(test_dir):
    with Postgres(test_dir) as pg:
        yield pg


def test_no_connections_left(own_pg, herd, dovecot, login):
    """53300: others took them all."""
    h, account = started(herd, dovecot, login, 3, pg=own_pg)
    own_pg.sql("ALTER ROLE mailherd CONNECTION LIMIT 0")
    own_pg.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
               "WHERE usename = 'mailherd'")
    deliver(dovecot, login, message("Nobody could write this down"))
    wait_for(lambda: "too many connections for role" in h.log_text(),
             what="it is said")
    own_pg.sql("ALTER ROLE mailherd CONNECTION LIMIT -1")
    h.assert_same(account, dovecot, login, 30)
    assert h.account(account)["state"] == "live"


def test_disk_full(own_pg, herd, dovecot, login):
    """53100: nothing can be written, and then it can."""
    h, account = started(herd, dovecot, login, 3, pg=own_pg)
    own_pg.sql("""
        CREATE FUNCTION mailherd.full() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device'
        USING ERRCODE = '53100'; END $$;
        CREATE TRIGGER full_disk BEFORE INSERT ON mailherd.message
        FOR EACH STATEMENT EXECUTE FUNCTION mailherd.full()""",
               dbname=h.dbname)
    deliver(dovecot, login, message("No room for this"))
    wait_for(lambda: "No space left on device (53100)" in
             h.account(account)["last_error"], what="it is said")
    own_pg.sql("DROP TRIGGER full_disk ON mailherd.message", dbname=h.dbname)
    h.assert_same(account, dovecot, login, 30)
    found = h.account(account)
    assert found["state"] == "live"
    assert not h.sql("SELECT FROM quarantine")


def test_restored_from_yesterday(own_pg, test_dir, herd, dovecot, logins):
    """A backup knows nothing of what came after it: mail is fetched again,
    accounts and what works for them are gone."""
    old, new = next(logins), next(logins)
    h, account = started(herd, dovecot, old, 3, pg=own_pg)
    yesterday = Postgres(test_dir, name="yesterday")
    yesterday.copy(own_pg)
    deliver(dovecot, old, message("After the backup"))
    h.assert_same(account, dovecot, old)
    lost = h.add_account(dovecot, new)
    h.wait_live(lost)
    h.wait_owned(lost)
    own_pg.stop()
    shutil.rmtree(own_pg.data)
    os.rename(yesterday.data, own_pg.data)
    own_pg.start()
    h.assert_same(account, dovecot, old, 30)
    client = h.redis.client()
    wait_for(lambda: not client.exists(f"sync:lease:{lost}"), 30,
             "nobody works for an account that is not there")
    assert h.ctl1("blob", "verify")["missing"] == 0
