#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads agent data and traces of ZICO from their layout alone and prints a JSON line for each item at the top, as the
list of what stands in it. Shares no code with jouled; needs no library.  read_zico.py FILE (FILE.hex: hexadecimal)"""
import json
import struct
import sys

TICK_NS = 65536
TYPES = {0: "text", 4: "keyword", 5: "class", 6: "method", 7: "uuid", 8: "signature"}
BREAK = object()


class Tagged:
    def __init__(self, tag, value, start):
        self.tag, self.value, self.start = tag, value, start


class Open(list):
    """An array that was written without its length."""


class Reader:
    """RFC 8949, tags kept."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        if self.at + n > len(self.data):
            raise ValueError(f"cut off at byte {len(self.data)}")
        self.at += n
        return self.data[self.at - n:self.at]

    def open(self, pairs):
        items = Open()
        while (item := self.item()) is not BREAK:
            items.append((item, self.item()) if pairs else item)
        return items

    def item(self):
        start = self.at
        first = self.take(1)[0]
        major, info = first >> 5, first & 31
        if first == 0xff:
            return BREAK
        if info == 31 and major in (4, 5):
            return self.open(major == 5)
        if info > 27:
            raise ValueError(f"byte {start}: 0x{first:02x}")
        raw = self.take(1 << (info - 24)) if info > 23 else b""
        arg = int.from_bytes(raw, "big") if raw else info
        if major == 7 and info > 24:
            return struct.unpack({25: ">e", 26: ">f", 27: ">d"}[info], raw)[0]
        return [lambda: arg, lambda: -1 - arg, lambda: bytes(self.take(arg)), lambda: self.take(arg).decode(),
                lambda: [self.item() for _ in range(arg)], lambda: Pairs((self.item(), self.item()) for _ in range(arg)),
                lambda: Tagged(arg, self.item(), start), lambda: {20: False, 21: True, 22: None, 23: None}[arg]][major]()


class Pairs(list):
    """A map, its pairs as they stood."""


