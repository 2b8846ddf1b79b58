# SPDX-License-Identifier: Apache-2.0
"""Drives the page of watts in a headless Chromium against what the socket says at the same time.
web.py page URL SOCKET CGROUP HOSTILE AGENT-COMMAND... : prints "ok NAME" or "FAIL NAME: reason" a line."""
import http.client
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser as chromium
from summed import summed


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("jouled")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


class Stream(threading.Thread):
    """Documents of the agent's own interval, by number."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.documents = path, {}
        self.start()

    def run(self):
        try:
            c = Unix(self.path)
            c.request("GET", "/v1/stream?format=json")
            for line in c.getresponse():
                d = json.loads(line)
                self.documents[d["number"]] = d
        except (OSError, http.client.HTTPException, ValueError):
            pass


def watts(uj, ns):
    return uj * 1000 / ns if ns else 0


def expected(d):
    """Watts of each row of a document, summed over the domains that add up."""
    names = summed([x["name"] for x in d["domains"]])
    domains = [x for x in d["domains"] if x["name"] in names]
    rows = {r["name"]: sum(watts(r["energy_uj"][x["name"]], x["interval_ns"]) for x in domains) for r in d["rows"]}
    rows["idle"] = rows.get("idle", 0) + sum(watts(x["idle_uj"], x["interval_ns"]) for x in domains)
    return rows, sum(watts(x["energy_uj"], x["interval_ns"]) for x in domains)


SHOWN = """(() => { const w = document.getElementById('watts').dataset;
return { number: +w.number, total: +w.watts, rows: [...document.querySelectorAll('#rows tr')].map(r => [r.dataset.name, +r.dataset.watts, r.cells[0].textContent]) }; })()"""


ROWS = 200      # of page.html: the table has no more


def near(a, b):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b)) + 1e-12


def same_watts(page, stream):
    """Of one interval, which both got."""
    end = time.monotonic() + 240
    while time.monotonic() < end:
        shown = page.run(SHOWN)
        d = stream.documents.get(shown["number"])
        if not d:
            page.browser.pump(0.1)
            continue
        rows, total = expected(d)
        assert near(shown["total"], total), (shown["total"], total)
        table = {name: w for name, w, _ in shown["rows"]}
        # Beside a test with hundreds of cgroups the largest alone are in the table
        least = min(table.values()) if len(shown["rows"]) == ROWS else 0
        beside = {name: w for name, w in rows.items() if name not in table}
        missing = [name for name, w in beside.items() if w >= 0.0005 and not w <= least + 1e-9]
        assert not missing, missing
        wrong = [(name, w, rows.get(name)) for name, w in table.items() if name != "residual" and not near(w, rows.get(name, -1))]
        assert not wrong, wrong
        told = sum(table.values()) + sum(beside.values())
        assert abs(told - total) < 0.001 * len(rows) + 1e-6, (told, total)
        return
    raise AssertionError("no interval that both got")


def search(page, text):
    page.run(f"(() => {{ const s = document.getElementById('search'); s.value = {json.dumps(text)}; s.dispatchEvent(new Event('input')); }})()")
    return [name for name, _, _ in page.run(SHOWN)["rows"]]


def filters(page, cgroup):
    whole = search(page, "")
    found = search(page, cgroup.upper())
    assert found and all(cgroup in name for name in found) and len(found) < len(whole), (found, whole)
    assert search(page, "no cgroup has this name") == []
    assert len(search(page, "")) >= len(found)


def sorts(page):
    page.run("document.querySelector('[data-sort=name]').click()")
    names = [r[0] for r in page.run(SHOWN)["rows"]]
    assert names == sorted(names) and len(names) > 2, names
    page.run("document.querySelector('[data-sort=watts]').click()")
    values = [r[1] for r in page.run(SHOWN)["rows"]]
    assert values == sorted(values, reverse=True), values


def joules(page):
    """Of each row and of all together: what came since the page was opened, and no less later."""
    sums = """(() => ({ number: page.doc.number, rows: page.list.map(r => [key_of(r), r.used.reduce((a, v) => a + v, 0)]),
        shown: [...document.querySelectorAll('#rows tr')].map(r => r.cells[2].textContent) }))()"""
    first = page.run(sums)
    assert first["shown"] and all(t.endswith("J") for t in first["shown"]), first["shown"][:5]
    page.wait(f"page.doc.number > {first['number']}")
    then = dict(page.run(sums)["rows"])
    assert all(then.get(name, uj) >= uj for name, uj in first["rows"]) and sum(then.values()) > sum(uj for _, uj in first["rows"]), then
    grown = page.run("""(() => { const r = page.list[0], before = r.used[0], d = page.doc; add_up(d);
        return [page.list[0].used[0] - before, r.by[0] * d.domains[0].interval_ns / 1000]; })()""")
    assert near(*grown) or abs(grown[0] - grown[1]) < 1, grown


def costs(page):
    """Per day, of the machine and of each row, at the configured price and intensity; block work beside the network's."""
    work = page.run("""(() => { const d = structuredClone(page.doc), r = d.rows.find(r => r.kind === 'cgroup'); d.interval_ns = 2e9; d.number++;
        [r.rx_bytes, r.tx_bytes, r.read_bytes, r.write_bytes] = [2000, 4000, 6e6, 8e9]; const now = rows_of(d).find(e => e.name === r.name);
        const node = row_node("work"); fill(node, { ...now, watts: 1, joules: 1 }, 1); page.nodes.delete("work");
        return [...node.cells].slice(5, 9).map(c => c.textContent); })()""")
    assert work == ["1.00k", "2.00k", "3.00M", "4.00G"], work
    shown = page.run("""(() => ({ facts: $('facts').textContent, heads: [$('price').hidden, $('carbon').hidden],
        rows: [...document.querySelectorAll('#rows tr')].map(r => [r.cells.length, r.cells[9].hidden, r.cells[9].textContent, r.cells[10].textContent, a_day(+r.dataset.watts)]),
        day: a_day(1000), none: (() => { const was = page.cost; page.cost = {}; const d = a_day(1); page.cost = was; return d; })() }))()""")
    assert shown["day"] == {"price": "7.68", "carbon": "8400 g"}, shown["day"]      # 24 kWh at 0.32 and 350 g
    assert shown["none"] == {"price": None, "carbon": None} and shown["heads"] == [False, False], shown
    assert "cost per day" in shown["facts"] and "CO₂ per day" in shown["facts"], shown["facts"]
    assert shown["rows"] and all(n == 11 and not hidden and [a, b] == [d["price"], d["carbon"]] for n, hidden, a, b, d in shown["rows"]), shown["rows"][:3]


