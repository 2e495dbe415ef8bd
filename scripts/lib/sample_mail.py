#!/usr/bin/python3
"""A mailbox to look at, as a Maildir: sample_mail.py SOURCE-DIRECTORY MAILDIR

A few conversations among people, with attachments; 1,500 messages of made-up
words, so that a backfill can be watched; and every faulty message of
tests/corpus, because real mailboxes hold such mail too.
"""

import email.message
import email.policy
import email.utils
import glob
import os
import sys
import time

top = sys.argv[1]
sys.path.insert(0, os.path.join(top, "scripts", "bench"))
import mailgen  # noqa: E402

ANN = "Ann Lee <ann@example.org>"
BOB = "Bob Stone <bob@example.org>"
ZOE = "Zoë Ångström <zoe@example.org>"
ME = "Sam Ple <sample@example.org>"

TALKS = [
    ("The aquarium in the hall", [
        (ANN, "Good morning,\n\nthe zebrafish look bored. Shall we get them a"
              " castle?\n\nAnn"),
        (ME, "A castle is fine, but please none with lights.\n"),
        (BOB, "> A castle is fine, but please none with lights.\n\nThe old one"
              " from the kitchen window would do.\n\nBob"),
        (ZOE, "The snails vote for a harbour. See the drawing.\n"),
    ]),
    ("Invoice 2026-0117", [
        ("Accounts <accounts@example.com>",
         "Dear Sam,\n\nplease find attached our invoice for two hundred"
         " teaspoons.\n\nKind regards"),
        (ME, "Thank you. Paid today.\n"),
    ]),
    ("Hiking on Saturday", [
        (BOB, "Weather will be good. Train leaves at 7:42 from platform 3.\n"),
        (ZOE, "I bring the map, cheese and my brother.\n"),
        (ANN, "Please not the brother who sings.\n"),
        (ZOE, "He promised.\n"),
        (ME, "Fine with me. See you on the platform.\n"),
    ]),
    ("Grüße aus Köln", [
        (ZOE, "Liebe Leute,\n\nder Dom steht noch. Viele Grüße!\n\nZoë"),
    ]),
    ("Minutes of the release meeting", [
        (ANN, "Decisions:\n- mailherd is released when the tests say so\n"
              "- nobody touches the schema on a Friday\n"),
        (BOB, "Agreed on both.\n"),
    ]),
]


def talks():
    clock = time.time() - 20 * 86400
    for number, (subject, mails) in enumerate(TALKS):
        chain = []
        for n, (sender, text) in enumerate(mails):
            clock += 5000 + 1234 * n
            m = email.message.EmailMessage(
                policy=email.policy.SMTP.clone(utf8=False))
            m["From"], m["To"] = sender, ME if sender != ME else ANN
            m["Subject"] = subject if n == 0 else "Re: " + subject
            m["Date"] = email.utils.formatdate(clock)
            m["Message-ID"] = f"<talk{number}.{n}@example.org>"
            if chain:
                m["In-Reply-To"] = chain[-1]
                m["References"] = " ".join(chain)
            chain.append(m["Message-ID"])
            m.set_content(text)
            if "attached" in text:
                m.add_attachment(b"%PDF-1.4 not really\n" * 40,
                                 maintype="application", subtype="pdf",
                                 filename="invoice-2026-0117.pdf")
            if "drawing" in text:
                m.add_attachment(b"\x89PNG not really\n" * 100,
                                 maintype="image", subtype="png",
                                 filename="Hafen für Schnecken.png")
            yield m.as_bytes()


def corpus():
    for path in sorted(glob.glob(os.path.join(
            glob.escape(top), "tests", "corpus", "*.eml"))):
        with open(path, "rb") as f:
            yield f.read()


def everything():
    yield from corpus()
    yield from mailgen.Mail(seed=2).messages(1500)
    yield from talks()


count, total = mailgen.write_maildir(sys.argv[2], everything())
print(f"{count} messages, {total / 1e6:.1f} MB")
