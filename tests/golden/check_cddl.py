#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_cddl.py SCHEMA.cddl RECORDING: does the recording hold what the schema says? Knows the part of
CDDL (RFC 8610) that docs/formats/snapshot.cddl uses: rules, maps, arrays, choices, ranges, literals,
tags, and how often. First item against the rule `header`, all others against `snapshot`."""
import re
import sys

from read_snapshot import Reader

TOKEN = re.compile(r'\s*(#6\.\d+|"[^"]*"|\d+\.\.\d+|\d*\*\d*|-?\d+|[A-Za-z_][\w-]*|=>|[=?{}\[\]():,/])')
TYPES = {
    "uint": lambda v: type(v) is int and 0 <= v < 2**64, "int": lambda v: type(v) is int and -2**63 <= v < 2**64,
    "tstr": lambda v: isinstance(v, str), "bstr": lambda v: isinstance(v, bytes), "bool": lambda v: isinstance(v, bool),
    "float64": lambda v: isinstance(v, float), "any": lambda v: True,
}


def tokens(text):
    text, at, out = re.sub(r";[^\n]*", "", text).rstrip(), 0, []
    while at < len(text):
        found = TOKEN.match(text, at)
        if not found:
            raise SystemExit("schema: cannot read %r" % text[at:at + 40])
        at = found.end()
        out.append(found[1])
    return out


class Schema:
    def __init__(self, text):
        self.t, self.at, self.rules = tokens(text), 0, {}
        while self.at < len(self.t):
            name = self.next()
            self.next("=")
            self.rules[name] = self.choice()

    def peek(self, ahead=0):
        return self.t[self.at + ahead] if self.at + ahead < len(self.t) else ""

    def next(self, want=None):
        got = self.peek()
        if want and got != want:
            raise SystemExit("schema: expected %r, found %r" % (want, got))
        self.at += 1
        return got

    def choice(self):
        types = [self.type()]
        while self.peek() == "/":
            self.next()
            types.append(self.type())
        return ("choice", types) if len(types) > 1 else types[0]

    def type(self):
        t = self.next()
        if t in "{[":
            return ("map" if t == "{" else "array", self.group("}" if t == "{" else "]"))
        if t.startswith("#6."):
            self.next("(")
            inner = self.choice()
            self.next(")")
            return ("tag", int(t[3:]), inner)
        if t[0] == '"':
            return ("literal", t[1:-1])
        if ".." in t:
            return ("range",) + tuple(int(n) for n in t.split(".."))
        return ("literal", int(t)) if t.isdigit() else ("name", t)

    def group(self, end):
        """Entries: (least, most, key type or None, value type)."""
        entries = []
        while self.peek() != end:
            least, most, key = 1, 1, None
            if self.peek() == "?":
                self.next()
                least = 0
            elif "*" in self.peek():
                low, high = self.next().split("*")
                least, most = int(low or 0), int(high) if high else 2**64
            if self.peek(1) == ":":
                key = ("literal", self.next())
                self.next()
            value = self.choice()
            if self.peek() == "=>":
                self.next()
                key, value = value, self.choice()
            entries.append((least, most, key, value))
            if self.peek() == ",":
                self.next()
        self.next(end)
        return entries

    def check(self, v, t, where):
        """None, or what is wrong."""
        kind = t[0]
        if kind == "name":
            if t[1] in TYPES:
                return None if TYPES[t[1]](v) else "%s: %r is no %s" % (where, v, t[1])
            return self.check(v, self.rules[t[1]], where)
        if kind == "literal":
            return None if type(v) is type(t[1]) and v == t[1] else "%s: %r is not %r" % (where, v, t[1])
        if kind == "range":
            return None if type(v) is int and t[1] <= v <= t[2] else "%s: %r is not in %d..%d" % (where, v, t[1], t[2])
        if kind == "choice":
            wrong = [self.check(v, c, where) for c in t[1]]
            return None if None in wrong else wrong[0]
        if kind == "tag":
            return self.check(v[1], t[2], where) if isinstance(v, tuple) and v[0] == t[1] else "%s: no tag %d" % (where, t[1])
        return self.check_map(v, t[1], where) if kind == "map" else self.check_array(v, t[1], where)

    def check_map(self, v, entries, where):
        if not isinstance(v, dict):
            return "%s: no map" % where
        left = dict(v)
        for least, _, key, value in entries:
            if key[0] != "literal":
                continue
            if key[1] not in left:
                if least:
                    return "%s: no %r" % (where, key[1])
                continue
            wrong = self.check(left.pop(key[1]), value, "%s.%s" % (where, key[1]))
            if wrong:
                return wrong
        for name, value in left.items():
            if all(self.check(name, e[2], "") or self.check(value, e[3], "") for e in entries if e[2][0] != "literal"):
                return "%s: unknown key %r" % (where, name)
        return None

    def check_array(self, v, entries, where):
        if not isinstance(v, list):
            return "%s: no array" % where
        at, wrong = 0, None
        for least, most, _, value in entries:
            n = 0
            while n < most and at < len(v):
                wrong = self.check(v[at], value, "%s[%d]" % (where, at))
                if wrong and n < least:
                    return wrong
                if wrong:
                    break
                n, at = n + 1, at + 1
            if n < least:
                return "%s: %d elements are too few" % (where, len(v))
        return None if at == len(v) else wrong or "%s[%d]: one too many" % (where, at)


def check(schema_text, data):
    """None, or the first thing that is wrong."""
    schema, reader, n = Schema(schema_text), Reader(data), 0
    while reader.at < len(data):
        item = reader.item()
        rule = "header" if isinstance(item, tuple) else "snapshot"
        if n == 0 and rule != "header":
            return "item 0: no header"
        wrong = schema.check(item, ("name", rule), "item %d" % n)
        if wrong:
            return wrong
        n += 1
    return None if n else "empty"


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as s, open(sys.argv[2], "rb") as r:
        sys.exit(check(s.read(), r.read()))
