"""The life of an account (R-LIFE-1 to 6) and what its provider asks for
(R-CONN-3), counted by the mock server."""

import time

import pytest

from fleet import Fleet, ask
from servers import wait_for


@pytest.fixture
def world(herd, mock, redis):
    """A factory: accounts of one user each at one mock server, live."""
    def make(accounts=1, each=1, group=None, **settings):
        h = herd(bulk_concurrency=4, **settings)
        m = mock(**{"inbox": 4, "other": 1, "size": 1500, **(group or {})})
        f = Fleet(h, m, redis)
        f.sync, f.jobs = h.start("sync"), h.start("jobs")
        f.add(accounts, each)
        f.wait_live()
        f.wait_owned()
        return f
    return make


def tries(mock, login, since=1):
    """Times of all logins, good or refused."""
    return sorted(e["mono_us"] / 1e6 for e in mock.calls(
        since, account=login, kinds=["login", "refused"]))


def assert_never_three_in_two_minutes(times):
    for first, third in zip(times, times[2:]):
        assert third - first >= 119, times


def explain(f, login, daemon=None):
    return ask(daemon or f.sync, "explain", account=f.accounts[login])


def set_password(f, login, password):
    f.herd.ctl("account", "set", f.accounts[login], "--password-file", "-",
               stdin=password + "\n")


# --- states -------------------------------------------------------------------

def test_every_change_of_state_is_announced(herd, mock, redis, events):
    """R-LIFE-2: whoever makes it."""
    h, m = herd(auth_refusals=1, auth_pause=1), mock(inbox=1, other=0)
    f = Fleet(h, m, redis)
    h.start("sync"), h.start("jobs")
    f.add(1)
    account, = f.accounts.values()

    def wait(state):
        events.wait("account.state_changed", account_id=account, state=state)
        h.wait_state(account, state)
    for state in ("new", "bootstrapping", "live"):
        events.wait("account.state_changed", account_id=account, state=state)
    h.ctl("account", "disable", account)
    wait("disabled")
    h.ctl("account", "enable", account)
    wait("live")
    m.call("password", account="u0", password="changed")
    m.call("kick", match="u0")
    wait("error")  # by a child of the sync worker
    assert "refused" in h.account(account)["state_reason"]
    set_password(f, "u0", "changed")
    wait_for(lambda: len(events.of("account.state_changed",
                                   account_id=account, state="live")) >= 3,
             what="live for the third time")
    h.wait_live(account)
    h.ctl("account", "delete", "--yes", account)
    wait("deleted") if h.sql("SELECT 1 FROM accounts") else None
    events.wait("account.state_changed", account_id=account, state="deleted")
    wait_for(lambda: not h.sql("SELECT 1 FROM accounts"), 60, "rows are gone")
    wait_for(lambda: not redis.client().keys(f"sync:*{account}"),
             what="no key is left")


def test_lost_events_leave_no_zombie(world):
    """R-LIFE-3: the row alone says it; the owner hears nothing."""
    f = world(2, poll_warm=3600, poll_cold=3600, reconcile_interval=3)
    f.activate_all()
    f.wait_idle()
    account = f.accounts["u0"]
    f.herd.sql("SELECT account_set_state(%s, '{}', 'disabled', 'by SQL')",
               (account,))
    wait_for(lambda: f.mock.status("u0")["connections"] == 0, 30,
             "connections closed")
    wait_for(lambda: not f.redis.client().get(f"sync:lease:{account}"), 30,
             "lease released")
    since = f.mark()
    assert not f.redis.client().sismember("sync:live", account)
    # And back: found by reconcile, nobody is told either.
    f.herd.sql("SELECT account_set_state(%s, '{}', 'live', '')", (account,))
    f.wait_first_idle(since, ["u0"], 60)


