#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a recording by docs/formats/snapshot.md alone and prints one JSON line for the header and one
per snapshot, with everything that was left out put back. Shares no code with jouled; needs no library.
Paths are printed as hex (they are bytes), floats as the hex of their IEEE 754 double."""
import json
import struct
import sys

KINDS = ["idle", "kernel", "irq+steal", "other", "cgroup", "supply", "fans", "disk", "network"]
CELL = ["cpu", "quality", "time_ns", "switches", "counters", "enabled_ns", "running_ns"]
CPU = ["cpu", "flags", "quality", "elapsed_ns", "idle_ns", "irq_steal_ns", "offline_ns", "busy_ns", "msr", "msr_enabled_ns",
       "msr_running_ns"]


class Reader:
    """RFC 8949: one item at a time from bytes."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        if self.at + n > len(self.data):
            raise SystemExit("cut off at byte %d" % len(self.data))
        self.at += n
        return self.data[self.at - n:self.at]

    def item(self):
        first = self.take(1)[0]
        major, info = first >> 5, first & 31
        arg = info
        if 24 <= info < 28:
            raw = self.take(1 << (info - 24))
            arg = int.from_bytes(raw, "big")
        elif info >= 28:
            raise SystemExit("byte %d: 0x%02x is not definite" % (self.at - 1, first))
        if major == 0:
            return arg
        if major == 1:
            return -1 - arg
        if major == 2:
            return self.take(arg)
        if major == 3:
            return self.take(arg).decode("utf-8")
        if major == 4:
            return [self.item() for _ in range(arg)]
        if major == 5:
            return {self.item(): self.item() for _ in range(arg)}
        if major == 6:
            return (arg, self.item())
        if info in (20, 21):
            return info == 21
        if info == 27:
            return struct.unpack(">d", raw)[0]
        raise SystemExit("byte %d: simple value %d" % (self.at, info))


def row(fields, before, n_events, n_domains):
    cells = []
    for values in fields.get(15, []):
        cell = dict(zip(CELL, values))
        cell.setdefault("enabled_ns", cell["time_ns"])
        cell.setdefault("running_ns", cell["time_ns"])
        cells.append(cell)

    def total(key, name):
        return fields.get(key, sum(c[name] for c in cells) % 2**64)

    sums = [sum(c["counters"][i] for c in cells) % 2**64 for i in range(n_events)]
    path = before[:fields.get(4, 0)] + fields[5] if fields[0] == 4 else KINDS[fields[0]].encode()
    return {"kind": KINDS[fields[0]], "key": fields.get(1, 0), "generation": fields.get(2, 0), "id": fields.get(3, 0),
            "path": path.hex(), "level": fields.get(6, 0), "ended": bool(fields.get(7, 0) & 1),
            "selected": bool(fields.get(7, 0) & 2), "quality": fields.get(8, 0), "time_ns": total(9, "time_ns"),
            "switches": total(10, "switches"), "counters": fields.get(11, sums), "enabled_ns": total(12, "enabled_ns"),
            "running_ns": total(13, "running_ns"), "traffic": fields.get(14, [0] * 4), "block": fields.get(19, [0] * 6), "cells": cells,
            "energy_uj": fields.get(16, [0] * n_domains),
            "uncertainty_ppm": fields.get(17, [2**32 - 1] * n_domains)}, path


def plain(value):
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        return struct.pack(">d", value).hex()
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value


def main():
    with open(sys.argv[1], "rb") as f:
        reader = Reader(f.read())
    tag, header = reader.item()
    if tag != 55799 or header["format"] != "jouled-snapshot" or header["version"] != 1:
        raise SystemExit("not a recording")
    print(json.dumps(plain(header), sort_keys=True))
    while reader.at < len(reader.data):
        doc = reader.item()
        if isinstance(doc, tuple):
            continue
        if doc["schema"] != header["schema"]:
            raise SystemExit("document of another schema")
        before, rows = b"", []
        for fields in doc["rows"]:
            got, path = row(fields, before, len(header["core"]), len(header["domains"]))
            before = path if fields[0] == 4 else before
            rows.append(got)
        doc["rows"] = rows
        doc["cpus"] = [dict(zip(CPU, c)) for c in doc["cpus"]]
        print(json.dumps(plain(doc), sort_keys=True))


if __name__ == "__main__":
    main()
