#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does simple_formula of vJoule v0.2 survive this stream, and is the energy in its files? check_vjoule_formula.py [--swipe N] FILE

Plays what that program does with names and files, as far as it can end it or lose energy:
* a report whose package energy is not above 0 is to it a report without any cgroup;
* a name that holds "machine-qemu" is shortened: what is before that, and what is between the last "\\x2d" and the last ".scope";
* for a new name it makes the directories of the shortened path below its own and five files in the last one;
* a name that is not in a report ages by one; past N (5 unless configured) the files and the directory of its shortened name are
  removed, in the order of the shortened names, and what is remembered under that very name is forgotten.
It ends when a directory is wanted where a file is or the reverse, when a name is too long for the file system, and when a
directory that it removes is not empty. Energy is lost where two cgroups write one file, or one writes into a file that was removed."""
import argparse
import posixpath
import sys

import read_vjoule

FILES = ("package", "memory", "pp0", "pp1", "psys")
OWN = "/etc/vjoule/simple_formula"       # its directory is not empty: two files of its own are in it
COMPONENT_MAX, PATH_MAX = 255, 4095


class Ended(Exception):
    pass


class Lost(Exception):
    pass


def shortened(name):
    at = name.find("machine-qemu")
    if at < 0:
        return name
    start, end = name.rfind("\\x2d") + 4, name.rfind(".scope")
    return name[:at] + (name[start:end] if end >= start else name[start:])


class Formula:
    def __init__(self, swipe):
        self.swipe = swipe
        self.dirs = {"/"}
        self.files = {"/formula.signal": None, "/config.toml": None}   # path -> the name that writes it
        self.known = {}                  # name -> joules
        self.age = {}                    # shortened name -> reports
        self.given_j = 0.0

    def make_directories(self, path):
        if len(OWN + path) + len("/package") > PATH_MAX:
            raise Ended(f"{path[:60]}...: File name too long")
        at = "/"
        for part in [p for p in path.split("/") if p]:
            if part == "..":
                raise Ended(f"{path}: leaves its directory")
            if len(part) > COMPONENT_MAX:
                raise Ended(f"{path[:60]}...: File name too long")
            at = posixpath.normpath(posixpath.join(at, part))
            if at in self.files:
                raise Ended(f"{path}: {at} is a file: Not a directory")
            self.dirs.add(at)
        return at

    def open(self, name):
        top = self.make_directories(shortened(name))
        for file in FILES:
            path = posixpath.join(top, file)
            if path in self.dirs:
                raise Ended(f"{name}: {path} is a directory")
            if self.files.get(path) in self.known:
                raise Lost(f"{name} and {self.files[path]} write one file, {path}")
            self.files[path] = name
        self.known[name] = 0.0

    def remove(self, short):
        top = posixpath.normpath(short)
        for file in FILES:
            self.files.pop(posixpath.join(top, file), None)
        inside = top if top.endswith("/") else top + "/"
        left = next((p for p in sorted(self.dirs | set(self.files)) if p != top and p.startswith(inside)), None)
        if left:
            raise Ended(f"{short}: cannot remove: Directory not empty: {left}")
        self.dirs.discard(top)
        self.known.pop(short, None)

    def write(self, name, energy_j):
        if not energy_j:
            return
        self.given_j += energy_j
        path = posixpath.join(posixpath.normpath(shortened(name)), "package")
        if self.files.get(path) != name:
            raise Lost(f"{name} writes into a file that was removed")
        self.known[name] += energy_j

    def take(self, energies):
        """The cgroups of one report: names, or their package energies by name."""
        if not isinstance(energies, dict):
            energies = dict.fromkeys(energies, 0.0)
        for name in sorted(energies):
            if name not in self.known:
                self.open(name)
            self.write(name, energies[name])
        for name in sorted(self.known):
            if name in energies:
                self.age.pop(shortened(name), None)
            else:
                self.age.setdefault(shortened(name), 0)
        for short in sorted(self.age):
            if self.age[short] > self.swipe:
                self.remove(short)
                del self.age[short]
            else:
                self.age[short] += 1


def divided(header, report):
    """Package energy by name, as the formula divides it: nothing at all without package energy."""
    cycles = next((i for i, name in header["metrics"].items() if name == b"PERF_COUNT_HW_CPU_CYCLES"), None)
    energy_j = report["energy"]["pkg"]
    if energy_j <= 0:
        return {}
    total = sum(c.get(cycles, 0) for c in report["cgroups"].values())
    return {name.decode("latin-1"): energy_j * c.get(cycles, 0) / total if total else 0.0 for name, c in report["cgroups"].items()}


def main():
    a = argparse.ArgumentParser()
    a.add_argument("file")
    a.add_argument("--swipe", type=int, default=5)
    a = a.parse_args()
    formula, n, went, silent = Formula(a.swipe), 0, 0, 0
    with open(a.file, "rb") as f:
        try:
            stream = read_vjoule.Stream(f.read, "v0.2", check=True)
            for report in stream:
                before = len(formula.known)
                formula.take(divided(stream.header, report))
                went += len(formula.known) < before
                silent += report["energy"]["pkg"] <= 0
                n += 1
        except (Ended, Lost, read_vjoule.Malformed) as e:
            print(f"report {n}: {e}", file=sys.stderr)
            return 1
    print(f"{n} reports, {len(formula.known)} cgroups, directories removed {went} times, {formula.given_j:.3f} J divided, "
          f"{silent} without package energy")
    return 0 if n else 1


if __name__ == "__main__":
    sys.exit(main())
