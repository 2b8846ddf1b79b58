# SPDX-License-Identifier: Apache-2.0
"""Agent data: definitions of strings and methods, attributes of the agent."""
from rules import Reader, Refused

TAGS = {"F1": (1, 2, 3), "F2": (1, 2, 3), "F3": (1, 2, None), "document": (0x0d, 0x0e, 0x0f)}


def read_string(r, d, profile):
    typed = profile.family != "F3"
    r.array((3,) if typed else (2,), "string definition")
    i, text = r.uint("string id"), r.text("string")
    kind = r.uint("string type") if typed else None
    d.define_string(i, " " if profile.family == "F2" and not text else text, kind)


def read_method(r, d):
    r.array((4,), "method definition")
    i = r.uint("method id")
    d.define_method(i, [r.uint("method definition") for _ in range(3)])


def read_attribute(r, d):
    r.array((2,), "agent attribute")
    key = r.text("agent attribute")
    d.attributes[key] = r.text("agent attribute")


def take(data, d, profile):
    """Into d. What stands before a bad item stays in effect."""
    r = Reader(data)
    string, method, attribute = TAGS[profile.family]
    while not r.at_end:
        start = r.pos
        tag, width = r.tag("agent data")
        if profile.family == "F3" and width != 1:
            raise Refused(f"agent data: a tag of {width} bytes at {start}")
        if tag == string:
            read_string(r, d, profile)
        elif tag == method:
            read_method(r, d)
        elif attribute is not None and tag == attribute:
            read_attribute(r, d)
        else:
            raise Refused(f"agent data: tag {tag:#x} at {start}")
