# SPDX-License-Identifier: Apache-2.0
"""Judges pictures of joulectl plot by what they show.
plot.py energy SVG DECODED: areas are the energy of the recording (joulectl decode --json).
plot.py total SVG HISTORY: the same against an answer of /v1/history.
plot.py safe SVG...: well-formed, without script and without anything from elsewhere.
plot.py layout SVG...: in a headless Chromium, no text overlaps another or leaves the picture, dark and light differ."""
import json
import os
import re
import sys
import xml.etree.ElementTree as ET

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from summed import summed

SVG = "{http://www.w3.org/2000/svg}"
UNITS = {"W": 1, "mW": 1e-3, "kW": 1e3}


def texts(root):
    return [(float(t.get("x")), float(t.get("y")), t.get("class") or "", t.get("text-anchor"), t.text) for t in root.iter(SVG + "text")]


def area(d):
    """Of a path of M, L, H, V and Z: the shoelace formula over its subpaths."""
    total, points, x, y = 0.0, [], 0.0, 0.0
    for op, args in re.findall(r"([MLHVZ])([^MLHVZ]*)", d):
        v = [float(a) for a in args.split()]
        if op == "M" and points:
            points = []
        if op in "ML":
            x, y = v
        elif op == "H":
            x = v[0]
        elif op == "V":
            y = v[0]
        if op != "Z":
            points.append((x, y))
            continue
        total += abs(sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(points, points[1:] + points[:1]))) / 2
        points = []
    return total


def scale(root):
    """Watts a pixel, from two labels of the value axis; seconds a pixel come from the recording."""
    unit = next(t[4] for t in texts(root) if t[4] in UNITS)
    labels = [(y, float(text)) for _, y, c, anchor, text in texts(root) if c == "dim num" and anchor == "end" and re.fullmatch(r"[0-9.]+", text)]
    (y0, v0), (y1, v1) = labels[0], labels[-1]
    return (v1 - v0) * UNITS[unit] / (y0 - y1)


def drawn(root, seconds):
    """Joules by name."""
    left, right = min(float(e.get("x1")) for e in root.iter(SVG + "line") if e.get("class") == "axis"), None
    right = max(float(e.get("x2")) for e in root.iter(SVG + "line") if e.get("class") == "axis")
    per_pixel = scale(root) * seconds / (right - left)
    return {p.find(SVG + "title").text.rsplit(": ", 1)[0]: area(p.get("d")) * per_pixel for p in root.iter(SVG + "path") if p.find(SVG + "title") is not None}


def compare(root, wanted, seconds):
    """A picture shows control bytes of a name as \\xNN."""
    wanted = {re.sub(r"[\x00-\x1f\x7f]", lambda c: f"\\x{ord(c[0]):02x}", name): j for name, j in wanted.items()}
    got = drawn(root, seconds)
    total = sum(wanted.values())
    assert total > 0 and set(got) <= set(wanted) | {"other"}, (set(got), set(wanted))
    rest = sum(j for name, j in wanted.items() if name not in got or name == "other")
    for name, j in got.items():
        expect = rest if name == "other" else wanted[name]
        # coordinates are rounded to a hundredth of a pixel, and hidden holes between two readings are bridged
        assert abs(j - expect) < 0.02 * expect + 0.005 * total, (name, j, expect)
    assert abs(sum(got.values()) - total) < 0.01 * total, (sum(got.values()), total)


def energy(svg, decoded):
    records = [json.loads(line) for line in open(decoded)]
    names = [d["name"] for d in next(r for r in records if r["kind"] == "header")["domains"]]
    domains = [d in summed(names) for d in names]
    snapshots = [r for r in records if r["kind"] == "snapshot"]
    wanted = {}
    for s in snapshots:
        for row in s["rows"]:
            name = row["path"] if "path" in row else row["kind"]
            wanted[name] = wanted.get(name, 0) + sum(e for e, use in zip(row["energy_uj"], domains) if use) / 1e6
        wanted["idle"] = wanted.get("idle", 0) + sum(d["idle_uj"] for d, use in zip(s["domains"], domains) if use) / 1e6
        wanted["residual"] = wanted.get("residual", 0) + sum(d["residual_uj"] for d, use in zip(s["domains"], domains) if use) / 1e6
    seconds = (snapshots[-1]["end_real_ns"] - (snapshots[0]["end_real_ns"] - (snapshots[0]["end_ns"] - snapshots[0]["start_ns"]))) / 1e9
    compare(ET.parse(svg).getroot(), wanted, seconds)


def total(svg, history):
    h = json.load(open(history))
    use = [d in summed(h["domains"]) for d in h["domains"]]
    wanted, ends, starts = {}, [], []
    for s in h["series"]:
        name = "idle" if s["row"] in ("idle", "idle-power") else s["cgroup"]
        for end, ns, _, uj in s["points"]:
            wanted[name] = wanted.get(name, 0) + sum(e for e, u in zip(uj, use) if u) / 1e6
            ends.append(end)
            starts.append(end - ns)
    compare(ET.parse(svg).getroot(), wanted, (max(ends) - min(starts)) / 1e9)


def safe(*files):
    for name in files:
        root = ET.parse(name).getroot()
        for e in root.iter():
            tag = e.tag.rsplit("}", 1)[-1]
            assert tag in ("svg", "title", "desc", "style", "defs", "pattern", "line", "rect", "text", "path", "circle", "g"), (name, tag)
            for key, value in e.attrib.items():
                assert not key.lower().startswith("on") and "href" not in key.lower(), (name, key)
                assert "url(" not in value or value == "url(#estimated)", (name, value)
        css = "".join(e.text for e in root.iter(SVG + "style"))
        assert "url(" not in css and "@import" not in css, name


BOXES = """[...document.querySelectorAll('text')].map(t => { const b = t.getBBox(); return [b.x, b.y, b.width, b.height, t.textContent]; })"""


def layout(*files):
    import browser as chromium
    if not chromium.program():
        print("SKIP plot-layout: no Chromium; install chromium-headless-shell")
        return
    b = chromium.Browser()
    try:
        page = chromium.Page(b)
        for name in files:
            page.go("file://" + os.path.abspath(name))
            page.wait("document.readyState === 'complete' && document.documentElement.nodeName === 'svg' && location.pathname.endsWith(" + json.dumps(os.path.basename(name)) + ")")
            width, height = page.run("[+document.documentElement.getAttribute('width'), +document.documentElement.getAttribute('height')]")
            boxes = page.run(BOXES)
            assert len(boxes) > 8, (name, boxes)
            for i, (x, y, w, h, text) in enumerate(boxes):
                assert x >= 0 and y >= 0 and x + w <= width and y + h <= height, (name, text, x, y, w, h)
                for x2, y2, w2, h2, other in boxes[:i]:
                    apart = x + w <= x2 or x2 + w2 <= x or y + h <= y2 + 2 or y2 + h2 <= y + 2
                    assert apart, (name, text, other)
            ground = []
            for dark in (False, True):
                page.look(int(width), int(height), dark)
                ground.append(page.run("getComputedStyle(document.querySelector('.bg')).fill"))
            assert ground == ["rgb(255, 255, 255)", "rgb(13, 17, 23)"], ground
        assert all(u.startswith(("file://", "data:", "about:")) for u in page.requests()), page.requests()
        assert not page.errors(), page.errors()
    finally:
        b.close()


if __name__ == "__main__":
    {"energy": energy, "total": total, "safe": safe, "layout": layout}[sys.argv[1]](*sys.argv[2:])
