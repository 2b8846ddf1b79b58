#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""push.py DIRECTORY CGROUP: pushed documents at receivers of this file and at real ones. Prints "ok NAME" or "FAIL NAME:
REASON" as lib.sh does."""
import base64
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import traceback
import urllib.parse

from free_port import free_port
from pushed import (FORMATS, JOULED, OTLP, SLOWER, UJ, WORK, Agent, Influx, Otlp, Receiver, RemoteWrite, key,
                    open_books, read_influx, read_page, records, wait_until)

CGROUP = sys.argv[2]
# Whatever else runs here does not make the documents long.
FEW = "cgroups=" + urllib.parse.quote(CGROUP)


def same(pages, samples):
    """Each document has the series of the page of its interval, label by label and to the last digit."""
    docs, own = {}, set()
    for name, labels, value, stamp in samples:
        if labels["job"] != "jouled" or not labels["instance"]:
            raise ValueError(f"job and instance: {labels}")
        if name.startswith("jouled_self_"):
            if value <= 0:
                raise ValueError(f"{name} {value}")
            own.add((stamp, name))
            continue
        docs.setdefault(stamp, {})[key(name, labels, ("job", "instance"))] = value
    if len(own) != 2 * len(docs):
        raise ValueError(f"what the agent costs: {own}")
    if len(docs) != 3 or list(docs) != sorted(docs):
        raise ValueError(f"{len(docs)} documents: {list(docs)}")
    for page, doc in zip(pages, docs.values()):
        want = {key(n, l): v for n, l, v in page}
        if want != doc:
            raise ValueError(str(sorted(want.items() ^ doc.items())[:3]))
    if not any(CGROUP == dict(k[1]).get("cgroup") for k in want):
        raise ValueError(f"{CGROUP} is not among them")


def test_same(_):
    """Every format has the series of the page."""
    page, lines, arrived, points = f"{WORK}/page", f"{WORK}/lines", [], []

    def answer(path, headers, body):
        if path == Otlp.path:
            points.extend(Otlp.read_starts(headers, body))
            return 200, {}, b""
        arrived.extend(RemoteWrite.read(headers, body))
        return 204, {}, b""

    receiver = Receiver(answer)
    subprocess.run([JOULED, "--socket", "none", "--state-dir", f"{WORK}/same", "-i", "200ms", "-n", "3",
                    "-o", f"openmetrics=file://{page}?{FEW}", "-o", f"influx=file://{lines}?{FEW}", "-o",
                    f"remote-write=http://127.0.0.1:{receiver.port}/api/v1/write?{FEW}",
                    "-o", f"otlp=http://127.0.0.1:{receiver.port}?{FEW}"], check=True,
                   stderr=subprocess.DEVNULL, timeout=60 * SLOWER)
    receiver.close()
    pages = [read_page(p) for p in open(page).read().split("# EOF\n")[:3]]
    for samples in pages:
        if open_books(samples):
            raise ValueError(f"books: {open_books(samples)}")
    same(pages, read_influx(open(lines, "rb").read()))
    same(pages, arrived)
    same(pages, [s[:4] for s in points])
    starts = {}
    for name, labels, _, _, start in points:
        starts.setdefault(key(name, labels), set()).add(start)
    if any(len(s) != 1 for s in starts.values()):
        raise ValueError(f"a start that moves: {[k for k, s in starts.items() if len(s) != 1][:3]}")


def test_partial(_):
    """A receiver of OTLP that takes documents without two of their points, then answers strangely, then is not there."""
    answers, port, words = {"next": None}, free_port(), "no \x1b[1m folded"
    partial = OTLP.ExportMetricsServiceResponse()
    partial.partial_success.rejected_data_points = 2
    partial.partial_success.error_message = words
    count = {"partial": 0, "strange": 0, "gone": 0}

    def answer(path, headers, body):
        Otlp.read(headers, body)
        what = answers["next"]
        if what in count:
            count[what] += 1
        return {"partial": (200, {}, partial.SerializeToString()), "strange": (200, {}, b"<html>hello</html>"),
                "gone": (404, {}, b"not here")}.get(what, (200, {}, b""))

    def dropped():
        said = subprocess.run(["curl", "-s", "--unix-socket", f"{WORK}/partial.sock", "http://x/v1/status"],
                              capture_output=True, check=True).stdout
        return json.loads(said)["outputs"][0]["dropped_series"]

    receiver = Receiver(answer, port)
    agent = Agent("partial", "--socket", f"{WORK}/partial.sock", "-i", "100ms", "-o", f"otlp=http://127.0.0.1:{port}?{FEW}")
    for what in ("partial", "strange", "gone"):
        answers["next"] = what
        wait_until(f"answers: {what}", 20, lambda what=what: count[what] >= (1 if what == "gone" else 4))
        if what == "partial":
            answers["next"] = None
            wait_until("what was rejected", 20, lambda: dropped() == 2 * count["partial"])
    wait_until("the remedy", 20, lambda: "/api/v1/otlp/v1/metrics of Prometheus" in agent.said())
    agent.process.send_signal(signal.SIGTERM)
    agent.process.wait(60 * SLOWER)
    receiver.close()
    said = agent.said()
    for line in (r"/v1/metrics: series rejected by a server that takes the rest, and dropped: .*\[1m folded", "a form that such a server does"):
        if len(re.findall(line, said)) != 1:
            raise ValueError(f"not once: {line}: {said[-600:]}")
    if "\x1b" in said:
        raise ValueError("words of the server are not escaped")


