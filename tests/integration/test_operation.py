"""What an operator does: start, signals, commands, odd directories."""

import json
import os
import pwd
import shutil
import signal
import subprocess

import pytest

from herd import Client, deliver, message
from servers import own_dir, run_as, wait_for
from test_changes import started


def test_directories_with_blanks(herd, test_dir, dovecot, login):
    h = herd(directory=own_dir(test_dir, "my own mail"))
    h.start_both()
    with Client(dovecot, login) as client:
        client.append("INBOX", message("Blank"))
    account = h.add_account(dovecot, login)
    h.wait_live(account)
    h.assert_same(account, dovecot, login)


def test_check_of_the_configuration(herd):
    h = herd()
    ok = subprocess.run([h.programs.mailherd, "-t", "-c", h.conf],
                        env=h.env(), capture_output=True, **run_as())
    assert ok.returncode == 0, ok.stderr
    for bad in ("lease_ttl=1", "no_such_thing=1", "lease_renew=9",
                "worker_role=queen"):
        done = subprocess.run(
            [h.programs.mailherd, "-t", "-c", h.conf, "-o", bad],
            env=h.env(), capture_output=True, text=True, **run_as())
        assert done.returncode == 78, (bad, done)
        assert bad.split("=")[0] in done.stderr, (bad, done.stderr)


def test_check_looks_at_all_that_a_start_needs(herd):
    h = herd()
    nothing = os.path.join(h.dir, "nothing")
    for code, setting in ((69, "database=host=/nowhere"),
                          (69, "redis=unix:/nowhere"),
                          (78, f"blob_dir={nothing}"),
                          (78, f"secret_key_file={nothing}")):
        done = subprocess.run(
            [h.programs.mailherd, "-t", "-c", h.conf, "-o", setting],
            env=h.env(), capture_output=True, text=True, timeout=60,
            **run_as())
        assert done.returncode == code, (setting, done)
        assert setting.split("=")[0] + ": " in done.stderr, done.stderr


def test_who_may_read_the_configuration(herd):
    """F4: a reload that will fail and a password open to everybody are
    told before either matters."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    h = herd()
    name = pwd.getpwuid(run_as()["user"]).pw_name
    os.chmod(h.dir, 0o755)
    os.chown(h.conf, 0, 0)
    for mode, password, told in ((0o600, "", "a reload will fail"),
                                 (0o644, "x", "lets everybody read"),
                                 (0o644, "", None)):
        os.chmod(h.conf, mode)
        done = subprocess.run(
            [h.programs.mailherd, "-t", "-c", h.conf, "-o", f"user={name}",
             "-o", f"redis_password={password}"], env=h.env(),
            capture_output=True, text=True, timeout=60)
        said = [t for t in ("a reload will fail", "lets everybody read")
                if t in done.stderr]
        assert said == ([told] if told else []), (mode, done)


def test_root_works_as_the_daemon(herd):
    """B7: what mailherdctl does as root, the daemon can go on with."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    h = herd()
    user = run_as()["user"]
    name = pwd.getpwuid(user).pw_name
    os.chmod(h.dir, 0o755)
    shutil.rmtree(os.path.join(h.dir, "blobs"))
    for command in (["init"], ["blob", "gc", "--min-age", "0"]):
        subprocess.run([h.programs.ctl, "-c", h.conf, "-o", f"user={name}",
                        *command], env=h.env(), check=True, timeout=60)
    owners = {os.stat(os.path.join(path, entry)).st_uid
              for path, folders, files in os.walk(os.path.join(h.dir, "blobs"))
              for entry in folders + files + ["."]}
    assert owners == {user}


def start_and_fail(h, *overrides):
    """Exit code and log of a start that does not go well."""
    args = [arg for o in overrides for arg in ("-o", o)]
    done = subprocess.run(
        [h.programs.mailherd, "-f", "-c", h.conf, *args], env=h.env(),
        capture_output=True, text=True, timeout=60, **run_as())
    return done.returncode, done.stderr


def test_no_start_with_a_schema_that_does_not_fit(herd):
    """B8: the refusal says what to run."""
    h = herd()
    h.sql("INSERT INTO schema_version (version, name, works_with) "
          "VALUES (900, 'future', 900)")
    code, text = start_and_fail(h)
    assert code == 78 and "upgrade mailherd" in text, text
    h.sql("DELETE FROM schema_version WHERE version > 1")
    code, text = start_and_fail(h)
    assert code == 78 and "mailherdctl migrate" in text, text
    h.sql("DROP SCHEMA mailherd CASCADE")
    code, text = start_and_fail(h)
    assert code == 78 and "mailherdctl init" in text, text


