"""Prints "passed failed skipped" of a `make check` in the given directory.

Programs of Check tell their cases; any other test counts as one.  A test whose
log has what the second argument, a regular expression, describes has failed.
"""

import glob
import os
import re
import sys

passed = failed = skipped = 0
build, report = sys.argv[1:]
for trs in sorted(glob.glob(os.path.join(build, "*.trs"))
                  + glob.glob(os.path.join(build, "tests", "*", "*.trs"))):
    with open(trs, errors="replace") as f:
        results = re.findall(r"^:test-result: (\w+)", f.read(), re.M)
    log = ""
    try:
        with open(trs[:-4] + ".log", errors="replace") as f:
            log = f.read()
    except FileNotFoundError:
        pass
    cases = re.findall(
        r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)", log, re.M)
    ran = sum(int(c) for c, _, _ in cases)
    bad = sum(int(f) + int(e) for _, f, e in cases)
    if not cases:
        ran = 1
    if any(r in ("SKIP",) for r in results):
        skipped += 1
        continue
    if re.search(report, log) or \
            any(r not in ("PASS", "XFAIL", "SKIP") for r in results):
        bad = max(bad, 1)
        ran = max(ran, bad)
    passed += ran - bad
    failed += bad
print(passed, failed, skipped)
