#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fleet.py DIRECTORY CGROUP AWAY-S [STORE...]: the books at the centre. Real stores get documents through a gate that is away
for AWAY-S seconds, in which the agent is killed five times and its disk is full once, and which then answers as servers in
trouble do. Afterwards, at every time that a store holds, the books close to the microjoule, and are those that the agent
wrote for itself at that time. Prints "ok NAME", "FAIL NAME: REASON" or "SKIP NAME: REASON" as lib.sh does."""
import json
import os
import re
import subprocess
import sys
import threading
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(1, "tests/e2e")
import otlp  # noqa: E402
from free_port import free_port  # noqa: E402
from pushed import OTLP, UJ, WORK, Agent, Otlp, Receiver, open_books, read_page, records, wait_until  # noqa: E402
from stores import STORES  # noqa: E402

CGROUP, AWAY_S = sys.argv[2], float(sys.argv[3])
KILLS = 5
INTERVAL_S = 0.2 if AWAY_S < 60 else 1
FEW = f"interval={int(INTERVAL_S * 1000)}ms&cgroups=" + urllib.parse.quote(CGROUP)
DISK_BYTES = (4 if AWAY_S < 60 else 64) << 20


class Brokers:
    """The mock cluster of librdkafka, in the place of gate and store. What its consumer reads is what the store holds."""
    fmt = Otlp

    def __init__(self, name):
        self.path, self.refused, self.process = f"{WORK}/{name}.messages", 0, None

    def start(self, program):
        self.process = subprocess.Popen([program, "jouled", self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        return f"otlp=kafka://{self.process.stdout.readline().strip()}/jouled?config.message.timeout.ms=2000"

    def do(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        while self.process.stdout.readline() != f"did {command}\n":
            pass

    @property
    def passed(self):
        return len(self.messages())

    def away(self):
        self.do("down")

    def back(self):
        self.do("errors")
        self.do("up")

    def settled(self):
        return True

    def messages(self):
        """Bodies of the messages, in the order in which they were read. Each has the sensor as its key."""
        with open(self.path, "rb") as f:
            data, found = f.read(), []
        while b"\n" in data:
            head, rest = data.split(b"\n", 1)
            sensor, n = head.decode().rsplit(" ", 1)
            if sensor != os.uname().nodename:
                raise ValueError(f"key {sensor}")
            if len(rest) < int(n):
                break
            found.append(rest[:int(n)])
            data = rest[int(n):]
        return found

    def samples(self):
        times, last = {}, 0
        for body in self.messages():
            one = [s[:4] for s in otlp.read(OTLP, body)]
            if one[0][3] < last or (one[0][3] in times and times[one[0][3]] != [s[:3] for s in one]):
                raise ValueError(f"not in the order of time: {one[0][3]} after {last}")
            last = one[0][3]
            times[last] = [s[:3] for s in one]
        return times

    def end(self):
        if self.process:
            self.process.kill()
            self.process.wait()


class Gate:
    """Stands before a store. troubles: what it does with the next requests in place of passing them on."""

    def __init__(self, name):
        self.store, self.port, self.troubles = STORES[name](name), free_port(), []
        self.fmt, self.passed, self.refused, self.receiver = self.store.fmt, 0, 0, None

    def start(self, program):
        self.store.start(program)
        self.receiver = Receiver(self.answer, self.port, read=self.read)
        path = self.store.path
        return f"{self.fmt.name}=http://127.0.0.1:{self.port}{path}{'&' if '?' in path else '?'}keep=2m"

    def away(self):
        self.receiver.close()
        self.receiver = None
        self.troubles = ["half-closed"] * 9  # what is connected still

    def back(self):
        self.troubles = [429, 400, "half-closed", "slow"]
        self.receiver = Receiver(self.answer, self.port, read=self.read)

    def settled(self):
        return not self.troubles and self.refused == 1

    def samples(self):
        return self.store.samples()

    def end(self):
        if self.receiver:
            self.receiver.close()
        self.store.end()

    def read(self, rfile, n):
        if self.troubles[:1] != ["slow"]:
            return rfile.read(n)
        self.troubles.pop(0)
        body = b""
        while len(body) < n:
            body += rfile.read(max(1, min(n // 5, n - len(body))))
            time.sleep(0.3)
        return body

    def answer(self, path, headers, body):
        self.fmt.read(headers, body)
        trouble = self.troubles.pop(0) if self.troubles and self.troubles[0] != "slow" else None
        if trouble == "half-closed":
            return None
        if trouble == 429:
            return 429, {"Retry-After": "1"}, b"too many"
        if trouble == 400:
            self.refused += 1
            return 400, {}, b"not this one"
        kept = {k: headers[k] for k in ("Content-Type", "Content-Encoding", "X-Prometheus-Remote-Write-Version") if headers[k]}
        request = urllib.request.Request(f"http://127.0.0.1:{self.store.port}{path}", body, kept)
        try:
            with urllib.request.urlopen(request, timeout=60) as r:
                self.passed += 1
                return r.status, {}, r.read()
        except urllib.error.HTTPError as e:
            return e.code, {}, e.read()


class Node:
    """An agent that is started again and again; each run writes a page of its own beside what it pushes."""

    def __init__(self, name):
        self.name, self.url, self.runs = name, None, 0
        self.state, self.socket, self.agent = f"{WORK}/{name}.state", f"{WORK}/{name}.sock", None

    def start(self):
        self.runs += 1
        self.agent = Agent(self.name, "--socket", self.socket, "-i", f"{int(INTERVAL_S * 1000)}ms", "-o", f"{self.url}&{FEW}",
                           "-o", f"openmetrics=file://{WORK}/{self.name}.page.{self.runs}?{FEW}")

    def status(self):
        said = subprocess.run(["curl", "-s", "--unix-socket", self.socket, "http://x/v1/status"], capture_output=True,
                              check=False).stdout
        outputs = json.loads(said)["outputs"] if said else []
        return outputs[0] if outputs else {"dropped_documents": 0}

    def pages(self):
        """[{series: value in uJ}] of each run. A page that the kill cut off is left out."""
        runs = []
        for run in range(1, self.runs + 1):
            with open(f"{WORK}/{self.name}.page.{run}", encoding="utf-8") as f:
                runs.append([books_of(read_page(p)) for p in f.read().split("# EOF\n")[:-1]])
        return runs


# What stores add to the labels of a series: whose it is.
WHOSE = {"job", "instance", "db", "host_name", "service_instance_id", "service_name", "service_version"}


def books_of(samples):
    """The figures of a time as a value that can be compared: energy in uJ, numbers as they are."""
    books = set()
    for name, labels, value in samples:
        if re.fullmatch(r"jouled_(.*energy_joules|intervals)_total", name):
            value = int((value * UJ).to_integral_value()) if "joules" in name else int(value)
            books.add((name, tuple(sorted((k, v) for k, v in labels.items() if k not in WHOSE)), value))
    return frozenset(books)


def number(books):
    return next(v for name, _, v in books if name == "jouled_intervals_total")


def fill_disk(node):
    """No room for documents, until one was dropped and the agent has said why. How many were dropped."""
    with open(f"{node.state}/filler", "wb", buffering=0) as f:
        try:
            while True:
                f.write(b"x" * 4096)
        except OSError:
            pass
    wait_until("a document that is dropped", 30, lambda: node.status()["dropped_documents"] >= 2)
    wait_until("the reason", 30, lambda: "No space left on device" in node.agent.said())
    os.unlink(f"{node.state}/filler")
    before = records(node.state)
    wait_until("documents on disk again", 30, lambda: records(node.state) >= before + 3)


def outage(node):
    """The store is away: the agent is killed and started again, and its disk is full."""
    began = time.monotonic()
    for _ in range(KILLS):
        before = records(node.state)
        wait_until("documents on disk", 30, lambda before=before: records(node.state) >= before + 3)
        time.sleep(max(0, AWAY_S / (KILLS + 1) - 1))
        node.agent.kill()
        node.start()
    fill_disk(node)
    wait_until("the end of the outage", AWAY_S + 1, lambda: time.monotonic() - began >= AWAY_S)


def check(node, centre, n_dropped):
    """Every time that the store holds: its books close, and they are those of the agent's own page of that time."""
    runs, times = node.pages(), centre.samples()
    own = {page: (run, n) for run, pages in enumerate(runs) for n, page in enumerate(pages)}
    found = [[] for _ in runs]
    run = 0
    for when in sorted(times):
        if open_books(times[when]):
            raise ValueError(f"books at {when}: {open_books(times[when])}")
        books = books_of(times[when])
        if books in own:
            run = own[books][0]
        elif run + 1 == len(runs) or number(books) <= len(runs[run]):
            # only the last document of a killed agent may be without a page
            raise ValueError(f"at {when} the store has what the agent does not: {sorted(books)[:3]}")
        found[run].append(number(books))
    missing = 0
    for run, numbers in enumerate(found):
        if numbers != list(dict.fromkeys(sorted(numbers))):
            raise ValueError(f"run {run}: not in order, or twice: {numbers}")
        missing += len(set(range(1, len(runs[run]) + 1)) - set(numbers))
    # a killed agent may have written a page and not yet the document
    if not n_dropped <= missing <= n_dropped + KILLS or len(found[-1]) < 3:
        raise ValueError(f"{missing} of {sum(map(len, runs))} are missing, {n_dropped} were dropped: {found}")
    if own.get(books_of(times[max(times)]), (0, 0))[0] + 1 != len(runs):
        raise ValueError("the last totals are not those of the agent that ran last")
    return len(times), len(books_of(times[max(times)]))