class Zico:
    def __init__(self):
        self.strings, self.methods, self.dialect = {}, {}, "zico-1.90"

    def ref(self, number):
        known = self.strings.get(number)
        return {"ref": number} | ({} if known is None else {"text": known})

    def string(self, v):
        if isinstance(v, Tagged):
            assert v.tag == 6
            v = v.value
        return self.ref(v) if isinstance(v, int) else v

    def value(self, v):
        if isinstance(v, Tagged):
            return self.ref(v.value) if v.tag == 6 else {"tag": v.tag, "value": self.value(v.value)}
        if isinstance(v, Pairs):
            return {"map": self.pairs(v)}
        if isinstance(v, bytes):
            return v.hex()
        return [self.value(x) for x in v] if isinstance(v, list) else v

    def pairs(self, v):
        return [{"key": self.value(k), "value": self.value(x)} for k, x in v]

    def method(self, number):
        parts = self.methods.get(number)
        return {"method": number} | (dict(zip(("class", "name", "signature"), map(self.ref, parts))) if parts else {})

    def exception(self, v):
        names = ("class", "method", "file")
        out = {"id": v[0], "class": self.string(v[1]), "message": self.string(v[2]), "cause": self.value(v[3]),
               "stack": [{**{n: self.string(x) for n, x in zip(names, f)}, "line": f[3]} for f in v[4]]}
        return out | ({"attributes": self.value(v[5])} if len(v) > 5 else {})

    def begin(self, v):
        return dict(zip(("clock_ms", "type", "span", "parent"), [v[0], self.string(v[1])] + v[2:]))

    def record(self, tag, items, depth):
        """Everything in a record and those below it."""
        out = []
        order = {10: "big", 6: "big", 11: "little", 7: "little"}.get(tag)
        if self.dialect == "zico-2":
            start, number, items = items[0], items[1], items[2:]
            out.append({"event": "enter", "depth": depth, "ns": start, **self.method(number)})
        else:
            first, items = items[0], items[1:]
            if self.dialect == "zico-1.90":
                order, first = {10: "big", 11: "little"}[first.tag], first.value
            word = int.from_bytes(first, order)
            start, number = word & (1 << 40) - 1, word >> 40
            out.append({"event": "enter", "depth": depth, "tick": start, "order": order, **self.method(number)})
        for i, item in enumerate(items):
            out += self.part(item, depth, start, order, i == len(items) - 1)
        assert out[-1]["event"] == "leave" and out[-1]["depth"] == depth
        return out

    def part(self, item, depth, start, order, is_last):
        head = {"depth": depth}
        tag, v = item.tag, item.value
        new = self.dialect == "zico-2"
        records = {"zico-1.90": (8,), "zico-2": (3,), "document": (6, 7, 10, 11)}[self.dialect]
        if tag in records and isinstance(v, list):
            return self.record(tag, v, depth + 1)
        if new and tag == 4:
            assert is_last
            return [{"event": "leave", **head, "ns": v[0], "duration_ns": v[0] - start, "calls": v[1]} |
                    ({"flags": v[2]} if len(v) > 2 else {})]
        if not new and tag in (12, 13):
            assert is_last
            if self.dialect == "zico-1.90":
                order = "big" if tag == 12 else "little"
            word = int.from_bytes(v[:8], order)
            stop, calls = word & (1 << 40) - 1, int.from_bytes(v[8:], order) if len(v) == 16 else word >> 40
            return [{"event": "leave", **head, "tick": stop, "duration_ns": (stop - start) * TICK_NS, "calls": calls}]
        if new and tag == 6:
            keys = ("type", "key") if len(v) == 3 else ("key",)
            return [{"event": "attribute", **head, **{k: self.string(x) for k, x in zip(keys, v)}, "value": self.value(v[-1])}]
        read = {5: ("begin", self.begin), 7: ("exception", self.exception), 8: ("exception-seen", lambda x: {"id": x})} if new else {
            33: ("begin", self.begin), 9: ("attributes", lambda x: {"attributes": self.pairs(x)}),
            38: ("upward", lambda x: {"type": self.string(x[0]), "attributes": self.pairs(x[1])}),
            34: ("exception", self.exception), 35: ("exception-seen", lambda x: {"id": x}),
            15: ("flags", lambda x: {"mask": x}), 37: ("flag", lambda x: {"token": x})}
        name, reader = read[tag]
        return [{"event": name, **head, **reader(v)}]

    def top(self, item):
        tag, v = item.tag, item.value
        out = {"format": "zico", "offset": item.start}
        if tag in (1, 13):
            self.dialect = "document" if tag == 13 else "zico-1.90" if len(v) == 3 else "zico-2"
            self.strings[v[0]] = v[1]
            return out | {"kind": "string", "dialect": self.dialect, "id": v[0], "text": v[1]} | (
                {"type": TYPES.get(v[2], v[2])} if len(v) > 2 else {})
        if tag in (2, 14):
            self.dialect = "document" if tag == 14 else "zico-2" if self.dialect == "zico-2" else "zico-1.90"
            self.methods[v[0]] = v[1:]
            parts = dict(zip(("class", "name", "signature"), map(self.ref, v[1:])))
            return out | {"kind": "method", "dialect": self.dialect, "id": v[0]} | parts
        if tag == 15 or (tag == 3 and not isinstance(v, Open)):
            self.dialect = "document" if tag == 15 else "zico-1.90"
            return out | {"kind": "attribute", "dialect": self.dialect, "key": self.string(v[0]), "value": self.value(v[1])}
        self.dialect = {8: "zico-1.90", 3: "zico-2"}.get(tag, "document")
        return out | {"kind": "trace", "dialect": self.dialect, "events": self.record(tag, v, 0)}


def read(data):
    reader, zico = Reader(data), Zico()
    while reader.at < len(data):
        yield zico.top(reader.item())


def load(path):
    with open(path, "rb") as f:
        data = f.read()
    return bytes.fromhex(data.decode()) if path.endswith(".hex") else data


if __name__ == "__main__":
    for record in read(load(sys.argv[1])):
        print(json.dumps(record))
