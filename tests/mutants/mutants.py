#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks the code on purpose, one place at a time, and asks whether a test sees it.

mutants.py [--list|--check] [NAME...]: the mutants of tests/mutants/mutants.txt (default: all) in a copy of this
checkout. A mutant is killed when a guard fails; it survives when all its guards pass. A survivor that the
table does not argue is a failure, and so is an argued one that is killed, and a text that is not found.
The last line is "N passed, N failed, N skipped". --check breaks nothing: it looks for the texts and the guards.

The table: blocks of "key: value" lines with an empty line between them.
  mutant: its name            file: what is changed
  - old text                  + new text   (the old text stands exactly once in the file; where it has spaces and new lines does not matter)
  guards: test programs below build/, or shell tests below tests/
  lives: why no test can see it (only where it is so)
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests/mutants/mutants.txt"
LIMIT_S = int(os.environ.get("MUTANT_TIMEOUT", "600"))


def read_table():
    mutants = []
    for block in TABLE.read_text().split("\n\n"):
        m = {"old": [], "new": [], "guards": []}
        for line in block.splitlines():
            if line.startswith("#") or not line.strip():
                continue
            if line.startswith("- "):
                m["old"].append(line[2:])
            elif line.startswith("+"):
                m["new"].append(line[2:])
            else:
                key, _, value = line.partition(": ")
                if key not in ("mutant", "file", "guards", "lives"):
                    sys.exit(f"{TABLE.name}: no such key: {line}")
                m[key] = value.split() if key == "guards" else value
        if "mutant" in m:
            mutants.append(m)
    return mutants


def place(text, m):
    """Where the old text is, or None where it is not there once."""
    tokens = re.findall(r"\w+|\S", " ".join(m["old"]))
    found = list(re.finditer(r"\s*".join(map(re.escape, tokens)), text)) if tokens else []
    return found[0] if len(found) == 1 else None


def change(path, m):
    """Returns what the file was, or None where the place is not found once."""
    text = path.read_text()
    at = place(text, m)
    if at is None:
        return None
    path.write_text(text[:at.start()] + "\n".join(m["new"]).lstrip() + text[at.end():])
    return text


def check(mutants):
    """Prints a line for each mutant without a place or a guard. Exit status."""
    lines = TABLE.read_text().splitlines()
    bad = []
    for m in mutants:
        where = f"{TABLE.relative_to(ROOT)}:{lines.index('mutant: ' + m['mutant']) + 1}: mutant: {m['mutant']}"
        path = ROOT / m["file"]
        if not path.exists() or place(path.read_text(), m) is None:
            bad.append(f"{where}: its old text does not stand exactly once in {m['file']}; write it as it is there now")
        for g in m["guards"]:
            if not (ROOT / "tests" / (g if g.endswith((".sh", ".py")) else g + ".c")).exists():
                bad.append(f"{where}: there is no guard {g}; name a test that is there")
    print("".join(f"{line}\n" for line in bad), end="")
    return 1 if bad else 0


def limited(command, tree, log):
    """Exit status; 124 after the limit. Everything that the command started ends with it."""
    p = subprocess.Popen(command, cwd=tree, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                         start_new_session=True)
    try:
        return p.wait(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()
        return 124


def guard(tree, name, log):
    """0 = it passes, else it fails; None = it does not build."""
    if name.endswith((".sh", ".py")):
        targets = ["build/jouled", "build/joulectl"]
        run = ["sh" if name.endswith(".sh") else "python3", f"tests/{name}"]
    else:
        targets = [f"build/{name}"]
        run = [f"build/{name}"]
    if limited(["make", "-s", f"-j{os.cpu_count()}", "WERROR=", *targets], tree, log):
        return None
    if name.startswith("kernel"):
        run = ["sh", "tests/guard.sh", f"tests/{name}.c", *run]
    return limited(run, tree, log)


def try_one(tree, m, log):
    """'killed by GUARD', 'lives', or what is wrong."""
    path = tree / m["file"]
    before = change(path, m) if path.exists() else None
    if before is None:
        return "the old text does not stand exactly once in the file"
    try:
        for name in m["guards"]:
            rc = guard(tree, name, log)
            if rc is None:
                return "does not build"
            if rc:
                return f"killed by {name}"
        return "lives"
    finally:
        path.write_text(before)


def judge(m, outcome):
    if outcome.startswith("killed"):
        return "lives" not in m
    return outcome == "lives" and "lives" in m


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("names", nargs="*", metavar="NAME")
    args.add_argument("--list", action="store_true")
    args.add_argument("--check", action="store_true")
    args = args.parse_args()
    mutants = read_table()
    unknown = set(args.names) - {m["mutant"] for m in mutants}
    if unknown:
        sys.exit(f"mutants: not in the table: {' '.join(sorted(unknown))}")
    mutants = [m for m in mutants if not args.names or m["mutant"] in args.names]
    if args.list:
        for m in mutants:
            print(m["mutant"], m["file"], *m["guards"])
        return 0
    if args.check:
        return check(mutants)
    passed = failed = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the copy is removed on the way out
    tree = pathlib.Path(tempfile.mkdtemp(prefix="jouled-mutants-"))
    try:
        subprocess.run(f"git ls-files -z -co --exclude-standard | xargs -0 cp -a --parents -t {tree}", shell=True, cwd=ROOT, check=True)
        if (ROOT / "build").exists():
            shutil.copytree(ROOT / "build", tree / "build", symlinks=True, ignore=shutil.ignore_patterns("test-logs"))
        (ROOT / "build").mkdir(exist_ok=True)
        with open(ROOT / "build" / "mutants.log", "wb") as log:
            for m in mutants:
                log.write(f"== {m['mutant']}\n".encode())
                log.flush()
                outcome = try_one(tree, m, log)
                good = judge(m, outcome)
                passed, failed = passed + good, failed + (not good)
                print("ok  " if good else "FAIL", f"{m['mutant']}: {outcome}",
                      f"({m['lives']})" if outcome == "lives" and good else "", flush=True)
    finally:
        shutil.rmtree(tree)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