def one(name, program):
    centre = Brokers(name) if name == "kafka" else Gate(name)
    node, began = Node(name), time.monotonic()
    os.mkdir(node.state)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", node.state], check=True)
    try:
        node.url = centre.start(program)
        node.start()
        wait_until("documents at the centre", 30, lambda: centre.passed >= 3)
        centre.away()
        outage(node)
        away_s = time.monotonic() - began
        centre.back()
        wait_until("all that waited", AWAY_S + 60, lambda: centre.settled() and node.status()["spooled_documents"] <= 1)
        more = centre.passed + 3
        wait_until("new documents", 30, lambda: centre.passed >= more)
        n_dropped = node.status()["dropped_documents"]
        node.agent.end(3)
        n, series = check(node, centre, n_dropped)
        if name != "kafka" and centre.store.ends:
            print("# %s: books close at %u times, a cgroup that ended is shown at %u" % (name, *ends(name, centre.store)))
        print(f"# {name}: away {away_s:.0f} s, {n} times of {node.runs} runs, {series} series of energy, {n_dropped} documents "
              f"dropped and counted, {time.monotonic() - began:.0f} s in all")
    finally:
        if node.agent and node.agent.process.poll() is None:
            node.agent.kill()
        centre.end()
        subprocess.run(["umount", "-l", node.state], check=False)


