#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""joulectl report says the same in JSON, CSV and text: report_forms.py JSON CSV TEXT."""
import csv
import json
import sys

VALUES = ("energy_j", "time_s", "power_w", "edp_js", "ed2p_js2")


def close(text, value):
    return abs(float(text) - value) <= 1e-9 * max(1, abs(value))


def main():
    doc = json.load(open(sys.argv[1]))
    rows = {}
    for row in csv.DictReader(open(sys.argv[2], newline="")):
        rows[row["experiment"], row["benchmark"], row["run"], row["repetition"], row["source"]] = row
    wanted = 0
    for run in doc["runs"]:
        for rep in run["repetitions"]:
            for source, values in rep["sources"].items():
                row = rows[run["experiment"], run["benchmark"], run["run"], rep["repetition"], source]
                wanted += 1
                assert all(close(row[k], values[k]) for k in VALUES), row
                assert close(row["util_gpu_percent"], rep["util_gpu_percent"])
        for source, values in run["sources"].items():
            for line in ("mean", "stddev"):
                row = rows[run["experiment"], run["benchmark"], run["run"], line, source]
                wanted += 1
                assert all(close(row[k], values[k][line]) for k in VALUES), row
    assert wanted == len(rows), f"{len(rows)} lines of CSV, {wanted} in JSON"
    text = open(sys.argv[3]).read()
    for run in doc["runs"]:
        block = text.split(f"{run['experiment']} / {run['benchmark']} / {run['run']}: {len(run['repetitions'])} repetition")[1].split("\n\n")[0]
        for source, values in run["sources"].items():
            line = next(s for s in block.splitlines() if s.split()[:1] == [source])
            assert abs(float(line.split()[1]) / values["energy_j"]["mean"] - 1) < 1e-5, line
    print(f"{wanted} lines agree")


if __name__ == "__main__":
    main()