class Troubled:
    """A server in trouble, which then refuses one series of each document."""

    def __init__(self, fmt, port):
        self.fmt, self.port = fmt, port
        self.arrived, self.times, self.refused, self.without = [], [], 0, set()
        self.troubles = [(503, {"Retry-After": "1"}, b"later"), (429, {}, b"too many"), None, (500, {}, b"")]
        self.receiver = Receiver(self.answer, port)

    def answer(self, path, headers, body):
        self.times.append(time.monotonic())
        samples = self.fmt.read(headers, body)
        if path != self.fmt.path:
            return 404, {}, b"another path"
        if self.troubles:
            return self.troubles.pop(0)
        stamp = samples[0][3]
        bad = any(n == "jouled_losses_total" and l["reason"] == "folded" for n, l, _, _ in samples)
        if bad and (stamp in self.without or len(self.without) < 4):
            self.without.add(stamp)
            self.refused += 1
            return 400, {}, b'{"error":"I do not\nlike folded"}'
        self.arrived.append(samples)
        return 204, {}, b""

    def runs(self):
        """The numbers of the intervals that arrived, for each of the two agents."""
        with self.receiver.lock:
            numbers = [int(v) for d in self.arrived for n, _, v, _ in d if n == "jouled_intervals_total"]
        again = next((i for i in range(1, len(numbers)) if numbers[i] < numbers[i - 1]), len(numbers))
        return numbers[:again], numbers[again:]

    def check(self):
        stamps = [s for d in self.arrived for _, _, _, s in d]
        docs = {}
        for n, l, v, s in (sample for d in self.arrived for sample in d):
            docs.setdefault(s, []).append((n, l, v))
        if stamps != sorted(stamps):
            raise ValueError("not in the order of time")
        for stamp, samples in docs.items():
            if open_books(samples):
                raise ValueError(f"books: {open_books(samples)}")
            if sum(n == "jouled_losses_total" for n, _, _ in samples) != 4 - (stamp in self.without):
                raise ValueError("the rest of a refused document")
        if self.times[1] - self.times[0] < 1:
            raise ValueError(f"Retry-After: {self.times[1] - self.times[0]:.2f} s")
        if len(self.without) != 4 or self.refused > 12 * 4:
            raise ValueError(f"{self.refused} refusals of {len(docs)} documents")
        # one ends with the half-closed answer; else a connection stays open
        if self.receiver.connections > 4:
            raise ValueError(f"{self.receiver.connections} connections")


def test_troubles(fmt):
    """The server is away while the agent is killed; then it is in trouble. Every interval arrives, in order."""
    name, port = f"troubles-{fmt.name}", free_port()
    state = f"{WORK}/{name}.state"
    url = f"http://127.0.0.1:{port}{fmt.path}{'&' if '?' in fmt.path else '?'}keep=2m&interval=150ms&{FEW}"
    args = ("--socket", "none", "-i", "100ms", "-o", f"{fmt.name}={url}")
    agent = Agent(name, *args)
    wait_until("documents on disk", 20, lambda: records(state) >= 5)
    agent.kill()
    first = records(state)
    agent = Agent(name, *args)
    wait_until("more documents on disk", 20, lambda: records(state) >= first + 5)
    server = Troubled(fmt, port)
    wait_until("documents of the second agent", 30, lambda: len(server.runs()[1]) >= 12)
    wait_until("what it says of the bad series", 20, lambda: re.search(
        r'4 series refused by the server .*reason="?folded.*400: .*I do not like folded', agent.said()))
    agent.end()
    server.receiver.close()
    one, two = server.runs()
    if one != list(range(1, first + 1)) or two != list(range(1, len(two) + 1)):
        raise ValueError(f"intervals {one} of {first}, {two}")
    server.check()


