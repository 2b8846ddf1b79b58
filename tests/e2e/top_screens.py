# SPDX-License-Identifier: Apache-2.0
"""joulectl top on a terminal of 80x24 and 200x60, its screens compared with what recordings of known content
must show. top_screens.py JOULECTL DIRECTORY [CASE...]; prints ok or FAIL for each."""
import csv
import json
import os
import re
import resource
import subprocess
import sys
import termios
import traceback

from top_recording import CGROUP, KERNEL, S, Machine
from top_terminal import Terminal

JOULECTL, WORK = sys.argv[1:3]
WEB, DB, POD = "/system.slice/web.service", "/system.slice/db.service", "/kubepods/pod1/box"


def rows(k=1):
    """10 W machine: db 4, web 2, box 1, kernel 0.5; idle 2, residual 0.5 W."""
    return [
        (KERNEL, None, {"uj": [500_000 * k], "cpu": S // 20, "counters": [100, 50]}),
        (CGROUP, WEB, {"uj": [2_000_000 * k], "cpu": S // 4, "counters": [1000, 1500], "net": (1500, 5_000_000)}),
        (CGROUP, DB, {"uj": [4_000_000 * k], "cpu": S // 2, "counters": [1000, 2000]}),
        (CGROUP, POD, {"uj": [1_000_000 * k], "cpu": S // 10, "counters": [1000, 250]}),
        (CGROUP, "/idle.slice", {"uj": [0]}),
    ]


def record(name, machine, documents):
    path = os.path.join(WORK, name)
    with open(path, "wb") as f:
        f.write(machine.header() + b"".join(documents))
    return path


def usual(name="usual", n=1, interval=S):
    m = Machine(interval=interval)
    return record(name, m, [m.snapshot(rows(i + 1), [2_000_000], [500_000]) for i in range(n)])


def top(path, columns=80, lines=24, *more, env=None):
    return Terminal([JOULECTL, "top", "--replay", path, *more], columns, lines, dict({"TZ": "UTC"}, **(env or {})))


def names(text):
    """Last words of the lines between the heading and the two at the bottom."""
    lines = text.split("\n")
    at = next(i for i, line in enumerate(lines) if "JOULES" in line)
    return [line.split()[-1] for line in lines[at + 1:-2] if line.strip()]


def same(got, want, what):
    if got != want:
        raise AssertionError(f"{what}:\n  is     {got!r}\n  should {want!r}")


def leave(t, status=0):
    t.type("q")
    same(t.ended(), status, "exit status")
    t.close()


def case_first_screen():
    t = top(usual())
    text = t.wait("rows", lambda s: "end of the recording" in s).split("\n")
    same(text[0], "jouled node-7   10.00 W    2 CPUs 50.0 % busy   4 cgroups  1.000 s  22:30:01 UTC", "title")
    # 21 cells up to the peak, 10 W: rows 7.5, idle 2, residual 0.5; a cell is what holds its middle
    bar = "█" * 16 + "▒" * 4 + "░"
    same(text[1].replace(bar, "BAR"), "package-0     10.00 W  BAR  idle   2.000 W  residual 0.500 W", "domain")
    same(text[2].rstrip(), "  ▼WATTS   JOULES   CPU%    IPC  RX/s  TX/s to 4.000 W    CGROUP", "heading")
    same(text[3], "   4.000    4.000   50.0   2.00     0     0            █  /system.sl…/db.service", "db")
    same(text[4], "   2.000    2.000   25.0   1.50  1.5k  5.0M            ▄  /system.s…/web.service", "web")
    same(text[5], "   1.000    1.000   10.0   0.25     0     0            ▂  /kubepods/pod1/box", "box")
    same(text[6], "   0.500    0.500    5.0   0.50     0     0            ▁  kernel", "kernel")
    same(text[7:21], [""] * 14, "idle ones are hidden")
    same(text[22].strip(), "playing 1x   4 lines", "status")
    leave(t)


def case_large_screen():
    m = Machine(domains=(("package", "package-0"), ("dram", "dram-0"), ("psys", "psys")))
    table = [(CGROUP, WEB, {"uj": [3_000_000, 1_000_000, 5_000_000], "cpu": S, "counters": [10, 10]})]
    path = record("large", m, [m.snapshot(table, [1_000_000, 0, 2_000_000], [0, 0, 0]) for _ in range(3)])
    t = top(path, 200, 60)
    text = t.wait("rows", lambda s: "12.00" in s).split("\n")
    # psys holds the others: the machine is package + dram
    assert "   5.000 W " in text[0], text[0]
    for line, name, watts, joules in ((1, "package-0", "4.000", "12.00"), (2, "dram-0", "1.000", "3.000"),
                                      (3, "psys", "7.000", "21.00")):
        assert re.match(rf"{name} +{watts} W .*{joules} J .*███$", text[line]), text[line]
    same(text[5].split(), ["4.000", "12.00", "100.0", "1.00", "-", "-", "███", WEB], "row")
    t.type("d")
    t.wait("package alone", lambda s: "▼package " in s and "   3.000" in s.split("\n")[5])
    t.type("dd")
    t.wait("psys alone", lambda s: "▼psys W" in s and "   5.000" in s.split("\n")[5])
    t.type("d")
    t.wait("all", lambda s: "WATTS" in s)
    leave(t)


def case_block():
    """Bytes read and written and requests of all kinds, where there is room for them."""
    m = Machine()
    table = [(CGROUP, WEB, {"uj": [3_000_000], "cpu": S, "counters": [10, 10], "block": [5_000_000, 40, 2000, 3, 0, 1]})]
    path = record("block", m, [m.snapshot(table, [1_000_000], [0]) for _ in range(3)])
    t = top(path, 90, 24)
    text = t.wait("rows", lambda s: WEB in s).split("\n")
    same(text[2].split()[4:10], ["RX/s", "TX/s", "RD/s", "WR/s", "IO/s", "CGROUP"], "heading")
    same(text[3].split()[4:], ["-", "-", "5.0M", "2.0k", "44", WEB], "row")
    leave(t)


def case_tree():
    t = top(usual(), 100, 24)
    t.wait("rows", lambda s: "end of" in s)
    t.type("t")
    text = t.wait("the tree", lambda s: "SUBTREE" in s).split("\n")
    tail = [line[65:] for line in text[3:11]]
    same(tail, ["/", "├─system.slice", "│ ├─db.service", "│ └─web.service", "└─kubepods", "  └─pod1", "    └─box",
                "kernel"], "tree")
    same([line.split()[0] for line in text[3:11]], ["7.000", "6.000", "4.000", "2.000", "1.000", "1.000", "1.000", "0.500"],
         "sums of subtrees")
    t.type("jj ")
    t.wait("a folded branch", lambda s: "system.slice [+]" in s and "db.service" not in s)
    t.type("+")
    t.wait("an unfolded branch", lambda s: "db.service" in s and "[+]" not in s)
    t.type("j ")
    t.wait("a leaf does not fold", lambda s: "db.service: nothing is below it" in s and "[+]" not in s)
    t.type("t")
    t.wait("the list", lambda s: "SUBTREE" not in s and "/kubepods/pod1/box" in s)
    leave(t)


def case_pane():
    t = top(usual("pane", 3), 80, 24)
    t.wait("rows", lambda s: "end of" in s)
    t.type("\r")
    text = t.wait("the pane", lambda s: "HISTORY" in s).split("\n")
    same(text[0], "db.service", "title")
    same(text[1], "  12.00 W  24.00 J  50.0 CPU%  CPU time 1.50  own", "sums")
    same(text[4].strip(), DB, "the whole name")
    same(text[6].split(), ["package-0", "12.00", "12.000000", "48.0", "measured", "not", "known"], "domain")
    same([line.split() for line in text[8:15]],
         [["CYCLES", "1000", "1.0k/s"], ["INSTRUCTIONS", "2000", "2.0k/s"], ["switches", "1", "1/s"],
          ["bytes", "received", "0", "0/s"], ["bytes", "sent", "0", "0/s"],
          ["bytes", "read", "0", "0/s"], ["bytes", "written", "0", "0/s"]], "counters")
    same(text[15], "HISTORY of 3 intervals: mean 8.000, greatest 12.00 W", "history")
    bars = [line[10:].strip() for line in text[16:23]]
    assert bars[-1] == "███" and bars[0].endswith("█") and len(bars[0]) == 1, bars
    t.type("j")
    t.wait("the next row", lambda s: s.startswith("web.service") and WEB in s)
    t.type("\x1b")
    t.wait("the list with its cursor there", lambda s: "JOULES" in s and WEB in s.split("\n")[22])
    leave(t)


def case_export():
    path = os.path.abspath(usual())
    t = Terminal(["sh", "-c", f"cd '{WORK}' && exec '{os.path.abspath(JOULECTL)}' top --replay '{path}'"], 100, 24)
    t.wait("rows", lambda s: "end of" in s)
    for key, end in (("e", "csv"), ("E", "json")):
        t.type(key)
        text = t.wait("its name", lambda s: f".{end}" in s.split("\n")[23])
        name = os.path.join(WORK, text.split("\n")[23].split()[-1])
        with open(name, newline="") as f:
            got = list(csv.DictReader(f)) if end == "csv" else json.load(f)["rows"]
        os.unlink(name)
        same([(r["cgroup"], int(r["energy_uj"]), int(r["cpu_ns"])) for r in got],
             [(DB, 4_000_000, S // 2), (WEB, 2_000_000, S // 4), (POD, 1_000_000, S // 10), ("kernel", 500_000, S // 20)], end)
    leave(t)


def at(text):
    return text.split("\n")[0].split()[-2]


def case_replay():
    """Interval n is at 22:30:00 + n s and has n x 4 J of db.service."""
    def joules(n):
        return f"{4.0 * n * (n + 1) / 2:.4g}"

    def shown(n):
        v = float(joules(n))
        return f"{v:.0f}" if v >= 1000 else f"{v:#.4g}"

    t = top(usual("replayed", 200), 100, 24)
    t.type("P")
    t.wait("paused", lambda s: "PAUSED 1x" in s)
    t.type(".")
    t.wait("a step", lambda s: "PAUSED" in s and "db.service" in s)
    t.type("}")
    text = t.wait("60 on", lambda s: "22:31:0" in s)
    n = int(at(text)[-2:]) + 60
    for key, d in ((".", 1), (".", 1), (",", -1), ("{", -60), ("}", 60), ("{{{", None)):
        t.type(key)
        n = n + d if d else 1
        want = f"22:{30 + n // 60}:{n % 60:02}"
        # the line may still be on its way when the clock is there
        t.wait(f"interval {n} with {joules(n)} J", lambda s: at(s) == want and (s.split("\n")[3].split() + ["", ""])[1] == shown(n))
    t.type("]]]]]]]]]]")
    t.wait("faster", lambda s: "PAUSED 1024x" in s)
    t.type("P")
    t.wait("the end, though 200 s long", lambda s: "end of the recording" in s)
    t.type(",")
    t.wait("back from the end", lambda s: "PAUSED" in s and at(s) == "22:33:19" and "end of" not in s)
    leave(t)
    path = usual("piped", 2)
    t = Terminal(["sh", "-c", f"exec '{JOULECTL}' top --replay - <'{path}'"], 80, 24)
    t.wait("the end", lambda s: "end of" in s)
    t.type(",")
    t.wait("a pipe has no way back", lambda s: "cannot go back" in s)
    leave(t)


def case_filter():
    t = top(usual(), 120, 24)
    t.wait("rows", lambda s: "end of" in s)
    t.type("/S")
    t.wait("a prompt", lambda s: "filter: S" in s)
    t.type("ERVICE")
    same(names(t.wait("two rows", lambda s: "filter: SERVICE " in s)), [DB, WEB], "any case")
    t.type("x")
    t.wait("nothing", lambda s: "nothing has that" in s)
    t.type("\x7f\r")
    t.wait("it is kept", lambda s: "filter: SERVICE" in s and "2 lines" in s and DB in s)
    t.type("t")
    same(names(t.wait("the tree", lambda s: "SUBTREE" in s)), ["/", "└─system.slice", "├─db.service", "└─web.service"],
         "parents of what matches")
    t.type("\x1b")
    t.wait("no filter", lambda s: "kernel" in s)
    t.type("/q\r")
    t.wait("q is a letter here", lambda s: "filter: q" in s)
    leave(t)


def case_sort():
    t = top(usual(), 120, 24)
    t.wait("rows", lambda s: "end of" in s)
    for key, want in (("A", [POD, DB, WEB, "kernel"]), ("r", ["kernel", WEB, DB, POD]), ("rI", [DB, WEB, "kernel", POD]),
                      ("N", [WEB, DB, POD, "kernel"]), ("C", [DB, WEB, POD, "kernel"])):
        t.type(key)
        t.wait(f"order by {key}", lambda s, w=want: names(s) == w)
    t.type("C")
    t.wait("the same column again", lambda s: names(s) == ["kernel", POD, WEB, DB] and "▲CPU%" in s)
    t.type("o")
    t.wait("a scale for each", lambda s: "own scale" in s and all("█" in line for line in s.split("\n")[3:7]))
    t.type("i")
    t.wait("idle ones", lambda s: "/idle.slice" in s)
    leave(t)


def mouse(t, button, text, word, line=None):
    """Presses the button on the word: 0 left, 64 and 65 the wheel."""
    lines = text.split("\n")
    y = line if line is not None else next(i for i, s in enumerate(lines) if word in s)
    x = lines[y].index(word)
    sgr = b"\x1b[?1006" in t.raw
    for pressed in (True, False) if button < 64 else (True,):
        t.type(f"\x1b[<{button};{x + 1};{y + 1}{'M' if pressed else 'm'}" if sgr else
               "\x1b[M" + "".join(chr(32 + v) for v in (button if pressed else 3, x + 1, y + 1)))


def case_mouse():
    t = top(usual("mouse", 3), 120, 24, env={"TERM": "xterm"})
    text = t.wait("rows", lambda s: "end of" in s)
    assert b"1000h" in t.raw, "the mouse is not asked for"
    mouse(t, 0, text, "CPU%", 2)
    text = t.wait("the heading sorts", lambda s: names(s) == [DB, WEB, POD, "kernel"] and "▼CPU%" in s)
    mouse(t, 0, text, "CPU%", 2)
    text = t.wait("the other way round", lambda s: names(s) == ["kernel", POD, WEB, DB] and "▲CPU%" in s)
    mouse(t, 0, text, "CGROUP", 2)
    text = t.wait("by name, still the other way round", lambda s: names(s) == ["kernel", WEB, DB, POD])
    mouse(t, 0, text, "CGROUP", 2)
    text = t.wait("from the first", lambda s: names(s) == [POD, DB, WEB, "kernel"])
    mouse(t, 0, text, WEB)
    text = t.wait("the row is chosen", lambda s: WEB in s.split("\n")[22])
    mouse(t, 64, text, WEB)
    text = t.wait("the wheel moves up", lambda s: DB in s.split("\n")[22])
    mouse(t, 65, text, WEB)
    text = t.wait("and down", lambda s: WEB in s.split("\n")[22])
    mouse(t, 0, text, WEB)
    text = t.wait("the second click opens the row", lambda s: "HISTORY" in s and s.startswith("web.service"))
    mouse(t, 65, text, "HISTORY")
    text = t.wait("the wheel shows the next row", lambda s: s.startswith("kernel"))
    mouse(t, 0, text, "HISTORY")
    text = t.wait("a click goes back", lambda s: "JOULES" in s and s.startswith("jouled") and "end of" in s)
    t.type("\x1b[<0;999;999M\x1b[<0;0;0Mc")
    text = t.wait("no CPUs in a recording", lambda s: "are not recorded" in s)
    mouse(t, 0, text, "jouled")      # nothing is there
    t.type("m")
    t.wait("off", lambda s: "the terminal's" in s)
    assert b"1000l" in t.raw, "the terminal was not told"
    t.type("mt")
    t.wait("on, and the tree", lambda s: "SUBTREE" in s)
    leave(t)
    assert t.raw.rfind(b"1000l") > t.raw.rfind(b"1000h"), "the terminal still tells of the mouse"


def case_resize():
    t = top(usual(), 80, 24)
    t.wait("rows", lambda s: "end of" in s)
    for columns, lines in ((200, 60), (60, 10), (20, 5), (3, 2), (1, 1), (80, 24)):
        t.resize(columns, lines)
        t.pump(0.3)
    t.wait("the first screen again", lambda s: "/system.sl…/db.service" in s and "end of" in s)
    t.resize(200, 60)
    t.wait("names in full", lambda s: DB in s)
    leave(t)


def case_freeze():
    t = top(usual("many", 200, S // 5), 100, 24)
    t.wait("rows", lambda s: "db.service" in s)
    t.type("f")
    text = t.wait("frozen", lambda s: "FROZEN" in s)
    t.pump(1.0)                      # five intervals
    same(t.text(), text, "a frozen screen")
    t.type("f")
    t.wait("goes on", lambda s: "FROZEN" not in s and s.split("\n")[3:5] != text.split("\n")[3:5])
    # the recording's nth interval has n x 4 J: what was frozen is in the totals
    t.type("f")
    row = t.wait("frozen", lambda s: "FROZEN" in s).split("\n")[3].split()
    n = round(float(row[0]) * 0.2 / 4)
    joules = 4.0 * n * (n + 1) / 2
    assert abs(float(row[1].rstrip("k")) * (1000 if row[1].endswith("k") else 1) - joules) <= joules / 500, (row, n, joules)
    leave(t)


def case_keys_and_end():
    t = top(usual(), 80, 24)
    t.wait("rows", lambda s: "end of" in s)
    before = termios.tcgetattr(t.fd)[3]
    assert not before & termios.ECHO and not before & termios.ICANON
    t.type("?")
    t.wait("help", lambda s: "filter by name as you type" in s and "any key goes back" in s)
    t.type("q")
    t.wait("the list", lambda s: "db.service" in s)
    t.type("G")
    t.wait("the cursor shows the row's whole name", lambda s: "kernel" in s.split("\n")[22])
    t.type("kk")
    t.wait("up", lambda s: WEB in s.split("\n")[22])
    t.type("\x1b[B\x1b[A\x1b[5~\x1b[6~\x1b[[A")
    t.wait("keys with names, to the last line", lambda s: "any key" in s and "one CPU" in s)
    t.type("x\x03")
    same(t.ended(), 0, "exit status after ^C")
    after = termios.tcgetattr(t.fd)[3]
    assert after & termios.ECHO and after & termios.ICANON, "the terminal is not as it was"
    t.close()


def case_hostile_names():
    evil = ["/a\x1b]0;owned\x07b", b"/\xff\xfe\xc0\x80", "/漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字", "/ab\u202edcba\u200b", "/e\u0301tude",
            "/" + "x" * 4000, "/b\\n"]
    m = Machine()
    table = [(CGROUP, name, {"uj": [1_000_000 - i], "cpu": S // 10, "counters": [1, 1]}) for i, name in enumerate(evil)]
    path = record("evil", m, [m.snapshot(table, [0], [0])])
    for more in ((), ("--tree",)):
        t = top(path, 80, 24, *more)
        text = t.wait("rows", lambda s: "end of" in s)
        assert b"owned" in t.raw and b"\x1b]" not in t.raw and b"\x07" not in t.raw, "an escape came through"
        assert "\\x1b]0;owned\\x07b" in text and "\\xff\\xfe" in text, text
        for line in text.split("\n"):
            assert sum(2 if "\u1100" <= c <= "\uffdc" and c != "…" and c >= "\u2e80" else 1 for c in line if c) <= 81, line
        assert "\u202e" not in t.raw.decode(errors="replace") and "\u200b" not in t.raw.decode(errors="replace")
        leave(t)
    plain = subprocess.run([JOULECTL, "top", "--once", "--replay", path], capture_output=True, check=True,
                           env=dict(os.environ, LC_ALL="C")).stdout
    assert plain.isascii() and b"\x1b" not in plain, plain


def case_no_energy():
    m = Machine(domains=(), events=())
    table = [(CGROUP, WEB, {"cpu": S // 2}), (CGROUP, DB, {"cpu": S // 4})]
    path = record("counters", m, [m.snapshot(table) for _ in range(3)])
    t = top(path, 80, 24)
    text = t.wait("rows", lambda s: "end of" in s).split("\n")
    same(text[1], "no energy source: counters only; joulectl doctor says why", "said")
    same(text[2].split()[:4], ["WATTS", "JOULES", "▼CPU%", "TIME"], "heading")
    same(text[3].split()[:4], ["-", "-", "50.0", "1.50"], "no zeros that pose as joules")
    leave(t)
    doc = json.loads(subprocess.run([JOULECTL, "top", "--once", "--json", "--replay", path], capture_output=True,
                                    check=True).stdout)
    assert doc["domains"] == [] and not any("energy_uj" in r for r in doc["rows"]), doc


def case_not_split():
    m = Machine()
    path = record("none", m, [m.snapshot([(CGROUP, WEB, {"uj": [5], "cpu": S})], formula=None)])
    t = top(path, 80, 24)
    text = t.wait("rows", lambda s: "end of" in s)
    assert "not split" in text and names(text) == ["/system.s…/web.service"], text
    same(text.split("\n")[4].split()[:2], ["-", "-"], "row")
    leave(t)


def case_marks():
    m = Machine()
    path = record("marks", m, [m.snapshot(rows(), [2_000_000], [0], quality=4)])
    t = top(path, 80, 24)
    text = t.wait("rows", lambda s: "end of" in s)
    assert "~ estimated" in text and "   4.000~" in text and "10.00" not in text, text
    t.type("h")
    text = t.wait("help", lambda s: "any key goes back" in s)
    marks = [line for line in text.split("\n") if "Marks:" in line]
    same(marks, ["  Marks: ~ estimated"], "the marks of this screen")
    assert "█ rows" in text, text
    t.type("x")
    t.wait("the list", lambda s: "WATTS" in s)
    leave(t)
    m = Machine()
    path = record("lost", m, [m.snapshot(rows(), [2_000_000], [0], quality=32)])
    t = top(path, 80, 24)
    text = t.wait("rows", lambda s: "end of" in s)
    assert "! lost" in text and re.search(r"^ +-!", text, re.M), text
    leave(t)


def case_colour():
    path = usual()
    coloured = re.compile(rb"\x1b\[[0-9;]*3[1-7]")
    for env, want in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "vt220"}, False)):
        t = top(path, 80, 24, env=env)
        t.wait("rows", lambda s: "end of" in s)
        leave(t)
        same(bool(coloured.search(t.raw)), want, f"colour with {env}")


def case_no_screen():
    path = usual()
    for term in ("no-such-terminal", "", "dumb\x1b[31m"):
        t = top(path, 80, 24, env={"TERM": term})
        same(t.ended(), 0, "exit status")
        assert "no screen on this terminal" in t.text().replace("\n", "") and "db.service" in t.text(), t.text()
        assert b"\x1b" not in t.raw, t.raw
        t.close()
    plain = subprocess.run([JOULECTL, "top", "--replay", usual("three", 3)], capture_output=True, check=True, text=True).stdout
    same(plain.count("JOULES"), 3, "tables without a terminal")
    same([line.split()[1] for line in plain.split("\n") if line.endswith(DB)], ["4.000", "12.00", "24.00"], "joules so far")


def case_broken_recording():
    path = usual("whole", 2)
    with open(path, "rb") as f:
        data = f.read()
    cut = os.path.join(WORK, "cut")
    with open(cut, "wb") as f:
        f.write(data[:-9])
    t = top(cut, 200, 24)
    t.wait("the first interval and why there is no more", lambda s: DB in s and "expected" in s and "byte" in s)
    leave(t, 1)


def case_cost():
    """With 1000 cgroups at most 5 ms of CPU per interval: 0.5 % of a core at 1 Hz."""
    m = Machine(interval=S // 50)
    table = [(CGROUP, f"/kubepods/burstable/pod{i // 4:05d}/container{i:06d}",
              {"uj": [1000 + i], "cpu": 20000 + i, "counters": [10, 10]}) for i in range(1000)]
    n = 60
    path = record("thousand", m, [m.snapshot(table, [0], [0]) for _ in range(n)])
    per = []
    for more in ((), ("--tree",)):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        t = top(path, 80, 24, *more)
        t.wait("the end", lambda s: "end of" in s)
        leave(t)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        per.append(used / n * 1000)
    print(f"# top: {per[0]:.2f} ms of CPU per interval of 1000 cgroups, tree {per[1]:.2f} ms "
          f"({per[0] / 10:.2f} and {per[1] / 10:.2f} % of a core at 1 Hz)")
    assert os.environ.get("TOP_COST") != "check" or max(per) < 5, per        # make bench


def main():
    wanted = sys.argv[3:]
    failed = 0
    for name, fn in sorted(globals().items()):
        if not name.startswith("case_") or (wanted and name[5:] not in wanted):
            continue
        try:
            fn()
            print(f"ok top_{name[5:]}", flush=True)
        except Exception as e:       # noqa: BLE001 - each case stands alone
            failed += 1
            print(f"FAIL top_{name[5:]}: {e}", flush=True)
            if not isinstance(e, AssertionError):
                traceback.print_exc()
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
