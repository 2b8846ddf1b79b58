#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges what joulectl run wrote, by sums of its own.

run_verb.py cpu FILE             CPU time as the kernel's wait4 gave it: within 1 % or 200 us; more by a tick in a single run
run_verb.py alike FILE OTHER     no more than ten times the CPU time and energy of the other, or 1 ms of it
run_verb.py energy FILE WATTS    package energy = CPU time x watts above idle per core, within 15 %
run_verb.py statistics FILE N    mean, standard deviation and interval of N runs, anew
run_verb.py comparison FILE SIDES ROUNDS  each command ran once in each round; ratios and statistics, anew
run_verb.py same_order FILE OTHER    the commands ran in the same order, which is not the same in each round
run_verb.py progress PROGRAM...      on a terminal it says which run it is and what time is left
run_verb.py files DIR COMMAND    junit.xml, badge.svg and hyperfine.json of a gate that said worse
run_verb.py has FILE EXPRESSION  an expression about d, the object
run_verb.py terminal PROGRAM...  Ctrl-Z stops it as a job, then it goes on, Ctrl-C ends its command
run_verb.py burn SECONDS         uses that much CPU time
"""
import glob
import json
import math
import os
import pty
import signal
import statistics
import sys
import time
import xml.etree.ElementTree


def load(name):
    with open(name, encoding="utf-8") as f:
        return json.loads(f.read().splitlines()[-1])


def runs_of(d):
    return d.get("runs", [d])


TICK_NS = 10_000_000     # of a kernel with CONFIG_HZ=100, the slowest


def cpu(name):
    """wait4 may come while a process still leaves its CPU. Then rusage lacks the time since the scheduler's last update, a tick at
    most, which a busy host makes long: of several runs one has to agree."""
    above = []
    for r in runs_of(load(name)):
        kernel = r["user_ns"] + r["system_ns"]
        bound = max(0.01 * kernel, 202000)      # rusage has microseconds: two of them may be cut off
        assert -bound <= r["cpu_ns"] - kernel <= bound + TICK_NS, f"{r['cpu_ns']} ns, rusage {kernel} ns"
        above.append((r["cpu_ns"] - kernel) / bound)
    assert len(above) == 1 or min(above) <= 1, above


def alike(name, other):
    """The least of each: a run of a millisecond may be held up for ten."""
    a, b = runs_of(load(name)), runs_of(load(other))
    least = [min(r["cpu_ns"] for r in side) for side in (a, b)]
    assert least[0] <= 10 * least[1] + 1e6, least
    for domain in a[0]["energy_uj"]:
        least = [min(r["energy_uj"][domain] for r in side) for side in (a, b)]
        assert least[0] <= 10 * least[1] + 1e4, (domain, least)


def threads_per_core():
    with open(glob.glob("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")[0], encoding="ascii") as f:
        n = 0
        for part in f.read().strip().split(","):
            first, _, last = part.partition("-")
            n += int(last or first) - int(first) + 1
        return n


def energy(name, watts):
    d = load(name)
    expected = d["cpu_ns"] * 1e-3 * float(watts) / threads_per_core()
    got = sum(d["energy_uj"].values())
    assert abs(got - expected) <= 0.15 * expected, f"{got} uJ, {expected} expected"
    assert d["quality"] == "estimated" and set(d["energy_quality"].values()) == {"estimated"}, d
    for name, uj in d["energy_uj"].items():
        assert math.isclose(d["power_w"][name], uj * 1e3 / d["wall_ns"], rel_tol=1e-9), d["power_w"]
        assert uj <= d["machine"]["energy_uj"][name], d


def judge(got, values, t):
    mean, deviation = statistics.fmean(values), statistics.stdev(values)
    assert got["n"] == len(values), got
    assert math.isclose(got["mean"], mean, rel_tol=1e-9), (got, mean)
    assert math.isclose(got["stddev"], deviation, rel_tol=1e-6, abs_tol=1e-6), (got, deviation)
    assert math.isclose(got["ci95"], t * deviation / math.sqrt(len(values)), rel_tol=1e-3, abs_tol=1e-6), got


def repeated(name, n):
    d = load(name)
    t = {3: 4.3027, 5: 2.7764}[int(n)]
    assert len(d["runs"]) == int(n), d
    for key in ("wall_ns", "cpu_ns"):
        judge(d["statistics"][key], [r[key] for r in d["runs"]], t)
    for key in ("energy_uj", "power_w", "counters"):
        for column, got in d["statistics"][key].items():
            judge(got, [r[key][column] for r in d["runs"]], t)


def order_of(d):
    places = {r["order"]: side["side"] for side in d["sides"] for r in side["runs"]}
    assert sorted(places) == list(range(1, len(places) + 1)), places
    return "".join(places[i] for i in sorted(places))


def comparison(name, sides, rounds):
    d, sides, rounds = load(name), int(sides), int(rounds)
    letters = "ABCDEFGH"[:sides]
    order = order_of(d)
    assert len(order) == sides * rounds and d["rounds"] == rounds, order
    for i in range(rounds):
        assert sorted(order[i * sides:(i + 1) * sides]) == list(letters), order
    assert [c["side"] for c in d["comparisons"]] == list(letters[1:]), d["comparisons"]
    values = {s["side"]: {k: [r[k] for r in s["runs"]] for k in ("energy_total_uj", "cpu_ns", "wall_ns")} for s in d["sides"]}
    for c in d["comparisons"]:
        for key, got in c["ratios"].items():
            if key not in values["A"]:
                continue
            ratio = statistics.fmean(values[c["side"]][key]) / statistics.fmean(values["A"][key])
            assert math.isclose(got["ratio"], ratio, rel_tol=1e-9) and got["low"] <= ratio <= got["high"], (got, ratio)
        assert c["of"] == "energy_total_uj" and c["ratio"] == c["ratios"]["energy_total_uj"]["ratio"], c
    for side in d["sides"]:
        got, cpu_ns = side["statistics"]["cpu_ns"], values[side["side"]]["cpu_ns"]
        assert math.isclose(got["median"], statistics.median(cpu_ns)) and got["min"] == min(cpu_ns), got
        assert got["max"] == max(cpu_ns) and got["low"] <= got["mean"] <= got["high"], got


def same_order(name, other):
    d, e = load(name), load(other)
    assert order_of(d) == order_of(e), (order_of(d), order_of(e))
    assert len({order_of(d)[i:i + 2] for i in range(0, len(order_of(d)), 2)}) == 2, order_of(d)


def files(directory, command):
    suite = xml.etree.ElementTree.parse(directory + "/junit.xml").getroot()[0]
    assert suite.get("failures") == "1" and suite[0].get("name") == command, suite[0].attrib
    assert suite[0][0].tag == "failure" and suite[0][0].get("message").startswith("worse: "), suite[0][0].attrib
    badge = xml.etree.ElementTree.parse(directory + "/badge.svg").getroot()
    words = [t.text for t in badge.iter("{http://www.w3.org/2000/svg}text")]
    assert words[0] == "energy" and words[1].startswith("worse +"), words
    results = load(directory + "/hyperfine.json")["results"]
    assert results[1]["command"] == command and len(results) == 2, results
    for r in results:
        assert math.isclose(r["mean"], statistics.fmean(r["times"])) and len(r["energy_joules"]) == len(r["times"]), r
        assert math.isclose(r["median"], statistics.median(r["times"])) and r["user"] + r["system"] > 0, r


def progress(argv):
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp(argv[0], argv)
    seen = b""
    while True:
        try:
            piece = os.read(fd, 4096)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.waitpid(pid, 0)
    assert b"run 1 of 3" in seen and b"run 3 of 3, about 0 s left" in seen, seen[:600]
    assert b"\r\x1b[K\r\n A: true;" in seen, seen[-600:]


def has(name, expression):
    d = load(name)
    assert eval(expression, {"d": d}), d    # pylint: disable=eval-used


def job(argv):
    """The shell's part: a job in the foreground; what became of it."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvp(argv[0], argv)
    stops = 0
    while True:
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            break
        stops += 1
        os.write(1, b"stopped\n")
        time.sleep(0.1)
        os.killpg(pid, signal.SIGCONT)
        os.write(1, b"again\n")
    os.write(1, b"end %d %d\n" % (stops, os.waitstatus_to_exitcode(status)))
    os._exit(0)


def terminal(argv):
    pid, fd = pty.fork()
    if pid == 0:
        job(argv + ["sh", "-c", "trap 'exit 9' INT; echo ready; while :; do sleep 0.1; done"])
    seen = b""
    for wanted, key in ((b"ready", b"\x1a"), (b"again", b"\x03"), (b"end ", b"")):
        limit = time.monotonic() + 240
        while wanted not in seen and time.monotonic() < limit:
            try:
                seen += os.read(fd, 4096)
            except OSError:
                break
        os.write(fd, key)
    os.waitpid(pid, 0)
    assert b"end 1 9" in seen, seen[-300:]


def burn(seconds):
    while time.process_time() < float(seconds):
        pass


if __name__ == "__main__":
    verb, rest = sys.argv[1], sys.argv[2:]
    if verb in ("terminal", "progress"):
        {"terminal": terminal, "progress": progress}[verb](rest)
    else:
        {"cpu": cpu, "alike": alike, "energy": energy, "statistics": repeated, "has": has, "burn": burn,
         "comparison": comparison, "files": files, "same_order": same_order}[verb](*rest)
