# SPDX-License-Identifier: Apache-2.0
"""joulectl list beside an agent that is not one: how far the watts may be off, where the agent tells it, and nothing where not.

list_range.py JOULECTL SOCKET"""
import http.server
import json
import socketserver
import subprocess
import sys
import threading


def cgroup(path, **more):
    use = {"energy_uj": {"package-0": 2000000}, "power_w": {"package-0": 2.0}, "cpu_ns": 1000000000}
    return {"path": path, "ended": False, "energy_quality": "measured", "last": use, "total": use, **more}


answer = {
    "last_interval_ns": 1000000000,
    "domains": [{"name": "package-0", "quality": "measured", "idle_quality": "measured",
                 "last": {"energy_uj": 6000000}, "total": {"energy_uj": 6000000}}],
    "cgroups": [cgroup("/small", last_uncertainty=0.03125), cgroup("/wide", last_uncertainty=0.46), cgroup("/untold"),
                cgroup("/absurd", last_uncertainty=1e300), cgroup("/text", last_uncertainty="much")],
    "special": [], "other": {"cgroups": 0},
}


class Agent(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


joulectl, path = sys.argv[1:]
with socketserver.UnixStreamServer(path, Agent) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    text = subprocess.run([joulectl, "list", "--socket", path], check=True, capture_output=True, text=True).stdout
    server.shutdown()
lines = [line.split() for line in text.splitlines()]
assert lines[0][-2:] == ["W+-", "CGROUP"], text
told = {line[-1]: line[4:-1] for line in lines[1:] if line[-1].startswith("/")}
assert told == {"/small": ["3.1%"], "/wide": ["46%"], "/untold": [], "/absurd": ["9999%"], "/text": []}, text
at = {line.rindex("/") for line in text.splitlines() if line.split()[-1] in told}
assert len(at) == 1 and text.splitlines()[0].index("CGROUP") in at, text
