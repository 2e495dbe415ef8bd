"""Prints "passed failed skipped" of a pytest run's XML report."""

import sys
import xml.etree.ElementTree as ElementTree

try:
    root = ElementTree.parse(sys.argv[1]).getroot()
except (OSError, ElementTree.ParseError):
    print(0, 1, 0)  # it did not even get to the report
    sys.exit()
passed = failed = skipped = 0
for case in root.iter("testcase"):
    kinds = {child.tag for child in case}
    if kinds & {"failure", "error"}:
        failed += 1
    elif "skipped" in kinds:
        skipped += 1
    else:
        passed += 1
if passed + failed == 0:
    failed = 1  # nothing was collected
print(passed, failed, skipped)
