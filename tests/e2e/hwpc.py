#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads HWPC reports without sharing code with who wrote them.
hwpc.py listen PORTFILE OUT [HOLDFILE]: a TCP server; lines to OUT, one line per connection to OUT.peers;
  with HOLDFILE it accepts and reads nothing until that file exists.
hwpc.py check FILE TICKS: form of every report, one timestamp and one `all` per tick.
hwpc.py sum FILE TARGET EVENT: total of an event of a target.  hwpc.py targets FILE"""
import json
import os
import socket
import sys
import threading
import time

from free_port import free_port


def serve(conn, out, hold):
    while hold and not os.path.exists(hold):
        time.sleep(0.02)
    if hold:   # from now on as fast as it comes
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    rest = b""
    with open(out, "ab", buffering=0) as f:
        while data := conn.recv(65536):
            rest += data
            done, _, rest = rest.rpartition(b"\n")
            if done:
                f.write(done + b"\n")
        if rest:
            f.write(b"TRUNCATED " + rest[:80] + b"\n")
    with open(out + ".closed", "a", encoding="ascii") as f:
        f.write("closed\n")


def listen(port_file, out, hold=None):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hold:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    port = free_port()
    if os.path.exists(port_file):   # the same port again after an outage
        with open(port_file, encoding="ascii") as f:
            port = int(f.read())
    s.bind(("127.0.0.1", port))
    s.listen(8)
    with open(port_file + ".tmp", "w", encoding="ascii") as f:
        f.write(str(s.getsockname()[1]))
    os.rename(port_file + ".tmp", port_file)
    while True:
        conn, _ = s.accept()
        with open(out + ".peers", "a", encoding="ascii") as f:
            f.write("connected\n")
        threading.Thread(target=serve, args=(conn, out, hold), daemon=True).start()


def reports(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def require(condition, text, report):
    if not condition:
        sys.exit(f"{text}: {json.dumps(report)[:300]}")


def check_report(r):
    require(set(r) - {"metadata"} == {"timestamp", "sensor", "target", "groups"}, "keys", r)
    require("'" not in r["sensor"], "apostrophe in the sensor", r)
    require(r["target"] in ("all", "kernel", "other") or r["target"].startswith("/"), "target", r)
    require(isinstance(r.get("metadata", {}), dict), "metadata", r)
    require(r["groups"], "no group", r)
    for sockets in r["groups"].values():
        require(sockets, "no socket", r)
        for socket_id, cpus in sockets.items():
            require(socket_id.isdigit() and cpus, "socket", r)
            for cpu, events in cpus.items():
                require(cpu.isdigit(), "cpu", r)
                require({"time_enabled", "time_running"} <= set(events), "times", r)
                for value in events.values():
                    require(isinstance(value, int) and 0 <= value < 1 << 64, "value", r)
                require(events["time_running"] <= events["time_enabled"], "running above enabled", r)


def event_names(r):
    return {frozenset(e) for cpus in r["groups"]["core"].values() for e in cpus.values()}


def check(path, ticks):
    all_reports = reports(path)
    by_time, names = {}, set()
    for r in all_reports:
        check_report(r)
        by_time.setdefault(r["timestamp"], []).append(r)
        if r["target"] != "all":
            require(set(r["groups"]) == {"core"}, "groups of a cgroup", r)
            names |= event_names(r)
    if len(by_time) < int(ticks):
        sys.exit(f"{len(by_time)} ticks, {ticks} expected")
    if len(names) != 1:
        sys.exit(f"event sets differ: {names}")
    for stamp, group in by_time.items():
        targets = [r["target"] for r in group]
        require(targets.count("all") == 1, f"not exactly one `all` at {stamp}", group[0])
        require(len(set(targets)) == len(targets), f"a target twice at {stamp}", targets)
        require(len(targets) > 1, f"only `all` at {stamp}", group[0])
        whole = next(r for r in group if r["target"] == "all")
        require({"rapl", "msr"} <= set(whole["groups"]), "groups of `all`", whole)
    order = [r["timestamp"] for r in all_reports]
    if order != sorted(order):
        sys.exit("timestamps run backwards")
    print(f"{len(all_reports)} reports, {len(by_time)} ticks")


def total(path, target, event):
    print(sum(events.get(event, 0) for r in reports(path) if r["target"] == target
              for sockets in r["groups"].values() for cpus in sockets.values() for events in cpus.values()))


def main():
    verb, args = sys.argv[1], sys.argv[2:]
    if verb == "listen":
        listen(*args)
    elif verb == "check":
        check(*args)
    elif verb == "sum":
        total(*args)
    elif verb == "targets":
        print("\n".join(sorted({r["target"] for r in reports(args[0])})))


main()
