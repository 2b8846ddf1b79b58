#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_smartwatts.py [--input socket|file] [--csv DIR] [--min-ticks N] [--base MHZ] [--rapl-event NAME]

Reads HWPC reports as powerapi and SmartWatts do, but where those skip, stop or die it ends with exit
status 1 and the reason. Nothing here comes from either project: the rules are the observed ones of
docs/formats/hwpc.md ("What is withheld"). Both decoders in use must accept a report: the released one
(2.10) and the next one, which differ in timestamps and metadata.

  socket (default)  JSON lines on standard input as they come over TCP: integer millisecond timestamps
  file              JSON lines on standard input as a file: ISO timestamps, metadata present
  --csv DIR         rapl.csv, msr.csv and core.csv in DIR instead of standard input
"""
import argparse
import csv
import datetime
import json
import os
import sys

PENDING_TICKS = 6          # a tick is processed when this many timestamps are held
LAYER_MHZ = 100            # frequency layers of the model: 100 MHz to 10 GHz
LAYERS = 100


class Bad(Exception):
    pass


def need(condition, message):
    if not condition:
        raise Bad(message)


def no_duplicates(pairs):
    keys = [k for k, _ in pairs]
    twice = {k for k in keys if keys.count(k) > 1}
    need(not twice, f"key given twice: {twice}")
    return dict(pairs)


def no_constant(name):
    raise Bad(f"{name} is not JSON")


def parse_line(line):
    need(line.endswith(b"\n"), "line without newline at its end")
    try:
        report = json.loads(line.decode("utf-8"), object_pairs_hook=no_duplicates,
                            parse_constant=no_constant)
    except UnicodeDecodeError as e:
        raise Bad(f"not UTF-8: {e}") from e
    except json.JSONDecodeError as e:
        raise Bad(f"not one JSON document: {e}") from e
    need(isinstance(report, dict), "not a JSON object")
    return report


def check_timestamp(value, source):
    if source == "socket":
        # the next decoder divides it by 1000; text raises a TypeError that ends the reading thread
        need(isinstance(value, int) and not isinstance(value, bool), f"timestamp {value!r}: not integer milliseconds")
        need(0 < value < 4102444800000, f"timestamp {value}: not this century")
        return
    need(isinstance(value, str), f"timestamp {value!r}: a JSON file needs ISO text")
    try:
        parsed = datetime.datetime.strptime(value, "%Y-%m-%dT%H:%M:%S.%f")
    except ValueError as e:
        raise Bad(f"timestamp {value!r}: {e}") from e
    need(len(value) == 23, f"timestamp {value!r}: not three digits of fraction")
    need(parsed.year > 2000, f"timestamp {value!r}: not this century")


def check_values(values, where):
    need(isinstance(values, dict) and values, f"{where}: no events")
    for name, value in values.items():
        need(isinstance(value, int) and not isinstance(value, bool), f"{where}: {name} is {value!r}, not an integer")
        need(0 <= value < 2 ** 64, f"{where}: {name} is {value}")
    need("time_enabled" in values and "time_running" in values, f"{where}: times missing")
    need(values["time_running"] <= values["time_enabled"], f"{where}: ran longer than enabled")
    need(set(values) - {"time_enabled", "time_running"}, f"{where}: only times, no event")


def check_place(sensor, target):
    """PowerAPI's CSV output writes SENSOR-TARGET/PowerReport.csv: an OSError ends it."""
    parts = f"{sensor}-{target}".split("/")
    need(all(len(p.encode()) <= 255 for p in parts), f"{target[:60]!r}: a component of more than 255 bytes: File name too long")
    need(len(f"{sensor}-{target}".encode()) <= 3600 + 201, f"{target[:60]!r}...: the path becomes too long")
    need("PowerReport.csv" not in parts[1:], f"{target!r}: a directory where its parent's file is")
    need(len(sensor.encode()) <= 200, "sensor of more than 200 bytes")