def test_backfill_of_a_disabled_account_ends(herd, mock, redis):
    """R-LIFE-2: no provider call after 30 s, whatever is under way."""
    h = herd()
    m = mock(inbox=3000, other=0, size=20000)
    m.fault("slow", at="UID FETCH", bytes=100000)
    h.start("sync"), h.start("jobs")
    f = Fleet(h, m, redis)
    f.add(1)
    account = f.accounts["u0"]
    wait_for(lambda: m.status("u0")["bytes_out"] > 100000,
             what="a backfill under way")
    h.ctl("account", "disable", account)
    wait_for(lambda: m.status("u0")["connections"] == 0, 30, "it ends")
    since = f.mark()
    m.clear()
    wait_for(lambda: not [j for j in h.ctl("job", "list")
                          if j["account_id"] == account
                          and j["state"] in ("queued", "running")], 60,
             "its job is over")
    assert not m.calls(since, account="u0")
    assert h.account(account)["state"] == "disabled"
    h.ctl("account", "enable", account)
    h.wait_live(account, 120)


# --- refusals -----------------------------------------------------------------

@pytest.mark.slow
def test_refusals_by_all_children_are_counted_together(world):
    """R-LIFE-6: hot and pool children, a refresh job, an operator's poll and a
    new master together never make 3 logins in 120 s; new credentials are
    tried at once."""
    f = world(1, auth_pause=1, auth_refusals=9)
    h, m, account = f.herd, f.mock, f.accounts["u0"]
    f.activate_all()
    f.wait_idle()
    m.call("password", account="u0", password="changed")
    since = f.mark()
    m.call("kick", match="u0")
    told = wait_for(lambda: (e := explain(f, "u0"))["refusals"] >= 2 and e,
                    what="two refusals")
    assert told["wait_s"] > 60 and "refused" in " ".join(told["chain"])
    for _ in range(2):
        h.ctl("account", "refresh", account)
        ask(f.sync, "poll", account=account)
    f.sync.kill()
    f.sync = h.start("sync", "1")
    f.wait_owned(60)
    again = wait_for(lambda: (e := explain(f, "u0")).get("refusals") and e,
                     what="the next owner knows")
    assert again["wait_s"] > 30
    # What turns meanwhile would have tried.
    passes = explain(f, "u0")["next_poll_s"]
    assert passes > 30
    assert_never_three_in_two_minutes(tries(m, "u0", since))
    assert h.account(account)["state"] == "live"
    before = f.mark()
    set_password(f, "u0", "changed")
    f.wait_first_idle(before, ["u0"], 30)
    wait_for(lambda: not h.account(account)["last_error"], 30, "all is well")
    assert explain(f, "u0")["refusals"] == 0


@pytest.mark.parametrize("job_comes", ["at once", "after a refusal"])
def test_all_who_want_to_log_in_hear_of_refusals(world, job_comes):
    """R-LIFE-6: a hot child, a poll and a job of another worker have the same
    wrong password; whoever has to wait hears of it and does not try, and of
    those who would try again at the same moment one does."""
    f = world(1, auth_pause=6, auth_refusals=9)
    h, m, account = f.herd, f.mock, f.accounts["u0"]
    f.activate_all()
    f.wait_idle()
    m.call("password", account="u0", password="changed")
    m.fault("stall", account="u0", at="LOGIN", msecs=3000)
    since = f.mark()
    m.call("kick", match="u0")

    def stalled():
        return sum(f["struck"] for f in m.call("faults")["faults"])

    def refused(times):
        return lambda: len(m.calls(since, account="u0",
                                   kinds=["refused"])) >= times
    wait_for(lambda: stalled() >= 1, what="a login is under way")
    if job_comes != "at once":
        wait_for(refused(1), what="the first is refused")
    ask(f.sync, "poll", account=account)
    h.ctl("account", "refresh", account)
    wait_for(refused(2), 60, "the second is refused")
    wait_for(lambda: "refresh_account_job" in f.jobs.log_text() and
             explain(f, "u0")["wait_s"] > 60, 60, "all have had their turn")
    assert_never_three_in_two_minutes(tries(m, "u0", since))
    assert stalled() == 2
    m.clear()
    before = f.mark()
    set_password(f, "u0", "changed")
    f.wait_first_idle(before, ["u0"], 30)
    wait_for(lambda: not h.account(account)["last_error"], 60, "all is well")


