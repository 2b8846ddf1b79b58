#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wake-up latency of real-time threads (cyclictest, one per CPU) beside 100 cgroups that run all the time, with jouled reading
1000 times a second and without, in turn. An interval is at least 10 ms, so eleven outputs with intervals beside each other make
the readings; energy is looked at every millisecond too. latency.py BUILD [ROUNDS]"""
import re
import shutil
import statistics
import subprocess
import sys
import time

from agent import JOULED, WORK, Load, config, goal, task_times

ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 9
SECONDS, PERIOD_US, MOST_US, SHARE = 5, 200, 5000, 0.9999


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


def main():
    text = "99.99 % of wake-ups at most 5 us later with jouled reading 1000 times a second"
    if not shutil.which("cyclictest"):
        goal("latency", text, "not run: no cyclictest", None)
        return
    total = {"without": [0] * (MOST_US + 1), "with jouled": [0] * (MOST_US + 1)}
    added, wakes, shares = [], [], []
    with Load(100, 1):
        for _ in range(ROUNDS):
            before = histogram()
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
            added.append(quantile(during, SHARE) - quantile(before, SHARE))
            for name, counts in (("without", before), ("with jouled", during)):
                total[name] = [a + b for a, b in zip(total[name], counts)]
    low, _, high = statistics.quantiles(added, n=4)
    most = {name: quantile(counts, SHARE) for name, counts in total.items()}
    print(f"\n### Wake-up latency, us ({ROUNDS} rounds of {SECONDS} s in turn, a thread per CPU every {PERIOD_US} us)\n")
    print("| | wake-ups | median | 99 % | 99.9 % | 99.99 % |\n|---|---|---|---|---|---|")
    for name, counts in total.items():
        print(f"| {name} | {sum(counts)} | " + " | ".join(str(quantile(counts, q)) for q in (0.5, 0.99, 0.999, SHARE)) + " |")
    print(f"\njouled's measuring thread ran {statistics.median(wakes):.0f} times a second and took {statistics.median(shares) * 100:.1f} % of a CPU.")
    goal("latency", text, f"{most['with jouled']} us against {most['without']} (a round's difference: {low:+.0f} to {high:+.0f})",
         most["with jouled"] <= most["without"] + 5)


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(WORK)
