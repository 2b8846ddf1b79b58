#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A reader of vJoule streams, written from docs/formats/vjoule.md. It shares nothing with the program and is
strict: what the page does not allow is an error.

read_vjoule.py [--dialect document|v0.2] [--count N] [--check] [--quiet] FILE | - | tcp:HOST:PORT | unix:PATH
prints a JSON object per record, or with --quiet nothing. --check: also what holds for jouled's own streams but not for the documentation's
example (names with a slash, identifiers of the header, sums). --count: so many reports, else all."""
import argparse
import json
import socket
import struct
import sys

ENERGIES = ("pp0", "pp1", "pkg", "dram", "psys")
DIALECTS = ("document", "v0.2")
PAYLOAD_MAX = 256 << 20
V02_RECORD_MAX = 65483
V02_NAME_MAX = 3800
RESULT_FILES = {f + k for f in ("package", "memory", "pp0", "pp1", "psys") for k in ("", "_max", "_min", "_moy")}


class Malformed(Exception):
    pass


class Payload:
    """Fields one after the other; asking for more than there is fails."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, form):
        size = struct.calcsize("<" + form)
        if self.at + size > len(self.data):
            raise Malformed(f"byte {self.at}: {size} bytes wanted, {len(self.data) - self.at} left")
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += size
        return values if len(values) > 1 else values[0]

    def count(self, form, what):
        n = self.take(form)
        if n < 0:
            raise Malformed(f"byte {self.at}: {n} {what}")
        return n

    def text(self):
        n = self.count("i", "bytes of text")
        return self.take(f"{n}s") if n else b""

    def end(self):
        if self.at != len(self.data):
            raise Malformed(f"byte {self.at}: {len(self.data) - self.at} bytes too many")


def read_entries(p):
    return {p.take("h"): p.text() for _ in range(p.count("i", "metrics"))}


def read_header(data, dialect):
    p = Payload(data)
    h = {"dialect": dialect}
    if dialect == "v0.2":
        h["cpus"], simulation = p.take("iB")
        h["simulation"] = simulation
        h["limits"] = p.take("fff")
        if simulation > 1:
            raise Malformed(f"byte 4: {simulation} is no truth value")
        if p.take("i") != 0:
            raise Malformed("byte 17: a list of powers")
    h["metrics"] = read_entries(p)
    p.end()
    return h


def detect(data):
    """The one dialect whose header this is."""
    fits = []
    for dialect in DIALECTS:
        try:
            fits.append(read_header(data, dialect))
        except Malformed:
            pass
    if len(fits) != 1:
        raise Malformed(f"the header fits {len(fits)} dialects")
    return fits[0]


def read_metrics(p, dialect):
    form = "hq" if dialect == "document" else "h6xq"
    pairs = [p.take(form) for _ in range(p.count("i", "metrics"))]
    if len(dict(pairs)) != len(pairs):
        raise Malformed("a metric twice")
    return dict(pairs)


def read_report(data, dialect):
    p = Payload(data)
    r = {"energy": dict(zip(ENERGIES, p.take("fffff")))}
    if dialect == "v0.2":
        r["temperature"] = p.take("I")
        r["frequency"] = [p.take("i") for _ in range(p.count("i", "frequencies"))]
    r["system"] = read_metrics(p, dialect)
    n = p.count("i" if dialect == "document" else "h", "cgroups")
    r["cgroups"] = {}
    for _ in range(n):
        name = p.text()
        if name in r["cgroups"]:
            raise Malformed(f"cgroup {name!r} twice")
        r["cgroups"][name] = read_metrics(p, dialect)
    p.end()
    return r


def padding_of(data):
    """The bytes that v0.2 leaves between identifier and value."""
    p = Payload(data)
    p.take("fffffI")
    for _ in range(p.count("i", "frequencies")):
        p.take("i")
    pads = [p.take("h6sq")[1] for _ in range(p.count("i", "metrics"))]
    for _ in range(p.count("h", "cgroups")):
        p.text()
        pads += [p.take("h6sq")[1] for _ in range(p.count("i", "metrics"))]
    return b"".join(pads)


def check_header(h):
    ids, names = sorted(h["metrics"]), list(h["metrics"].values())
    if ids != list(range(len(ids))) or list(h["metrics"]) != ids:
        raise Malformed(f"identifiers {list(h['metrics'])} are not dense and rising")
    if not names or len(set(names)) != len(names) or not all(0 < len(n) < 96 for n in names):
        raise Malformed(f"names {names}")
    if h["dialect"] == "v0.2" and (h["cpus"] < 1 or h["simulation"] or any(h["limits"])):
        raise Malformed(f"v0.2 header {h}")


