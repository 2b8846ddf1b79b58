#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real agent, real processes, strict collectors (tests/zico). zico_live.py JOULED WORK CGROUP [CASE]...: CGROUP is the folder
of an empty cgroup. "ok NAME" or "FAIL NAME: reason"."""
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "zico"))
import collector  # noqa: E402
from zico_wait import Failed, cases, certificate_of, until  # noqa: E402

JOULED, WORK, CGROUP = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3]
HERE = os.path.dirname(os.path.abspath(__file__))
AWAY = float(os.environ.get("AWAY", "30"))            # seconds without collector
MS, TICK = 10**6, 65536


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=120)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(self.path)


class Agent:
    """Traces of processes to outputs, a list of YAML lines."""
    def __init__(self, name, outputs):
        self.name, self.socket = name, os.path.join(WORK, name + ".sock")
        self.config, self.log = os.path.join(WORK, name + ".yaml"), os.path.join(WORK, name + ".err")
        with open(self.config, "w", encoding="ascii") as f:
            f.write(f"interval: 250ms\nspans: {{ processes: true }}\nhistory: {{ path: none }}\nsocket: {{ path: {self.socket} }}\n"
                    "outputs:\n" + "".join(f"- {{ format: zico, {o} }}\n" for o in outputs))
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.p = subprocess.Popen([JOULED, "-v", "-c", self.config, "--state-dir", os.path.join(WORK, self.name)], stderr=log)
        until(self.answers, lambda: f"the agent does not answer: {self.said()}")

    def ask(self, path):
        c = Unix(self.socket)
        try:
            c.request("GET", path)
            return json.loads(c.getresponse().read())
        finally:
            c.close()

    def answers(self):
        """Also looks for what is going on in the cgroup already."""
        if self.p.poll() is not None:
            raise Failed(f"the agent ended: {self.said()}")
        try:
            return "traces" in self.ask("/v1/spans?limit=1")
        except (OSError, ValueError, http.client.HTTPException):
            return False

    def kill(self):
        self.p.kill()
        self.p.wait()

    def end(self):
        self.p.terminate()
        if self.p.wait(60):
            raise Failed(f"exit status {self.p.returncode}: {self.said()}")

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()[-800:].replace("\n", "|")

    def refused(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return [line for line in f if "error: reload: " in line]

    def reload(self):
        """Returns when the configuration was read again."""
        def reloads():
            with open(self.log, encoding="utf-8", errors="replace") as f:
                return f.read().count("configuration read again")
        before = reloads()
        self.p.send_signal(signal.SIGHUP)
        until(lambda: reloads() > before, lambda: f"no reload: {self.said()}")


def nodes(tree):
    todo, out = [tree], []
    while todo:
        out.append(todo.pop())
        todo += out[-1]["children"]
    return out


def cgroup_path():
    """As traces name it: below the mount."""
    with open("/proc/mounts", encoding="utf-8") as f:
        mount = max((m[1] for m in map(str.split, f) if m[2] == "cgroup2" and CGROUP.startswith(m[1] + "/")), key=len)
    return CGROUP[len(mount):]


def in_cgroup(*argv):
    """argv as the root of a tree in the cgroup: its first exec is there."""
    return subprocess.Popen(["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', CGROUP, *argv])


def ours(c):
    path = cgroup_path()
    return [(u, e["tree"]) for u, e in c.traces.items() if e["tree"]["attrs"].get("CGROUP") == path]


def exit_text(status):
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)} {signal.Signals(os.WTERMSIG(status)).name}"
    return str(os.waitstatus_to_exitcode(status))


def check_process(n, know):
    """One record against what its parent saw of it."""
    bad, a = [], n["attrs"]
    if a["EXIT"] != exit_text(know["status"]):
        bad.append(f"EXIT {a['EXIT']}, not {exit_text(know['status'])}")
    if know["argv"] and a["CMDLINE"] != " ".join(know["argv"]):
        bad.append(f"CMDLINE {a['CMDLINE']!r}")
    if bool(n["exception"]) != bool(know["status"]):
        bad.append(f"exception {n['exception']}")
    if not know["argv"]:
        return bad
    took, waited = n["stop"] - n["start"], know["ended"] - know["begun"]
    if took > waited + TICK or took < waited * 0.5 - 100 * MS:   # a parent may be late on a loaded machine
        bad.append(f"{took} ns, its parent waited {waited}")
    cpu = sum(int(x["attrs"]["CPU_TIME_NS"]) for x in nodes(n))   # wait4 counts those that it has waited for
    if abs(cpu - know["cpu_ns"]) > max(know["cpu_ns"] / 100, 100_000 * len(nodes(n))):
        bad.append(f"CPU {cpu} ns, wait4 says {know['cpu_ns']}")
    return [f"{know['argv']}: {b}" for b in bad]


def check_causes(top):
    """The nested failure, and at the top that of the child that failed last."""
    by_cmd = {n["attrs"].get("CMDLINE"): n for n in nodes(top)}
    inner, outer = by_cmd.get("sh -c exit 7"), by_cmd.get("sh -c sh -c 'exit 7'; sleep 0.1; exit 5")
    segv = by_cmd.get("sh -c kill -SEGV $$")
    if not inner or not outer or inner not in outer["children"]:
        return ["the nested shell is not below its parent"]
    bad = []
    if outer["exception"]["cause"] != inner["exception"]["id"]:
        bad.append(f"cause {outer['exception']} of {inner['exception']}")
    if top["exception"]["cause"] != segv["exception"]["id"]:
        bad.append(f"cause {top['exception']} of {segv['exception']}")
    if [f[1] for f in inner["exception"]["stack"]] != ["sh", "sh", top["method"]]:
        bad.append(f"stack {inner['exception']['stack']}")
    return bad


def check_energy(agent, tops):
    """All spans of the cgroup, against what the ledger says of it."""
    doc = agent.ask("/v1/cgroups" + cgroup_path())
    total = sum(doc["cgroups"][0]["total"]["energy_uj"].values())
    spans = sum(int(n["attrs"].get("ENERGY_UJ", 0)) for t in tops for n in nodes(t))
    c = doc["cgroups"][0]
    residual = sum(d["total"]["residual_uj"] for d in doc["domains"])
    # by what the energy was split: other programs with counters may leave some to this agent, or none
    print(f"# energy of spans {spans} uJ, of the cgroup {total} uJ ({c['energy_quality']}, {residual} uJ of the machine residual) in "
          f"{c['total']['cpu_ns']} ns of CPU time; counted ({c['quality']}) {c['total']['counters']}")
    return [] if 0 < spans <= total else [f"spans have {spans} uJ, the cgroup {total}"]


def check_tree(agent, c, known):
    tops = [t for _, t in ours(c)]
    if len(tops) != 1:
        return [f"{len(tops)} traces of one tree"]
    top, bad = tops[0], []
    by_pid = {int(n["attrs"]["PID"]): n for n in nodes(top)}
    for know in known:
        n = by_pid.get(know["pid"])
        bad += check_process(n, know) if n else [f"no record of {know['argv']}"]
    if int(top["attrs"]["PID"]) != known[-1]["pid"] or len(top["children"]) != len(known) - 1:
        bad.append(f"root {top['attrs'].get('CMDLINE')} with {len(top['children'])} children")
    bad += check_causes(top) if not bad else []
    bad += check_energy(agent, tops)
    wrong = [x["reason"] for x in c.state.refusals + c.state.complaints]
    return bad + wrong[:3]


def trees():
    """One tree to a collector of each release, and to one behind TLS: shape, times, ends, causes, energy."""
    wanted = (("zico-1.90", "auto"), ("zico-1.90.3", "zico-1.90"), ("zico-1.90.6", "auto"), ("zico-2", "auto"),
              ("document", "document"))
    cs = [(p, collector.Collector(p).start(), option) for p, option in wanted]
    outputs = [f'to: "http://127.0.0.1:{c.port}", profile: {o}, endian: {"be" if p == "document" else "le"}' for p, c, o in cs]
    crt, pem = certificate_of("localhost", WORK)
    cs.append(("zico-1.90", collector.Collector("zico-1.90", cert=pem).start(), "auto"))
    agent = Agent("trees", [*outputs, f'to: "https://localhost:{cs[-1][1].port}", ca-file: {crt}'])
    try:
        log = os.path.join(WORK, "load.log")
        in_cgroup("python3", os.path.join(HERE, "zico_load.py"), log).wait()
        with open(log, encoding="ascii") as f:
            known = [json.loads(line) for line in f]
        for profile, c, _ in cs:
            until(lambda c=c: ours(c), lambda c=c: f"no trace; {agent.said()}; {c.state.refusals[:2]}")
            bad = check_tree(agent, c, known)
            if bad:
                raise Failed(f"{profile}: {len(bad)} differences: {'; '.join(bad[:5])}")
        until(lambda: agent.ask("/v1/status")["traces"]["handed_over"], "the status tells of no trace")
        agent.end()
    finally:
        agent.kill()
        for _, c, _ in cs:
            c.stop()


class Load(threading.Thread):
    """Short trees of two processes with a mark each, one after the other; marks: when each began and was waited for."""
    def __init__(self):
        super().__init__(daemon=True)
        self.ended, self.marks = threading.Event(), {}
        self.start()

    def run(self):
        rng = random.Random(1)
        while not self.ended.is_set():
            n, begun = len(self.marks), time.monotonic()
            in_cgroup("sh", "-c", f": mark-{n}; sh -c 'exit 2'; sleep {rng.random() * 0.05:.3f}; exit {n % 3}").wait()
            self.marks[f"mark-{n}"] = (begun, time.monotonic())

    def stop(self):
        self.ended.set()
        self.join()

    def within(self, begin, end):
        return {m for m, (b, e) in dict(self.marks).items() if b > begin and e < end}


def marks_of(tree):
    words = tree["attrs"].get("CMDLINE", "").split()
    return [w.rstrip(";") for w in words if w.startswith("mark-")]


def look(agent, shown, end):
    """Until then, collects the marks of what the agent has handed over; it keeps some of the last ones only."""
    while True:
        answer = agent.ask("/v1/spans?limit=1000&cgroup=" + cgroup_path())
        shown.update(w.rstrip(";") for t in answer["traces"] for w in t["spans"][0].get("cmdline", "").split())
        if time.monotonic() > end:
            return
        time.sleep(0.5)


def settled(agent, load, shown, since):
    """The marks of a time that are on disk: the agent has shown their traces, and none waits in its memory."""
    marks = load.within(since, time.monotonic())
    until(lambda: look(agent, shown, 0) or marks <= shown,
          lambda: f"{len(marks - shown)} of {len(marks)} traces do not show: {sorted(marks - shown)[:5]}; {agent.said()}")
    now = time.monotonic()
    until(lambda: drained(agent, now), "the queue in memory stays")
    return marks


def drained(agent, since):
    """The status is told anew each second."""
    return time.monotonic() - since > 2 and agent.ask("/v1/status")["outputs"][0]["queued_documents"] == 0


def seen(c):
    """Of each mark the uuids of its traces."""
    found = {}
    for u, t in ours(c):
        for m in marks_of(t):
            found.setdefault(m, set()).add(u)
    return found


def exactly_once(c, must, agent):
    until(lambda: must <= set(seen(c)), lambda: f"{len(must - set(seen(c)))} of {len(must)} are missing: "
          f"{sorted(must - set(seen(c)))[:5]}; {agent.said()}", 120 + 2 * AWAY)
    found = seen(c)
    twice = [m for m, uuids in found.items() if len(uuids) > 1]
    wrong = c.state.refusals + c.state.complaints
    if twice or wrong:
        raise Failed(f"{len(twice)} trees under several uuids: {sorted(twice)[:5]}; {wrong[:3]}")
    print(f"# {len(must)} trees on disk before a kill or the end, {len(found)} arrived, each once; "
          f"{sum(e['copies'] for e in c.traces.values()) - len(c.traces)} copies more")


def away():
    """The collector away under load, the agent killed twice meanwhile: all that was on disk arrives, each once."""
    c = collector.Collector("zico-1.90").start()
    agent = Agent("away", [f'to: "http://127.0.0.1:{c.port}"'])
    since, must, shown, load = time.monotonic(), set(), set(), Load()
    try:
        until(lambda: ours(c), lambda: f"no trace; {agent.said()}")
        c.stop()
        gone = time.monotonic()
        for third in (1, 2):
            look(agent, shown, gone + AWAY * third / 3)
            must |= settled(agent, load, shown, since)
            agent.kill()
            time.sleep(0.5)
            agent.start()
            since = time.monotonic()
        look(agent, shown, gone + AWAY)
        c.start()
        load.stop()
        must |= settled(agent, load, shown, since)
        exactly_once(c, must, agent)
        agent.end()
    finally:
        load.stop()
        agent.kill()
        c.stop()


def ends():
    """An agent that is told to end hands over what still runs, cut; the next one goes on with it. Nobody listens yet."""
    c = collector.Collector("zico-1.90").start()
    c.stop()
    agent = Agent("ends", [f'to: "http://127.0.0.1:{c.port}"'])
    p = in_cgroup("sh", "-c", "sleep 1000 & wait; : endless")
    try:
        until(lambda: "endless" in open(f"/proc/{p.pid}/cmdline", encoding="utf-8").read(), "no process")
        time.sleep(1)
        agent.end()
        agent.start()
        c.start()
        until(lambda: ours(c), lambda: f"no trace; {agent.said()}")
        top = ours(c)[0][1]
        if [n["attrs"]["EXIT"] for n in nodes(top)] != ["still running"] * 2 or top["attrs"]["LAST_PART"] != "no":
            raise Failed(f"{[n['attrs'] for n in nodes(top)]}")
        with open(os.path.join(CGROUP, "cgroup.procs"), encoding="ascii") as f:
            for pid in f.read().split():
                os.kill(int(pid), signal.SIGKILL)
        until(lambda: any(t["attrs"]["EXIT"] == "signal 9 SIGKILL" and t["attrs"]["PID"] == str(p.pid) for _, t in ours(c)),
              lambda: f"no end of {p.pid}: {[t['attrs'] for _, t in ours(c)]}; {agent.said()}")
        agent.end()
    finally:
        p.kill()
        agent.kill()
        c.stop()


def reload():
    """Another formula, which the collector, a file and a listener are told; other options for the same collector; another
    collector, by SIGHUP: traces go where the configuration says."""
    cs = [collector.Collector(p).start() for p in ("zico-1.90", "zico-2")]
    kept = os.path.join(WORK, "reload.zico")
    agent = Agent("reload", [f'to: "http://127.0.0.1:{cs[0].port}"', f'to: "file://{kept}"', f'to: "unix-listen://{WORK}/reload.listen"'])
    try:
        for n, (c, old, new) in enumerate(((cs[0], "", ""), (cs[0], "spans:", "formula: model\nspans:"),
                                           (cs[0], '" }', '", trace-type: SHOP }'), (cs[1], str(cs[0].port), str(cs[1].port)))):
            with open(agent.config, encoding="ascii") as f:
                text = f.read()
            with open(agent.config, "w", encoding="ascii") as f:
                f.write(text.replace(old, new, 1) if old else text)
            agent.reload()
            in_cgroup("sh", "-c", f": mark-reload{n}; sleep 0.1").wait()
            until(lambda c=c, n=n: f"mark-reload{n}" in seen(c), lambda n=n: f"no trace of round {n}; {agent.said()}")
            # one whose answer the agent has not taken yet would be sent once more, as the next configuration says
            now = time.monotonic()
            until(lambda now=now: drained(agent, now), "the queue in memory stays")
            told = [a["attributes"].get("FORMULA") for a in c.state.agents.values()]
            if c is cs[0] and told != ["share" if n == 0 else "model"]:
                raise Failed(f"formulas of round {n}: {told}")
        if [t["begin"]["type"] for _, t in ours(cs[0])] != ["PROCESS", "PROCESS", "SHOP"] or len(ours(cs[1])) != 1:
            raise Failed(f"{[t['begin'] for _, t in ours(cs[0])]}; {len(ours(cs[1]))} at the other")
        agent.end()
        if agent.refused():
            raise Failed(f"reload refused: {agent.refused()}")
        told = subprocess.run([os.path.join(os.path.dirname(JOULED), "joulectl"), "decode", kept], check=True, capture_output=True,
                              text=True).stdout
        told = [line.split("value=")[1] for line in told.splitlines() if "key=FORMULA" in line]
        if told != sorted(told, reverse=True) or set(told) != {"share", "model"}:
            raise Failed(f"formulas in the file: {told}")
    finally:
        agent.kill()
        for c in cs:
            c.stop()


if __name__ == "__main__":
    sys.exit(cases((trees, ends, reload, away), sys.argv[4:], 1))
