#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of the strict ZICO collector (tests/zico): bytes of real agents pass, and each rule refuses what breaks it."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "zico"))
import agent_data  # noqa: E402
import records  # noqa: E402
from rules import PROFILES, Dictionary, Refused  # noqa: E402
from samples import AGENT, BEGIN, BIG, CLASSIC, LITERAL, MINIMAL, SECOND, E, P, definitions, h, string  # noqa: E402


def dictionary(profile, data=None):
    d = Dictionary()
    family = PROFILES[profile].family
    tags = {"document": ("cd", "ce")}.get(family, ("c1", "c2"))
    agent_data.take(definitions(*tags, typed=family != "F3") if data is None else data, d, PROFILES[profile])
    return d


def take(profile, data):
    return records.take(data, dictionary(profile), PROFILES[profile])


class Bytes(unittest.TestCase):
    def refused(self, data, why, profile="zico-1.90", poison=False):
        with self.assertRaises(Refused) as e:
            take(profile, h(data) if isinstance(data, str) else data)
        self.assertIn(why, str(e.exception))
        self.assertEqual(e.exception.poison, poison)

    def complained(self, data, why, profile="zico-1.90"):
        _, complaints = take(profile, h(data))
        self.assertTrue(any(why in c for c in complaints), complaints)

    def agent_refused(self, data, why, profile="zico-1.90", poison=False):
        with self.assertRaises(Refused) as e:
            dictionary(profile, data)
        self.assertIn(why, str(e.exception))
        self.assertEqual(e.exception.poison, poison)

    def test_a_real_writer(self):
        d = dictionary("zico-1.90", AGENT)
        self.assertEqual(d.methods[1], ("com.acme.Gauge", "sample", "()V"))
        tree, complaints = take("zico-1.90", CLASSIC)
        self.assertEqual(complaints, ["attribute VALUE: an integer is shown as null"])
        self.assertEqual((tree["start"], tree["stop"], tree["calls"]), (0, 76293 * 65536, 3))
        self.assertEqual(tree["begin"], {"clock": 1600000000123, "type": "WATT"})
        self.assertEqual(tree["attrs"], {"HOST": "nginx", "VALUE": 123456})
        child = tree["children"][0]
        self.assertEqual(child["exception"], {"id": 1, "class": "java.lang.Exception", "message": "boom", "cause": 0,
                                              "stack": [["a.B", "run", "B.java", 13]]})
        self.assertEqual((child["stop"], child["calls"]), (15258 * 65536, 1))

    def test_every_family(self):
        for profile, data in (("zico-1.90.3", MINIMAL), ("zico-1.90", MINIMAL), ("zico-1.90.6", MINIMAL),
                              ("document", LITERAL)):
            tree, complaints = take(profile, data)
            self.assertEqual((tree["start"], tree["stop"]), (1000 * 65536, 77295 * 65536))
            self.assertEqual((tree["attrs"], complaints), ({"HOST": "libcbor"}, []))
        tree, complaints = take("document", BIG)
        self.assertEqual((tree["start"], tree["stop"], tree["calls"]), (1000 * 65536, 77295 * 65536, 2**25))
        tree, complaints = take("zico-2", SECOND)
        self.assertEqual((tree["start"], tree["stop"], tree["attrs"]), (10**9, 2 * 10**9, {"HOST": "proc"}))
        self.assertEqual(complaints, [])

    def test_families_refuse_each_other(self):
        bodies = {"zico-1.90": MINIMAL, "document": LITERAL, "zico-2": SECOND}
        for profile in bodies:
            for other, data in bodies.items():
                if other != profile:
                    self.refused(data, "where a record must begin", profile)
        self.agent_refused(definitions(), "tag 0x1", "document")
        self.agent_refused(definitions("cd", "ce"), "tag 0xd")
        self.agent_refused(definitions(), "expected an array", "zico-2")
        self.agent_refused(h("c382 6161 6162"), "tag 0x3", "zico-2")

    def test_every_cut_is_refused(self):
        for profile, data in (("zico-1.90", CLASSIC), ("document", LITERAL), ("zico-2", SECOND)):
            for n in range(1, len(data)):
                with self.assertRaises(Refused, msg=f"{profile} cut at {n}"):
                    take(profile, data[:n])

    def test_records(self):
        self.refused("c882 " + P, "record")
        self.refused("c89f " + BEGIN + E, "where a prolog must be")
        self.refused("c89f cb5808 0000000000 010000" + BEGIN + E, "prolog")
        self.refused("c89f" + P + BEGIN + "cd5808 0100000000010000 ff", "epilog")
        self.refused("c89f" + P + BEGIN + "cd48 0100000000 010000 c9a0 ff", "end of record")
        self.refused("c89f" + P + BEGIN + "ff", "without epilog")
        self.refused("c89f cb48 0000000000 020000" + BEGIN + E, "method 2 is not defined")
        self.refused("c89f" + P + BEGIN + E + "c89f" + P + BEGIN + E, "two records")
        self.complained("c89f" + P + E, "invisible")
        self.complained("c89f" + P + BEGIN + "cd48 0000000000 010000 ff", "no time")
        self.complained("c89f cb48 0500000000 010000" + BEGIN + E, "ends before")
        self.complained("c89f" + P + BEGIN + "c89f" + P + E + E, "those below it more")
        self.complained("c89f" + P + BEGIN + "c89f" + P + BEGIN + E + "cd48 0100000000 020000 ff", "below the top")
        self.complained("c89f" + P + BEGIN + BEGIN + E, "twice")
        self.complained("c89f" + P + BEGIN + "cd48 0080c33b00 010000 ff", "longer than")
        tree, complaints = take("zico-1.90", h("d808 9f d80b48 0000000000 010000 c9a0 c9a1 6141 6142" + BEGIN + E))
        self.assertEqual((tree["attrs"], complaints), ({"A": "B"}, []))

    def test_poison(self):
        for clock in ("1a5f5e1000", "1b00038d7ea4c68000", "1b0000000000000001"):   # s, us, a wrong one
            self.refused("c89f" + P + "d82182" + clock + "04" + E, "milliseconds", poison=True)
        for bad in ("", "V", "()", "()X", "(V)V", "()Ljava/lang/String", "()Ljava.lang.String;", "void f()", "()V "):
            data = string(1, "a.B", 5) + string(2, "f", 6) + string(3, bad, 8) + h("c284 01 01 02 03")
            self.agent_refused(data, "JVM descriptor", poison=True)
            untyped = string(1, "a.B") + string(2, "f") + string(3, bad) + h("c284 01 01 02 03")
            self.agent_refused(untyped, "JVM descriptor", "zico-2", poison=True)
        for good in ("()V", "(IJ[[Ljava/lang/String;)[I"):
            dictionary("zico-1.90", string(1, "a.B", 5) + string(2, "f", 6) + string(3, good, 8) + h("c284 01 01 02 03"))
        self.agent_refused(string(7, "x", 0), "no gaps", poison=True)

    def test_flags(self):
        self.assertTrue(take("zico-1.90", h("c89f" + P + BEGIN + "cf08" + E))[0]["error"])
        self.assertFalse(take("zico-1.90", h("c89f" + P + BEGIN + "cf01" + E))[0]["error"])
        self.assertTrue(take("zico-1.90.3", h("c89f" + P + BEGIN + "d82501" + E))[0]["error"])
        self.refused("c89f" + P + BEGIN + "d82501" + E, "tag 0x25")
        self.refused("c89f" + P + BEGIN + "cf08" + E, "tag 0xf", "zico-1.90.3")
        self.refused("c89f" + P + BEGIN + "d82503" + E, "flag token", "zico-1.90.3")

    def test_values(self):
        def one(v):
            return "c89f" + P + BEGIN + "c9a1c605" + v + E
        for v, why in (("f93c00", "type 7"), ("fb3ff0000000000000", "type 7"), ("4161", "type 2"), ("c16161", "type 6"),
                       ("9f6161ff", "type 4"), ("bf61616162ff", "type 5"), ("7f6161ff", "definite"), ("61ff", "decode"),
                       ("c618ff", "not defined"), ("d80605", "type 6"), ("c61b0000000000000005", "nine bytes")):
            self.refused(one(v), why)
        self.refused(one("81" * 40 + "6161"), "nested deeper")
        for v in ("f5", "f6"):
            self.refused(one(v), "type 7", "zico-1.90.3")
            self.complained(one(v), "constant")
        self.complained(one("60"), "#!REF[0]")
        self.complained(one("6105"), "control")
        self.complained("c89f" + P + BEGIN + "c9a1c6016161" + E, "type 5, not 0")
        self.complained("c89f" + P + BEGIN + "c9a1c6056161 c9a1c6056162" + E, "twice")
        tree, complaints = take("zico-1.90", h(one("82 6161 a1 c606 c604")))
        self.assertEqual((tree["attrs"], complaints), ({"HOST": ["a", {"VALUE": "WATT"}]}, []))
        self.refused("c89f" + P + BEGIN + "c9bf c6056161ff" + E, "definite")
        self.refused("c89f" + P + BEGIN + "c9a1 01 6161" + E, "text")
        second = "c39f 00 01 c583 1b0000018bcfe56800 04 07 c682 05 {} c482 0101 ff"
        self.assertEqual(take("zico-2", h(second.format("182a")))[1], [])
        self.refused(second.format("fb3ff0000000000000"), "type 7", "zico-2")
        self.refused(second.format("c605"), "type 6", "zico-2")
        self.refused("d8039f 00 01 c482 0101 ff", "2 bytes", "zico-2")
        self.complained("c39f 00 01 c582 1b0000018bcfe56800 04 c482 0101 ff", "span id", "zico-2")

    def test_upward(self):
        body = "{} 0000000000 010000" + BEGIN + "d82682 {} a1 6141 6142" + "cd48 0100000000 010000 ff"
        for profile in ("zico-1.90.3", "zico-1.90", "zico-1.90.6"):
            self.refused(body.format("c89f cb48", "04"), "tag 0x26", profile)
        self.assertEqual(take("document", h(body.format("cb9f 48", "04")))[0]["upward"], [["WATT", {"A": "B"}]])
        self.assertEqual(take("document", h(body.format("cb9f 48", "00")))[1], [])
        self.complained(body.format("cb9f 48", "05"), "not open", "document")
        body = "c39f 00 01 c583 1b0000018bcfe56800 04 07 {} c39f 00 01 c682 05 6142 c482 0101 ff {} c482 0102 ff"
        self.complained(body.format("c682 05 6141", ""), "below it said", "zico-2")
        self.assertEqual(take("zico-2", h(body.format("", "c682 05 6141")))[1], [])
        tree, complaints = take("zico-2", h("c39f 00 01 c583 1b0000018bcfe56800 04 07 c683 04 05 6142 c482 0101 ff"))
        self.assertEqual((tree["upward"], complaints), ([["WATT", {"HOST": "B"}]], []))

    def test_exceptions(self):
        def thrown(*e):
            return "c89f" + P + BEGIN + "".join(
                "c89f" + P + x + "cd48 0100000000 010000 ff" for x in e) + "cd48 0100000000" + f"{1 + len(e):02x}0000 ff"
        good = "d82285 01 c607 f6 00 80"
        tree, complaints = take("zico-1.90", h(thrown(good, "d82285 02 c607 6161 01 80", "d82302")))
        self.assertEqual([c["exception"].get("cause") for c in tree["children"]], [0, 1, None])
        self.assertEqual((tree["children"][2]["exception"], complaints), ({"ref": 2}, []))
        for bad, why in (("d82285 01 6161 f6 00 80", "exception class"), ("d82285 01 c607 f6 f6 80", "cause"),
                         ("d82285 01 c607 c605 00 80", "message"), ("d82285 01 c607 f6 02 80", "not sent before"),
                         ("d82285 01 c607 f6 01 80", "not sent before"), ("d82285 01 c607 f6 00 9fff", "stack"),
                         ("d82285 01 c607 f6 00 81 84 c608 09 0a 01", "unsigned"), ("d82301", "not sent before"),
                         ("d82285 01 c607 f6 00 81 84 08 09 18ff 01", "not defined"), ("d82284 01 c607 f6 00", "array"),
                         ("d82285 1b0000000100000000 c607 f6 00 80", "nine bytes"), ("d82401", "tag 0x24")):
            self.refused(thrown(bad), why)
        many = [f"d82285 18{i:02x} c607 f6 00 80" for i in range(129)]
        self.refused(thrown(*many), "more than 128")
        take("zico-1.90", h(thrown(*many[:128])))
        take("zico-1.90.6", h(thrown(*many)))
        self.complained("c89f" + P + BEGIN + good + good + E, "two exceptions")
        second = "c39f 00 01 c583 1b0000018bcfe56800 04 07 c785 01 07 6161 00 80 {} ff"
        self.complained(second.format("c482 0101"), "flag of an error", "zico-2")
        self.assertEqual(take("zico-2", h(second.format("c483 0101 191008")))[1], [])

    def test_trace_types(self):
        for n, fits in ((64, True), (65, False)):
            d = dictionary("zico-1.90")
            d.strings[4] = ("x" * n, 0)
            try:
                records.take(MINIMAL, d, PROFILES["zico-1.90"])
                self.assertTrue(fits)
            except Refused as e:
                self.assertFalse(fits, e)

    def test_agent_data(self):
        for data, why in (("c182 01 6161", "array"), ("c19f 01 6161 00 ff", "array"), ("c183 20 6161 00", "unsigned"),
                          ("c183 1b0000000000000001 6161 00", "nine bytes"), ("c183 01 6161 01", "type 1"),
                          ("c183 01 6161 09", "type 9"), ("c382 01 6161", "text"), ("c383 6161 6161 00", "array"),
                          ("c284 01 01 02 03", "string 1 is not defined"), ("8101", "without a tag"), ("c801", "tag 0x8"),
                          ("c284 1a01000000 01 01 01", "24 bits")):
            self.agent_refused(h(data), why)
        d = dictionary("zico-1.90", string(1, "nodot", 5) + string(2, "f", 0) + string(3, "()V", 8) + h("c284 01 010203"))
        self.assertEqual(len(d.complaints), 2)
        d = dictionary("zico-1.90", string(1, "a.b\u2028", 5) + string(2, "f", 6) + string(3, "()V", 8) + h("c284 01 010203"))
        self.assertIn("end of a line", d.complaints[0])
        d = Dictionary()
        with self.assertRaises(Refused):
            agent_data.take(string(1, "a", 0) + b"\xc9\xa0", d, PROFILES["zico-1.90"])
        self.assertEqual(d.strings, {1: ("a", 0)})   # what stood before stays
        agent_data.take(string(1, "b", 0) + h("c382 6161 6162"), d, PROFILES["zico-1.90"])
        self.assertEqual((d.strings[1][0], d.attributes), ("b", {"a": "b"}))


if __name__ == "__main__":
    unittest.main()
