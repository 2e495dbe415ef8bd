"""Prints the figures of the acceptance tests as a table."""

import json
import os
import sys

rows = [("what", "limit", "measured", "load")]
with open(sys.argv[1], encoding="utf-8") as f:
    for line in f:
        row = json.loads(line)
        what, limit, load = row.pop("what"), row.pop("limit"), row.pop("load")
        rows.append((what, limit, " ".join(f"{k}={v}" for k, v in
                                           row.items()), f"{load:.1f}"))
widths = [max(len(row[i]) for row in rows) for i in range(4)]
for row in rows:
    print("  ".join(cell.ljust(width)
                    for cell, width in zip(row, widths)).rstrip())
print(f"{os.cpu_count()} processors; load is the run queue when measured")
