#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make bench-rivals: jouled beside what a user could run instead, on this machine, each alone in turn, in one interleaved
run. run.py BUILD [ROUNDS]; EVENT=NAME counts that event. Prints one Markdown section."""
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import agents

BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build")
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 9
N_GROUPS, N_SHORT = 500, 1000
EVENT = os.environ.get("EVENT") or "msr/tsc/"
WORK = tempfile.mkdtemp(prefix="jouled-rivals-")
MOUNT = agents.cgroup_mount()
TOP = f"{MOUNT}/jouled-rivals.{os.getpid()}"


class Group:
    """A cgroup, and what runs in it."""

    def __init__(self, name):
        self.path = f"{TOP}/{name}"
        os.makedirs(self.path)

    def join(self):
        with open(f"{self.path}/cgroup.procs", "w", encoding="ascii") as f:
            f.write("0")

    def run(self, args, **options):
        return subprocess.run(args, preexec_fn=self.join, check=True, capture_output=True, text=True, **options).stdout

    def cpu_seconds(self):
        with open(f"{self.path}/cpu.stat", encoding="ascii") as f:
            return next(int(line.split()[1]) / 1e6 for line in f if line.startswith("usage_usec"))

    def remove(self):
        for _ in range(200):
            try:
                os.rmdir(self.path)
                return
            except OSError:
                time.sleep(0.01)


class Load:
    """500 cgroups that each run on both CPUs once a second."""

    def __enter__(self):
        self.p = subprocess.Popen([f"{BUILD}/bench/bench", "load", str(N_GROUPS), "1000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.p.stdout.readline() != b"ready\n":
            raise SystemExit("rivals: the load did not start")
        return self

    def __exit__(self, *_):
        self.p.stdin.close()
        self.p.wait()


# Applications: work done per second.

class Timed:
    """A command whose last word is the seconds that it took."""

    def __init__(self, name, command):
        self.name, self.command, self.group = name, command, Group(name.replace(" ", "-"))

    def rate(self):
        return 1 / float(self.group.run(self.command.split()).split()[-1])


class Web:
    name = "nginx and wrk"

    def __init__(self):
        self.group, self.client, port = Group("nginx"), Group("wrk"), agents.free_port()
        page = os.path.join(WORK, "index.html")
        with open(page, "w", encoding="ascii") as f:
            f.write("x" * 1000)
        conf = os.path.join(WORK, "nginx.conf")
        with open(conf, "w", encoding="ascii") as f:
            f.write(f"daemon off; pid {WORK}/nginx.pid; error_log {WORK}/nginx.err; worker_processes 1; events {{}}\n"
                    f"http {{ access_log off; server {{ listen 127.0.0.1:{port}; root {WORK}; }} }}\n")
        os.chmod(WORK, 0o755)
        self.p = subprocess.Popen(["taskset", "-c", "0", "nginx", "-c", conf], preexec_fn=self.group.join, stderr=subprocess.DEVNULL)
        self.url = f"http://127.0.0.1:{port}/index.html"

    def rate(self):
        said = self.client.run(["taskset", "-c", "1", "wrk", "-t1", "-c16", "-d2s", self.url])
        return next(float(line.split()[1]) for line in said.splitlines() if line.startswith("Requests/sec"))


class Build:
    name = "parallel build"

    def __init__(self):
        self.group = Group("build")
        with open(f"{WORK}/Makefile", "w", encoding="ascii") as f:
            f.write("objects := $(notdir $(patsubst %.c,%.o,$(wildcard SRC/user/base/*.c)))\nall: $(objects)\n%.o: SRC/user/base/%.c\n"
                    "\tgcc -O2 -std=gnu11 -D_GNU_SOURCE -ISRC/user -ISRC/include -c -o $@ $<\n".replace("SRC", os.getcwd()))

    def rate(self):
        began = time.monotonic()
        self.group.run(["make", "-s", "-B", f"-j{os.cpu_count()}", "-C", WORK])
        return 1 / (time.monotonic() - began)


def quartiles(values):
    q = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return q[1], q[0], q[2]


def shown(values, form="{:.2f}"):
    return "{} ({} to {})".format(*(form.format(v) for v in quartiles(values)))


def costs(here, apps):
    """Each agent between two times without one, ROUNDS times: percent of work lost by application, and the agent's own use."""
    lost = {a.name: {app.name: [] for app in apps} for a in here}
    use = {a.name: {"cpu": [], "memory": [], "files": []} for a in here}

    def rates():
        return {app.name: app.rate() for app in apps}
    for n in range(ROUNDS):
        print(f"rivals: round {n + 1} of {ROUNDS}", file=sys.stderr)
        before = rates()
        for a in random.sample(here, len(here)):
            a.start()
            began, (cpu, _, _) = time.monotonic(), a.usage()
            with_it = rates()
            now, memory, files = a.usage()
            use[a.name]["cpu"].append((now - cpu) / (time.monotonic() - began) * 100)
            use[a.name]["memory"].append(memory)
            use[a.name]["files"].append(files)
            a.stop()
            after = rates()
            for app in apps:
                base = (before[app.name] + after[app.name]) / 2
                lost[a.name][app.name].append((1 - with_it[app.name] / base) * 100)
            before = after
    return lost, use


