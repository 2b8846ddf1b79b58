#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An agent with ThreadSanitizer and all that its threads do at once. tsan.py JOULED_TSAN WORK CGROUP [SECONDS]: CGROUP is the
folder of an empty cgroup; WORK/fn: a program that calls work(); CPU in the environment: the file by which one goes and comes. "ok NAME" or "FAIL NAME: reason"; what the sanitizer says of a data race is a failure."""
import http.client
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
from zico_wait import Failed, PATIENCE, cases, until  # noqa: E402

JOULED, WORK, CGROUP = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
SECONDS = float(sys.argv[4]) if len(sys.argv) > 4 else 12
B = os.path.abspath(os.environ.get("B", "build"))
SOCK, CPU = os.path.join(WORK, "sock"), os.environ.get("CPU", "")
ROUTES = ["/", "/v1/status", "/v1/snapshot", "/v1/cgroups?limit=5&sort=energy", "/v1/hwpc", "/v1/power", "/metrics",
          "/v1/history?since=-5s", "/v1/devices", "/v1/spans?limit=100", "/v1/profile?since=-30s", "POST /v1/reading", "/v1/cgroups/"]
# a shadow of every byte lies at fixed addresses: not everywhere between them
TSAN = ["setarch", "-R"]
ENV = dict(os.environ, TSAN_OPTIONS="exitcode=0 history_size=4 second_deadlock_stack=1")


def said(name):
    with open(os.path.join(WORK, name + ".err"), encoding="utf-8", errors="replace") as f:
        return f.read()


def start(name, *argv):
    with open(os.path.join(WORK, name + ".err"), "ab") as err, open(os.path.join(WORK, name + ".out"), "ab") as out:
        return subprocess.Popen([*TSAN, JOULED, "--state-dir", os.path.join(WORK, name + ".state"), *argv], stdout=out, stderr=err,
                                env=ENV)


def races(name):
    """What the sanitizer told: the places of each report, shortly."""
    reports = re.split(r"={18}\n", said(name))
    out = []
    for r in reports:
        if "WARNING: ThreadSanitizer" not in r:
            continue
        kind = re.search(r"ThreadSanitizer: ([a-z -]+)", r).group(1).strip()
        frames = re.findall(r"#[01] (\w+) [^\n]*?([\w.]+\.[ch]:\d+)", r)
        out.append(f"{kind}: {' < '.join(f'{f} {at}' for f, at in frames[:6])}")
    return out


class SanitizerFault(Failed):
    """The sanitizer of gcc 12 crashed, which it does on a busy machine (MetaMap::AllocBlock, its table of allocated blocks). The
    report of a crash of the agent has frames, this one has none."""


def judge(name, p, statuses=(0,)):
    p.wait(PATIENCE)
    found = races(name)
    if found:
        raise Failed(f"{len(found)} reports in {name}.err: {' | '.join(sorted(set(found))[:8])}")
    if p.returncode not in statuses:
        fault = said(name).partition("ThreadSanitizer:DEADLYSIGNAL")[2]
        if (fault or p.returncode == -signal.SIGSEGV) and not re.search(r"^ +#0 ", fault, re.M):
            raise SanitizerFault(f"the sanitizer crashed: exit status {p.returncode}: {' '.join(fault.split())[:300]}")
        raise Failed(f"exit status {p.returncode}: {' '.join(fault.split())[:1500] or said(name)[-400:]}")


class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(SOCK)


def ask(route):
    """The status of an answer; 0 where there was none."""
    method, path = route.split(" ") if " " in route else ("GET", route)
    c = Unix("localhost", timeout=20)
    try:
        c.request(method, path)
        r = c.getresponse()
        r.read()
        return r.status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        c.close()


class Doers:
    """Functions that are called again and again until the end, each by a thread; how often each has come round."""
    def __init__(self, *functions):
        self.ended, self.rounds = threading.Event(), [0] * len(functions)
        self.threads = [threading.Thread(target=self.run, args=(i, f), daemon=True) for i, f in enumerate(functions)]
        for t in self.threads:
            t.start()

    def run(self, i, function):
        while not self.ended.is_set():
            function()
            self.rounds[i] += 1

    def end(self):
        self.ended.set()
        for t in self.threads:
            t.join(PATIENCE)


def read_some(family, address, wanted=20000):
    """A client that reads so much and leaves."""
    s = socket.socket(family)
    s.settimeout(3)
    try:
        s.connect(address)
        while wanted > 0:
            got = len(s.recv(4096))
            if not got:
                break
            wanted -= got
    except OSError:
        time.sleep(0.05)
    s.close()


def stream():
    c = Unix("localhost", timeout=3)
    try:
        c.request("GET", "/v1/stream?interval=20ms&format=json")
        r = c.getresponse()
        r.read(30000)
    except (OSError, http.client.HTTPException):
        pass
    c.close()


class Receiver:
    """Takes all that comes over TCP or a Unix socket, and cuts the connection now and then."""
    def __init__(self, family, address):
        self.s = socket.socket(family)
        self.s.bind(address)
        self.s.listen(8)
        self.s.settimeout(0.2)
        self.bytes = 0

    def take(self):
        try:
            c, _ = self.s.accept()
        except OSError:
            return
        c.settimeout(2)
        try:
            for _ in range(30):
                got = len(c.recv(65536))
                if not got:
                    break
                self.bytes += got
        except OSError:
            pass
        c.close()


def work():
    """Processes and cgroups that come and go, some with calls of a probed function."""
    sub = os.path.join(CGROUP, f"sub-{threading.get_native_id()}")
    try:
        os.mkdir(sub)
        subprocess.run(["sh", "-c", 'echo $$ >"$0/cgroup.procs"; for i in 1 2 3; do "$1"; done; (exit 3)', sub, os.path.join(WORK, "fn")],
                       check=False)
        for _ in range(200):
            try:
                os.rmdir(sub)
                break
            except OSError:
                time.sleep(0.005)
    except OSError:
        pass


def hotplug():
    """A CPU goes for a moment and comes back."""
    for value, pause in (("0", 0.15), ("1", 0.5)):
        try:
            with open(CPU, "w", encoding="ascii") as f:
                f.write(value)
        except OSError:
            pass
        time.sleep(pause)


def port_of(name):
    try:
        with open(os.path.join(WORK, name), encoding="ascii") as f:
            return int(f.read())
    except (OSError, ValueError):
        return 0


def config(turn, tcp, unix, zico):
    """The configuration of the turn-th reload: some outputs stay, some change, some come and go."""
    lines = [f"interval: {100 + 50 * (turn % 2)}ms", f"socket: {{ path: {SOCK}, access: {{ others: coarse }} }}",
             f"web: {{ listen: 127.0.0.1:0, token-file: {WORK}/token }}",
             f"gpu: {{ library: {B}/gpu/libnvidia-ml.so.1, pace: 20ms }}",
             "meters: [ { type: command, command: [sh, -c, 'while :; do echo d0c0=12.5; sleep 0.05; done'] } ]",
             f"spans: {{ processes: true, functions: [ {{ binary: {WORK}/fn, symbol: work }} ] }}",
             f"cgroups: {{ exclude: {['[]', '[/none]'][turn % 2]} }}",
             f"formula: {['share', 'model'][turn % 2]}", "profile: { frequency: 19, cgroups: [/, '/*'] }",
             "price: 0.30", "carbon: 400", "outputs:"]
    outs = [("hwpc", f"file://{WORK}/hwpc.json"), ("hwpc", f"file://{WORK}/csv?file-format=csv"), ("power", f"file://{WORK}/power-{turn % 2}.json"),
            ("snapshot", f"file://{WORK}/rec.cbor"), ("table", "stdout:"), ("openmetrics", f"file://{WORK}/metrics.txt?interval=250ms"),
            ("hwpc", f"tcp://localhost:{tcp}"), ("power", f"unix://{unix}"), ("power", "tcp://127.0.0.1:1"), ("null", "null:"),
            ("vjoule", f"tcp-listen://127.0.0.1:0?port-file={WORK}/vjoule.port&interval=50ms"),
            ("snapshot", f"unix-listen://{WORK}/snap.sock?queue=65536"), ("snapshot", f"unix-listen://{WORK}/guest.sock?guest={cgroup_path()}"),
            ("openmetrics", f"http-listen://127.0.0.1:0?port-file={WORK}/metrics.port"),
            *[(fmt, f"http://127.0.0.1:1/x?token-file={WORK}/token") for fmt in ("otlp", "influx", "remote-write", "pprof")],
            ("otlp-traces", f"http://127.0.0.1:{zico}"), ("pprof", f"file://{WORK}"),
            ("zico", f"http://127.0.0.1:{zico}"), ("zico", "http://127.0.0.1:1"), ("zico", f"file://{WORK}/traces-{turn % 2}.zico")]
    path = os.path.join(WORK, "all.yaml")
    with open(path + ".new", "w", encoding="ascii") as f:
        f.write("\n".join(lines + [f'- {{ format: {fmt}, to: "{to}" }}' for fmt, to in outs]) + "\n")
    os.rename(path + ".new", path)
    return path


def cgroup_path():
    with open("/proc/mounts", encoding="utf-8") as f:
        mount = max((m[1] for m in map(str.split, f) if m[2] == "cgroup2" and CGROUP.startswith(m[1] + "/")), key=len)
    return CGROUP[len(mount):]


def everything():
    """Once more, and anew, where the sanitizer crashed."""
    try:
        all_at_once()
    except SanitizerFault as e:
        print(f"note tsan-everything: {e}; once more", flush=True)
        for name in os.listdir(WORK):
            if name.startswith(("all.", "guest.", "receiver.", "rec.")):
                shutil.rmtree(os.path.join(WORK, name)) if name.endswith(".state") else os.remove(os.path.join(WORK, name))
        all_at_once()


def all_at_once():
    """All outputs, all routes from several clients, history, spans, a collector, a guest, reloads."""
    os.makedirs(os.path.join(WORK, "csv"), exist_ok=True)
    tcp, unix = Receiver(socket.AF_INET, ("127.0.0.1", 0)), Receiver(socket.AF_UNIX, os.path.join(WORK, "receiver.sock"))
    c = collector.Collector("zico-1.90").start()
    args = (tcp.s.getsockname()[1], os.path.join(WORK, "receiver.sock"), c.port)
    p = start("all", "-c", config(0, *args))
    doers = guest = None
    try:
        until(lambda: ask("/v1/status") == 200 or p.poll() is not None, lambda: f"no answer: {said('all')[-500:]}")
        guest = start("guest", "--socket", "none", "-i", "100ms", "--host", f"unix://{WORK}/guest.sock", "-o", f"power=file://{WORK}/guest.json")
        answers = []
        doers = Doers(tcp.take, unix.take, work, work, stream, *([hotplug] if CPU else []),
                      lambda: read_some(socket.AF_INET, ("127.0.0.1", port_of("vjoule.port"))),
                      lambda: read_some(socket.AF_UNIX, os.path.join(WORK, "snap.sock")),
                      *[lambda i=i: answers.append(ask(ROUTES[(len(answers) + i) % len(ROUTES)])) for i in range(3)])
        begun, turn = time.monotonic(), 0
        while time.monotonic() - begun < SECONDS and p.poll() is None:
            time.sleep(SECONDS / 8)
            turn += 1
            config(turn, *args)
            p.send_signal(signal.SIGHUP)
            if turn == 4:
                c.restart()
        if p.poll() is not None:
            judge("all", p, ())
        until(lambda: all(doers.rounds) or p.poll() is not None, lambda: f"not all was done: {doers.rounds}")
        until(lambda: c.traces or p.poll() is not None, lambda: f"no trace has come: {said('all')[-500:]}")
        until(lambda: os.path.exists(f"{WORK}/guest.json") or guest.poll() is not None, lambda: f"guest: {said('guest')[-300:]}")
        guest.terminate()
        p.terminate()
        judge("guest", guest, (0, 3))
        judge("all", p, (0, 3))
        if tcp.bytes == 0 or unix.bytes == 0 or answers.count(200) < len(ROUTES):
            raise Failed(f"too little happened: {tcp.bytes} and {unix.bytes} bytes, {answers.count(200)} answers")
    finally:
        if doers:
            doers.end()
        c.stop()
        for agent in (p, guest):
            if agent:
                agent.kill()
                agent.wait()


def replayed():
    """The recording of that to a listener, a socket and files."""
    until(lambda: os.path.exists(f"{WORK}/rec.cbor"), "no recording", 5)
    sock = os.path.join(WORK, "replay.sock")
    p = start("replay", "--replay", f"{WORK}/rec.cbor", "-o", f"vjoule=unix-listen://{sock}", "-o", f"power=file://{WORK}/replay.json",
              "-o", "table=stdout:")
    try:
        until(lambda: os.path.exists(sock) or p.poll() is not None, "the replay does not listen")
        read_some(socket.AF_UNIX, sock, 1 << 40)
        judge("replay", p)
    finally:
        p.kill()


if __name__ == "__main__":
    sys.exit(cases([everything], [], 1, "tsan-") | cases([replayed], [], 1, "tsan-"))
