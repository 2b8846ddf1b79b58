#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""otlp_traces.py DIRECTORY CGROUP-DIRECTORY CGROUP: a tree of processes with known names and exit codes, as a server of OTLP
gets it and as GET /v1/spans tells it. Prints "ok NAME" or "FAIL NAME: REASON" as lib.sh does."""
import gzip
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.parse

import otlp

WORK, FOLDER, CGROUP = sys.argv[1:4]
JOULED = os.environ.get("JOULED", "build/jouled")
LIMIT_S = 60 * int(os.environ.get("SLOWER", "8"))
TRACES = otlp.compiled(WORK)[1]
# A byte that is no UTF-8, and one that a terminal would obey.
WORD = b"b\xe9d\x1b"


class Receiver(http.server.BaseHTTPRequestHandler):
    traces, wrong = [], []

    def do_POST(self):
        body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/traces" or self.headers["Content-Type"] != "application/x-protobuf":
            self.wrong.append(f"{self.path} {self.headers}")
        request = TRACES.ExportTraceServiceRequest.FromString(body)
        size = request.ByteSize()
        request.DiscardUnknownFields()
        if request.ByteSize() != size or len(request.resource_spans) != 1:
            self.wrong.append("unknown fields, or several resources")
        self.traces.append(request.resource_spans[0])
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


def wait_until(what, done):
    until = time.monotonic() + LIMIT_S
    while not done():
        if time.monotonic() > until:
            raise TimeoutError(what)
        time.sleep(0.1)


def attributes(of):
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in of}


def told(trace):
    """A trace of OTLP, by the keys of /v1/spans."""
    spans = []
    for s in trace.scope_spans[0].spans:
        a = attributes(s.attributes)
        spans.append({"trace": s.trace_id.hex(), "id": s.span_id.hex(), "parent": s.parent_span_id.hex(), "name": s.name,
                      "start": s.start_time_unix_nano, "end": s.end_time_unix_nano, "error": s.status.code == 2,
                      "pid": a["process.pid"], "exit": a.get("process.exit.code"), "cmdline": a.get("process.command_line", ""),
                      "cpu_ns": a["jouled.cpu_ns"], "how": a["jouled.end"], "cgroup": a["process.linux.cgroup"],
                      "energy": {k[len("jouled.energy_uj."):]: v for k, v in a.items() if k.startswith("jouled.energy_uj.")},
                      "quality": a["jouled.energy_quality"]})
    return spans


def known(trace):
    """The same, of /v1/spans."""
    return [{"trace": trace["trace"].replace("-", ""), "id": f"{int(s['id'], 16):016x}",
             "parent": f"{int(s['parent'], 16):016x}" if "parent" in s else "", "name": s["comm"], "start": s["start_unix_ns"],
             "end": s["start_unix_ns"] + s["duration_ns"],
             "error": s["end"] in ("signaled", "oom") or s.get("exit_code", 0) != 0, "pid": s["pid"],
             "exit": s.get("exit_code"), "cmdline": s.get("cmdline", ""), "cpu_ns": s["cpu_ns"], "how": s["end"],
             "cgroup": trace["cgroup"], "energy": dict(zip(trace["domains"], s["energy_uj"])), "quality": s["energy_quality"]}
            for s in trace["spans"]]


def run_tree():
    """A shell in the cgroup with three children: one works, one ends with 3, one is killed."""
    script = b"i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done & (exit 3) & sleep 60 & kill $!; wait; : " + WORD

    def enter():
        with open(os.path.join(FOLDER, "cgroup.procs"), "w", encoding="ascii") as f:
            f.write(str(os.getpid()))
    subprocess.run([b"/bin/sh", b"-c", script], preexec_fn=enter, check=True)


def test():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    path = f"{WORK}/otlp.sock"
    with open(f"{WORK}/otlp.err", "ab") as err:
        agent = subprocess.Popen([JOULED, "--socket", path, "--state-dir", f"{WORK}/otlp.state", "-i", "200ms", "-v", "-o",
                                  f"otlp-traces=http://127.0.0.1:{server.server_port}?cgroups={urllib.parse.quote(CGROUP)}"],
                                 stderr=err, stdout=subprocess.DEVNULL)
    wait_until("the agent", lambda: subprocess.run(["curl", "-sf", "--unix-socket", path, "http://x/readyz"], check=False,
                                                   capture_output=True).returncode == 0)
    run_tree()
    wait_until("the tree", lambda: any(len(t.scope_spans[0].spans) >= 4 for t in Receiver.traces[:]))
    said = json.loads(subprocess.run(["curl", "-sf", "--unix-socket", path, "http://x/v1/spans?limit=100000"], check=True,
                                     capture_output=True).stdout)
    agent.send_signal(signal.SIGTERM)
    if agent.wait(LIMIT_S) != 0 or Receiver.wrong:
        raise ValueError(f"status {agent.returncode}, {Receiver.wrong}: {open(f'{WORK}/otlp.err', encoding='utf-8').read()[-400:]}")
    trace = next(t for t in Receiver.traces if len(t.scope_spans[0].spans) >= 4)
    spans = told(trace)
    ours = next((known(t) for t in said["traces"] if t["trace"].replace("-", "") == spans[0]["trace"]), None)
    if ours != spans:
        raise ValueError(f"not as /v1/spans has it: {[(a, b) for a, b in zip(ours or [], spans) if a != b][:1]}, {len(spans)} spans")
    root = spans[0]
    if root["parent"] or root["cgroup"] != CGROUP or not root["energy"] or "b\ufffdd" not in root["cmdline"]:
        raise ValueError(f"root {root}")
    if any(s["parent"] not in {x["id"] for x in spans[:i]} for i, s in enumerate(spans) if i):
        raise ValueError("a child without its parent")
    ends = {(s["exit"], s["how"], s["error"]) for s in spans}
    if not {(0, "exited", False), (3, "exited", True), (None, "signaled", True)} <= ends:
        raise ValueError(f"ends {[(s['exit'], s['how'], s['error']) for s in spans]}")
    if not sum(sum(s["energy"].values()) for s in spans):
        raise ValueError("no energy")
    resource = attributes(trace.resource.attributes)
    if resource["service.name"] != "jouled" or not resource["host.name"]:
        raise ValueError(f"resource {resource}")


def test_links():
    """A tree that outlives its part: the root of each further part leads to itself in the part before."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with open(f"{WORK}/links.yaml", "w", encoding="utf-8") as f:
        f.write("spans: { processes: true, trace-period: 10s }\n")
    Receiver.traces.clear()
    with open(f"{WORK}/otlp.err", "ab") as err:
        agent = subprocess.Popen([JOULED, "-c", f"{WORK}/links.yaml", "--socket", "none", "--state-dir", f"{WORK}/links.state",
                                  "-i", "500ms", "-o", f"otlp-traces=http://127.0.0.1:{server.server_port}"
                                  f"?cgroups={urllib.parse.quote(CGROUP)}"], stderr=err, stdout=subprocess.DEVNULL)
    script = "while [ ! -e $0 ]; do sleep 0.2; done"
    with subprocess.Popen(["/bin/sh", "-c", script, f"{WORK}/done"],
                          preexec_fn=lambda: open(f"{FOLDER}/cgroup.procs", "w", encoding="ascii").write(str(os.getpid()))) as tree:
        roots = lambda: [r for r in (t.scope_spans[0].spans[0] for t in Receiver.traces[:])
                         if attributes(r.attributes)["process.pid"] == tree.pid]
        wait_until("two parts", lambda: len(roots()) >= 2)
        open(f"{WORK}/done", "wb").close()
    agent.send_signal(signal.SIGTERM)
    agent.wait(LIMIT_S)
    parts = roots()
    if parts[0].links or any(len(p.links) != 1 for p in parts[1:]):
        raise ValueError(f"links {[p.links for p in parts]}")
    for before, part in zip(parts, parts[1:]):
        if (part.links[0].trace_id, part.links[0].span_id) != (before.trace_id, before.span_id) or part.trace_id == before.trace_id:
            raise ValueError(f"{part.links[0]} is not {before.trace_id} {before.span_id}")


failed = False
for name, what in (("spans", test), ("links", test_links)):
    try:
        what()
        print(f"ok otlp-traces-{name}")
    except Exception as e:  # any reason is the test's answer
        print(f"FAIL otlp-traces-{name}: {type(e).__name__} {str(e)[:900]}")
        failed = True
sys.exit(failed)
