# SPDX-License-Identifier: Apache-2.0
"""Stacks of real programs in a pprof file of joulectl, beside what perf saw in the same run.
profile_stacks.py PB2 FILE PERF_SCRIPT GO_PROGRAM PROCESS...
PERF_SCRIPT is of perf script -G -F pid,ip,sym,dso. Names of GO_PROGRAM, which perf cannot read, come from its table, read here."""
import bisect
import gzip
import math
import re
import struct
import sys
from collections import Counter, defaultdict

sys.path.insert(0, sys.argv[1])
import profile_pb2  # noqa: E402 pylint: disable=wrong-import-position

LEAST, TOP, POINTS, SIGMAS = 60, 20, 0.03, 4
# Where programs, threads and Go's stacks begin; the last two are those of stripped files.
ROOTS = {"_start", "__libc_start_main", "clone", "clone3", "__clone", "__clone3", "__GI___clone", "__GI___clone3", "runtime.goexit",
         "runtime.mstart", "runtime.systemstack", "runtime.mcall", "runtime.morestack", "runtime.asmcgocall", "runtime.rt0_go",
         "[libc.so.6]", "[ld-linux-x86-64.so.2]"}


def go_names(path):
    """Start addresses and names of the functions of a Go program of 1.18 or later that lies at fixed addresses."""
    with open(path, "rb") as f:
        data = f.read()
    at = next(m.start() for m in re.finditer(b"[\xf0\xf1]\xff\xff\xff\0\0\x01\x08", data))
    n, _, text, names, _, _, _, functions = struct.unpack_from("<8Q", data, at + 8)
    starts, found = [], []
    for i in range(n):
        entry, where = struct.unpack_from("<II", data, at + functions + 8 * i)
        name = at + names + struct.unpack_from("<I", data, at + functions + where + 4)[0]
        starts.append(text + entry)
        found.append(data[name:data.index(b"\0", name)].decode())
    return starts, found


def ours(path):
    """By process: pids, own samples by function, and how many stacks are whole and cut. The roots of whole ones."""
    p = profile_pb2.Profile()
    with gzip.open(path) as f:
        p.ParseFromString(f.read())
    text = p.string_table
    functions = {f.id: text[f.name] for f in p.function}
    names = {x.id: functions[x.line[-1].function_id] for x in p.location}
    pids, own, whole, cut, roots = defaultdict(set), defaultdict(Counter), Counter(), Counter(), defaultdict(Counter)
    for s in p.sample:
        if not s.value[0]:
            continue
        labels = {text[x.key]: text[x.str] or x.num for x in s.label}
        process, stack = labels["process"], [names[i] for i in s.location_id]
        pids[process].add(labels["pid"])
        own[process][stack[0]] += s.value[0]
        if all(name.endswith(" [k]") for name in stack if name != "[truncated]"):
            continue
        if stack[-1] == "[truncated]":
            cut[process] += s.value[0]
        else:
            whole[process] += s.value[0]
            roots[process][stack[-1]] += s.value[0]
    return pids, own, whole, cut, roots


def perfs(path, go):
    """Own samples by pid and function."""
    starts, names = go_names(go)
    own = defaultdict(Counter)
    for line in open(path, encoding="utf-8", errors="replace"):
        m = re.match(r"\s*(\d+)\s+([0-9a-f]+) (.*) \((\S*)\)$", line.rstrip())
        if not m:
            continue
        pid, address, name, file = int(m[1]), int(m[2], 16), m[3], m[4]
        if file.startswith("[kernel") or file.startswith("[guest"):
            name += " [k]"
        elif file.endswith("/" + go.rsplit("/", 1)[-1]) and starts[0] <= address < starts[-1]:
            name = names[bisect.bisect_right(starts, address) - 1]
        elif re.search(r"/perf-\d+\.map$|^//anon$", file) and name == "[unknown]":   # code made at run time, and no map of it
            name = "[unknown]"
        elif name == "[unknown]" or name.endswith("@plt"):
            name = f"[{file.rsplit('/', 1)[-1]}]"
        own[pid][re.sub(r"@[@\w.]+$", "", name)] += 1
    return own


def judge_one(process, whole, cut, roots, mine, theirs):
    """Why the process is not as it should be, and the function that is farthest from perf's share."""
    if whole + cut < LEAST or sum(theirs.values()) < LEAST:
        return f"{whole + cut} samples, perf has {sum(theirs.values())}", (0, "")
    if whole < 0.95 * (whole + cut):
        return f"{cut} of {whole + cut} samples are cut", (0, "")
    strange = {r: v for r, v in roots.items() if r not in ROOTS}
    if strange:
        return f"it begins at {strange}", (0, "")
    a, b, worst, why = sum(mine.values()), sum(theirs.values()), (0, ""), None
    for name, count in theirs.most_common(TOP):
        x, y = mine[name] / a, count / b
        chance = SIGMAS * math.sqrt(max(x * (1 - x), y * (1 - y)) * (1 / a + 1 / b))
        if abs(x - y) > POINTS + chance:
            why = f"{name} has {100 * x:.1f} % of {a}, perf says {100 * y:.1f} % of {b}"
        worst = max(worst, (abs(x - y), f"{name}: {100 * x:.1f}, perf {100 * y:.1f}"))
    return why, worst


def main(path, script, go, processes):
    pids, own, whole, cut, roots = ours(path)
    judge = perfs(script, go)
    bad = []
    for process in processes:
        theirs = sum((judge[pid] for pid in pids[process]), Counter())
        why, worst = judge_one(process, whole[process], cut[process], roots[process], own[process], theirs)
        print(f"{process}: {whole[process]} of {whole[process] + cut[process]} samples whole; most apart of perf's top {TOP}: {worst[1]}")
        if why:
            bad.append(f"{process}: {why}")
    if bad:
        sys.exit("; ".join(bad))


main(sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])
