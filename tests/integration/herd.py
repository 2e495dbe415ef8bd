"""mailherd itself as the tests start it, and what they compare.

Mailherd writes a configuration with short cadences into a directory of its
own, makes the schema with `mailherdctl init`, and starts daemons in the
foreground with a log file each.  No code of the product knows it is under
test: everything here is an ordinary setting.
"""

import base64
import hashlib
import imaplib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

from servers import (child_env, descendants, elsewhere, end_process, give,
                     own_dir, run_as, wait_for, write_file)

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))

# Short enough to test with, long enough that nothing runs in a tight loop.
CADENCES = {
    "lease_ttl": 10, "lease_renew": 3, "poll_warm": 1, "poll_cold": 2,
    "claim_interval": 1, "claim_jitter": 0, "reconcile_interval": 2,
    "heartbeat_interval": 1, "heartbeat_ttl": 5, "rebalance_interval": 5,
    "tier_interval": 1, "sweep_interval": 1, "search_merge_interval": 1,
    "backoff_first": 1, "backoff_max": 4,
}


def build_dir():
    return os.path.abspath(os.environ.get("MAILHERD_BUILD", os.getcwd()))


class Programs:
    """Binaries and data, copied where an unprivileged user can reach them."""

    def __init__(self, base):
        self.dir = own_dir(base, "programs")
        for name in ("mailherd", "mailherdctl"):
            shutil.copy(os.path.join(build_dir(), name), self.dir)
        self.mailherd = os.path.join(self.dir, "mailherd")
        with open(self.mailherd, "rb") as f:
            is_sanitized = b"__asan_init" in f.read()
        # A sanitizer wants to be the first one loaded.
        self.noblock = None if is_sanitized else shutil.copy(
            os.path.join(build_dir(), "noblock.so"), self.dir)
        self.sanitizer = subprocess.run(
            ["cc", "-print-file-name=libasan.so"], check=True, text=True,
            capture_output=True).stdout.strip() if is_sanitized else None
        self.ctl = os.path.join(self.dir, "mailherdctl")
        self.schema = os.path.join(self.dir, "schema")
        shutil.copytree(os.path.join(SOURCE, "etc", "schema"), self.schema)
        self.quirks = None
        quirks = os.path.join(SOURCE, "etc", "quirks.conf")
        if os.path.exists(quirks):
            self.quirks = shutil.copy(quirks, self.dir)


