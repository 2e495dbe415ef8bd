"""The outside world of the tests: PostgreSQL, Redis and Dovecot; Cyrus and
Courier have files of their own.

Each class starts one private server in a directory of its own, on unix
sockets or a free port of 127.0.0.1, and is a context manager that ends what
it started.  Nothing listens beyond loopback.  PostgreSQL refuses to run as
root, so when the tests are run by root every server (and mailherd) runs as
an unprivileged user; started by anybody else they run as that user.

    with Postgres(base) as pg, Redis(base) as redis, Dovecot(base) as imap:
        ...

The benchmarks in scripts/bench use the same classes.
"""

import contextlib
import glob
import grp
import os
import pwd
import resource
import shutil
import signal
import smtplib
import socket
import subprocess
import tempfile
import time

import psycopg2
import redis as redis_client

DEADLINE = float(os.environ.get("MAILHERD_TEST_DEADLINE", "60"))

# Whoever runs programs that are slow by nature (sanitizers) stretches all
# limits of time by this; they hold as written everywhere else.
STRETCH = float(os.environ.get("MAILHERD_TEST_STRETCH", "1"))

# Servers that count on many descriptors get what the host allows.
_, HARD_LIMIT = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (HARD_LIMIT, HARD_LIMIT))


# --- who runs the servers ----------------------------------------------------

def servant():
    """The user the servers run as: ourselves, or nobody when we are root."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    return pwd.getpwnam("nobody")


def run_as():
    """Arguments of subprocess.Popen that make a child that user."""
    if os.geteuid() != 0:
        return {}
    user = servant()
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def elsewhere(host, argv):
    """The command as if on a host of that name, or None where that cannot be
    done: it takes root, who gets a UTS namespace."""
    if os.geteuid() != 0 or subprocess.run(
            ["unshare", "--uts", "true"], capture_output=True,
            check=False).returncode:
        return None
    user = servant()
    return ["unshare", "--uts", "sh", "-c",
            'hostname "$1" && shift && exec "$@"', "sh", host,
            "setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}",
            "--clear-groups", "--", *argv]


def child_env(**more):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith("PG") and k not in ("TZ", "MAILHERD_BUILD")}
    user = servant()
    env.update(HOME="/tmp", USER=user.pw_name, LOGNAME=user.pw_name,
               LC_ALL="C.UTF-8")
    env["PATH"] = env.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"
    env.update(more)
    return env


def give(path):
    """Hands a file or directory to the user the servers run as."""
    if os.geteuid() == 0:
        user = servant()
        os.chown(path, user.pw_uid, user.pw_gid)
    return path


def own_dir(*parts):
    path = os.path.join(*parts)
    os.makedirs(path, exist_ok=True)
    return give(path)


def write_file(path, text, mode=0o644):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)
    return give(path)


def work_dir(prefix="mailherd-test-"):
    """A directory whose name is short: unix socket paths end at 107 bytes."""
    path = tempfile.mkdtemp(prefix=prefix, dir="/tmp")
    os.chmod(path, 0o755)
    return give(path)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# --- waiting -----------------------------------------------------------------

class Timeout(AssertionError):
    pass


def within(seconds):
    """A limit of time, for whoever measures by himself."""
    return seconds * STRETCH


def wait_for(condition, deadline=None, what=None, every=0.02):
    """Returns the first true value of condition(); fails at the deadline.

    Looks often at first and then less: many tests wait side by side, and
    looking must not keep the programs from what is waited for.
    """
    limit = within(DEADLINE if deadline is None else deadline)
    end = time.monotonic() + limit
    last_error = None
    while True:
        try:
            value = condition()
            last_error = None
            if value:
                return value
        except (AssertionError, OSError, psycopg2.Error,
                redis_client.RedisError, subprocess.CalledProcessError,
                LookupError) as e:
            last_error = e
        if time.monotonic() > end:
            name = what or getattr(condition, "__name__", "condition")
            raise Timeout(f"not within {limit:g} s: {name}"
                          + (f" ({last_error})" if last_error else ""))
        time.sleep(every)
        every = min(every * 1.4, max(every, 0.4))


def end_process(proc, sig=signal.SIGTERM, limit=10):
    """Ends a process of ours; returns its exit code."""
    if proc.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            proc.send_signal(sig)
        try:
            return proc.wait(within(limit))
        except subprocess.TimeoutExpired:
            proc.kill()
    return proc.wait()


def descendants(root):
    children = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(parent, []).append(int(pid))
    found, queue = [], [root]
    while queue:
        for pid in children.get(queue.pop(), ()):
            found.append(pid)
            queue.append(pid)
    return found


class Server:
    """What all of them have: a directory, a log, start, stop, `with`."""

    name = "server"

    def __init__(self, base):
        self.dir = own_dir(base, self.name)
        self.log = os.path.join(self.dir, "log")
        self.proc = None

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exc):
        self.stop()

    def popen(self, argv, **more):
        with open(self.log, "ab") as log:
            give(self.log)
            self.proc = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.dir, env=self.env(), **run_as(), **more)
        return self.proc

    def env(self):
        return child_env()

    def log_text(self):
        try:
            with open(self.log, encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def restart(self):
        self.stop()
        self.start()


# --- PostgreSQL ----------------------------------------------------------------

def pg_program(name):
    """Debian keeps these outside PATH; the newest version wins."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"),
                   key=lambda p: int(p.split("/")[4].split(".")[0]))
    return found[-1] if found else shutil.which(name) or name


