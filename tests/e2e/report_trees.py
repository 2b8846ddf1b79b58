#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiment trees as the original tool writes them (docs/formats/experiment.md): report_trees.py good|odd|traps DIR.

good  every value of a run plausible, as the original writes it, with a baseline and our own files in some
odd   what pandas accepts: other column order, quotes, CRLF, BOM, T, floats, shuffled rows, few epochs, missing columns
traps DIR/NAME is a tree with one trap, NAME: EFFECT TRAP FILE LINE on stdout (LINE 0 = the whole file)
"""
import json
import math
import os
import random
import shutil
import sys
from datetime import datetime, timedelta

T0 = datetime(2026, 3, 1, 12, 0, 0, 123456)
GPU = ["timestamp", "clock-mem", "clock-gpu", "app-clock-mem", "app-clock-gpu", "enforced-power-limit", "total-energy",
       "power-state", "power", "tmp", "pci-tx", "pci-rx", "util-gpu", "util-mem"]
INFO = {"device_name": "Tesla V100-SXM2-32GB", "cuda_capability": [7, 0], "driver_version": "450.51.06",
        "distro": {}, "python_version": "3.8.5 \n[GCC 9.3.0]", "pip_packages": [["numpy", "1.19.2"]],
        "effective_power_limit": 300000}


def stamp(t, sep=" "):
    return (T0 + timedelta(seconds=t)).strftime(f"%Y-%m-%d{sep}%H:%M:%S.%f")


def micros(t):
    return round((T0 - datetime(1970, 1, 1)).total_seconds()) * 1000000 + T0.microsecond + round(t * 1e6)


class Repetition:
    """Files as lists of rows; write() puts them down."""

    def __init__(self, rng, watts=200.0, epochs=5, seconds=12.0, wall=700.0):
        self.rng, self.watts, self.wall = rng, watts, wall
        self.files = {}
        self.raw = {}
        self.info = dict(INFO)
        self.sep = " "
        self.seconds = seconds
        self.gpu()
        self.samples()
        self.external()
        self.events(epochs)

    def power(self, t):
        return self.watts * (0.6 + 0.3 * math.tanh(t) + 0.1 * math.sin(t * 2.2))

    def gpu(self):
        rows, energy, t, last = [], 5e9, -0.4, None
        while t < self.seconds + 0.4:
            p = self.power(t) * 1000
            if last is not None:
                energy += (p + last[1]) / 2 * (t - last[0])
            last = (t, p)
            rows.append([t, 877, 1300 + self.rng.randrange(80), 877, 1530, 300000, round(energy), 0, round(p),
                         40 + round(10 * self.rng.random()), self.rng.randrange(99999), self.rng.randrange(99999),
                         90 + self.rng.randrange(10), 40 + self.rng.randrange(10)])
            t += 0.15 + 0.01 * self.rng.random()
        self.files["gpu-power.csv"] = (GPU[:], rows)

    def samples(self):
        for name, f in (("total_power", lambda t: round(self.power(t) * 1000)), ("gpu_utilization", lambda t: 95), ("memory_utilization", lambda t: 44)):
            rows, t = [], -3.0
            while t < self.seconds + 0.3:
                rows.append([t, f(t)])
                t += 0.0167 + 0.002 * self.rng.random()
            self.files[name + "_samples.csv"] = (["timestamp", "value"], rows)

    def external(self):
        rows, t = [], -0.3
        while t < self.seconds + 0.3:
            counts = (self.wall + self.power(t)) * 100
            rows.append([t] + [round(counts * k + self.rng.randrange(50)) for k in (0.3, 0.2, 0.3, 0.2)])
            t += 0.02 + 0.004 * self.rng.random()
        self.files["power-external.csv"] = (["timestamp", "d0c0", "d0c1", "d1c0", "d1c1"], rows)

    def events(self, epochs, base=0):
        rows = [[-0.05, "experiment_begin", 0], [0.1, "train_begin", 0]]
        length = (self.seconds - 0.6) / max(epochs, 1)
        for i in range(epochs):
            rows += [[0.2 + i * length, "epoch_begin", i + base], [0.2 + (i + 0.97) * length, "epoch_end", i + base]]
        rows += [[self.seconds - 0.2, "train_end", 0], [self.seconds, "experiment_end", 0]]
        self.files["timestamps.csv"] = (["timestamp", "event", "data"], rows)

    def ours(self, name, share):
        """rapl-power.csv, cgroup-power.csv: mean power of a row's interval and cumulative energy."""
        domains, total, rows, t = ["package-0", "core-0", "dram-0"], [0.0, 0.0, 0.0], [], -0.2
        while t < self.seconds + 0.2:
            step = 0.1 + 0.005 * self.rng.random()
            watts = [share * (60 + 20 * math.sin(t)), share * 40, share * 9]
            total = [e + w * step * 1e6 for e, w in zip(total, watts)]
            t += step
            rows.append([t] + [round(w * 1000) for w in watts] + [round(e) for e in total])
        self.files[name] = (["timestamp"] + domains + [d + "-energy" for d in domains], rows)

    def unit(self, unit):
        """Milliwatts instead of the original's counts."""
        if unit == "mW":
            head, rows = self.files["power-external.csv"]
            self.files["power-external.csv"] = (head, [[r[0]] + [v * 10 for v in r[1:]] for r in rows])
        self.info["external_unit"] = unit

    def line(self, name, row):
        time = micros(row[0]) if name.endswith("_samples.csv") else stamp(row[0], self.sep)
        return [str(time)] + [str(c) for c in row[1:]]

    def text(self, name):
        head, rows = self.files[name]
        indexed = name != "timestamps.csv"
        lines = [",".join(([""] if indexed else []) + head)]
        for i, row in enumerate(rows):
            lines.append(",".join(([str(i)] if indexed else []) + self.line(name, row)))
        return "\n".join(lines) + "\n"

    def write(self, path):
        os.makedirs(path)
        for name in self.files:
            with open(os.path.join(path, name), "w", newline="") as f:
                f.write(self.text(name))
        if self.info is not None:
            with open(os.path.join(path, "system_info.json"), "w") as f:
                json.dump(self.info, f)
        for name, data in self.raw.items():
            with open(os.path.join(path, name), "wb") as f:
                f.write(data)