def test_bound(fmt):
    """What the bound of the spool dropped is counted, in documents and in the joules that were measured in their times."""
    port, arrived = free_port(), []
    agent = Agent("bound", "--socket", f"{WORK}/bound.sock", "-i", "100ms", "-o",
                  f"{fmt.name}=http://127.0.0.1:{port}{fmt.path}&spool-size=65536&{FEW}")

    def dropped():
        said = subprocess.run(["curl", "-s", "--unix-socket", f"{WORK}/bound.sock", "http://x/v1/status"],
                              capture_output=True).stdout
        outputs = json.loads(said)["outputs"] if said else []
        return (outputs[0]["dropped_documents"], outputs[0]["dropped_energy_uj"]) if outputs else (0, 0)

    def answer(path, headers, body):
        arrived.append(fmt.read(headers, body))
        return 204, {}, b""

    wait_until("documents to be dropped", 20, lambda: dropped()[0] >= 3)
    receiver = Receiver(answer, port)
    wait_until("documents that arrive", 30, lambda: len(arrived) >= 5)
    wait_until("what it says", 20, lambda: "J were measured in the times of the documents dropped" in agent.said())
    def missing():
        """Intervals before the last that arrived, whose document did not."""
        came = {next(int(v) for name, _, v, _ in one if name == "jouled_intervals_total") for one in arrived[:]}
        return max(came) - len(came)
    wait_until("as many dropped documents as are missing", 20, lambda: dropped()[0] == missing())
    n, energy_uj = dropped()
    last = arrived[-1]
    agent.end(3)  # documents were lost
    receiver.close()
    summed = {l["domain"] for name, l, v, _ in last if name == "jouled_domain_summed" and v == 1}
    until_uj = sum(v * UJ for name, l, v, _ in last if name == "jouled_energy_joules_total" and l["domain"] in summed)
    # rounded to millijoules each
    if not 0 < energy_uj <= until_uj + 500 * n:
        raise ValueError(f"{n} documents with {energy_uj} uJ; {until_uj} uJ until the last that arrived")


def test_reload(fmt):
    """After a reload that leaves rows out, a store shows what the newest document shows and nothing else: the rest has ended."""
    shown, newest, path = set(), [], f"{WORK}/reload-{fmt.name}.yaml"

    def answer(_, headers, body):
        ended = []
        samples = {key(*s[:2]) for s in fmt.read(headers, body, ended)}
        if samples:  # not the doctor's
            shown.difference_update(key(*s) for s in ended)
            shown.update(samples)
            newest.append(samples)
        return 200, {}, b""

    def cgroups(document):
        return {c for c in (dict(labels).get("cgroup", "") for _, labels in document) if c.startswith("/")}

    receiver = Receiver(answer)

    def write(more):
        with open(path, "w", encoding="ascii") as f:
            f.write(f'interval: 100ms\noutputs:\n- {{ format: {fmt.name}, to: "http://127.0.0.1:{receiver.port}{fmt.path}"{more} }}\n')

    write("")
    agent = Agent(f"reload-{fmt.name}", "--socket", "none", "-c", path)
    wait_until("the cgroup and others", 20, lambda: newest and CGROUP in cgroups(newest[-1]) and len(cgroups(newest[-1])) > 1)
    write(", top: 1")
    before = len(newest)
    agent.process.send_signal(signal.SIGHUP)
    wait_until("one cgroup", 20, lambda: len(newest) > before + 3 and len(cgroups(newest[-1])) == 1)
    with receiver.lock:
        left = shown - newest[-1]
    agent.end()
    receiver.close()
    if left:
        raise ValueError(f"{len(left)} series of old rows are shown: {sorted(left)[:2]}")


def make_certificate(name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{WORK}/{name}.key",
                    "-out", f"{WORK}/{name}.pem"], check=True, stderr=subprocess.DEVNULL)


