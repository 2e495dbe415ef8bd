#!/usr/bin/python3
"""Mail that looks like mail, the same for the same seed.

    mailgen.py [--seed N] [--count N] [--kb MEAN] MAILDIR

writes MAILDIR/{cur,new,tmp}.  Words follow Zipf's law, as in any language,
so that full-text search has realistic work; about a third of the messages
answer an earlier one; there are plain texts, alternatives with HTML, and
attachments.  Imported by the benchmarks and by quickstart.
"""

import argparse
import base64
import bisect
import email.utils
import itertools
import os
import random

SYLLABLES = ("ba be bo ca ce co da de di do fa fe ga ge go ha he hi ka ke la "
             "le li lo ma me mi mo na ne no pa pe po ra re ri ro sa se si so "
             "ta te ti to va ve vi vo wa we za zu").split()
PEOPLE = [("Ann Lee", "ann.lee"), ("Bob Stone", "bob"),
          ("Chiara Rossi", "chiara"), ("Dmitri Orlov", "dmitri"),
          ("Eva Lindqvist", "eva"), ("Jörg Müller", "joerg"),
          ("Łukasz Nowak", "lukasz"), ("Mei Chen", "mei"),
          ("Omar Haddad", "omar"), ("Zoë Ångström", "zoe")]
WORDS = 30000
LINES = 4000  # of text, written once and drawn from
TEXT_BYTES = 1500  # what a person reads of a message, on average
STYLE = ('<td style="padding:0 12px;font-family:Arial,sans-serif;'
         'font-size:14px;color:#333333"><a href="https://example.org/t/'
         '9f2c41d7?u=81723"><img src="cid:x" width="1" height="1"></a></td>')


