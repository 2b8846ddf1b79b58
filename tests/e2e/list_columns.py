# SPDX-License-Identifier: Apache-2.0
"""joulectl list beside an agent that is not one: how far the watts may be off, and work of block devices, where the agent tells them,
and nothing where not.

list_columns.py JOULECTL SOCKET"""
import csv
import http.server
import io
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
block = ["read_bytes", "read_requests", "write_bytes", "write_requests", "discard_bytes", "discard_requests"]


def listed(*options):
    return subprocess.run([joulectl, "list", "--socket", path, *options], check=True, capture_output=True, text=True).stdout


def told(text):
    """The words between the columns that each line has and its name; names begin where their heading does."""
    at = {line.rindex("/") for line in text.splitlines()[1:] if line.split()[-1].startswith("/")}
    assert len(at) == 1 and text.splitlines()[0].rindex("CGROUP") in at, text
    return {line.split()[-1]: line.split()[4:-1] for line in text.splitlines()[1:] if line.split()[-1].startswith("/")}


with socketserver.UnixStreamServer(path, Agent) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    text = listed()
    assert text.splitlines()[0].split()[-2:] == ["W+-", "CGROUP"], text
    assert told(text) == {"/small": ["3.1%"], "/wide": ["46%"], "/untold": [], "/absurd": ["9999%"], "/text": []}, text

    work = dict(zip(block, [2500000000, 40, 8192, 2, 4096, 1]), rx_bytes=7, rx_packets=1, tx_bytes=0, tx_packets=0)
    gone = cgroup("/gone", ended=True)
    answer["cgroups"] += [cgroup("/disk"), gone]
    answer["cgroups"][-2]["total"] = {**answer["cgroups"][-2]["total"], **work}
    gone["total"] = {**gone["total"], "read_bytes": 5000, "read_requests": 5}
    gone["last"] = {"energy_uj": {"package-0": 0}, "power_w": {"package-0": 0.0}, "cpu_ns": 0}
    text = listed()
    assert text.splitlines()[0].split()[-5:] == ["W+-", "READ", "WRITTEN", "I/O", "CGROUP"], text
    assert told(text) == {"/small": ["3.1%"], "/wide": ["46%"], "/untold": [], "/absurd": ["9999%"], "/text": [],
                          "/disk": ["2.5G", "8.2k", "43"]}, text
    hidden, = (line.split() for line in text.splitlines() if "has ended; --all names them" in line)
    assert hidden[4:8] == ["5.0k", "0", "5", "(1"], text
    rows = {row["cgroup"]: row for row in csv.DictReader(io.StringIO(listed("--csv")))}
    assert [rows["/disk"][key] for key in [*block, "rx_bytes", "tx_packets"]] == ["2500000000", "40", "8192", "2", "4096", "1", "7", "0"], rows
    assert {rows["/small"][key] for key in block} == {""}, rows
    server.shutdown()