def test_login(fmt):
    """Certificates of both sides; a token and a password that are wrong until their files change; no secret is told."""
    for name in ("server", "client", "other"):
        make_certificate(name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{WORK}/server.pem", f"{WORK}/server.key")
    context.load_verify_locations(f"{WORK}/client.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    taken, denied = {}, {}
    good = {"/api/v2/write": "Token second-secret", "/write": "Basic " + base64.b64encode(b"me:word 2").decode()}

    def answer(path, headers, body):
        path = path.split("?")[0]
        if headers["Authorization"] != good.get(path):
            denied[path] = denied.get(path, 0) + 1
            return 401 if path == "/write" else 403, {}, b"who are you"
        taken.setdefault(path, []).extend(fmt.read(headers, body))
        return 204, {}, b""

    receiver = Receiver(answer, context=context)
    with open(f"{WORK}/token", "w") as f:
        f.write("first-secret\n")
    with open(f"{WORK}/password", "w") as f:
        f.write("word 1\n")
    url, both = f"https://127.0.0.1:{receiver.port}", f"cert-file={WORK}/client.pem&key-file={WORK}/client.key"
    agent = Agent("login", "--socket", f"{WORK}/login.sock", "-i", "200ms",
                  "-o", f"{fmt.name}={url}/api/v2/write?bucket=b&ca-file={WORK}/server.pem&{both}&token-file={WORK}/token&{FEW}",
                  "-o", f"{fmt.name}={url}/write?db=x&ca-file={WORK}/server.pem&{both}&user=me&password-file={WORK}/password&{FEW}",
                  "-o", f"{fmt.name}={url}/wrong?ca-file={WORK}/other.pem&{both}&{FEW}")
    wait_until("401 and 403", 20, lambda: len(denied) == 2 and agent.said().count("does not accept who asks") == 2)
    wait_until("the wrong authority", 20, lambda: "/wrong: its certificate is refused" in agent.said())
    for name, secret in (("token", "second-secret"), ("password", "word 2\n")):
        with open(f"{WORK}/{name}.new", "w") as f:
            f.write(secret)
        os.rename(f"{WORK}/{name}.new", f"{WORK}/{name}")
    wait_until("both are accepted", 20, lambda: len(taken) == 2)
    status = subprocess.run(["curl", "-s", "--unix-socket", f"{WORK}/login.sock", "http://x/v1/status"], check=True,
                            capture_output=True).stdout.decode()
    if "/api/v2/write?bucket=b" not in status or CGROUP not in str(taken):
        raise ValueError("the output is not in the status")
    with open(f"/proc/{agent.process.pid}/cmdline") as f:
        told = status + agent.said() + f.read()
    agent.end()
    receiver.close()
    for secret in ("first-secret", "second-secret", "word 1", "word 2", base64.b64encode(b"me:word 2").decode()):
        if secret in told:
            raise ValueError(f"{secret} is told")
    if agent.said().count("does not accept who asks") != 2:
        raise ValueError(f"named more than once: {agent.said()}")


def test_doctor(_):
    """The doctor asks each place to take an empty document, stores nothing, and says what is wrong with the others."""
    make_certificate("tried")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{WORK}/tried.pem", f"{WORK}/tried.key")
    samples, asked = [], []

    def answer(path, headers, body):
        asked.append(path)
        fmt = {f.path: f for f in FORMATS}.get(path)
        if path == "/denied":
            return 401, {}, b"who are you"
        if path == "/troubled":
            return 503, {}, b"later"
        if not fmt:
            return 404, {}, b"nothing here"
        samples.extend(fmt.read(headers, body))
        return 204, {}, b""

    receiver, secure, closed = Receiver(answer), Receiver(answer, context=context), free_port()
    listener = socket.create_server(("127.0.0.1", 0))
    plain, tls = f"http://127.0.0.1:{receiver.port}", f"https://127.0.0.1:{secure.port}"
    wanted = [(f"{f.name}={plain}{f.path}", "ok", "takes documents$") for f in FORMATS] + [
        (f"otlp={tls}?ca-file={WORK}/tried.pem", "ok", "takes documents$"),
        (f"influx={plain}/denied", "denied", "does not accept who asks; mend token-file"),
        (f"otlp={plain}/v2", "broken", "404: it takes nothing there; name the path: /v1/metrics"),
        (f"influx={plain}/troubled", "broken", "answered with 503: later"),
        (f"otlp={tls}", "denied", "certificate is refused.*name its authority with ca-file"),
        (f"influx=https://127.0.0.1:{receiver.port}/write", "broken", "write http:// if no TLS is spoken there"),
        (f"remote-write=http://127.0.0.1:{closed}/api/v1/write", "absent", "start what reads there"),
        (f"zico=http://127.0.0.1:{closed}", "absent", "start what reads there"),
        (f"zico={plain}", "ok", "a registration is not tried"),
        (f"power=tcp://127.0.0.1:{listener.getsockname()[1]}", "ok", "connected to"),
        (f"power=unix://{WORK}/nobody", "absent", "No such file or directory; start what reads there")]
    args = [a for w in wanted for a in ("-o", w[0])]
    said = subprocess.run([JOULED, "doctor", "--state-dir", f"{WORK}/doctor.state", *args], check=True, capture_output=True,
                          timeout=60 * SLOWER).stdout.decode()
    lines = [l for l in said.splitlines() if l.startswith("output ")]
    receiver.close()
    secure.close()
    listener.close()
    if len(lines) != len(wanted):
        raise ValueError(f"{len(lines)} lines of {len(wanted)}: {lines}")
    for line, (option, state, pattern) in zip(lines, wanted):
        name, url = option.split("?ca-file")[0].split("=", 1)
        if not re.match(rf"output {name} +{state} +{re.escape(url)}", line) or not re.search(pattern, line):
            raise ValueError(f"{option}: {line}")
    if samples or len(asked) != 7 or os.path.exists(f"{WORK}/doctor.state"):
        raise ValueError(f"stored {samples[:2]}, asked {asked}")


def kafka_messages(path):
    with open(path, "rb") as f:
        data, found = f.read(), []
    while data:
        head, data = data.split(b"\n", 1)
        n = int(head.rsplit(b" ", 1)[1])
        found.append(data[:n])
        data = data[n:]
    return found


def test_kafka(_):
    """Messages of Kafka are the documents of a file of the same run: a line each, or a report each behind the header, also when
    brokers refuse a batch. A message that they do not take alone is named."""
    mock = f"{os.path.dirname(JOULED)}/fleet/kafka_mock"
    peers, brokers = [], {}
    try:
        for topic in ("power", "hwpc", "vjoule", "large"):
            peers.append(subprocess.Popen([mock, topic, f"{WORK}/kafka.{topic}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                          stderr=subprocess.DEVNULL, text=True))
            brokers[topic] = peers[-1].stdout.readline().strip()
        args = []
        for topic in ("power", "hwpc", "vjoule"):
            args += ["-o", f"{topic}=file://{WORK}/kafka.{topic}.file?{FEW}", "-o", f"{topic}=kafka://{brokers[topic]}/{topic}?{FEW}"]
        agent = Agent("kafka", "--socket", f"{WORK}/kafka.sock", "-i", "200ms", *args, "-o",
                      f"otlp=kafka://{brokers['large']}/large?config.message.max.bytes=1000&{FEW}")
        wait_until("the first messages", 30, lambda: len(kafka_messages(f"{WORK}/kafka.power")) >= 2)
        peers[0].stdin.write("refuse\n")
        peers[0].stdin.flush()
        wait_until("messages", 30, lambda: all(len(kafka_messages(f"{WORK}/kafka.{t}")) >= 9 for t in ("power", "hwpc", "vjoule")))
        wait_until("what it says of large ones", 30, lambda: "refused by the brokers" in agent.said())
        agent.end()
        for topic in ("power", "hwpc", "vjoule"):
            with open(f"{WORK}/kafka.{topic}.file", "rb") as f:
                own = f.read()
            came = kafka_messages(f"{WORK}/kafka.{topic}")
            if topic == "vjoule":
                head = came[0][:4 + int.from_bytes(came[0][:4], "little")]
                same_bytes = own.startswith(head + b"".join(m[len(head):] for m in came))
            else:
                same_bytes = own.startswith(b"".join(m + b"\n" for m in came))
            if not same_bytes:
                raise ValueError(f"{topic}: {came[:2]} of {own[:300]}")
        if kafka_messages(f"{WORK}/kafka.large") or not re.search(
                r"messages refused by the brokers.*one of \d{4,} bytes: .*too large", agent.said()):
            raise ValueError(f"large ones: {agent.said()[-500:]}")
    finally:
        for p in peers:
            p.kill()
            p.wait()


def main():
    failed = []

    def attempt(name, test, fmt):
        try:
            test(fmt)
            print(f"ok push-{name}", flush=True)
        except Exception as e:  # any reason is the test's answer
            failed.append(name)
            traceback.print_exc()
            print(f"FAIL push-{name}: {str(e)[:600]}", flush=True)

    attempt("same", test_same, None)  # has the five seconds that an agent takes for its end: alone
    # The others mostly wait.
    threads = [threading.Thread(target=attempt, args=a) for a in
               [("partial", test_partial, None), ("login", test_login, Influx), ("bound", test_bound, Influx),
                ("doctor", test_doctor, None), ("kafka", test_kafka, None)]
               + [(f"troubles-{f.name}", test_troubles, f) for f in FORMATS]
               + [(f"reload-{f.name}", test_reload, f) for f in (RemoteWrite, Otlp)]]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
