#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does simple_formula of vJoule v0.2 survive this stream? check_vjoule_formula.py [--swipe N] FILE

Plays what that program does with files, as far as it can end it: for a new name it makes the directories of the path
below its own and five files in the last one; a name that is not in a report ages by one; past N (5 unless configured)
its files and its directory are removed, in the order of the names. It ends when a directory is wanted where a file is or
the reverse, and when a directory that it removes is not empty."""
import argparse
import posixpath
import sys

import read_vjoule

FILES = ("package", "memory", "pp0", "pp1", "psys")


class Ended(Exception):
    pass


class Formula:
    def __init__(self, swipe):
        self.swipe = swipe
        self.dirs = {"/"}
        self.files = {"/formula.signal", "/config.toml"}
        self.known = set()
        self.age = {}

    def make_directories(self, path):
        at = "/"
        for part in [p for p in path.split("/") if p]:
            at = posixpath.join(at, part)
            if at in self.files:
                raise Ended(f"{path}: {at} is a file")
            self.dirs.add(at)
        return at

    def open(self, name):
        top = self.make_directories(name)
        for file in FILES:
            path = posixpath.join(top, file)
            if path in self.dirs:
                raise Ended(f"{name}: {path} is a directory")
            self.files.add(path)

    def remove(self, name):
        top = self.make_directories(name)
        self.files -= {posixpath.join(top, file) for file in FILES}
        inside = top if top.endswith("/") else top + "/"
        left = next((p for p in self.dirs | self.files if p != top and p.startswith(inside)), None)
        if left:
            raise Ended(f"{name} is to be removed and holds {left}")
        self.dirs.discard(top)

    def take(self, names):
        for name in sorted(names):
            if name not in self.known:
                self.open(name)
                self.known.add(name)
        for name in self.known:
            if name in names:
                self.age.pop(name, None)
            else:
                self.age.setdefault(name, 0)
        for name in sorted(self.age):
            if self.age[name] > self.swipe:
                self.remove(name)
                self.known.discard(name)
                del self.age[name]
            else:
                self.age[name] += 1


def main():
    a = argparse.ArgumentParser()
    a.add_argument("file")
    a.add_argument("--swipe", type=int, default=5)
    a = a.parse_args()
    formula, n, went = Formula(a.swipe), 0, 0
    with open(a.file, "rb") as f:
        try:
            for report in read_vjoule.Stream(f.read, "v0.2", check=True):
                before = len(formula.known)
                formula.take({name.decode("latin-1") for name in report["cgroups"]})
                went += len(formula.known) < before
                n += 1
        except (Ended, read_vjoule.Malformed) as e:
            print(f"report {n}: {e}", file=sys.stderr)
            return 1
    print(f"{n} reports, {len(formula.known)} cgroups, directories removed {went} times")
    return 0 if n else 1


if __name__ == "__main__":
    sys.exit(main())
