#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the agent's continuous profile costs eight busy programs, in one interleaved run: none, 19 Hz, 99 Hz, 999 Hz. profile.py
BUILD [ROUNDS] [SECONDS]. Two figures, in percent of each CPU: what interrupts take from the programs, as work per CPU time that
they had, so that other load on the machine does not count; and the CPU time of the agent and of the processes that read files for
it, from the thirteenth second on, beyond that of an agent without a profile. What runs all the time is read before; that is in the
memory's peak. Programs alone differ by more from one turn to the next than interrupts at 19 Hz can take: what one interrupt takes
is measured at 999 Hz, and a goal is asked of that times its rate."""
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PROGRAMS = 8
RATES = (0, 19, 99, 999)
DENSE = 999    # at which the cost of an interrupt is measured
GOAL = {19: 0.3, 99: 1.0}
GOAL_MIB = 64
BEGIN = 12    # seconds that are left out of each turn: on a slow host files are read until then
TICK = os.sysconf("SC_CLK_TCK")


def goal(text, measured, passed):
    row = f"profile\t{text}\t{measured}\t{'pass' if passed else 'MISS'}\n"
    path = os.environ.get("BENCH_RESULTS")
    if path:
        with open(path, "a", encoding="utf-8") as f:
            f.write(row)
    else:
        print(row, end="")


class Busy:
    """A program; its points are (monotonic ns, CPU ns, rounds)."""

    def __init__(self, path):
        self.points = []
        self.process = subprocess.Popen([path], stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        for line in self.process.stdout:
            self.points.append(tuple(int(w) for w in line.split()))

    def pace(self, start, end):
        """Rounds per CPU second between two instants. None = it did not run."""
        inside = [p for p in self.points if start <= p[0] <= end]
        if len(inside) < 2 or inside[-1][1] == inside[0][1]:
            return None
        return (inside[-1][2] - inside[0][2]) / (inside[-1][1] - inside[0][1]) * 1e9


def used(pid):
    """CPU seconds of a process by the scheduler, and of its children that have ended."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as f:
            total += int(f.read().split()[0])
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return total / 1e9 + (int(fields[13]) + int(fields[14])) / TICK


def peak_mib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) / 1024


def turn(build, work, rate, seconds):
    """(start, end, CPU seconds per second, peak MiB) of an agent of that rate."""
    config = f"{work}/{rate}.yaml"
    with open(config, "w", encoding="ascii") as f:
        f.write("socket: { path: none }\nhistory: off\n" + (f"profile: {{ frequency: {rate} }}\n" if rate else ""))
    p = subprocess.Popen([f"{build}/jouled", "-q", "-c", config, "--state-dir", f"{work}/state{rate}", "-i", "1s", "-o", "null:"])
    time.sleep(BEGIN)
    if p.poll() is not None:
        sys.exit(f"profile.py: jouled ended with status {p.returncode}")
    start, before = time.monotonic_ns(), used(p.pid)
    time.sleep(seconds)
    end, after, peak = time.monotonic_ns(), used(p.pid), peak_mib(p.pid)
    p.terminate()
    if p.wait():
        sys.exit(f"profile.py: jouled: exit status {p.returncode}")
    return start, end, (after - before) / ((end - start) / 1e9), peak


def quartiles(values):
    q = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return f"{q[1]:.2f} ({q[0]:.2f} to {q[2]:.2f})"


def measure(build, work, rounds, seconds):
    """Percent of each CPU by rate: lost by the programs, used by the agent; and the greatest peak by rate."""
    cpus = len(os.sched_getaffinity(0))
    lost, own, peak = {r: [] for r in RATES}, {r: [] for r in RATES}, dict.fromkeys(RATES, 0.0)
    busy = [Busy(f"{build}/bench/profile_busy") for _ in range(PROGRAMS)]
    try:
        for _ in range(rounds):
            pace, cpu = {}, {}
            for rate in RATES:
                start, end, share, mib = turn(build, work, rate, seconds)
                found = [x for x in (b.pace(start, end) for b in busy) if x]
                if not found:
                    sys.exit("profile.py: the programs did not run")
                peak[rate] = max(peak[rate], mib)
                pace[rate], cpu[rate] = statistics.median(found), 100 * share / cpus
            for rate in RATES:
                lost[rate].append(100 * (1 - pace[rate] / pace[0]))
                own[rate].append(cpu[rate] - cpu[0])
    finally:
        for b in busy:
            b.process.kill()
            b.process.wait()
    return cpus, lost, own, peak


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else "build"
    rounds, seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 7, int(sys.argv[3]) if len(sys.argv) > 3 else 8
    with tempfile.TemporaryDirectory(prefix="jouled-bench-") as work:
        cpus, lost, own, peak = measure(build, work, rounds, seconds)
    print(f"\n## Continuous profile\n\nEight busy programs on {cpus} CPUs, {rounds} interleaved rounds of {seconds} s each; percent of "
          "each CPU beyond an agent without\na profile, medians and quartiles. Memory is the agent's peak (`VmHWM`).\n")
    print("| | interrupts, measured | by the cost of one | agent | both | MiB |\n|---|---:|---:|---:|---:|---:|")
    print(f"| none | | | | | {peak[0]:.1f} |")
    for rate in RATES[1:]:
        taken = [x * rate / DENSE for x in lost[DENSE]]
        both = [a + b for a, b in zip(taken, own[rate])]
        print(f"| {rate} Hz |", " | ".join(quartiles(x) for x in (lost[rate], taken, own[rate], both)), f"| {peak[rate]:.1f} |")
        if rate not in GOAL:
            continue
        goal(f"at {rate} Hz, 8 busy programs: at most {GOAL[rate]} % of each CPU", f"{quartiles(both)} %",
             statistics.median(both) <= GOAL[rate])
    print(f"\nAn interrupt with its stack takes {statistics.median(lost[DENSE]) / 100 / DENSE * 1e6:.1f} us of its CPU.")
    goal(f"at 99 Hz: at most {GOAL_MIB} MiB", f"{peak[99]:.1f} MiB at its peak", peak[99] <= GOAL_MIB)


main()
