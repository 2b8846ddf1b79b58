# SPDX-License-Identifier: Apache-2.0
"""Traces: a body holds one complete record, which holds those below it. Records are kept on a stack: calls nest as deep
as their program did."""
import values
from rules import TEXT, Reader, Refused, check_clock, check_text, check_tree

TICK_NS = 65536
LIST_MAX_S = 65536


class Trace:
    """One body being read. The two families of records below differ in how they begin, end and carry attributes."""
    def __init__(self, data, d, profile):
        self.r, self.d, self.profile = Reader(data), d, profile
        self.complaints, self.seen, self.open, self.top = [], set(), [], None

    def complain(self, text):
        if text not in self.complaints:
            self.complaints.append(text)

    def enter(self, method, start, order=None):
        cls, name, signature = self.d.method(method)
        node = {"class": cls, "method": name, "signature": signature, "start": start, "order": order, "attrs": {},
                "children": [], "upward": [], "exception": None, "begin": None, "error": False}
        if self.open:
            self.open[-1]["children"].append(node)
        elif self.top:
            raise Refused("two records at the top of one body: only one of them is shown")
        self.top = self.top or node
        self.open.append(node)

    def leave(self, stop, calls):
        node = self.open.pop()
        node["stop"], node["calls"] = stop, calls
        self.r.expect(b"\xff", "end of record")
        check_tree(node, self.complain)

    def begin(self, clock, type_id, **more):
        check_clock(clock)
        kind = self.d.string(type_id, "trace type", TEXT)
        check_text(kind, "trace type", self.complain)
        if len(kind) > 64:
            raise Refused(f"trace type of {len(kind)} characters")
        if self.open[-1]["begin"]:
            self.complain("a record begins a trace twice")
        self.open[-1]["begin"] = {"clock": clock, "type": kind, **more}

    def add(self, key, value):
        if key in self.open[-1]["attrs"]:
            self.complain(f"attribute {key} twice in one record")
        self.open[-1]["attrs"][key] = value

    def throw(self, e):
        if self.open[-1]["exception"]:
            self.complain("a record has two exceptions")
        self.open[-1]["exception"] = e

    def tell(self, kind, attrs):
        """Upward; the top keeps the order in which they came, for the last one wins."""
        if not any(n["begin"] and kind in (None, n["begin"]["type"]) for n in self.open):
            self.complain(f"an upward attribute to a trace {kind!r} that is not open")
        self.open[-1]["upward"].append([kind, attrs])
        self.top.setdefault("told", []).append([kind, attrs])

    def read(self):
        while not self.r.at_end:
            self.item()
        if self.open or not self.top:
            raise Refused("the body ends within a record")
        if not self.top["begin"]:
            self.complain("no trace begin at the top: invisible")
        if self.top["stop"] <= self.top["start"]:
            self.complain("the top record takes no time")
        if self.top["stop"] - self.top["start"] >= LIST_MAX_S * 10**9:
            self.complain(f"longer than {LIST_MAX_S} s, which is what a list holds")
        return self.top


class Tagged(Trace):
    """Up to 1.90.6. The word of prolog and epilog: 40 bits of ticks, 24 of method or calls."""
    UPWARD = False

    def word(self, order, what):
        self.r.expect(b"\x48", what)
        return int.from_bytes(self.r.take(8, what), order)

    def start(self, order):
        w = self.word(order, "prolog")
        self.enter(w >> 40, (w & (1 << 40) - 1) * TICK_NS, order)

    def stop(self, order):
        long = self.r.peek() == b"\x50"
        if not long:
            w = self.word(order, "epilog")
            return self.leave((w & (1 << 40) - 1) * TICK_NS, w >> 40)
        self.r.take(1, "epilog")
        w, calls = (int.from_bytes(self.r.take(8, "epilog"), order) for _ in range(2))
        if w >> 40:
            self.complain("a long epilog with a short count")
        return self.leave((w & (1 << 40) - 1) * TICK_NS, calls)

    def record(self, tag):
        if tag != 8:
            raise Refused(f"tag {tag:#x} where a record must begin")
        self.r.expect(b"\x9f", "record")
        tag, _ = self.r.tag("prolog")
        if tag not in (0x0a, 0x0b):
            raise Refused(f"tag {tag:#x} where a prolog must be")
        self.start("big" if tag == 0x0a else "little")

    def epilog(self, tag):
        """Is it one?"""
        if tag not in (0x0c, 0x0d):
            return False
        self.stop("big" if tag == 0x0c else "little")
        return True

    def flag(self, tag):
        v = self.r.uint("flag")
        if tag == 0x25 and v not in (1, 2):
            raise Refused(f"flag token {v}")
        self.open[-1]["error"] = v == 1 if tag == 0x25 else bool(v & 8)

    def inside(self, tag):
        """Of the items in a record those that it may have in any order. False: none of them."""
        if tag == 9:
            for k, v in values.attributes(self.r, self.d, self.profile, self.complain).items():
                self.add(k, v)
        elif tag == 0x21:
            self.r.array((2,), "trace begin")
            self.begin(self.r.uint("clock", wide=True), self.r.uint("trace type"))
            if len(self.open) > 1:
                self.complain("a trace begin below the top takes the time of its parent")
        elif tag == 0x22:
            self.throw(values.exception(self.r, self.d, self.profile, self.seen, bare=False))
        elif tag == 0x23:
            self.throw(values.reference(self.r, self.seen))
        elif tag == self.profile.flags:
            self.flag(tag)
        elif tag == 0x26 and self.UPWARD:
            self.upward()
        else:
            return False
        return True

    def upward(self):
        raise NotImplementedError

    def item(self):
        if self.open and self.r.peek() == b"\xff":
            raise Refused("a record without epilog")
        start = self.r.pos
        tag, _ = self.r.tag("trace")
        if not self.open:
            self.record(tag)
        elif not self.epilog(tag) and not self.inside(tag):
            self.record(tag)
        if self.r.pos == start:
            raise Refused("no progress")