def tree(page, cgroup):
    """A parent has the sum of what is below it; special rows stay; nothing is there twice."""
    page.run("document.getElementById('idle').click(); 0")
    got = page.run("""(() => { page.frozen = true; const flat_rows = page.list.filter(r => !r.special).map(r => [r.name, sum(r.by)]);
        document.getElementById('tree').click();
        const rows = [...document.querySelectorAll('#rows tr')].map(r => [r.dataset.name, +r.dataset.watts, r.cells[0].textContent, r.classList.contains('special')]);
        return { flat_rows, rows, pressed: document.getElementById('tree').getAttribute('aria-pressed') }; })()""")
    assert got["pressed"] == "true"
    cgroups = [r for r in got["rows"] if not r[3]]
    names = [r[0] for r in cgroups]
    assert len(names) == len(set(names)) and any(cgroup in n for n in names), names
    for name, w, text, _ in cgroups:
        below = sum(v for n, v in got["flat_rows"] if n == name or n.startswith(name.rstrip("/") + "/") and name != "/")
        assert abs(w - below) < 1e-6 * max(1, below), (name, w, below)
        assert name.endswith(text), (name, text)
    for i, name in enumerate(names):
        parent = name.rsplit("/", 1)[0]
        assert not parent or parent in names[:i], (name, names[:i])
    page.run("document.getElementById('tree').click(); document.getElementById('idle').click(); page.frozen = false; 0")
    # three levels, which this machine may not have
    made = page.run("""(() => { const row = (name, v) => ({ name, names: {}, special: false, quality: 'measured', cpu: v, rx: v, tx: v, watts: v, joules: v });
        return flat(tree_of([row('/a/b/c', 1), row('/a/b', 2), row('/a/d', 4), row('/e', 8)]), () => true, (a, b) => a.name < b.name ? -1 : 1)
            .map(n => [n.name, n.leaf, n.depth, n.watts, n.joules]); })()""")
    assert made == [["/a", "/a", 0, 7, 7], ["/a/b", "/b", 1, 3, 3], ["/a/b/c", "/c", 2, 1, 1], ["/a/d", "/d", 1, 4, 4], ["/e", "/e", 0, 8, 8]], made


