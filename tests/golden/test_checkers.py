#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checkers must fail where a formula would: every breach of docs/formats/hwpc.md is one test."""
import copy
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
FORMATS = os.path.join(HERE, "..", "..", "docs", "formats")


def values(**events):
    return dict(events, time_enabled=1000, time_running=1000)


def machine(stamp):
    return {"timestamp": stamp, "sensor": "s", "target": "all", "groups": {
        "rapl": {"0": {"0": values(RAPL_ENERGY_PKG=5709496320)}},
        "msr": {"0": {"0": values(TSC=2122153094, APERF=19838920, MPERF=20587012)}}}}


def target(stamp, name="/a"):
    return {"timestamp": stamp, "sensor": "s", "target": name, "groups": {"core": {"0": {"0": values(CYCLES=1, INSTRUCTIONS=2)}}}}


def run(checker, data, *args):
    return subprocess.run([sys.executable, os.path.join(HERE, checker), *args], input=data, capture_output=True, check=False)


def lines(reports):
    return b"".join(json.dumps(r).encode() + b"\n" for r in reports)


class SmartWatts(unittest.TestCase):
    def setUp(self):
        self.reports = [r for tick in range(8) for r in (machine(1673603482630 + tick * 1000), target(1673603482630 + tick * 1000),
                                                         target(1673603482630 + tick * 1000, "/b"))]

    def accepted(self, *args):
        result = run("check_smartwatts.py", lines(self.reports), *args)
        self.assertEqual(result.returncode, 0, result.stderr)

    def refused(self, word, *args):
        result = run("check_smartwatts.py", lines(self.reports), *args)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn(word, result.stderr.decode())
        self.assertNotIn("Traceback", result.stderr.decode())

    def test_good(self):
        self.accepted("--min-ticks", "8")

    def test_good_iso(self):
        for i, r in enumerate(self.reports):
            r.update(timestamp=f"2023-01-13T09:51:{22 + i // 3}.630", metadata={})
        self.accepted("--input", "file")
        self.refused("integer milliseconds")
        self.reports[4]["timestamp"] += "Z"
        self.refused("timestamp", "--input", "file")

    def test_iso_needs_metadata(self):
        for i, r in enumerate(self.reports):
            r.update(timestamp=f"2023-01-13T09:51:{22 + i // 3}.630")
        self.refused("KeyError", "--input", "file")

    def test_nothing(self):
        self.reports = []
        self.refused("0 ticks")

    def test_too_few(self):
        self.refused("8 ticks", "--min-ticks", "9")

    def test_groups_empty(self):
        self.reports[4]["groups"] = {}
        self.refused("groups is empty")

    def test_no_socket(self):
        self.reports[4]["groups"] = {"core": {}}
        self.refused("no socket")

    def test_no_cpu(self):
        self.reports[4]["groups"] = {"core": {"0": {}}}
        self.refused("no cpu")

    def test_no_core(self):
        self.reports[4]["groups"] = {"msr": {"0": {"0": values(APERF=1)}}}
        self.refused("without core")

    def test_all_without(self):
        for group in ("rapl", "msr"):
            saved = copy.deepcopy(self.reports)
            del self.reports[3]["groups"][group]
            self.refused("without " + group)
            self.reports = saved

    def test_rapl_event(self):
        self.refused("no RAPL_ENERGY_DRAM", "--rapl-event", "RAPL_ENERGY_DRAM")

    def test_no_mperf(self):
        del self.reports[3]["groups"]["msr"]["0"]["0"]["MPERF"]
        self.refused("without MPERF")

    def test_ratio(self):
        self.reports[3]["groups"]["msr"]["0"]["0"]["APERF"] = 900000   # 0.0437 x 2100 MHz = 92 MHz
        self.refused("no frequency layer")

    def test_event_set(self):
        del self.reports[-1]["groups"]["core"]["0"]["0"]["CYCLES"]
        self.refused("feature count")

    def test_text_value(self):
        self.reports[4]["groups"]["core"]["0"]["0"]["CYCLES"] = "1"
        self.refused("not an integer")

    def test_apostrophe(self):
        for r in self.reports:
            r["sensor"] = "bob's"
        self.refused("apostrophe")

    def test_no_all(self):
        del self.reports[3]
        self.refused("missing global report")

    def test_only_all(self):
        del self.reports[4:6]
        self.refused("no target besides all")

    def test_one_ms_off(self):
        self.reports[4]["timestamp"] += 1
        self.refused("missing global report")

    def test_late(self):
        self.reports.append(self.reports.pop(1))
        self.refused("late report")

    def test_twice(self):
        self.reports.insert(4, self.reports[4])
        self.refused("second report")

    def test_socket_missing(self):
        self.reports[4]["groups"]["core"]["1"] = self.reports[4]["groups"]["core"]["0"]
        self.refused("not in rapl")
        for r in self.reports:
            for group in r["groups"].values():
                group["1"] = group["0"]
        self.accepted()
        del self.reports[5]["groups"]["core"]["1"]
        self.refused("KeyError")

    def test_names_of_files(self):
        for name, word in (("/" + 86 * "\ufffd", "too long"), ("/a/PowerReport.csv", "parent's file"), ("/d" * 1900, "too long")):
            self.reports[4]["target"] = name
            self.refused(word)
        self.reports[4]["target"] = "/" + 255 * "a"
        self.accepted()
        for r in self.reports:
            r["sensor"] = 201 * "s"
        self.refused("sensor")

    def test_metadata_keys(self):
        for r in self.reports:
            r["metadata"] = {"quality": "measured"}
        self.accepted()
        self.reports[7]["metadata"] = {"quality": "multiplexed"}
        self.accepted()
        self.reports[7]["metadata"] = {}
        self.refused("the CSV and the Prometheus output end")
        self.reports[7]["metadata"] = {"quality": "measured", "more": "1"}
        self.refused("the CSV and the Prometheus output end")
        for r in self.reports:
            r.pop("metadata")
        self.reports[3]["metadata"] = {"quality": "estimated"}   # `all` alone
        self.refused("the CSV and the Prometheus output end")
        for r in self.reports:
            r["metadata"] = {"socket": "0"}
        self.refused("a name of the formula's")

    def test_metadata_null(self):
        self.reports[4]["metadata"] = None
        self.refused("metadata")

    def test_wire(self):
        good = lines(self.reports)
        for bad, word in ((good[:-1], "newline"), (b"{}{}\n", "one JSON"), (b'{"a":"\xff"}\n', "UTF-8"), (b'{"a":1,"a":2}\n', "twice"),
                          (b'{"a":NaN}\n', "NaN"), (b"[]\n", "object")):
            result = run("check_smartwatts.py", bad)
            self.assertEqual(result.returncode, 1)
            self.assertIn(word, result.stderr.decode())


