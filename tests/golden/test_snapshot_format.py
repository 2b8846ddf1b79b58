#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/formats/snapshot.cddl takes a recording written by hand after docs/formats/snapshot.md and refuses
every breach of it; the independent reader puts back what the recording leaves out."""
import copy
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import check_cddl   # noqa: E402

with open(os.path.join(HERE, "..", "..", "docs", "formats", "snapshot.cddl"), encoding="utf-8") as schema_file:
    CDDL = schema_file.read()


def head(major, n):
    for info, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if n < 24:
            return bytes([major << 5 | n])
        if n < 1 << (8 * size):
            return bytes([major << 5 | info]) + n.to_bytes(size, "big")
    raise ValueError(n)


def cbor(v):
    if v is True or v is False:
        return b"\xf5" if v else b"\xf4"
    if isinstance(v, int):
        return head(0, v) if v >= 0 else head(1, -1 - v)
    if isinstance(v, float):
        return b"\xfb" + struct.pack(">d", v)
    if isinstance(v, bytes):
        return head(2, len(v)) + v
    if isinstance(v, str):
        return head(3, len(v.encode())) + v.encode()
    if isinstance(v, list):
        return head(4, len(v)) + b"".join(map(cbor, v))
    if isinstance(v, tuple):
        return head(6, v[0]) + cbor(v[1])
    return head(5, len(v)) + b"".join(cbor(k) + cbor(x) for k, x in v.items())


HEADER = {
    "format": "jouled-snapshot", "version": 1, "schema": 2**64 - 1, "sensor": "node-7", "boot_id": "b", "trigger": "tp_btf",
    "clock": "scheduler", "multiplexed": False, "irq_separate": True, "idle_merged": False,
    "core": [{"name": "CYCLES", "kind": 0, "type": 0, "config": 0, "config1": 0, "config2": 0, "pmu": "", "reason": "",
              "cpus": b"\x03"}],
    "msr": [], "packages": 1, "cpus": [[True, 0, 0, 0], [True, 0, 0, 1]],
    "domains": [{"kind": "package", "package": 0, "interface": "powercap", "name": "package-0", "reason": ""}],
}
SNAPSHOT = {
    "schema": 2**64 - 1, "number": 1, "start_ns": 10, "end_ns": 20, "suspended_ns": 0, "end_real_ns": -5, "nominal_ns": 10,
    "missed": 0, "losses": {"folded": 0, "lost_reads": 0, "lost_events": 0, "missed_switches": 0},
    "formula": "share", "idle_policy": "own",
    "cpus": [[1, 1, 0, 10, 4, 0, 0, 6, [], 0, 0]],
    "domains": [{"start_ns": 9, "end_ns": 19, "quality": 1, "energy_uj": 100, "energy_q32": 429496, "idle_uj": 40, "residual_uj": 0,
                 "idle_power_uw": 4, "idle_quality": 4, "share_quality": 0, "scale": 1.0, "uncertainty": float("nan"),
                 "idle_uncertainty": 0.5}],
    "rows": [{0: 0}, {0: 1, 1: 1}, {0: 2, 1: 2}, {0: 3, 1: 3},
             {0: 4, 1: 4, 3: 77, 5: b"/a.slice/x\xff", 6: 2, 7: 2, 15: [[0, 0, 2, 1, [5]], [1, 2, 3, 1, [6], 4, 2]], 16: [60], 17: [125000]},
             {0: 4, 1: 5, 4: 9, 5: b"y", 6: 2, 7: 3, 9: 8, 14: [1, 2, 3, 4], 19: [1, 2, 3, 4, 5, 6]}],
}


def recording(header, *snapshots):
    return cbor((55799, header)) + b"".join(map(cbor, snapshots))


class Schema(unittest.TestCase):
    def test_example(self):
        self.assertIsNone(check_cddl.check(CDDL, recording(HEADER, SNAPSHOT, SNAPSHOT)))

    def test_later_version_may_add(self):
        header, snapshot = copy.deepcopy(HEADER), copy.deepcopy(SNAPSHOT)
        header["new"] = header["core"][0]["new"] = snapshot["new"] = snapshot["domains"][0]["new"] = [1, {"x": b""}]
        header["cpus"][0].append("new")
        snapshot["cpus"][0].append("new")
        snapshot["rows"][5][99] = snapshot["rows"][5]["word"] = 1.5
        snapshot["rows"][4][15][1].append("new")
        self.assertIsNone(check_cddl.check(CDDL, recording(header, snapshot)))

    def refuse(self, word, edit):
        header, snapshot = copy.deepcopy(HEADER), copy.deepcopy(SNAPSHOT)
        edit(header, snapshot)
        wrong = check_cddl.check(CDDL, recording(header, snapshot))
        self.assertIsNotNone(wrong, word)
        self.assertIn(word, wrong)

    def test_breaches_of_the_header(self):
        self.refuse("format", lambda h, s: h.update(format="other"))
        self.refuse("version", lambda h, s: h.update(version=2))
        self.refuse("packages", lambda h, s: h.update(packages=0))
        self.refuse("no 'sensor'", lambda h, s: h.pop("sensor"))
        self.refuse("multiplexed", lambda h, s: h.update(multiplexed=0))
        self.refuse("kind", lambda h, s: h["core"][0].update(kind=99))
        self.refuse("core", lambda h, s: h.update(core=h["core"] * 9))
        self.refuse("cpus", lambda h, s: h.update(cpus=[]))
        self.refuse("cpus[0]", lambda h, s: h["cpus"].insert(0, [1, 0, 0, 0]))
        self.refuse("interface", lambda h, s: h["domains"][0].update(interface="guess"))

    def test_breaches_of_a_snapshot(self):
        self.refuse("no 'schema'", lambda h, s: s.pop("schema"))
        self.refuse("end_ns", lambda h, s: s.update(end_ns=-1))
        self.refuse("idle_policy", lambda h, s: s.update(idle_policy="none"))
        self.refuse("rows", lambda h, s: s.update(rows=s["rows"][:3]))
        self.refuse("losses", lambda h, s: s["losses"].pop("folded"))
        self.refuse("quality", lambda h, s: s["domains"][0].update(quality=64))
        self.refuse("scale", lambda h, s: s["domains"][0].update(scale=1))
        self.refuse("cpus", lambda h, s: s["cpus"][0].pop())
        self.refuse("rows", lambda h, s: s["rows"][4].update({0: 9}))
        self.refuse("rows", lambda h, s: s["rows"][4].update({1: 1 << 20}))
        self.refuse("rows", lambda h, s: s["rows"][4].update({5: 1}))
        self.refuse("rows", lambda h, s: s["rows"][5].update({14: [1, 2, 3]}))
        self.refuse("rows", lambda h, s: s["rows"][5].update({19: [1, 2, 3, 4, 5]}))
        self.refuse("rows", lambda h, s: s["rows"][4][15][0].pop())

    def test_no_header(self):
        self.assertIn("no header", check_cddl.check(CDDL, cbor(SNAPSHOT)))


class Reading(unittest.TestCase):
    def read(self, data):
        with tempfile.NamedTemporaryFile() as f:
            f.write(data)
            f.flush()
            return subprocess.run([sys.executable, os.path.join(HERE, "read_snapshot.py"), f.name], capture_output=True, text=True,
                                  check=False)

    def test_what_was_left_out_is_put_back(self):
        done = self.read(recording(HEADER, SNAPSHOT))
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout.splitlines()[1])["rows"]
        self.assertEqual([bytes.fromhex(r["path"]) for r in rows],
                         [b"idle", b"kernel", b"irq+steal", b"other", b"/a.slice/x\xff", b"/a.slice/y"])
        self.assertEqual((rows[4]["time_ns"], rows[4]["switches"], rows[4]["counters"]), (5, 2, [11]))
        self.assertEqual((rows[4]["enabled_ns"], rows[4]["running_ns"], rows[4]["energy_uj"]), (6, 4, [60]))
        self.assertEqual((rows[5]["time_ns"], rows[5]["ended"], rows[5]["traffic"]), (8, True, [1, 2, 3, 4]))
        self.assertEqual([r["block"] for r in rows[4:]], [[0] * 6, [1, 2, 3, 4, 5, 6]])
        self.assertEqual(rows[0]["energy_uj"], [0])

    def test_cut(self):
        done = self.read(recording(HEADER, SNAPSHOT)[:-1])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cut off", done.stderr)


if __name__ == "__main__":
    unittest.main()