BOOKS = ('sum by (domain) (jouled_energy_joules_total{instance="ends"}) - sum by (domain) ('
         '{__name__=~"jouled_(cgroup|idle|residual|retired)_energy_joules_total",instance="ends"})')


def ends(name, store):
    """A cgroup ends while its store can be asked: at no time is its energy both in its series and in `retired`."""
    path = f"{CGROUP}/{name}"
    with open("/proc/mounts", encoding="utf-8") as f:
        folder = next(words[1] for words in map(str.split, f) if words[2] == "cgroup2") + path
    ours = f'jouled_cgroup_energy_joules_total{{instance="ends",cgroup="{path}"}}'
    counted = 'jouled_intervals_total{instance="ends"}'

    def now(query):
        store.flush()
        return sum(store.query_at(query).values())

    os.mkdir(folder)
    with subprocess.Popen(["sh", "-c", 'echo $$ >"$0/cgroup.procs"; while :; do :; done', folder]) as load:
        agent = Agent(f"{name}.ends", "--sensor", "ends", "--socket", "none", "-i", "200ms", "-o",
                      f"{store.fmt.name}=http://127.0.0.1:{store.port}{store.path}?keep=1s&interval=200ms&cgroups={path}")
        try:
            wait_until("energy of the cgroup", 60, lambda: now(ours) > 0)
        finally:
            load.kill()
    os.rmdir(folder)
    wait_until("its energy to be retired", 60, lambda: now('jouled_retired_energy_joules_total{instance="ends"}') > 0)
    more = now(counted) + 3
    wait_until("times after that", 60, lambda: now(counted) > more)
    agent.end()
    store.flush()
    text = urllib.parse.urlencode({"query": counted + "[1h]"})
    times = [float(when) for when, _ in json.loads(store.ask(f"/api/v1/query?{text}"))["data"]["result"][0]["values"]]
    shown = 0
    for when in times:
        books = store.query_at(BOOKS, when)
        if not books or any(abs(v) > 1 / UJ for v in books.values()):
            raise ValueError(f"books of the cgroup that ended, at {when}: {books}")
        shown += bool(store.query_at(ours, when))
    if not 0 < shown < len(times):
        raise ValueError(f"the cgroup that ended is shown at {shown} of {len(times)} times")
    return len(times), shown


def attempt(name, failed):
    program, why = (f"{os.environ.get('B', 'build')}/fleet/kafka_mock", "") if name == "kafka" else STORES[name].program()
    if not program:
        print(f"SKIP fleet-{name}: {why}", flush=True)
        return
    try:
        one(name, program)
        print(f"ok fleet-{name}", flush=True)
    except Exception as e:  # any reason is the test's answer
        failed.append(name)
        traceback.print_exc()
        print(f"FAIL fleet-{name}: {str(e)[:600]}", flush=True)


def main():
    failed = []
    threads = [threading.Thread(target=attempt, args=(name, failed)) for name in sys.argv[4:] or [*STORES, "kafka"]]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
