# SPDX-License-Identifier: Apache-2.0
"""Stacks of real programs in a pprof file of joulectl, beside what perf saw in the same run. Prints a line for each: the difference
in points that is farthest, and by how much chance alone would put it off once in three times.
profile_stacks.py PB2 FILE PERF_SCRIPT GO_PROGRAM PROCESS...
PERF_SCRIPT is of perf script -G -F pid,ip,sym,dso. Names of GO_PROGRAM, which perf cannot read, come from its table, read here."""
import bisect
import gzip
import math
import os
import re
import struct
import subprocess
import sys
from collections import Counter, defaultdict

sys.path.insert(0, sys.argv[1])
import profile_pb2  # noqa: E402 pylint: disable=wrong-import-position

LEAST, TOP, POINTS, SIGMAS = 60, 20, 0.03, 4
# Where programs, threads and Go's stacks begin, main where what is copied of the stack ends there; the last two are those of stripped
# files.
ROOTS = {"_start", "__libc_start_main", "__libc_start_call_main", "main", "clone", "clone3", "__clone", "__clone3", "__GI___clone", "__GI___clone3", "runtime.goexit",
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


def aliases(mappings):
    """Names of the C library that are of one function, each to the same one of them: perf may show another than joulectl."""
    same = {}
    for path, build_id in mappings:
        if not path.endswith("/libc.so.6"):
            continue
        for file in (path, f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"):
            at = defaultdict(set)
            for option in (["-D"], []) if os.path.exists(file) else ():
                out = subprocess.run(["nm", *option, file], capture_output=True, text=True, check=False).stdout
                for m in re.finditer(r"^([0-9a-f]+) [tTwWi] ([^@\s]+)", out, re.M):
                    at[m[1]].add(m[2])
            for names in at.values():
                known = {same[n] for n in names if n in same} | {min(names)}
                same |= {n: min(known) for n in names}
    return same


def first_instructions(path, cache={}):
    """Where a program begins, as an offset in its file."""
    if path not in cache:
        try:
            with open(path, "rb") as f:
                head = f.read(64)
                entry, table, size, count = *struct.unpack_from("<QQ", head, 24), *struct.unpack_from("<HH", head, 54)
                f.seek(table)
                segments = [struct.unpack_from("<IIQQQQ", f.read(size)) for _ in range(count)]
            cache[path] = next(entry - at + offset for kind, _, offset, at, _, n in segments if kind == 1 and at <= entry < at + n)
        except (OSError, struct.error, StopIteration):
            cache[path] = None
    return cache[path]


def begins_here(location, mapping, path):
    """A program that was stripped has no name for its first function."""
    entry = first_instructions(path) if mapping else None
    return entry is not None and 0 <= location.address - mapping.memory_start + mapping.file_offset - entry < 64


def ours(path):
    """By process: pids, own samples by function, and how many stacks are whole and cut. The roots of whole ones. And the names of
    the C library that are of one function."""
    p = profile_pb2.Profile()
    with gzip.open(path) as f:
        p.ParseFromString(f.read())
    text = p.string_table
    functions = {f.id: text[f.name] for f in p.function}
    mappings = {m.id: m for m in p.mapping}
    same = aliases([(text[m.filename], text[m.build_id]) for m in p.mapping])
    places = {x.id: x for x in p.location}
    names = {x.id: functions[x.line[-1].function_id] for x in p.location}
    names = {i: same.get(name, name) for i, name in names.items()}
    pids, own, whole, cut, roots = defaultdict(set), defaultdict(Counter), Counter(), Counter(), defaultdict(Counter)
    for s in p.sample:
        if not s.value[0]:
            continue
        labels = {text[x.key]: text[x.str] or x.num for x in s.label}
        process, stack = labels["process"], [names[i] for i in s.location_id]
        pids[process].add(labels.get("pid", 0))   # one that ends has none any more
        own[process][stack[0]] += s.value[0]
        if all(name.endswith(" [k]") for name in stack if name != "[truncated]"):
            continue
        if stack[-1] == "[truncated]":
            cut[process] += s.value[0]
        else:
            root = places[s.location_id[-1]]
            mapping = mappings.get(root.mapping_id)
            begins = begins_here(root, mapping, text[mapping.filename] if mapping else "")
            whole[process] += s.value[0]
            roots[process]["_start" if begins else stack[-1]] += s.value[0]
    return pids, own, whole, cut, roots, same


def perfs(path, go, same):
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
        name = re.sub(r"@[@\w.]+$", "", name)
        own[pid][same.get(name, name)] += 1
    return own


def judge_one(process, whole, cut, roots, mine, theirs):
    """Why the process is not as it should be, and (difference, one sigma of it, words) of the function that is farthest from perf's
    share."""
    none = (0, 0, "")
    if whole + cut < LEAST or sum(theirs.values()) < LEAST:
        return f"{whole + cut} samples, perf has {sum(theirs.values())}", none
    if whole < 0.95 * (whole + cut):
        return f"{cut} of {whole + cut} samples are cut", none
    strange = {r: v for r, v in roots.items() if r not in ROOTS}
    if strange:
        return f"it begins at {strange}", none
    a, b, worst, why = sum(mine.values()), sum(theirs.values()), none, None
    for name, count in theirs.most_common(TOP):
        x, y = mine[name] / a, count / b
        sigma = math.sqrt(max(x * (1 - x), y * (1 - y)) * (1 / a + 1 / b))
        if abs(x - y) > POINTS + SIGMAS * sigma:
            why = f"{name} has {100 * x:.1f} % of {a}, perf says {100 * y:.1f} % of {b}"
        worst = max(worst, (abs(x - y), sigma, f"{name}: {100 * x:.1f}, perf {100 * y:.1f}"))
    return why, worst


def main(path, script, go, processes):
    pids, own, whole, cut, roots, same = ours(path)
    judge = perfs(script, go, same)
    bad = []
    for process in processes:
        theirs = sum((judge[pid] for pid in pids[process]), Counter())
        why, worst = judge_one(process, whole[process], cut[process], roots[process], own[process], theirs)
        print(f"{process}: {whole[process]} of {whole[process] + cut[process]} samples whole; most apart of perf's top {TOP}: {worst[2]}: "
              f"{100 * worst[0]:.1f} points, one sigma of chance is {100 * worst[1]:.1f}")
        if why:
            bad.append(f"{process}: {why}")
    if bad:
        sys.exit("; ".join(bad))


main(sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])
