#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deadlines.py check SNAPSHOTS PERCENT REFERENCE: of the readings of a recording (as read_snapshot.py prints it), how
many began within PERCENT of the interval after their deadline? At least 99 % of them must. Deadlines are whole
intervals after the start; one that was skipped is a reading that did not begin in time.
deadlines.py reference MILLISECONDS PERCENT REFERENCE: wakes at such deadlines itself and does nothing else, until it is
ended; the number it missed stands in REFERENCE. What a program that only sleeps misses, the machine missed."""
import json
import sys
import time


def reference(interval_ns, percent, out):
    start, n, missed = time.monotonic_ns(), 0, 0
    while True:
        n += 1
        deadline = start + n * interval_ns
        time.sleep(max(0, deadline - time.monotonic_ns()) / 1e9)
        missed += (time.monotonic_ns() - deadline) / interval_ns > percent / 100
        with open(out, "w", encoding="ascii") as f:
            f.write(f"{missed}\n")


def check(snapshots, percent, out):
    with open(snapshots, encoding="ascii") as f:
        docs = [json.loads(line) for line in f][1:]
    with open(out, encoding="ascii") as f:
        machine = int(f.read() or 0)
    interval = docs[0]["nominal_ns"]
    late = [((d["end_ns"] - docs[0]["start_ns"]) % interval) / interval for d in docs]
    skipped = sum(d["missed"] for d in docs)
    good = sum(share <= percent / 100 for share in late)
    print(f"{good} of {len(docs)} readings within {percent:g} % of the interval, {skipped} deadlines skipped, the latest "
          f"{max(late) * 100:.2f} % late; a program that only sleeps missed {machine}")
    return 0 if good + machine >= 0.99 * (len(docs) + skipped) else 1


if __name__ == "__main__":
    if sys.argv[1] == "reference":
        reference(int(sys.argv[2]) * 1000000, float(sys.argv[3]), sys.argv[4])
    sys.exit(check(sys.argv[2], float(sys.argv[3]), sys.argv[4]))
