# SPDX-License-Identifier: Apache-2.0
"""Random trees of spans, and what docs/formats/zico.md says a collector must then see of them."""
import signal
import uuid

NS = 10**9
TICK = 65536
CLOCK = 1_700_000_000


class Tree:
    """spans as tests/zico/feed.c reads them, root first, parents before children."""
    def __init__(self, rng, n):
        self.uuid = uuid.UUID(int=rng.getrandbits(128), version=4)
        self.spans, self.children = [], {}
        for i in range(n):
            self.add(rng, i)

    def add(self, rng, i):
        parent = self.parent(rng, i)
        base = self.spans[0]["start_ns"] if i else rng.randrange(1, 10**6) * NS
        start = base + i * 1_000_000
        function = bool(i) and rng.random() < 0.2
        s = {"id": i + 1, "parent": parent + 1 if i else 0, "function": function, "start_ns": start,
             "end_ns": start + rng.randrange(10**7, 10 * NS), "real_ns": CLOCK * NS + 123_000_000 + start - base,
             "pid": self.spans[parent]["pid"] if function else rng.randrange(2, 4_000_000), "uid": rng.randrange(65536),
             "comm": rng.choice(["sh", "cc1", "make", "kworker/0:1", "a b", "caf\u00e9"]),
             "exe": "/usr/bin/x", "cmdline": f"mark-{self.uuid.hex[:8]}-{i} \u00e4 'q'", "cgroup": "/test.slice/a b/c",
             "cpu_ns": rng.randrange(NS), "energy_uj": [rng.randrange(10**9), rng.randrange(10**6)],
             "calls": 1, "end": "exited", "exit_code": 0, "signal": 0}
        if function:
            s.update(symbol=f"f{i}", binary="/opt/lib.so", calls=rng.choice([1, 7, 2**24 + 5]), wall_ns=10**7)
        else:
            self.end(rng, s)
        self.spans.append(s)
        self.children.setdefault(parent if i else None, []).append(i)

    def parent(self, rng, i):
        if not i:
            return None
        p = rng.randrange(max(0, i - 6), i)
        return p if not self.spans[p]["function"] or rng.random() < 0.5 else 0

    @staticmethod
    def end(rng, s):
        kind = rng.random()
        if kind < 0.2:
            s["exit_code"] = rng.choice([1, 3, 127, 255])
        elif kind < 0.3:
            s.update(end="signaled", signal=rng.choice([6, 9, 11, 15]))
        elif kind < 0.35:
            s.update(end="oom", signal=9)

    def line(self):
        spans = [{k: v for k, v in s.items() if v is not None} for s in self.spans]
        return {"uuid": self.uuid.hex, "spans": spans}


def failed(s):
    return not s["function"] and (s["end"] in ("signaled", "oom") or s["exit_code"] != 0)


def exit_text(s):
    if s["end"] == "oom":
        return "oom-killed"
    if s["end"] == "signaled":
        return f"signal {s['signal']} {signal.Signals(s['signal']).name}"
    return str(s["exit_code"])


def exception_class(s):
    return {"oom": "process.OutOfMemory", "signaled": "process.Signal"}.get(s["end"], "process.ExitStatus")


def power_mw(s):
    ns = s["wall_ns"] if s["calls"] != 1 else s["end_ns"] - s["start_ns"]
    return sum(s["energy_uj"]) * 10**6 / ns


def attributes(s):
    want = {"CPU_TIME_NS": str(s["cpu_ns"]), "CGROUP": s["cgroup"], "ENERGY_UJ": str(sum(s["energy_uj"])),
            "ENERGY_PACKAGE_0_UJ": str(s["energy_uj"][0]), "ENERGY_DRAM_0_UJ": str(s["energy_uj"][1])}
    if s["function"]:
        return {**want, "FUNCTION": s["symbol"], "BINARY": s["binary"]}
    return {**want, "PID": str(s["pid"]), "CMDLINE": s["cmdline"], "EXE": s["exe"], "USER": str(s["uid"]),
            "PROC": s["comm"], "EXIT": exit_text(s)}


