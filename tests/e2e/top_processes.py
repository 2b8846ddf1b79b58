# SPDX-License-Identifier: Apache-2.0
"""joulectl top's list of processes beside a real agent with spans. top_processes.py JOULECTL SOCKET CGROUP PID: PID is a
busy process of CGROUP, and one of CGROUP's named `gone` has ended."""
import re
import sys

from top_terminal import Terminal

JOULECTL, SOCKET, CGROUP, PID = sys.argv[1:5]


def line_of(text, word):
    return next((line.split() for line in text.split("\n")[1:] if word in line.split()), [])


def main():
    t = Terminal([JOULECTL, "top", "--socket", SOCKET, "--pid", PID], 200, 60)
    t.wait("the process", lambda s: f"processes of {CGROUP}" in s and "COMMAND" in s and line_of(s, PID))
    text = t.wait("its watts", lambda s: re.match(r"[0-9]*[.][0-9]*[1-9][0-9]*~", "".join(line_of(s, PID)[1:2])))
    row, process = line_of(text, CGROUP), line_of(text, PID)
    assert 0 < float(process[1].rstrip("~")) <= float(row[0].rstrip("~?%")) * 1.02, (row, process)
    assert float(process[2]) > 0 and process[3] == "1" and process[4] in "RSD", process
    text = t.wait("the one that ended, with its joules", lambda s: "sleep 0.25" in s and "(ended)" in s)
    gone = next(line for line in text.split("\n") if "sleep 0.25" in line).split()
    assert gone[3] == "-" and float(gone[5]) >= 0, gone
    assert not [c for c in text.split("\n")[-1] if c == "!"], text
    t.type("\x1b")
    t.wait("the list", lambda s: "p processes" in s and f"processes of {CGROUP}" not in s)
    t.type("q")
    assert t.ended() == 0, t.status
    t.close()
    t = Terminal([JOULECTL, "top", "--socket", SOCKET, "--pid", "4194303"], 200, 60)
    assert t.ended() == 1 and "no such process" in t.text(), t.text()
    t.close()


main()
