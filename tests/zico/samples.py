# SPDX-License-Identifier: Apache-2.0
"""Bodies written out by hand: what real agents sent, and the smallest of each family."""
STRINGS = [("com.acme.Gauge", 5), ("sample", 6), ("()V", 8), ("WATT", 0), ("HOST", 0), ("VALUE", 0),
           ("java.lang.Exception", 5), ("a.B", 5), ("run", 6), ("B.java", 0)]


def h(text):
    return bytes.fromhex(text.replace(" ", ""))


def string(i, text, kind=None, tag="c1"):
    t = text.encode()
    head = bytes([0x60 + len(t)]) if len(t) < 24 else b"\x78" + bytes([len(t)])
    end = b"" if kind is None else bytes([kind])
    return h(tag) + (b"\x82" if kind is None else b"\x83") + uint(i) + head + t + end


def uint(i):
    return bytes([i]) if i < 24 else b"\x18" + bytes([i])


def definitions(string_tag="c1", method_tag="c2", typed=True):
    out = b"".join(string(i + 1, t, k if typed else None, string_tag) for i, (t, k) in enumerate(STRINGS))
    return out + h(method_tag + "84 01 01 02 03")


# Bytes that a real classic writer of 1.90.4 made, and the minimal trace that a real collector showed.
AGENT = (h("c1 83 01 6e") + b"com.acme.Gauge" + h("05 c1 83 02 66") + b"sample" + h("06 c1 83 03 63") + b"()V" +
         h("08 c2 84 01 01 02 03 c1 83 04 64") + b"WATT" + h("00"))
CLASSIC = h("c89f ca48 000001 0000000000 d82182 1b000001 74876e807b 04 c9a2 c605 65 6e67696e78 c606 1a0001e240"
            "c89f ca48 000001 0000000000 d82285 01 c607 64 626f6f6d 00 81 84 08 09 0a 0d cc48 000001 0000003b9a ff"
            "cc48 000003 0000012a05 ff")
MINIMAL = h("c89f cb48 e803000000 010000 d82182 1b0000018bcfe56800 04 c9a1 c605 67 6c696263626f72"
            "cd48 ef2d010000 010000 ff")
LITERAL = h("cb9f 48 e803000000 010000 d82182 1b0000018bcfe56800 04 c9a1 c605 67 6c696263626f72"
            "cd48 ef2d010000 010000 ff")
BIG = h("ca9f 48 000001 00000003e8 d82182 1b0000018bcfe56800 04 cd50 000000 0000012def 0000000002000000 ff")
SECOND = h("c39f 1a3b9aca00 01 c584 1b0000018bcfe56800 04 07 00 c682 05 64 70726f63 c482 1a77359400 01 ff")
BEGIN = "d82182 1b0000018bcfe56800 04"
P, E = "cb48 0000000000 010000", "cd48 0100000000 010000 ff"
