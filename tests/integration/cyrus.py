"""Cyrus IMAP, private to the tests; see unpacked.py.

CONDSTORE and QRESYNC, UIDVALIDITY as a clock, and names of its own for what
Dovecot does otherwise: the only other server that knows all extensions that
mailherd uses.
"""

import contextlib
import glob
import os
import zlib

from herd import wire_name
from servers import (Timeout, end_process, free_port, lmtp_deliver, own_dir,
                     servant, wait_for, write_file)
from unpacked import Gate, UnpackedServer, program


class Cyrus(UnpackedServer):
    name = "cyrus"

    def __init__(self, base, suppress="", name=None):
        super().__init__(base, name)
        self.suppress = suppress
        self.conf = os.path.join(self.dir, "imapd.conf")
        self.gate = None
        self.lmtp_port = None

    def _write_configuration(self):
        user = servant()
        for name in ("lib", "lib/log", "lib/socket", "spool", "gate"):
            own_dir(self.dir, name)
        write_file(self.conf, f"""\
configdirectory: {self.dir}/lib
defaultpartition: default
partition-default: {self.dir}/spool
cyrus_user: {user.pw_name}
servername: localhost
admins: admin
allowplaintext: yes
sasl_mech_list: PLAIN
sasl_pwcheck_method: saslauthd
sasl_saslauthd_path: {self.dir}/gate/mux
altnamespace: yes
unixhierarchysep: yes
virtdomains: off
autocreate_post: yes
autocreate_quota: 0
autocreate_inbox_folders: Sent|Drafts|Archive|Trash|Junk
xlist-sent: Sent
xlist-drafts: Drafts
xlist-archive: Archive
xlist-trash: Trash
xlist-junk: Junk
imapidlepoll: 1
delete_mode: immediate
expunge_mode: immediate
maxlogins_per_user: 0
{f"suppress_capabilities: {self.suppress}" if self.suppress else ""}
""")
        imapd = program("usr/lib/cyrus/bin/imapd")
        lmtpd = program("usr/lib/cyrus/bin/lmtpd")
        idled = program("usr/lib/cyrus/bin/idled")
        recover = program("usr/lib/cyrus/bin/ctl_cyrusdb")
        write_file(os.path.join(self.dir, "cyrus.conf"), f"""\
START {{
  recover cmd="{recover} -C {self.conf} -r"
}}
SERVICES {{
  imap cmd="{imapd} -C {self.conf}" listen="127.0.0.1:{self.port}" \
prefork=2 maxchild=500
  lmtp cmd="{lmtpd} -C {self.conf} -a" listen="127.0.0.1:{self.lmtp_port}" \
prefork=1 maxchild=20
}}
DAEMON {{
  idled cmd="{idled} -C {self.conf} -d"
}}
""")

    def start(self):
        for _ in range(5):
            self.port, self.lmtp_port = free_port(), free_port()
            self._write_configuration()
            self.gate = Gate(os.path.join(self.dir, "gate", "mux"),
                             self._answer)
            # Told to end, it tells its whole process group, where by
            # default we and all other servers are: it gets one of its own,
            # and a word from the kernel should we end without stop().
            self.popen(["setpriv", "--pdeathsig=TERM",
                        program("usr/lib/cyrus/bin/master"), "-D",
                        "-C", self.conf,
                        "-M", os.path.join(self.dir, "cyrus.conf"),
                        "-p", os.path.join(self.dir, "pid")],
                       process_group=0)
            try:
                wait_for(lambda: self.is_greeting(self.port, self.lmtp_port),
                         30, f"Cyrus up, see {self.log}")
                return
            except (Timeout, EOFError):
                self.stop()
        raise RuntimeError(f"Cyrus does not start: {self.log_text()}")

    def stop(self):
        if self.proc:
            end_process(self.proc)
            self.proc = None
        if self.gate:
            self.gate.close()
            os.unlink(os.path.join(self.dir, "gate", "mux"))
            self.gate = None

    def _answer(self, request, reply):
        """As saslauthd: four counted strings, one back."""
        words = [request.read(int.from_bytes(request.read(2), "big")).decode()
                 for _ in range(4)]
        own_dir(self.dir, "lib", "log", words[0])  # its traffic is recorded
        word = b"OK" if self.may_log_in(words[0], words[1]) else b"NO"
        reply.write(len(word).to_bytes(2, "big") + word)

    def deliver(self, login, raw, sender):
        lmtp_deliver(self.lmtp_port, login, raw, sender)

    def new_uidvalidity(self, login, path, number):
        """Cyrus has no command for it; it is a number in the header of the
        folder's index (imap/mailbox.h: OFFSET_UIDVALIDITY), which ends with
        a checksum."""
        name = f"user/{login}"
        if path != "INBOX":
            name += "/" + wire_name(self, path)
        folder = self.tool(program("usr/lib/cyrus/bin/mbpath"),
                         "-C", self.conf, name).strip()
        with open(os.path.join(folder, "cyrus.index"), "r+b",
                  buffering=0) as f:
            header = bytearray(f.read(4096))
            size = int.from_bytes(header[12:16], "big") - 4
            header[44:48] = number.to_bytes(4, "big")
            sum_ = zlib.crc32(header[:size]).to_bytes(4, "big")
            os.pwrite(f.fileno(), bytes(header[:size]) + sum_, 0)

    # -- what it leaves in files --

    def is_logged_in(self, login):
        names = glob.glob(os.path.join(self.dir, "lib", "proc", "*"))
        return any(f"\t{login}\t" in read_file(name) for name in names)

    def fetched(self, login):
        """(bodies, headers) that sessions of a user fetched."""
        text = "".join(map(read_file, glob.glob(os.path.join(
            self.dir, "lib", "log", login, "*"))))
        return text.count(" BODY[] {"), text.count(" BODY[HEADER")


def read_file(path):
    with contextlib.suppress(FileNotFoundError):
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    return ""
