# SPDX-License-Identifier: Apache-2.0
"""Clicks in a flame graph, in a headless Chromium: flame.py PICTURE PREFIX. Prints "ok PREFIX-..." or "FAIL ..." a line."""
import os
import re
import sys
import xml.etree.ElementTree as ET

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser as chromium

SHOWN = """[...document.querySelectorAll('g[data-n]')].map(g => { const r = g.querySelector('rect'), t = g.querySelector('text');
    return { name: g.getAttribute('data-n'), x: +r.getAttribute('x'), w: +r.getAttribute('width'), y: +r.getAttribute('y'), shown: g.style.display !== 'none',
        text: t ? t.textContent : '', lit: r.getAttribute('fill-opacity') === '1', fits: !t || !t.textContent || t.getComputedTextLength() <= +r.getAttribute('width') }; })"""
CLICK = "document.querySelectorAll('g[data-n]')[%d].dispatchEvent(new MouseEvent('click', { bubbles: true }))"
CONTROL = "[...document.querySelectorAll('text[role=button]')]"


def alone(path):
    """One script, ours, and nothing else that is active."""
    text = open(path, encoding="utf-8").read()
    ours = open("user/ctl/spans/flame.js", encoding="utf-8").read()
    assert text.count("<script") == 1 and text.count("</script") == 1, "more than one script"
    assert f"<script><![CDATA[\n{ours}]]></script>" in text, "another script than ours"
    rest = text.replace(ours, "")
    assert "href" not in rest and "url(" not in rest and not re.search(r"\son[a-z]+=", rest), "something active in it"
    assert "http://" not in rest.replace("http://www.w3.org/2000/svg", ""), "it needs something else"
    ET.fromstring(text)


def zooms(page):
    first = page.run(SHOWN)
    whole = first[0]
    narrow = [i for i, f in enumerate(first) if f["y"] < whole["y"] - 30 and 4 < f["w"] < whole["w"] / 2]
    assert narrow, "no frame to zoom to"
    at = max(narrow, key=lambda i: first[i]["w"])
    page.run(CLICK % at)
    then = page.run(SHOWN)
    scale = (whole["w"] + 0.6) / (first[at]["w"] + 0.6)      # 0.6 is the gap between frames
    assert abs(then[at]["x"] - whole["x"]) < 0.01 and abs(then[at]["w"] - whole["w"]) < 0.01, then[at]
    for a, b in zip(first, then):
        inside = a["y"] <= first[at]["y"] and a["x"] >= first[at]["x"] - 0.1 and a["x"] + a["w"] <= first[at]["x"] + first[at]["w"] + 0.7
        below = a["y"] > first[at]["y"] and a["x"] <= first[at]["x"] + 0.1 and a["x"] + a["w"] >= first[at]["x"] + first[at]["w"] - 0.7
        assert b["shown"] == (inside or below) or a["w"] < 1, (a, b)
        assert not b["shown"] or b["fits"], b
        if b["shown"] and below:
            assert abs(b["w"] - whole["w"]) < 0.01, b
        if b["shown"] and inside and a["w"] > 2:
            assert abs(b["w"] + 0.6 - (a["w"] + 0.6) * scale) < 0.1 + scale * 0.02, (a, b, scale)
    assert then[at]["text"].startswith(first[at]["name"]), "no name where there is room"
    page.run(f"{CONTROL}.find(t => t.textContent === 'Reset zoom').dispatchEvent(new MouseEvent('click'))")
    last = page.run(SHOWN)
    assert all(b["shown"] and abs(a["x"] - b["x"]) < 0.01 and abs(a["w"] - b["w"]) < 0.01 for a, b in zip(first, last)), "not as before"


def searches(page):
    first = page.run(SHOWN)
    names = [f["name"] for f in first]
    part = next(n for n in reversed(names) if len(n) > 2)
    page.run(f"window.prompt = () => {part[1:].upper()!r}; {CONTROL}[0].dispatchEvent(new MouseEvent('click'))")
    then = page.run(SHOWN)
    found = [part[1:].lower() in n.lower() for n in names]
    assert [f["lit"] for f in then] == found and any(found), part
    widths = page.run("[...document.querySelectorAll('g[data-n]')].map(g => [+g.getAttribute('data-x'), +g.getAttribute('data-w')])")
    lowest = []
    for i in sorted((i for i, hit in enumerate(found) if hit), key=lambda i: -first[i]["y"]):
        if not any(x - 1e-3 <= widths[i][0] and widths[i][0] + widths[i][1] <= x + w + 1e-3 for x, w in lowest):
            lowest.append(widths[i])
    share = 100 * sum(w for _, w in lowest) / widths[0][1]
    said = page.run(f"{CONTROL}[0].textContent")
    assert abs(float(said.split(":")[-1].strip(" %")) - share) <= 0.06, (said, share)
    page.run(f"window.prompt = () => ''; {CONTROL}[0].dispatchEvent(new MouseEvent('click'))")
    assert not any(f["lit"] for f in page.run(SHOWN)) and page.run(f"{CONTROL}[0].textContent") == "Search"


def main(path, prefix):
    failed = 0

    def case(name, check, *args):
        nonlocal failed
        try:
            check(*args)
            print(f"ok {prefix}-{name}", flush=True)
        except Exception as e:
            failed += 1
            print(f"FAIL {prefix}-{name}: {type(e).__name__}: {str(e)[:400]}".replace("\n", " "), flush=True)

    case("alone", alone, path)
    if not chromium.program():
        print(f"SKIP {prefix}-zoom: no Chromium; install chromium-headless-shell")
        return
    b = chromium.Browser()
    try:
        page = chromium.Page(b)
        page.go("file://" + os.path.abspath(path))
        page.wait("document.querySelectorAll('text[role=button]').length === 2")
        case("zoom", zooms, page)
        case("search", searches, page)
        if os.environ.get("SHOTS"):
            page.run(CLICK % 2)
            page.shot(os.environ["SHOTS"] + f"/{prefix}.png")
        errors = page.errors()
        case("no-error", lambda: errors and (_ for _ in ()).throw(AssertionError(errors)))
    finally:
        b.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
