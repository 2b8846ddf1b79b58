#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients of the query socket that curl cannot play, and checks of what it answers.

query.py raw SOCKET              requests that are broken, cut, slow or many at once
query.py crowd SOCKET N MAX      N connections, of which MAX are served and the rest told 503
query.py ledger FILE             per domain energy = parts, exactly: a snapshot, a listing or a reading
query.py documents FILE N        N JSON documents in order, few missing
query.py openmetrics FILE        strict OpenMetrics 1.0
query.py grown FILE FILE         no counter of the first page is larger in the second
"""
import concurrent.futures
import json
import re
import socket
import sys
import time


def connect(path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.settimeout(120)
    s.connect(path)
    return s


def response(f):
    """Status, headers, body of the next answer; None at the end of the connection."""
    line = f.readline()
    if not line:
        return None
    status = int(line.split()[1])
    headers = {}
    while (line := f.readline().strip()):
        name, value = line.split(b":", 1)
        headers[name.decode().lower()] = value.strip().decode()
    return status, headers, f.read(int(headers.get("content-length", "0")))


def ask(path, data):
    with connect(path) as s:
        s.sendall(data)
        return response(s.makefile("rb"))


def get(target, more=b""):
    return b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n" + more + b"\r\n"


def error_of(answer):
    status, headers, body = answer
    assert headers["content-type"] == "application/json", headers
    text = json.loads(body)["error"]
    assert ":" in text and ";" in text, text
    return status


def broken(path):
    assert error_of(ask(path, get(b"/v1/status?x=%zz"))) == 400
    assert error_of(ask(path, get(b"/v1/status?x=%00"))) == 400
    assert error_of(ask(path, get(b"/v1/cgroups/%00"))) == 400
    assert error_of(ask(path, get(b"/" + b"a" * 5000))) == 414
    assert error_of(ask(path, get(b"/v1/status", b"X: " + b"a" * 20000 + b"\r\n"))) == 431
    post = b"POST /v1/reading HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
    assert error_of(ask(path, post)) == 413


def junk(path, data):
    try:
        answer = ask(path, data + b"\r\n\r\n")
        assert answer is None or 400 <= answer[0] <= 505, answer
    except ConnectionError:
        pass


def pipelined(path):
    with connect(path) as s:
        s.sendall(get(b"/v1/status") + get(b"/nothing") + get(b"/v1/cgroups") +
                  b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        f = s.makefile("rb")
        assert [response(f)[0] for _ in range(3)] == [200, 404, 200]
        assert f.readline().startswith(b"HTTP/1.1 200")


def half_closed(path):
    with connect(path) as s:
        s.sendall(get(b"/v1/status"))
        s.shutdown(socket.SHUT_WR)
        answer = response(s.makefile("rb"))
        assert answer is None or answer[0] == 200, answer
    # nothing more can come: its place is free before that of one that may still go on, and came first
    slower = connect(path)
    slower.sendall(b"GET /v1/sta")
    for half in (b"GET /v1/sta", b"GET /v1/status HTTP/1.1\r\nHost: x\r\n", get(b"/v1/status") + b"GET /v1"):
        with connect(path) as s:
            s.sendall(half)
            s.shutdown(socket.SHUT_WR)
            f = s.makefile("rb")
            answer = response(f)
            if answer and answer[0] == 200 and b"\r\n\r\n" in half:
                answer = response(f)
            assert answer is None or answer[0] >= 400, answer


    slower.setblocking(False)
    try:
        assert not slower.recv(1) and False, "the slow one was cut off first"
    except BlockingIOError:
        slower.close()


def abandoned(path):
    for part in (b"", b"GET /v1/sn", get(b"/v1/stream?interval=10ms"), b"POST /v1/reading HTTP/1.1\r\nHost: x\r\n\r\n"):
        for _ in range(20):
            s = connect(path)
            s.sendall(part)
            s.close()


def slow(path):
    """One byte a second: cut off within the 10 s that a request's head may take."""
    with connect(path) as s:
        start = time.monotonic()
        try:
            for byte in get(b"/v1/status"):
                s.sendall(bytes([byte]))
                time.sleep(1)
                assert time.monotonic() - start < 20, "a slow request was not cut off"
        except (BrokenPipeError, ConnectionError):
            pass
        assert time.monotonic() - start > 8, time.monotonic() - start


JUNK = (b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"\r\n" * 50, b"GET / HTTP/9.9\r\n\r\n", b"\xff" * 70000)


def raw(path):
    """All at once: four of them last until the server's 10 s for a head are over."""
    cases = {f.__name__: [(f, path)] for f in (broken, pipelined, half_closed, abandoned, slow)}
    cases["junk"] = [(junk, path, data) for data in JUNK]
    wrong = []
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        running = {name: [pool.submit(*call) for call in calls] for name, calls in cases.items()}
        for name, results in running.items():
            wrong += [f"{name}: {type(e).__name__} {e}" for e in (r.exception() for r in results) if e]
    print("; ".join(wrong))
    return 1 if wrong else 0


def crowd(path, n, served):
    idle, refused = [], set()
    for _ in range(n):
        s = connect(path)
        s.setblocking(False)
        idle.append(s)
    deadline = time.monotonic() + 8         # of the 10 s that a head may take
    while time.monotonic() < deadline and len(refused) < n - served:
        for s in set(idle) - refused:
            try:
                data = s.recv(4096)
                assert data.startswith(b"HTTP/1.1 503") and b'{"error":' in data, data
                refused.add(s)
            except BlockingIOError:
                pass
        time.sleep(0.1)
    assert len(refused) == n - served, f"{len(refused)} of {n} were refused, {n - served} should have been"
    for s in idle:
        s.close()
    deadline = time.monotonic() + 120
    while ask(path, get(b"/v1/status"))[0] != 200:
        assert time.monotonic() < deadline, "nobody is served after the crowd"
    return 0


