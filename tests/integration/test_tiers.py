"""Tiers (R-TIER-1 to 6) and IDLE, counted by the mock server."""

import os
import signal

import pytest

from fleet import Fleet, ask
from servers import wait_for


@pytest.fixture
def world(herd, mock, redis):
    """A factory: live accounts that nothing makes hot but what the test does:
    old mail, no session."""
    def make(users=1, each=1, workers=1, **settings):
        h = herd(bulk_concurrency=4, **{"tier_hot_activity_h": 0,
                                        "tier_cold_after_d": 0, **settings})
        m = mock(inbox=4, other=1, size=1500)
        f = Fleet(h, m, redis)
        jobs = h.start("jobs")
        f.add(users, each)
        f.wait_live(60 + 5 * users * each)
        jobs.stop()
        f.workers = [h.start("sync", str(n)) for n in range(workers)]
        f.sync = f.workers[0]
        f.wait_owned()
        return f
    return make


def status(f, daemon=None):
    return ask(daemon or f.sync, "status")


def explain(f, login, daemon=None):
    return ask(daemon or f.sync, "explain", account=f.accounts[login])


def in_tier(f, **tiers):
    def there():
        found = status(f)
        assert all(found[k] == v for k, v in tiers.items()), found
        return True
    return there


def sessions_end(f, *users):
    for user in users:
        f.redis.client().delete(f"sess:active:{user}")


def test_session_makes_all_accounts_of_a_user_hot(world):
    """R-TIER-3, R-TIER-4: and only those; after it they are as before."""
    f = world(2, 5)
    (ann, anns), (bob, _) = f.users
    wait_for(in_tier(f, cold=10), what="all cold")
    f.activate(ann)
    f.wait_idle(5, 30)
    assert {c["account"] for c in f.mock.connections() if c["idle"]} == \
        set(anns)
    assert explain(f, anns[0])["tier_rule"] == "the user has a session"
    assert f.redis.client().get(
        f"sync:tier:{f.accounts[anns[0]]}") in ("hot", b"hot")
    sessions_end(f, ann)
    f.wait_idle(0, 30)
    wait_for(in_tier(f, cold=10), what="all cold again")


def test_key_without_event_is_found(world):
    """R-TIER-3: the event is a hint; the key is looked at each evaluation."""
    f = world()
    wait_for(in_tier(f, cold=1), what="cold")
    f.redis.client().set(f"sess:active:{f.users[0][0]}", "1", ex=600)
    f.wait_idle(1, 30)


def test_new_mail_found_by_a_poll_makes_hot(world):
    """R-TIER-4: in any tier, in any folder that is polled."""
    f = world(2, tier_hot_activity_h=24)
    wait_for(in_tier(f, hot=0), what="none is hot: the mail is old")
    f.mock.deliver("u0")
    f.wait_idle(1, 30)
    told = explain(f, "u0")
    assert told["tier"] == "hot" and "mail within" in told["tier_rule"]
    assert explain(f, "u1")["tier"] != "hot"
    f.assert_same()


def test_pin_holds_and_is_inherited(world):
    """R-TIER-1: the next owner finds tier and pin."""
    f = world()
    account = f.accounts["u0"]
    f.sync.ctl("tier", account, "hot")
    f.wait_idle(1, 30)
    assert explain(f, "u0")["tier_rule"] == "pinned by an operator"
    f.sync.stop()
    f.workers.append(f.herd.start("sync", "1"))
    f.wait_idle(1, 30)
    f.workers[-1].ctl("tier", account, "auto")
    f.wait_idle(0, 30)


def test_hot_budget_never_degrades_a_session(world):
    """R-TIER-5"""
    f = world(4, hot_budget_per_worker=2, tier_hot_activity_h=24)
    f.mock.deliver("u0"), f.mock.deliver("u1"), f.mock.deliver("u2")
    wait_for(in_tier(f, hot=2), what="the budget")
    f.activate(*(user for user, _ in f.users[:3]))
    f.wait_idle(3, 30)
    f.mock.deliver("u3")
    f.assert_same(["u3"])
    told = wait_for(lambda: (e := explain(f, "u3"))["tier_rule"].startswith(
        "hot, but") and e, what="u3 has to wait")
    assert told["tier"] == "warm" and f.mock.idle("u3") == 0


def test_last_fifth_of_a_host_is_for_polls(world):
    """R-CONN-2: the rest is polled often instead and says why; a session
    comes before mail."""
    f = world(6, per_host_conn_cap=5, tier_hot_activity_h=24)
    for n in range(5):
        f.mock.deliver(f"u{n}")
    f.wait_idle(4, 60)
    found = wait_for(lambda: (s := status(f))["polled_instead"] == 1 and s,
                     what="one is polled instead")
    assert found["polled_instead_why"] == {"host_full": 1}
    left, = {f"u{n}" for n in range(5)} - {
        c["account"] for c in f.mock.connections() if c["idle"]}
    assert "polled often instead, because" in " ".join(
        explain(f, left)["chain"])
    f.mock.deliver(left)
    f.assert_same([left])
    user, _ = f.users[5]
    f.activate(user)
    wait_for(lambda: f.mock.idle("u5") == 1, 30, "the session has a place")
    f.wait_idle(4, 30)
    assert max(c["idle_peak"] for c in f.mock.accounts().values()) == 1
    # No wonder that nobody idles: people are told, too.
    assert b"host_full 2" in f.herd.run_ctl(
        "-s", f.sync.socket, "status").stdout


