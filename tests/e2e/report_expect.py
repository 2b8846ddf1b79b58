#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An independent computation (pandas) of what joulectl report says: report_expect.py DIR REPORT.json [OPTION...].

Options: compat, unit=N (mW of a count), idle=W. Every value must agree to 1e-6. DIR is a data root.
"""
import json
import os
import sys

import numpy as np
import pandas as pd

FILES = {"hd": "total_power_samples.csv", "sd": "gpu-power.csv", "external": "power-external.csv",
         "rapl": "rapl-power.csv", "cgroup": "cgroup-power.csv"}
MEANS = {"util_gpu_percent": "util-gpu", "util_mem_percent": "util-mem", "clock_gpu_mhz": "clock-gpu",
         "clock_mem_mhz": "clock-mem", "power_limit_mw": "enforced-power-limit", "temperature_c": "tmp"}


def load(directory):
    tables = {}
    for source, name in FILES.items():
        path = os.path.join(directory, name)
        if os.path.exists(path):
            t = pd.read_csv(path, index_col=0)
            t["timestamp"] = pd.to_datetime(t["timestamp"], unit="us" if source == "hd" else None)
            tables[source] = t
    return tables


def window(directory, tables):
    path = os.path.join(directory, "timestamps.csv")
    events = pd.read_csv(path, parse_dates=["timestamp"]) if os.path.exists(path) else None
    n = 0 if events is None else int((events["event"] == "epoch_begin").sum())

    def when(event, number):
        return events[(events["event"] == event) & (events["data"] == number)]["timestamp"].iloc[0]

    if n >= 2:
        return when("epoch_begin", 1), when("epoch_end", n - 2 if n >= 3 else n - 1)
    series = [tables[s]["timestamp"] for s in ("hd", "sd", "external") if s in tables]
    return max(s.min() for s in series), min(s.max() for s in series)


def seconds(delta):
    return delta / np.timedelta64(1, "s")


def result(energy, t, power):
    return {"energy_j": energy, "time_s": t, "power_w": power, "edp_js": energy * t, "ed2p_js2": energy * t * t}


def integrate(times, watts, start, end):
    frame = pd.DataFrame({"t": seconds((times - start).to_numpy()), "w": watts.to_numpy(dtype=float)})
    frame = frame.sort_values("t", kind="stable")
    frame = frame[(frame["t"] >= 0) & (frame["t"] < seconds(end - start))]
    energy = float(np.sum(np.diff(frame["t"]) * (frame["w"].to_numpy()[1:] + frame["w"].to_numpy()[:-1]) / 2))
    return result(energy, float(frame["t"].iloc[-1]), float(frame["w"].mean()))


def counted(table, start, end):
    """Package and dram, from their energy columns."""
    x = seconds((table["timestamp"] - start).to_numpy())
    length = seconds(end - start)
    assert x[0] <= 0 and x[-1] >= length
    uj = sum(np.diff(np.interp([0, length], x, table[d + "-energy"]))[0] for d in ("package-0", "dram-0"))
    return result(uj / 1e6, length, uj / 1e6 / length)


def repetition(directory, options):
    tables = load(directory)
    start, end = window(directory, tables)
    info = json.load(open(os.path.join(directory, "system_info.json")))
    compat = "compat" in options
    scale, idle = options.get("unit", {"10mW": 10}.get(info.get("external_unit"), 1)), options.get("idle", 0)
    if compat:
        scale, idle = 10, 723 * 7 / 8
    out = {}
    for source, table in tables.items():
        if source in ("rapl", "cgroup"):
            out[source] = counted(table, start, end)
            continue
        if source == "external":
            watts = table.filter(regex=r"^d\dc\d$").sum(axis=1) * scale / 1000 - idle
        else:
            watts = table["value" if source == "hd" else "power"] / 1000
            if not compat:
                table, watts = table[watts.notna()], watts[watts.notna()]
        out[source] = integrate(table["timestamp"], watts, start, end)
    gpu = tables["sd"][(tables["sd"]["timestamp"] >= start) & (tables["sd"]["timestamp"] < end)]
    for key, column in MEANS.items():
        out[key] = float(gpu[column].mean()) if column in gpu else None
    if "total-energy" in gpu:
        known = gpu[gpu["power"].notna()]
        out["gpu_counter_j"] = (known["total-energy"].max() - known["total-energy"].min()) / 1000
    return out


def same(a, b):
    if b is None or (isinstance(b, float) and np.isnan(b)):
        return a is None
    return a is not None and abs(a - b) <= 1e-6 * max(abs(a), abs(b))


def compare(where, got, want, bad):
    for key, value in want.items():
        if isinstance(value, dict):
            compare(f"{where} {key}", got.get(key, got.get("sources", {}).get(key, {})), value, bad)
        elif not same(got.get(key), value):
            bad.append(f"{where} {key}: {got.get(key)} instead of {value}")


def check_means(where, run, wanted, bad):
    for source in FILES:
        for key in ("energy_j", "time_s", "power_w", "edp_js", "ed2p_js2"):
            values = pd.Series([w[source][key] for w in wanted if source in w], dtype=float)
            if values.notna().any() and "energy_j" in wanted[0].get(source, {}):
                got = run["sources"].get(source, {}).get(key, {})
                if not same(got.get("mean"), float(values.mean())):
                    bad.append(f"{where} {source} mean of {key}: {got.get('mean')} instead of {values.mean()}")
                if values.count() > 1 and abs(got["stddev"] - values.std()) > 1e-6 * abs(values.mean()):
                    bad.append(f"{where} {source} stddev of {key}: {got['stddev']} instead of {values.std()}")


def main():
    root, report = sys.argv[1], json.load(open(sys.argv[2]))
    options = {a.split("=")[0]: float((a.split("=") + [0])[1]) for a in sys.argv[3:]}
    bad, seen = [], 0
    for run in report["runs"]:
        path = os.path.join(root, run["experiment"], run["benchmark"], run["run"])
        wanted = []
        for rep in run["repetitions"]:
            where = f"{run['benchmark']}/{run['run']}/{rep['repetition']}"
            wanted.append(repetition(os.path.join(path, rep["repetition"]), options))
            compare(where, rep, wanted[-1], bad)
            seen += 1
        if all(np.isfinite(w["hd"]["energy_j"]) for w in wanted):
            check_means(path, run, wanted, bad)
    present = sum(1 for d, _, files in os.walk(root) if "system_info.json" in files and "/_" not in d)
    if seen != present:
        bad.append(f"{seen} repetitions in the report, {present} in the tree")
    print("\n".join(bad[:20]) if bad else f"{seen} repetitions agree")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
