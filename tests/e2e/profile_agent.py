#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The continuous profile of an agent, judged with code that protoc made of profile.proto and by the agent's own history.
profile_agent.py JOULED WORK CGROUP FOLDER_OF_PB2 LOAD [CASE]...: LOAD is profile_load.c, CGROUP a directory of cgroup2."""
import gzip
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "zico"))
sys.path.insert(0, sys.argv[4])
import otlp_profiles  # noqa: E402 pylint: disable=wrong-import-position
import otlp_profiles_pb2  # noqa: E402 pylint: disable=wrong-import-position
import profile_pb2  # noqa: E402 pylint: disable=wrong-import-position
from zico_wait import Failed, cases, until  # noqa: E402

JOULED, WORK, CGROUP, LOAD = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[5]


NO_ROWS = {"idle", "idle-power", "residual", "other", "machine"}


def cgroup_path():
    with open("/proc/mounts", encoding="utf-8") as f:
        mount = max((m[1] for m in map(str.split, f) if m[2] == "cgroup2" and CGROUP.startswith(m[1] + "/")), key=len)
    return CGROUP[len(mount):]


def burn(below, ms=600000):
    """A program of known functions in a cgroup of its own."""
    path = os.path.join(CGROUP, below)
    os.makedirs(path, exist_ok=True)

    def enter():
        with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as f:
            f.write(str(os.getpid()))
    return subprocess.Popen([LOAD, str(ms)], preexec_fn=enter, cwd="/")


def put_out(p, below):
    p.kill()
    p.wait()
    until(lambda: removed(os.path.join(CGROUP, below)), f"{below} stays")


def removed(path):
    try:
        os.rmdir(path)
    except OSError:
        return not os.path.exists(path)
    return True


class Agent:
    def __init__(self, name, more, state=None):
        self.dir = os.path.join(WORK, name)
        os.makedirs(self.dir, exist_ok=True)
        os.chmod(self.dir, 0o755)
        self.socket, self.log = os.path.join(self.dir, "jouled.sock"), os.path.join(self.dir, "jouled.err")
        self.state = state or os.path.join(self.dir, "state")
        self.chunks = os.path.join(self.state, "profile")
        self.config = os.path.join(self.dir, "jouled.yaml")
        self.write(more)
        self.p = None

    def write(self, more):
        with open(self.config, "w", encoding="ascii") as f:
            f.write(f"socket: {{ path: {self.socket}, access: {{ others: coarse }} }}\n{more}\n")

    def start(self):
        with open(self.log, "ab") as log:
            self.p = subprocess.Popen([JOULED, "-c", self.config, "--state-dir", self.state], stderr=log,
                                      stdout=subprocess.DEVNULL)
        until(self.answers, lambda: f"the agent does not answer: {self.said()}")
        return self

    def answers(self):
        if self.p.poll() is not None:
            raise Failed(f"the agent ended: {self.said()}")
        return self.get("/v1/profile")[0] == 200

    def get(self, target, user=None):
        word = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        p = subprocess.run([*word, "curl", "-s", "-m", "120", "-w", "%{http_code}", "--unix-socket", self.socket, "http://j" + target],
                           capture_output=True, check=False)
        return int(p.stdout[-3:] or 0), p.stdout[:-3]

    def want(self, target):
        status, data = self.get(target)
        if status != 200:
            raise Failed(f"{target}: {status} {data[:300]!r}; {self.said()}")
        return data

    def end(self, how=signal.SIGTERM):
        if self.p and self.p.poll() is None:
            self.p.send_signal(how)
            self.p.wait(120)
        return self.p.returncode if self.p else 0

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()[-2500:].replace("\n", "|")


class Profile:
    """Sums of a message by cgroup and value type, and by function for `energy`."""
    def __init__(self, data):
        p = profile_pb2.Profile()
        p.ParseFromString(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        text = p.string_table
        self.types = [text[t.type] for t in p.sample_type]
        self.since, self.until = p.time_nanos, p.time_nanos + p.duration_nanos
        functions = {f.id: text[f.name] for f in p.function}
        places = {x.id: [functions[y.function_id] for y in x.line] for x in p.location}
        mappings = {m.id for m in p.mapping}
        self.rows, self.functions, self.samples = {}, {}, 0
        for x in p.location:
            if x.mapping_id and x.mapping_id not in mappings:
                raise Failed(f"location {x.id} has no mapping {x.mapping_id}")
        for s in p.sample:
            labels = {text[x.key]: text[x.str] or x.num for x in s.label}
            row = self.rows.setdefault(labels["cgroup"], dict.fromkeys(self.types, 0))
            for name, v in zip(self.types, s.value, strict=True):
                row[name] += v
            energy = s.value[self.types.index("energy")]
            self.samples += s.value[self.types.index("samples")]
            for name in {f for i in s.location_id for f in places[i]}:
                self.functions[name] = self.functions.get(name, 0) + energy

    def total(self, kind="energy"):
        return sum(r[kind] for r in self.rows.values())


def folded_total(data):
    return sum(int(line.rsplit(b" ", 1)[1]) for line in data.splitlines())


def ledger(agent, since, till):
    """By row and domain, what the history has of exactly that time."""
    answer = {}

    def there():
        answer.update(json.loads(agent.want(f"/v1/history?since={since / 1e9 - 5:.6f}&until={till / 1e9 + 60:.6f}&limit=1000")))
        ends = [p[0] for s in answer["series"] for p in s["points"]]
        return ends and max(ends) >= till
    until(there, lambda: f"the history has no point of {till}: {agent.said()}")
    rows = {}
    for s in answer["series"]:
        for p in s["points"]:
            if since < p[0] <= till:
                sums = rows.setdefault(s["cgroup"], {})
                for d, v in zip(answer["domains"], p[3], strict=True):
                    sums[d] = sums.get(d, 0) + v
    return rows, answer["domains"]


def closes():
    """Each row's stacks and [no sample] are its row of the ledger, to the microjoule; the forms say the same; rights."""
    load = burn("a")
    agent = Agent("closes", "profile: { frequency: 199 }\ncgroups: { include: [\"/**\"] }")
    try:
        agent.start()
        until(lambda: Profile(agent.want("/v1/profile")).functions.get("work_large", 0) > 0, lambda: f"no samples; {agent.said()}")
        for _ in range(3):
            p = Profile(agent.want("/v1/profile"))
            rows, domains = ledger(agent, p.since, p.until)
            got = {n: {d: r[d] for d in domains} for n, r in p.rows.items()}
            # what the history has no room for is in its `other`; ours and the machine's own rows are there by name
            bad = [n for n, r in rows.items() if n not in NO_ROWS and any(r.values()) and got.get(n) != r]
            if bad or not {f"{cgroup_path()}/a", "/"} <= set(rows):
                raise Failed(f"{len(bad)} of {len(rows)} rows differ: {[(n, got.get(n), rows[n]) for n in bad[:3]]}")
        mine = f"{cgroup_path()}/a"

        def of_mine():
            return Profile(agent.want(f"/v1/profile?cgroup={mine}"))
        # fewer would put parts of 6, 3 and 1 tenths in another order by chance
        until(lambda: of_mine().samples >= 300, lambda: f"{of_mine().samples} samples; {agent.said()}")
        p = of_mine()
        if set(p.rows) != {mine} or not p.functions["work_large"] > p.functions["work_middle"] > p.functions["work_small"] > 0:
            raise Failed(f"{p.rows} {p.functions}")
        both = folded_total(agent.want("/v1/profile?format=folded")), Profile(agent.want("/v1/profile")).total()
        if not 0 < both[0] <= both[1]:      # an interval may lie between the two
            raise Failed(f"folded and pprof: {both}")
        for target, status in (("/v1/profile?format=svg", 400), ("/v1/profile?cgroup=x", 400), ("/v1/profile?since=5&until=4", 400),
                               ("/v1/profile?limit=1", 400), ("/v1/profile?since=-2h&until=-90m", 404),
                               ("/v1/profile?cgroup=/nosuch", 200)):
            if agent.get(target)[0] != status:
                raise Failed(f"{target}: {agent.get(target)}")
        if agent.get("/v1/profile", user=65534)[0] != 403:
            raise Failed(f"others: {agent.get('/v1/profile', user=65534)}")
    finally:
        put_out(load, "a")
        agent.end()


