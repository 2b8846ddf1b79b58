#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What leaves an agent whose selections leave a cgroup out. privacy.py JOULED WORK CGROUP [CASE]...: CGROUP is a directory of
cgroup2. In one cgroup below it run processes with a word in their names and command lines, in another such with another
word: the first word may be in no byte of any output, answer or file, the second must be there, or nothing was looked at."""
import base64
import contextlib
import gzip
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "zico"))
import collector  # noqa: E402
from zico_wait import Failed, cases, until  # noqa: E402

JOULED, WORK, CGROUP = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3]
HIDDEN, SHOWN = b"H1DDEN", b"SH0WN"
EXCLUDE = '"/**/*H1DDEN*", "/**/*H1DDEN*/**"'
ONLY = '"/**/*SH0WN*", "/**/*SH0WN*/**"'
# Formats that name cgroups; null writes nothing.
FORMATS = {"hwpc", "power", "vjoule", "openmetrics", "zico", "table", "snapshot", "null", "influx", "remote-write", "otlp", "otlp-traces", "pprof", "otlp-profiles"}
# With their targets. A page of the browser has no cgroups in it: it asks for /v1/stream.
ROUTES = {
    "/": [("/", "")],
    "/healthz": [("/healthz", "")],
    "/readyz": [("/readyz", "")],
    "/v1/status": [("/v1/status", "")],
    "/v1/reading": [("/v1/reading", "")],
    "/v1/audit": [("/v1/audit", "")],
    "/v1/snapshot": [("/v1/snapshot", t) for t in ("application/json", "application/cbor", "text/plain", "application/x-vjoule")],
    "/v1/cgroups": [("/v1/cgroups", ""), ("/v1/cgroups?sort=name&limit=1000", "")],
    "/v1/hwpc": [("/v1/hwpc", "")],
    "/v1/power": [("/v1/power", "")],
    "/v1/stream": [(f"/v1/stream?interval=100ms&format={f}", "") for f in ("json", "cbor", "hwpc", "power", "table", "vjoule")],
    "/v1/history": [("/v1/history?limit=1000", ""), ("/v1/history?limit=1000&step=1s", "")],
    "/v1/spans": [("/v1/spans?limit=100000", "")],
    "/v1/profile": [("/v1/profile", ""), ("/v1/profile?format=folded", "")],
    "/v1/devices": [("/v1/devices", "")],
    "/metrics": [("/metrics", "text/plain"), ("/metrics", "application/openmetrics-text")],
}
NAMELESS = {"/", "/healthz", "/readyz", "/v1/status", "/v1/audit", "/v1/devices"}
# Its line names a cgroup, which /v1/status must not show.
AUDIT = json.dumps({"version": 1, "formula": "share", "lines": [{"cgroup": f"/a/{HIDDEN.decode()}", "domain": "package-0", "judged": True,
                                                                 "bias": 0.1, "low": 0, "high": 0.2}]})
WORK_A_MOMENT = "i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done;"
PROFILES = ("document", "zico-1.90", "zico-1.90.6", "zico-2")


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(self.path)


class Load:
    """In each cgroup, and in one below it, one process that works now and then and others that come and go, all named by its word."""
    def __init__(self):
        self.ended, self.threads, self.dirs, self.runs = threading.Event(), [], [], {}
        for word in (HIDDEN.decode(), SHOWN.decode()):
            program = os.path.join(WORK, f"{word}-cmd")
            shutil.copy("/bin/dash", program)
            for path in (os.path.join(CGROUP, f"a-{word}"), os.path.join(CGROUP, f"a-{word}", f"b-{word}.scope")):
                os.mkdir(path)
                self.dirs.append(path)
                self.start(path, program, word, f"while :; do {WORK_A_MOMENT} sleep 0.4; done")
            self.threads.append(threading.Thread(target=self.repeat, args=(self.dirs[-1], program, word), daemon=True))
            self.threads[-1].start()

    def start(self, path, program, word, script):
        def enter():
            with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as f:
                f.write(str(os.getpid()))
        # the first exec is in the cgroup: no command line elsewhere has the word
        return subprocess.Popen([program, "-c", f": {word}-argument; {script}"], preexec_fn=enter, start_new_session=True,
                                cwd="/")

    def repeat(self, path, program, word):
        while not self.ended.wait(0.1):
            self.start(path, program, word, WORK_A_MOMENT).wait()
            self.runs[word] = self.runs.get(word, 0) + 1

    def wait_runs(self, n):
        """That many more of each."""
        want = {w.decode(): self.runs.get(w.decode(), 0) + n for w in (HIDDEN, SHOWN)}
        until(lambda: all(self.runs.get(w, 0) >= n for w, n in want.items()), f"no processes: {self.runs}")

    def stop(self):
        self.ended.set()
        for t in self.threads:
            t.join()
        for path in self.dirs:
            with open(os.path.join(path, "cgroup.procs"), encoding="ascii") as f:
                for pid in f.read().split():
                    with contextlib.suppress(ProcessLookupError):  # it ended by itself
                        os.kill(int(pid), signal.SIGKILL)
        for path in reversed(self.dirs):
            until(lambda path=path: self.removed(path), f"{path} stays")

    @staticmethod
    def removed(path):
        try:
            os.rmdir(path)
        except OSError:
            return not os.path.exists(path)
        return True


class Agent:
    def __init__(self, name, more, outputs):
        self.dir = os.path.join(WORK, name)
        self.more, self.outputs = more, outputs
        os.makedirs(self.dir, exist_ok=True)
        self.socket, self.config = os.path.join(self.dir, "jouled.sock"), os.path.join(self.dir, "jouled.yaml")
        self.state, self.log = os.path.join(self.dir, "state"), os.path.join(self.dir, "log")
        self.p = None

    def write(self):
        with open(self.config, "w", encoding="ascii") as f:
            f.write(f"interval: 200ms\nspans: {{ processes: true }}\nprofile: {{ frequency: 99 }}\nsocket: {{ path: {self.socket} }}\n{self.more}\n"
                    "outputs:\n" + "".join(f"- {{ {o} }}\n" for o in self.outputs))

    def start(self):
        self.write()
        with open(self.log, "ab") as log:
            self.p = subprocess.Popen([JOULED, "-c", self.config, "--state-dir", self.state, "-v"], stderr=log,
                                      stdout=subprocess.DEVNULL)
        until(self.answers, lambda: f"the agent does not answer: {self.said()}")
        return self

    def answers(self):
        if self.p.poll() is not None:
            raise Failed(f"the agent ended: {self.said()}")
        try:
            return self.get("/v1/cgroups")[0] == 200
        except (OSError, ValueError, http.client.HTTPException):
            return False

    def reload(self, more):
        self.more = more
        self.write()
        self.p.send_signal(signal.SIGHUP)
        until(lambda: "configuration read again" in self.said(), lambda: f"no reload: {self.said()}")
        until(self.answers, lambda: f"the agent does not answer: {self.said()}")

    def get(self, target, accept="", body=None):
        c = Unix(self.socket)
        if target.startswith("/v1/audit"):
            body = AUDIT
        try:
            c.request("POST" if target.startswith(("/v1/reading", "/v1/audit")) else "GET", target, body, {"Accept": accept} if accept else {})
            r = c.getresponse()
            if not target.startswith("/v1/stream"):
                return r.status, r.read()
            data = b""
            while data.count(SHOWN) < 4 and len(data) < 1 << 24:    # a few intervals, however long they take
                more = r.read1(1 << 16)
                if not more:
                    break
                data += more
            return r.status, data
        finally:
            c.close()

    def end(self):
        if self.p and self.p.poll() is None:
            self.p.terminate()
            if self.p.wait(60):
                raise Failed(f"exit status {self.p.returncode}: {self.said()}")

    def kill(self):
        if self.p and self.p.poll() is None:
            self.p.kill()
            self.p.wait()

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()[-2500:].replace("\n", "|")


LEAKS = []


def look(what, data, named=True):
    """In the bytes, and in what is base64 in them. What it finds it keeps for done()."""
    texts = [gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data]
    data = texts[0]
    for m in re.finditer(rb"[A-Za-z0-9+/]{24,}={0,2}", data):
        try:
            texts.append(base64.b64decode(m.group()))
        except ValueError:
            pass
    for t in texts:
        at = t.find(HIDDEN)
        if at >= 0:
            LEAKS.append(f"{what}: {t[max(0, at - 30):at + 20]!r}")
            break
    if named and not any(SHOWN in t for t in texts):
        raise Failed(f"{what}: has nothing of what is selected in {len(data)} bytes")


def done():
    found = LEAKS[:]
    LEAKS.clear()
    if found:
        raise Failed(f"{len(found)} leaks: " + "; ".join(found))


def read(path):
    with open(path, "rb") as f:
        return f.read()


def known_formats():
    """A format that this test does not know is one that nobody has looked at."""
    p = subprocess.run([JOULED, "--check", "-o", "nosuch=null:"], capture_output=True, text=True, check=False)
    words = set(re.findall(r"[a-z0-9-]+", p.stderr.split("expected", 1)[1])) - {"or"} if "expected" in p.stderr else set()
    if words != FORMATS:
        raise Failed(f"formats {sorted(words)}; this test knows {sorted(FORMATS)}: {p.stderr}")


def known_routes(agent):
    answer = json.loads(agent.get("/nosuch")[1])["error"]
    words = set(re.findall(r"/[a-z0-9/]+", answer.split("try", 1)[1])) | {"/"}
    if words != set(ROUTES):
        raise Failed(f"routes {sorted(words)}; this test knows {sorted(ROUTES)}")


def kept_pushes(path):
    """A receiver of pushes that adds every body to a file; its URL. Gzip is undone; snappy leaves a name whole where it stands
    first."""
    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with open(path, "ab") as f:
                f.write(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/api/v1/write"


def places(folder, option):
    """An output of each format to a file, in every way it can be written: {name: (line of YAML, file)}."""
    made = {}
    for name, more in ([("hwpc", ""), ("power", ""), ("vjoule", ""), ("openmetrics", ""), ("table", ""), ("snapshot", ""), ("influx", ""),
                        ("power-csv", ", file-format: csv"), ("vjoule-v0.2", ', dialect: "v0.2"')] +
                       [(f"zico-{p}", f", profile: {p}") for p in PROFILES]):
        path = os.path.join(folder, f"out.{name}")
        made[name] = (f'format: {name.split("-")[0]}, to: "file://{path}"{more}{option}', path)
    for name in ("remote-write", "otlp", "otlp-traces", "pprof", "otlp-profiles"):
        pushed = os.path.join(folder, f"out.{name}")
        made[name] = (f'format: {name}, to: "{kept_pushes(pushed)}"{option}', pushed)
    files = os.path.join(folder, "out.pprof-files")
    made["pprof-files"] = (f'format: pprof, to: "file://{files}"{option}', files)
    csv = os.path.join(folder, "out.csv")
    made["hwpc-csv"] = (f'format: hwpc, to: "file://{csv}", file-format: csv{option}', csv)
    return made


def wait_all(agent, made, load):
    """Until each has something of what is selected, and something more has happened since."""
    load.wait_runs(3)

    def there(path):
        paths = [os.path.join(path, x) for x in os.listdir(path)] if os.path.isdir(path) else [path] if os.path.exists(path) else []
        return any(SHOWN in read(x) for x in paths)
    for name, (_, path) in made.items():
        if name.startswith("pprof") or name == "otlp-profiles":    # its minute ends with the agent
            continue
        until(lambda path=path: there(path), lambda name=name: f"{name}: nothing of what is selected; {agent.said()}")
    load.wait_runs(3)


def look_at_files(made):
    for name, (_, path) in made.items():
        if not os.path.isdir(path):
            look(name, read(path))
            continue
        for x in os.listdir(path):
            look(f"{name} {x}", read(os.path.join(path, x)), x.endswith(".gz") or x == "core.csv" and SHOWN in read(os.path.join(path, x)))


def look_at_routes(agent):
    known_routes(agent)
    for route, targets in ROUTES.items():
        for target, accept in targets:
            if (route, accept) == ("/v1/snapshot", "text/plain"):   # a table has no rows of cgroups that rested in its interval
                until(lambda t=target, a=accept: SHOWN in agent.get(t, a)[1], "no interval in which what is shown worked")
            status, data = agent.get(target, accept)
            if status != 200:
                raise Failed(f"{target}: {status} {data[:200]!r}")
            look(f"{target} {accept}", data, route not in NAMELESS)
    target = f"/v1/cgroups{cgroup_path()}/a-{HIDDEN.decode()}"
    if agent.get(target)[0] != 404:
        LEAKS.append(f"{target} is there: {agent.get(target)[1][:200]!r}")
    for target in (f"/v1/spans?cgroup=/**{HIDDEN.decode()}*/**", f"/v1/history?cgroup={cgroup_path()}/a-{HIDDEN.decode()}",
                   f"/v1/reading?below={cgroup_path()}/a-{HIDDEN.decode()}",
                   f"/v1/profile?format=folded&cgroup={cgroup_path()}/a-{HIDDEN.decode()}"):
        data = agent.get(target)[1]
        look(target, data, False)


def look_at_state(agent):
    """History, spool, identity."""
    for folder, _, files in os.walk(agent.state):
        for x in files:
            look(os.path.join(folder, x), read(os.path.join(folder, x)), False)


def cgroup_path():
    with open("/proc/mounts", encoding="utf-8") as f:
        mount = max((m[1] for m in map(str.split, f) if m[2] == "cgroup2" and CGROUP.startswith(m[1] + "/")), key=len)
    return CGROUP[len(mount):]


class Recorder:
    """Whatever connects: bytes of a listening output."""
    def __init__(self, address):
        self.address, self.data = address, b""

    def read(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(30)
            until(lambda: os.path.exists(self.address), f"{self.address} is not there")
            s.connect(self.address)
            while len(self.data) < 20000:
                more = s.recv(1 << 16)
                if not more:
                    break
                self.data += more
        return self.data


def wire_of(c):
    """All that came to a collector, of every request."""
    return b"".join(c.bodies)


class Listening(collector.Collector):
    """Keeps every body."""
    def __init__(self, profile):
        super().__init__(profile)
        self.bodies = []
        keep, real = self.bodies, collector.Handler.read_body

        class Kept(collector.Handler):
            def read_body(self):
                body = real(self)
                self.server.kept.append(body or b"")
                return body
        self.handler, self.keep = Kept, keep

    def start(self):
        super().start()
        self.server.RequestHandlerClass, self.server.kept = self.handler, self.keep
        return self


def globally():
    """cgroups.exclude: every format, every route, the page's port, and what is kept on disk for later."""
    known_formats()
    load = Load()
    folder = os.path.join(WORK, "globally")
    os.makedirs(folder, exist_ok=True)
    made, c = places(folder, ""), Listening("zico-1.90").start()
    listening = os.path.join(folder, "snapshot.sock")
    outputs = [line for line, _ in made.values()]
    outputs += [f'format: zico, to: "http://127.0.0.1:{c.port}"', 'format: zico, to: "http://127.0.0.1:1"',
                f'format: snapshot, to: "unix-listen://{listening}"',
                f'format: openmetrics, to: "http-listen://127.0.0.1:0", port-file: {folder}/port']
    agent = Agent("globally", f"cgroups: {{ exclude: [{EXCLUDE}] }}", outputs)
    try:
        agent.start()
        wait_all(agent, made, load)
        until(lambda: SHOWN in b"".join(base64.b64decode(b) if not b.startswith(b"{") else b for b in c.keep),
              lambda: f"the collector got nothing: {agent.said()}")
        look_at_routes(agent)
        look("snapshot to a socket", Recorder(listening).read())
        h = http.client.HTTPConnection("127.0.0.1", int(read(f"{folder}/port")), timeout=30)
        h.request("GET", "/metrics")
        look("http-listen", h.getresponse().read())
        agent.end()
        look_at_files(made)
        for body in c.keep:
            look("a request to the collector", body, False)
        look_at_state(agent)
        done()
    finally:
        agent.kill()
        c.stop()
        load.stop()


