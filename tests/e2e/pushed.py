# SPDX-License-Identifier: Apache-2.0
"""What documents that are pushed say, read by the published formats and not by the encoders; agents and receivers for the
tests of them. The first argument of the program is the folder of its files."""
import glob
import gzip
import http.server
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from decimal import Decimal

import otlp

JOULED = os.environ.get("JOULED", "build/jouled")
WORK = sys.argv[1]
SLOWER = int(os.environ.get("SLOWER", "8"))
UJ = Decimal(1000000)
OTLP = otlp.compiled(WORK)[0]


def read_influx_line(line):
    """Line protocol of InfluxDB 1.x: name, labels, value, time in ns."""
    parts = re.split(r"(?<!\\) ", line)
    if len(parts) != 3:
        raise ValueError(f"not three parts: {line}")
    head, fields, stamp = parts
    tags = re.split(r"(?<!\\),", head)
    labels = {}
    for tag in tags[1:]:
        key, value = re.split(r"(?<!\\)=", tag)
        if not value or key in labels:
            raise ValueError(f"tag {tag}: {line}")
        labels[key] = re.sub(r"\\([, =])", r"\1", value)
    field, value = fields.split("=")
    if not re.fullmatch(r"\d+i|\d+(\.\d+)?", value):
        raise ValueError(f"value {value}: {line}")
    return f"{tags[0]}_{field}", labels, Decimal(value.rstrip("i")), int(stamp)


def read_influx(body):
    text = body.decode()
    if text and not text.endswith("\n"):
        raise ValueError("the last line is cut")
    return [read_influx_line(line) for line in text.splitlines()]


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def unsnap(data):
    """The block format of snappy (format_description.txt of its source)."""
    size, at = varint(data, 0)
    out = bytearray()
    while at < len(data):
        tag, at = data[at], at + 1
        n = tag >> 2
        if tag & 3 == 0:
            if n > 59:
                width = n - 59
                n, at = int.from_bytes(data[at:at + width], "little"), at + width
            out += data[at:at + n + 1]
            at += n + 1
            continue
        if tag & 3 == 1:
            n, offset, at = (tag >> 2 & 7) + 4, tag >> 5 << 8 | data[at], at + 1
        else:
            width = 2 if tag & 3 == 2 else 4
            n, offset, at = n + 1, int.from_bytes(data[at:at + width], "little"), at + width
        if not 0 < offset <= len(out):
            raise ValueError("snappy: an offset before the start")
        for _ in range(n):
            out.append(out[-offset])
    if len(out) != size:
        raise ValueError(f"snappy: {len(out)} bytes of {size}")
    return bytes(out)


