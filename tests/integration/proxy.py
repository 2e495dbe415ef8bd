"""A small IMAP proxy between mailherd and a server: delays each direction,
takes STARTTLS away as a man in the middle would, falls silent, lies; it keeps
what the client said.  Runs in a thread, on a free port of 127.0.0.1."""

import contextlib
import socket
import threading
import time
from collections import deque


class Session:
    """What passed over one connection."""

    def __init__(self):
        self.begun = time.monotonic()
        self.ended = None
        self.last = None
        self.flights = 0  # times the client spoke after the server did
        self.said = []
        self.heard = []  # when bytes of the server came
        self.tail = b""
        self.is_stalled = False
        self.is_silent = False


class Proxy:
    def __init__(self, target_port, delay=0.0, strip_starttls=False):
        self.target = ("127.0.0.1", target_port)
        self.delay = delay  # seconds, each direction
        self.strip = strip_starttls
        # Bytes of the server that must not pass: with them the connection
        # goes silent, as the reader of a message that nobody survives.
        self.stall = None
        # A function of bytes to bytes, for what the server says.
        self.rewrite = None
        self.said = []      # lines of the client, in order
        self.sessions = []  # Session, one a connection
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.sockets = set()
        self.lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.cut()

    def cut(self):
        """Breaks every connection, as a network would."""
        with self.lock:
            for s in self.sockets:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def silence(self):
        """Nothing passes to the clients of now any more, and no end either:
        a connection that died behind NAT."""
        with self.lock:
            for session in self.sessions:
                session.is_silent = True

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.target)
            except OSError:
                client.close()
                continue
            for s in (client, server):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                session = Session()
                self.sessions.append(session)
                self.sockets |= {client, server}
            for args in ((client, server, "client", session),
                         (server, client, "server", session)):
                threading.Thread(target=self._pump, args=args,
                                 daemon=True).start()

    def _pump(self, source, sink, side, session):
        """Bytes keep their distance in time: a pipeline stays one flight."""
        queue, ready = deque(), threading.Condition()

        def send():
            while True:
                with ready:
                    while not queue:
                        ready.wait()
                    due, data = queue.popleft()
                pause = due - time.monotonic()
                if pause > 0:
                    time.sleep(pause)
                try:
                    if data is None:
                        sink.shutdown(socket.SHUT_WR)
                        return
                    sink.sendall(data)
                except OSError:
                    return

        threading.Thread(target=send, daemon=True).start()
        while True:
            try:
                data = source.recv(65536)
            except OSError:
                data = b""
            now = time.monotonic()
            with self.lock:
                if data:
                    if side == "client" and session.last == "server":
                        session.flights += 1
                    session.last = side
                else:
                    session.ended = session.ended or now
                if side == "server" and data:
                    session.heard.append(now)
                if side == "client" and data:
                    lines = data.decode("utf-8", "replace").splitlines()
                    session.said += lines
                    self.said += lines
            if session.is_silent and side == "server" and data:
                continue
            if self.rewrite and side == "server":
                data = self.rewrite(data)
            if self.stall and side == "server":
                session.is_stalled |= self.stall in session.tail + data
                session.tail = data[-100:]
                if session.is_stalled and data:
                    continue
            if self.strip and data:
                data, answer = self._without_starttls(side, data)
                if answer:
                    with contextlib.suppress(OSError):
                        source.sendall(answer)
                    continue
            with ready:
                queue.append((now + self.delay, data or None))
                ready.notify()
            if not data:
                return

    @property
    def connections(self):
        return len(self.sessions)

    @staticmethod
    def _without_starttls(side, data):
        if side == "server":
            return data.replace(b" STARTTLS", b"").replace(
                b" LOGINDISABLED", b""), None
        if b"STARTTLS" in data.upper():
            tag = data.split(b" ", 1)[0]
            return b"", tag + b" BAD Unknown command.\r\n"
        return data, None