class Daemon:
    """One master and its children."""

    def __init__(self, herd, role, instance, overrides, on_host=None,
                 stderr=None):
        self.herd, self.role, self.instance = herd, role, instance
        self.name = f"{role}-{instance}"
        self.log = os.path.join(herd.dir, f"{self.name}.log")
        self.socket = os.path.join(herd.dir, f"{self.name}.sock")
        argv = [herd.programs.mailherd, "-f", "-c", herd.conf,
                "-o", f"worker_role={role}", "-o", f"instance={instance}",
                "-o", f"control_socket={self.socket}"]
        for key, value in overrides.items():
            argv += ["-o", f"{key}={value}"]
        moved = elsewhere(on_host, argv) if on_host else None
        with open(self.log, "ab") as log:
            give(self.log)
            self.proc = subprocess.Popen(
                moved or argv, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log if stderr is None else stderr, cwd=herd.dir,
                env=herd.daemon_env(),
                **({} if moved else run_as()))
        self.pid = self.proc.pid
        wait_for(self.is_up, what=f"{self.name} answers, see {self.log}")

    def is_up(self):
        if self.proc.poll() is not None:
            raise RuntimeError(f"{self.name} ended with {self.proc.returncode}"
                               f": {self.log_text()[-3000:]}")
        return self.ctl("status")

    def ctl(self, *args):
        return self.herd.ctl("-s", self.socket, *args)

    def log_text(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def children(self):
        """{pid: kind} as `ps` tells it."""
        return {c["pid"]: c["kind"] for c in self.ctl("ps")}

    def pids(self):
        """The process tree below the master, from /proc."""
        return descendants(self.pid)

    def stop(self, limit=10):
        """SIGTERM; the exit code.  Children must be gone with the master."""
        pids = self.pids()
        code = end_process(self.proc, signal.SIGTERM, limit)
        wait_for(lambda: not any(is_alive(p) for p in pids), 2,
                 f"children of {self.name} ended with it")
        return code

    def kill(self):
        """kill -9; the children end by themselves."""
        pids = self.pids()
        end_process(self.proc, signal.SIGKILL)
        wait_for(lambda: not any(is_alive(p) for p in pids), 10,
                 f"children of {self.name} ended after its kill -9")


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Mailherd:
    """A configuration, and the daemons started with it."""

    counter = 0

    def __init__(self, programs, base, pg, redis, certs=None, name=None,
                 cadences=CADENCES, **settings):
        Mailherd.counter += 1
        name = name or f"mh{Mailherd.counter}"
        self.programs, self.pg, self.redis = programs, pg, redis
        self.dir = own_dir(base, name)
        self.conf = os.path.join(self.dir, "mailherd.conf")
        self.dbname = f"{name}_{os.getpid()}"
        self.daemons = []
        self.other_output = []
        database = pg.create_database(self.dbname)
        values = {
            "database": database, "redis": redis.url,
            "blob_dir": os.path.join(self.dir, "blobs"),
            "schema_dir": programs.schema,
            "secret_key_file": os.path.join(self.dir, "secret.key"),
            "log_target": "stderr", "log_level": "debug",
            "control_socket": os.path.join(self.dir, "sync-0.sock"),
            **cadences, **({"ca_file": certs.ca} if certs else {}),
            **settings,
        }
        if programs.quirks:
            values.setdefault("quirks_file", programs.quirks)
        write_file(self.conf, "".join(
            f"{key} = {conf_value(value)}\n"
            for key, value in values.items()))
        self.ctl("init")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        crashes, bad = {}, {}
        for d in self.daemons:
            was_ended = d.proc.poll() is not None  # by the test
            try:
                code = d.proc.returncode if was_ended else d.stop()
            except AssertionError as e:
                code = e
            if code in CRASHES:
                crashes[d.name] = code
            elif code != 0 and not was_ended:
                bad[d.name] = code
        log = self.log_text() + "".join(self.other_output)
        self.pg.drop_database(self.dbname)
        if kind is None:
            assert_sound(log)
            assert not crashes, f"{UNSOUND}: exit codes {crashes}"
            assert not bad, f"exit codes after SIGTERM: {bad}"

    def env(self):
        return child_env(
            ASAN_OPTIONS="abort_on_error=0:detect_leaks=0:"
                         "allocator_may_return_null=1",
            UBSAN_OPTIONS="print_stacktrace=1")

    def daemon_env(self):
        """A master that makes a call which could block is ended."""
        more = {"LD_PRELOAD": self.programs.noblock} \
            if self.programs.noblock else {}
        return {**self.env(), **more}

    def log_text(self):
        return "".join(d.log_text() for d in self.daemons)

    # -- mailherdctl --

    def run_ctl(self, *args, stdin=None, check=True):
        done = subprocess.run(
            [self.programs.ctl, "-c", self.conf, *map(str, args)],
            input=stdin, capture_output=True, cwd=self.dir, timeout=120,
            env=self.env(), **run_as())
        # Not now: whoever waits for something would go on waiting.
        self.other_output.append(done.stderr.decode(errors="replace"))
        if check and done.returncode:
            raise subprocess.CalledProcessError(
                done.returncode, done.args,
                done.stdout, done.stderr.decode(errors="replace"))
        return done

    def ctl(self, *args, stdin=None):
        """Runs with -j; a list of objects, one a line."""
        if isinstance(stdin, str):
            stdin = stdin.encode()
        try:
            done = self.run_ctl("-j", *args, stdin=stdin)
        except subprocess.CalledProcessError as e:
            raise AssertionError(f"mailherdctl {' '.join(map(str, args))}: "
                                 f"exit {e.returncode}: {e.stderr}") from None
        return [json.loads(line) for line in done.stdout.splitlines()
                if line.strip()]

    def ctl1(self, *args, **more):
        found = self.ctl(*args, **more)
        assert len(found) == 1, f"{args}: {found}"
        return found[0]

    # -- daemons --

    def start(self, role="sync", instance="0", on_host=None, stderr=None,
              **overrides):
        daemon = Daemon(self, role, instance, overrides, on_host, stderr)
        self.daemons.append(daemon)
        return daemon

    def start_both(self):
        return self.start("sync"), self.start("jobs")

    # -- accounts --

    def add_user(self, email):
        return self.ctl1("user", "add", email)["id"]

    def add_account(self, imap, login, user=None, tls="none", host=None,
                    password=None, port=None, smtp="localhost:25,none"):
        """For a user of this Dovecot; the id."""
        if user is None:
            user = self.add_user(f"{login}-{len(self.sql('SELECT id FROM users'))}"
                                 "@users.example.org")
        host = host or ("127.0.0.1" if tls == "none" else "localhost")
        port = port or (imap.tls_port if tls == "tls" else imap.port)
        return self.ctl1(
            "account", "add", "--user", user,
            "--email", f"{login}@example.org", "--imap",
            f"{host}:{port},{tls}", "--smtp", smtp, "--login", login,
            "--password-file", "-",
            stdin=(password or imap.password) + "\n")["id"]

    def account(self, account):
        return self.ctl1("account", "show", account)

    def wait_state(self, account, state, deadline=None):
        def in_state():
            found = self.account(account)
            assert found["state"] == state, \
                f"state {found['state']}: {found.get('last_error')}"
            return found
        return wait_for(in_state, deadline, f"account becomes {state}")

    def wait_live(self, account, deadline=None):
        return self.wait_state(account, "live", deadline)

    def wait_owned(self, account, deadline=None):
        return wait_for(
            lambda: self.account(account).get("owner"), deadline,
            "account has an owner")

    # -- the copy --

    def sql(self, text, args=None):
        conn = self.pg.connect(self.dbname)
        try:
            with conn.cursor() as cur:
                cur.execute("SET search_path = mailherd, public")
                cur.execute(text, args)
                return cur.fetchall() if cur.description else None
        finally:
            conn.close()

    def copies(self, accounts):
        """{account: {folder: {uid: (flags, digest)}}} as PostgreSQL has
        them, in two statements."""
        found = {account: {} for account in accounts}
        for account, path in self.sql(
                "SELECT account_id::text, path FROM mailboxes "
                "WHERE account_id = ANY(%s::uuid[]) AND is_selectable",
                (list(accounts),)):
            found[account][path] = {}
        for account, path, uid, blob, words in self.sql(
                # A row that waits for its place counts as a difference.
                f"""SELECT m.account_id::text, b.path,
                      coalesce(m.uid, -m.id), m.blob, {FLAG_WORDS}
                   FROM messages m JOIN mailboxes b ON b.id = m.mailbox_id
                   WHERE m.account_id = ANY(%s::uuid[])
                     AND m.deleted_at IS NULL""", (list(accounts),)):
            folder = found[account].setdefault(path, {})
            assert uid not in folder, f"{path}: UID {uid} twice"
            folder[uid] = (frozenset(w.lower() for w in words),
                           bytes(blob).hex() if blob else None)
        return found

    def copy(self, account):
        return self.copies([account])[account]

    def difference(self, account, imap, login):
        """"" when copy = server, else the first differences in words."""
        return state_differences(server_state(imap, login),
                                 self.copy(account))

    def assert_same(self, account, imap, login, deadline=None):
        def same():
            words = self.difference(account, imap, login)
            assert not words, words
            return True
        wait_for(same, deadline, "copy = server", every=0.1)

    def poll(self, account):
        for d in self.daemons:
            if d.role == "sync" and d.proc.poll() is None:
                try:
                    return d.ctl("poll", account)
                except AssertionError:
                    continue  # not the owner
        return None

    def raw(self, message_id):
        return self.run_ctl("message", "raw", message_id).stdout


# Flags of a row of messages as IMAP spells them.
FLAG_WORDS = r"""coalesce(m.keywords, '{}')
    || CASE WHEN m.seen THEN '{\\seen}'::text[] ELSE '{}' END
    || CASE WHEN m.flagged THEN '{\\flagged}'::text[] ELSE '{}' END
    || CASE WHEN m.answered THEN '{\\answered}'::text[] ELSE '{}' END
    || CASE WHEN m.draft THEN '{\\draft}'::text[] ELSE '{}' END
    || CASE WHEN m.marked_deleted THEN '{\\deleted}'::text[] ELSE '{}' END"""


def conf_value(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if value in ("sync", "jobs", "stderr", "syslog", "journal", "debug",
                 "info"):
        return value
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


# scripts/check does not try again a test that says this.
UNSOUND = "no machine is too slow for that"

# Ends that no test brings about; 1 is a sanitizer's.
CRASHES = {1, -signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS,
           -signal.SIGFPE, -signal.SIGILL}

# The same of children, and what a sanitizer says.
CRASH_SAID = re.compile(
    r"BLOCKING CALL|AddressSanitizer|LeakSanitizer|runtime error:|Assertion"
    r"|child (?:died|ended) .*: (?:signal (?:4|6|7|8|11)\b|exit 1\b|bug$)",
    re.M)


def assert_sound(log):
    """What must never be in a log, whatever a test did."""
    found = CRASH_SAID.search(log)
    assert not found, f"{UNSOUND}:\n" + \
        log[max(0, found.start() - 500):found.start() + 4000]


def state_differences(server, copy):
    """"" when equal, else the first differences in words."""
    words = []
    for path in sorted(set(server) | set(copy)):
        if path not in copy:
            words.append(f"{path}: not in the copy")
        elif path not in server:
            words.append(f"{path}: not on the server")
        else:
            words += differences(path, server[path], copy[path])
    return "; ".join(words[:8])


def differences(path, server, copy):
    words = []
    for uid in sorted(set(server) | set(copy)):
        if uid not in copy:
            words.append(f"{path}/{uid}: missing in the copy")
        elif uid not in server:
            words.append(f"{path}/{uid}: gone from the server")
        elif server[uid][1] != copy[uid][1]:
            words.append(f"{path}/{uid}: other bytes")
        elif server[uid][0] != copy[uid][0]:
            words.append(f"{path}/{uid}: flags {sorted(server[uid][0])} on "
                         f"the server, {sorted(copy[uid][0])} here")
    return words


# --- the second client ----------------------------------------------------------

def utf7_decode(name):
    """Modified UTF-7 of a folder name to text."""
    def chunk(match):
        inner = match.group(1)
        if not inner:
            return "&"
        data = inner.replace(",", "/")
        return base64.b64decode(data + "=" * (-len(data) % 4)).decode(
            "utf-16-be")
    return re.sub(r"&([^-]*)-", chunk, name)


def utf7_encode(name):
    def chunk(match):
        data = base64.b64encode(match.group(0).encode("utf-16-be"))
        return "&" + data.decode().rstrip("=").replace("/", ",") + "-"
    return re.sub(r"[^\x20-\x7e]+", chunk, name.replace("&", "&-"))


class Refusal(AssertionError):
    """The server said NO or BAD."""


def wire_name(imap, path):
    """How a server spells a folder that the tests call Reisen/Köln.  Where
    all folders lie below another, they may be named with it or without."""
    root = getattr(imap, "root", "")
    if root and path != root and not path.startswith(root + imap.separator):
        path = root + imap.separator + path.replace("/", imap.separator)
    return utf7_encode(path)


class Client:
    """A second mail client: another program the user has open."""

    def __init__(self, imap, login, password=None):
        self.imap = imap
        self.conn = imaplib.IMAP4("127.0.0.1", imap.port)
        # imaplib writes a literal and what ends it apart.
        self.conn.socket().setsockopt(socket.IPPROTO_TCP,
                                      socket.TCP_NODELAY, 1)
        self.conn.login(login, password or imap.password)
        self.uidplus = "UIDPLUS" in self.conn.capabilities

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.conn.logout()
        except (imaplib.IMAP4.error, OSError):
            pass

    def ok(self, answer):
        kind, data = answer
        if kind != "OK":
            raise Refusal(f"IMAP: {kind} {data}")
        return data

    def quoted(self, path):
        wire = wire_name(self.imap, path)
        return '"' + wire.replace("\\", "\\\\").replace('"', '\\"') + '"'

    def folders(self):
        """Selectable folders, as text, by the names the server has."""
        found = []
        for item in self.ok(self.conn.list()):
            if isinstance(item, tuple):
                flags, name = item[0], item[1]
            else:
                m = re.match(rb'\(([^)]*)\) (?:"[^"]*"|NIL) (.*)$', item)
                flags, name = m.group(1), m.group(2)
                if name.startswith(b'"'):
                    name = re.sub(rb"\\(.)", rb"\1", name[1:-1])
            if b"noselect" in flags.lower() or b"nonexist" in flags.lower():
                continue
            found.append(utf7_decode(name.decode()))
        return found

    def select(self, path, readonly=False):
        self.ok(self.conn.select(self.quoted(path), readonly))

    def append(self, path, raw, flags=(), date=None):
        self.ok(self.conn.append(self.quoted(path),
                                 f"({' '.join(flags)})", date, raw))

    def uids(self):
        data = self.ok(self.conn.uid("SEARCH", "ALL"))
        return [int(w) for w in (data[0] or b"").split()]

    def store(self, uids, change, flags):
        self.ok(self.conn.uid("STORE", uid_set(uids), change,
                              f"({' '.join(flags)})"))

    def move(self, uids, path):
        if getattr(self.imap, "has_move", True):
            self.ok(self.conn.uid("MOVE", uid_set(uids), self.quoted(path)))
        else:
            self.copy(uids, path)
            self.expunge(uids)

    def copy(self, uids, path):
        self.ok(self.conn.uid("COPY", uid_set(uids), self.quoted(path)))

    def expunge(self, uids):
        self.store(uids, "+FLAGS", ["\\Deleted"])
        self.ok(self.conn.expunge())

    def create(self, path):
        self.ok(self.conn.create(self.quoted(path)))

    def delete(self, path):
        self.ok(self.conn.delete(self.quoted(path)))

    def rename(self, old, new):
        self.ok(self.conn.rename(self.quoted(old), self.quoted(new)))

    def leave(self):
        """No folder is selected any more, and none expunged."""
        self.conn.select('"no folder has this name"')

    def fetch(self, uids):
        """{uid: (flags, digest)} in the selected folder."""
        found = {}
        for item in self.ok(self.conn.uid(
                "FETCH", uids, "(UID FLAGS BODY.PEEK[])")):
            if not isinstance(item, tuple):
                continue
            head = item[0].decode()
            uid = int(re.search(r"UID (\d+)", head).group(1))
            flags = re.search(r"FLAGS \(([^)]*)\)", head).group(1)
            words = {w.lower() for w in flags.split()}
            words.discard("\\recent")
            found[uid] = (frozenset(words),
                          hashlib.sha256(item[1]).hexdigest())
        return found

    def state(self, path):
        self.select(path, readonly=True)
        return self.fetch("1:*")


def uid_set(uids):
    return ",".join(map(str, uids))


def server_state(imap, login):
    if hasattr(imap, "server_state"):
        return imap.server_state(login)  # a mock, asked beside IMAP
    with Client(imap, login) as client:
        found = {}
        for path in client.folders():
            found[path] = client.state(path)
        return found


def message(subject="Hello", text="Good day.\n", message_id=None,
            headers=(), sender="Ann Lee <ann@example.org>"):
    lines = [f"From: {sender}", "To: bob@example.net",
             f"Subject: {subject}", "Date: Tue, 03 Mar 2026 09:00:00 +0000"]
    if message_id:
        lines.append(f"Message-ID: <{message_id}>")
    lines += list(headers) + ["MIME-Version: 1.0",
                              "Content-Type: text/plain; charset=utf-8", ""]
    return "\r\n".join(lines + text.splitlines() + [""]).encode()


def deliver(imap, login, raw, sender="sender@example.org"):
    """As a mail server does; returns once it is accepted."""
    imap.deliver(login, raw, sender)


# --- events --------------------------------------------------------------------------

class Events:
    """Collects events from Redis in the background, as an application."""

    def __init__(self, redis):
        self.seen = []
        self.stamps = []
        self.pubsub = redis.client().pubsub()
        self.pubsub.psubscribe("events:*")
        self.pubsub.get_message(timeout=5)
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._collect, daemon=True)
        self.thread.start()

    def _collect(self):
        while not self.stopping.is_set():
            try:
                item = self.pubsub.get_message(
                    ignore_subscribe_messages=True, timeout=0.2)
            except Exception:
                if self.stopping.wait(0.2):
                    return
                continue
            if item:
                self.stamps.append(time.time())
                self.seen.append(json.loads(item["data"]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()
        self.pubsub.close()

    def of(self, name, **payload):
        return [e for e in list(self.seen) if e["event"] == name
                and all(e["payload"].get(k) == v
                        for k, v in payload.items())]

    def wait(self, name, deadline=None, count=1, **payload):
        return wait_for(
            lambda: (found := self.of(name, **payload)) and
            len(found) >= count and found, deadline,
            f"event {name} {payload}")
