#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""profile.py FOLDER KERNEL: judges the profiles that tests/vm/guest/profile.sh left in FOLDER by the energy that simpmu
knows of every function. Prints test lines, and the table that docs/profile.md quotes. An error is that of a function's
share in its program, relative to the true share."""
import gzip
import os
import random
import sys

FUNCTIONS = 8
# Mean and worst error of the functions' energy under model, all domains together, in percent: for programs of about 60 s and
# of 5 to 9 s. An error falls with the root of the number of samples, and a function of 2 % has few of them.
GOAL = (2, 5)
SHORT = (13, 33)       # measured were 3.4 to 8.0, and 10.1 to 16.1; by CPU cycles alone it is 18 and 36
LONG_S = 40


def bounds(seconds):
    return SHORT if seconds < LONG_S else GOAL


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of a protobuf message: value is bytes or an int."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 2:
            size, at = varint(data, at)
            yield key >> 3, data[at:at + size]
            at += size
        else:
            value, at = varint(data, at)
            yield key >> 3, value


def numbers(data):
    at, found = 0, []
    while at < len(data):
        value, at = varint(data, at)
        found.append(value)
    return found


def first(message, number):
    return next((v for n, v in fields(message) if n == number), 0)


def read_pprof(name):
    """Sample types; then (functions from the leaf on, values) of each sample."""
    with gzip.open(name, "rb") as f:
        parts = list(fields(f.read()))
    text = [v.decode() for n, v in parts if n == 6]
    types = [text[first(v, 1)] for n, v in parts if n == 1]
    names = {first(v, 1): text[first(v, 2)] for n, v in parts if n == 5}
    places = {first(v, 1): [names[first(line, 1)] for k, line in fields(v) if k == 4] for n, v in parts if n == 4}
    samples = []
    for n, v in parts:
        if n == 2:
            stack = [f for k, ids in fields(v) if k == 1 for i in numbers(ids) for f in places[i]]
            samples.append((stack, [x for k, values in fields(v) if k == 2 for x in numbers(values)],
                            {text[first(label, 1)]: text[first(label, 2)] for k, label in fields(v) if k == 3}))
    return types, samples


def read_truth(folder, scenario):
    """(package, dram) nanojoules, and seconds, of each name: those of the scenario's time."""
    truth = {}
    for sign, when in ((-1, "before"), (1, "after")):
        with open(os.path.join(folder, f"{scenario}.{when}"), encoding="ascii") as f:
            for line in f.readlines()[2:]:
                _, time_ns, core, uncore, dram, name = line.split()
                was = truth.setdefault(name, [0, 0, 0.0])
                was[0] += sign * (int(core) + int(uncore))
                was[1] += sign * int(dram)
                was[2] += sign * int(time_ns) / 1e9
    return truth


def profile_of(folder, scenario):
    """Microjoules of each mix_N by domain, for each process by its own name; and of what is in none of them."""
    types, samples = read_pprof(os.path.join(folder, f"{scenario}.pb.gz"))
    package, dram = types.index("package-0"), types.index("dram-0")
    found, rest, taken = {}, 0, 0
    for stack, values, labels in samples:
        taken += values[0]
        mix = next((f for f in stack if f.startswith("mix_")), None)
        if mix is None:
            rest += values[package] + values[dram]
            continue
        # a program's process has the name of the function that was the last to run: its tag is before the last digit
        at = found.setdefault((labels["pid"] if "pid" in labels else "", labels["process"], mix), [0, 0])
        at[0] += values[package]
        at[1] += values[dram]
    return found, rest, taken


def errors(true, got):
    a, b = sum(true), sum(got)
    return [100 * (g / b) / (t / a) - 100 if b else -100.0 for t, g in zip(true, got)]


def judge_sums(folder, kernel):
    """The stacks of a cgroup, its [no sample] with them, are its row of the agent's history, in each domain."""
    with open(os.path.join(folder, "stacks.ledger"), encoding="utf-8") as f:
        lines = [line.strip().split(",") for line in f]
    chunks = [read_pprof(os.path.join(folder, "profile", name)) for name in os.listdir(os.path.join(folder, "profile"))]
    wrong = [] if len(lines) > 1 else ["no row in the history"]
    for at, column in enumerate(lines[0][2:], 2):
        row = sum(int(line[at]) for line in lines[1:])
        got = sum(v[types.index(column.removesuffix("_uj"))] for types, samples in chunks for _, v, labels in samples
                  if labels.get("cgroup") == "/stacks")
        if row != got or not row:
            wrong.append(f"{column}: stacks have {got}, the ledger {row}")
    print(f"{'FAIL' if wrong else 'ok'} vm/{kernel}/stacks: each domain adds up to the ledger" + (f": {'; '.join(wrong)}" if wrong else ""))


