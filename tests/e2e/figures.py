# SPDX-License-Identifier: Apache-2.0
"""What a machine takes, and how well that is known, told by everybody who tells it.
figures.py MACHINE SUMMED SOCKET JOULECTL FOLDER CGROUP: SUMMED are the domains that add up, joined by commas."""
import csv
import glob
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import plot as pictures
from summed import kind, summed


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("jouled")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


class Machine:
    def __init__(self, name, wanted, path, joulectl, folder, cgroup):
        self.name, self.wanted, self.path, self.joulectl, self.folder, self.cgroup = name, wanted.split(","), path, joulectl, folder, cgroup

    def ask(self, route, method="GET", accept="application/json"):
        c = Unix(self.path)
        c.request(method, route, headers={"Accept": accept})
        answer = c.getresponse()
        body = answer.read()
        assert answer.status == 200, (route, answer.status, body[:200])
        return body

    def first_line(self, route):
        c = Unix(self.path)
        c.request("GET", route)
        line = c.getresponse().readline()
        c.close()
        return json.loads(line)

    def json(self, route, method="GET"):
        return json.loads(self.ask(route, method))

    def ctl(self, *words, stdin=None):
        p = subprocess.run([self.joulectl, *words], capture_output=True, timeout=120, input=stdin, env=dict(os.environ, JOULED_SOCKET=self.path, LC_ALL="C.UTF-8"))
        assert p.returncode == 0, (words, p.returncode, p.stderr.decode()[-300:])
        return p.stdout.decode()

    def total(self, by_domain):
        return sum(by_domain[d] for d in self.wanted)

    def file(self, name):
        return os.path.join(self.folder, name)


def in_total(list_of):
    return [d["name"] for d in list_of if d["in_total"]]


def routes(m):
    names = [d["name"] for d in m.json("/v1/snapshot")["domains"]]
    assert sorted(summed(names)) == sorted(m.wanted), (names, m.wanted)
    assert m.name != "all" or len(names) == 6, names
    for route, method in (("/v1/snapshot", "GET"), ("/v1/cgroups", "GET"), ("/v1/reading", "POST")):
        assert in_total(m.json(route, method)["domains"]) == summed(names), route
    h = m.json("/v1/history")
    assert [d for d, use in zip(h["domains"], h["in_total"]) if use] == summed(h["domains"]), h["domains"]


def metrics(m):
    def page():
        return m.ask("/metrics", accept="text/plain").decode()
    before, text, after = m.json("/v1/cgroups"), page(), m.json("/v1/reading", "POST")
    counts = dict(re.findall(r'^jouled_domain_summed\{domain="(\w+)"\} (\d)$', text, re.M))
    assert {k for k, v in counts.items() if v == "1"} == {kind(d) for d in m.wanted}, counts
    joules = re.findall(r'^jouled_energy_joules_total\{domain="(\w+)".*\} ([0-9.]+)$', text, re.M)
    total = sum(float(v) * int(counts[k]) for k, v in joules)
    assert float(total) >= m.total({d["name"]: d["total"]["energy_uj"] for d in before["domains"]}) / 1e6 - 1e-5
    assert float(total) <= m.total({d["name"]: d["energy_uj"] for d in after["domains"]}) / 1e6 + 1e-5


def number(text):
    return float(text.rstrip("~%?=!").replace("k", "e3").replace("M", "e6"))


def table(m):
    """joulectl list: its last line is the machine, and the lines above it are its parts."""
    before = m.json("/v1/cgroups")
    text = m.ctl("list")
    after = m.json("/v1/cgroups")
    line = next(l for l in text.splitlines() if "= the machine" in l)
    assert line.endswith("= the machine (" + " + ".join(m.wanted) + ")"), line
    low, high = (m.total({d["name"]: d["total"]["energy_uj"] for d in doc["domains"]}) / 1e6 for doc in (before, after))
    joules = number(line.split()[1])
    assert 0 < low * 0.998 <= joules <= high * 1.002, (low, joules, high)
    parts = sum(number(re.split(r"\s+", l.strip())[1]) for l in text.splitlines()[1:] if "= the machine" not in l)
    assert abs(parts - joules) < 0.02 * joules + 0.005 * text.count("\n"), (parts, joules)
    own = [c for c in after["cgroups"]]
    keys = [m.total(c["last"]["energy_uj"]) for c in own]
    assert keys == sorted(keys, reverse=True), keys


