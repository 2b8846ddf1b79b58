#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench.py [NODES [SECONDS]]: simulated nodes (tests/bench/bench_fleet.c) of 100 cgroups, every 15 s, into one store on this
machine; make bench-fleet. Prints a table for docs/fleet.md: figures of this machine, whose CPUs store and nodes share."""
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

WORK = tempfile.mkdtemp(prefix="jouled-fleet-")
ARGS = sys.argv[1:]
sys.argv[1:] = [WORK]
sys.path.insert(1, "tests/e2e")
sys.path.insert(1, "tests/fleet")
import stores  # noqa: E402

stores.Victoria.memory = []  # as much as it takes
B = os.environ.get("B", "build")
NODES, SECONDS = int(ARGS[0]) if ARGS else 1000, int(ARGS[1]) if len(ARGS) > 1 else 120
INTERVAL_S = 15


def queries():
    """Ten of the fleet's dashboard, with its variables filled in."""
    with open("deploy/grafana/fleet.json", encoding="utf-8") as f:
        panels = json.load(f)["panels"]
    filled = {"$instance": ".*", "$namespace": ".*", "$__rate_interval": "1m", "$__range": "5m", "$price": "0.3", "$carbon": "400"}
    found = []
    for target in (t for p in panels for t in p.get("targets", [])):
        text = target["expr"]
        for name, value in filled.items():
            text = text.replace(name, value)
        found.append(text)
    return found[:7] + [q for q in found[7:] if "topk" in q][:3]


class Load:
    """A store under load. figures: what bench_fleet prints, and what the store cost."""

    def __init__(self, name, nodes, seconds):
        self.store = stores.STORES[name](f"{name}-{nodes}")
        program, why = stores.STORES[name].program()
        if not program:
            raise SystemExit(f"bench-fleet: {name}: {why}")
        self.store.start(program)
        try:
            self.run(nodes, seconds)
        finally:
            self.store.end()
            subprocess.run(["rm", "-rf", self.store.dir], check=False)

    def run(self, nodes, seconds):
        url = f"http://127.0.0.1:{self.store.port}{self.store.path}"
        said = subprocess.run([f"{B}/bench/bench_fleet", self.store.fmt.name, url, str(nodes), "100", str(INTERVAL_S), str(seconds)],
                              check=True, capture_output=True, text=True).stdout
        self.figures = {k: int(v) for k, v in (line.split() for line in said.splitlines())}
        pid = self.store.process.pid
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            self.memory_mib = next(int(l.split()[1]) for l in f if l.startswith("VmHWM")) // 1024
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            ticks = sum(int(v) for v in f.read().rsplit(")", 1)[1].split()[11:13])
        self.cpu = ticks / os.sysconf("SC_CLK_TCK") / seconds
        self.query_ms = sorted(self.ask(q) for q in queries())
        size = subprocess.run(["du", "-sb", self.store.dir], check=True, capture_output=True, text=True).stdout
        self.disk = int(size.split()[0])

    def ask(self, query):
        began = time.monotonic()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.store.port}/api/v1/query?" + urllib.parse.urlencode({"query": query}),
                                    timeout=300) as r:
            json.load(r)
        return (time.monotonic() - began) * 1000


def line(name, nodes, load):
    f = load.figures
    n = f["samples"]
    print(f"| {name} | {nodes} | {n // f['documents']} | {n / f['documents'] * nodes / INTERVAL_S:,.0f} | {f['refused'] + f['failed']} | "
          f"{f['late_ms'] / 1000:.1f}, {f['late_last_ms'] / 1000:.1f} | {f['bytes'] / n:.1f} of {f['raw_bytes'] / n:.0f} | "
          f"{f['encode_ns'] / n:.0f}, {f['pack_ns'] / n:.0f} | {load.cpu:.2f} | {load.memory_mib} | {load.disk / n:.1f} | "
          f"{load.query_ms[len(load.query_ms) // 2]:.0f}, {load.query_ms[-1]:.0f} |", flush=True)


def goal(text, measured, passed):
    print(f"{'pass' if passed else 'MISS'}: {text}: {measured}", flush=True)


def goals(loads):
    for name, load in loads.items():
        f = load.figures
        most = 15 if name.endswith("otlp") else 25
        sent = f["bytes"] / f["samples"]
        goal(f"{name}: no document is dropped", f["refused"] + f["failed"], not f["refused"] + f["failed"])
        goal(f"{name}: at most {most} bytes a sample as sent", f"{sent:.1f}", sent <= most)


def main():
    loads = {}
    print("| store | nodes | series a node | samples/s | dropped | late, s: most, at the end | bytes a sample sent, of | encoding, packing, ns a sample "
          "| CPUs of the store | its memory, MiB | bytes a sample on disk | ten queries, ms: median, most |\n|" + " --- |" * 12, flush=True)
    for name in ("victoria-metrics", "victoria-metrics-otlp"):
        loads[name] = Load(name, NODES, SECONDS)
        line(name, NODES, loads[name])
    nodes = NODES
    while nodes >= 25:
        load = Load("prometheus-sid", nodes, SECONDS)
        line("prometheus-sid", nodes, load)
        loads["prometheus-sid"] = load
        if load.figures["late_last_ms"] < INTERVAL_S * 1000 and not load.figures["refused"] + load.figures["failed"]:
            break
        nodes //= 2
    goals(loads)
    os.rmdir(WORK) if not os.listdir(WORK) else subprocess.run(["rm", "-rf", WORK], check=False)


if __name__ == "__main__":
    main()