def side_by_side(here, work):
    """work() while all run beside each other; their pages are kept."""
    for a in here:
        a.keep, a.pages = True, []
        a.start()
    time.sleep(1.5)
    work()
    time.sleep(2.5)
    for a in here:
        a.stop()


def short_lives(here):
    """How many of 1000 cgroups that live 20 ms each one names."""
    def storm():
        for i in range(N_SHORT):
            group = Group(f"storm-{i}")
            subprocess.run(["timeout", "0.02", "sh", "-c", "while :; do :; done", f"storm-{i}"], preexec_fn=group.join, check=False)
            group.remove()
    side_by_side(here, storm)
    return {a.name: len(a.seen()) for a in here}


def time_errors(here):
    """Percent by which the CPU time of eight cgroups that work 1 ms and sleep 1 ms for 10 s differs from the kernel's."""
    names = [f"duty-{i}" for i in range(8)]
    work = [Group(name) for name in names]
    program = ("import time\nend = time.monotonic() + 10\nwhile time.monotonic() < end:\n until = time.monotonic() + 0.001\n"
               " while time.monotonic() < until: pass\n time.sleep(0.001)")

    def duty():
        for p in [subprocess.Popen([sys.executable, "-c", program], preexec_fn=g.join) for g in work]:
            p.wait()
    for a in here:
        a.watch(lambda: [g.path[len(MOUNT) + 1:] for g in work], "cpu-clock")
    side_by_side(here, duty)
    truth = [g.cpu_seconds() for g in work]
    for g in work:
        g.remove()
    said = {a.name: [a.cpu_seconds(name) for name in names] for a in here}
    return {name: None if None in s else [abs(v / t - 1) * 100 for v, t in zip(s, truth)] for name, s in said.items()}


def report(here, not_here, lost, use, seen, errors):
    apps = list(next(iter(lost.values())))
    print(f"| {ROUNDS} rounds, median (quartiles) | " + " | ".join(a.name for a in here) + " |")
    print("|---" * (len(here) + 1) + "|")
    for app in apps:
        print(f"| {app}: work lost, % | " + " | ".join(shown(lost[a.name][app]) for a in here) + " |")

    def row(what, of):
        print(f"| {what} | " + " | ".join(of(a.name) if a.is_meter else "" for a in here) + " |")
    row("its own CPU, % of a core", lambda n: shown(use[n]["cpu"]))
    row("resident memory at most, MiB", lambda n: f"{max(use[n]['memory']):.0f}")
    row("descriptors", lambda n: f"{max(use[n]['files'])}")
    row(f"of {N_SHORT} cgroups of 20 ms, named", lambda n: f"{seen[n]}")
    row("CPU time of a cgroup against cpu.stat, worst of 8, %", lambda n: f"{max(errors[n]):.2f}" if errors[n] else "none by cgroup")
    for a, reason in not_here:
        print(f"\n{a.name} was not run: {reason}.")


def main():
    if os.geteuid():
        raise SystemExit("rivals: root is needed: it makes cgroups")
    here, not_here = agents.all_of(WORK, BUILD, lambda: agents.load_groups(MOUNT), EVENT)
    os.makedirs(TOP)
    apps = []
    try:
        with Load():
            apps = [Timed("hackbench", "hackbench -g 2 -l 2000"),
                    Timed("perf bench sched pipe", "taskset -c 0 perf bench -f simple sched pipe -l 250000"), Web(), Build()]
            for app in apps:
                app.rate()
            lost, use = costs(here, apps)
            seen = short_lives([a for a in here if a.is_meter])
        errors = time_errors([a for a in here if a.is_meter])
        report(here, not_here, lost, use, seen, errors)
    finally:
        for app in apps:
            if hasattr(app, "p"):
                app.p.terminate()
                app.p.wait()
            app.group.remove()
            if hasattr(app, "client"):
                app.client.remove()
        os.rmdir(TOP)
        shutil.rmtree(WORK)


if __name__ == "__main__":
    main()
