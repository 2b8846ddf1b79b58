#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wake-up latency of real-time threads (cyclictest, one per CPU) beside 100 cgroups that run all the time: without jouled, with
jouled reading 1000 times a second, and with the limit program doing the least of that as often, in turn. An interval is at least
10 ms, so eleven outputs with intervals beside each other make the readings; energy is looked at every millisecond too.
latency.py BUILD [ROUNDS]

What is judged is by how much a percentile differs within a round, over all rounds: its median, and the two differences
between which the median of any number of such rounds lies at 95 % (by their ranks, whatever their distribution). The goal is
reached when all of that is below it, missed when all is above; else this machine does not tell. Two rounds without jouled
show what a machine tells of nothing."""
import math
import re
import shutil
import statistics
import subprocess
import sys
import time

from agent import JOULED, WORK, LimitProgram, Load, config, goal, task_times

ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 9
SECONDS, PERIOD_US, MOST_US, SHARE, MOST_ADDED_US = 5, 200, 5000, 0.9999, 5
SHARES = (0.5, 0.99, 0.999, SHARE)
WITHOUT, JOULED_THERE, LIMIT_THERE = "without", "with jouled", "with the limit program"
OUTPUTS = "rapl-poll: 1ms\noutputs:\n" + "".join(f"  - {{ format: null, to: 'null:', interval: {10000 + 97 * i}us }}\n" for i in range(11))


def histogram():
    """Wake-ups by latency in us, all threads together; [MOST_US] holds those above."""
    said = subprocess.run(["cyclictest", "-q", "-m", "-p", "90", "-t", "-i", str(PERIOD_US), "-h", str(MOST_US), "-D", str(SECONDS)],
                          capture_output=True, text=True, check=True).stdout
    counts = [0] * (MOST_US + 1)
    for us, per_thread in re.findall(r"^(\d+)((?:[ \t]+\d+)+)[ \t]*$", said, re.M):
        counts[min(int(us), MOST_US)] += sum(map(int, per_thread.split()))
    counts[MOST_US] += sum(int(n) for n in re.search(r"# Histogram Overflows:(.*)", said).group(1).split())
    return counts


def quantile(counts, share):
    left = share * sum(counts)
    for us, n in enumerate(counts):
        left -= n
        if left <= 0:
            return us
    return MOST_US


def median_within(values):
    """Between which two the median of all such values lies, at 95 %; of fewer than six values at what their range has."""
    ordered, tail, rank = sorted(values), 0, 0
    while rank < len(values) // 2:
        tail += math.comb(len(values), rank) / 2 ** len(values)
        if tail > 0.025:
            break
        rank += 1
    rank = max(rank, 1)
    return ordered[rank - 1], ordered[-rank]


def differences(counts, other, share):
    return [quantile(a, share) - quantile(b, share) for a, b in zip(counts, other)]


def shown(values):
    low, high = median_within(values)
    return f"{statistics.median(values):+.0f} ({low:+.0f} to {high:+.0f})"


def with_jouled(wakes, shares):
    """Adds how often its measuring thread ran a second, and its share of a CPU."""
    p = subprocess.Popen([JOULED, "-q", "-c", config(extra=OUTPUTS), "--state-dir", WORK])
    time.sleep(0.5)
    while "jouled-measure" not in task_times(p.pid) and p.poll() is None:
        time.sleep(0.1)
    t0, (c0, n0) = time.monotonic(), task_times(p.pid).get("jouled-measure", (0, 0))
    during = histogram()
    took, (c1, n1) = time.monotonic() - t0, task_times(p.pid).get("jouled-measure", (0, 0))
    wakes.append((n1 - n0) / took)
    shares.append((c1 - c0) / 1e9 / took)
    if p.poll() is not None:
        sys.exit("bench: jouled ended early")
    p.terminate()
    p.wait()
    return during


def report(rounds):
    """Of each kind of round a list of histograms."""
    total = {kind: [sum(us) for us in zip(*counts)] for kind, counts in rounds.items()}
    print(f"\n### Wake-up latency, us ({ROUNDS} rounds of {SECONDS} s in turn, a thread per CPU every {PERIOD_US} us)\n")
    print("| | wake-ups | median | 99 % | 99.9 % | 99.99 % |\n|---|---|---|---|---|---|")
    for kind, counts in total.items():
        print(f"| {kind} | {sum(counts)} | " + " | ".join(str(quantile(counts, q)) for q in SHARES) + " |")
    pairs = {f"{kind}, less without in the same round": (rounds[kind], rounds[WITHOUT]) for kind in (JOULED_THERE, LIMIT_THERE)}
    pairs["two rounds without, one after the other"] = rounds[WITHOUT][1:], rounds[WITHOUT][:-1]
    print("\n| difference, us (its median lies in, at 95 %) | median | 99 % | 99.9 % | 99.99 % |\n|---|---|---|---|---|")
    for name, (some, other) in pairs.items():
        print(f"| {name} | " + " | ".join(shown(differences(some, other, q)) for q in SHARES) + " |")
    added, limit, nothing = (differences(*pair, SHARE) for pair in pairs.values())
    low, high = median_within(added)
    quartiles = statistics.quantiles(added, n=4)
    goal("latency", "99.99 % of wake-ups at most 5 us later with jouled reading 1000 times a second",
         f"{shown(added)} us, quartiles {quartiles[0]:+.0f} to {quartiles[2]:+.0f}; the limit program {shown(limit)}; "
         f"two rounds without {shown(nothing)}",
         True if high <= MOST_ADDED_US else False if low > MOST_ADDED_US else None,
         median_within(limit)[0] <= MOST_ADDED_US, told=False)


def main():
    if not shutil.which("cyclictest"):
        goal("latency", "99.99 % of wake-ups at most 5 us later with jouled reading 1000 times a second", "not run: no cyclictest", None)
        return
    rounds, wakes, shares = {WITHOUT: [], JOULED_THERE: [], LIMIT_THERE: []}, [], []
    with Load(100, 1):
        for n in range(ROUNDS):
            rounds[WITHOUT].append(histogram())
            for kind in (JOULED_THERE, LIMIT_THERE)[::-1 if n % 2 else 1]:
                if kind == JOULED_THERE:
                    rounds[kind].append(with_jouled(wakes, shares))
                    continue
                with LimitProgram(1, 0):
                    rounds[kind].append(histogram())
    report(rounds)
    print(f"\njouled's measuring thread ran {statistics.median(wakes):.0f} times a second and took "
          f"{statistics.median(shares) * 100:.1f} % of a CPU.")


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(WORK)