def test_no_start_and_no_blob_without_the_mount(herd, dovecot, login):
    """B6: what is missing is not begun anew, at the start and later."""
    h = herd(backoff_first=1)
    blobs = os.path.join(h.dir, "blobs")
    h.start_both()
    account = h.add_account(dovecot, login)
    h.wait_live(account)
    os.rename(blobs, blobs + ".unmounted")
    os.mkdir(blobs)
    with Client(dovecot, login) as client:
        client.append("INBOX", message("While it is away"))
    wait_for(lambda: "mounted?" in (h.account(account)["last_error"] or ""),
             what="told what is missing")
    assert os.listdir(blobs) == []
    code, text = start_and_fail(h, "instance=second")
    assert code == 78 and "mounted?" in text, text
    os.rmdir(blobs)
    os.rename(blobs + ".unmounted", blobs)
    wait_for(lambda: h.sql("SELECT 1 FROM messages WHERE account_id = %s "
                           "AND subject = 'While it is away'", (account,)),
             what="synced after the mount")
    h.assert_same(account, dovecot, login)


def test_all_daemons_of_the_host_answer(herd, dovecot, login):
    """F-F3: instances are named; drain has a way back."""
    h = herd()
    here = ["-o", f"control_socket={h.dir}/"]
    for role, instance in (("sync", "0"), ("sync", "1"), ("jobs", "0")):
        h.start(role, instance)
    account = h.add_account(dovecot, login)
    h.wait_live(account)

    def names(command):
        return [row["daemon"] for row in h.ctl(*here, command)]

    wait_for(lambda: names("status") == ["sync-0", "sync-1", "jobs-0"],
             what="all answer")
    wait_for(lambda: set(names("ps")) == {"sync-0", "sync-1", "jobs-0"},
             what="children of all")
    assert [row["ok"] for row in h.ctl(*here, "reload")] == [True] * 3
    wait_for(lambda: h.account(account)["owner"], what="owned")
    h.ctl(*here, "drain")
    wait_for(lambda: "draining" in (h.account(account)["next"] or ""),
             what="nobody claims it, and it is said so")
    assert {row["state"] for row in h.ctl(*here, "status")} == {"draining"}
    h.ctl(*here, "undrain")
    wait_for(lambda: h.account(account)["owner"], what="owned again")
    assert h.ctl1(*here, "explain", account)["source"] == "owner"


def test_who_starts_it_is_told_the_truth(herd):
    """F-F2: the parent returns when the daemon is ready, or with its error."""
    h = herd()
    log = os.path.join(h.dir, "background.log")
    pid = None

    def start(*overrides):
        args = [arg for o in overrides for arg in ("-o", o)]
        return subprocess.run(
            [h.programs.mailherd, "-c", h.conf, "-o", f"log_file={log}",
             *args], env=h.env(), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            timeout=60, **run_as())

    done = start("database=dbname=nothing host=/nowhere", "blob_dir=/nowhere")
    assert done.returncode == 0, done.stderr  # PostgreSQL will come back
    status = h.ctl1("status")
    pid = status["pid"]
    try:
        again = start()
        assert again.returncode == 75 and "another mailherd" in again.stderr
    finally:
        os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), what="ended")
    h.sql("DELETE FROM schema_version")
    bad = start()
    assert bad.returncode == 78 and "mailherdctl init" in bad.stderr


def test_usage_errors(herd):
    h = herd()
    assert h.run_ctl("no-such-command", check=False).returncode == 64
    done = h.run_ctl("account", "show", "nobody@example.org", check=False)
    assert done.returncode != 0
    assert len(done.stderr.strip().splitlines()) == 1
    done = subprocess.run([h.programs.mailherd, "--frobnicate"],
                          env=h.env(), capture_output=True, **run_as())
    assert done.returncode == 64
    done = subprocess.run([h.programs.mailherd, "-V"], env=h.env(),
                          capture_output=True, text=True, **run_as())
    assert done.returncode == 0 and "mailherd" in done.stdout


