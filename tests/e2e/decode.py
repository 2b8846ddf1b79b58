#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What joulectl decode --json said against readers that share no code with it.
decode.py FORMAT FILE DECODED [DECODED-RECORDS-AT-LEAST]: FORMAT is vjoule or snapshot; FILE the bytes, DECODED the
  lines; with a number, DECODED may be a stream's: only its own records are looked for in FILE.
decode.py hostile DIRECTORY: inputs that promise or hold more than is taken.
decode.py memory LIMIT_KIB STATUS COMMAND...: its exit status and the most memory it had."""
import json
import os
import resource
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
import read_vjoule   # noqa: E402

OURS = ("format", "kind", "record", "offset")
QUALITIES = ["wrapped", "multiplexed", "estimated", "stale", "partial", "lost"]


def lines_of(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def without(record, keys=OURS):
    return {k: v for k, v in record.items() if k not in keys}


def same(what, want, got):
    if want != got:
        if isinstance(want, dict) and isinstance(got, dict):
            for k in want.keys() | got.keys():
                same(f"{what}.{k}", want.get(k), got.get(k))
        if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
            for i, pair in enumerate(zip(want, got)):
                same(f"{what}[{i}]", *pair)
        sys.exit(f"{what}: expected {json.dumps(want)[:300]}, found {json.dumps(got)[:300]}")


def single(x):
    """A float of 32 bits as a reader of decimal text finds it again."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


def from_vjoule(data):
    at, header = 0, None
    while at < len(data):
        size = struct.unpack_from("<i", data, at)[0]
        payload = data[at + 4:at + 4 + size]
        record = {"format": "vjoule", "kind": "report" if header else "header", "offset": at, "length": size}
        if header is None:
            header = read_vjoule.detect(payload)
            record["metrics"] = [{"id": i, "name": n.decode()} for i, n in header["metrics"].items()]
            if header["dialect"] == "v0.2":
                record |= {"cpus": header["cpus"], "simulation": bool(header["simulation"])}
        else:
            r = read_vjoule.read_report(payload, header["dialect"])

            def metrics(values):
                return [{"id": i, "name": header["metrics"][i].decode(), "value": v} for i, v in values.items()]
            record["energy_joules"] = r["energy"]
            if header["dialect"] == "v0.2":
                record |= {"temperature_millidegrees": r["temperature"], "frequencies_khz": r["frequency"]}
            record["system"] = metrics(r["system"])
            record["cgroups"] = [{"name": n.decode(), "metrics": metrics(m)} for n, m in r["cgroups"].items()]
        record["dialect"] = header["dialect"]
        yield record
        at += 4 + size


def quality(bits):
    return "+".join(n for i, n in enumerate(QUALITIES) if bits >> i & 1) or "measured"


def real(text):
    v = struct.unpack(">d", bytes.fromhex(text))[0]
    return v if v == v else None


def snapshot_header(raw):
    want = {k: raw[k] for k in ("sensor", "boot_id", "trigger", "clock", "multiplexed", "irq_separate", "idle_merged", "packages")}
    want["cpus"] = [{"cpu": i, "present": c[0], "package": c[1], "die": c[2], "core": c[3]} for i, c in enumerate(raw["cpus"])]
    want["names"] = [[e["name"] for e in raw[k]] for k in ("core", "msr", "domains")]
    return want


def energy_quality(row, domains):
    """Of a row's energy: lost counts matter as far as the split went by them."""
    estimated, partial, lost = 4, 16, 32
    bits = 0 if domains else row["quality"]
    for uj, d in zip(row["energy_uj"], domains):
        own = row["quality"]
        if own & lost and uj:
            own = own & ~lost | (0 if d["share_quality"] & estimated else partial)
        bits |= own | d["quality"] | d["share_quality"]
    return quality(bits)


def snapshot_body(raw, header):
    want = {k: raw[k] for k in ("number", "start_ns", "end_ns", "end_real_ns", "suspended_ns", "nominal_ns", "missed", "formula",
                                "idle_policy", "losses")}
    want |= {k: raw[k] for k in ("skew_ns",) if k in raw}  # where the machine was slow
    want["cpus"] = []
    by_number = {c["cpu"]: c for c in raw["cpus"]}
    for i in range(len(header["cpus"])):
        c = by_number.get(i) or dict.fromkeys(("flags", "quality", "elapsed_ns", "idle_ns", "irq_steal_ns", "offline_ns", "busy_ns",
                                               "msr_enabled_ns", "msr_running_ns"), 0) | {"cpu": i, "msr": [0] * len(header["msr"])}
        c = dict(c)
        c["online"] = bool(c.pop("flags") & 1)
        c["quality"] = quality(c["quality"])
        want["cpus"].append(c)
    want["domains"] = []
    for d, desc in zip(raw["domains"], header["domains"]):
        d = {"name": desc["name"], **d}
        for k in ("quality", "idle_quality", "share_quality"):
            d[k] = quality(d[k])
        for k in ("scale", "uncertainty", "idle_uncertainty"):
            d[k] = real(d[k])
        want["domains"].append(d)
    want["rows"] = []
    for r in raw["rows"]:
        if raw["formula"]:
            r = dict(r, energy_quality=energy_quality(r, raw["domains"]))
        r = dict(r, path=bytes.fromhex(r["path"]).decode(), quality=quality(r["quality"]))
        r["cells"] = [dict(c, quality=quality(c["quality"])) for c in r["cells"]]
        r["uncertainty_ppm"] = [None if v == 2**32 - 1 else v for v in r["uncertainty_ppm"]]
        want["rows"].append(r)
    return want


