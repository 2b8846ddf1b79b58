#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Of the samples in each named process's user space, at least 95 in 100 reach the program's start. The file is pprof's.
profile_whole.py FOLDER_OF_PB2 FILE PROCESS..."""
import gzip
import sys

sys.path.insert(0, sys.argv[1])
import profile_pb2  # noqa: E402 pylint: disable=wrong-import-position

LEAST = 20  # samples of a process, or nothing was shown
p = profile_pb2.Profile()
with gzip.open(sys.argv[2]) as f:
    p.ParseFromString(f.read())
text = p.string_table
functions = {f.id: text[f.name] for f in p.function}
names = {x.id: functions[x.line[0].function_id] for x in p.location}
whole, cut = {}, {}
for s in p.sample:
    process = {text[x.key]: text[x.str] for x in s.label}.get("process")
    stack = [names[i] for i in s.location_id]
    if all(name.endswith(" [k]") for name in stack if name != "[truncated]"):
        continue
    count = cut if "[truncated]" in stack else whole
    count[process] = count.get(process, 0) + s.value[0]
for process in sys.argv[3:]:
    n, bad = whole.get(process, 0), cut.get(process, 0)
    assert n + bad >= LEAST, f"{process}: {n + bad} samples"
    assert n >= 0.95 * (n + bad), f"{process}: {bad} of {n + bad} samples are cut"
    print(f"{process}: {n} of {n + bad} whole")
