# SPDX-License-Identifier: Apache-2.0
"""Checks of spans, by reading the documents alone (docs/formats/spans.md, the trace-event format). No code is shared
with the agent or joulectl.

spans.py tree SPANS.json CGROUP.json LABELS...   the tree of one cgroup, its energy against /v1/cgroups
spans.py chrome EVENTS.json SPANS.json           trace events that viewers can nest
spans.py flame FILE.svg SPANS.json               a flame graph, as wide as its energy
spans.py calls SPANS.json NAME=N...                how often functions were called, and by whom
spans.py bounds JOULECTL SOCKET CGROUP             a limit tells what it leaves out; pages and pictures show all
spans.py parts SPANS.json                        parts of long-lived trees follow each other
"""
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import defaultdict


def traces(path):
    return json.load(open(path))["traces"]


def check_trace(t):
    seen = {}
    for i, s in enumerate(t["spans"]):
        assert s["id"] not in seen, "an id twice"
        if i == 0:
            assert "parent" not in s, "the root has a parent"
        else:
            assert s["parent"] in seen, f"span {s['comm']} before its parent"
        seen[s["id"]] = s
        assert s["duration_ns"] >= 0 and s["cpu_ns"] >= 0
        assert len(s["energy_uj"]) == len(t["domains"])
        assert s["quality"] in ("measured", "wrapped", "multiplexed", "estimated", "stale", "partial", "lost")
    uuid = t["trace"]
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", uuid), uuid


def tree(spans_path, cgroup_path, *labels):
    ts = traces(spans_path)
    assert ts, "no trace"
    for t in ts:
        check_trace(t)
    spans = [s for t in ts for s in t["spans"]]
    ids = [s["id"] for s in spans]
    assert len(ids) == len(set(ids)), "a span in two traces"
    cg = json.load(open(cgroup_path))["cgroups"]
    cg = [c for c in cg if c["path"] == ts[0]["cgroup"]][0]
    cpu = sum(s["cpu_ns"] for s in spans if s["kind"] == "process")
    have = cg["total"]["cpu_ns"]
    assert cpu <= have * 1.02 + 5e6, f"spans used {cpu} ns, the cgroup {have} ns"
    assert cpu >= have * 0.9 - 20e6, f"spans used {cpu} ns of the cgroup's {have} ns: some are missing"
    for d, name in enumerate(ts[0]["domains"]):
        e = sum(s["energy_uj"][d] for s in spans)
        total = cg["total"]["energy_uj"][name]
        assert e <= total, f"{name}: spans {e} uJ, the cgroup {total} uJ"
        assert e >= 0.8 * total, f"{name}: spans {e} uJ of the cgroup's {total} uJ only"
        print(f"{name}: {e} of {total} uJ in {len(spans)} spans")
    comms = defaultdict(int)
    for s in spans:
        comms[s["comm"]] += 1
    for want in labels:
        name, n = want.split("=")
        assert comms[name] == int(n), f"{comms[name]} spans of {name}, {n} ran: {dict(comms)}"


def calls(spans_path, *wants):
    t = traces(spans_path)[0]
    check_trace(t)
    root = t["spans"][0]
    by_id = {s["id"]: s for s in t["spans"]}
    for want in wants:
        name, n = want.split("=")
        got = [s for s in t["spans"] if s.get("symbol") == name]
        assert sum(s["calls"] for s in got) == int(n), f"{sum(s['calls'] for s in got)} calls of {name}"
        above = {"outer": root["comm"], "inner": "outer"}[name]
        for s in got:
            up = by_id[s["parent"]]
            assert up.get("symbol", up["comm"]) == above, f"{name} below {up.get('symbol', up['comm'])}"
            assert s["cpu_ns"] <= s["wall_ns"] * 1.01 + 1000
    functions = sum(sum(s["energy_uj"]) for s in t["spans"] if s["kind"] == "function")
    print(f"functions {functions} uJ, {root['comm']} itself {sum(root['energy_uj'])} uJ")
    assert functions > 0 and sum(root["energy_uj"]) > 0


def nest(events, what):
    """Complete events of one line must lie within each other or apart (trace-event format, "Complete Events")."""
    stack = []
    for start, end in sorted(events, key=lambda e: (e[0], -e[1])):
        while stack and stack[-1][1] <= start + 0.0005:
            stack.pop()
        assert not stack or end <= stack[-1][1] + 0.0005, f"{what}: {start}..{end} reaches out of {stack[-1]}"
        stack.append((start, end))


