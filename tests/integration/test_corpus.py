"""Every faulty message of tests/corpus arrives whole, with valid text."""

import glob
import hashlib
import os

import pytest

from herd import SOURCE, Client
from servers import Dovecot

FILES = sorted(glob.glob(os.path.join(SOURCE, "tests", "corpus", "*.eml")))


@pytest.mark.parametrize("format", ["sdbox", "maildir"])
def test_corpus(herd, test_dir, format):
    """R-MSG-2; compared with what Dovecot gives out, byte by byte."""
    with Dovecot(test_dir, format=format) as imap:
        login = "u0001"
        kept = 0
        with Client(imap, login) as client:
            for path in FILES:
                with open(path, "rb") as f:
                    raw = f.read()
                client.append("INBOX", raw)
            client.select("INBOX", readonly=True)
            kept = len(client.uids())
        assert kept == len(FILES)
        h = herd()
        h.start_both()
        account = h.add_account(imap, login)
        h.wait_live(account)
        h.assert_same(account, imap, login)
        rows = h.sql("SELECT id, subject, snippet, from_addr, parse_state "
                     "FROM messages WHERE account_id = %s", (account,))
        assert len(rows) == len(FILES)
        assert not [r for r in rows if r[4] == "unparsed"]
        for _, *texts, _ in rows:
            for text in filter(None, texts):
                assert "\0" not in text
        stored = {d for f in h.copy(account).values() for _, d in f.values()}
        for row, *_ in rows[:10]:
            assert hashlib.sha256(h.raw(row)).hexdigest() in stored
        # Each can be listed and shown without a fault of ours.
        for row, *_ in rows:
            assert h.ctl1("message", "show", row)["id"] == row
        if format == "sdbox":
            h.run_ctl("message", "list", "--account", account)


def test_what_the_index_says(herd, dovecot, login):
    """Subjects as tests/corpus/index.tsv has them, through the whole path."""
    want = {}
    with open(os.path.join(SOURCE, "tests", "corpus", "index.tsv"),
              encoding="utf-8") as f:
        head = f.readline().rstrip("\n").split("\t")
        for line in f:
            row = dict(zip(head, line.rstrip("\n").split("\t")))
            want[row["file"]] = row
    uids = {}
    with Client(dovecot, login) as client:
        for n, path in enumerate(FILES, 1):
            with open(path, "rb") as f:
                client.append("INBOX", f.read())
            uids[n] = os.path.basename(path)
    h = herd()
    h.start_both()
    account = h.add_account(dovecot, login)
    h.wait_live(account)
    wrong = []
    for uid, subject in h.sql("SELECT uid, subject FROM messages "
                              "WHERE account_id = %s", (account,)):
        expected = want[uids[uid]]["subject"]
        expected = {"NONE": None, "(empty)": ""}.get(expected, expected)
        if expected != "-" and subject != expected:
            wrong.append(f"{uids[uid]}: {subject!r}, not {expected!r}")
    # Dovecot replaces NUL in what it stores; that file is a unit test.
    wrong = [w for w in wrong if "nul-in" not in w]
    assert not wrong, "\n".join(wrong)

    # What is searched, shown or not, and which message a report is about.
    rows = {uids[uid][:4]: (row, thread) for row, uid, thread in h.sql(
        "SELECT id, uid, thread_id FROM messages WHERE account_id = %s",
        (account,))}
    for file, word in (("m233", "xylophone"), ("m234", "parcel"),
                       ("m234", '"does not show"'), ("m235", "opaque"),
                       ("m236", "budget"), ("m237", "windows"),
                       ("m237", "Angebot"), ("m241", "invoice")):
        found = h.ctl("message", "search", "--account", account, word)
        assert rows[file][0] in [m["id"] for m in found], (file, word)
    assert rows["m242"][1] == rows["m243"][1]
    assert rows["m244"][1] != rows["m243"][1]