def test_pause_in_the_log_is_the_true_one(world):
    """R-LIFE-6"""
    f = world(1, auth_pause=1, auth_refusals=9)
    f.activate_all()
    f.wait_idle()
    f.mock.call("password", account="u0", password="changed")
    f.mock.call("kick", match="u0")
    wait_for(lambda: explain(f, "u0")["refusals"] >= 2, what="two refusals")
    told = explain(f, "u0")["wait_s"]
    said = [int(line.split("next in ")[1].split(" s")[0])
            for line in f.sync.log_text().splitlines() if "next in" in line]
    assert abs(said[-1] - told) <= 20 and said[-1] > 60, (said, told)


@pytest.mark.parametrize("words, kind", [
    ("NO [ALERT] Too many simultaneous connections. (Failure)", "throttled"),
    ("NO [UNAVAILABLE] Temporary authentication failure", "throttled"),
    ("NO [INUSE] mailbox in use", "throttled"),
    ("NO [OVERQUOTA] mailbox is full and locked", "server"),
    ("NO [SERVERBUG] internal error", "throttled"),
], ids=["connections", "unavailable", "inuse", "overquota", "serverbug"])
def test_no_other_refusal_is_one_of_credentials(world, words, kind):
    """R-LIFE-6, L125, L219: many of them, and the account stays live."""
    f = world(1, auth_pause=1, auth_refusals=1, backoff_max=2)
    f.mock.fault("answer", at="LOGIN", text=words)
    f.mock.call("kick", match="u0")
    told = wait_for(lambda: (e := explain(f, "u0"))["failures"] and e,
                    what="a failure")
    assert told["last_error_kind"] == kind
    found = f.herd.account(f.accounts["u0"])
    assert found["state"] == "live" and told["refusals"] == 0
    assert words.split("] ")[1][:10] in found["last_error"]


# --- what a provider asks for ---------------------------------------------------

def test_too_many_connections_narrows_the_account(world):
    """R-CONN-3, L125: no IDLE beside polls for a while, then again."""
    f = world(1, backoff_max=2)
    f.activate_all()
    f.wait_idle()
    m = f.mock
    fault = m.fault("answer", at="LOGIN", times=1,
                    text="NO [LIMIT] too many connections, try again in 1 s")
    told = wait_for(lambda: (e := explain(f, "u0"))["no_idle"] ==
                    "account_limit" and e, what="no IDLE")
    assert told["narrow_s"] > 0
    # Until the hot child has ended, the chain tells of it.
    wait_for(lambda: any("polled often instead, because" in line
                         for line in explain(f, "u0")["chain"]),
             what="the chain says why")
    status = ask(f.sync, "status")
    assert status["polled_instead"] == 1
    assert status["polled_instead_why"] == {"account_limit": 1}
    wait_for(lambda: m.idle("u0") == 0, what="the hot child has ended")
    m.clear(fault)
    f.wait_idle(deadline=60)
    assert ask(f.sync, "status")["polled_instead"] == 0


def test_suggested_wait_is_obeyed(world):
    """R-CONN-3, L128: neither polls nor jobs nor an operator come earlier."""
    f = world(1)
    m, account = f.mock, f.accounts["u0"]
    m.fault("answer", at="LIST", times=1,
            text="BAD Request is throttled. Suggested Backoff Time: "
                 "8000 milliseconds")
    told = wait_for(lambda: (e := explain(f, "u0"))["last_error_kind"] ==
                    "throttled" and e, what="throttled")
    assert told["wait_s"] >= 4
    # The mock answers a little before mailherd reads it.
    struck = [e for e in m.calls(account="u0", kinds=["fault"])][-1]
    f.herd.ctl("account", "refresh", account)
    said = ask(f.sync, "poll", account=account)
    assert "throttled" in said["text"]
    at = wait_for(lambda: [t for t in tries(m, "u0")
                           if t > struck["mono_us"] / 1e6], 30, "tried again")
    assert at[0] - struck["mono_us"] / 1e6 >= 8
    wait_for(lambda: not explain(f, "u0")["last_error"], 30, "good again")


def test_login_that_works_and_sessions_that_do_not(world):
    """L217: a login is no success; the pauses grow all the same."""
    f = world(1, backoff_first=1, backoff_max=4)
    m = f.mock
    for command in ("ID", "ENABLE", "NAMESPACE", "LIST", "STATUS", "SELECT",
                    "EXAMINE"):
        m.fault("answer", at=command, text="BYE not today")
    since = f.mark()
    wait_for(lambda: explain(f, "u0")["failures"] >= 4, 60, "four failures")
    times = tries(m, "u0", since)
    gaps = [b - a for a, b in zip(times, times[1:])]
    assert max(gaps[2:]) > 2, gaps