def check_name(name, dialect):
    parts = name.split(b"/")
    bad = not name.startswith(b"/") or b"\0" in name or b".." in parts or len(name) > 4096
    if dialect == "v0.2":
        bad |= any(c.decode("latin-1") in RESULT_FILES for c in parts) or parts[1:2] in ([b"config.toml"], [b"formula.signal"])
        bad |= b"machine-qemu" in name or len(name) > V02_NAME_MAX or any(len(c) > 255 for c in parts)
    if bad:
        raise Malformed(f"cgroup name {name!r}")


def check_report(h, r, data):
    known = list(h["metrics"])
    own = [i for i in known if i in next(iter(r["cgroups"].values()), {})]
    if list(r["system"]) != known:
        raise Malformed(f"system metrics {list(r['system'])}, the header has {known}")
    if any(not 0 <= e < 1e9 for e in r["energy"].values()) or any(v < 0 for v in r["system"].values()):
        raise Malformed(f"a number below 0: {r['energy']} {r['system']}")
    for name, metrics in r["cgroups"].items():
        check_name(name, h["dialect"])
        if h["dialect"] == "v0.2" and (name.rpartition(b"/")[0] or b"/") not in r["cgroups"]:
            raise Malformed(f"cgroup {name!r} without what it lies in")
        if list(metrics) != own or any(v < 0 for v in metrics.values()):
            raise Malformed(f"cgroup {name!r}: {metrics}")
    for i in own:
        total = sum(m[i] for m in r["cgroups"].values())
        if total > r["system"][i]:
            raise Malformed(f"metric {h['metrics'][i]}: {total} in cgroups, {r['system'][i]} in the system")
    if h["dialect"] == "v0.2":
        if len(r["frequency"]) not in (0, h["cpus"]) or any(padding_of(data)) or len(data) + 4 > V02_RECORD_MAX:
            raise Malformed(f"v0.2: {len(r['frequency'])} frequencies, {len(data)} bytes, padding {any(padding_of(data))}")


class Stream:
    """Header and reports of anything that can be read from."""

    def __init__(self, recv, dialect=None, check=False):
        self.recv = recv
        self.dialect = dialect
        self.check = check
        self.header = None

    def exactly(self, n):
        data = b""
        while len(data) < n:
            part = self.recv(min(n - len(data), 1 << 20))
            if not part:
                if data:
                    raise Malformed(f"cut off: {len(data)} of {n} bytes")
                return None
            data += part
        return data

    def payload(self):
        head = self.exactly(4)
        if head is None:
            return None
        n = struct.unpack("<i", head)[0]
        if not 0 < n <= PAYLOAD_MAX:
            raise Malformed(f"a length of {n}")
        data = self.exactly(n)
        if data is None:
            raise Malformed("cut off behind a length")
        return data

    def __iter__(self):
        data = self.payload()
        if data is None:
            return
        self.header = read_header(data, self.dialect) if self.dialect else detect(data)
        if self.check:
            check_header(self.header)
        while (data := self.payload()) is not None:
            report = read_report(data, self.header["dialect"])
            if self.check:
                check_report(self.header, report, data)
            report["bytes"] = len(data) + 4
            yield report


def dial(place):
    kind, _, rest = place.partition(":")
    if kind == "unix":
        s = socket.socket(socket.AF_UNIX)
        s.connect(rest)
        return s
    host, _, port = rest.rpartition(":")
    return socket.create_connection((host, int(port)))


def printable(value):
    if isinstance(value, dict):
        return {printable(k): printable(v) for k, v in value.items()}
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def main():
    a = argparse.ArgumentParser()
    a.add_argument("place")
    a.add_argument("--dialect", choices=DIALECTS)
    a.add_argument("--count", type=int)
    a.add_argument("--check", action="store_true")
    a.add_argument("--quiet", action="store_true")
    a = a.parse_args()
    if a.place.startswith(("tcp:", "unix:")):
        recv = dial(a.place).recv
    else:
        recv = sys.stdin.buffer.read1 if a.place == "-" else open(a.place, "rb").read
    stream = Stream(recv, a.dialect, a.check)
    n = 0
    try:
        for report in stream:
            if not n and not a.quiet:
                print(json.dumps(printable(stream.header)), flush=True)
            if not a.quiet:
                print(json.dumps(printable(report)), flush=True)
            n += 1
            if n == a.count:
                break
    except Malformed as e:
        print(f"read_vjoule: report {n}: {e}", file=sys.stderr)
        return 1
    if a.count and n < a.count:
        print(f"read_vjoule: {n} reports, {a.count} wanted", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