def top(m):
    doc = json.loads(m.ctl("top", "--once", "--json"))
    assert in_total(doc["domains"]) == summed([d["name"] for d in doc["domains"]])
    text = m.ctl("top", "--once", "--all")
    watts = number(re.search(r"([0-9.]+k?) W", text.splitlines()[0])[1])
    lines = {l.split()[0]: number(re.search(r"([0-9.]+k?) W", l)[1]) for l in text.splitlines()[1:] if re.match(r"(package|core|uncore|dram|psys|external)\S* ", l)}
    assert set(lines) == {d["name"] for d in doc["domains"]}, lines
    assert watts > 0 and abs(watts - m.total(lines)) < 0.01 * watts, (watts, lines)


def run(m):
    command = ["sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done"]
    m.ctl("run", "--json", "-o", m.file("run.json"), "--", *command)
    doc = json.load(open(m.file("run.json")))
    assert sorted(doc["in_total"]) == sorted(m.wanted) and doc["energy_total_uj"] == m.total(doc["energy_uj"]) > 0, doc
    m.ctl("run", "-o", m.file("run.txt"), "--", *command)
    text = open(m.file("run.txt")).read()
    idle = re.search(r"\(idle: own(.*)\)", text)[1]
    assert [w.split()[0] for w in idle.split(", ")[1:]] == [d for d in doc["energy_uj"] if d in m.wanted], idle
    line = re.search(r"^ *([0-9.]+) +(\w+) +in all\b", text, re.M)
    assert bool(line) == (len(m.wanted) > 1), text
    if line:
        unit = {"J": 1, "mJ": 1e-3, "uJ": 1e-6}
        each = {n: float(v) * unit[u] for v, u, n in re.findall(r"^ *([0-9.]+) +(m?J|uJ) +(\S+)", text, re.M)}
        assert abs(float(line[1]) * unit[line[2]] - m.total(each)) < 0.01, (text, each)


def history(m):
    end = time.monotonic() + 60
    while True:
        until = int(time.time()) - 5  # what is younger may still be on its way to the disk
        doc = m.json(f"/v1/history?since=-5m&step=1s&until={until}&limit=5")
        by_time = {}
        for s in doc["series"]:
            for t, _, _, uj in s["points"]:
                by_time[t] = by_time.get(t, 0) + m.total(dict(zip(doc["domains"], uj))) / 1e6
        if len(by_time) >= 5:
            break
        assert time.monotonic() < end, "no history"
        time.sleep(0.2)
    every, one = (m.json(f"/v1/history?since=-5m&step=1s&until={until}&limit={n}") for n in (1000, 1))
    cgroups = sum(s["row"] == "cgroup" for s in every["series"]) + every["other"]["cgroups"]
    assert one["other"]["cgroups"] == cgroups - 1 > 0, (cgroups, every["other"], one["other"])
    text = m.ctl("history", "--since", "-5m", "--until", str(until), "--step", "1s")
    figures = [number(l.split()[3]) for l in text.splitlines() if re.match(r"\d+-\d+-\d+ [0-9:]+ [A-Z0-9+-]+ +[0-9.]+[~? ]", l)]
    wanted = [by_time[t] for t in sorted(by_time)]
    assert "machine J" in text and len(figures) >= len(wanted) >= 5, text
    assert all(abs(f - w) < 0.002 for f, w in zip(figures[-len(wanted):], wanted[-len(figures):])), (figures, wanted)


