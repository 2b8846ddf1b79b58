# SPDX-License-Identifier: Apache-2.0
"""The program of tests/zico/feed.c between a test and a collector. Arguments of whoever imports it: FEED WORK."""
import json
import os
import random
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "zico"))
import collector  # noqa: E402
import trees  # noqa: E402
from zico_wait import PATIENCE, Failed, until  # noqa: E402

FEED, WORK = os.path.abspath(sys.argv[1]), sys.argv[2]


class Feed:
    """A feeding program that can be killed and started again on its state. spooled: uuids that it said are on disk."""
    def __init__(self, name, url, options="", env=None):
        self.state, self.url, self.spooled = os.path.join(WORK, name), url + options, []
        self.env = {**os.environ, **(env or {})}
        os.makedirs(self.state, exist_ok=True)
        self.log = open(os.path.join(WORK, name + ".err"), "a+b")  # pylint: disable=consider-using-with
        self.start()

    def start(self):
        self.p = subprocess.Popen([FEED, "--state-dir", self.state, "-o", "zico=" + self.url], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=self.log, env=self.env)
        self.reader = threading.Thread(target=self.read, args=(self.p.stdout,), daemon=True)
        self.reader.start()

    def read(self, lines):
        for line in lines:
            word, _, uuid = line.decode().strip().partition(" ")
            if word == "spooled" and len(uuid) == 32:
                self.spooled.append(uuid)

    def send(self, *some):
        for t in some:
            self.p.stdin.write(json.dumps(t.line()).encode() + b"\n")
        self.p.stdin.flush()

    def wait_spooled(self, some):
        until(lambda: all(t.uuid.hex in self.spooled for t in some), lambda: f"{len(self.spooled)} spooled; {self.said()}")

    def kill(self):
        self.p.kill()
        self.p.wait()
        self.reader.join()
        self.p.stdout.close()
        try:
            self.p.stdin.close()
        except OSError:
            pass

    def end(self, seconds=PATIENCE):
        """As told; it may not take longer than a request."""
        self.p.stdin.close()
        try:
            status = self.p.wait(seconds)
        except subprocess.TimeoutExpired as e:
            self.p.kill()
            raise Failed("it does not end") from e
        if status:
            raise Failed(f"exit status {status}: {self.said()}")

    def said(self):
        self.log.flush()
        with open(self.log.name, encoding="utf-8", errors="replace") as f:
            return f.read()[-1200:].replace("\n", "|")


def key(uuid):
    return str(uuid).replace("-", "")


def arrived(c):
    return {key(u) for u in c.traces}


def all_there(c, some, f):
    want = {t.uuid.hex for t in some}
    until(lambda: want <= arrived(c), lambda: f"{len(want - arrived(c))} of {len(want)} traces are missing; {f.said()}; "
          f"refused {c.state.refusals[-3:]}")
    if arrived(c) != want:
        raise Failed(f"traces that nobody sent: {sorted(arrived(c) - want)[:3]}")


def content(c, some, profile, refusals=0):
    by_uuid = {key(u): e for u, e in c.traces.items()}
    for t in some:
        wrong = trees.Check(t, profile).run(by_uuid[t.uuid.hex]["tree"])
        if wrong:
            raise Failed(f"{len(wrong)} differences: {'; '.join(wrong[:4])}")
    if len(c.state.refusals) > refusals or c.state.complaints:
        raise Failed(f"refused {c.state.refusals[:3]}, complaints {c.state.complaints[:3]}")


def make(seed, count, most=40):
    rng = random.Random(seed)
    return [trees.Tree(rng, rng.randrange(1, most)) for _ in range(count)]


def url(c):
    return f"http://127.0.0.1:{c.port}"


def deliver(name, profile, options, some, faults=()):
    c = collector.Collector(profile).start()
    c.fault(*faults)
    f = Feed(name, url(c), options)
    try:
        f.send(*some)
        all_there(c, some, f)
        f.end()
    finally:
        f.kill()
        c.stop()
    return c