class Csv(unittest.TestCase):
    files = {
        "rapl": "timestamp,sensor,target,socket,cpu,RAPL_ENERGY_PKG,time_enabled,time_running\n1673603482630,s,all,0,0,5,9,9\n",
        "msr": "timestamp,sensor,target,socket,cpu,APERF,MPERF,time_enabled,time_running\n1673603482630,s,all,0,0,5,5,9,9\n",
        "core": "timestamp,sensor,target,socket,cpu,CYCLES,time_enabled,time_running\n"
                "1673603482630,s,/a,0,0,1,9,9\n1673603482630,s,/a,0,1,1,9,9\n1673603482630,s,/b,0,0,1,9,9\n",
    }

    def check(self, **changed):
        with tempfile.TemporaryDirectory() as d:
            for name, text in dict(self.files, **changed).items():
                with open(os.path.join(d, name + ".csv"), "w", encoding="utf-8") as f:
                    f.write(text)
            result = run("check_smartwatts.py", b"", "--csv", d)
        self.assertNotIn("Traceback", result.stderr.decode())
        return result.returncode

    def test_good(self):
        self.assertEqual(self.check(), 0)

    def test_bad(self):
        core = self.files["core"]
        for bad in (core.replace(",1,9,9\n1673603482630,s,/b", ",,9,9\n1673603482630,s,/b"), core.replace("/b", "/b,c"),
                    core + "1673603482630,s,/a,0,1,1,9,9\n", core + "1673603482629,s,/a,0,1,1,9,9\n", core.replace("CYCLES", "zCYCLES")):
            self.assertNotEqual(bad, core)
            self.assertEqual(self.check(core=bad), 1)


class Schemas(unittest.TestCase):
    def check(self, schema, document):
        result = run("check_schema.py", json.dumps(document).encode(), os.path.join(FORMATS, schema))
        if result.returncode == 77:
            self.skipTest("jsonschema is not installed")
        return result.returncode

    def test_documents(self):
        for name, schema in (("hwpc-core", "hwpc"), ("hwpc-all", "hwpc"), ("power", "power")):
            with open(os.path.join(HERE, f"powerapi-document-{name}.json"), encoding="utf-8") as f:
                self.assertEqual(self.check(schema + ".schema.json", json.load(f)), 0)

    def test_hwpc(self):
        self.assertEqual(self.check("hwpc.schema.json", machine(1)), 0)
        self.assertEqual(self.check("hwpc.schema.json", target(1)), 0)
        for key, value in (("timestamp", "2023-01-13T09:51:22"), ("timestamp", 1.5), ("sensor", "a'b"), ("groups", {}),
                           ("metadata", None), ("extra", 1), ("target", "all")):
            self.assertEqual(self.check("hwpc.schema.json", dict(target(1), **{key: value})), 1, (key, value))

    def test_power(self):
        good = {"timestamp": 1, "sensor": "s", "target": "/a", "power": 1.5, "metadata": {
            "energy_uj": 1, "domain": "package-0", "kind": "package", "package": 0, "quality": "measured", "formula": "share", "idle": "own"}}
        self.assertEqual(self.check("power.schema.json", good), 0)
        for key, value in (("power", "1"), ("power", -1), ("power", None), ("metadata", {}), ("target", "")):
            self.assertEqual(self.check("power.schema.json", dict(good, **{key: value})), 1, (key, value))


