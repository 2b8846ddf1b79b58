# SPDX-License-Identifier: Apache-2.0
"""Judges the profiles of tests/e2e/test_profile_symbolize.sh. profile_symbolize.py PB2 DIR"""
import gzip
import re
import sys
from collections import Counter

sys.path.insert(0, sys.argv[1])
import profile_pb2  # noqa: E402 pylint: disable=wrong-import-position

WORK = ("work_large", "work_middle", "work_small")
PLACE = re.compile(r"\+0x[0-9a-f]+\]$")


class Taken:
    """A profile: sums by type and labels, and the stacks of a process."""
    def __init__(self, name):
        p = profile_pb2.Profile()
        with gzip.open(f"{sys.argv[2]}/{name}.pb.gz") as f:
            p.ParseFromString(f.read())
        self.text = text = p.string_table
        self.types = [text[t.type] for t in p.sample_type]
        self.functions = {f.id: f for f in p.function}
        self.mapping = {m.id: m for m in p.mapping}
        self.location = {x.id: x for x in p.location}
        self.comments = [text[c] for c in p.comment]
        self.facts = (self.types, p.time_nanos, p.duration_nanos, p.period, sorted(self.comments))
        self.sums, self.stacks, self.energy = Counter(), {}, 0
        for s in p.sample:
            label = tuple(sorted((text[x.key], text[x.str] or x.num) for x in s.label))
            for kind, value in zip(self.types, s.value, strict=True):
                self.sums[label, kind] += value
            self.energy += s.value[self.types.index("energy")]
            process = dict(label).get("process", "")
            names = [self.name(line) for i in s.location_id for line in self.location[i].line]
            self.stacks.setdefault(process, Counter())[tuple(reversed(names))] += s.value[0]

    def name(self, line):
        return self.text[self.functions[line.function_id].name]

    def names(self):
        return {self.name(line) for x in self.location.values() for line in x.line}

    def usual(self, process):
        """Its stacks of user space that have at least a twentieth of its samples, each."""
        user = Counter()
        for stack, n in self.stacks[process].items():
            if not any(name.endswith(" [k]") or name.startswith("[kernel") for name in stack):
                user[stack] += n
        total = sum(user.values())
        assert total >= 40, f"{process}: {total} samples"
        return {stack for stack, n in user.items() if 20 * n >= total}


def exact():
    assert bare.facts == later.facts, (bare.facts, later.facts)
    assert bare.sums == later.sums, "sums by label and type differ"
    assert bare.energy == later.energy > 0
    with open(f"{sys.argv[2]}/later.folded", encoding="utf-8") as f:
        assert sum(int(line.rsplit(" ", 1)[1]) for line in f) == later.energy, "folded stacks have another sum"


def nameless():
    """Of the profile without names: every name is a place, and says what its mapping says."""
    assert all(n.startswith("[") for n in bare.names()), sorted(bare.names())
    assert any(c.startswith("boot ") for c in bare.comments), bare.comments
    for x in bare.location.values():
        if not x.mapping_id:
            continue
        m = bare.mapping[x.mapping_id]
        path = bare.text[m.filename]
        assert m.memory_start <= x.address < m.memory_limit and not m.has_functions
        if path.startswith("/"):
            base = path.rsplit("/", 1)[1]
            assert bare.name(x.line[0]) == f"[{base}+0x{x.address - m.memory_start + m.file_offset:x}]", bare.name(x.line[0])
        if "/run/s-" in path and "noid" not in path:
            assert len(bare.text[m.build_id]) == 40, path


def placeless(stacks):
    """Stacks without the addresses of places; libc has no symbols everywhere."""
    return {tuple(PLACE.sub("]", name) for name in stack) for stack in stacks}


def found(process):
    def check():
        usual, at_once = placeless(later.usual(process)), placeless(named.usual(process))
        # of two runs: what has a twentieth of one may have less of the other
        assert usual <= placeless(named.stacks[process]), f"{sorted(usual)}, at once {sorted(named.stacks[process])}"
        assert at_once <= placeless(later.stacks[process]), f"at once {sorted(at_once)}, later {sorted(later.stacks[process])}"
        assert any("main" in stack for stack in usual) and not any("[truncated]" in stack for stack in usual), usual
        files = {later.text[later.functions[line.function_id].filename].rsplit("/", 1)[-1] for x in later.location.values()
                 if x.mapping_id and later.text[later.mapping[x.mapping_id].filename].endswith(process) for line in x.line}
        assert ("profile_inlined.c" if "inlined" in process else "profile_load.c") in files, files
        assert all(later.mapping[x.mapping_id].has_functions for x in later.location.values()
                   if x.mapping_id and later.text[later.mapping[x.mapping_id].filename].endswith(process))
    return check


def not_found(process):
    def check():
        usual = later.usual(process)
        assert not any(name in stack for stack in usual for name in (*WORK, "main", "innermost")), usual
        assert all(any(name.startswith(f"[{process}+0x") for name in stack) for stack in usual), usual
    return check


def kernel():
    assert any(n.endswith(" [k]") for n in later.names()), sorted(n for n in later.names() if "kernel" in n)[:3]
    assert not any(n.startswith("[kernel+") for n in later.names()), "a place of the kernel has no name"


bare, later, named = Taken("bare"), Taken("later"), Taken("named")
checks = {"exact": exact, "nameless": nameless, "kernel": kernel}
checks |= {name: found(f"s-{name}") for name in ("plain", "apart", "inlined")}
checks |= {name: not_found(f"s-{name}") for name in ("wrong", "other", "gone", "noid")}
for title, judge in checks.items():
    try:
        judge()
        print(f"ok profile-symbolize-{title}")
    except AssertionError as e:
        print(f"FAIL profile-symbolize-{title}: {e}"[:600])
