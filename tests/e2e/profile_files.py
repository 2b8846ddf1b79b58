# SPDX-License-Identifier: Apache-2.0
"""Judges the profile of tests/e2e/test_profile_files.sh. Prints a line for each process. profile_files.py PB2 FILE"""
import gzip
import sys
from collections import Counter, defaultdict

sys.path.insert(0, sys.argv[1])
import profile_pb2  # noqa: E402 pylint: disable=wrong-import-position

p = profile_pb2.Profile()
with gzip.open(sys.argv[2]) as f:
    p.ParseFromString(f.read())
text = p.string_table
functions = {f.id: f for f in p.function}
locations = {x.id: x for x in p.location}
hot = next(i for i, line in enumerate(open("tests/e2e/profile_inlined.c", encoding="utf-8"), 1) if "the hot line" in line)
WORKERS = ("work_large", "work_middle", "work_small")
stacks = defaultdict(Counter)
lines = defaultdict(Counter)  # of the innermost function that is the program's
for s in p.sample:
    if not s.value[0]:
        continue
    process = {text[x.key]: text[x.str] for x in s.label}["process"]
    names = [text[functions[line.function_id].name] for i in s.location_id for line in locations[i].line]
    user = [n for n in names if not n.endswith(" [k]")]
    if len(user) < 3:   # the kernel's own, and what loads a program
        continue
    stacks[process][tuple(reversed(user))] += s.value[0]
    line = next(line for i in s.location_id for line in locations[i].line if text[functions[line.function_id].name] == user[0])
    lines[process, user[0]][(text[functions[line.function_id].filename].rsplit("/", 1)[-1], line.line)] += s.value[0]


def share(process, words):
    """Of the process's samples, those whose stack has the words one after the other."""
    found = sum(n for stack, n in stacks[process].items()
                if any(stack[i:i + len(words)] == tuple(words) for i in range(len(stack))) and "[truncated]" not in stack)
    total = sum(stacks[process].values())
    assert total >= 40, f"{total} samples"
    return found / total


def called(process, *words):
    assert share(process, words) > 0.9, f"{100 * share(process, words):.0f} % below {' '.join(words)}: {stacks[process].most_common(2)}"


def order(process):
    called(process, "main", "all_work")
    own = [share(process, ["all_work", name]) for name in WORKERS]
    assert own[0] > own[1] > own[2] > 0, own


def inlined(process):
    called(process, "main", "outermost", "between", "innermost")
    at = lines[process, "innermost"].most_common(1)[0][0]
    assert at[0] == "profile_inlined.c" and abs(at[1] - hot) <= 1, at


def apart(process):
    order(process)
    for worker in WORKERS:
        assert {name for name, _ in lines[process, worker]} == {"profile_load.c"}, lines[process, worker]


def nameless(process):
    """A file of another build id lies where its symbols should be."""
    order(process)
    assert not any(name == "profile_inlined.c" for of in WORKERS for name, _ in lines[process, of]), lines


def jit(process):
    called(process, "main", "jit_loop")


for name, check in {"k-deleted": order, "k-mounted": order, "k-staticpie": order, "k-musl": order, "k-packed": order, "k-apart": apart,
                    "k-liar": nameless, "k-inlined": inlined, "k-dwz": inlined, "k-debugframe": order, "k-jit": jit}.items():
    try:
        check(name)
        print(f"ok profile-files-{name[2:]}")
    except AssertionError as e:
        print(f"FAIL profile-files-{name[2:]}: {e}"[:400])