def good(root):
    rng = random.Random(7)
    for bench, base in (("bert", 1.0), ("resnet", 0.8)):
        for k, watts in enumerate((100, 150, 200, 250, 300)):
            for rep in ("0", "1", "2", "10") if watts == 150 else ("0", "1", "2"):
                r = Repetition(rng, watts * base * (1 + 0.02 * rng.random()), 5, 12 + 6 * 100 / watts + 0.3 * rng.random())
                if k % 2:
                    r.unit("mW" if k == 1 else "10mW")
                if bench == "bert":
                    r.ours("rapl-power.csv", 1.0)
                    r.ours("cgroup-power.csv", 0.7)
                r.write(f"{root}/power-limit/{bench}/{watts}W/{rep}")
    for gpu in (1065, 1222, 1380):
        for rep in range(2):
            Repetition(rng, gpu / 7, 3, 9).write(f"{root}/clock-limit/bert/877MHz,{gpu}MHz/{rep}")
    os.makedirs(f"{root}/power-limit/_baseline")
    with open(f"{root}/power-limit/_baseline/gpu-power.csv", "w") as f:
        f.write(",timestamp,power\n")
    with open(f"{root}/README", "w") as f:
        f.write("harmless here\n")
    shutil.copytree(f"{root}/power-limit/bert/100W/0", f"{root}/power-limit/bert/_staged/0")


def drop(r, *columns):
    head, rows = r.files["gpu-power.csv"]
    keep = [i for i, c in enumerate(head) if c not in columns]
    r.files["gpu-power.csv"] = ([head[i] for i in keep], [[row[i] for i in keep] for row in rows])


def order(r, head):
    old, rows = r.files["gpu-power.csv"]
    r.files["gpu-power.csv"] = (head, [[row[old.index(c)] for c in head] for row in rows])


