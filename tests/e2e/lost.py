#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A replay to sockets: its reader comes when the program says that it waits, or reads slowly, or is the one that listens;
it gets what goes into a file. lost.py JOULED WORK, with recordings WORK/rec.cbor and
WORK/long.cbor, and what they give as power reports: WORK/replay.json, WORK/long.json."""
import socket
import subprocess
import sys
import time

JOULED, WORK = sys.argv[1:]
PATIENCE = 60


def replay(*outputs, recording="rec.cbor"):
    return subprocess.Popen([JOULED, "--state-dir", WORK + "/state", "--replay", f"{WORK}/{recording}",
                             *[a for o in outputs for a in ("-o", o)]], stderr=subprocess.PIPE, text=True)


def wait_for_line(p, text):
    for line in p.stderr:
        if text in line:
            return
    sys.exit(f"it did not say {text!r}")


def read_all(s, slowly=False):
    got = b""
    s.settimeout(PATIENCE)
    while piece := s.recv(4096 if slowly else 65536):
        got += piece
        if slowly:
            time.sleep(0.0005)
    return got


def end(p, what):
    err = p.stderr.read()
    if p.wait(PATIENCE) != 0:
        sys.exit(f"{what}: exit status {p.returncode}: {err[-300:]}")


def connect(path):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    return s




with open(f"{WORK}/replay.json", "rb") as f:
    want = f.read()
path = f"{WORK}/late.sock"

# said that it waits, then comes; beside a file, which does not wait for long
p = replay(f"power=unix-listen://{path}?time=iso", f"power=file://{WORK}/beside.json")
wait_for_line(p, "waits up to 60 s for its reader")
got = read_all(connect(path))
end(p, "late client")
if got != want:
    sys.exit(f"a late client got {len(got)} of {len(want)} bytes")
with open(f"{WORK}/beside.json", "rb") as f:
    if f.read() != want:
        sys.exit("the file beside it has other reports")
print("# late client: all of it")

# slower than the program makes reports: it does not end before all is taken
with open(f"{WORK}/long.json", "rb") as f:
    long = f.read()
p = replay(f"power=unix-listen://{path}?time=iso", recording="long.cbor")
wait_for_line(p, "waits up to")
got = read_all(connect(path), True)
end(p, "slow client")
if got != long:
    sys.exit(f"a slow client got {len(got)} of {len(long)} bytes")
print(f"# slow client: all of {len(got)} bytes")

# the receiver listens later than the program starts
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
p = replay(f"power=tcp://127.0.0.1:{listener.getsockname()[1]}?time=iso")
wait_for_line(p, "waits up to")
listener.listen(1)
got = read_all(listener.accept()[0])
end(p, "late receiver")
if got != want:
    sys.exit(f"a late receiver got {len(got)} of {len(want)} bytes")
print("# late receiver: all of it")