def isolates(page):
    """A click on an entry of the legend leaves its area alone; a second click brings all back."""
    page.run("page.frozen = true; draw(); 0")
    many = page.run("page.frame.layers.map(l => l.filter(v => v > 0).length).reduce((a, v) => Math.max(a, v), 0)")
    assert many > 1, many
    name = page.run("(() => { const b = [...document.querySelectorAll('#legend button')].pop(); b.focus(); b.click(); return b.dataset.name; })()")
    only = page.run("[...new Set(page.frame.layers.flatMap(l => l.map((v, k) => v > 0 ? names()[k] : null)).filter(n => n !== null))]")
    assert only == [name], (only, name)
    assert page.run("document.querySelectorAll('#legend button[aria-pressed=true]').length") == 1
    assert page.run("document.querySelectorAll('#legend button').length") > 1
    page.run("document.querySelector('#legend button[aria-pressed=true]').click(); 0")
    assert page.run("page.frame.layers.map(l => l.filter(v => v > 0).length).reduce((a, v) => Math.max(a, v), 0)") == many
    page.run("page.frozen = false; 0")


def totals(page):
    """The tooltip's first line is the total of that step, the sum of what is below it."""
    page.run("page.frozen = true; 0")
    lines = page.run("""(() => { page.pointer = page.frame.f.right - 2; tip(); return [...document.querySelectorAll('#tip div')].map(d => d.textContent); })()""")
    assert len(lines) > 2 and lines[1].startswith("total") and lines[1].endswith(" W"), lines
    layers, total = page.run("(() => { const d = page.frame, i = d.shown.length - 1; return [d.layers[i].reduce((a, v) => a + v, 0), sum(d.shown[i].total)]; })()")
    assert abs(layers - total) < 1e-4 * max(total, 1), (layers, total)
    assert lines[1] == "total" + page.run(f"number({total!r})") + " W", (lines[1], total)
    page.run("page.pointer = null; tip(); page.frozen = false; 0")


def mended(page):
    """Explained where it stands, and no loss."""
    got = page.run("""(() => { page.frozen = true; const kept = page.doc.losses; page.doc.losses = { ...kept, switches_mended: 98765 }; show();
        const r = [document.getElementById('note').textContent, document.getElementById('facts').textContent]; page.doc.losses = kept; page.frozen = false; return r; })()""")
    assert "98765 switches" in got[0] and "CPU time is exact" in got[0] and "mended" not in got[1] and "98765" not in got[1], got


def detail(page, hostile):
    """Opened by a button, so by the keyboard too; closed by Escape, and the focus is where it was."""
    search(page, hostile)
    page.run("document.querySelector('#rows button').focus(); document.activeElement.click(); 0")
    assert page.run("document.querySelector('#detail h2').textContent") == hostile
    assert page.run("document.activeElement === document.querySelector('#detail h2') && !document.getElementById('detail').hidden")
    text = page.run("document.querySelector('#detail dl').textContent")
    assert "power" in text and "quality" in text and page.run("page.domains.every(d => document.querySelector('#detail dl').textContent.includes(d.name))"), text
    page.run("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true })); 0")
    assert page.run("document.getElementById('detail').hidden && document.activeElement === document.querySelector('#rows button')")
    search(page, "")


