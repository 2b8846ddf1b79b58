# SPDX-License-Identifier: Apache-2.0
"""What the history and the totals say, looked at from outside. history.py CHECK ARGUMENT..."""
import csv
import json
import re
import sqlite3
import sys
import time


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


def job(table, history, number):
    """Each step of the job has the energy that its cgroups have, in every domain; the sum is that of the ledger's rows."""
    with open(history, encoding="utf-8") as f:
        d = json.load(f)
    want = {}
    for s in d["series"]:
        m = re.search(rf"[/_]slurmstepd\.scope/job_{number}(?:/step_([^/]*))?(?:/|$)", s["cgroup"])
        if s["row"] != "cgroup" or not m:
            continue
        step = want.setdefault(f"{number}.{m[1]}" if m[1] else number, [0] * len(d["domains"]))
        for _, _, _, energy in s["points"]:
            step[:] = [a + b for a, b in zip(step, energy)]
    with open(table, encoding="utf-8") as f:
        found = {r["step"]: r for r in csv.DictReader(f)}
    assert {f"{number}.0", f"{number}.batch"} <= set(found) and set(found) == set(want), (set(found), set(want))
    for step, energy in want.items():
        is_now = [int(found[step][f"{name}_uj"]) for name in d["domains"]]
        total = sum(uj for uj, counts in zip(energy, d["in_total"]) if counts)
        assert is_now == energy and int(found[step]["energy_uj"]) == total, (step, found[step], energy)
        assert found[step]["ended"] == "yes", found[step]
    assert sum(int(found[f"{number}.{step}"]["energy_uj"]) > 0 for step in ("0", "batch")) == 2, found


def by_job(table, sums_by, number):
    """The job's line among the sums is the sum of its steps."""
    with open(table, encoding="utf-8") as f:
        steps = sum(int(r["energy_uj"]) for r in csv.DictReader(f))
    with open(sums_by, encoding="utf-8") as f:
        lines = {r["job"]: int(r["energy_uj"]) for r in csv.DictReader(f)}
    assert lines.get(number) == steps and "(no job)" in lines, (steps, lines)


def hours(path):
    """Sums of one cgroup: energy over the time that was measured is its power."""
    with open(path, encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    assert rows, "no hour"
    for r in rows:
        seconds, joules = float(r["seconds"]), int(r["energy_uj"]) / 1e6
        assert seconds >= 1 and abs(float(r["power_w"]) - joules / seconds) < 1e-5, r


def sums(path, text):
    """Energy by a name in CSV: shares, costs and grams follow from the energy, and the table's total is the sum."""
    with open(path, encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    assert len(rows) >= 5 and rows == sorted(rows, key=lambda r: (-int(r["energy_uj"]), r["slice"])), rows
    for r in rows:
        kwh = int(r["energy_uj"]) / 3.6e12
        assert abs(float(r["cost"]) - kwh * 0.32) < 1e-8 and abs(float(r["co2_g"]) - kwh * 350) < 1e-5, r
    with open(text, encoding="utf-8") as f:
        last = f.read().splitlines()[-1].split()
    assert last[-2:] == ["=", "total"] and float(last[0].rstrip("~?")) >= sum(int(r["energy_uj"]) for r in rows) / 1e6 - 0.01, last


def varint(n):
    out = bytearray()
    while n > 0x7f:
        out.append(n & 0x7f | 0x80)
        n >>= 7
    return bytes(out) + bytes([n])


def fill(path, seconds, cgroups):
    """So many seconds up to now, each with so many cgroups, into the file of an agent that has ended."""
    db = sqlite3.connect(path)
    domains, n = db.execute("SELECT id, n FROM domains ORDER BY id DESC LIMIT 1").fetchone()
    boot = db.execute("SELECT max(id) FROM boot").fetchone()[0]
    base = max(db.execute("SELECT max(id) FROM series").fetchone()[0] or 0, 100) + 1
    now = time.time_ns()
    db.executemany("INSERT INTO series(id, boot, cgroup, path, used_ns, ended) VALUES(?, ?, ?, ?, ?, 0)",
                   ((base + i, boot, 10**9 + i, b"/filled/%d" % i, now) for i in range(int(cgroups))))
    data, last = bytearray(varint(6 + int(cgroups))), 0
    for series in list(range(6)) + [base + i for i in range(int(cgroups))]:
        data += varint(series - last) + b"\4" + varint(1000 + series) * n
        last = series
    db.execute("DELETE FROM points_1s")
    for k in range(int(seconds)):
        end = now - (int(seconds) - k) * 10**9
        db.execute("INSERT INTO points_1s(slot, domains, start_ns, end_ns, interval_ns, data) VALUES(?, ?, ?, ?, ?, ?)",
                   (end - 1, domains, end - 10**9, end, 10**9, bytes(data)))
    db.commit()


def step(path, seconds, points):
    """A step, and at least so many points of a series."""
    with open(path, encoding="utf-8") as f:
        d = json.load(f)
    most = max(len(s["points"]) for s in d["series"])
    assert d["step_ns"] == int(seconds) * 10**9 and most >= int(points), (d["step_ns"], most)


if __name__ == "__main__":
    {"monotonic": monotonic, "ledger": ledger, "job": job, "by_job": by_job, "sums": sums, "hours": hours,
     "lost": lost, "fill": fill, "step": step}[sys.argv[1]](*sys.argv[2:])
