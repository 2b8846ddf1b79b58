# SPDX-License-Identifier: Apache-2.0
# Checks of experiment trees by other means than ours: pandas, sqlite, plain arithmetic. record.py WHAT ARGUMENT...;
# exit status 0 when it holds, the reason on stdout when not.
import csv
import glob
import io
import json
import os
import re
import sqlite3
import statistics
import subprocess
import sys

STAMP = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}$")
GPU = ["timestamp", "clock-mem", "clock-gpu", "app-clock-mem", "app-clock-gpu", "enforced-power-limit", "total-energy",
       "power-state", "power", "tmp", "pci-tx", "pci-rx", "util-gpu", "util-mem"]
EVENTS = ["experiment_begin", "train_begin", "epoch_begin", "batch_begin", "batch_end", "epoch_end", "train_end", "experiment_end"]
INFO = ["device_name", "cuda_capability", "driver_version", "cuda_version", "nvml_version", "platform", "os_release",
        "os_version", "machine", "distro", "python_version", "pip_packages", "effective_power_limit"]


def need(holds, text):
    if not holds:
        print(text)
        sys.exit(1)


def rows_of(path):
    with open(path, newline="") as f:
        return list(csv.reader(f))


def shape(directory):
    """Every file as section 2 of the format says, read without any library for tables."""
    names = sorted(os.path.basename(p) for p in glob.glob(directory + "/*"))
    need("system_info.json" in names and "timestamps.csv" in names, f"files: {names}")
    for name in [n for n in names if n.endswith(".csv")]:
        data = open(f"{directory}/{name}", "rb").read()
        need(data.endswith(b"\n") and b"\r" not in data and b'"' not in data and data.isascii(), f"{name}: bytes")
        rows = rows_of(f"{directory}/{name}")
        head, body = rows[0], rows[1:]
        need(body and all(len(r) == len(head) for r in body) and all(c for r in body for c in r), f"{name}: cells")
        if name == "timestamps.csv":
            need(head == ["timestamp", "event", "data"], f"{name}: {head}")
            need(all(STAMP.match(r[0]) and r[1] in EVENTS and r[2].isdigit() for r in body), f"{name}: rows")
            need(body[0][1] == "experiment_begin" and body[-1][1] == "experiment_end", f"{name}: ends")
            epochs = [int(r[2]) for r in body if r[1] == "epoch_begin"]
            need(epochs == list(range(len(epochs))), f"{name}: epochs {epochs}")
            continue
        need(head[0] == "" and head[1] == "timestamp", f"{name}: {head}")
        need([int(r[0]) for r in body] == list(range(len(body))), f"{name}: index")
        need(all(re.fullmatch(r"-?\d+", c) for r in body for c in r[2:]), f"{name}: integers")
        if name.endswith("_samples.csv"):
            need(head[2:] == ["value"] and all(1.5e15 < int(r[1]) < 3e15 for r in body), f"{name}: {head}")
        else:
            need(all(STAMP.match(r[1]) for r in body), f"{name}: timestamps")
        if name == "gpu-power.csv":
            need(head[1:] == [c for c in GPU if c in head] and "power" in head, f"{name}: {head}")
        if name in ("rapl-power.csv", "cgroup-power.csv"):
            n = (len(head) - 2) // 2
            need([c + "-energy" for c in head[2:2 + n]] == head[2 + n:], f"{name}: {head}")
            for i in range(2 + n, 2 + 2 * n):
                need(body[0][i] == "0" and all(int(a[i]) <= int(b[i]) for a, b in zip(body, body[1:])), f"{name}: {head[i]}")
    info = json.load(open(directory + "/system_info.json"))
    need(list(info)[:len(INFO)] == INFO, f"system_info.json: {list(info)}")


def same_bytes(directory):
    import pandas
    for path in glob.glob(directory + "/*.csv"):
        index = None if path.endswith("/timestamps.csv") else 0
        out = io.StringIO()
        pandas.read_csv(path, index_col=index).to_csv(out, index=index is not None)
        need(out.getvalue().encode() == open(path, "rb").read(), f"{path}: pandas writes it otherwise")