def tag_of(process):
    return process.split("-")[1][0] if "-" in process else ""


RATE_HZ = 99


def limit(true, seconds):
    """(mean, worst) errors that chance alone gives a sampler that has no other fault: it interrupts at random once for so many
    joules, at the same rate. The median of many draws."""
    rng, n = random.Random(1), int(RATE_HZ * seconds)
    drawn = []
    for _ in range(200):
        counts = [0] * FUNCTIONS
        for i in rng.choices(range(FUNCTIONS), [sum(t[:2]) for t in true], k=n):
            counts[i] += 1
        e = [abs(x) for x in errors([sum(t[:2]) for t in true], counts)]
        drawn.append((sum(e) / FUNCTIONS, max(e)))
    return (sorted(d[0] for d in drawn)[100], sorted(d[1] for d in drawn)[100])


def judge_program(name, formula, kernel, true, got):
    """Of one program: rows of (package, dram) by function. Prints the table; returns what is wrong."""
    both = errors([t[0] + t[1] for t in true], [g[0] + g[1] for g in got])
    package = errors([t[0] for t in true], [g[0] for g in got])
    dram = errors([t[1] for t in true], [g[1] for g in got])
    seconds = sum(t[2] for t in true)
    all_nj = sum(t[0] + t[1] for t in true)
    for i in range(FUNCTIONS):
        print(f"note {name} | mix_{i} | {100 * true[i][2] / seconds:.1f} | {100 * (true[i][0] + true[i][1]) / all_nj:.2f} | "
              f"{both[i]:+.2f} | {package[i]:+.2f} | {dram[i]:+.2f}")
    mean = sum(abs(e) for e in both) / FUNCTIONS
    worst = max(abs(e) for e in both)
    weighed = sum(abs(e) * (t[0] + t[1]) for e, t in zip(both, true)) / all_nj
    print(f"note {name} by {formula}, {seconds:.1f} s: mean {mean:.2f} %, worst {worst:.2f} %, mean by energy {weighed:.2f} %; "
          f"package {max(abs(e) for e in package):.2f} % worst, dram {max(abs(e) for e in dram):.2f} %")
    print(f"note {name}: chance alone, one interrupt at random for so many joules, {RATE_HZ} Hz: "
          "mean {:.2f} %, worst {:.2f} %".format(*limit(true, seconds)))
    if formula == "model":
        most_mean, most_worst = bounds(seconds)
        bad = mean > most_mean or worst > most_worst
        print(f"{'FAIL' if bad else 'ok'} vm/{kernel}/{name}: energy per function" +
              (f": mean {mean:.2f} % of {most_mean}, worst {worst:.2f} % of {most_worst}" if bad else ""))


def main():
    folder, kernel = sys.argv[1:3]
    with open(os.path.join(folder, "scenarios"), encoding="ascii") as f:
        scenarios = [line.split() for line in f]
    judge_sums(folder, kernel)
    for scenario, formula, tags in scenarios:
        truth = read_truth(folder, scenario)
        found, rest, taken = profile_of(folder, scenario)
        all_uj = sum(sum(v) for v in found.values()) + rest
        print(f"note {scenario}: {taken} samples, {100 * rest / all_uj:.2f} % of the energy beside the functions")
        for tag in tags:
            true = [next(v for n, v in truth.items() if n.endswith(f"-{tag}{i}")) for i in range(FUNCTIONS)]
            got = [[0, 0] for _ in range(FUNCTIONS)]
            for (_, process, mix), v in found.items():
                if tag_of(process) == tag or len(tags) == 1:
                    got[int(mix[4:])][0] += v[0]
                    got[int(mix[4:])][1] += v[1]
            judge_program(scenario if len(tags) == 1 else f"{scenario} {tag}", formula, kernel, true, got)


main()