def knows_hidden(agent, targets):
    return all(HIDDEN in agent.get(t)[1] for t in targets)


def excluded_later():
    """Left out by a reload, and at the next start: what was known before is not told either, and what waits for a collector
    that was away is not sent."""
    targets = ("/v1/spans?limit=100000", "/v1/cgroups?limit=1000", "/v1/snapshot", "/v1/history?limit=1000", "/v1/profile?format=folded",
               "/metrics")
    load, c = Load(), Listening("zico-2")
    c.start()
    c.stop()
    agent = Agent("excluded-later", "", [f'format: zico, to: "http://127.0.0.1:{c.port}"',
                                        f'format: openmetrics, to: "file://{WORK}/excluded-later/metrics"'])
    try:
        agent.start()
        for exclude in (None, f"cgroups: {{ exclude: [{EXCLUDE}] }}"):
            if exclude:                # at the next start: what the state remembers
                agent.end()
                c.stop()
                agent.more = ""
                agent.start()
            load.wait_runs(5)
            until(lambda: knows_hidden(agent, targets), lambda: f"not known at first: {agent.said()}")
            if exclude:
                agent.end()
                agent.more = exclude
                agent.start()
            else:
                agent.reload(f"cgroups: {{ exclude: [{EXCLUDE}] }}")
            load.wait_runs(3)
            look_at_routes(agent)
            begun = len(c.keep)
            c.start()
            until(lambda: "are not sent" in agent.said(), lambda: f"nothing of the spool was left out: {agent.said()}")
            until(lambda: SHOWN in b"".join(c.keep[begun:]), lambda: f"the collector got nothing: {agent.said()}")
        agent.end()
        for body in c.keep:
            look("a request to the collector", body, False)
        done()
    finally:
        agent.kill()
        c.stop()
        load.stop()


