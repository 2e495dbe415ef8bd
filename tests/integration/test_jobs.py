"""Jobs: whose turn it is, and that each attempt runs once."""

import os
import signal

import pytest

from fleet import Fleet
from mock import Mock
from servers import wait_for


@pytest.fixture
def big_mock(test_dir):
    with Mock(test_dir, inbox=3, other=0) as mock:
        # Each takes several slices, of any machine: it is the server that
        # is slow, a quarter of a second for each batch.
        mock.call("group", name="big", match="ubig*", inbox=1500, other=0)
        mock.fault("stall", account="ubig*", at="UID FETCH", msecs=250)
        yield mock


def states(h):
    return dict(h.sql("SELECT imap_login, state FROM accounts"))


def test_a_small_account_does_not_wait_for_big_ones(herd, big_mock):
    """F-A9: bulk slots are shared by what each account has had of them."""
    h = herd(bulk_concurrency=1, bulk_slice=1, batch_messages=50)
    h.start("jobs")
    for n in range(5):
        h.add_account(big_mock, f"ubig{n}")
    wait_for(lambda: h.sql("SELECT 1 FROM jobs WHERE state = 'running'"),
             what="the first one has the only slot")
    h.add_account(big_mock, "usmall")
    wait_for(lambda: states(h)["usmall"] == "live", what="small one is live")
    waiting = [login for login, state in states(h).items()
               if state != "live"]
    assert len(waiting) >= 3, waiting
    wait_for(lambda: set(states(h).values()) == {"live"}, 120,
             "the big ones get there, too")
    # Making room is no failure.
    assert h.sql("SELECT count(*) FROM jobs WHERE state = 'dead'") == [(0,)]


def test_a_job_is_not_lost_while_nobody_could_hold_it(herd, big_mock):
    """F-B11: after an outage of PostgreSQL no worker takes the others' jobs
    for lost before they had the time to hold them again."""
    h = herd()
    one = h.start("jobs", "one")
    big_mock.fault("stall", account="u1", at="UID FETCH")
    account = h.add_account(big_mock, "u1")

    def job():
        return h.sql("SELECT state, attempts, owner, lock_until > now() "
                     "FROM jobs WHERE account_id = %s", (account,))

    wait_for(lambda: job() and job()[0][0] == "running", what="job runs")
    before = job()[0]
    h.start("jobs", "two")
    wait_for(lambda: len(h.ctl("workers")) == 2, what="a second worker")
    clerk = next(row["pid"] for row in one.ctl("ps")
                 if row["kind"] == "clerk")
    os.kill(clerk, signal.SIGSTOP)
    try:
        h.sql("WITH late AS (UPDATE jobs SET lock_until = now() - "
              "interval '1 second' WHERE account_id = %s RETURNING 1) "
              "SELECT pg_terminate_backend(pid) FROM pg_stat_activity, late "
              "WHERE application_name = 'mailherd clerk' "
              "AND datname = current_database()", (account,))
        # The second worker is back and has looked for work to do.
        other = h.add_account(big_mock, "u2")
        h.wait_live(other)
        assert job()[0][:3] == before[:3]
    finally:
        os.kill(clerk, signal.SIGCONT)
    wait_for(lambda: job()[0][3], what="held again")
    assert job()[0][:3] == before[:3]


def test_each_bell_brings_a_job(herd, mock, redis):
    """Rings of bulk jobs are as good as each other: none is eaten because
    another's brought its job, none makes a child a liar.  What had no ring
    would wait for a sweep that rings again, half a minute."""
    h = herd(bulk_concurrency=12)
    f = Fleet(h, mock(inbox=20, other=3), redis)
    h.start("jobs")
    f.add(4, 3)
    wait_for(lambda: not h.sql("SELECT 1 FROM jobs WHERE state = 'queued'"),
             20, "all have begun")
    f.wait_live()
    assert "talks nonsense" not in h.log_text()
