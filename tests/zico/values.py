# SPDX-License-Identifier: Apache-2.0
"""Attribute values and exceptions, which the tagged families (up to 1.90.6, and the document) share."""
from rules import NEST_MAX, TEXT, Refused, check_text

CONSTANTS = {20: False, 21: True, 22: None, 23: None}


def string_ref(r, d, what, kind=None):
    """Tag 6 in its one-byte form, then a bare id."""
    r.expect(b"\xc6", what)
    return d.string(r.uint(what), what, kind)


def value(r, d, profile, complain, what, depth=0):
    if depth > NEST_MAX:
        raise Refused(f"{what}: nested deeper than {NEST_MAX}")
    second = profile.family == "F3"
    if r.peek() == b"\xc6" and not second:
        text = string_ref(r, d, what)
        check_text(text, what, complain)
        return text
    major, info, n = r.head(what)
    if major == 3:
        text = r.text_of(major, n, what)
        check_text(text, what, complain)
        return text
    if major in (0, 1):
        if not second:
            complain(f"{what}: an integer is shown as null")
        return n if major == 0 else -1 - n
    if major == 7 and info in CONSTANTS and profile.constants:
        complain(f"{what}: a constant is shown as null")
        return CONSTANTS[info]
    if major in (4, 5) and n is not None:
        return nested(r, d, profile, complain, (what, depth + 1, major, n))
    raise Refused(f"{what}: a value of type {major}/{info}")


def nested(r, d, profile, complain, place):
    what, depth, major, n = place
    if major == 4:
        return [value(r, d, profile, complain, what, depth) for _ in range(n)]
    return dict((key(r, d, what, complain), value(r, d, profile, complain, what, depth)) for _ in range(n))


def key(r, d, what, complain):
    """A reference by habit, or plain text; search knows keys of type 0 only."""
    text = string_ref(r, d, what, TEXT) if r.peek() == b"\xc6" else r.text(what)
    check_text(text, what, complain)
    return text


def attributes(r, d, profile, complain, what="attributes"):
    major, _, n = r.head(what)
    if major != 5 or n is None:
        raise Refused(f"{what}: expected a map of definite length")
    got = {}
    for _ in range(n):
        k = key(r, d, what, complain)
        got[k] = value(r, d, profile, complain, f"attribute {k}")
    return got


def stack(r, d):
    major, _, n = r.head("stack")
    if major != 4 or n is None:
        raise Refused("stack: expected an array of definite length")
    frames = []
    for _ in range(n):
        r.array((4,), "stack element")
        names = [d.string(r.uint("stack element"), "stack element") for _ in range(3)]
        frames.append([*names, r.uint("stack line")])
    return frames


def message(r, what="message"):
    if r.peek() == b"\xf6":
        r.take(1, what)
        return None
    return r.text(what)


def remember(seen, i, profile):
    if i >= 2**32:
        raise Refused(f"exception id {i} is over 32 bits")
    seen.add(i)
    if profile.exceptions and len(seen) > profile.exceptions:
        raise Refused(f"more than {profile.exceptions} exceptions in one trace")


def cause(r, seen):
    c = r.uint("cause")
    if c and c not in seen:
        raise Refused(f"cause {c} was not sent before")
    return c


def exception(r, d, profile, seen, bare):
    """[id, class, message, cause, stack]; bare: the class without a tag, and perhaps attributes (zico-2)."""
    n = r.array((5, 6) if bare else (5,), "exception")
    e = {"id": r.uint("exception id")}
    e["class"] = d.string(r.uint("exception class"), "exception") if bare else string_ref(r, d, "exception class")
    e["message"], e["cause"], e["stack"] = message(r), cause(r, seen), stack(r, d)
    if n == 6:
        e["attrs"] = attributes(r, d, profile, d.complain, "exception attributes")
    remember(seen, e["id"], profile)
    return e


def reference(r, seen):
    i = r.uint("exception reference")
    if i not in seen:
        raise Refused(f"exception {i} was not sent before")
    return {"ref": i}
