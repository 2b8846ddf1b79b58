# SPDX-License-Identifier: Apache-2.0
"""joulectl list and status beside an agent that is not one: how far the watts may be off, and work of block devices, where the agent tells them,
and nothing where not; what is not selected; what it asks about a job; what outputs have dropped.

list_columns.py JOULECTL SOCKET"""
import csv
import http.server
import io
import json
import socketserver
import subprocess
import sys
import threading
import urllib.parse


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


of_job = {
    "domains": ["package-0"], "in_total": [True],
    "series": [{"cgroup": "7.0", "row": "job", "ended": True, "points": [[5000000000, 2000000000, "measured", [3000000]]]}],
    "lost": [{"from_unix_ns": 3500000000, "until_unix_ns": 4000000000, "reason": "off"}],
}
asked = []


class Agent(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked.append(self.path)
        body = json.dumps(of_job if self.path.startswith("/v1/history") else answer).encode()
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

    # unselected rows are in `other` without a cgroup: the lines are the machine all the same
    assert "selected)" not in listed() + listed("--csv")
    answer["other"] = {"cgroups": 0, "last": gone["last"], "total": {**gone["total"], "energy_uj": {"package-0": 7000000}}}
    line, = (line.split() for line in listed().splitlines() if line.endswith("  (not selected)"))
    assert line[1] == "7.000", line
    rows = {row["cgroup"]: row for row in csv.DictReader(io.StringIO(listed("--csv")))}
    assert rows["(not selected)"]["package-0_uj"] == "7000000" and "(more)" not in rows, rows
    answer["other"]["cgroups"] = 3
    assert "  (3 more)\n" in listed() and "\n(more)," in listed("--csv"), listed()

    for since, step in (("-24h", "10m"), ("-25h", "1h"), ("-6d", "1h"), ("-7d", "6h"), ("-36d", "6h"), ("-37d", "24h"),
                        ("2020-01-31T12:00:00+01:00", "24h"), ("1500000000", "24h")):
        text = listed("--job", "7", "--since", since)
        assert asked[-1] == f"/v1/history?job=7&step={step}&since={urllib.parse.quote(since)}", asked[-1]
        assert f"known for 0.5 s of this time; joulectl history --since {since} says" in text, text
    assert "joulectl history --since -24h says" in listed("--job", "7") and asked[-1] == "/v1/history?job=7&step=10m&since=-24h", asked[-1]
    for wrong in (["--since", "-1h"], ["--job", "7", "--since", "yesterday"]):
        done = subprocess.run([joulectl, "list", "--socket", path, *wrong], capture_output=True, text=True)
        assert done.returncode == 2 and done.stderr.startswith("joulectl: error: list: --since"), done

    output = {"format": "otlp", "to": "http://x", "state": "waiting", "up": True, "documents": 9, "bytes": 8, "queued_documents": 0}
    for dropped, told_of in (({"dropped_series": 0, "dropped_energy_uj": 0}, ""), ({"dropped_series": 4}, ", 4 series REFUSED"),
                             ({"dropped_documents": 2, "dropped_energy_uj": 2500000}, ", 2 DROPPED, 2.500 J in dropped documents")):
        answer["outputs"] = [{**output, **dropped}]
        said = subprocess.run([joulectl, "status", "--socket", path], check=True, capture_output=True, text=True).stdout
        assert f": waiting; 9 documents, 8 bytes, 0 queued{told_of}\n" in said, said
    server.shutdown()
