"""Mail servers that Debian does not let stand beside Dovecot.

scripts/lib/unpack-servers puts their programs into a directory below /tmp;
here is what it takes to run them from there: the paths, and the answers to
"may this user log in?", which both servers ask over a socket of ours.
"""

import contextlib
import functools
import glob
import os
import socket
import socketserver
import subprocess
import threading

from servers import Server, child_env, give, run_as

SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))), "scripts", "lib", "unpack-servers")


@functools.cache
def root():
    return subprocess.run([SCRIPT], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.strip()


def program(path):
    full = os.path.join(root(), path)
    assert os.path.exists(full), f"{full} is missing"
    return full


@functools.cache
def libraries():
    """Directories of shared libraries, as LD_LIBRARY_PATH wants them."""
    found = glob.glob(os.path.join(root(), "**", "*.so*"), recursive=True)
    return ":".join(sorted({os.path.dirname(path) for path in found}))


class Gate(threading.Thread):
    """Listens on a unix socket; answer(request file, reply file) speaks for
    one connection."""

    def __init__(self, path, answer):
        super().__init__(daemon=True)

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                with contextlib.suppress(OSError):
                    answer(self.rfile, self.wfile)

        class Listener(socketserver.ThreadingUnixStreamServer):
            daemon_threads = True
            request_queue_size = 128

        self.server = Listener(path, Handler)
        give(path)
        self.start()

    def run(self):
        self.server.serve_forever(poll_interval=0.2)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.join()


class UnpackedServer(Server):
    """Users u0000 and so on log in with the password `secret` until
    set_password says otherwise."""

    password = "secret"

    def __init__(self, base, name=None):
        self.name = name or self.name
        super().__init__(base)
        self.passwords = {}
        self.port = None

    def may_log_in(self, login, password):
        return self.passwords.get(login, self.password) == password

    def set_password(self, login, password):
        self.passwords[login] = password

    def env(self, **more):
        return child_env(LD_LIBRARY_PATH=libraries(), **more)

    def tool(self, *argv):
        """A command of the server's that ends; what it says."""
        return subprocess.run(argv, check=True, cwd=self.dir, env=self.env(),
                              capture_output=True, text=True,
                              **run_as()).stdout

    def is_greeting(self, *ports):
        """True when all of them answer; raises when it ended."""
        if self.proc.poll() is not None:
            raise EOFError
        for port in ports:
            with socket.create_connection(("127.0.0.1", port), 5) as s:
                if not s.recv(100):
                    return False
        return True
