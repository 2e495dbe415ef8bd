"""The mock server as the tests start it: see tests/mockimapd/README.md.

    with Mock(base, inbox=50) as mock:
        mock.call("deliver", account="u1", count=3)
        mock.fault("stall", account="u1", at="IDLE")

A Mock stands where a Dovecot stands: herd.add_account(mock, "u1"),
herd.assert_same(account, mock, "u1").
"""

import json
import os
import shutil
import socket
import subprocess
import threading

from herd import CRASHES, UNSOUND, assert_sound, build_dir
from servers import Server, child_env, end_process, give, run_as


class Refused(AssertionError):
    """The control port said no."""


class Mock(Server):
    """Options of the group every account is in (u*) as keywords: inbox,
    other, folders, size, big_share, big_size, capabilities, ..."""

    name = "mock"
    password = "secret"

    def __init__(self, base, certs=None, name=None, seed=1, **group):
        self.name = name or self.name
        super().__init__(base)
        self.certs, self.seed, self.group_options = certs, seed, group
        self.port = self.tls_port = self.control_port = None
        self.client = None
        self.lock = threading.Lock()
        self.binary = shutil.copy(os.path.join(build_dir(), "mockimapd"),
                                  self.dir)

    def start(self):
        script = give(self._write_script())
        argv = [self.binary, "-x", script, "-S", str(self.seed),
                "-p", str(self.port or 0), "-c", str(self.control_port or 0)]
        if self.certs:
            cert, key = self.certs["good"]
            argv += ["-s", str(self.tls_port or 0), "-T", cert, "-K", key]
        with open(self.log, "ab") as log:
            give(self.log)
            self.proc = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=log, cwd=self.dir, env=child_env(), **run_as())
        line = self.proc.stdout.readline()
        if not line:
            raise RuntimeError(f"mockimapd: {self.log_text()}")
        ports = json.loads(line)
        self.port, self.control_port = ports["imap"], ports["control"]
        self.tls_port = ports.get("imaps")
        self.client = socket.create_connection(
            ("127.0.0.1", self.control_port), 30).makefile("rwb")

    def _write_script(self):
        path = os.path.join(self.dir, "begin.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write(json.dumps({"cmd": "group", "name": "default",
                                **self.group_options}) + "\n")
        os.chmod(path, 0o644)
        return path

    def stop(self):
        if self.client:
            self.client.close()
            self.client = None
        if self.proc:
            code = end_process(self.proc)
            self.proc.stdout.close()
            self.proc = None
            assert_sound(self.log_text())
            assert code not in CRASHES, \
                f"{UNSOUND}: exit code {code} of mockimapd"

    def call(self, cmd, **arguments):
        """One command; its answer.  May be used from several threads."""
        line = json.dumps({"cmd": cmd, **arguments}) + "\n"
        with self.lock:
            self.client.write(line.encode())
            self.client.flush()
            answer = json.loads(self.client.readline())
        if not answer["ok"]:
            raise Refused(f"{cmd} {arguments}: {answer['error']}")
        return answer

    # -- the usual calls --

    def deliver(self, account, count=1, **more):
        return self.call("deliver", account=account, count=count,
                         **more)["uids"]

    def fault(self, kind, **more):
        return self.call("fault", kind=kind, **more)["id"]

    def clear(self, fault=0):
        return self.call("clear", id=fault)

    def status(self, account=None):
        return self.call("status", **({"account": account} if account
                                      else {}))

    def accounts(self, match="*"):
        return self.call("accounts", match=match)["accounts"]

    def connections(self, match="*"):
        return self.call("connections", match=match)["connections"]

    def idle(self, account):
        return self.status(account)["idle"]

    def calls(self, since=1, **more):
        """Entries of the call log, as dictionaries."""
        found = self.call("log", since=since, **more)
        assert not found["lost"], f"the log lost {found['lost']} entries"
        return [dict(zip(("seq", "mono_us", "wall_us", "conn", "account",
                          "kind", "text"), e)) for e in found["entries"]]

    def server_state(self, account):
        """{folder: {uid: (flags, digest)}}, as herd.server_state()."""
        return {
            name: {uid: (frozenset(w.lower() for w in flags.split()), digest)
                   for uid, flags, _, digest in folder["messages"]}
            for name, folder in
            self.call("state", account=account)["folders"].items()}
