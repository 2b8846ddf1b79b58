#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reader and the checker of vjoule streams: the documentation's examples are read, what is broken is refused."""
import os
import struct
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from check_vjoule_formula import Ended, Formula, Lost, shortened  # noqa: E402
import read_vjoule  # noqa: E402
from read_vjoule import Malformed, Stream, detect, read_report  # noqa: E402


def golden(name):
    with open(os.path.join(HERE, f"vjoule-{name}.hex"), encoding="ascii") as f:
        return bytes.fromhex(f.read().replace("\n", " "))


def stream(data, check=False):
    at = 0

    def recv(n):
        nonlocal at
        part = data[at:at + min(n, 7)]   # in pieces, as a socket gives them
        at += len(part)
        return part
    return Stream(recv, check=check)


class Examples(unittest.TestCase):
    def test_document(self):
        s = stream(golden("document-header") + golden("document-report"))
        report, = s
        self.assertEqual(s.header["metrics"], {0: b"RAPL_ENERGY_PKG", 1: b"TSC", 2: b"APERF", 3: b"MPERF"})
        self.assertEqual(report["system"], {0: 98108989378, 7: 189082738})
        self.assertEqual(report["cgroups"], {b"test": {3: 17878329, 9: 189789326}, b"test2": {3: 8717896178, 9: 1878718897}})
        self.assertEqual([round(e, 6) for e in report["energy"].values()], [12.1, 0.001, 10.92, 1.4, 0])
        self.assertEqual(report["bytes"], 4 + 113)

    def test_v02(self):
        s = stream(golden("v02-header") + golden("v02-report"))
        report, = s
        self.assertEqual((s.header["dialect"], s.header["cpus"]), ("v0.2", 2))
        self.assertEqual((report["temperature"], report["frequency"]), (45000, [2600000, 3100000]))
        self.assertEqual(report["cgroups"][b"/b/c"], {0: 8717896178, 1: 1878718897})


class Broken(unittest.TestCase):
    def test_cut_anywhere(self):
        for dialect in ("document", "v02"):
            header, report = golden(f"{dialect}-header"), golden(f"{dialect}-report")
            for n in range(1, len(header + report)):
                if n == len(header):
                    continue
                with self.assertRaises(Malformed, msg=f"{dialect} {n}"):
                    list(stream((header + report)[:n]))

    def test_neither_dialect(self):
        with self.assertRaises(Malformed):
            detect(golden("document-header")[4:-1])
        with self.assertRaises(Malformed):
            detect(golden("document-header")[4:] + b"\0")

    def test_both_dialects(self):
        # one entry whose name holds what v0.2 expects: 25 bytes and no entry
        name = bytes(11) + bytes(4)
        with self.assertRaisesRegex(Malformed, "fits 2 dialects"):
            detect(struct.pack("<ihi", 1, 0, len(name)) + name)

    def test_what_check_refuses(self):
        with self.assertRaises(Malformed):   # identifiers 7 and 9, names without a slash
            list(stream(golden("document-header") + golden("document-report"), check=True))
        report = bytearray(golden("v02-report"))
        list(stream(golden("v02-header") + b""))
        report[4 + 28 + 8 + 4 + 2] = 1       # padding of the system metric
        self.assertTrue(any(read_vjoule.padding_of(bytes(report[4:]))))
        read_report(bytes(report[4:]), "v0.2")


MACHINE = "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope"


class TheFormula(unittest.TestCase):
    def run_on(self, *reports):
        f = Formula(5)
        for names in reports:
            f.take(names if isinstance(names, dict) else set(names))
        return f

    def ends(self, word, *reports):
        with self.assertRaisesRegex(Ended, word):
            self.run_on(*reports)

    def loses(self, word, *reports):
        with self.assertRaisesRegex(Lost, word):
            self.run_on(*reports)

    def test_leaves_first(self):
        self.assertEqual(set(self.run_on({"/a", "/a/b"}, {"/a"}, *[{"/c"}] * 12).known), {"/c"})

    def test_together(self):
        self.ends("Directory not empty", {"/a", "/a/b"}, *[{"/c"}] * 12)

    def test_child_comes_back_alone(self):
        self.ends("Directory not empty", {"/p", "/p/c"}, {"/p"}, {"/"}, *[{"/", "/p/c"}] * 8)

    def test_silent_counter(self):
        self.run_on({"/a", "/a/b"}, *[{}] * 6)
        self.ends("Directory not empty", {"/a", "/a/b"}, *[{}] * 7)
        self.run_on({"/a", "/b"}, *[{}] * 7)

    def test_root(self):
        self.ends("Directory not empty", {"/"}, *[{"/a"}] * 7)

    def test_file_names(self):
        self.ends("is a file", {"/"}, {"/", "/package"})
        self.ends("is a directory", {"/x/memory"}, {"/x", "/x/memory"})
        self.ends("is a file", {"/config.toml/x"})
        self.ends("too long", {"/" + 256 * "a"})

    def test_shortened(self):
        for name, short in ((MACHINE, "/machine.slice/vm"), (MACHINE + "/libvirt/vcpu0", "/machine.slice/vm"),
                            ("/machine.slice/machine-qemu\\x2d1\\x2dmy\\x2dvm.scope", "/machine.slice/vm"),
                            ("/machine-qemu", "/chine-qemu"), ("/a/b", "/a/b")):
            self.assertEqual(shortened(name), short)

    def test_machines(self):
        self.loses("write one file", {MACHINE, MACHINE + "/libvirt/vcpu0"})
        self.loses("write one file", {MACHINE, "/machine.slice/vm"})
        self.ends("is a file", {"/machine.slice", MACHINE.replace("vm", "package")})
        # forgotten under the short name, remembered under the long one: what comes back writes where nothing is
        self.loses("was removed", {MACHINE: 1.0}, *[{"/a"}] * 8, {MACHINE: 1.0})
        self.ends("leaves", {MACHINE.replace("vm", "..")})

    def test_energy(self):
        f = self.run_on({"/a": 1.0, "/b": 2.0}, {"/a": 4.0})
        self.assertEqual((f.known, f.given_j), ({"/a": 5.0, "/b": 2.0}, 7.0))


if __name__ == "__main__":
    unittest.main()
