# SPDX-License-Identifier: Apache-2.0
"""What the history and the totals say, looked at from outside. history.py CHECK ARGUMENT..."""
import json
import re
import sys


def counters(path):
    """Counters of a page of metrics by name and labels."""
    found = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            m = re.match(r"(jouled_(?:cgroup_)?(?:idle_|residual_)?(?:energy_joules|cpu_seconds|switches)_total\S*(?: [^ ]*)*) (\S+)$", line)
            if m and not line.startswith("#"):
                found[m.group(1)] = float(m.group(2))
    return found


def monotonic(before, after):
    """No counter of the first page is smaller in the second."""
    old, new = counters(before), counters(after)
    assert len(old) > 5, f"only {len(old)} counters"
    for name, value in old.items():
        assert name in new or "cgroup" in name, f"{name} has gone"
        assert new.get(name, value) >= value, f"{name} went from {value} to {new[name]}"


def ledger(path, *status):
    """Series of one answer: every point of a series has one time and one interval with the others."""
    with open(path, encoding="utf-8") as f:
        d = json.load(f)
    rows = {s["row"] for s in d["series"]}
    assert {"idle-power", "residual", "idle", "kernel", "other"} <= rows, rows
    times = {}
    for s in d["series"]:
        last = 0
        for end, interval, quality, energy in s["points"]:
            assert end > last and d["since_unix_ns"] < end <= d["until_unix_ns"], (s["cgroup"], end)
            assert interval > 0 and quality and len(energy) == len(d["domains"]) and min(energy) >= 0
            assert times.setdefault(end, interval) == interval
            last = end
    assert len(times) >= 2, f"{len(times)} points"


def lost(path, reason):
    """A time of which nothing is known, with that reason."""
    with open(path, encoding="utf-8") as f:
        d = json.load(f)
    assert any(reason in x["reason"] and x["until_unix_ns"] > x["from_unix_ns"] for x in d["lost"]), d["lost"]


if __name__ == "__main__":
    {"monotonic": monotonic, "ledger": ledger, "lost": lost}[sys.argv[1]](*sys.argv[2:])
