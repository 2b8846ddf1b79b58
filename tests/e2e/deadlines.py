#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deadlines.py SNAPSHOTS PERCENT: of the readings of a recording (as read_snapshot.py prints it), how many began
within PERCENT of the interval after their deadline? At least 99 % of them must. Deadlines are whole intervals after
the start; a deadline that was skipped is a reading that did not begin in time."""
import json
import sys


def main():
    with open(sys.argv[1], encoding="ascii") as f:
        docs = [json.loads(line) for line in f][1:]
    interval, allowed = docs[0]["nominal_ns"], float(sys.argv[2]) / 100
    late = [((d["end_ns"] - docs[0]["start_ns"]) % interval) / interval for d in docs]
    missed = sum(d["missed"] for d in docs)
    good = sum(share <= allowed for share in late)
    print(f"{good} of {len(docs)} readings within {sys.argv[2]} % of the interval, {missed} deadlines skipped, "
          f"the latest {max(late) * 100:.2f} % late")
    return 0 if good >= 0.99 * (len(docs) + missed) else 1


if __name__ == "__main__":
    sys.exit(main())
