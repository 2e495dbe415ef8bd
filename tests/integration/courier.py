"""Courier IMAP, private to the tests; see unpacked.py.

All folders lie below INBOX, the separator is a dot, and there is neither
CONDSTORE nor MOVE, ESEARCH, LIST-EXTENDED or SPECIAL-USE: IMAP of the
nineties, on Maildirs that deliveries change beside it.
"""

import itertools
import os
import re
import socket
import subprocess

from herd import wire_name
from servers import (Timeout, end_process, free_port, give,
                     own_dir, servant, wait_for, write_file)
from unpacked import Gate, UnpackedServer, program

GATE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                    "courier-gate.c")

# /etc/courier/imapd, as Debian has it but for IDLE, which looks for news
# each second instead of each minute.
SETTINGS = {
    "IMAP_CAPABILITY": "IMAP4rev1 UIDPLUS CHILDREN NAMESPACE "
    "THREAD=ORDEREDSUBJECT THREAD=REFERENCES SORT QUOTA IDLE",
    "IMAP_KEYWORDS": "1", "IMAP_ACL": "1", "IMAP_IDLE_TIMEOUT": "1",
    "IMAP_MAILBOX_SANITY_CHECK": "1", "IMAP_UMASK": "022",
    "IMAP_USELOCKS": "1", "IMAP_ENHANCEDIDLE": "0",
    "IMAP_TRASHFOLDERNAME": "Trash", "IMAP_TLS_REQUIRED": "0",
}


class Courier(UnpackedServer):
    name = "courier"
    root = "INBOX"
    separator = "."
    has_move = False

    def __init__(self, base, name=None):
        super().__init__(base, name)
        self.mail = own_dir(self.dir, "mail")
        self.preload = os.path.join(self.dir, "gate.so")
        self.counter = itertools.count(1)
        self.gate = None

    def start(self):
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.preload, GATE,
                        "-ldl"], check=True)
        self.gate = Gate(os.path.join(self.dir, "gate"), self._answer)
        for _ in range(5):
            self.port = free_port()
            self.popen([
                program("usr/sbin/couriertcpd"), "-address=127.0.0.1",
                "-nodnslookup", "-noidentlookup", "-maxprocs=500",
                "-maxperip=500", str(self.port),
                program("usr/lib/courier/courier/imaplogin"),
                program("usr/bin/imapd"), "Maildir"])
            try:
                wait_for(lambda: self.is_greeting(self.port), 30,
                         f"Courier up, see {self.log}")
                return
            except (Timeout, EOFError):
                end_process(self.proc)
        raise RuntimeError(f"Courier does not start: {self.log_text()}")

    def stop(self):
        if self.proc:
            end_process(self.proc)
            self.proc = None
        if self.gate:
            self.gate.close()
            os.unlink(os.path.join(self.dir, "gate"))
            self.gate = None

    def env(self):
        return super().env(LD_PRELOAD=self.preload,
                           COURIER_GATE=os.path.join(self.dir, "gate"),
                           **SETTINGS)

    def _answer(self, request, reply):
        """As authdaemond: where the client is, AUTH and a counted text of
        four lines; what is known of the user, or FAIL."""
        line = request.readline()
        while line.startswith(b"TCPREMOTE"):
            line = request.readline()
        text = request.read(int(line.split()[1])).decode().split("\n")
        login, password = text[2:4]
        if not self.may_log_in(login, password):
            reply.write(b"FAIL\n")
            return
        user = servant()
        self._make_maildir(login)
        reply.write(f"UID={user.pw_uid}\n"
                    f"GID={user.pw_gid}\nHOME={self.mail}/{login}\n"
                    f"ADDRESS={login}\nMAILDIR=Maildir\n.\n".encode())

    # -- Maildirs --

    def maildir(self, login, wire="INBOX"):
        """INBOX is the top, INBOX.a.b the folder .a.b in it."""
        path = os.path.join(self.mail, login, "Maildir")
        return path if wire == "INBOX" else os.path.join(path, wire[5:])

    def _make_maildir(self, login):
        if os.path.exists(self.maildir(login)):
            return
        own_dir(self.mail, login)
        for name in ("", ".Sent", ".Drafts", ".Archive", ".Trash", ".Junk"):
            path = own_dir(self.maildir(login), name)
            for part in ("tmp", "new", "cur"):
                own_dir(path, part)
            if name:
                with open(os.path.join(path, "maildirfolder"), "w"):
                    pass

    def deliver(self, login, raw, sender):
        """As maildrop does; Courier's messages end their lines with LF."""
        self._make_maildir(login)
        name = f"{next(self.counter):06d}.{os.getpid()}.{socket.gethostname()}"
        fresh = os.path.join(self.maildir(login), "tmp", name)
        with open(fresh, "xb") as f:
            f.write(f"Return-Path: <{sender}>\n".encode()
                    + raw.replace(b"\r\n", b"\n"))
        os.rename(give(fresh), os.path.join(self.maildir(login), "new", name))

    def new_uidvalidity(self, login, path, number):
        """A number in the first line of the folder's list of UIDs; Courier
        chooses another one when it has to begin the list anew.  A folder
        without messages has no list."""
        listed = os.path.join(self.maildir(login, wire_name(self, path)),
                              "courierimapuiddb")
        if not os.path.exists(listed):
            return
        with open(listed, encoding="ascii") as f:
            first, rest = f.readline().split(" ", 2), f.read()
        first[1] = str(number)
        os.rename(write_file(listed + ".new", " ".join(first) + rest), listed)

    # -- what the log tells --

    def is_logged_in(self, login):
        come = gone = 0
        for line in self.log_text().splitlines():
            if f" user={login}," in line:
                come += "LOGIN, " in line
                gone += ", time=" in line
        return come > gone

    def fetched(self, login):
        """(bodies, headers) that sessions of a user fetched, in octets;
        finished sessions only."""
        counts = [0, 0]
        for line in self.log_text().splitlines():
            if f" user={login}," in line and ", time=" in line:
                for n, word in enumerate(("body", "headers")):
                    counts[n] += int(re.search(rf"{word}=(\d+)", line)[1])
        return tuple(counts)