class Postgres(Server):
    name = "pg"

    def __init__(self, base, durable=False, name=None, **settings):
        self.name = name or self.name
        super().__init__(base)
        self.data = os.path.join(self.dir, "data")
        self.settings = {
            "listen_addresses": "''",
            "client_connection_check_interval": "2s",
            "max_connections": "200",
            "shared_buffers": "256MB",
            "max_wal_size": "4GB",
            "log_line_prefix": "'%m [%p] %q%a '",
            "timezone": "'UTC'",
            "log_timezone": "'UTC'",
        }
        if not durable:
            self.settings.update(fsync="off", synchronous_commit="off",
                                 full_page_writes="off")
        self.settings.update(settings)

    def start(self):
        if not os.path.exists(self.data):
            subprocess.run(
                [pg_program("initdb"), "--no-sync", "--no-instructions",
                 "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8",
                 "-U", "postgres", "-D", self.data],
                check=True, cwd=self.dir, env=child_env(),
                stdout=subprocess.DEVNULL, **run_as())
            with open(os.path.join(self.data, "postgresql.auto.conf"),
                      "a") as f:
                for key, value in self.settings.items():
                    f.write(f"{key} = {value}\n")
        self.run()
        # An ordinary role: nothing of mailherd may need a superuser.
        self.sql("DO $$ BEGIN CREATE ROLE mailherd LOGIN; "
                 "EXCEPTION WHEN duplicate_object THEN NULL; END $$")

    def run(self):
        self.popen([pg_program("postgres"), "-D", self.data, "-k", self.dir])
        wait_for(self.answers, what=f"PostgreSQL up, see {self.log}")

    def answers(self):
        if self.proc.poll() is not None:
            raise RuntimeError(f"PostgreSQL ended: {self.log_text()[-2000:]}")
        self.sql("SELECT 1")
        return True

    def stop(self):
        if self.proc:
            end_process(self.proc, signal.SIGINT)  # fast: rolls back
            self.proc = None

    def crash(self):
        """As a power cut: no checkpoint, recovery at the next start."""
        end_process(self.proc, signal.SIGQUIT)
        self.proc = None

    def kill_all(self):
        """No process has another instruction."""
        self.proc.send_signal(signal.SIGSTOP)  # it would start others
        for pid in [*descendants(self.proc.pid), self.proc.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.proc.wait()
        self.proc = None

    def copy(self, other, *options):
        """As the other is now; -R makes a standby of it."""
        subprocess.run(
            [pg_program("pg_basebackup"), "-D", self.data, "--no-sync",
             "-c", "fast", "-d", f"host={other.dir} user=postgres", *options],
            check=True, cwd=self.dir, env=child_env(), **run_as())

    def connect(self, dbname="postgres", user="postgres"):
        conn = psycopg2.connect(host=self.dir, dbname=dbname, user=user,
                                connect_timeout=10)
        conn.autocommit = True
        return conn

    def sql(self, text, args=None, dbname="postgres"):
        conn = self.connect(dbname)
        try:
            with conn.cursor() as cur:
                cur.execute(text, args)
                return cur.fetchall() if cur.description else None
        finally:
            conn.close()

    def create_database(self, name):
        self.sql(f'CREATE DATABASE "{name}" OWNER mailherd')
        return f"host='{self.dir}' dbname='{name}' user=mailherd"

    def drop_database(self, name):
        self.sql(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


class Pair:
    """A primary and a standby that takes its place: what a herd knows of its
    PostgreSQL is `host=a,b`.

    As in the field somebody else decides who is the primary: kill(), promote()
    and mend(), in that order, as often as one likes."""

    def __init__(self, base, is_synchronous, **settings):
        self.is_synchronous = is_synchronous
        self.nodes = [
            Postgres(base, name=name, synchronous_commit="on",
                     wal_keep_size="1GB", wal_receiver_timeout="5s",
                     wal_retrieve_retry_interval="200ms", **settings)
            for name in ("pg-a", "pg-b")]
        self.primary = self.nodes[0]
        self.timeline = 1
        self.standby = None  # while there is one
        self.lost = 0        # commits that no standby got

    def __enter__(self):
        try:
            self.primary.start()
            self.mend()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        for node in self.nodes:
            node.stop()

    def other(self):
        return next(n for n in self.nodes if n is not self.primary)

    def mend(self):
        """Whoever is not the primary becomes its standby, from nothing."""
        node = self.other()
        shutil.rmtree(node.data, ignore_errors=True)
        node.copy(self.primary, "-R")
        node.run()
        wait_for(self._senders, what="the standby streams")
        if self.is_synchronous:
            self.primary.sql("ALTER SYSTEM SET synchronous_standby_names "
                             "= '*'")
            self.primary.sql("SELECT pg_reload_conf()")
            wait_for(lambda: self.primary.sql(
                "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"),
                what="the standby is waited for")
        self.standby = node

    def _senders(self):
        return [pid for pid, in self.primary.sql(
            "SELECT pid FROM pg_stat_replication "
            "WHERE state = 'streaming'")]

    def cut(self):
        """The standby hears nothing any more: what is committed from now on
        is lost, unless one waits for it."""
        for pid in self._senders():
            os.kill(pid, signal.SIGSTOP)

    def kill(self):
        """The primary's host loses its power."""
        self.timeline, = self.primary.sql(
            "SELECT timeline_id FROM pg_control_checkpoint()")[0]
        self.primary.kill_all()

    def promote(self):
        """The standby is the primary; how many commits it did not get."""
        old, self.primary, self.standby = self.primary, self.standby, None
        # Its receiver has to see that nobody is there, or is told to end.
        (got,), = self.primary.sql("SELECT greatest("
                                   "pg_last_wal_receive_lsn(), "
                                   "pg_last_wal_replay_lsn())::text")
        assert self.primary.sql("SELECT pg_promote(true, 30)")[0][0]
        lost = subprocess.run(
            [pg_program("pg_waldump"), "-r", "Transaction", "-s", got,
             "-t", str(self.timeline), "-p", os.path.join(old.data, "pg_wal")],
            capture_output=True, text=True, env=child_env(), **run_as(),
            check=False).stdout.count(" COMMIT ")
        self.lost += lost
        return lost

    # -- as one Postgres --

    def connect(self, dbname="postgres", user="postgres"):
        return self.primary.connect(dbname, user)

    def sql(self, text, args=None, dbname="postgres"):
        return self.primary.sql(text, args, dbname)

    def create_database(self, name):
        self.primary.create_database(name)
        hosts = ",".join(n.dir for n in self.nodes)
        return f"host='{hosts}' dbname='{name}' user=mailherd"

    def drop_database(self, name):
        self.primary.drop_database(name)


# --- Redis ---------------------------------------------------------------------

class Redis(Server):
    name = "redis"

    def __init__(self, base):
        super().__init__(base)
        self.socket = os.path.join(self.dir, "sock")
        self.url = f"unix:{self.socket}"

    def start(self):
        self.popen(["redis-server", "--port", "0", "--unixsocket",
                    self.socket, "--save", "", "--appendonly", "no",
                    "--dir", self.dir])
        wait_for(lambda: self.client().ping(),
                 what=f"Redis up, see {self.log}")

    def stop(self):
        if self.proc:
            end_process(self.proc)
            self.proc = None

    def client(self):
        # A test that stopped the server must get to continue it.
        return redis_client.Redis(unix_socket_path=self.socket,
                                  socket_timeout=10, decode_responses=True)


# --- certificates ----------------------------------------------------------------

class Certificates:
    """A private authority and a certificate for each fault, by openssl.

    good        localhost and 127.0.0.1, signed by the authority
    self-signed the same names, signed by itself
    wrong-host  mail.example.org, signed by the authority
    expired     as good, ended long ago
    """

    def __init__(self, base):
        self.dir = own_dir(base, "certs")
        self.ca = os.path.join(self.dir, "ca.pem")
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt",
                      "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                      "-subj", "/CN=mailherd test authority",
                      "-addext", "basicConstraints=critical,CA:TRUE",
                      "-addext", "keyUsage=critical,keyCertSign,cRLSign",
                      "-keyout", self._path("ca", "key"), "-out", self.ca)
        local = "DNS:localhost,IP:127.0.0.1"
        self._signed("good", local)
        self._signed("wrong-host", "DNS:mail.example.org")
        self._signed("expired", local,
                     "-startdate", "20200101000000Z",
                     "-enddate", "20200201000000Z")
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt",
                      "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                      "-subj", "/CN=localhost",
                      "-addext", f"subjectAltName={local}",
                      "-keyout", self._path("self-signed", "key"),
                      "-out", self._path("self-signed", "pem"))

    def _path(self, name, ext):
        return os.path.join(self.dir, f"{name}.{ext}")

    def _openssl(self, *args):
        done = subprocess.run(["openssl", *args], cwd=self.dir,
                              env=child_env(), capture_output=True,
                              text=True, **run_as())
        if done.returncode:
            raise RuntimeError(f"openssl {args[0]}: {done.stderr}")

    def _signed(self, name, alt_names, *dates):
        self._openssl("req", "-newkey", "ec", "-pkeyopt",
                      "ec_paramgen_curve:P-256", "-nodes",
                      "-subj", f"/CN={name}", "-keyout",
                      self._path(name, "key"), "-out",
                      self._path(name, "csr"))
        # `openssl ca` is the only one of Debian 12 that can date backwards.
        conf = self._path(name, "cnf")
        write_file(conf, "\n".join([
            "[ca]", "default_ca=own", "[own]",
            f"database={self._path(name, 'db')}",
            f"new_certs_dir={self.dir}", f"certificate={self.ca}",
            f"private_key={self._path('ca', 'key')}", "rand_serial=yes",
            "default_md=sha256", "policy=any", "x509_extensions=ext",
            "[any]", "commonName=supplied", "[ext]",
            "basicConstraints=CA:FALSE", f"subjectAltName={alt_names}",
            "extendedKeyUsage=serverAuth", ""]))
        write_file(self._path(name, "db"), "")
        self._openssl("ca", "-batch", "-notext", "-config", conf,
                      "-in", self._path(name, "csr"),
                      "-out", self._path(name, "pem"),
                      *(dates or ("-days", "30")))

    def __getitem__(self, name):
        return self._path(name, "pem"), self._path(name, "key")