class Mail:
    """One generator; messages() may be called again and goes on."""

    def __init__(self, seed=1, mean_kb=6.0):
        self.random = random.Random(seed)
        self.seed = seed
        self.mean = mean_kb * 1024
        self.ids = []
        self.subjects = []
        self.count = 0
        self.clock = 1_780_000_000
        self.words = self._vocabulary()
        weights = itertools.accumulate(1 / (n + 2.7) for n in range(WORDS))
        self.weights = list(weights)
        self.lines = [self._line() for _ in range(LINES)]

    def _vocabulary(self):
        seen, words = set(), []
        while len(words) < WORDS:
            word = "".join(self.random.choices(
                SYLLABLES, k=1 + min(len(words).bit_length() // 4, 3)
                + self.random.randrange(2)))
            if word not in seen:
                seen.add(word)
                words.append(word)
        return words

    def word(self):
        at = self.random.random() * self.weights[-1]
        return self.words[bisect.bisect(self.weights, at)]

    def _line(self):
        words = [self.word() for _ in range(self.random.randrange(7, 13))]
        return " ".join(words)[:76]

    def text(self, size):
        lines, total = [], 0
        while total < size:
            line = self.random.choice(self.lines)
            total += len(line) + 2
            lines.append(line)
            if self.random.random() < 0.12:
                lines[-1] += "."
                lines.append("")
        return lines

    def message(self):
        r = self.random
        self.count += 1
        self.clock += r.randrange(30, 900)
        name, local = r.choice(PEOPLE)
        to_name, to_local = r.choice(PEOPLE)
        number = f"{self.seed}.{self.count}"
        message_id = f"{number}@mail.example.org"
        headers = [
            "Return-Path: <%s@example.org>" % local,
            "Received: from mx.example.org (mx.example.org [192.0.2.%d])\r\n"
            "\tby mail.example.net with ESMTPS id %s\r\n\tfor <me@example.net>"
            "; %s" % (r.randrange(1, 255), number,
                      email.utils.formatdate(self.clock)),
            "Date: " + email.utils.formatdate(self.clock),
            f"From: {encoded(name)} <{local}@example.org>",
            f"To: {encoded(to_name)} <{to_local}@example.net>",
            f"Message-ID: <{message_id}>",
            "MIME-Version: 1.0",
        ]
        if self.ids and r.random() < 0.35:
            at = max(0, len(self.ids) - r.randrange(1, 60))
            chain = self.ids[at][-8:]
            subject = "Re: " + self.subjects[at]
            headers += [f"In-Reply-To: <{chain[-1]}>",
                        "References: " + "\r\n ".join(
                            f"<{i}>" for i in chain)]
            self.ids.append(chain + [message_id])
            self.subjects.append(self.subjects[at])
        else:
            subject = " ".join(self.word() for _ in range(r.randrange(2, 7)))
            subject = subject.capitalize()
            self.ids.append([message_id])
            self.subjects.append(subject)
        headers.append("Subject: " + subject)

        # As in real mailboxes: 1.5 KB of text, most of the rest is markup.
        kind = r.random()
        size = max(800, r.expovariate(1 / self.mean) * 0.96)
        text = min(size, max(100, r.expovariate(1 / TEXT_BYTES)))
        if kind < 0.14:
            lines = self._plain(text)
        elif kind < 0.24:
            lines = self._html_only(text, size)
        elif kind < 0.87:
            lines = self._alternative(text, size, number)
        else:
            lines = self._attachment(text, size, number)
        return "\r\n".join(headers + lines + [""]).encode()

    def _plain(self, text):
        return ["Content-Type: text/plain; charset=utf-8",
                "Content-Transfer-Encoding: 7bit", ""] + self.text(text)

    def _html(self, text, size):
        """The lines of text as a newsletter has them, about so large."""
        html = ["<html><head><style>p { margin: 0 0 1em }</style></head>",
                "<body>"]
        plain = sum(len(line) for line in text)
        markup = max(0, size - plain - 100) / max(1, len(text))
        for line in text:
            cell = STYLE * min(8, round(markup / len(STYLE)))
            html.append(cell + f"<p>{line}</p>" if line else cell + "<br>")
        html.append("</body></html>")
        return html

    def _html_only(self, text, size):
        return ["Content-Type: text/html; charset=utf-8",
                "Content-Transfer-Encoding: 7bit", ""] + self._html(
                    self.text(text), size)

    def _alternative(self, text, size, number):
        edge = f"=_{number}"
        text = self.text(text)
        plain = sum(len(line) for line in text)
        return [f'Content-Type: multipart/alternative; boundary="{edge}"', "",
                f"--{edge}", "Content-Type: text/plain; charset=utf-8", "",
                *text, f"--{edge}", "Content-Type: text/html; charset=utf-8",
                "", *self._html(text, size - plain), f"--{edge}--"]

    def _attachment(self, text, size, number):
        edge = f"=_{number}"
        data = base64.encodebytes(self.random.randbytes(
            int(max(300, size - text) * 0.73)))
        name = self.word()
        return [f'Content-Type: multipart/mixed; boundary="{edge}"', "",
                f"--{edge}", "Content-Type: text/plain; charset=utf-8", "",
                *self.text(text), f"--{edge}",
                f'Content-Type: application/pdf; name="{name}.pdf"',
                "Content-Transfer-Encoding: base64",
                f'Content-Disposition: attachment; filename="{name}.pdf"', "",
                *data.decode().split("\n")[:-1], f"--{edge}--"]

    def messages(self, count):
        return (self.message() for _ in range(count))


def encoded(name):
    if name.isascii():
        return name
    return "=?utf-8?B?%s?=" % base64.b64encode(name.encode()).decode()


def big_message(megabytes, seed=1):
    """A text and one attachment, about so large on the wire."""
    mail = Mail(seed, 1)
    data = random.Random(seed).randbytes(int(megabytes * 1e6 * 57 / 78))
    body = base64.encodebytes(data).replace(b"\n", b"\r\n")
    head = "\r\n".join([
        "Date: " + email.utils.formatdate(mail.clock),
        "From: Ann Lee <ann@example.org>", "To: bob@example.net",
        f"Subject: {megabytes} MB attached",
        f"Message-ID: <big.{megabytes}.{seed}@example.org>",
        "MIME-Version: 1.0", 'Content-Type: multipart/mixed; boundary="=_b"',
        "", "--=_b", "Content-Type: text/plain", "", "See the film.",
        "--=_b", "Content-Type: video/mp4",
        "Content-Transfer-Encoding: base64",
        'Content-Disposition: attachment; filename="film.mp4"', "", ""])
    return head.encode() + body + b"--=_b--\r\n"


def write_maildir(path, messages, on_file=None):
    """Messages as files of a Maildir, line ends as Dovecot writes them."""
    for part in ("", "cur", "new", "tmp"):
        folder = os.path.join(path, part)
        os.makedirs(folder, exist_ok=True)
        if on_file:
            on_file(folder)
    count = total = 0
    for raw in messages:
        count += 1
        total += len(raw)
        name = os.path.join(path, "cur", "%d.M%dP1.bench,S=%d,W=%d:2,%s" % (
            1_780_000_000 + count, count, len(raw) - raw.count(b"\r\n"),
            len(raw), "S" if count % 3 else ""))
        with open(name, "wb") as f:
            f.write(raw.replace(b"\r\n", b"\n"))
        if on_file:
            on_file(name)
    return count, total


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--kb", type=float, default=6.0)
    p.add_argument("maildir")
    args = p.parse_args()
    mail = Mail(args.seed, args.kb)
    count, total = write_maildir(args.maildir, mail.messages(args.count))
    print(f"{count} messages, {total / count / 1024:.1f} KB on average")


if __name__ == "__main__":
    main()