def check_report(report, source):
    for field in ("timestamp", "sensor", "target", "groups"):
        need(field in report, f"{field} is missing")
    unknown = set(report) - {"timestamp", "sensor", "target", "groups", "metadata"}
    need(not unknown, f"unknown field {unknown}")
    check_timestamp(report["timestamp"], source)
    need(isinstance(report["sensor"], str) and report["sensor"], "sensor is no text")
    need("'" not in report["sensor"], "apostrophe in sensor: the formula dies at creation")
    need(isinstance(report["target"], str) and report["target"], "target is no text")
    check_place(report["sensor"], report["target"])
    if "metadata" in report:
        need(isinstance(report["metadata"], dict), "metadata is not an object: 2.10 rejects the report")
    else:
        need(source == "socket", "metadata missing: the JSON file reader raises KeyError")
    groups = report["groups"]
    need(isinstance(groups, dict) and groups, "groups is empty: the dispatcher dies")
    for group, sockets in groups.items():
        need(isinstance(sockets, dict) and sockets, f"{group}: no socket: the dispatcher dies")
        for socket, cpus in sockets.items():
            need(socket.isdigit(), f"{group}: socket {socket!r} is no number")
            need(isinstance(cpus, dict) and cpus, f"{group}/{socket}: no cpu: the dispatcher dies")
            for cpu, values in cpus.items():
                need(cpu.isdigit(), f"{group}/{socket}: cpu {cpu!r} is no number")
                check_values(values, f"{group}/{socket}/{cpu}")


class Formula:
    """Ticks of one sensor, complete or not at all."""

    def __init__(self, options):
        self.options = options
        self.pending = {}
        self.done = set()
        self.sensor = None
        self.events = None
        self.labels = None
        self.ticks = self.reports = self.no_frequency = 0
        self.targets = set()

    def add(self, report):
        stamp, target = report["timestamp"], report["target"]
        if self.sensor is None:
            self.sensor = report["sensor"]
        need(report["sensor"] == self.sensor, f"sensor changed to {report['sensor']!r}")
        # the keys become columns of PowerAPI's CSV and labels of its Prometheus output, which are made of the first report:
        # HeaderAreNotTheSameError or ValueError at the next one that has others
        labels = set(report.get("metadata", {}))
        if self.labels is None:
            self.labels = labels
        need(labels == self.labels, f"{target} at {stamp}: metadata has the keys {sorted(labels)}, the first report {sorted(self.labels)}: "
             "the CSV and the Prometheus output end")
        need(not labels & {"scope", "socket", "formula", "ratio", "timestamp", "sensor", "target", "power"}, f"metadata takes a name of the formula's: {labels}")
        need(all(isinstance(v, str) for v in report.get("metadata", {}).values()), f"metadata {report.get('metadata')}: a value that is no text")
        need(stamp not in self.done, f"late report of {target} for {stamp}: missing global report")
        tick = self.pending.setdefault(stamp, {})
        need(target not in tick, f"second report of {target} at {stamp}: the first is lost")
        tick[target] = report["groups"]
        self.reports += 1
        if len(self.pending) == PENDING_TICKS:
            self.process(min(self.pending))

    def finish(self):
        for stamp in sorted(self.pending):
            self.process(stamp)

    def process(self, stamp):
        tick = self.pending.pop(stamp)
        self.done.add(stamp)
        machine = tick.pop("all", None)
        need(machine is not None, f"tick {stamp}: missing global report")
        need(tick, f"tick {stamp}: no target besides all: no output at all")
        need("rapl" in machine, f"tick {stamp}: all without rapl: the formula dies")
        need("msr" in machine, f"tick {stamp}: all without msr: the formula dies")
        sockets = set(machine["rapl"]) | set(machine["msr"])
        for target, groups in tick.items():
            need("core" in groups, f"tick {stamp}: {target} without core: the formula dies")
            sockets |= set(groups["core"])
        for socket in sorted(sockets):
            self.process_socket(stamp, machine, tick, socket)
        self.ticks += 1
        self.targets |= set(tick)

    def process_socket(self, stamp, machine, tick, socket):
        where = f"tick {stamp}, socket {socket}"
        need(socket in machine["rapl"], f"{where}: not in rapl")
        need(socket in machine["msr"], f"{where}: not in msr")
        first = next(iter(machine["rapl"][socket].values()))
        need(self.options.rapl_event in first, f"{where}: no {self.options.rapl_event}: the formula dies")
        self.check_frequency(where, machine["msr"][socket])
        for target, groups in tick.items():
            need(socket in groups["core"], f"{where}: {target} does not have it: KeyError")
            for values in groups["core"][socket].values():
                events = sorted(k for k in values if not k.startswith("time_"))
                if self.events is None:
                    self.events = events
                need(events == self.events, f"{where}: {target} has events {events}, not {self.events}: feature count")

    def check_frequency(self, where, cpus):
        for name in ("APERF", "MPERF"):
            need(all(name in values for values in cpus.values()), f"{where}: msr without {name}: the formula dies")
        aperf = sum(v["APERF"] for v in cpus.values()) / len(cpus)
        mperf = sum(v["MPERF"] for v in cpus.values()) / len(cpus)
        if mperf == 0:
            need(aperf == 0, f"{where}: APERF without MPERF")
            self.no_frequency += 1
            return
        layer = int(self.options.base * aperf / mperf) // LAYER_MHZ
        need(1 <= layer < LAYERS, f"{where}: {self.options.base * aperf / mperf:.0f} MHz: no frequency layer, the formula dies")


