# SPDX-License-Identifier: Apache-2.0
"""The hottest functions in the pane of joulectl top, beside a real agent. top_functions.py JOULED JOULECTL DIRECTORY CGROUP LOAD;
LOAD is profile_load: work_large, work_middle and work_small take 6, 3 and 1 parts of its time."""
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "zico"))
from top_terminal import Terminal  # noqa: E402
from zico_wait import Failed, cases, until  # noqa: E402 pylint: disable=wrong-import-position

JOULED, JOULECTL, WORK, CGROUP, LOAD = (*map(os.path.abspath, sys.argv[1:4]), sys.argv[4], os.path.abspath(sys.argv[5]))
BOX = "burns"


class Agent:
    def __init__(self, name, config):
        self.socket, self.log = os.path.join(WORK, f"{name}.sock"), os.path.join(WORK, f"{name}.err")
        path = os.path.join(WORK, f"{name}.yaml")
        with open(path, "w", encoding="ascii") as f:
            f.write(f"socket: {{ path: {self.socket} }}\n{config}\n")
        with open(self.log, "wb") as log:
            self.p = subprocess.Popen([JOULED, "-c", path, "--state-dir", os.path.join(WORK, f"{name}.state"), "-i", "500ms", "-o", "null:"],
                                      stderr=log, stdout=subprocess.DEVNULL)
        until(self.answers, lambda: f"the agent does not answer: {self.said()}")

    def answers(self):
        if self.p.poll() is not None:
            raise Failed(f"the agent ended: {self.said()}")
        return not subprocess.run([JOULECTL, "status", "--socket", self.socket], capture_output=True, check=False).returncode

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()[-1500:].replace("\n", "|")

    def end(self, how=signal.SIGTERM):
        if self.p.poll() is None:
            self.p.send_signal(how)
        self.p.wait(120)


def burn():
    path = os.path.join(CGROUP, BOX)
    os.makedirs(path, exist_ok=True)

    def enter():
        with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as f:
            f.write(str(os.getpid()))
    return subprocess.Popen([LOAD, "600000"], preexec_fn=enter, cwd="/")


def put_out(p):
    p.kill()
    p.wait()

    def removed():
        try:
            os.rmdir(os.path.join(CGROUP, BOX))
        except OSError:
            return False
        return True
    until(removed, "the cgroup stays")


def pane(agent, columns=100, lines=40):
    """top with the pane of the program's cgroup: keys as a user types them."""
    t = Terminal([JOULECTL, "top", "--socket", agent.socket], columns, lines)
    t.wait("rows", lambda s: "WATTS" in s)
    t.type(f"/{BOX}\r")
    t.wait("its row alone", lambda s: f"filter: {BOX}" in s and f"{BOX}\n" in s)
    t.type("\r")
    t.wait("the pane", lambda s: s.startswith(BOX) and "NAMES" in s)
    return t


def functions(text):
    """Name -> (joules, share, samples), and the seconds that they are of."""
    head = re.search(r"^ +JOULES +SHARE% +SAMPLES +HOTTEST FUNCTIONS of the last (\d+) s", text, re.M)
    if not head:
        return None, 0
    lines = re.findall(r"^ +(\d+\.\d{6})[^\d\s]? +(\d+\.\d) +(\d+)  (\S.*)$", text[head.end():], re.M)
    return {n: (float(j), float(part), int(k)) for j, part, k, n in lines}, int(head[1])


def leave(t):
    t.type("q")
    if t.ended() != 0:
        raise Failed(f"exit status {t.status}")
    t.close()


def live():
    """The known functions are there, in their order, of the last seconds and not of the minute; on a small screen too. An agent
    that is killed is said, and keys work."""
    load = burn()
    agent = Agent("live", "profile: { frequency: 199 }")
    try:
        t = pane(agent)
        text = t.wait("the functions", lambda s: sum(x[2] for x in (functions(s)[0] or {}).values()) >= 200)
        got, _ = functions(text)
        if not got["work_large"][0] > got["work_middle"][0] > 0 or got["work_large"][1] < 30:
            raise Failed(f"{got}\n{text}")
        if abs(sum(x[1] for x in got.values()) - 100) > 5:
            raise Failed(f"the shares add up to {sum(x[1] for x in got.values())}: {got}")
        # the answer grows for a minute; the list is of what came last
        text = t.wait("more time", lambda s: functions(s)[1] >= 13)
        t.wait("less time again", lambda s: 10 <= functions(s)[1] < 13)
        t.resize(80, 24)
        t.wait("a small screen", lambda s: len(functions(s)[0] or {}) >= 3 and "work_large" in functions(s)[0] and len(s.split("\n")) == 24)
        os.kill(agent.p.pid, signal.SIGKILL)
        agent.p.wait()
        t.wait("the loss", lambda s: "LOST" in s and "ended; start it again" in s and "HOTTEST" not in s)
        t.type("\x1b")
        t.wait("the list", lambda s: "JOULES" in s and "filter: " in s)
        leave(t)
    finally:
        agent.end(signal.SIGKILL)
        put_out(load)


def none():
    """An agent that does not profile: one line that says how to have it; a row that is no cgroup has no functions."""
    load = burn()
    agent = Agent("none", "history: off")
    try:
        t = pane(agent, 140)
        t.wait("how to have them", lambda s: re.search(r"^  profile: this agent makes none; set profile: \{ frequency: 19 \} in its "
                                                       r"configuration, or use joulectl profile$", s, re.M))
        t.type("\x1b")
        t.wait("the list", lambda s: f"filter: {BOX}" in s)
        t.type("/\x15kernel\r")
        t.wait("the other row", lambda s: "filter: kernel" in s and " kernel\n" in s)
        t.type("\r")
        text = t.wait("another pane", lambda s: s.startswith("kernel") and "HISTORY" in s)
        if "profile:" in text or "functions" in text:
            raise Failed(text)
        leave(t)
    finally:
        agent.end()
        put_out(load)


if __name__ == "__main__":
    sys.exit(cases((live, none), sys.argv[6:], 1, "top-functions-"))