def by_output():
    """cgroups= of an output, of every format that takes it; what cannot is refused."""
    load = Load()
    folder = os.path.join(WORK, "by-output")
    os.makedirs(folder, exist_ok=True)
    made, c = places(folder, f", cgroups: [{ONLY}]"), Listening("zico-2").start()
    agent = Agent("by-output", "", [line for line, _ in made.values()] +
                  [f'format: zico, to: "http://127.0.0.1:{c.port}", cgroups: [{ONLY}]',
                   f'format: zico, to: "http://127.0.0.1:1", cgroups: [{ONLY}]'])
    try:
        agent.start()
        wait_all(agent, made, load)
        until(lambda: SHOWN in b"".join(c.keep), lambda: f"the collector got nothing: {agent.said()}")
        agent.end()
        look_at_files(made)
        for body in c.keep:
            look("a request to the collector", body, False)
        for x in os.listdir(agent.state):
            if x.endswith(".spool"):
                for y in os.listdir(os.path.join(agent.state, x)):
                    look(f"{x}/{y}", read(os.path.join(agent.state, x, y)), False)
        for option in ("openmetrics=http-listen://127.0.0.1:0?cgroups=/a", "snapshot=vsock-listen://any:1?cgroups=/a",
                       f"snapshot=unix-listen://{folder}/s?guest=/a&cgroups=/b"):
            p = subprocess.run([JOULED, "--check", "-o", option], capture_output=True, text=True, check=False)
            if p.returncode != 2 or p.stderr.count("\n") != 1:
                raise Failed(f"{option}: {p.returncode} {p.stderr}")
        done()
    finally:
        agent.kill()
        c.stop()
        load.stop()


if __name__ == "__main__":
    sys.exit(cases((globally, by_output, excluded_later), sys.argv[4:], 1, "privacy-"))
