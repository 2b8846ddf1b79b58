#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of metrics, seen from its two doors and by Prometheus.

metrics.py same SOCKET PORT          every figure of one interval is the same on the query socket and on the TCP port
metrics.py back URL SECONDS WHEN     raw samples of Prometheus: none goes back, and series go on behind the instant WHEN
metrics.py groups PORT MAX GROUP     a page of `by: depth 1`: GROUP is there, its parts sum to the machine, it has at most MAX series
metrics.py crowd PORT MAX            MAX connections are served, one more is told 503
"""
import http.client
import json
import re
import socket
import sys
import time
import urllib.parse
import urllib.request

# what the agent says of itself is of the moment of asking and of this process
OWN = re.compile(r"jouled_(self|output)_")


class Local(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("jouled", timeout=120)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(120)
        self.sock.connect(self.path)


def page(connection, accept):
    connection.request("GET", "/metrics", headers={"Accept": accept})
    answer = connection.getresponse()
    body = answer.read().decode()
    assert answer.status == 200, (answer.status, body)
    return answer.getheader("Content-Type"), body.splitlines()


def interval(lines):
    return next(line for line in lines if line.startswith("jouled_intervals_total "))


def same(path, port):
    """Between two equal pages of one door stands that of the other: all three are of one interval."""
    for accept in ("text/plain", "application/openmetrics-text"):
        for _ in range(1000):
            tcp, local = http.client.HTTPConnection("127.0.0.1", port, timeout=120), Local(path)
            first, other, second = page(tcp, accept), page(local, accept), page(tcp, accept)
            if interval(first[1]) == interval(second[1]):
                break
        else:
            raise AssertionError("no interval was long enough for three pages")
        assert first[0] == other[0], (first[0], other[0])
        pages = [[line for line in lines if not OWN.match(line)] for _, lines in (first, other)]
        assert len(pages[0]) > 50 and pages[0] == pages[1], set(pages[0]) ^ set(pages[1])
        assert [sum(bool(OWN.match(line)) for line in lines) for _, lines in (first, other)] == [2 + 2 * outputs(first[1])] * 2
    return 0


def outputs(lines):
    return sum(line.startswith("jouled_output_documents_total{") for line in lines)


def back(url, seconds, when):
    query = '{__name__=~"jouled_.*_total",__name__!~"jouled_(self|output)_.*"}[%ds]' % seconds
    with urllib.request.urlopen(url + "/api/v1/query?" + urllib.parse.urlencode({"query": query}), timeout=120) as f:
        series = json.load(f)["data"]["result"]
    crossed = grew = samples = 0
    for one in series:
        values = [(t, float(v)) for t, v in one["values"]]
        samples += len(values)
        for (_, a), (t, b) in zip(values, values[1:]):
            assert b >= a, f"{one['metric']} goes back at {t}: {a} {b}"
        if values[0][0] < when < values[-1][0]:
            crossed += 1
            grew += [v for t, v in values if t < when][-1] < values[-1][1]
    names = {one["metric"]["__name__"] for one in series if one["values"][0][0] < when < one["values"][-1][0]}
    ends = [one["values"][k][0] - when for one in series for k in (0, -1)]
    said = f"{len(series)} series, {samples} samples from {min(ends, default=0):.1f} to {max(ends, default=0):.1f} s of the restart, {crossed} across it"
    assert {"jouled_energy_joules_total", "jouled_cgroup_energy_joules_total", "jouled_cgroup_cpu_seconds_total",
            "jouled_cgroup_switches_total", "jouled_intervals_total", "jouled_cpu_seconds_total"} <= names, said
    assert grew > 10, (said, grew)
    return 0


def micro(value):
    whole, _, part = value.partition(".")
    return int(whole) * 1000000 + int(part.ljust(6, "0"))


def groups(port, most, group):
    """The sums are made of integers: not one microjoule may be missing."""
    lines = [line for line in page(http.client.HTTPConnection("127.0.0.1", port, timeout=120), "text/plain")[1] if line[0] != "#"]
    assert len(lines) <= most, len(lines)
    whole, parts, names = {}, {}, set()
    for line in lines:
        found = re.match(r'jouled_(cgroup_|idle_|residual_|retired_|)energy_joules_total\{(.*)\} (.*)', line)
        if found:
            domain = re.search(r'domain="([a-z]+)"', found[2])[1]
            side = parts if found[1] else whole
            side[domain] = side.get(domain, 0) + micro(found[3])
        name = re.match(r'jouled_cgroup_cpu_seconds_total\{cgroup="(.*?)"', line)
        names |= {name[1]} if name else set()
    assert whole == parts, (whole, parts)
    assert group in names and all(n.count("/") <= 1 for n in names), names
    return 0


def stay(port):
    """A connection that is kept; there may be no place until an earlier one is seen to be closed."""
    for _ in range(1000):
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        try:
            page(c, "*/*")
            return c
        except (AssertionError, OSError, http.client.HTTPException):
            c.close()
            time.sleep(0.1)
    raise AssertionError("no place for 100 s")


def crowd(port, most):
    held = [stay(port) for _ in range(most)]
    more = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    more.connect()
    answer = http.client.HTTPResponse(more.sock)     # told before it asks
    answer.begin()
    assert answer.status == 503, answer.status
    held.pop().close()
    stay(port)
    return 0


def main(argv):
    verbs = {"same": lambda a: same(a[0], int(a[1])), "back": lambda a: back(a[0], int(a[1]), float(a[2])),
             "groups": lambda a: groups(int(a[0]), int(a[1]), a[2]), "crowd": lambda a: crowd(int(a[0]), int(a[1]))}
    return verbs[argv[1]](argv[2:])


if __name__ == "__main__":
    sys.exit(main(sys.argv))
