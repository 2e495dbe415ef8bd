#!/usr/bin/python3
"""Delivers a message by LMTP and shows how soon its row is there.

    show_delivery.py LMTP-PORT CONNINFO MAIL-USER
"""

import smtplib
import sys
import time

import psycopg2

port, conninfo, user = int(sys.argv[1]), sys.argv[2], sys.argv[3]
stamp = f"{time.time():.3f}"
subject = f"Just delivered at {time.strftime('%H:%M:%S')} ({stamp})"
raw = (f"From: Ann Lee <ann@example.org>\r\nTo: {user}@example.org\r\n"
       f"Subject: {subject}\r\nMessage-ID: <{stamp}.demo@example.org>\r\n"
       "\r\nA message delivered while mailherd was watching: the quick brown"
       " marmoset.\r\n").encode()

db = psycopg2.connect(conninfo)
db.autocommit = True
cursor = db.cursor()
with smtplib.LMTP("127.0.0.1", port) as lmtp:
    lmtp.sendmail("ann@example.org", [f"{user}@example.org"], raw)
accepted = time.monotonic()
while time.monotonic() < accepted + 30:
    cursor.execute("SELECT id FROM mailherd.messages WHERE message_id = %s "
                   "AND deleted_at IS NULL", (f"{stamp}.demo@example.org",))
    row = cursor.fetchone()
    if row:
        print(f"message {row[0]}, \"{subject}\":\nits row was visible "
              f"{(time.monotonic() - accepted) * 1000:.0f} ms after Dovecot "
              "accepted the delivery")
        sys.exit(0)
    time.sleep(0.001)
print("the message did not arrive within 30 s", file=sys.stderr)
sys.exit(1)