class Check:
    """The decoded tree against the spans it was made of."""
    def __init__(self, tree, profile):
        self.tree, self.profile, self.wrong, self.exceptions = tree, profile, [], {}

    def say(self, s, text):
        self.wrong.append(f"span {s['id']}: {text}")

    def times(self, s, node):
        unit = 1 if self.profile == "zico-2" else TICK
        took = node["stop"] - node["start"]
        if abs(took - (s["end_ns"] - s["start_ns"])) >= unit + 1:
            self.say(s, f"{took} ns, {s['end_ns'] - s['start_ns']} expected")
        offset = node["start"] - self.top["start"] - (s["start_ns"] - self.tree.spans[0]["start_ns"])
        if abs(offset) >= unit + 1:
            self.say(s, f"starts {offset} ns beside")

    def attrs(self, s, node):
        got = node["attrs"]
        for k, v in attributes(s).items():
            if got.get(k) != v:
                self.say(s, f"{k} is {got.get(k)!r}, not {v!r}")
        if abs(float(got.get("AVG_POWER_MW", "nan")) - power_mw(s)) > 1:
            self.say(s, f"AVG_POWER_MW {got.get('AVG_POWER_MW')}, not {power_mw(s)}")

    def exception(self, s, node):
        e = node["exception"]
        if bool(e) != failed(s):
            return self.say(s, f"exception {e}")
        if not e:
            return None
        self.exceptions[s["id"]] = e["id"]
        if e["class"] != exception_class(s) or not e["message"]:
            self.say(s, f"exception {e['class']} {e['message']!r}")
        below = [self.tree.spans[i] for i in self.tree.children.get(s["id"] - 1, [])]
        failures = [c for c in below if failed(c)]
        last = max(failures, key=lambda c: c["end_ns"], default=None)
        if last and e["cause"] != self.exceptions[last["id"]]:
            self.say(s, f"cause {e['cause']}, not that of span {last['id']}")
        if not last and not any(c["function"] for c in below) and e["cause"]:
            self.say(s, f"cause {e['cause']} of no child")
        return None

    def names(self, s, node):
        path = s["binary"] if s["function"] else s["cgroup"]
        prefix = "binary" if s["function"] else "cgroup"
        if not node["class"].startswith(prefix + ".") or len(node["class"]) < len(path):
            self.say(s, f"class {node['class']!r}")
        name = s["symbol"] if s["function"] else s["comm"]
        if name.isidentifier() and name.isascii() and node["method"] != name:
            self.say(s, f"method {node['method']!r}")

    def calls(self, i, node):
        below = sum(self.calls(c, n) for c, n in zip(self.tree.children.get(i, []), node["children"]))
        want = self.tree.spans[i]["calls"] + below
        if node["calls"] != want:
            self.say(self.tree.spans[i], f"{node['calls']} calls, not {want}")
        return want

    def span(self, i, node):
        s, below = self.tree.spans[i], self.tree.children.get(i, [])
        if len(below) != len(node["children"]):
            return self.say(s, f"{len(node['children'])} children, not {len(below)}")
        for c, n in zip(below, node["children"]):
            self.span(c, n)
        self.times(s, node)
        self.attrs(s, node)
        self.exception(s, node)
        self.names(s, node)
        return None

    def killed(self):
        """Energy of killed children is told at the top, by an upward attribute where the release takes one."""
        want = sum(sum(s["energy_uj"]) for s in self.tree.spans[1:] if s["end"] in ("signaled", "oom"))
        got = [self.top["attrs"]["KILLED_ENERGY_UJ"]] if "KILLED_ENERGY_UJ" in self.top["attrs"] else []
        got += [a["KILLED_ENERGY_UJ"] for k, a in self.top.get("told", []) if k and "KILLED_ENERGY_UJ" in a]
        if (got or ["0"])[-1] != str(want):
            self.say(self.tree.spans[0], f"KILLED_ENERGY_UJ {got}, not {want}")

    def run(self, top):
        self.top, root = top, self.tree.spans[0]
        self.span(0, top)
        self.calls(0, top)
        self.killed()
        if top["begin"] != {**top["begin"], "clock": root["real_ns"] // 10**6, "type": "PROCESS"}:
            self.say(root, f"begin {top['begin']}")
        return self.wrong