def sqlite(directory):
    db = sqlite3.connect(":memory:")
    for path in glob.glob(directory + "/*.csv"):
        name = os.path.basename(path)
        rows = rows_of(path)
        columns = ", ".join('"%s"' % (c or "index") for c in rows[0])
        db.execute(f'CREATE TABLE "{name}" ({columns})')
        db.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(rows[0]))})', rows[1:])
        need(db.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] == len(rows) - 1, name)
    first, last = db.execute("SELECT min(timestamp), max(timestamp) FROM \"timestamps.csv\"").fetchone()
    inside = db.execute('SELECT count(*) FROM "rapl-power.csv" WHERE timestamp BETWEEN ? AND ?', (first, last)).fetchone()[0]
    need(inside > 0, "no row of rapl-power.csv in the experiment")


def whole(directory):
    shape(directory)
    same_bytes(directory)
    sqlite(directory)


def holds(directory, expression):
    """An expression over info, files, events, and table(name) as a list of dicts."""
    info = json.load(open(directory + "/system_info.json")) if os.path.exists(directory + "/system_info.json") else None
    files = sorted(os.listdir(directory))

    def table(name):
        rows = rows_of(f"{directory}/{name}")
        return [dict(zip(rows[0], r)) for r in rows[1:]]

    events = [(r["event"], int(r["data"])) for r in table("timestamps.csv")] if "timestamps.csv" in files else None
    need(eval("(" + expression + ")", {"info": info, "files": files, "events": events, "table": table, "all": all, "any": any, "int": int,
                           "float": float, "max": max, "min": min, "len": len, "abs": abs, "list": list}),
         f"{expression} does not hold: {files} {events} {json.dumps(info)[:600]}")


def seconds(stamp):
    import datetime
    t = datetime.datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=datetime.timezone.utc)
    return t.timestamp()


def curve_mj(base, amplitude, period_s, a, b):
    """Integral of the scripted square wave: high in the first half of each period since 1970."""
    def until(t):
        whole, rest = divmod(t, period_s)
        return base * t + amplitude * (whole * period_s / 2 + min(rest, period_s / 2))
    return until(b) - until(a)


def energy(directory, base, amplitude, period_ms):
    """total_power_samples.csv by trapezoids, and the counter's difference, against the curve."""
    base, amplitude, period = float(base), float(amplitude), float(period_ms) / 1000
    events = rows_of(directory + "/timestamps.csv")
    begin, end = seconds(events[1][0]), seconds(events[-1][0])
    s = [(int(r[1]) / 1e6, int(r[2])) for r in rows_of(directory + "/total_power_samples.csv")[1:]]
    s = sorted(set(p for p in s if begin <= p[0] < end))
    need(s and s[0][0] < begin + 0.1 and s[-1][0] > end - 0.1, "samples do not cover the experiment")
    got = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in zip(s, s[1:]))
    want = curve_mj(base, amplitude, period, s[0][0], s[-1][0])
    need(abs(got - want) <= 0.005 * want, f"samples: {got} mJ, the curve has {want}")
    t = [dict(zip(GPU, r[1:])) for r in rows_of(directory + "/gpu-power.csv")[1:]]
    t = [r for r in t if begin <= seconds(r["timestamp"]) < end]
    got = int(t[-1]["total-energy"]) - int(t[0]["total-energy"])
    want = curve_mj(base, amplitude, period, seconds(t[0]["timestamp"]), seconds(t[-1]["timestamp"]))
    # the counter goes in steps of 20 ms, and is asked a moment after the row's time
    need(abs(got - want) <= 0.005 * want + 0.03 * (base + amplitude), f"counter: {got} mJ, the curve has {want}")


def pace(directory, name, every_ms):
    t = [seconds(r[1]) for r in rows_of(f"{directory}/{name}")[1:]]
    usual = statistics.median(b - a for a, b in zip(t, t[1:])) * 1000
    need(0.7 * float(every_ms) <= usual <= 1.4 * float(every_ms), f"{name}: usually a row every {usual:.1f} ms")


def terminal(*command):
    """On a terminal a line says elapsed time, watts and which repetition it is."""
    master, slave = os.openpty()
    p = subprocess.Popen(command, stderr=slave, stdout=subprocess.DEVNULL, stdin=slave, start_new_session=True)
    os.close(slave)
    said = b""
    try:
        while True:
            said += os.read(master, 4096)
    except OSError:
        pass
    need(p.wait() == 0 and re.search(rb"1 of 1  00:00:0\d  [0-9.]+ W", said), said.decode(errors="replace"))


CHECKS = {"shape": shape, "whole": whole, "holds": holds, "energy": energy, "pace": pace,
          "terminal": terminal}

if __name__ == "__main__":
    CHECKS[sys.argv[1]](*sys.argv[2:])