def moment(page, base):
    """A click is a link to a moment: its address shows the same, from the history, in another tab and for another window."""
    page.run("""(() => { const c = document.getElementById('chart'), b = c.getBoundingClientRect();
        c.dispatchEvent(new MouseEvent('click', { clientX: b.left + page.frame.f.left + (page.frame.f.right - page.frame.f.left) * 0.7, clientY: b.top + 50, bubbles: true })); })()""")
    at, link = page.run("[page.at, location.href]")
    assert at and link.startswith(base + "#at=2") and "&last=300" in link, link
    assert page.run("document.getElementById('moment').value.length") == 19
    page.wait("page.long && !page.long.busy && page.long.past.length > 2 && page.frame.shown.length > 2")
    again = chromium.Page(page.browser)
    again.go(link)
    again.wait("typeof page === 'object' && page.long && !page.long.busy && page.frame && page.frame.shown.length > 2")
    assert again.run("[page.at, document.getElementById('window').value]") == [at, "300"]
    assert again.run("page.frame.f.start <= page.at && page.at <= page.frame.f.end")
    assert not again.errors(), again.errors()
    again.send("Page.navigate", url="about:blank")
    for seconds, step in ((3600, "5s"), (21600, "1m"), (86400, "2m")):
        page.run(f"(() => {{ const w = document.getElementById('window'); w.value = {seconds}; w.dispatchEvent(new Event('input')); }})()")
        page.wait(f"page.long && page.long.key.startsWith('{seconds}000 ') && !page.long.busy")
        assert page.run("page.long.text") == "", page.run("page.long.text")
        assert any(f"step={step}" in u for u in page.requests()), page.requests()[-3:]
        assert page.run("page.long.past.length > 0 && page.long.past.length <= 1000")
        assert page.run("page.frame.f.end - page.frame.f.start") == seconds * 1000
    page.run("(() => { const m = document.getElementById('moment'); m.value = ''; m.dispatchEvent(new Event('change')); })()")
    page.wait("page.at === null && page.long.key.endsWith(' null') && !page.long.busy && page.long.past.length > 0")
    page.run("(() => { const w = document.getElementById('window'); w.value = 300; w.dispatchEvent(new Event('input')); })()")
    assert page.run("shown_past() === page.past && location.href") == base


def leaves(page):
    """A path of 200 characters keeps its last component, within the width."""
    got = page.run("""(() => { const box = document.createElement('div'); box.style.width = '200px'; document.querySelector('main').append(box);
        const n = set_name(document.createElement('span'), '/kubepods.slice/' + 'x'.repeat(170) + '/leaf.scope'); box.append(n);
        const b = n.querySelector('b'), r = { text: n.textContent, tail: b.textContent, whole: b.scrollWidth <= b.clientWidth, width: n.offsetWidth }; box.remove(); return r; })()""")
    assert got["tail"] == "/leaf.scope" and got["whole"] and got["width"] <= 200 and len(got["text"]) == 197, got


def inert(page, hostile):
    texts = [r[2] for r in page.run(SHOWN)["rows"] if r[0] == hostile]
    assert texts == [hostile], texts
    assert page.run("document.querySelectorAll('img, #rows script, #legend script').length") == 0
    assert page.run("typeof window.hacked") == "undefined"
    assert not page.mine("Page.javascriptDialogOpening")


class Elsewhere(http.server.ThreadingHTTPServer):
    """Another origin, which lets everybody in: only the page's policy keeps the page away."""
    daemon_threads = True

    def __init__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.server.asked += 1
                self.send_response(200)
                self.send_header("Access-Control-Allow-Origin", "*")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *args):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *why):
        self.shutdown()
        super().__exit__(*why)


def policy(page):
    page.run("(() => { const s = document.createElement('script'); s.textContent = 'window.hacked = 1'; document.body.append(s); s.remove(); })()")
    page.run("(() => { const d = document.createElement('div'); d.innerHTML = '<img src=x onerror=\"window.hacked = 2\">'; document.body.append(d); })()")
    with Elsewhere() as other:
        url = f"http://127.0.0.1:{other.server_address[1]}/"
        page.run("window.broken = []; document.addEventListener('securitypolicyviolation', e => window.broken.push(e.effectiveDirective)); 0")
        assert page.run(f"fetch('{url}').then(() => 'sent', e => 'refused')") == "refused"
        assert page.run(f"fetch('{url}', {{ mode: 'no-cors' }}).then(() => 'sent', e => 'refused')") == "refused"
        page.wait("window.broken.filter(d => d === 'connect-src').length === 2")
        page.browser.pump(1)
        assert other.asked == 0, f"{other.asked} requests arrived"
        urllib.request.urlopen(url).read()
        assert other.asked == 1        # it does answer
    assert page.run("typeof window.hacked") == "undefined"


def elsewhere(page, base):
    urls = [u for u in page.requests() if not u.startswith("data:")]
    assert urls and all(u.startswith(base) for u in urls), urls
    assert not any("token" in u for u in urls[1:]) and page.run("location.href") == base, urls
    assert not page.errors(), page.errors()