def fields(data):
    """The fields of a protobuf message: number, value (encoding.md of its documentation)."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 1:
            value, at = data[at:at + 8], at + 8
        elif tag & 7 == 2:
            n, at = varint(data, at)
            value, at = data[at:at + n], at + n
            if len(value) != n:
                raise ValueError("protobuf: a cut field")
        else:
            raise ValueError(f"protobuf: wire type {tag & 7}")
        yield tag >> 3, value


STALE = struct.pack("<Q", 0x7FF0000000000002)


def live(samples, ended):
    """The samples, when no series of them is said to have ended."""
    both = {key(*s[:2]) for s in samples} & {key(*s) for s in ended}
    if both:
        raise ValueError(f"ended, and not: {both}")
    return samples


def read_remote(body, ended):
    """WriteRequest of remote write 1.0 (prompb/types.proto and remote.proto of Prometheus), without series that end: those are
    added to the list ended."""
    samples = []
    for number, series in fields(body):
        if number != 1:
            raise ValueError(f"field {number} of a request")
        parts = list(fields(series))
        pairs = [dict(fields(v)) for n, v in parts if n == 1]
        labels = [(p[1].decode(), p[2].decode()) for p in pairs]
        points = [dict(fields(v)) for n, v in parts if n == 2]
        if labels != sorted(labels) or len(dict(labels)) != len(labels) or len(points) != 1 or len(parts) != len(labels) + 1:
            raise ValueError(f"series {labels} {points}")
        labels = dict(labels)
        if points[0][1] == STALE:
            ended.append((labels.pop("__name__"), labels))
            continue
        value = Decimal(repr(struct.unpack("<d", points[0][1])[0]))
        samples.append((labels.pop("__name__"), labels, value, points[0][2] * 1000000))
    return samples


def read_page(text):
    """Samples of one page of OpenMetrics text."""
    samples = []
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        m = re.fullmatch(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)', line)
        labels = {k: re.sub(r"\\(.)", lambda e: "\n" if e[1] == "n" else e[1], v)
                  for k, v in re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', m[2] or "")}
        samples.append((m[1], labels, Decimal(m[3])))
    return samples


def key(name, labels, without=()):
    return name, tuple(sorted((k, v) for k, v in labels.items() if k not in without))


def open_books(samples):
    """{domain: what is missing, in uJ} of the samples (name, labels, value) of one time; empty when all is closed."""
    sums = {}
    for name, labels, value in samples:
        m = re.fullmatch(r"jouled_(cgroup_|idle_|residual_|retired_|)energy_joules_total", name)
        if m:
            whole = sums.setdefault(labels["domain"], [0, 0, 0])
            whole[bool(m[1])] += int((value * UJ).to_integral_value())
            whole[2] += 1
    if not sums or any(s[2] < 4 for s in sums.values()):
        raise ValueError(f"no books: {sums}")
    return {d: s[0] - s[1] for d, s in sums.items() if s[0] != s[1]}


# What goes on.

def wait_until(what, seconds, done):
    until = time.monotonic() + seconds * SLOWER
    while not done():
        if time.monotonic() > until:
            raise TimeoutError(what)
        time.sleep(0.05)


class Agent:
    def __init__(self, name, *args):
        self.err_path = f"{WORK}/{name}.err"
        self.err = open(self.err_path, "ab")
        self.process = subprocess.Popen([JOULED, "--state-dir", f"{WORK}/{name}.state", "-v", *args], stdout=subprocess.DEVNULL,
                                        stderr=self.err)

    def said(self):
        with open(self.err_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self, want=0):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60 * SLOWER)
        if status != want:
            raise ValueError(f"exit status {status}: {self.said()[-300:]}")


class Receiver:
    """An HTTP server. answer(path, headers, body): status, headers and body of the answer; None = closes the connection.
    read(file, n): reads a body in a way of its own."""

    def __init__(self, answer, port=0, context=None, read=None):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # an answer is one packet

            def setup(self):
                super().setup()
                with outer.lock:
                    outer.connections += 1

            def do_POST(self):
                n = int(self.headers["Content-Length"])
                body = read(self.rfile, n) if read else self.rfile.read(n)
                with outer.lock:
                    said = answer(self.path, self.headers, body)
                if said is None:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_WR)
                    return
                self.send_response(said[0])
                for k, v in said[1].items():
                    self.send_header(k, v)
                self.send_header("Content-Length", str(len(said[2])))
                self.end_headers()
                self.wfile.write(said[2])
                self.wfile.flush()

            def log_message(self, *args):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass

        self.lock = threading.Lock()
        self.connections = 0
        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_port
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def records(state):
    """Whole records in the spools of a state directory."""
    return sum(open(f, "rb").read().count(b"jod1") for f in glob.glob(f"{state}/*.spool/*.spool"))


# The formats: name, path, decoder of a body as it is sent.

class Influx:
    name, path = "influx", "/write?db=jouled"

    @staticmethod
    def read(headers, body):
        if headers["Content-Encoding"] != "gzip":
            raise ValueError("not gzip")
        return read_influx(gzip.decompress(body))


class RemoteWrite:
    name, path = "remote-write", "/api/v1/write"

    @staticmethod
    def read(headers, body, ended=None):
        want = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf",
                "X-Prometheus-Remote-Write-Version": "0.1.0"}
        if {k: headers[k] for k in want} != want:
            raise ValueError(f"headers {headers}")
        ended = [] if ended is None else ended
        return live(read_remote(unsnap(body), ended), ended)


class Otlp:
    name, path = "otlp", "/v1/metrics"

    @staticmethod
    def read_starts(headers, body, ended=None):
        if (headers["Content-Encoding"], headers["Content-Type"]) != ("gzip", "application/x-protobuf"):
            raise ValueError(f"headers {headers}")
        ended = [] if ended is None else ended
        return live(otlp.read(OTLP, gzip.decompress(body), ended), ended)

    @staticmethod
    def read(headers, body, ended=None):
        return [s[:4] for s in Otlp.read_starts(headers, body, ended)]


FORMATS = [Influx, RemoteWrite, Otlp]
