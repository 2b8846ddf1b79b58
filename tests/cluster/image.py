#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""image.py NAME:TAG ROOT [ENTRYPOINT...] > FILE.tar: a root directory as an image that every runtime imports, made
without a registry, a builder or a base. Layout: the image specification of "docker save" (manifest.json)."""
import hashlib
import io
import json
import platform
import sys
import tarfile

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def owned_by_root(member):
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def layer(root):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.add(root, arcname=".", filter=owned_by_root)
    return out.getvalue()


def config(data, entrypoint):
    return json.dumps({
        "architecture": ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": {"Entrypoint": entrypoint, "Env": ["PATH=/usr/sbin:/usr/bin:/bin"]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(data).hexdigest()]},
        "history": [{"created_by": "image.py"}],
    }).encode()


def main():
    name, root, entrypoint = sys.argv[1], sys.argv[2], sys.argv[3:]
    data = layer(root)
    about = config(data, entrypoint)
    about_name = hashlib.sha256(about).hexdigest() + ".json"
    manifest = json.dumps([{"Config": about_name, "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as tar:
        for path, content in ((about_name, about), ("layer.tar", data), ("manifest.json", manifest)):
            member = tarfile.TarInfo(path)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


main()
