#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pictures of joulectl report against what it says: report_svg.py DIR REPORT.json; pictures DIR/*.svg."""
import json
import re
import sys
import xml.etree.ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"


def load(name):
    return ET.parse(f"{sys.argv[1]}/{name}.svg").getroot()


def titles(root, tag):
    return [e.find(SVG + "title").text for e in root.iter(SVG + tag) if e.find(SVG + "title") is not None]


def y_scale(root, top, bottom):
    """Value at a height, from the labels of the axis that stand between two heights."""
    labels = [(float(t.get("y")) - 4, float(t.text)) for t in root.iter(SVG + "text")
              if t.get("class") == "dim num" and t.get("text-anchor") == "end" and top < float(t.get("y")) < bottom]
    (y0, v0), (y1, v1) = labels[0], labels[-1]
    return lambda y: v0 + (y - y0) * (v1 - v0) / (y1 - y0)


def sweep(doc):
    root = load("sweep")
    runs = [r for r in doc["runs"] if r["experiment"] == "power-limit"]
    energy, circles = y_scale(root, 80, 330), list(root.iter(SVG + "circle"))
    assert len(circles) == 2 * len(runs), f"{len(circles)} marks for {len(runs)} runs"
    for bench, colour in (("bert", "c0"), ("resnet", "c1")):
        drawn = [energy(float(c.get("cy"))) for c in circles if c.get("class") == colour][:5]
        wanted = [r["sources"]["hd"]["energy_j"]["mean"] for r in runs if r["benchmark"] == bench]
        for got, value in zip(drawn, wanted):
            assert abs(got - value) < 0.01 * value, f"{bench}: {got} drawn for {value} J"
    bars = [line for line in root.iter(SVG + "line") if line.get("class") == "line l0" and line.get("x1") == line.get("x2")]
    stddev = next(r for r in runs if r["benchmark"] == "bert")["sources"]["hd"]["energy_j"]["stddev"]
    length = abs(energy(float(bars[0].get("y1"))) - energy(float(bars[0].get("y2"))))
    assert abs(length - 2 * stddev) < 15, f"bar of {length} for {2 * stddev} J"


def power():
    root = load("power")
    lines = titles(root, "path")
    assert sorted(lines) == [f"bert / 150W / {i}" for i in ("0", "1", "10", "2")], lines
    marks = titles(root, "line")
    for event in ("experiment_begin 0", "epoch_begin 1", "epoch_begin 4", "experiment_end 0"):
        assert any(m.startswith(event) for m in marks), f"no mark of {event}"
    assert any(m.startswith("epoch_begin 1 at 0.000 s") for m in marks), "the window begins elsewhere"
    watts = y_scale(root, 100, 900)
    path = next(p.get("d") for p in root.iter(SVG + "path") if p.find(SVG + "title").text == "bert / 150W / 0")
    heights = [float(v) for v in re.findall(r"(?:V|[ML][-0-9.]+ )([-0-9.]+)", path)]
    assert 140 < max(watts(h) for h in heights) < 160, max(watts(h) for h in heights)
    assert titles(root, "rect").count("does not count") == 2


def main():
    doc = json.load(open(sys.argv[2]))
    sweep(doc)
    power()
    assert titles(load("one"), "path") == ["bert / 150W / 10"]
    assert float(load("phone").get("width")) == 360
    assert len(titles(load("batches"), "line")) < 300
    print("pictures agree")


if __name__ == "__main__":
    main()
