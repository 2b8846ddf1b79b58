#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges what joulectl profile wrote about profile_load.c. profile.py folded|svg|table FILE"""
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
                assert frames[1:at] in (["load", "main", "all_work"], ["load", "[truncated]"],
                                        ["load", "main"], ["load", "[truncated]", "all_work"]), labels
                # no function of the program stands on another worker
                assert not any(other in frames[at + 1:] for other in ORDER), labels
    whole = sum(v for k, v in stacks.items() if ";load;main;all_work;work_" in k)
    assert whole > total / 2, f"{whole} of {total} uJ below main and all_work"
    assert own["work_large"] > own["work_middle"] > own["work_small"] > 0, own


def svg(text):
    root = tree.fromstring(text)
    titles = [e.text or "" for e in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any(t.startswith("all: ") and " J " in t for t in titles), "no total"
    assert any(t.startswith("[bare]: ") for t in titles), "no frame of the stripped program"
    assert any("[truncated]" in t for t in titles), "stacks without names are not marked"
    assert not any("work_" in t for t in titles), "names that the file does not have"
    assert "<script" not in text and "http://" not in text.replace("http://www.w3.org/2000/svg", ""), "not alone"


def table(text):
    rows = [line.split() for line in text.splitlines() if " % " in line]
    names = [r[-1] for r in rows if r[-1] in ORDER]
    assert names == ORDER, f"order {names}"
    values = [float(r[0]) for r in rows if r[-1] in ORDER]
    assert values == sorted(values, reverse=True) and values[-1] > 0, values


{"folded": folded, "svg": svg, "table": table}[sys.argv[1]](open(sys.argv[2], encoding="utf-8").read())
