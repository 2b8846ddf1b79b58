# SPDX-License-Identifier: Apache-2.0
"""What every collector of ZICO asks of bytes, as observed at real ones. Two degrees: Refused is what a real collector
answers with an error, or what would break it for everybody (`poison`); a complaint is what it takes and then shows
wrongly or not at all, so that an agent should never send it."""
import re

DESCRIPTOR = re.compile(r"\((\[*([BCDFIJSZ]|L[^;\[.]+;))*\)(V|\[*([BCDFIJSZ]|L[^;\[.]+;))\Z")
# How methods are taken apart to be shown; "." is no end of a line there, as many kinds as there are.
PRETTY = re.compile(r"([^\n\r\x85\u2028\u2029]*)\s+([^\n\r\x85\u2028\u2029]*)\.([^\n\r\x85\u2028\u2029]+)\.([^(]+)"
                    r"(\([^\n\r\x85\u2028\u2029]*\))\Z")
CLOCK_MIN, CLOCK_MAX = 10**12, 2**32 * 1000     # ms: 2001, and seconds that fit 32 bits
TEXT, KEYWORD, CLASS, METHOD, UUID, SIGNATURE = 0, 4, 5, 6, 7, 8
TYPES = (TEXT, KEYWORD, CLASS, METHOD, UUID, SIGNATURE)
NEST_MAX = 32


class Profile:
    """How one release differs from the others. flags: tag of the error flag that it takes; constants: true, false and
    null as values; exceptions: most of a trace; rereg: a host that registers again unchanged gets 500."""
    def __init__(self, name, family, flags=None, constants=True, exceptions=None, rereg=False):
        self.name, self.family, self.flags, self.constants, self.exceptions = name, family, flags, constants, exceptions
        self.rereg = rereg


PROFILES = {p.name: p for p in (
    Profile("zico-1.90.3", "F1", flags=0x25, constants=False, exceptions=128),
    Profile("zico-1.90", "F1", flags=0x0f, exceptions=128, rereg=True),
    Profile("zico-1.90.6", "F2", flags=0x0f, rereg=True),
    Profile("zico-2", "F3"),
    Profile("document", "document"),
)}


class Refused(Exception):
    """poison: a real collector takes it and is broken by it."""
    def __init__(self, reason, poison=False):
        super().__init__(reason)
        self.poison = poison


class Dictionary:
    """What a session was told."""
    def __init__(self):
        self.strings, self.methods, self.attributes, self.complaints = {}, {}, {}, []

    def complain(self, text):
        if text not in self.complaints:
            self.complaints.append(text)

    @staticmethod
    def dense(table, i, what):
        if i > max(table, default=0) + 1:
            raise Refused(f"{what} id {i} after {max(table, default=0)}: ids index arrays and have no gaps", poison=True)

    def define_string(self, i, text, kind):
        if kind is not None and kind not in TYPES:
            raise Refused(f"string {i} of type {kind}")
        self.dense(self.strings, i, "string")
        if not text:
            self.complain(f"string {i} is empty")
        self.strings[i] = (text, kind)

    def define_method(self, i, ids):
        if i >= 2**24:
            raise Refused(f"method id {i} is over 24 bits")
        self.dense(self.methods, i, "method")
        texts = [self.string(s, f"method {i}") for s in ids]
        for s, kind in zip(ids, (CLASS, METHOD, SIGNATURE)):
            if self.strings[s][1] not in (None, kind):
                self.complain(f"method {i}: string {s} is of type {self.strings[s][1]}, not {kind}")
        if not DESCRIPTOR.match(texts[2]):
            raise Refused(f"method {i}: signature {texts[2]!r} is no JVM descriptor", poison=True)
        if not PRETTY.match(f"void {texts[0]}.{texts[1]}()"):
            self.complain(f"method {i}: class {texts[0]!r} has no dot, or an end of a line: shown without its method")
        self.methods[i] = tuple(texts)

    def string(self, i, where, kind=None):
        if i not in self.strings:
            raise Refused(f"{where}: string {i} is not defined")
        text, is_kind = self.strings[i]
        if kind is not None and is_kind not in (None, kind):
            self.complain(f"{where}: string {i} is of type {is_kind}, not {kind}")
        return text

    def method(self, i):
        if i not in self.methods:
            raise Refused(f"method {i} is not defined")
        return self.methods[i]


class Reader:
    """The items of a body one head at a time: lengths and widths of heads are part of the rules."""
    def __init__(self, data):
        self.data, self.pos = bytes(data), 0

    @property
    def at_end(self):
        return self.pos == len(self.data)

    def take(self, n, what):
        if n > len(self.data) - self.pos:
            raise Refused(f"{what}: the body ends within it")
        part = self.data[self.pos:self.pos + n]
        self.pos += n
        return part

    def peek(self, n=1):
        return self.data[self.pos:self.pos + n]

    def head(self, what):
        """major, additional information, value; value None: indefinite, or break."""
        first = self.take(1, what)[0]
        major, info = first >> 5, first & 31
        if info < 24:
            return major, info, info
        if info < 28:
            return major, info, int.from_bytes(self.take(1 << (info - 24), what), "big")
        if info == 31 and major in (2, 3, 4, 5, 7):
            return major, info, None
        raise Refused(f"{what}: byte {first:02x} begins no item")

    def tag(self, what):
        start = self.pos
        major, _, value = self.head(what)
        if major != 6:
            raise Refused(f"{what}: an item of type {major} without a tag at {start}")
        return value, self.pos - start

    def uint(self, what, wide=False):
        """An id unless wide: one of nine bytes is refused."""
        major, info, value = self.head(what)
        if major != 0:
            raise Refused(f"{what}: expected an unsigned integer, not type {major}")
        if info == 27 and not wide:
            raise Refused(f"{what}: an integer of nine bytes")
        return value

    def text(self, what):
        major, _, n = self.head(what)
        return self.text_of(major, n, what)

    def text_of(self, major, n, what):
        if major != 3 or n is None:
            raise Refused(f"{what}: expected a text of definite length")
        try:
            return self.take(n, what).decode("utf-8")
        except UnicodeDecodeError as e:
            raise Refused(f"{what}: {e}") from e

    def array(self, sizes, what):
        """Definite, its size in the head byte."""
        first = self.take(1, what)[0]
        if first - 0x80 not in sizes:
            raise Refused(f"{what}: expected an array of {sizes}, not {first:02x}")
        return first - 0x80

    def expect(self, wanted, what):
        got = self.take(len(wanted), what)
        if got != wanted:
            raise Refused(f"{what}: {got.hex()} where {wanted.hex()} must be")


def check_clock(clock):
    if not CLOCK_MIN <= clock < CLOCK_MAX:
        raise Refused(f"clock {clock} is not in milliseconds", poison=True)


def check_text(text, what, complain):
    if not text:
        complain(f"{what}: an empty text is shown as #!REF[0]")
    if any(ord(c) < 0x10 for c in text):
        complain(f"{what}: control characters are markers of the store")


def check_tree(node, complain):
    """Of a finished record: what would be shown wrongly."""
    if node["stop"] < node["start"]:
        complain("a record ends before it starts")
    if node["calls"] < 1 + sum(c["calls"] for c in node["children"]):
        complain(f"a record counts {node['calls']} calls, those below it more")
