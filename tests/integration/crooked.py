"""An IMAP server that fails at one thing and does the rest well.

    with Crooked({"INBOX": [b"...", ...]}) as server:
        server.faults.append(Fault("FETCH", "bye", uid=4))

A Crooked stands where a Dovecot stands.  It speaks as little IMAP as mailherd
needs of a plain server, one thread a connection; what it is told to do badly
it does badly each time, until the fault is taken away.
"""

import hashlib
import re
import socket
import threading
import time

LITERAL = re.compile(rb"\{(\d+)\+?\}$")

# What may happen to a command; "after": it is answered, and that was all.
WAYS = ("bye", "close", "silence", "no", "bad", "busy", "cut", "nil",
        "nonsense", "still here", "after")
SAID = {"no": b"NO Internal error occurred", "bad": b"BAD cannot do this",
        "busy": b"NO Server temporarily unavailable"}


class Fault:
    """`at` is STATUS, SELECT, FLAGS (FETCH without bodies), FETCH or LIST."""

    def __init__(self, at, way, folder=None, uid=None, times=-1, secs=0):
        self.at, self.way, self.folder, self.uid = at, way, folder, uid
        self.times, self.secs, self.struck = times, secs, 0

    def strikes(self, at, folder, uid=None):
        if self.at != at or self.times == 0 or \
                self.folder not in (None, folder) or \
                self.uid not in (None, uid):
            return False
        self.times -= 1
        self.struck += 1
        return True


class Ended(Exception):
    """The connection does."""


class Folder:
    def __init__(self, validity):
        self.validity, self.uidnext = validity, 1
        self.object_id = f"F{validity}"  # stays with it, as RFC 8474 says
        self.messages = {}  # uid: [bytes, flags]

    def add(self, raw):
        self.messages[self.uidnext] = [raw, set()]
        self.uidnext += 1
        return self.uidnext - 1


class Crooked:
    password = "secret"

    def __init__(self, folders, capabilities=("UNSELECT", "IDLE")):
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.folders, self.faults, self.commands = {}, [], []
        self.capabilities = " ".join(("IMAP4rev1", "SASL-IR", "AUTH=PLAIN",
                                      *capabilities))
        self.refusals_max = None  # NOs after which a connection is ended
        self.is_down = False
        for n, (name, messages) in enumerate(folders.items()):
            self.folders[name] = Folder(1000 + n)
            for raw in messages:
                self.folders[name].add(raw)

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self.listener.getsockname()[1]
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        with self.lock:
            self.is_down = True
            self.changed.notify_all()
        self.listener.close()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=Session(self, sock).run,
                             daemon=True).start()

    # -- what tests do --

    def deliver(self, raw, folder="INBOX"):
        with self.changed:
            uid = self.folders[folder].add(raw)
            self.changed.notify_all()
            return uid

    def server_state(self, _login):
        with self.lock:
            return {name: {uid: (frozenset(flags), hashlib.sha256(
                raw).hexdigest()) for uid, (raw, flags)
                in folder.messages.items()}
                for name, folder in self.folders.items()}

    def count(self, what):
        with self.lock:
            return sum(c.startswith(what) for c in self.commands)


