"""R-SYNC-8: after whatever happened, copy = server.

    HISTORIES=20x50 pytest tests/integration/test_histories.py -k cyrus

does 50 histories of each of 20 accounts; HISTORIES=ACCOUNTSxNUMBER@SEED
begins with another seed.  Without it there are 60 for each kind of server,
with scripts/acceptance 2000.
"""

import os
import re
import time

import pytest

from fleet import figure
from histories import Run

KINDS = ["full", "condstore", "plain", "cyrus", "courier"]
IS_DEFAULT = os.environ.get("MAILHERD_ACCEPTANCE") == "default"
ACCOUNTS, NUMBER, SEED = map(int, re.fullmatch(
    r"(\d+)x(\d+)(?:@(\d+))?",
    os.environ.get("HISTORIES", "50x40" if IS_DEFAULT else "12x5"),
).groups("1"))
SETTINGS = {"poll_warm": 5, "poll_cold": 5, "risk_attempts": 10,
            "per_host_conn_cap": 1000}


@pytest.mark.parametrize("imap_kind", KINDS, indirect=True)
@pytest.mark.slow
def test_random_histories(herd, imap_kind, logins, request):
    kind = request.node.callspec.params["imap_kind"]
    run = Run(herd(**SETTINGS), imap_kind, kind, logins,
              range(SEED, SEED + ACCOUNTS))
    begun = time.monotonic()
    for _ in range(NUMBER):
        run.one_each()
    figure(f"random histories, {kind}", "0 differences",
           histories=run.count, differences=len(run.failures),
           other_ids=run.lost_ids, children_killed=run.kills,
           seconds=round(time.monotonic() - begun))
    run.finish()


def test_the_judge_notices(herd, dovecot, logins):
    """What a run must find: a flag that is not so in the copy, an id that
    was another one."""
    run = Run(herd(**SETTINGS), dovecot, "full", logins, range(1, 4))
    flag, row, untouched = run.accounts
    assert row.rows and not run.failures
    row.rows = {digest: -number for digest, number in row.rows.items()}
    run.herd.sql("UPDATE message_state SET flags = flags # 2 "
                 "WHERE account_id = %s", (flag.id,))
    run.SETTLE = 1
    run.settle()
    of_flag, of_row = run.failures
    assert "flags" in of_flag and "other ids" in of_row
    assert run.accounts == [untouched] and run.lost_ids == 1
