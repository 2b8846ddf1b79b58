#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_firefox.py [FILE]: is the file (or standard input) a profile that the Firefox Profiler takes?

firefox.schema.json, and what a schema cannot say: every column is as long as its table, every index points into its table,
a stack's caller stands before it, and times do not go back. Exit status 1 with what is wrong; 77 when Python's jsonschema is
not installed.
"""
import json
import os
import sys


def columns(place, table):
    for name, column in table.items():
        if isinstance(column, list) and len(column) != table["length"]:
            raise AssertionError(f"{place}: {name} has {len(column)} entries, length is {table['length']}")


def indexes(place, values, n):
    for v in values:
        if v is not None and v >= n:
            raise AssertionError(f"{place}: {v} points beyond {n}")


def times(place, values):
    if any(b < a for a, b in zip(values, values[1:])):
        raise AssertionError(f"{place}: time goes back")


def thread(place, t, n_strings):
    for name in ("samples", "markers", "stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols"):
        columns(f"{place} {name}", t[name])
    stacks = t["stackTable"]
    indexes(place + " samples stack", t["samples"]["stack"], stacks["length"])
    indexes(place + " stack frame", stacks["frame"], t["frameTable"]["length"])
    for at, prefix in enumerate(stacks["prefix"]):
        indexes(f"{place} prefix of {at}", [prefix], at)
    indexes(place + " frame func", t["frameTable"]["func"], t["funcTable"]["length"])
    indexes(place + " func name", t["funcTable"]["name"], n_strings)
    times(place, t["samples"]["time"])


def check(document):
    end = document["meta"]["profilingEndTime"]
    threads = document["threads"]
    for i, t in enumerate(threads):
        thread(f"thread {i}", t, len(document["shared"]["stringArray"]))
        if any(at > end for at in t["samples"]["time"]):
            raise AssertionError(f"thread {i}: a sample after the end")
    if len({t["pid"] for t in threads}) != len(threads):
        raise AssertionError("two main threads of a pid")
    for c in document["counters"]:
        columns(c["name"], c["samples"])
        times(c["name"], c["samples"]["time"])
        indexes(c["name"], [c["mainThreadIndex"]], len(threads))
        if threads[c["mainThreadIndex"]]["pid"] != c["pid"]:
            raise AssertionError(f"{c['name']}: its thread is of another pid")
    for name in ("initialVisibleThreads", "initialSelectedThreads"):
        indexes(name, document["meta"][name], len(threads))


def problem(document):
    """What is wrong, None = nothing. ImportError where jsonschema is not installed."""
    import jsonschema
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "firefox.schema.json"), encoding="utf-8") as f:
        schema = json.load(f)
    jsonschema.Draft202012Validator.check_schema(schema)
    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(document))
    if error:
        return "/".join(str(p) for p in error.absolute_path) + ": " + error.message[:500]
    try:
        check(document)
    except AssertionError as wrong:
        return str(wrong)
    return None


def main(argv):
    with open(argv[1] if len(argv) > 1 else "/dev/stdin", encoding="utf-8") as f:
        document = json.load(f)
    try:
        wrong = problem(document)
    except ImportError:
        print("SKIP firefox: Python's jsonschema is not installed")
        return 77
    if wrong:
        print(wrong, file=sys.stderr)
        return 1
    print(f"ok: {len(document['threads'])} threads, {len(document['counters'])} counters")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
