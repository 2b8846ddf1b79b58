#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""200 clients of one vjoule output at once. vjoule_load.py PORT SECONDS READY RESULT
80 read all, 50 never read, 50 read one byte a second, 20 come and go at random. Writes
READY when all are connected; after SECONDS, and when those that never read were closed, the reports that each reading client got go to RESULT as lines of digests,
one line a client, for `vjoule_load.py check RESULT FILE`: is each of them a run of FILE's reports without a gap?"""
import hashlib
import random
import selectors
import socket
import struct
import sys
import time

READERS, MUTE, SLOW, RESTLESS = 80, 50, 50, 20


class Client:
    """A connection that is read as it comes; records are digested when whole."""

    def __init__(self, port, rcvbuf=0):
        self.sock = socket.socket()
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.connect(("127.0.0.1", port))
        self.sock.setblocking(False)
        self.rest = b""
        self.records = []
        self.ended = False

    def read(self, limit=1 << 20):
        try:
            data = self.sock.recv(limit)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.ended = True
            return
        self.rest += data
        while len(self.rest) >= 4:
            n = struct.unpack_from("<i", self.rest)[0]
            if len(self.rest) < 4 + n:
                break
            self.records.append(hashlib.sha256(self.rest[4:4 + n]).hexdigest()[:16])
            self.rest = self.rest[4 + n:]


def run(port, seconds, ready, result):
    rng = random.Random(4)
    readers = [Client(port) for _ in range(READERS)]
    mute = [Client(port, 4096) for _ in range(MUTE)]
    slow = [Client(port, 4096) for _ in range(SLOW)]
    restless = [Client(port) for _ in range(RESTLESS)]
    sel = selectors.DefaultSelector()
    for c in readers:
        sel.register(c.sock, selectors.EVENT_READ, c)
    with open(ready, "w", encoding="ascii") as f:
        f.write("ready\n")
    end, second = time.monotonic() + seconds, time.monotonic() + 1
    # until the mute have been closed, which takes as long as the agent takes to send them too much
    ports = {c.sock.getsockname()[1] for c in mute}
    while time.monotonic() < end or (ports & established(port) and time.monotonic() < end + 600):
        for key, _ in sel.select(0.1):
            key.data.read()
            if key.data.ended:
                sel.unregister(key.data.sock)
        for i, c in enumerate(restless):
            if rng.random() < 0.05:
                c.read(rng.choice((1, 100, 1 << 20)))
            if c.ended or rng.random() < 0.02:
                c.sock.close()
                restless[i] = Client(port)
        if time.monotonic() >= second:
            second += 1
            for c in slow:
                if not c.ended:
                    c.read(1)
    with open(result, "w", encoding="ascii") as f:
        for c in readers:
            print("ended" if c.ended else "open", *c.records[1:], file=f)
    print(sum(was_closed(c) for c in slow), "of", SLOW, "slow clients and", sum(was_closed(c) for c in mute), "of", MUTE,
          "that never read were closed")


def established(port):
    """Ports of the clients that the server at this port has not closed: of one that does not read the end does not arrive."""
    with open("/proc/net/tcp", encoding="ascii") as f:
        fields = [line.split() for line in f][1:]
    return {int(f[2].split(":")[1], 16) for f in fields if int(f[1].split(":")[1], 16) == port and f[3] == "01"}


def was_closed(client):
    """By the other side? What had come before is read up first."""
    had = -1
    while not client.ended and had != (had := len(client.rest) + len(client.records)):
        client.read()
    return client.ended


def check(result, stream):
    with open(stream, "rb") as f:
        data, sent, at = f.read(), [], 0
    while at + 4 <= len(data):
        n = struct.unpack_from("<i", data, at)[0]
        sent.append(hashlib.sha256(data[at + 4:at + 4 + n]).hexdigest()[:16])
        at += 4 + n
    place = {d: i for i, d in enumerate(sent)}
    first, last = [], []
    with open(result, encoding="ascii") as f:
        for line in f:
            state, *got = line.split()
            if state != "open" or not got or got[0] not in place:
                sys.exit(f"vjoule_load: a reading client was closed or got nothing ({state}, {len(got)} reports)")
            start = place[got[0]]
            if sent[start:start + len(got)] != got:
                sys.exit(f"vjoule_load: {len(got)} reports from number {start} on are not those that were made")
            first.append(start)
            last.append(start + len(got))
    if len(first) != READERS or max(last) - min(last) > 1:
        sys.exit(f"vjoule_load: {len(first)} clients, the last report is number {min(last)} to {max(last)}")
    print(f"{len(first)} clients got reports {max(first)} to {min(last)}, all of them in order")


if __name__ == "__main__":
    if sys.argv[1] == "check":
        check(sys.argv[2], sys.argv[3])
    else:
        run(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4])
