#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""joulectl decode on the bytes of the documents, against readers that share no code with it, and where it is cut."""
import base64
import glob
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import read_zico   # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
JOULECTL = os.path.join(os.environ.get("B", "build"), "joulectl")


def decode(data, *options):
    done = subprocess.run([JOULECTL, "decode", "--json", *options], input=data, capture_output=True, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode()


def golden(pattern):
    paths = sorted(glob.glob(os.path.join(HERE, pattern)))
    return [(os.path.basename(p), read_zico.load(p)) for p in paths]


class Zico(unittest.TestCase):
    def check(self, data, sent=None, options=()):
        status, got, said = decode(sent or data, *options)
        self.assertEqual((status, said), (0, ""))
        want = [{**w, "record": i} for i, w in enumerate(read_zico.read(data), 1)]
        self.assertEqual(got, want)

    def test_every_file(self):
        files = golden("zico-*.hex")
        self.assertEqual(len(files), 10)
        for name, data in files:
            with self.subTest(name):
                self.check(data)

    def test_agent_data_then_traces(self):
        files = dict(golden("zico-*.hex"))
        self.check(files["zico-1.90-agent.hex"] + files["zico-1.90-trace-big.hex"] + files["zico-1.90-trace-little.hex"])
        self.check(files["zico-document-agent.hex"] + files["zico-document-trace-big.hex"] + files["zico-document-trace-7.hex"])

    def test_base64(self):
        files = dict(golden("zico-1*.hex"))
        bodies = [files["zico-1.90-agent.hex"], files["zico-1.90-trace-big.hex"]]
        self.check(b"".join(bodies), b"\n".join(base64.b64encode(b) for b in bodies))
        self.check(b"".join(bodies), b"".join(base64.encodebytes(b) for b in bodies), ("--format", "zico"))

    def test_cuts(self):
        for name, data in golden("zico-*.hex"):
            ends = [r["offset"] for r in read_zico.read(data)] + [len(data)]
            for cut in range(1, len(data)):
                status, got, said = decode(data[:cut], "--format", "zico")
                self.assertEqual(status, 0 if cut in ends else 1, (name, cut, said))
                self.assertEqual(len(got), max(i for i, end in enumerate(ends) if end <= cut), (name, cut))
                self.assertEqual("byte " in said and "the end of" in said, cut not in ends, said)


class Vjoule(unittest.TestCase):
    def test_documents_examples(self):
        files = dict(golden("vjoule-document-*.hex"))
        status, got, said = decode(files["vjoule-document-header.hex"] + files["vjoule-document-report.hex"])
        self.assertEqual((status, said), (0, ""))
        self.assertEqual([m["name"] for m in got[0]["metrics"]], ["RAPL_ENERGY_PKG", "TSC", "APERF", "MPERF"])
        self.assertEqual(got[1]["length"], 113)
        self.assertEqual(got[1]["energy_joules"], {"pp0": 12.1, "pp1": 0.001, "pkg": 10.92, "dram": 1.4, "psys": 0})
        self.assertEqual([(m["id"], m["value"]) for m in got[1]["system"]], [(0, 98108989378), (7, 189082738)])
        self.assertEqual([(c["name"], [(m["id"], m["value"]) for m in c["metrics"]]) for c in got[1]["cgroups"]],
                         [("test", [(3, 17878329), (9, 189789326)]), ("test2", [(3, 8717896178), (9, 1878718897)])])

    def test_v02(self):
        files = dict(golden("vjoule-v02-*.hex"))
        status, got, said = decode(files["vjoule-v02-header.hex"] + files["vjoule-v02-report.hex"])
        self.assertEqual((status, said), (0, ""))
        self.assertEqual([(r["kind"], r["dialect"]) for r in got], [("header", "v0.2"), ("report", "v0.2")])


class Text(unittest.TestCase):
    def test_named(self):
        for name, word in (("powerapi-document-power.json", "jq"), ("hwpc-core.csv", "column")):
            with open(os.path.join(HERE, name), "rb") as f:
                status, got, said = decode(f.read())
            self.assertEqual((status, got), (1, []))
            self.assertIn(word, said)


if __name__ == "__main__":
    unittest.main()
