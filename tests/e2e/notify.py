#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""notify.py SOCKET SECONDS COMMAND...: runs the command with NOTIFY_SOCKET and prints what it is sent."""
import os
import socket
import subprocess
import sys

s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(0.2)
p = subprocess.Popen(sys.argv[3:], env={**os.environ, "NOTIFY_SOCKET": sys.argv[1]}, stdout=subprocess.DEVNULL)
turns = int(sys.argv[2]) * 5
while turns and p.poll() is None:
    turns -= 1
    try:
        print(s.recv(4096).decode(errors="replace"), flush=True)
    except TimeoutError:
        pass
p.kill()
p.wait()
try:
    while True:     # what came before the end
        print(s.recv(4096).decode(errors="replace"), flush=True)
except TimeoutError:
    pass