def test_init_and_migrate_can_be_repeated(herd):
    h = herd()
    for _ in range(2):
        h.run_ctl("init")
        assert h.ctl1("migrate")["schema"] >= 1


def test_commands_work_without_daemons(herd, dovecot, login):
    h = herd()
    account = h.add_account(dovecot, login)
    assert h.account(account)["state"] == "new"
    for args in (("user", "list"), ("account", "list"),
                 ("mailbox", "list", account), ("job", "list"),
                 ("quarantine", "list"), ("workers",),
                 ("message", "list", "--account", account)):
        h.run_ctl(*args)
    assert len(h.ctl("account", "list")) == 1
    assert h.account(f"{login}@example.org")["id"] == account
    done = h.run_ctl("status", check=False)
    assert done.returncode == 69, done


def test_status_ps_explain(herd, dovecot, login):
    h, account = started(herd, dovecot, login, 3)
    sync, jobs = h.daemons
    status = sync.ctl("status")[0]
    for key in ("worker_id role uptime_s owned hot warm cold sockets_open "
                "children redis postgres leases_lost fenced polls "
                "new_messages errors").split():
        assert key in status, key
    assert status["role"] == "sync" and jobs.ctl("status")[0]["role"] == "jobs"
    wait_for(lambda: sync.ctl("status")[0]["owned"] == 1, what="owned 1")
    for row in sync.ctl("ps") + jobs.ctl("ps"):
        for key in ("pid kind account_id state since_s rss_kb "
                    "generation").split():
            assert key in row, key
    assert account in json.dumps(sync.ctl("explain", account))
    workers = wait_for(lambda: h.ctl("workers"), what="heartbeats")
    assert workers
    # The plain forms are for people; they must not fail.
    for args in (("status",), ("ps",), ("explain", account)):
        h.run_ctl("-s", sync.socket, *args)

    def heartbeat():
        return json.loads(h.redis.client().get(
            f"sync:workers:{status['worker_id']}"))

    wait_for(lambda: heartbeat()["owned"] == 1, what="told by the heartbeat")
    assert "tiers" in heartbeat() and "ts" in heartbeat()


def test_signals(herd, dovecot, login):
    h, account = started(herd, dovecot, login, 3)
    for d in h.daemons:
        for sig in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            os.kill(d.pid, sig)
        wait_for(lambda: d.ctl("status"), what="still there")
    deliver(dovecot, login, message("After the signals"))
    h.assert_same(account, dovecot, login)


def test_stop_and_reload_by_command(herd, dovecot, login):
    h, account = started(herd, dovecot, login, 3)
    with open(h.conf, "a", encoding="utf-8") as f:
        f.write("search_backend = none\n")
    for d in h.daemons:
        told = d.ctl("reload")[0]
        assert told["restart"] == "search_backend"
        assert told["text"].endswith("restart changes search_backend")
        d.ctl("log", "info")
        d.ctl("stop")
        assert d.proc.wait(10) == 0


def test_no_secret_in_any_log(herd, dovecot, login, test_dir):
    dovecot.set_password(login, "Xyzzy-4711-secret")
    h = herd()
    h.start_both()
    account = h.add_account(dovecot, login, password="Xyzzy-4711-secret")
    h.wait_live(account)
    h.wait_owned(account)
    assert "Xyzzy" not in h.log_text()
    rows = h.sql("SELECT secret FROM accounts")
    assert b"Xyzzy" not in b"".join(bytes(r[0]) for r in rows)
    for args in (("account", "show", account), ("account", "list"),
                 ("job", "list")):
        assert b"Xyzzy" not in h.run_ctl(*args).stdout


def test_second_worker_takes_over(herd, dovecot, logins):
    """R-OPS-2: peers own the accounts within 15 s of a SIGTERM."""
    h = herd()
    first, _ = h.start_both()
    pairs = []
    for _ in range(4):
        name = next(logins)
        pairs.append((name, h.add_account(dovecot, name)))
    for name, account in pairs:
        h.wait_live(account)
        h.wait_owned(account)
    second = h.start("sync", "1")
    assert first.stop() == 0
    wait_for(lambda: second.ctl("status")[0]["owned"] == 4, 15,
             "the other worker owns all")
    for name, account in pairs:
        deliver(dovecot, name, message("New owner"))
        h.assert_same(account, dovecot, name)