def read_json(stream, source):
    for number, line in enumerate(stream, 1):
        try:
            report = parse_line(line)
            check_report(report, source)
        except Bad as e:
            raise Bad(f"line {number}: {e}") from e
        yield report


def read_csv_rows(path):
    with open(path, encoding="utf-8", newline="") as f:
        rows = csv.reader(f)
        header = next(rows)
        need(header[:5] == ["timestamp", "sensor", "target", "socket", "cpu"], f"{path}: header {header}")
        need(header[5:] == sorted(header[5:]), f"{path}: values are not in byte order")
        for row in rows:
            need(len(row) == len(header), f"{path}: line {rows.line_num}: {len(row)} cells instead of {len(header)}")
            need(row[0].isdigit() and all(c.isdigit() for c in row[3:]), f"{path}: line {rows.line_num}: not an integer")
            yield rows.line_num, dict(zip(header, row))


def read_csv_group(path, group, reports):
    last, key = 0, None
    for line, row in read_csv_rows(path):
        stamp = int(row.pop("timestamp"))
        need(stamp >= last, f"{path}: line {line}: timestamp went back")
        last, new_key = stamp, (stamp, row["target"])
        if new_key != key:
            report = reports.setdefault(new_key, {"timestamp": stamp, "sensor": row["sensor"], "target": row["target"], "groups": {}})
            need(group not in report["groups"], f"{path}: line {line}: rows of {row['target']} are not together")
            report["groups"][group] = {}
            key = new_key
        values = {k: int(v) for k, v in row.items() if k not in ("sensor", "target", "socket", "cpu")}
        socket = reports[new_key]["groups"][group].setdefault(row["socket"], {})
        need(row["cpu"] not in socket, f"{path}: line {line}: cpu {row['cpu']} twice")
        socket[row["cpu"]] = values


def read_csv(directory):
    reports = {}
    for group in ("rapl", "msr", "core"):
        read_csv_group(os.path.join(directory, group + ".csv"), group, reports)
    for report in sorted(reports.values(), key=lambda r: r["timestamp"]):
        check_report(report, "socket")
        yield report


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[2])
    parser.add_argument("--input", choices=("socket", "file"), default="socket")
    parser.add_argument("--csv")
    parser.add_argument("--min-ticks", type=int, default=1)
    parser.add_argument("--base", type=float, default=2100)
    parser.add_argument("--rapl-event", default="RAPL_ENERGY_PKG")
    options = parser.parse_args()
    formula = Formula(options)
    try:
        for report in read_csv(options.csv) if options.csv else read_json(sys.stdin.buffer, options.input):
            formula.add(report)
        formula.finish()
        need(formula.ticks >= options.min_ticks, f"{formula.ticks} ticks, {options.min_ticks} expected")
        need(formula.no_frequency < formula.ticks or not formula.ticks, "no tick has a package frequency")
    except Bad as e:
        print(f"check_smartwatts: {e}", file=sys.stderr)
        return 1
    print(f"ok: {formula.ticks} ticks, {formula.reports} reports, {len(formula.targets)} targets, events {' '.join(formula.events)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
