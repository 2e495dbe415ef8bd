"""Whoever is slow, stuck or hostile beside a master: its leases stay."""

import fcntl
import os
import signal

from herd import deliver, message
from servers import wait_for
from test_changes import started

F_SETPIPE_SZ = 1031
SHORT = {"lease_ttl": 5, "lease_renew": 1}


def kept(h, daemon, what):
    """Longer than a lease lasts, whatever is done meanwhile by `what`, the
    daemon answers and loses nothing."""
    before = daemon.ctl("status")[0]
    assert before["owned"] > 0

    def longer():
        what()
        now = daemon.ctl("status")[0]
        assert now["owned"] == before["owned"]
        assert now["leases_lost"] == before["leases_lost"]
        assert now["uptime_s"] > before["uptime_s"] + 6
        return True
    wait_for(longer, 30, "a lease's time goes by", every=0.3)


def test_nobody_reads_the_log(herd, dovecot, login):
    h, account = started(herd, dovecot, login, 1, **SHORT)
    read_end, write_end = os.pipe()
    fcntl.fcntl(write_end, F_SETPIPE_SZ, 4096)
    h.daemons[0].stop()
    daemon = h.start(stderr=write_end)
    try:
        # Children say much at this level, the master as well.
        h.wait_owned(account)
        kept(h, daemon, lambda: daemon.ctl("poll", account))
        assert daemon.ctl("status")[0]["log_lines_lost"] > 0
        deliver(dovecot, login, message("Unlogged"))
        h.assert_same(account, dovecot, login)
        said = os.read(read_end, 65536)
        wait_for(lambda: daemon.ctl("poll", account) and
                 b"lines of this process were lost" in
                 os.read(read_end, 65536), 10, "the loss is told")
        assert said
    finally:
        os.close(write_end)
        daemon.stop()
        os.close(read_end)


def template_of(daemon):
    """The process that makes the children."""
    for pid in daemon.pids():
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            if b"template" in f.read():
                return pid
    return None


def test_what_makes_children_is_stopped(herd, dovecot, login):
    h, account = started(herd, dovecot, login, 1, **SHORT)
    sync = h.daemons[0]
    h.wait_owned(account)
    stopped = template_of(sync)
    os.kill(stopped, signal.SIGSTOP)

    def die():
        for pid in (p for p, kind in sync.children().items()
                    if kind != "clerk" and p > 0):
            os.kill(pid, signal.SIGKILL)
    kept(h, sync, die)
    # It was replaced, and all goes on.
    wait_for(lambda: template_of(sync) not in (None, stopped), 10,
             "another template")
    deliver(dovecot, login, message("Made anew"))
    h.assert_same(account, dovecot, login, 20)
