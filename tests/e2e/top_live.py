# SPDX-License-Identifier: Apache-2.0
"""joulectl top on a terminal beside a real agent. top_live.py JOULECTL SOCKET PIDFILE STARTCOMMAND: the agent
is killed and, by the command, started again."""
import os
import signal
import subprocess
import sys

from top_terminal import Terminal

JOULECTL, SOCKET, PIDFILE, START = sys.argv[1:5]


def rows(text):
    return [line for line in text.split("\n")[1:-2] if line.strip()]


def main():
    t = Terminal([JOULECTL, "top", "--socket", SOCKET, "--interval", "200ms"], 100, 30)
    t.wait("rows", lambda s: "jouled " in s and "WATTS" in s and len(rows(s)) > 2)
    t.type("c")
    t.wait("a line of the CPUs", lambda s: "\nCPUs  " in s and ("GHz" in s or "frequency not told" in s) and "WATTS" in s)
    t.type("c")
    t.wait("without it", lambda s: "\nCPUs  " not in s and "WATTS" in s)
    first = t.text().split("\n")[0]
    t.wait("the next interval", lambda s: s.split("\n")[0] != first)
    with open(PIDFILE) as f:
        os.kill(int(f.read()), signal.SIGKILL)
    text = t.wait("the loss is said", lambda s: "LOST" in s and "trying again" in s)
    kept = rows(text)
    assert len(kept) > 2 and "WATTS" in text, text
    t.pump(1.5)
    assert rows(t.text()) == kept, "the screen was not kept"
    t.type("t")
    t.wait("keys work meanwhile", lambda s: "SUBTREE" in s)
    subprocess.run(["sh", "-c", START], check=True)
    t.wait("it is found again", lambda s: "LOST" not in s and "q quit" in s)
    t.type("q")
    assert t.ended() == 0, t.status
    t.close()


main()
