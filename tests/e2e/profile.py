#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges what joulectl profile wrote about profile_load.c. profile.py folded|svg|table|speedscope|firefox FILE"""
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


def firefox(text):
    """What tests/golden/check_firefox.py cannot know: the functions, and that samples and counters say the same energy."""
    doc = json.loads(text)
    strings = doc["shared"]["stringArray"]
    own, energy = dict.fromkeys(ORDER, 0), 0
    for t in doc["threads"]:
        stacks, names = t["stackTable"], [strings[t["funcTable"]["name"][f]] for f in t["frameTable"]["func"]]
        for leaf, weight in zip(t["samples"]["stack"], t["samples"]["weight"]):
            stack = []
            while leaf is not None:
                stack.insert(0, names[stacks["frame"][leaf]])
                leaf = stacks["prefix"][leaf]
            assert stack[0].startswith("/") and (stack[1] == "[no sample]") == (len(stack) == 2), stack
            assert len(stack) == 2 or stack[1] == t["name"], (stack, t["name"])
            energy += weight
            for name in ORDER:
                own[name] += weight if name in stack else 0
    assert own["work_large"] > own["work_middle"] > own["work_small"] > 0, own
    summed = [e["value"] for e in doc["meta"]["extra"][0]["entries"] if e["label"] == "Energy of samples"][0].split(" + ")
    counters = {c["name"]: c["samples"] for c in doc["counters"]}
    parts = [sum(counters[name]["count"]) for name in summed]
    # a counter is rounded down to a whole picowatt-hour, 0.0036 microjoules, at its end
    assert energy > 0 and 0 <= energy * 2500 - sum(parts) * 9 < 9 * len(parts), (energy, parts)
    end = doc["meta"]["profilingEndTime"]
    for c in counters.values():
        assert c["time"][0] == c["count"][0] == 0 and c["time"][-1] == end and len(c["time"]) > 2, c


{"folded": folded, "svg": svg, "table": table, "speedscope": speedscope, "firefox": firefox}[sys.argv[1]](open(sys.argv[2], encoding="utf-8").read())
