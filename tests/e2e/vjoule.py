#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients of a vjoule output, on the reader of tests/golden.
vjoule.py compare STREAM SNAPSHOTS: a `document` file against the recording of the same intervals as
  read_snapshot.py prints it: energies to float precision, every counter of every cgroup, system metrics.
vjoule.py follow PORTFILE OUT: connects to 127.0.0.1, again and again as a formula does, until it is ended; to OUT a
  line per event: "header NAMES", "report DIGEST CGROUPS", "closed", "broken REASON".
vjoule.py twice OUT: is a report there twice within a connection, or anything broken?"""
import hashlib
import json
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
import read_vjoule  # noqa: E402

KINDS = {"pp0": "core", "pp1": "uncore", "pkg": "package", "dram": "dram", "psys": "psys"}


def as_float(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def own_values(row, events):
    """Name -> number of a row, as the vjoule page says."""
    return dict(zip(events, row["counters"])) if events else {"TASK_CLOCK": row["time_ns"]}


def compare_cgroups(report, names, doc, events):
    want, total = {}, dict.fromkeys(events or ["TASK_CLOCK"], 0)
    for row in doc["rows"]:
        values = own_values(row, events)
        nobody = row["kind"] in ("idle", "irq+steal")
        for name, v in values.items():
            total[name] += 0 if nobody and name == "TASK_CLOCK" else v
        path = bytes.fromhex(row["path"]) if row["kind"] == "cgroup" else b"/" + row["kind"].encode()
        if row["kind"] in ("cgroup", "kernel", "other") and row["selected"]:
            before = want.setdefault(path, dict.fromkeys(values, 0))
            for name, v in values.items():
                before[name] += v
    for path, metrics in report["cgroups"].items():
        got = {names[i]: v for i, v in metrics.items()}
        if got != want.get(path):
            return f"cgroup {path!r}: {got}, the recording has {want.get(path)}"
    missing = set(want) - set(report["cgroups"]) - {b"/other"}
    if missing:
        return f"not in the report: {sorted(missing)[:3]}"
    for i, v in report["system"].items():
        if names[i] in total and v != total[names[i]]:
            return f"system {names[i]}: {v}, the rows of the recording have {total[names[i]]}"
    return None


def compare(stream, snapshots):
    with open(snapshots, encoding="ascii") as f:
        schema, *docs = [json.loads(line) for line in f]
    with open(stream, "rb") as f:
        s = read_vjoule.Stream(f.read, check=True)
        reports = list(s)
    if not reports or len(reports) != len(docs):
        return f"{len(reports)} reports, {len(docs)} snapshots"
    names = {i: n.decode() for i, n in s.header["metrics"].items()}
    events = [e["name"] for e in schema["core"]]
    for report, doc in zip(reports, docs):
        for field, kind in KINDS.items():
            uj = sum(d["energy_uj"] for d, of in zip(doc["domains"], schema["domains"]) if of["kind"] == kind)
            if report["energy"][field] != as_float(uj / 1e6):
                return f"{field}: {report['energy'][field]} J, the ledger has {uj} uJ"
        bad = compare_cgroups(report, names, doc, events)
        if bad:
            return bad
    return None


def connect(port_file):
    while True:
        try:
            with open(port_file, encoding="ascii") as f:
                return socket.create_connection(("127.0.0.1", int(f.read())))
        except (OSError, ValueError):
            time.sleep(0.05)


def follow(port_file, out):
    with open(out, "w", encoding="utf-8", buffering=1) as f:
        while True:
            conn = connect(port_file)
            stream = read_vjoule.Stream(conn.recv, check=True)
            told = False
            try:
                for report in stream:
                    if not told:
                        print("header", *(n.decode() for n in stream.header["metrics"].values()), file=f)
                        told = True
                    digest = hashlib.sha256(repr(report).encode()).hexdigest()[:16]
                    print("report", digest, *(n.decode("utf-8", "replace") for n in report["cgroups"]), file=f)
                print("closed", file=f)
            except read_vjoule.Malformed as e:
                print("broken", e, file=f)
            except OSError as e:
                print("closed", e, file=f)
            conn.close()


def twice(out):
    seen = set()
    with open(out, encoding="utf-8") as f:
        for line in (text for text in f if text.endswith("\n")):
            word, *rest = line.split()
            if word == "broken":
                return line.strip()
            if word != "report":
                seen.clear()
            elif rest[0] in seen:
                return "a report twice"
            else:
                seen.add(rest[0])
    return None


if __name__ == "__main__":
    verb = {"compare": compare, "follow": follow, "twice": twice}[sys.argv[1]]
    trouble = verb(*sys.argv[2:])
    if trouble:
        sys.exit(f"vjoule.py: {trouble}")
