#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Agents of several builds in turn, beside the same 1000 busy cgroups: the run time of each one's threads per report, in ms per
1000 pairs of cgroup and CPU, and that of the limit program that writes as much. turns.py BUILD ROUNDS OUTPUT[,OUTPUT...]
NAME=JOULED...: BUILD has the load and the limit program (bench report); an output is null, snapshot, hwpc, power. The order of the
builds changes from round to round. A line for each output and program: median, least and most, then the medians by thread.
INTERVAL_MS=1000 in the environment: a report a second in place of twenty."""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

CGROUPS, CPUS = 1000, 2
INTERVAL_MS = int(os.environ.get("INTERVAL_MS", "50"))
BEGIN_S, SECONDS = 1.2 + 2 * INTERVAL_MS / 1000, max(2, 10 * INTERVAL_MS / 1000)


def run_times_ns(pid):
    """By the names of the threads."""
    found = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/comm", encoding="utf-8", errors="replace") as f:
            name = f.read().strip()
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as f:
            found[name] = found.get(name, 0) + int(f.read().split()[0])
    return found


def turn(argv, out):
    """(ms per 1000 pairs by thread, bytes per report that went to the file) of a program that waits for the end of its input, or
    for SIGTERM."""
    p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    time.sleep(BEGIN_S)
    if p.poll() is not None:
        sys.exit(f"turns.py: {argv[0]} ended with status {p.returncode}")
    size = os.path.getsize(out) if os.path.exists(out) else 0
    before, began = run_times_ns(p.pid), time.monotonic()
    time.sleep(SECONDS)
    after, reports = run_times_ns(p.pid), (time.monotonic() - began) * 1000 / INTERVAL_MS
    size = os.path.getsize(out) - size if os.path.exists(out) else 0
    p.stdin.close()
    p.terminate()
    p.wait()
    pairs = CGROUPS * CPUS / 1000
    return {name: (ns - before.get(name, 0)) / 1e6 / reports / pairs for name, ns in after.items()}, int(size / reports)


def all_turns(build, rounds, outputs, programs, work):
    found, size = {}, {}
    config = os.path.join(work, "turns.yaml")
    with open(config, "w", encoding="ascii") as f:
        f.write("socket: { path: none }\nevents: { core: [msr/tsc/] }\n")
    for r in range(rounds):
        for output in outputs:
            for name, jouled in programs if r % 2 == 0 else programs[::-1]:
                folder = tempfile.mkdtemp(dir=work)
                out = os.path.join(folder, "out")
                to = "null:" if output == "null" else f"{output}=file://{out}"
                by_thread, bytes_each = turn([jouled, "-q", "-c", config, "--state-dir", folder, "-i", f"{INTERVAL_MS}ms", "-o", to], out)
                found.setdefault((output, name), []).append(by_thread)
                size[output] = bytes_each
                shutil.rmtree(folder)
            if output != "null":
                out = os.path.join(work, "limit")
                argv = [f"{build}/bench/bench", "report", str(INTERVAL_MS), str(size[output]), out]
                found.setdefault((output, "limit"), []).append(turn(argv, out)[0])
                os.unlink(out)
    return found


def main():
    if len(sys.argv) < 5 or not sys.argv[2].isdigit() or not all("=" in a for a in sys.argv[4:]):
        sys.exit(__doc__)
    build, rounds, outputs = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(",")
    programs = [tuple(a.split("=", 1)) for a in sys.argv[4:]]
    work = tempfile.mkdtemp(prefix="jouled-turns-")
    with subprocess.Popen([f"{build}/bench/bench", "load", str(CGROUPS), "20", str(CPUS)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as load:
        try:
            if load.stdout.readline() != "ready\n":
                sys.exit("turns.py: the load did not start")
            found = all_turns(build, rounds, outputs, programs, work)
        finally:
            load.stdin.close()
            shutil.rmtree(work)
    for (output, name), turns in sorted(found.items()):
        sums = [sum(t.values()) for t in turns]
        threads = " ".join(f"{k} {statistics.median(t.get(k, 0) for t in turns):.3f}" for k in sorted({k for t in turns for k in t}))
        print(f"{output:9} {name:10} {statistics.median(sums):.3f} ({min(sums):.3f} to {max(sums):.3f})  {threads}")


main()