# --- Dovecot -----------------------------------------------------------------------

# What is advertised; the server underneath stays the same.
FULL = None
NO_QRESYNC = ("IMAP4rev1 LITERAL+ SASL-IR LOGIN-REFERRALS ID ENABLE IDLE "
              "NAMESPACE UIDPLUS MOVE SPECIAL-USE LIST-EXTENDED LIST-STATUS "
              "UNSELECT ESEARCH CONDSTORE AUTH=PLAIN")
PLAIN = "IMAP4rev1 AUTH=PLAIN"


def lmtp_deliver(port, login, raw, sender):
    with smtplib.LMTP("127.0.0.1", port) as lmtp:
        lmtp.sendmail(sender, [f"{login}@example.org"], raw)


class Dovecot(Server):
    """Users u0000 to u1999 log in with the password `secret` until
    set_password says otherwise; each has folders with the usual roles."""

    name = "dovecot"
    password = "secret"

    def __init__(self, base, certs=None, cert="good", capability=FULL,
                 format="sdbox", name=None, extra="", plaintext=True):
        if name:
            self.name = name
        super().__init__(base)
        self.capability = capability
        self.format = format
        self.cert = certs[cert] if certs else None
        self.extra = extra
        self.plaintext = plaintext
        self.conf = os.path.join(self.dir, "conf")
        self.passwd = os.path.join(self.dir, "passwd")
        self.mail = own_dir(self.dir, "mail")
        self.port = self.tls_port = self.lmtp_port = None
        self.passwords = {f"u{n:04d}": self.password for n in range(2000)}

    # Dovecot itself runs unprivileged too, so one configuration fits all.
    def _configuration(self):
        user = servant()
        group = grp.getgrgid(user.pw_gid).gr_name
        location = {"sdbox": "sdbox:~/sdbox", "maildir": "maildir:~/Maildir"}
        services = "".join(
            f"service {name} {{\n  chroot =\n{more}}}\n"
            for name, more in {
                "anvil": "  client_limit = 20000\n", "stats": "",
                "auth": "  client_limit = 20000\n",
                "imap": "  process_limit = 5000\n  service_count = 100\n",
                "imap-login":
                    "  service_count = 0\n  process_min_avail = 1\n"
                    "  client_limit = 5000\n  process_limit = 2\n"
                    "  inet_listener imap {\n"
                    f"    address = 127.0.0.1\n    port = {self.port}\n  }}\n"
                    "  inet_listener imaps {\n"
                    f"    address = 127.0.0.1\n    port = "
                    f"{self.tls_port if self.cert else 0}\n  }}\n",
                "lmtp":
                    "  inet_listener lmtp {\n"
                    f"    address = 127.0.0.1\n    port = {self.lmtp_port}\n"
                    "  }\n",
            }.items())
        folders = "".join(
            f"  mailbox {name} {{\n    special_use = \\{name}\n"
            "    auto = create\n  }\n"
            for name in ("Sent", "Drafts", "Archive", "Trash", "Junk"))
        ssl = "ssl = no\n"
        if self.cert:
            ssl = (f"ssl = yes\nssl_cert = <{self.cert[0]}\n"
                   f"ssl_key = <{self.cert[1]}\n"
                   "ssl_min_protocol = TLSv1.2\n")
        return f"""
base_dir = {self.dir}/run
state_dir = {self.dir}/state
instance_name = mailherd-test
log_path = {self.log}
debug_log_path = {self.dir}/debug
default_internal_user = {user.pw_name}
default_login_user = {user.pw_name}
default_internal_group = {group}
default_vsz_limit = 0
first_valid_uid = 1
first_valid_gid = 1
last_valid_uid = 0
last_valid_gid = 0
listen = 127.0.0.1
protocols = imap lmtp
auth_mechanisms = plain login
auth_verbose = yes
auth_failure_delay = 0
disable_plaintext_auth = {'no' if self.plaintext else 'yes'}
mail_max_userip_connections = 10000
mail_location = {location[self.format]}
mail_fsync = never
mailbox_list_index = yes
lmtp_save_to_detail_mailbox = no
recipient_delimiter =
imap_logout_format = user=%u in=%i out=%o bodies=%{{fetch_body_count}} \
headers=%{{fetch_hdr_count}}
{f'imap_capability = {self.capability}' if self.capability else ''}
passdb {{
  driver = passwd-file
  args = scheme=PLAIN {self.passwd}
}}
userdb {{
  driver = static
  args = uid={user.pw_uid} gid={user.pw_gid} home={self.mail}/%u \
allow_all_users=yes
}}
namespace inbox {{
  inbox = yes
{folders}}}
protocol lmtp {{
  postmaster_address = postmaster@example.org
  auth_username_format = %Ln
}}
{ssl}{services}{self.extra}
"""

    def start(self):
        own_dir(self.dir, "run")
        own_dir(self.dir, "state")
        # A port may be taken between choosing it and listening on it.
        for attempt in range(5):
            if self.port is None or attempt:
                self.port, self.tls_port, self.lmtp_port = (
                    free_port(), free_port(), free_port())
            self._write_passwords()
            write_file(self.conf, self._configuration())
            self.popen(["dovecot", "-F", "-c", self.conf])
            try:
                wait_for(self.answers, 30, f"Dovecot up, see {self.log}")
                return
            except (Timeout, EOFError):
                self.stop()
        raise RuntimeError(f"Dovecot does not start: {self.log_text()}")

    def answers(self):
        if self.proc.poll() is not None:
            raise EOFError
        for port in (self.port, self.lmtp_port):
            with socket.create_connection(("127.0.0.1", port), 5) as s:
                if not s.recv(100):
                    return False
        return True

    def stop(self):
        if self.proc:
            end_process(self.proc)
            self.proc = None

    def _write_passwords(self):
        fresh = write_file(self.passwd + ".new", "".join(
            f"{u}:{{PLAIN}}{p}\n" for u, p in self.passwords.items()))
        os.rename(fresh, self.passwd)

    def set_password(self, user, password):
        """Returns when Dovecot, which looks once a second, knows it."""
        self.passwords[user] = password
        self._write_passwords()
        wait_for(lambda: self.doveadm("auth", "test", user, password) or True,
                 what=f"Dovecot reads the new password of {user}", every=0.2)

    def doveadm(self, *args):
        return subprocess.run(
            ["doveadm", "-c", self.conf, *args], check=True, cwd=self.dir,
            env=child_env(), capture_output=True, text=True,
            **run_as()).stdout

    def deliver(self, login, raw, sender):
        lmtp_deliver(self.lmtp_port, login, raw, sender)

    def new_uidvalidity(self, login, path, number):
        self.doveadm("mailbox", "update", "-u", login, "--uid-validity",
                     str(number), path)

    def logins(self, user=None):
        """Login attempts that reached the server: (good, bad)."""
        good = bad = 0
        for line in self.log_text().splitlines():
            if "imap-login: Info: Login: " in line:
                good += user is None or f"user=<{user}>" in line
            elif "auth: Info: passwd-file(" in line:
                bad += user is None or f"passwd-file({user}," in line
        return good, bad

    def is_logged_in(self, user):
        return user in self.doveadm("who")

    def fetched(self, user):
        """(bodies, headers) that sessions of a user fetched; finished
        sessions only."""
        bodies = headers = 0
        for line in self.log_text().splitlines():
            if f" user={user} in=" in line:
                for word in line.split():
                    key, _, value = word.partition("=")
                    if key == "bodies":
                        bodies += int(value)
                    elif key == "headers":
                        headers += int(value)
        return bodies, headers
