#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges what joulectl profile wrote about profile_load.c. profile.py folded|svg|table|speedscope FILE"""
import json
import sys
import xml.etree.ElementTree as tree

ORDER = ["work_large", "work_middle", "work_small"]


def folded(text):
    stacks = {}
    for line in text.splitlines():
        labels, value = line.rsplit(" ", 1)
        assert labels not in stacks, f"two lines of {labels}"
        stacks[labels] = int(value)
    total = sum(stacks.values())
    assert total > 0, "no energy"
    roots = {labels.split(";")[0] for labels in stacks}
    assert len(roots) == 1 and roots.pop().startswith("/"), f"not one cgroup: {roots}"
    own = dict.fromkeys(ORDER, 0)
    for labels, value in stacks.items():
        frames = labels.split(";")
        for name in ORDER:
            if name in frames:
                own[name] += value
                at = frames.index(name)
                # before main are the program's start and, without a name, a function of the C library
                before = [f for f in frames[1:at] if not f.startswith(("_start", "__libc_start", "[libc"))]
                assert before in (["load", "main", "all_work"], ["load", "[truncated]"],
                                  ["load", "main"], ["load", "[truncated]", "all_work"]), labels
                # no function of the program stands on another worker
                assert not any(other in frames[at + 1:] for other in ORDER), labels
    whole = sum(v for k, v in stacks.items() if ";main;all_work;work_" in k and "[truncated]" not in k)
    assert whole > total / 2, f"{whole} of {total} uJ below main and all_work"
    assert own["work_large"] > own["work_middle"] > own["work_small"] > 0, own


def svg(text):
    root = tree.fromstring(text)
    titles = [e.text or "" for e in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any(t.startswith("all: ") and " J " in t for t in titles), "no total"
    assert any(t.startswith("[bare]: ") for t in titles), "no frame of the stripped program"
    assert any("[truncated]" in t for t in titles), "stacks without names are not marked"
    assert not any("work_" in t for t in titles), "names that the file does not have"


def table(text):
    rows = [line.split() for line in text.splitlines() if " % " in line]
    names = [r[-1] for r in rows if r[-1] in ORDER]
    assert names == ORDER, f"order {names}"
    values = [float(r[0]) for r in rows if r[-1] in ORDER]
    assert values == sorted(values, reverse=True) and values[-1] > 0, values


def speedscope(text):
    """The rules of speedscope's file-format-spec.ts for a sampled profile."""
    doc = json.loads(text)
    assert doc["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = [f["name"] for f in doc["shared"]["frames"]]
    assert frames and len(set(frames)) == len(frames) and all(isinstance(f, str) and f for f in frames), frames
    assert len(doc["profiles"]) > 1 and doc["profiles"][doc["activeProfileIndex"]]["name"] == "energy, microjoules"
    for p in doc["profiles"]:
        assert (p["type"], p["unit"]) == ("sampled", "none") and p["name"].endswith(", microjoules"), p["name"]
        assert len(p["samples"]) == len(p["weights"]) and all(w > 0 for w in p["weights"])
        assert p["startValue"] == 0 and p["endValue"] == sum(p["weights"])
        assert all(0 <= i < len(frames) for s in p["samples"] for i in s)
    energy = doc["profiles"][0]
    own = dict.fromkeys(ORDER, 0)
    for sample, weight in zip(energy["samples"], energy["weights"]):
        stack = [frames[i] for i in sample]
        assert stack[0].startswith("/") and (stack[1] == "[no sample]") == (len(stack) == 2), stack
        for name in ORDER:
            own[name] += weight if name in stack else 0
    assert own["work_large"] > own["work_middle"] > own["work_small"] > 0, own
    assert sum(own.values()) > energy["endValue"] / 2, own


{"folded": folded, "svg": svg, "table": table, "speedscope": speedscope}[sys.argv[1]](open(sys.argv[2], encoding="utf-8").read())