def chrome(path, spans_path):
    doc = json.load(open(path))
    events = doc["traceEvents"]
    lines, begun = defaultdict(list), {}
    n = 0
    for e in events:
        assert e["ph"] in "XMbe", e
        assert isinstance(e["name"], str) and isinstance(e["pid"], int) and isinstance(e["tid"], int), e
        if e["ph"] == "M":
            assert e["name"] in ("process_name", "thread_name") and e["args"]["name"], e
            continue
        assert e["cat"] and isinstance(e["ts"], (int, float)) and e["ts"] >= 0, e
        if e["ph"] == "X":
            n += 1
            assert e["dur"] >= 0, e
            lines[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
            continue
        key = (e["cat"], e["id"])
        if e["ph"] == "b":
            assert key not in begun, "begun twice"
            begun[key] = e["ts"]
        else:
            n += 1
            assert begun.pop(key) <= e["ts"], "ends before it begins"
    assert not begun, "never ended"
    for key, list_ in lines.items():
        nest(list_, f"pid {key[0]} tid {key[1]}")
    spans = [(t, s) for t in traces(spans_path) for s in t["spans"]]
    assert n == len(spans), f"{n} events of {len(spans)} spans"
    first = min(s["start_ns"] for _, s in spans)
    by_place = defaultdict(set)
    for e in events:
        if e["ph"] == "X":
            by_place[e["name"]].add((round(e["ts"], 3), round(e["dur"], 3)))
    for _, s in spans:
        if s["kind"] == "process":
            want = (round((s["start_ns"] - first) / 1000, 3), round(s["duration_ns"] / 1000, 3))
            assert any(abs(a - want[0]) < 0.01 and abs(b - want[1]) < 0.01 for a, b in by_place[s["comm"]]), (s["comm"], want)
    print(n, "events")


def joules(t, s):
    names = t["domains"]
    pick = [i for i, d in enumerate(names) if d.startswith(("package", "dram", "gpu"))]
    if not any(names[i].startswith("package") for i in pick):
        pick = [i for i, d in enumerate(names) if d.startswith("psys")] or list(range(len(names)))
    return sum(s["energy_uj"][i] for i in pick)


def bounds(joulectl, sock, cgroup):
    def ask(verb, *args):
        p = subprocess.run([joulectl, verb, "--socket", sock, "--cgroup", cgroup, *args], capture_output=True, text=True, check=True)
        return p.stdout, p.stderr

    def total(doc):
        return sum(joules(t, s) for t in doc["traces"] for s in t["spans"])

    for _ in range(20):
        whole = json.loads(ask("spans", "--json", "--limit", "1000000")[0])
        cut, said = ask("spans", "--json", "--limit", "1500")
        cut = json.loads(cut)
        table = ask("spans", "--limit", "1500")[0]
        svg = ask("flame")[0]
        narrow = ask("flame", "--limit", "1500")[0]
        again = json.loads(ask("spans", "--json", "--limit", "1000000")[0])
        if again["forgotten_traces"] == whole["forgotten_traces"]:
            break
    n = sum(len(t["spans"]) for t in whole["traces"])
    assert n > 3000 and whole["left_out_traces"] == 0, f"{n} spans, {whole['left_out_traces']} traces left out of all"
    assert cut["left_out_traces"] > 0 and sum(len(t["spans"]) for t in cut["traces"]) <= 1500
    assert len(cut["traces"]) + cut["left_out_traces"] == len(whole["traces"])
    assert total(cut) + cut["left_out_energy_uj"] == total(whole), (total(cut), cut["left_out_energy_uj"], total(whole))
    want = f"{cut['left_out_traces']} older trace"
    for what, text in (("stderr", said), ("table", table), ("picture", narrow)):
        assert want in text and f"{cut['left_out_energy_uj'] / 1e6:.6g} J" in text, f"{what} does not say {want}"
    assert "older trace" not in svg, "a picture of all leaves out something"
    assert f"{total(whole) / 1e6:.6g} J in {len(whole['traces'])} trace" in svg, "a picture of all has not all"
    if whole["forgotten_traces"]:
        assert f"{whole['forgotten_traces']} trace" in svg and whole["forgotten_energy_uj"] >= 0
    print(f"{len(cut['traces'])} of {len(whole['traces'])} traces, {total(cut)} of {total(whole)} uJ, {whole['forgotten_traces']} forgotten")


def flame(path, spans_path):
    text = open(path).read()
    root = ET.fromstring(text)
    assert "prefers-color-scheme:dark" in text, "no dark form"
    svg = "{http://www.w3.org/2000/svg}"
    frames = []
    for g in root.iter(svg + "g"):
        title, rect = g.find(svg + "title"), g.find(svg + "rect")
        if title is None or rect is None:
            continue
        m = re.match(r"(.*): ([0-9.e+-]+) J \(([0-9.]+) %\)", title.text)
        assert m, title.text
        frames.append((m.group(1), float(m.group(2)), float(rect.get("x")), float(rect.get("width")), float(rect.get("y"))))
    total = sum(joules(t, s) for t in traces(spans_path) for s in t["spans"]) / 1e6
    whole = [f for f in frames if f[0] == "all"][0]
    assert abs(whole[1] - total) <= 1e-5 * total + 1e-6, f"all is {whole[1]} J, the spans {total} J"
    for name, energy, x, width, y in frames:
        assert abs(width - whole[3] * energy / whole[1]) < 1.5, f"{name}: {width} px for {energy} J"
        below = [f for f in frames if abs(f[4] - y - 20) < 0.5 and f[2] - 0.7 <= x and x + width <= f[2] + f[3] + 0.7]
        assert name == "all" or below, f"{name} stands on nothing"
    print(len(frames), "frames")


def parts(spans_path):
    trees = defaultdict(list)
    for t in traces(spans_path):
        check_trace(t)
        trees[t["spans"][0]["id"]].append(t)
    several = [sorted(ts, key=lambda t: t["part"]) for ts in trees.values() if len(ts) > 1]
    assert several, "no tree was cut"
    for ts in several:
        for a, b in zip(ts, ts[1:]):
            assert b["part"] == a["part"] + 1 and not a["last"], (a["part"], b["part"])
            ra, rb = a["spans"][0], b["spans"][0]
            assert ra["end"] == "cut", ra["end"]
            assert rb["start_ns"] == ra["start_ns"] + ra["duration_ns"], "a hole between two parts"
    print(len(several), "trees in parts")


if __name__ == "__main__":
    {"tree": tree, "calls": calls, "chrome": chrome, "flame": flame, "parts": parts, "bounds": bounds}[sys.argv[1]](*sys.argv[2:])