def test_list_that_ends_every_connection(world):
    """L217 of one command: mail comes all the same, each time later."""
    f = world(1, backoff_first=1, backoff_max=4)
    m, h, account = f.mock, f.herd, f.accounts["u0"]
    m.fault("answer", at="LIST", text="BYE not today")
    since = f.mark()
    wait_for(lambda: explain(f, "u0")["failures"] >= 4, 60, "four failures")
    times = tries(m, "u0", since)
    gaps = [b - a for a, b in zip(times, times[1:])]
    assert max(gaps[2:]) > 2, gaps
    assert "not today" in explain(f, "u0")["last_error"]

    def stored():
        return h.sql("SELECT count(*) FROM mailherd.messages WHERE "
                     "account_id = %s", (account,))[0][0]
    before = stored()
    m.deliver("u0")
    wait_for(lambda: stored() > before, 30, "mail comes")


def test_several_throttled_accounts_spare_their_host(world):
    """R-CONN-3: one account's trouble is its own, that of several is the
    host's: fewer connections for all, and slower."""
    f = world(2, 3, per_host_conn_cap=20, backoff_max=30)
    f.activate_all()
    f.wait_idle()
    for login in ("u0", "u1", "u2"):
        f.mock.fault("answer", at="LOGIN", account=login, times=1,
                     text="NO [LIMIT] too many connections, try in 1 s")
    told = wait_for(lambda: (e := explain(f, "u5"))["host_spared_s"] > 0 and
                    e, 60, "the host is spared")
    assert told["host_cap"] < 20
    assert any("is spared" in line for line in told["chain"])


# --- who tells it ---------------------------------------------------------------

def test_explain_without_an_owner_here(world):
    """R-OPS-3: of another worker, and of nobody; the same keys."""
    f = world(1)
    h, account = f.herd, f.accounts["u0"]
    mine = h.ctl1("-s", f.sync.socket, "explain", account)
    assert mine["source"] == "owner" and mine["state"] == "live"
    elsewhere = f"{h.dir}/nobody.sock"
    told = h.ctl1("-s", elsewhere, "explain", account)
    assert told["source"] == "tables"
    common = set(
        "source account_id email state state_reason state_since owner "
        "lease_left_s epoch tier tier_rule pinned session_left_s last_mail_at "
        "connections host last_pass_at refusals last_error wait_s next "
        "chain".split())
    assert common <= set(mine) and common <= set(told)
    assert told["owner"] == mine["owner"] and told["epoch"] == mine["epoch"]
    for key in ("state_since", "last_pass_at"):  # as all times of -j
        for one in (mine, told):
            assert one[key] is None or one[key].endswith("Z"), key
    assert told["lease_left_s"] > 0
    h.ctl("-s", elsewhere, "tier", account, "cold")
    wait_for(lambda: explain(f, "u0")["tier"] == "cold", what="pinned")
    f.sync.stop()
    told = h.ctl1("-s", elsewhere, "explain", account)
    assert told["owner"] is None and told["pinned"] and told["listed"]
    assert "no sync worker is alive" in told["next"]
    for line in told["chain"]:
        assert line == line.strip() and "\n" not in line
    h.run_ctl("-s", elsewhere, "explain", account)


def test_drain_hands_everything_over(world):
    """R-OPS-3: the drained worker goes on running and takes nothing."""
    f = world(4)
    other = f.herd.start("sync", "1")
    f.sync.ctl("drain")
    wait_for(lambda: ask(other, "status")["owned"] == 4, 30, "handed over")
    begun = time.monotonic()
    status = ask(f.sync, "status")
    assert status["state"] == "draining" and status["owned"] == 0
    # Two rebalances and more: it stays so.
    wait_for(lambda: time.monotonic() - begun > 12, what="a while")
    assert ask(other, "status")["owned"] == 4
    assert other.log_text().count("rebalance: releasing") == 0