def plots(m):
    m.ctl("plot", "--since", "-5m", "-o", m.file("history.svg"))
    body = open(m.file("rec.cbor"), "rb").read()
    open(m.file("part.cbor"), "wb").write(body)
    decoded = subprocess.run([m.joulectl, "decode", "--json", m.file("part.cbor")], capture_output=True, timeout=120).stdout
    lines = decoded.decode().splitlines()
    while lines and not lines[-1].endswith("}"):
        lines.pop()
    open(m.file("part.json"), "w").write("\n".join(l for l in lines if '"error"' not in l) + "\n")
    m.ctl("plot", "-o", m.file("rec.svg"), m.file("part.cbor"))
    pictures.energy(m.file("rec.svg"), m.file("part.json"))
    for name in ("history.svg", "rec.svg"):
        text = open(m.file(name)).read()
        assert re.search(r">" + re.escape(" + ".join(m.wanted)) + r"( on |<|\s+\xb7)", text), (name, re.findall(r">([^<]*(?:package|psys|core)[^<]*)<", text))


def rows(folder, name):
    found = glob.glob(f"{folder}/**/{name}", recursive=True)
    assert len(found) == 1, found
    with open(found[0], encoding="ascii", newline="") as f:
        return list(csv.DictReader(f))


def record(m):
    wanted = [d for d in m.wanted if kind(d) != "external"]
    m.ctl("record", "--root", m.file("data"), "--experiment", "e", "--benchmark", "b", "--run", "r", "--samples-from", "rapl", "--every", "100ms", "--", "sleep", "2")
    doc = json.loads(m.ctl("report", "--json", m.file("data")))
    one = doc["runs"][0]["repetitions"][0]
    assert one["rapl_domains"] == " + ".join(wanted), one
    told = "estimated" if m.name == "meter" else "measured"
    assert [one["sources"][s]["quality"] for s in ("rapl", "hd")] == [told, told], one["sources"]
    # both files have the same rows; joules, since a row of a few milliseconds may hold a step of the counter, or none
    power, counter = (rows(m.file("data"), n) for n in ("total_power_samples.csv", "rapl-power.csv"))
    rapl = sum(int(counter[-1][d + "-energy"]) - int(counter[0][d + "-energy"]) for d in wanted) / 1e6
    hd = sum(int(b["value"]) * (int(b["timestamp"]) - int(a["timestamp"])) for a, b in zip(power, power[1:])) / 1e9
    assert len(power) == len(counter) > 2 and rapl > 0 and abs(hd - rapl) < 0.02 * rapl, (hd, rapl)


def page(m):
    import browser as chromium
    import web
    if not chromium.program():
        print(f"SKIP figures-{m.name}-page: no Chromium; install chromium-headless-shell")
        return
    bridge = subprocess.Popen([m.joulectl, "web", "--socket", m.path], stdout=subprocess.PIPE, text=True)
    b = None
    try:
        url = bridge.stdout.readline().strip()
        stream = web.Stream(m.path)
        b = chromium.Browser()
        p = chromium.Page(b)
        p.go(url)
        p.wait("document.querySelectorAll('#rows tr').length > 2 && document.getElementById('state').textContent === 'live'")
        web.same_watts(p, stream)
        pressed = p.run("[...document.querySelectorAll('#domains button')].filter(b => b.getAttribute('aria-pressed') === 'true').map(b => b.textContent)")
        assert pressed == m.wanted or sorted(pressed) == sorted(m.wanted), pressed
    finally:
        if b:
            b.close()
        bridge.kill()
        bridge.wait()


def worst(words):
    order = ["measured", "wrapped", "multiplexed", "estimated", "stale", "partial", "lost"]
    return max(words.split("+"), key=order.index)


def decoded_snapshot(m):
    p = subprocess.run([m.joulectl, "decode", "--json", "-"], capture_output=True, timeout=60, input=m.ask("/v1/snapshot", accept="application/cbor"))
    assert p.returncode == 0, p.stderr
    return next(d for d in map(json.loads, p.stdout.decode().splitlines()) if d["kind"] == "snapshot")