def odd(root):
    rng = random.Random(11)

    def add(name, change=None, **how):
        r = Repetition(rng, **how)
        if change:
            change(r)
        r.write(f"{root}/odd/bench/{name}/0")

    def shuffled(r):
        head, rows = r.files["total_power_samples.csv"]
        rows = rows + rows[100:140]
        rng.shuffle(rows)
        r.files["total_power_samples.csv"] = (head, rows)

    def floats(r):
        for name in ("gpu-power.csv", "power-external.csv"):
            head, rows = r.files[name]
            r.files[name] = (head, [[row[0]] + [float(v) for v in row[1:]] for row in rows])

    def bytes_of(name, change):
        def apply(r):
            r.raw[name] = change(r.text(name).encode())
        return apply

    def extra(r):
        head, rows = r.files["timestamps.csv"]
        r.files["timestamps.csv"] = (head + ["note"], [row + ["x"] for row in rows] + [[3.0, "my_event", 7, "y"]])
        head, rows = r.files["gpu-power.csv"]
        r.files["gpu-power.csv"] = (head + ["fan"], [row + ["50"] for row in rows])

    def batches(r):
        head, rows = r.files["timestamps.csv"]
        rows = rows + [[1 + i / 50, "batch_" + w, i] for i in range(400) for w in ("begin", "end")]
        r.files["timestamps.csv"] = (head, sorted(rows, key=lambda e: e[0]))

    add("document-order", lambda r: order(r, ["timestamp", "util-gpu", "util-mem"] + GPU[1:12]))
    add("shuffled", shuffled)
    add("floats", floats)
    add("crlf", bytes_of("power-external.csv", lambda b: b.replace(b"\n", b"\r\n")))
    add("bom", bytes_of("gpu-power.csv", lambda b: b"\xef\xbb\xbf" + b))
    add("quoted", bytes_of("total_power_samples.csv", lambda b: b"\n".join(
        b",".join(b'"' + c + b'"' for c in line.split(b",")) for line in b.rstrip().split(b"\n")) + b"\n"))
    add("named-index", bytes_of("gpu-power.csv", lambda b: b"index" + b))
    add("t-separator", lambda r: setattr(r, "sep", "T"))
    add("few-columns", lambda r: drop(r, "tmp", "pci-tx", "pci-rx", "app-clock-mem", "app-clock-gpu", "total-energy"))
    add("extra", extra)
    add("batches", batches)
    for n in (0, 1, 2, 3, 4):
        add(f"{n}-epochs", epochs=n)
    add("no-timestamps", lambda r: r.files.pop("timestamps.csv"))
    add("no-external", lambda r: r.files.pop("power-external.csv"))
    add("empty-info", lambda r: setattr(r, "info", {}))
    add("one-channel", lambda r: r.files.update({"power-external.csv": (["timestamp", "d0c0"], [row[:2] for row in r.files["power-external.csv"][1]])}))
    add("unit-10mW", lambda r: r.unit("10mW"))
    add("unit-mW", lambda r: r.unit("mW"))


def edit(r, name, line, change):
    lines = r.text(name).split("\n")
    lines[line - 1] = change(lines[line - 1])
    r.raw[name] = "\n".join(lines).encode()


def cell(k, text):
    def change(line):
        cells = line.split(",")
        cells[k] = text
        return ",".join(cells)
    return change


def without_index(text):
    return "\n".join(line.split(",", 1)[1] if line else "" for line in text.split("\n")).encode()


def shift(r, name, seconds):
    head, rows = r.files[name]
    r.files[name] = (head, [[row[0] + seconds] + row[1:] for row in rows])


def duplicate_epochs(r):
    head, rows = r.files["timestamps.csv"]
    begins = [i for i, row in enumerate(rows) if row[1] == "epoch_begin"]
    rows[begins[3]][2] = 0
    rows[begins[3] + 1][2] = 0


def second_tree_file(path, run_file):
    with open(f"{path}/e/b/100W/{run_file}", "w") as f:
        f.write("notes\n")


