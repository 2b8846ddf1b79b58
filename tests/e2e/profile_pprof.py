#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the pprof file of joulectl profile about profile_load.c, read with Google's library and code that protoc made of
profile.proto; readelf and nm say what is true of the program. profile_pprof.py FOLDER_OF_PB2 FILE PROGRAM"""
import gzip
import re
import subprocess
import sys
import time

sys.path.insert(0, sys.argv[1])
import profile_pb2  # noqa: E402 pylint: disable=wrong-import-position

ORDER = ["work_large", "work_middle", "work_small"]
PROGRAM = sys.argv[3]


def output(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


p = profile_pb2.Profile()
with gzip.open(sys.argv[2]) as f:
    p.ParseFromString(f.read())
text = p.string_table
assert text[0] == "" and len(set(text)) == len(text), "strings"
types = [(text[t.type], text[t.unit]) for t in p.sample_type]
assert types[:3] == [("samples", "count"), ("cpu", "nanoseconds"), ("energy", "microjoules")], types
assert len(types) > 3 and all(unit == "microjoules" for _, unit in types[3:]), types
assert text[p.default_sample_type] == "energy" and p.period == 10**9 // 487, p.period
assert abs(time.time_ns() - p.time_nanos - p.duration_nanos) < 60e9 and p.duration_nanos > 0, p.time_nanos
comments = [text[c] for c in p.comment]
assert any(c.startswith("machine ") for c in comments) and any(c.startswith("formula ") for c in comments), comments
summed = next(c for c in comments if "sum of:" in c).split("sum of:")[1].split()

functions = {f.id: text[f.name] for f in p.function}
mappings = {m.id: m for m in p.mapping}
locations = {x.id: x for x in p.location}
assert len(functions) == len(p.function) == len({(f.name, f.filename) for f in p.function}) and 0 not in functions, "functions"
assert len(mappings) == len(p.mapping) and len(locations) == len(p.location), "numbers are not unique"
names = {i: functions[x.line[0].function_id] for i, x in locations.items()}
for x in p.location:
    m = mappings.get(x.mapping_id)
    assert m or x.mapping_id == 0
    assert not m or m.memory_start <= x.address < m.memory_limit, (names[x.id], hex(x.address))

own = dict.fromkeys(ORDER, 0)
total = 0
off_pace = 0
for s in p.sample:
    assert len(s.value) == len(types) and min(s.value) >= 0 and s.location_id, s
    values = dict(zip((t for t, _ in types), s.value))
    assert values["energy"] == sum(values[d] for d in summed), values
    # the pace differs by up to a sixteenth, and every sample stands for the pace at its time
    assert abs(values["cpu"] - values["samples"] * p.period) * 16 <= values["samples"] * (p.period + 16), values
    off_pace += values["cpu"] != values["samples"] * p.period
    labels = {text[x.key]: text[x.str] or x.num for x in s.label}
    assert labels["cgroup"].startswith("/") and labels["quality"], labels
    stack = [names[i] for i in s.location_id]
    assert (stack == ["[no sample]"]) == (values["samples"] == 0), stack
    assert stack == ["[no sample]"] or (labels["process"] and labels["pid"] > 0), labels
    total += values["energy"]
    for name in ORDER:
        if name in stack:
            own[name] += values["energy"]
            assert stack[stack.index(name) + 1] in ("all_work", "main", "[truncated]"), stack
assert own["work_large"] > own["work_middle"] > own["work_small"] > 0, own
assert sum(own.values()) > total / 2, f"{own} of {total} uJ"
# a program in step with the clock would be met at the same places of its round for ever, if the pace were always the same
assert p.duration_nanos > 2e9, "the pace changes once in a second: that is too short to see it"
assert off_pace, "all samples are of one pace"

# The program: its build id, and addresses that are in its functions.
program = [m for m in p.mapping if text[m.filename] == PROGRAM]
assert len(program) == 1, [text[m.filename] for m in p.mapping]
program = program[0]
build_id = re.search(r"Build ID: ([0-9a-f]+)", output("readelf", "-n", PROGRAM))[1]
assert text[program.build_id] == build_id, (text[program.build_id], build_id)
segments = [tuple(int(v, 16) for v in m.groups()) for m in
            re.finditer(r"LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+) 0x\w+ R E", output("readelf", "-lW", PROGRAM))]
ranges = {m[3]: (int(m[1], 16), int(m[2], 16)) for m in
          re.finditer(r"^(\w+) (\w+) [tT] (\S+)$", output("nm", "-S", PROGRAM), re.M)}
checked = 0
for i, x in locations.items():
    if x.mapping_id != program.id or names[i] not in ORDER:
        continue
    offset = x.address - program.memory_start + program.file_offset
    address = next(offset - at + virtual for at, virtual, size in segments if at <= offset < at + size)
    start, size = ranges[names[i]]
    assert start <= address < start + size, (names[i], hex(address))
    checked += 1
assert checked >= len(ORDER), checked