def lags(path, pid, most):
    """A stream's client that always lags behind: what it was sent is not kept."""
    def resident():
        with open(f"/proc/{pid}/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * 4096

    with connect(path) as s:
        s.sendall(get(b"/v1/stream?format=json&interval=10ms"))
        s.settimeout(60)
        read, first = 0, None
        while read < 12 << 20:
            data = s.recv(1 << 16)
            assert data, "the stream ended"
            read += len(data)
            if read > 2 << 20 and first is None:
                first = resident()
            time.sleep(0.02)
        grown_by = resident() - first
    assert grown_by < most, f"{grown_by} bytes more after 10 MiB were read"
    return 0


def closes(name, d, parts):
    whole = d["energy_uj"]
    assert whole == parts + d["idle_uj"] + d["residual_uj"] + d.get("retired_uj", 0), \
        f"{name}: {whole} is not {parts} and {d}"


def ledger(file):
    """A snapshot's idle row stands beside idle_uj, the others count it in."""
    with open(file, encoding="utf-8") as f:
        doc = json.load(f)
    assert doc["domains"], "no domain"
    for d in doc["domains"]:
        name = d["name"]
        if "cgroups" in doc:
            for span in ("total", "last"):
                rows = doc["cgroups"] + doc["special"] + [doc["other"]]
                closes(name, d[span], sum(r[span]["energy_uj"][name] for r in rows))
        else:
            reading = "retired_uj" in d
            rows = [r for r in doc["rows"] if not (reading and r["name"] == "idle")]
            closes(name, d, sum(r["energy_uj"][name] for r in rows))
    return 0


def documents(file, n):
    with open(file, encoding="utf-8") as f:
        docs = [json.loads(line) for line in f.read().splitlines(keepends=True) if line.endswith("\n")]
    assert len(docs) >= n, f"{len(docs)} documents"
    joined = 0
    for a, b in zip(docs, docs[1:]):
        assert b["number"] > a["number"], (a["number"], b["number"])
        if b["number"] == a["number"] + 1:
            assert b["monotonic_ns"] - b["interval_ns"] == a["monotonic_ns"], "intervals do not join"
            joined += 1
    assert joined >= 0.8 * (len(docs) - 1), f"{len(docs) - 1 - joined} of {len(docs)} are missing"
    return 0


SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
                    r'(?:,[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*")*)?\})? ([0-9.eE+-]+)$')
SUFFIX = {"counter": "_total", "gauge": "", "info": "_info"}


def openmetrics(file):
    """OpenMetrics 1.0: one EOF at the end, TYPE, UNIT, HELP before the samples, families not interleaved."""
    with open(file, encoding="utf-8", newline="") as f:
        text = f.read()
    assert text.endswith("\n# EOF\n") and text.count("# EOF") == 1, "EOF"
    families, current, seen = {}, None, set()
    for line in text.splitlines()[:-1]:
        assert line and line == line.rstrip(), repr(line)
        if line.startswith("# "):
            word, name, rest = line[2:].split(" ", 2)
            assert word in ("TYPE", "UNIT", "HELP"), line
            if name != current:
                assert name not in families, f"{name} is interleaved"
                families[name], current = {}, name
            assert word not in families[name], f"{line} twice"
            families[name][word] = rest
            if word == "UNIT":
                assert name.endswith("_" + rest), line
            continue
        m = SAMPLE.match(line)
        assert m, f"no sample: {line}"
        kind = families[current]["TYPE"]
        assert m[1] == current + SUFFIX[kind], f"{m[1]} in {current}"
        assert (m[1], m[2]) not in seen, f"twice: {line}"
        seen.add((m[1], m[2]))
        assert float(m[3]) >= 0
    assert len(seen) > 30, "too few samples"
    return 0


def samples(file):
    with open(file, encoding="utf-8") as f:
        return {m[1] + (m[2] or ""): float(m[3]) for m in map(SAMPLE.match, f.read().splitlines()) if m}


def grown(before, after):
    a, b = samples(before), samples(after)
    counters = [k for k in a if "_total" in k]
    assert counters and all(k in b for k in counters if "cgroup" not in k), "a series is gone"
    back = [k for k in counters if k in b and b[k] < a[k]]
    assert not back, f"went back: {back}"
    energy = "jouled_energy_joules_total"
    for domain in {k.split('domain="')[1].split('"')[0] for k in b if k.startswith(energy)}:
        def total(family):
            return round(sum(v for k, v in b.items() if k.startswith(family + "_total") and f'domain="{domain}"' in k) * 1e6)
        parts = sum(total(f"jouled_{p}_energy_joules") for p in ("cgroup", "idle", "residual", "retired"))
        assert total("jouled_energy_joules") == parts, (domain, total("jouled_energy_joules"), parts)
    return 0


def main(argv):
    verbs = {
        "raw": lambda a: raw(a[0]), "crowd": lambda a: crowd(a[0], int(a[1]), int(a[2])),
        "lags": lambda a: lags(a[0], a[1], int(a[2]) << 20),
        "ledger": lambda a: ledger(a[0]), "documents": lambda a: documents(a[0], int(a[1])),
        "openmetrics": lambda a: openmetrics(a[0]), "grown": lambda a: grown(a[0], a[1]),
    }
    return verbs[argv[1]](argv[2:])


if __name__ == "__main__":
    sys.exit(main(sys.argv))