G, S, X, E, I = "gpu-power.csv", "total_power_samples.csv", "power-external.csv", "timestamps.csv", "system_info.json"
POWER = GPU.index("power") + 1
# name: effect, trap, file, line, what is done to a good repetition
TRAPS = {
    "no-index": ("aborts", "index-missing", G, 1, lambda r: r.raw.update({G: without_index(r.text(G))})),
    "semicolons": ("aborts", "separator", G, 1, lambda r: r.raw.update({G: r.text(G).replace(",", ";").encode()})),
    "comment": ("aborts", "comment", G, 1, lambda r: r.raw.update({G: ("# made by me\n" + r.text(G)).encode()})),
    "no-power": ("aborts", "no-column", G, 1, lambda r: drop(r, "power")),
    "no-gpu-power": ("skipped", "missing-file", G, 0, lambda r: r.files.pop(G)),
    "no-samples": ("skipped", "missing-file", S, 0, lambda r: r.files.pop(S)),
    "no-info": ("skipped", "missing-file", I, 0, lambda r: setattr(r, "info", None)),
    "bad-info": ("aborts", "bad-json", I, 2, lambda r: r.raw.update({I: b'{"device_name":\n oops}'})),
    "epoch-data": ("aborts", "epoch-data", E, 6, lambda r: edit(r, E, 6, cell(2, ""))),
    "epoch-restart": ("aborts", "epoch-restart", E, 10, duplicate_epochs),
    "epoch-base": ("wrong", "epoch-base", E, 4, lambda r: r.events(5, 1)),
    "empty-power": ("wrong", "empty-cell", G, 40, lambda r: edit(r, G, 40, cell(POWER + 0, ""))),
    "error-power": ("aborts", "not-a-number", G, 40, lambda r: edit(r, G, 40, cell(POWER, "ERR"))),
    "na-power": ("wrong", "empty-cell", G, 40, lambda r: edit(r, G, 40, cell(POWER, "N/A"))),
    "early-samples": ("wrong", "stops-early", S, 402, lambda r: r.files.update({S: (r.files[S][0], r.files[S][1][:401])})),
    "lost-gpu": ("wrong", "stops-early", G, 21, lambda r: (r.events(0), r.files.update({G: (r.files[G][0], r.files[G][1][:20])}))),
    "empty-external": ("aborts", "empty-file", X, 0, lambda r: r.raw.update({X: b""})),
    "no-sample": ("aborts", "empty-samples", S, 1, lambda r: r.raw.update({S: b'""\n'})),
    "psu": ("wrong", "external-column", X, 1, lambda r: edit(r, X, 1, lambda s: s.replace("d1c1", "psu1"))),
    "ten-devices": ("wrong", "external-column", X, 1, lambda r: edit(r, X, 1, lambda s: s.replace("d1c1", "d10c0"))),
    "milliwatts": ("wrong", "external-unit", X, 0, lambda r: (r.unit("mW"), r.info.pop("external_unit"))),
    "zone": ("aborts", "time-zone", G, 2, lambda r: r.raw.update({G: r.text(G).replace(",877,", "Z,877,", 1).encode()})),
    "offset": ("aborts", "time-zone", E, 3, lambda r: edit(r, E, 3, lambda s: s.replace(",train", "+00:00,train"))),
    "no-fraction": ("aborts", "mixed-fractions", G, 7, lambda r: edit(r, G, 7, cell(1, stamp(0.5)[:19]))),
    "local-time": ("aborts", "outside-window", S, 0, lambda r: [shift(r, f, 7200) for f in (G, X, E)]),
    "local-time-no-epochs": ("aborts", "no-window", E, 0, lambda r: (r.events(0), [shift(r, f, 7200) for f in (G, X, E)])),
    "too-many-cells": ("aborts", "too-many-cells", G, 9, lambda r: edit(r, G, 9, lambda s: s + ",1,2")),
    "bad-time": ("aborts", "bad-timestamp", X, 5, lambda r: edit(r, X, 5, cell(1, "yesterday"))),
    "cut-off": ("note", "cut-off", G, 0, lambda r: r.raw.update({G: r.text(G).encode()[:-9]})),
}
AROUND = {
    "file-in-run": ("aborts", "file-in-run", "e/b/100W/notes.txt", 0, lambda p: second_tree_file(p, "notes.txt")),
    "dot-repetition": ("wrong", "hidden-repetition", "e/b/100W/.1", 0, lambda p: shutil.copytree(f"{p}/e/b/100W/0", f"{p}/e/b/100W/.1")),
    "staged-repetition": ("wrong", "hidden-repetition", "e/b/100W/_1", 0, lambda p: shutil.copytree(f"{p}/e/b/100W/0", f"{p}/e/b/100W/_1")),
    "named-repetition": ("note", "repetition-name", "e/b/100W/first", 0, lambda p: shutil.copytree(f"{p}/e/b/100W/0", f"{p}/e/b/100W/first")),
}


def traps(root):
    rng = random.Random(3)
    for name, (effect, trap, file, line, change) in TRAPS.items():
        r = Repetition(rng)
        change(r)
        r.write(f"{root}/{name}/e/b/100W/0")
        print(name, effect, trap, f"e/b/100W/0/{file}", line)
    for name, (effect, trap, file, line, change) in AROUND.items():
        Repetition(rng).write(f"{root}/{name}/e/b/100W/0")
        change(f"{root}/{name}")
        print(name, effect, trap, file, line)


if __name__ == "__main__":
    {"good": good, "odd": odd, "traps": traps}[sys.argv[1]](sys.argv[2])