def test_many_hot_at_once_are_no_storm(world):
    """R-TIER-6: connections to a host are begun at host_connect_rate."""
    f = world(2, 6, host_connect_rate=4, poll_warm=600, poll_cold=900)
    wait_for(in_tier(f, cold=12), what="all cold")
    wait_for(lambda: all(explain(f, u)["passes"] for u in f.logins), 60,
             "the first passes")
    since = f.mark()
    f.activate_all()
    f.wait_idle(12, 60)
    at = sorted(e["mono_us"] / 1e6
                for e in f.mock.calls(since, kinds=["open"]))
    assert len(at) >= 12
    # Four at once after a rest, then four a second: twelve take two seconds,
    # less the time that the first four need to be seen.
    assert at[-1] - at[0] > 1.9, at
    since = f.mark()
    sessions_end(f, *(user for user, _ in f.users))
    f.wait_idle(0, 60)
    at = sorted(e["mono_us"] / 1e6
                for e in f.mock.calls(since, kinds=["close"]))
    assert at[-1] - at[0] > 1.9, at


# --- IDLE that cannot die silently ----------------------------------------------

def test_silent_idle_is_found_and_replaced(world):
    """Item 5, L092: a poll looks at INBOX; what IDLE did not tell within a
    grace replaces the hot child, and is counted."""
    f = world(2, idle_restart_secs=1500)
    f.activate_all()
    f.wait_idle(2)
    f.mock.fault("silent", account="u0")
    f.mock.call("kick", match="u0", idle=True)
    f.wait_idle(2, 30)

    def hot():
        return next(c for c in f.sync.ctl("ps") if c["kind"] == "hot" and
                    c["account_id"] == f.accounts["u0"])
    # The master knows it, too, and no pass that began before is under way:
    # such a one looks at INBOX itself, and brings what IDLE does not tell.
    wait_for(lambda: hot()["state"] == "idle", what="idle")
    before = explain(f, "u0")["passes"]
    wait_for(lambda: explain(f, "u0")["passes"] >= before + 2, what="polls")
    pid = hot()["pid"]
    f.mock.deliver("u0")
    f.mock.deliver("u1")
    f.assert_same(deadline=60)
    wait_for(lambda: status(f)["idle_silent"] >= 1, what="counted")
    assert "IDLE did not tell" in f.sync.log_text()
    wait_for(lambda: pid not in f.sync.children(), what="replaced")
    # The other was told, and keeps its child.
    told = [line for line in f.sync.log_text().splitlines()
            if "IDLE did not tell" in line]
    assert all(f.accounts["u0"] in line for line in told)
    # A server that never tells is not idled on for ever.
    for _ in range(2):
        before = status(f)["idle_silent"]
        f.mock.deliver("u0")
        f.assert_same(["u0"], 60)
        wait_for(lambda: status(f)["idle_silent"] > before, what="again")
    wait_for(lambda: explain(f, "u0")["no_idle"] == "silent", what="given up")
    f.mock.deliver("u0")
    f.assert_same(["u0"], 60)


def test_quiet_and_busy_idle_is_left_alone(world):
    """Item 5: no false alarm, whatever moves and whoever moves it."""
    f = world(1)
    f.activate_all()
    f.wait_idle(1)
    pid = next(c["pid"] for c in f.sync.ctl("ps") if c["kind"] == "hot")
    m = f.mock
    for n in range(12):
        uid, = m.deliver("u0")
        m.call("flags", account="u0", uids=str(uid), add=["\\Seen"])
        if n % 3 == 0:
            m.call("expunge", account="u0", uids=str(uid))
        if n % 3 == 1:
            m.call("move", account="u0", uids=str(uid), to="Archive")
        polls = status(f)["polls"]
        wait_for(lambda: status(f)["polls"] > polls, 20, "another poll")
    f.assert_same()
    assert status(f)["idle_silent"] == 0
    assert pid in f.sync.children()


def test_begins_without_a_session_of_its_own(world):
    """A hot child that finds nothing new needs PostgreSQL by way of the clerk
    only: hundreds begin at once when a worker is lost."""
    f = world(4)
    f.activate_all()
    f.wait_idle(4, 30)
    admin = f.herd.pg.connect("postgres")
    admin.autocommit = True
    allow = f"ALTER DATABASE {f.herd.dbname} ALLOW_CONNECTIONS"
    with admin.cursor() as cur:
        cur.execute(f"{allow} false")
        since = f.mark()
        for pid, kind in f.sync.children().items():
            if kind == "hot":
                os.kill(pid, signal.SIGKILL)
        f.wait_first_idle(since, f.logins, 30)
        cur.execute(f"{allow} true")
    admin.close()
    # What it was told is what the server's news is held against.
    for login in f.logins:
        f.mock.deliver(login)
    f.assert_same()
    f.assert_nothing_double()


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP])
def test_begins_though_the_clerk_is_lost(world, blow):
    """Who is to be briefed waits for the next clerk, or reads for himself."""
    f = world(4, command_timeout=5)
    f.activate_all()
    f.wait_idle(4, 30)
    since = f.mark()
    for pid, kind in f.sync.children().items():
        if kind in ("clerk", "hot"):
            os.kill(pid, blow if kind == "clerk" else signal.SIGKILL)
    f.wait_first_idle(since, f.logins, 60)
    for login in f.logins:
        f.mock.deliver(login)
    f.assert_same()
    f.assert_nothing_double()
