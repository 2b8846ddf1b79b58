#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README's podman line, the Compose file and the Quadlet say the same: rights, namespaces, mounts, command. Prints
what differs; exit status 1 when anything does."""
import configparser
import shlex
import sys

import yaml

NAMESPACES = ("pid", "cgroup", "uts")


def of_readme(path):
    line = next(text for text in open(path) if text.startswith("podman run ") and "--privileged" in text)
    words = shlex.split(line)[2:]
    mounts = {words[i + 1] for i, word in enumerate(words) if word == "-v"}
    image = words.index("jouled", words.index("--name") + 2)
    flags = {word for word in words[:image] if word.startswith("--") and word != "--name"}
    return flags, mounts, words[image + 1:], "jouled"


def of_compose(path):
    service = yaml.safe_load(open(path))["services"]["jouled"]
    flags = {"--privileged"} if service["privileged"] else set()
    flags |= {f"--{'cgroupns' if name == 'cgroup' else name}={service.get(name)}" for name in NAMESPACES}
    return flags, set(service["volumes"]), service["command"], service["image"]


def of_quadlet(path):
    class Repeated(dict):
        def __setitem__(self, key, value):
            if key in self and isinstance(value, list):
                self[key].extend(value)
            else:
                super().__setitem__(key, value)

    parser = configparser.RawConfigParser(dict_type=Repeated, strict=False, delimiters=("=",))
    parser.optionxform = str
    parser.read(path)
    section = dict(parser["Container"])
    flags = set(section["PodmanArgs"].split())
    return flags, set(section["Volume"].split("\n")), shlex.split(section["Exec"]), section["Image"].split("/")[-1].split(":")[0]


readme = of_readme("README.md")
wrong = 0
for name, other in (("compose.yaml", of_compose("deploy/compose/compose.yaml")), ("jouled.container", of_quadlet("deploy/quadlet/jouled.container"))):
    # -d is podman's own; mounts beyond README's keep state and name groups
    for what, ours, theirs in (("flags", readme[0], other[0]), ("mounts", readme[1], other[1] & readme[1]),
                               ("command", readme[2], other[2]), ("image", readme[3], other[3])):
        if ours - {"-d"} != theirs if isinstance(ours, set) else ours != theirs:
            print(f"{name}: {what}: {theirs}, README has {ours}")
            wrong = 1
sys.exit(wrong)