def from_snapshot(path):
    reader = os.path.join(os.path.dirname(read_vjoule.__file__), "read_snapshot.py")
    out = subprocess.run([sys.executable, reader, path], check=True, capture_output=True, text=True).stdout
    header = None
    for line in out.splitlines():
        raw = json.loads(line)
        if header is None:
            header = raw
            yield {"format": "snapshot", "kind": "header", **snapshot_header(raw)}
        else:
            yield {"format": "snapshot", "kind": "snapshot", **snapshot_body(raw, header)}


def fit(record, want):
    """The part of a decoded record that the reader knows too."""
    record = dict(record)
    if record["format"] == "vjoule" and "energy_joules" in record:
        record["energy_joules"] = {k: single(v) for k, v in record["energy_joules"].items()}
    if "names" in want:
        record["names"] = [[e["name"] for e in record[k]] for k in ("core", "msr", "domains")]
        for k in ("core", "msr", "domains"):
            record.pop(k)
    record.pop("record")
    if "offset" not in want:
        record.pop("offset")
    return record


def compare(form, path, decoded, at_least):
    with open(path, "rb") as f:
        data = f.read()
    want = list(from_snapshot(path) if form == "snapshot" else from_vjoule(data))
    got = lines_of(decoded)
    if len(got) != len(want) or len(got) < at_least:
        sys.exit(f"{len(got)} records decoded, {len(want)} in the file, {at_least} expected")
    for i, (w, g) in enumerate(zip(want, got), 1):
        same(f"number of record {i}", i, g["record"])
        same(f"record {i}", w, fit(g, w))


def hostile(directory):
    head = bytes.fromhex("c89fcb480000000000000000")
    inputs = {
        "vjoule-length": struct.pack("<i", 2**31 - 1) + b"\0" * 100,
        "vjoule-counts": struct.pack("<i", 16 << 20) + struct.pack("<i", 2 << 20) + b"\0" * (16 << 20),
        "vjoule-names": vjoule_names(),
        "zico-texts": head + (b"\xc9\xa1\x01\x7a" + struct.pack(">I", 4 << 20) + b"\x01" * (4 << 20)) * 12,
        "zico-names": b"".join(b"\xc1\x83\x1a" + struct.pack(">I", i) + b"\x79\x10\x00" + b"x" * 4096 + b"\0" for i in range(9000)),
        "zico-all": zico_all(head),
        "zico-levels": head * (1 << 20),
        "zico-values": head + b"\xc9\xa1\x01" + b"\x9f" + b"\x01" * (40 << 20),
        "zico-promises": head + b"\xc9\xbb" + b"\xff" * 8 + b"\x01\x9b" + b"\xff" * 8,
        "snapshot": b"\xd9\xd9\xf7\xbb" + b"\xff" * 8 + b"\x63cpus\x9b" + b"\xff" * 8 + b"\x84\xf5\x00\x00\x00" * (1 << 20),
    }
    for name, data in inputs.items():
        with open(os.path.join(directory, name), "wb") as f:
            f.write(data)


def zico_all(head):
    """As many names and as far ids as are kept, then a trace with all the text that it may have."""
    names = b"".join(b"\xc1\x83\x1a" + struct.pack(">I", i) + b"\x79\x10\x00" + b"x" * 4096 + b"\0" for i in range(2000))
    far = b"\xc1\x83\x1a\x00\x0f\xff\xff\x61a\x00" + b"\xc2\x84\x1a\x00\x0f\xff\xff\x01\x01\x01"
    return names + far + head + (b"\xc9\xa1\x01\x7a" + struct.pack(">I", 3 << 20) + b"\x01" * (3 << 20)) * 12


def vjoule_names():
    """A header with one long name and a report that uses it a hundred thousand times: 100 MB of text."""
    header = struct.pack("<ihi", 1, 0, 1024) + b"n" * 1024
    report = struct.pack("<5fi", 0, 0, 0, 0, 0, 100000) + struct.pack("<hq", 0, 1) * 100000 + struct.pack("<i", 0)
    return struct.pack("<i", len(header)) + header + struct.pack("<i", len(report)) + report


def memory(limit_kib, status, command):
    with open(os.devnull, "wb") as null:
        done = subprocess.run(command, stdout=null, stderr=subprocess.PIPE, check=False, timeout=300)
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    said = done.stderr.decode()
    if done.returncode != status or most > limit_kib or said.count("\n") > 1:
        sys.exit(f"exit status {done.returncode}, {most} KiB: {said[:300]}")
    if status and not ("byte " in said and "expected " in said and "found " in said):
        sys.exit(f"no offset: {said[:300]}")
    print(most)


def main():
    if sys.argv[1] == "hostile":
        hostile(sys.argv[2])
    elif sys.argv[1] == "memory":
        memory(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
    else:
        compare(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))


if __name__ == "__main__":
    main()
