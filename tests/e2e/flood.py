#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""flood.py make DIR COUNT: cgroups below DIR, in each of them a process that ran and ended.
flood.py remove DIR: those away.
flood.py rows PAGE PATH: NAME SECONDS of every row at or below PATH.
flood.py kept BEFORE AFTER: is every row of the one in the other, with no less?
flood.py sum PAGE PATH DIR: do the rows at and below PATH have what the kernel charged DIR?"""
import os
import re
import sys

ROW = re.compile(r'jouled_cgroup_cpu_seconds_total\{cgroup="([^"]*)"[^}]*\} ([0-9.]+)\n')


def make(top, count):
    for i in range(int(count)):
        path = f"{top}/x{i}"
        os.mkdir(path)
        child = os.fork()
        if not child:
            with open(f"{path}/cgroup.procs", "w", encoding="utf-8") as f:
                f.write("0")
            sum(range(20000))
            os._exit(0)
        os.waitpid(child, 0)


def remove(top):
    for path, dirs, _ in os.walk(top, topdown=False):
        for d in dirs:
            os.rmdir(f"{path}/{d}")


def rows(page, top):
    with open(page, encoding="utf-8") as f:
        found = [ROW.fullmatch(line) for line in f]
    return {m[1]: float(m[2]) for m in found if m and (m[1] == top or m[1].startswith(top + "/"))}


def total(page, top, directory):
    found = rows(page, top)
    with open(f"{directory}/cpu.stat", encoding="utf-8") as f:
        charged = int(dict(line.split() for line in f)["usage_usec"]) / 1e6
    seen = sum(found.values())
    print(f"{len(found)} rows with {seen:.3f} s, the kernel charged {charged:.3f} s")
    return not charged * 0.95 <= seen <= charged * 1.05


def kept(before, after):
    def read(path):
        with open(path, encoding="utf-8") as f:
            return {name: float(seconds) for name, seconds in map(str.split, f)}

    was, now = read(before), read(after)
    bad = [f"{name} {seconds}: {now.get(name)}" for name, seconds in was.items() if now.get(name, -1) < seconds]
    print(f"{len(bad)} of {len(was)} rows: {bad[:2]}" if bad or not was else f"{len(was)} rows")
    return bool(bad) or not was


what, args = sys.argv[1], sys.argv[2:]
if what == "rows":
    for name, seconds in sorted(rows(*args).items()):
        print(name, seconds)
else:
    sys.exit({"make": make, "remove": remove, "sum": total, "kept": kept}[what](*args) or 0)