class Document(Tagged):
    """The protocol document read literally: byte order by the tag of the array, bare prolog, one tag of epilogs."""
    UPWARD = True

    def record(self, tag):
        if tag not in (0x0a, 0x0b):
            raise Refused(f"tag {tag:#x} where a record must begin")
        self.r.expect(b"\x9f", "record")
        self.start("big" if tag == 0x0a else "little")

    def epilog(self, tag):
        if tag != 0x0d:
            return False
        self.stop(self.open[-1]["order"])
        return True

    def upward(self):
        self.r.array((2,), "upward attribute")
        i = self.r.uint("upward attribute")
        kind = self.d.string(i, "upward attribute") if i else None
        attrs = values.attributes(self.r, self.d, self.profile, self.complain)
        self.tell(kind, attrs)


class Second(Trace):
    """1.90.7 and later: nanoseconds, ids bare, one byte of tag. The list shows what all records of a trace said, by key
    the last one; and an error where a flag tells."""
    def __init__(self, *args):
        super().__init__(*args)
        self.shown = {}

    def add(self, key, value):
        super().add(key, value)
        self.shown[key] = value

    def read(self):
        top = super().read()
        for key, value in top["attrs"].items():
            if self.shown[key] != value:
                self.complain(f"attribute {key} of the top is shown as {self.shown[key]!r}, which a record below it said")
        return top

    def leave(self, stop, calls):
        if bool(self.open[-1]["exception"]) != self.open[-1]["error"]:
            self.complain("an exception without the flag of an error, or the other way round")
        super().leave(stop, calls)

    def tag(self):
        tag, width = self.r.tag("trace")
        if width != 1:
            raise Refused(f"a tag of {width} bytes")
        return tag

    def item(self):
        if self.open and self.r.peek() == b"\xff":
            raise Refused("a record without epilog")
        tag = self.tag()
        if not self.open and tag != 3:
            raise Refused(f"tag {tag} where a record must begin")
        handlers = {3: self.record, 4: self.epilog, 5: self.started, 6: self.attribute,
                    7: lambda: self.throw(values.exception(self.r, self.d, self.profile, self.seen, bare=True)),
                    8: lambda: self.throw(values.reference(self.r, self.seen))}
        if tag not in handlers:
            raise Refused(f"tag {tag} in a record")
        handlers[tag]()

    def record(self):
        self.r.expect(b"\x9f", "record")
        start = self.r.uint("start", wide=True)
        self.enter(self.r.uint("method"), start)

    def epilog(self):
        n = self.r.array((2, 3), "epilog")
        stop, calls = self.r.uint("stop", wide=True), self.r.uint("calls", wide=True)
        if n == 3:
            self.open[-1]["error"] = bool(self.r.uint("flags") & 8)
        self.leave(stop, calls)

    def started(self):
        n = self.r.array((2, 3, 4), "trace begin")
        clock, kind = self.r.uint("clock", wide=True), self.r.uint("trace type")
        span = self.r.uint("span id", wide=True) if n > 2 else 0
        if not span:
            self.complain("a trace begin without span id")
        self.begin(clock, kind, span=span, parent=self.r.uint("parent id", wide=True) if n > 3 else 0)

    def attribute(self):
        n = self.r.array((2, 3), "attribute")
        i = self.r.uint("attribute") if n == 3 else 0
        kind = self.d.string(i, "upward attribute") if i else None
        key = self.d.string(self.r.uint("attribute"), "attribute")
        check_text(key, "attribute", self.complain)
        v = values.value(self.r, self.d, self.profile, self.complain, f"attribute {key}")
        if n == 2:
            return self.add(key, v)
        return self.tell(kind, {key: v})


CLASSES = {"F1": Tagged, "F2": Tagged, "F3": Second, "document": Document}


def take(data, d, profile):
    """The tree of the body, and what is to be complained of."""
    t = CLASSES[profile.family](data, d, profile)
    before = len(d.complaints)
    tree = t.read()
    return tree, t.complaints + d.complaints[before:]