class Session:
    def __init__(self, server, sock):
        self.server, self.sock = server, sock
        self.file = sock.makefile("rb")
        self.folder = self.name = None
        self.refusals = 0
        self.is_last = False  # command

    def say(self, data):
        try:
            self.sock.sendall(data)
        except OSError as e:
            raise Ended from e

    def line(self, text):
        self.say(text if isinstance(text, bytes) else text.encode())
        self.say(b"\r\n")

    def run(self):
        try:
            self.line("* OK ready")
            while True:
                line = self.file.readline()
                if not line:
                    return
                self.command(line.rstrip(b"\r\n").decode("utf-8", "replace"))
        except (Ended, OSError, ValueError):
            pass
        finally:
            self.file.close()
            self.sock.close()

    # -- faults --

    def fault(self, at, folder, uid=None):
        with self.server.lock:
            return next((f for f in self.server.faults
                         if f.strikes(at, folder, uid)), None)

    def suffer(self, fault, tag):
        """True: the command is answered by this."""
        if fault is None:
            return False
        way = fault.way
        if way == "bye":
            self.line("* BYE Internal error occurred. Refer to server log")
            raise Ended
        if way in ("close", "cut"):
            raise Ended
        if way == "silence":
            self.sock.settimeout(3600)
            while self.file.readline():
                pass
            raise Ended
        if way == "nonsense":
            self.line("what is this (")
            raise Ended
        if way == "still here":
            for _ in range(fault.secs):
                self.line("* OK Still here, working")
                time.sleep(1)  # the pace of such servers is what is played
            return False
        if way == "after":
            self.is_last = True
            return False
        self.no(tag, SAID[way])
        return True

    def no(self, tag, text):
        self.refusals += 1
        self.line(tag.encode() + b" " + text)
        limit = self.server.refusals_max
        if limit and self.refusals >= limit:
            self.line("* BYE Too many errors")
            raise Ended

    # -- commands --

    def command(self, line):
        tag, name, rest = (line.split(" ", 2) + ["", ""])[:3]
        name = name.upper()
        if name == "UID":
            name, rest = rest.split(" ", 1)
            name = "UID " + name.upper()
        with self.server.lock:
            self.server.commands.append(f"{name} {rest}")
        do = getattr(self, "do_" + name.replace(" ", "_").lower(), None)
        if do is None:
            self.line(f"{tag} BAD what")
        else:
            do(tag, rest)
        if self.is_last:
            raise Ended

    def do_capability(self, tag, _):
        self.line(f"* CAPABILITY {self.server.capabilities}")
        self.line(f"{tag} OK done")

    def do_authenticate(self, tag, _):
        self.line(f"{tag} OK [CAPABILITY {self.server.capabilities}] in")

    def do_noop(self, tag, _):
        self.line(f"{tag} OK done")

    do_enable = do_unselect = do_noop

    def do_logout(self, tag, _):
        self.line("* BYE see you")
        self.line(f"{tag} OK out")
        raise Ended

    def do_list(self, tag, _):
        with self.server.lock:
            names = list(self.server.folders)
        for name in names:
            if self.suffer(self.fault("LIST", name), tag):
                return
            self.line(f'* LIST () "/" "{name}"')
        self.line(f"{tag} OK done")

    def do_status(self, tag, rest):
        name = rest[1:rest.index('"', 1)]
        if self.suffer(self.fault("STATUS", name), tag):
            return
        with self.server.lock:
            f = self.server.folders[name]
            text = (f'* STATUS "{name}" (MESSAGES {len(f.messages)} '
                    f"UIDNEXT {f.uidnext} UIDVALIDITY {f.validity}"
                    + (f" MAILBOXID ({f.object_id})" if "MAILBOXID" in rest
                       else "") + ")")
        self.line(text)
        self.line(f"{tag} OK done")

    def do_select(self, tag, rest):
        name = rest[1:rest.index('"', 1)]
        self.folder = None
        if self.suffer(self.fault("SELECT", name), tag):
            return
        with self.server.lock:
            self.name, self.folder = name, self.server.folders[name]
            self.seen = sorted(self.folder.messages)
            text = (f"* {len(self.seen)} EXISTS\r\n* FLAGS (\\Seen)\r\n"
                    f"* OK [UIDVALIDITY {self.folder.validity}] v\r\n"
                    f"* OK [UIDNEXT {self.folder.uidnext}] n")
        self.line(text)
        self.line(f"{tag} OK [READ-WRITE] selected")

    def do_idle(self, tag, _):
        self.line("+ idling")
        self.sock.settimeout(0.05)
        told = len(self.seen)
        try:
            while True:
                with self.server.lock:
                    now = len(self.folder.messages)
                    if self.server.is_down:
                        raise Ended
                if now != told:
                    told = now
                    self.line(f"* {now} EXISTS")
                try:
                    data = self.sock.recv(100)
                    break
                except socket.timeout:
                    continue
        finally:
            self.sock.settimeout(None)
        if not data:
            raise Ended
        self.line(f"{tag} OK done")

    def chosen(self, text, is_uid):
        """[(seq, uid)] of the messages that the session knows."""
        with self.server.lock:
            self.seen = sorted(self.folder.messages)
        found = []
        for part in text.split(","):
            low, _, high = part.partition(":")
            top = self.seen[-1] if is_uid and self.seen else len(self.seen)
            ends = [top if e == "*" else int(e) for e in (low, high or low)]
            found += [(n + 1, uid) for n, uid in enumerate(self.seen)
                      if min(ends) <= (uid if is_uid else n + 1) <= max(ends)]
        return sorted(set(found))

    def do_uid_fetch(self, tag, rest):
        self.fetch(tag, rest, True)

    def do_fetch(self, tag, rest):
        self.fetch(tag, rest, False)

    def fetch(self, tag, rest, is_uid):
        what, items = rest.split(" ", 1)
        body = re.search(r"BODY\.PEEK(\[.*?\])", items)
        refused = None
        for seq, uid in self.chosen(what, is_uid):
            with self.server.lock:
                raw, flags = self.folder.messages[uid]
            fault = self.fault("FETCH" if body else "FLAGS", self.name, uid)
            if fault is not None and fault.way in SAID:
                refused = SAID[fault.way]
                continue
            text = (f"* {seq} FETCH (UID {uid} FLAGS ({' '.join(flags)}) "
                    f"RFC822.SIZE {len(raw)}")
            if "INTERNALDATE" in items:
                text += ' INTERNALDATE "01-Mar-2026 10:00:00 +0000"'
            if not body:
                self.suffer(fault, tag)
                self.line(text + ")")
                continue
            if body.group(1) == "[HEADER]":
                raw = raw[:raw.index(b"\r\n\r\n") + 4]
            if "MESSAGE-ID" in body.group(1):
                raw = b"".join(re.findall(rb"(?im)^Message-ID:.*\r\n",
                                          raw)[:1]) + b"\r\n"
            if fault is not None and fault.way == "nil":
                self.line(f"{text} BODY{body.group(1)} NIL)")
                continue
            if fault is not None and fault.way == "cut":
                self.say(f"{text} BODY{body.group(1)} {{{len(raw)}}}\r\n"
                         .encode() + raw[:len(raw) // 2])
            self.suffer(fault, tag)
            self.say(f"{text} BODY{body.group(1)} {{{len(raw)}}}\r\n"
                     .encode() + raw + b")\r\n")
        if refused:
            self.no(tag, refused)
        else:
            self.line(f"{tag} OK done")