class Firefox(unittest.TestCase):
    """A profile of two threads; every breach of it is refused."""
    def setUp(self):
        def table(*columns, length=0, **filled):
            return dict({name: [] for name in columns}, length=length, **filled)

        def one(thread, stack, time, weight):
            nulls = {name: [None] for name in ("category", "subcategory", "nativeSymbol", "innerWindowID", "line", "column")}
            return {"pid": str(thread), "tid": thread, "name": "n", "processName": "n", "processType": "default", "processStartupTime": 0,
                    "processShutdownTime": None, "registerTime": 0, "unregisterTime": None, "pausedRanges": [], "isMainThread": True,
                    "samples": table(length=len(stack), stack=stack, time=time, weight=weight, weightType="samples"),
                    "markers": table("data", "name", "startTime", "endTime", "phase", "category"),
                    "stackTable": table(length=2, frame=[0, 0], prefix=[None, 0]),
                    "frameTable": table(length=1, address=[-1], inlineDepth=[0], func=[0], **nulls),
                    "funcTable": table(length=1, name=[0], isJS=[False], relevantForJS=[False], resource=[-1], source=[None],
                                       lineNumber=[None], columnNumber=[None]),
                    "resourceTable": table("lib", "name", "host", "type"),
                    "nativeSymbols": table("libIndex", "address", "name", "functionSize")}
        self.doc = {
            "meta": {"interval": 1000, "startTime": 1, "profilingEndTime": 9, "processType": 0, "product": "x, microjoules", "stackwalk": 1,
                     "version": 24, "preprocessedProfileVersion": 58, "markerSchema": [], "symbolicated": True, "extra": [],
                     "categories": [{"name": "Other", "color": "grey", "subcategories": ["Other"]}],
                     "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"},
                     "initialVisibleThreads": [0], "initialSelectedThreads": [1]},
            "libs": [], "shared": {"stringArray": ["a"], "sources": table("uuid", "filename")},
            "counters": [{"name": "package-0", "category": "power", "description": "d", "pid": "0", "mainThreadIndex": 0,
                          "samples": table(length=2, time=[0, 9], count=[0, 5])}],
            "threads": [one(0, [], [], []), one(1, [1, 0], [0, 1.5], [3, 4])]}

    def check(self, document):
        sys.path.insert(0, HERE)
        import check_firefox
        try:
            return check_firefox.problem(document)
        except ImportError:
            self.skipTest("jsonschema is not installed")

    def test_good(self):
        self.assertIsNone(self.check(self.doc))
        result = run("check_firefox.py", json.dumps(self.doc).encode())
        self.assertEqual(result.returncode, 0, result.stderr)
        result = run("check_firefox.py", json.dumps(dict(self.doc, counters=[])).encode())
        self.assertEqual(result.returncode, 1)

    def test_bad(self):
        for path, value in (
                ("meta/preprocessedProfileVersion", 57), ("meta/product", "x"), ("meta/profilingEndTime", 1), ("meta/initialSelectedThreads", [2]),
                ("meta/categories", []), ("meta/sampleUnits/time", "s"), ("extra", 1), ("counters", []), ("counters/0/category", "Memory"),
                ("counters/0/pid", "1"), ("counters/0/mainThreadIndex", 2), ("counters/0/samples/length", 3),
                ("counters/0/samples/time", [9, 0]), ("counters/0/samples/count", [0, -5]), ("counters/0/samples/count", [0, 0.5]),
                ("shared/stringArray", []), ("shared/stringArray", ["\x01"]), ("threads/1/pid", "0"), ("threads/1/pid", 1),
                ("threads/1/name", "\x7f"), ("threads/1/samples/weight", [3]), ("threads/1/samples/weight", [0, 3]),
                ("threads/1/samples/weightType", "microjoules"), ("threads/1/samples/stack", [1, 2]), ("threads/1/samples/stack", [1, None]),
                ("threads/1/samples/time", [1.5, 0]), ("threads/1/samples/time", [0, 10]), ("threads/1/stackTable/prefix", [None, 1]),
                ("threads/1/stackTable/frame", [0, 1]), ("threads/1/frameTable/func", [1]), ("threads/1/funcTable/name", [1]),
                ("threads/1/funcTable/fileName", [None]), ("threads/1/frameTable/category", [])):
            document = copy.deepcopy(self.doc)
            at = document
            *parents, last = path.split("/")
            for p in parents:
                at = at[int(p) if isinstance(at, list) else p]
            at[last] = value
            self.assertIsNotNone(self.check(document), (path, value))


if __name__ == "__main__":
    unittest.main(testRunner=unittest.TextTestRunner(stream=io.TextIOWrapper(sys.stdout.buffer, write_through=True)))