def layout(page, folder):
    ground = set()
    for width, height, dark in ((360, 740, False), (360, 740, True), (1400, 900, False), (1400, 900, True)):
        page.look(width, height, dark)
        page.wait(f"window.innerWidth === {width} && matchMedia('(prefers-color-scheme: dark)').matches === {str(dark).lower()}")
        number = page.run(SHOWN)["number"]
        page.wait(f"+document.getElementById('watts').dataset.number > {number}")     # drawn anew
        assert page.run("document.documentElement.scrollWidth") <= width
        inked = page.run("""(() => { const c = document.getElementById('areas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
            let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 200; return n / (d.length / 4); })()""")
        assert inked > 0.02, (width, inked)
        small = page.run("[...document.querySelectorAll('main *')].filter(e => e.offsetWidth && parseFloat(getComputedStyle(e).fontSize) < 12).length")
        assert small == 0, small
        ground.add((dark, page.run("getComputedStyle(document.body).backgroundColor")))
        page.shot(os.path.join(folder, f"page-{width}-{'dark' if dark else 'light'}.png"))
    assert len(ground) == 2 and len({g for _, g in ground}) == 2, ground


def reconnects(page, agent):
    """The agent, killed and started again: the page says so and goes on."""
    pid, command = int(agent[0]), agent[1:]
    os.kill(pid, signal.SIGKILL)
    page.wait("document.getElementById('state').textContent.includes('trying again')")
    number = page.run(SHOWN)["number"]
    again = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        page.wait("document.getElementById('state').textContent === 'live'", 60)
        page.wait(f"+document.getElementById('watts').dataset.number !== {number}")
    finally:
        again.terminate()
        again.wait()


def kept_points(path):
    c = Unix(path)
    c.request("GET", "/v1/history?since=-15m&limit=20")
    return len({p[0] for s in json.load(c.getresponse()).get("series", []) for p in s["points"]})


def recalls(page, opened):
    """What the history knows of the time before the page was opened, without a gap to what came after."""
    page.wait(f"page.past.length > 2 && page.past[0].end < {(opened - 2) * 1000}")
    assert page.run("page.past.every((e, i) => !i || Math.abs(e.start - page.past[i - 1].end) < 600)"), page.run("page.past.map(e => [e.start, e.end])")


def case(name, check, *args):
    try:
        check(*args)
        print("ok", name, flush=True)
        return 0
    except Exception as e:      # whatever it is, the next case may still tell more
        print(f"FAIL {name}: {type(e).__name__}: {str(e)[:400]}".replace("\n", " "), flush=True)
        return 1


def main(url, path, cgroup, hostile, folder, *agent):
    if not chromium.program():
        print("SKIP web-page: no Chromium; install chromium-headless-shell")
        return 0
    base = url.split("?")[0]
    stream = Stream(path)
    b = chromium.Browser()
    bad = 0
    try:
        page = chromium.Page(b)
        end = time.monotonic() + 240
        while kept_points(path) < 5 and time.monotonic() < end:
            time.sleep(0.2)
        opened = time.time()
        page.go(url)
        bad += case("web-page-rows", page.wait, "document.querySelectorAll('#rows tr').length > 2 && document.getElementById('state').textContent === 'live'")
        bad += case("web-page-watts", same_watts, page, stream)
        bad += case("web-page-recalls", recalls, page, opened)
        bad += case("web-page-search", filters, page, cgroup)
        bad += case("web-page-sort", sorts, page)
        bad += case("web-page-joules", joules, page)
        bad += case("web-page-costs", costs, page)
        bad += case("web-page-tree", tree, page, cgroup)
        bad += case("web-page-isolates", isolates, page)
        bad += case("web-page-totals", totals, page)
        bad += case("web-page-mended", mended, page)
        bad += case("web-page-detail", detail, page, hostile)
        bad += case("web-page-moment", moment, page, base)
        bad += case("web-page-leaves", leaves, page)
        bad += case("web-page-hostile-name", inert, page, hostile)
        bad += case("web-page-layout", layout, page, folder)
        bad += case("web-page-nothing-from-elsewhere", elsewhere, page, base)
        bad += case("web-page-policy", policy, page)
        bad += case("web-page-reconnects", reconnects, page, agent)
    finally:
        b.close()
    return bad != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[2:]))
