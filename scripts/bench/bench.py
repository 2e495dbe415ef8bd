"""What the benchmarks share: servers, mailherd, figures.

Each benchmark is a program of its own:

    MAILHERD_BUILD=BUILD-DIRECTORY scripts/bench/backfill

It starts private servers with the classes of tests/integration, PostgreSQL
with fsync on, measures mailherd and its peer in the same run, prints the
figures with the machine they were measured on, and ends with 1 when a value
the project wants to reach is missed.
"""

import contextlib
import os
import platform
import shutil
import subprocess
import sys
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tests", "integration"))
sys.dont_write_bytecode = True

import herd  # noqa: E402
import servers  # noqa: E402

missed = []


def machine():
    model = "unknown"
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo") as f:
        kb = int(f.readline().split()[1])
    return (f"{os.cpu_count()} x {model}, {kb / 1048576:.0f} GB, "
            f"Linux {platform.release()}")


def title(text):
    print(f"{text}\n  on {machine()}")


def figure(name, value, unit, want=None, most=True):
    """Prints a line; want is the value to reach, at most or at least."""
    note = ""
    if want is not None:
        good = value <= want if most else value >= want
        note = (f"   ({'at most' if most else 'at least'} {want:g}: "
                f"{'reached' if good else 'MISSED'})")
        if not good:
            missed.append(name)
    print(f"  {name:<52} {value:>10,.1f} {unit}{note}", flush=True)


def end():
    sys.exit(1 if missed else 0)


@contextlib.contextmanager
def world(format="maildir", tls=False, **dovecot):
    """(base, pg, redis, imap, programs, certs): servers for one benchmark."""
    base = servers.work_dir("mailherd-bench-")
    try:
        certs = servers.Certificates(base)
        with servers.Postgres(base, durable=True) as pg, \
                servers.Redis(base) as redis, \
                servers.Dovecot(base, certs, format=format,
                                **dovecot) as imap:
            yield World(base, pg, redis, imap,
                        herd.Programs(base), certs)
    finally:
        if not os.environ.get("MAILHERD_KEEP"):
            shutil.rmtree(base, ignore_errors=True)


class World:
    def __init__(self, base, pg, redis, imap, programs, certs):
        self.base, self.pg, self.redis = base, pg, redis
        self.imap, self.programs, self.certs = imap, programs, certs

    def herd(self, **settings):
        """Ordinary settings but for what a benchmark cannot wait for."""
        return herd.Mailherd(
            self.programs, self.base, self.pg, self.redis, self.certs,
            **{"log_level": "info", "lease_ttl": 60, "lease_renew": 20,
               **settings})


def rollup(pid, field):
    """A line of /proc/PID/smaps_rollup in kB; 0 when the process is gone."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as f:
            for line in f:
                if line.startswith(f"{field}:"):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0


def pss(pid):
    """Proportional set size in kB."""
    return rollup(pid, "Pss")


def own(pid):
    """What the process has written to and shares with nobody, in kB."""
    return rollup(pid, "Private_Dirty")


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def mbsync(world, login, name, fsync, folders=("INBOX",), port=None,
           runs=1):
    """Seconds of the last run into a fresh maildir (first run: all mail)."""
    if not shutil.which("mbsync"):
        return None
    near = servers.own_dir(world.base, f"mbsync-{name}")
    conf = servers.write_file(os.path.join(near, "conf"), f"""
FSync {'yes' if fsync else 'no'}

IMAPStore far
Host 127.0.0.1
Port {port or world.imap.port}
User {login}
Pass {world.imap.password}
SSLType None
AuthMechs LOGIN

MaildirStore near
Path {near}/mail/
Inbox {near}/mail/INBOX
SubFolders Verbatim

Channel all
Far :far:
Near :near:
Patterns {' '.join(folders)}
Create Near
Sync Pull
SyncState *
""")
    servers.own_dir(near, "mail")
    for _ in range(runs):
        begun = time.monotonic()
        subprocess.run(["mbsync", "-qq", "-c", conf, "-a"], check=True,
                       cwd=near, env=servers.child_env(HOME=near),
                       **servers.run_as())
        seconds = time.monotonic() - begun
    return seconds