def told(m):
    """(what, domain or row) -> {who: word} of one interval of the agent, or None where it went on meanwhile."""
    shown = {}

    def note(who, what, name, word):
        if word is None:
            return
        shown.setdefault((what, name), {})[who] = worst(word)
    first = m.json("/v1/snapshot")
    cbor, cgroups, hwpc, power = decoded_snapshot(m), m.json("/v1/cgroups?limit=1000"), m.ask("/v1/hwpc"), m.ask("/v1/power")
    stream = m.first_line("/v1/stream?format=json")
    top = json.loads(m.ctl("top", "--once", "--json"))
    reading = m.json("/v1/reading", "POST")
    same = m.json("/v1/snapshot")["number"] - first["number"] <= 1 and cbor["number"] == first["number"]
    for who, doc in (("snapshot", first), ("stream", stream), ("top", top), ("cgroups", cgroups), ("decode", cbor), ("reading", reading)):
        for d in doc["domains"]:
            if who != "reading":
                note(who, "energy", d["name"], d["quality"])
            note(who, "idle", d["name"], d.get("idle_quality"))
    for who, doc, rows, key in (("snapshot", first, "rows", "name"), ("decode", cbor, "rows", "path"), ("top", top, "rows", "name"),
                                ("stream", stream, "rows", "name"), ("reading", reading, "rows", "name"), ("cgroups", cgroups, "cgroups", "path")):
        for r in doc[rows]:
            if r[key] == m.cgroup:
                note(who, "row", "energy", r.get("energy_quality"))
                note(who, "row", "counts", r["quality"])
    note("snapshot", "row", "rapl", "+".join(d["quality"] for d in first["domains"] if d["kind"] not in ("gpu", "external")))
    for line in hwpc.decode().splitlines():
        report = json.loads(line)
        word = report.get("metadata", {}).get("quality", "measured")
        if report["target"] == "all" and "rapl" in report["groups"]:
            note("hwpc", "row", "rapl", word)
        elif report["target"] == m.cgroup:
            note("hwpc", "row", "counts", word)
    rows = {}
    for line in power.decode().splitlines():
        meta, target = json.loads(line)["metadata"], json.loads(line)["target"]
        if target in ("all", "idle"):
            note("power", "energy" if target == "all" else "idle", meta["domain"], meta.get("quality", "measured"))
        elif target == m.cgroup:
            rows[meta["domain"]] = meta.get("quality", "measured")
    if rows:
        note("power", "row", "energy", "+".join(rows.values()))
    return shown if same else None


def quality(m):
    end = time.monotonic() + 120
    differ = "the agent's interval went on during every try"
    while time.monotonic() < end:
        shown = told(m)
        if shown is None:
            continue
        differ = {what: who for what, who in shown.items() if len(set(who.values())) > 1}
        if not differ:
            least = min(len(who) for (what, _), who in shown.items() if what == "idle")
            assert least == 7 and len(shown[("row", "energy")]) == 7 and len(shown[("row", "counts")]) >= 6, shown
            intervals(m)
            return
        time.sleep(0.3)      # a quality may change between two intervals; one that stays another does not
    raise AssertionError(differ)


def intervals(m):
    """Where one quality is all there ever was, the counters of intervals say so too."""
    text = m.ask("/metrics", accept="text/plain").decode()
    reading = m.json("/v1/reading", "POST")
    for d in reading["domains"]:
        ever = {q for q, n in d["intervals"].items() if n}
        seen = {q for k, q, n in re.findall(r'^jouled_energy_intervals_total\{domain="(\w+)".*quality="(\w+)"\} (\d+)', text, re.M) if k == kind(d["name"]) and int(n)}
        assert seen <= ever, (d["name"], seen, ever)


def main(*args):
    m = Machine(*args)
    m.cgroup = "/" + os.path.basename(m.cgroup)
    only = os.environ.get("ONLY", "").split()
    for case in (routes, metrics, table, top, run, history, plots, record, quality, page):
        if only and case.__name__ not in only:
            continue
        try:
            case(m)
            print(f"ok figures-{m.name}-{case.__name__}")
        except Exception as e:       # whatever it is, the others are still of interest
            text = " ".join(f"{type(e).__name__} {e}".split())
            print(f"FAIL figures-{m.name}-{case.__name__}: {text[:600]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