def survives():
    """What is on disk is there after a kill -9; broken files are left out and named; half written ones go."""
    load = burn("b")
    agent = Agent("survives", "profile: { frequency: 99 }\nhistory: off")
    try:
        agent.start()
        until(lambda: Profile(agent.want("/v1/profile")).functions.get("work_large", 0) > 0, lambda: f"no samples; {agent.said()}")
        if agent.end() != 0:
            raise Failed(f"exit status {agent.p.returncode}: {agent.said()}")
        chunk = os.listdir(agent.chunks)
        if len(chunk) != 1 or not re.fullmatch(r"\d+-\d+\.pb\.gz", chunk[0]):
            raise Failed(f"chunks: {chunk}")
        with open(os.path.join(agent.chunks, chunk[0]), "rb") as f:
            data = f.read()
        first = Profile(data)
        since, end = map(int, chunk[0].split(".")[0].split("-"))
        with open(os.path.join(agent.chunks, f"{since - 1}-{end - 1}.pb.gz"), "wb") as f:
            f.write(data[:len(data) // 2])
        with open(os.path.join(agent.chunks, "7-8.pb.gz.part"), "wb") as f:
            f.write(b"half")
        agent.start()
        if "7-8.pb.gz.part" in os.listdir(agent.chunks):
            raise Failed("a half written chunk stays")
        until(lambda: Profile(agent.want("/v1/profile")).samples > first.samples, lambda: f"nothing new; {agent.said()}")
        if "does not read" not in agent.said():
            raise Failed(f"a broken chunk is not named: {agent.said()}")
        agent.end(signal.SIGKILL)
        agent.start()
        again = Profile(agent.want(f"/v1/profile?until={end / 1e9:.9f}"))
        if (again.total(), again.samples) != (first.total(), first.samples):
            raise Failed(f"{again.total()} of {first.total()} uJ, {again.samples} of {first.samples} samples after a kill")
    finally:
        put_out(load, "b")
        agent.end()


def full_disk():
    """A full disk costs chunks, says so, and the agent goes on."""
    state = os.path.join(WORK, "tiny")
    os.makedirs(state)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tiny", state], check=True)
    agent = Agent("full", "profile: { frequency: 99 }\nhistory: off", state)
    try:
        agent.start()
        with open(os.path.join(state, "filler"), "wb", 0) as f:
            try:
                while f.write(b"x" * 4096):
                    pass
            except OSError:
                pass
        agent.want("/v1/profile?format=folded")
        agent.end()
        if "a minute is lost: No space left on device; " not in agent.said() or os.listdir(agent.chunks):
            raise Failed(f"{os.listdir(agent.chunks)}: {agent.said()}")
    finally:
        agent.end(signal.SIGKILL)
        agent.p.wait()
        subprocess.run(["umount", state], check=True)


class Receiver:
    """Keeps what is pushed: targets and bodies."""
    def __init__(self):
        got = self.got = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                got.append((self.path, dict(self.headers), body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.at = f"http://127.0.0.1:{self.server.server_port}"


def pushes():
    """Every chunk goes to a directory, to Pyroscope's /ingest with its times, and to another store; a reload leaves nothing out."""
    load, other = burn("c"), burn("d")
    r = Receiver()
    files = os.path.join(WORK, "pushed")
    outputs = (f'outputs:\n- {{ format: pprof, to: "file://{files}" }}\n- {{ format: pprof, to: "{r.at}/ingest?name=shop%7Benv%3Dtest%7D" }}\n'
               f'- {{ format: pprof, to: "{r.at}/store?tenant=x", cgroups: ["/**/c"] }}\n'
               f'- {{ format: otlp-profiles, to: "{r.at}" }}\n- {{ format: otlp-profiles, to: "{r.at}/part", cgroups: ["/**/c"] }}')
    agent = Agent("pushes", f"profile: {{ frequency: 99 }}\n{outputs}")
    try:
        agent.start()
        until(lambda: Profile(agent.want("/v1/profile")).functions.get("work_large", 0) > 0, lambda: f"no samples; {agent.said()}")
        agent.write(f"profile: {{ frequency: 99 }}\nprice: 0.5\n{outputs}")
        if agent.end() != 0:
            raise Failed(f"exit status {agent.p.returncode}: {agent.said()}")
        names = os.listdir(files)
        if len(names) != 1 or names != os.listdir(agent.chunks):
            raise Failed(f"{names} {os.listdir(agent.chunks)}")
        with open(os.path.join(files, names[0]), "rb") as f:
            want = Profile(f.read())
        ingest = [x for x in r.got if x[0].startswith("/ingest?")]
        store = [x for x in r.got if x[0] == "/store?tenant=x"]
        if len(ingest) != 1 or len(store) != 1:
            raise Failed(f"{[x[0] for x in r.got]}; {agent.said()}")
        q = dict(urllib.parse.parse_qsl(ingest[0][0].split("?", 1)[1]))
        if q != {"name": "shop{env=test}", "format": "pprof", "from": str(want.since // 10**9), "until": str(-(-want.until // 10**9))}:
            raise Failed(f"{q}")
        got = Profile(ingest[0][2])
        if (got.rows, got.since, got.until) != (want.rows, want.since, want.until):
            raise Failed("what was pushed is not what is in the file")
        part = Profile(store[0][2])
        mine = f"{cgroup_path()}/c"
        if part.rows.get(mine) != want.rows[mine] or f"{cgroup_path()}/d" in part.rows or f"{cgroup_path()}/d" not in want.rows:
            raise Failed(f"{sorted(part.rows)}")
        is_pushed_by_otlp(r.got, want, mine)
    finally:
        agent.end()
        put_out(load, "c")
        put_out(other, "d")


def is_pushed_by_otlp(got, file, mine):
    """OpenTelemetry's form has what the file has, each type of value by cgroup and energy by function; an output's part is its part."""
    for path, rows in (("/v1development/profiles", file.rows), ("/part", {r: v for r, v in file.rows.items() if r == mine or r[0] != "/"})):
        bodies = [x for x in got if x[0] == path]
        if len(bodies) != 1 or bodies[0][1]["Content-Type"] != "application/x-protobuf":
            raise Failed(f"{[x[0] for x in got]}")
        with open(os.path.join(WORK, "otlp-document"), "wb") as f:   # for another decoder
            f.write(bodies[0][2])
        resource, types, times = otlp_profiles.read(otlp_profiles_pb2, bodies[0][2])
        if resource["service.name"] != "jouled" or not resource["host.name"] or times != (file.since, file.until - file.since):
            raise Failed(f"{resource} {times}")
        if types[0][0] != "energy" or sorted(t[0] for t in types) != sorted(file.types):
            raise Failed(f"{[t[0] for t in types]} of {file.types}")
        for name, unit, found, functions in types:
            if unit != {"samples": "count", "cpu": "nanoseconds"}.get(name, "microjoules"):
                raise Failed(f"{name} in {unit}")
            if found != {r: v[name] for r, v in rows.items() if v[name]}:
                raise Failed(f"{path} {name}: {found} of {rows}")
            if name == "energy" and path != "/part" and functions != {f: v for f, v in file.functions.items() if v}:
                raise Failed(f"functions of {path}: {functions} of {file.functions}")


def refuses():
    """Bad configurations, each with one line that says what to do."""
    for more, word in (("profile: { frequency: 5000 }", "frequency"), ("profile: { rate: 19 }", "did you mean|unknown"),
                       ("profile: { frequency: 19, cgroups: [x] }", "cgroups"),
                       (f'outputs:\n- {{ format: pprof, to: "file://{WORK}/x" }}', r"nothing is profiled; set profile"),
                       ('profile: { frequency: 19 }\noutputs:\n- { format: pprof, to: "http://h/ingest" }', "/ingest\\?name="),
                       ("profile: { frequency: 19 }\noutputs:\n- { format: pprof, to: \"tcp://h:1\" }", "pprof"),
                       ('outputs:\n- { format: otlp-profiles, to: "http://h" }', r"nothing is profiled; set profile"),
                       (f'profile: {{ frequency: 19 }}\noutputs:\n- {{ format: otlp-profiles, to: "file://{WORK}/x" }}', "otlp-profiles")):
        agent = Agent("refuses", more)
        p = subprocess.run([JOULED, "--check", "-c", agent.config], capture_output=True, text=True, check=False)
        if p.returncode != 2 or not re.search(word, p.stderr) or p.stderr.count("\n") != 1:
            raise Failed(f"{more}: {p.returncode} {p.stderr}")
    shutil.rmtree(os.path.join(WORK, "refuses"))


if __name__ == "__main__":
    sys.exit(cases((closes, survives, full_disk, pushes, refuses), sys.argv[6:], 1, "profile-agent-"))
