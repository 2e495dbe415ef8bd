"""Whoever is slow, stuck or hostile beside a master: its leases stay."""

import contextlib
import fcntl
import os
import signal
import socket
import subprocess

from herd import deliver, message
from servers import free_port, run_as, wait_for
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
                 os.read(read_end, 65536), 30, "the loss is told")
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
                    if kind != "clerk"):
            os.kill(pid, signal.SIGKILL)
    kept(h, sync, die)
    # It was replaced, and all goes on.
    wait_for(lambda: template_of(sync) not in (None, stopped), 30,
             "another template")
    deliver(dovecot, login, message("Made anew"))
    h.assert_same(account, dovecot, login, 20)


def scrape(port, request=None):
    """The answer as a whole."""
    with socket.create_connection(("127.0.0.1", port), 10) as sock:
        sock.sendall(request or b"GET /metrics HTTP/1.1\r\nHost: t\r\n\r\n")
        found = b""
        while part := sock.recv(65536):
            found += part
    return found


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        ticks = f.read().rsplit(")", 1)[1].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def limit_files(daemon, soft):
    """Its own user may, where root lacks the capability."""
    subprocess.run(["prlimit", f"--pid={daemon.pid}", f"--nofile={soft}:"],
                   check=True, **run_as())


def test_many_ask_for_the_metrics(herd, dovecot, login):
    """More than there are descriptors, and none of them finishes."""
    port = free_port()
    h, account = started(herd, dovecot, login, 1, **SHORT)
    h.daemons[0].stop()
    sync = h.start(metrics_listen=f"127.0.0.1:{port}")
    limit_files(sync, 300)
    h.wait_owned(account)
    wait_for(lambda: sync.ctl("status")[0]["owned"] == 1, what="owned")
    found = wait_for(lambda: scrape(port), 30, "it listens")
    assert found.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\nmailherd_leases 1\n" in found
    assert scrape(port, b"HEAD /metrics HTTP/1.0\r\n\r\n").endswith(
        b"\r\n\r\n")
    for bad, status in ((b"GET / HTTP/1.1\r\nHost: t\r\n\r\n", b"404"),
                        (b"PUT /metrics HTTP/1.1\r\nHost: t\r\n\r\n", b"405"),
                        (b"GET /metrics HTTP/1.1\r\n\r\n", b"400")):
        assert scrape(port, bad).split()[1] == status
    begun = cpu_seconds(sync.pid)
    with contextlib.ExitStack() as stack:
        def connect():
            for _ in range(100):
                sock = stack.enter_context(socket.socket())
                sock.setblocking(False)
                sock.connect_ex(("127.0.0.1", port))
                with contextlib.suppress(OSError):
                    sock.send(b"GET /metrics HTTP/1.1\r\n")
        kept(h, sync, connect)
        assert sync.ctl("status")[0]["leases_lost"] == 0
        deliver(dovecot, login, message("Beside a crowd"))
        h.assert_same(account, dovecot, login)
    assert cpu_seconds(sync.pid) - begun < 3
    wait_for(lambda: b" 200 OK" in scrape(port), 20, "answered again")
    # Only this child, and it is replaced.
    pid, = (p for p, kind in sync.children().items() if kind == "metrics")
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: b" 200 OK" in scrape(port), 30, "another one")


def test_clients_of_the_control_socket(herd):
    """Those who hang there keep nobody out."""
    h = herd()
    sync = h.start()
    with contextlib.ExitStack() as stack:
        socks = []
        for n in range(200):
            sock = stack.enter_context(
                socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            sock.connect(sync.socket)
            sock.settimeout(10)
            # Half a line, or answers that nobody reads.
            sock.sendall(b'{"cmd":' if n % 2 else b'{"cmd":"ps"}\n' * 50)
            socks.append(sock)
            if n % 20 == 0:
                assert sync.ctl("status")
        assert sync.ctl("status")
        assert socks[1].recv(100) == b""  # others have its place
    # No descriptor is left: nobody gets in, and nobody is busy with that.
    wait_for(lambda: len(os.listdir(f"/proc/{sync.pid}/fd")) < 32, 30,
             "all are gone")
    is_open = set(map(int, os.listdir(f"/proc/{sync.pid}/fd")))
    limit_files(sync, min(set(range(99)) - is_open))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        begun = cpu_seconds(sync.pid)
        sock.connect(sync.socket)  # and waits in the kernel
        said = wait_for(lambda: sync.log_text().count("control socket: Too"),
                        30, "noticed")
        wait_for(lambda: sync.log_text().count("control socket: Too") >=
                 said + 2, 30, "tried again")
        assert cpu_seconds(sync.pid) - begun < 1
        limit_files(sync, 1000)
        sock.settimeout(10)
        sock.sendall(b'{"cmd":"status"}\n')
        assert b'"pid"' in sock.recv(65536)

