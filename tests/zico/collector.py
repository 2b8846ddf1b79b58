#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A strict ZICO collector for tests, from the description of the protocol alone: it shares nothing with the encoder.
  collector.py --profile P [--port N] [--port-file F] [--log F] [--cert PEM] [--fault SPEC]...
Profiles: zico-1.90.3, zico-1.90, zico-1.90.6, zico-2, document. The log has a JSON object a line: registrations, traces
with their trees, refusals and complaints. A fault is WHAT[:PATH[:TIMES]], PATH being the end of the path of the requests
that it meets ("trc"), TIMES how many of them (all):
  an HTTP status             instead of an answer; nothing is taken
  taken-STATUS               this status, but what came is kept
  lost, half                 taken; then closed without an answer, or in the middle of one
  close, hang, garbage       not taken; then closed, silent until the end, or an answer that is no HTTP
  slow, giant                taken; answered a byte at a time, or with 64 MiB"""
import argparse
import errno
import http.server
import os
import random
import socket
import ssl
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import answers  # noqa: E402
from rules import PROFILES  # noqa: E402

GIANT = 64 << 20
sys.setrecursionlimit(100000)        # trees as deep as calls nest


class Request:
    def __init__(self, handler, body):
        self.method, self.path, self.headers, self.body = handler.command, handler.path, handler.headers, body

    def header(self, name):
        return self.headers.get(name) or ""


class Fault:
    def __init__(self, spec):
        what, path, times = (spec.split(":") + ["", ""])[:3]
        self.what, self.path, self.left = what, path, int(times) if times else None

    def meets(self, path):
        if self.left == 0 or not path.endswith(self.path):
            return False
        if self.left:
            self.left -= 1
        return True


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "http-kit", ""
    timeout = 120
    disable_nagle_algorithm = True

    def setup(self):
        self.server.peers.add(self.request)
        super().setup()

    def finish(self):
        self.server.peers.discard(self.request)
        try:
            super().finish()
        except OSError:
            pass

    def handle(self):
        try:
            if isinstance(self.request, ssl.SSLSocket):
                self.request.do_handshake()
            super().handle()
        except (OSError, ValueError) as e:
            self.server.broken.append(str(e))

    def log_message(self, *args):
        pass

    def read_body(self):
        """None: answered already."""
        length = self.headers.get("Content-Length", "0")
        if self.headers.get("Expect") or self.headers.get("Transfer-Encoding") or not length.isdigit():
            self.server.state.complain(["a body without Content-Length, or with Expect"], self.path)
            self.close_connection = True
            self.answer((411, None, b""))
            return None
        if int(length) > answers.BODY_MAX:
            self.drain(int(length))
            self.close_connection = True
            self.answer((413, None, b""))
            return None
        body = self.rfile.read(int(length))
        return body if len(body) == int(length) else None

    def drain(self, n):
        """So that the answer is read: a peer that still writes would see a reset."""
        while n > 0 and self.rfile.read(min(n, 1 << 16)):
            n -= 1 << 16

    def answer(self, a, extra=0):
        status, kind, body = a
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) + extra))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def do_POST(self):
        body = self.read_body()
        if body is None:
            self.close_connection = True
            return
        q, c = Request(self, body), self.server
        fault = c.fault_of(self.path)
        c.requests.append((self.path, fault))
        if fault and fault.isdigit():
            return self.answer(answers.page(int(fault), {"error": "Internal error."}))
        if fault in ("close", "hang", "garbage"):
            return self.fail(fault)
        with c.state.lock:             # one that has ended does nothing for its successor
            a = None if c.ended.is_set() else answers.answer(c.state, q)
        if not a:
            return self.fail("close")
        c.statuses.append((self.path, a[0]))
        if fault and fault.startswith("taken-"):
            return self.answer(answers.page(int(fault[6:]), {"error": "Internal error."}))
        return getattr(self, fault)(a) if fault else self.answer(a)

    do_GET = do_PUT = do_POST

    def fail(self, fault):
        self.close_connection = True
        if fault == "hang":
            self.server.ended.wait(120)
        elif fault == "garbage":
            self.wfile.write(b"\x00\xffSSH-2.0-nothing\r\n" * 64)

    def lost(self, _):
        self.close_connection = True

    def half(self, a):
        self.close_connection = True
        self.answer(a, extra=100)

    def slow(self, a):
        for b in b"HTTP/1.1 %d OK\r\nContent-Length: %d\r\n\r\n" % (a[0], len(a[2])) + a[2]:
            self.wfile.write(bytes([b]))
            self.wfile.flush()
            time.sleep(0.005)

    def giant(self, a):
        self.close_connection = True
        self.send_response(a[0])
        self.send_header("Content-Length", str(GIANT))
        self.end_headers()
        for _ in range(GIANT >> 16):
            self.wfile.write(b" " * 65536)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, state, port, cert):
        self.state, self.faults, self.peers, self.ended = state, [], set(), threading.Event()
        self.requests, self.statuses, self.broken, self.tls = [], [], [], None
        if cert:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(cert)
        super().__init__(("127.0.0.1", port), Handler)

    def get_request(self):
        s, address = super().get_request()
        s.settimeout(120)
        return (self.tls.wrap_socket(s, server_side=True, do_handshake_on_connect=False) if self.tls else s), address

    def handle_error(self, request, client_address):
        self.broken.append(str(sys.exc_info()[1]))

    def fault_of(self, path):
        with self.state.lock:
            return next((f.what for f in self.faults if f.meets(path)), None)


class Collector:
    """One that can go away and come back on its port. faults apply in their order."""
    def __init__(self, profile, port=0, log=None, cert=None, rkey="zorka"):
        self.state, self.port, self.cert = answers.State(profile, rkey, log), port, cert
        self.faults, self.server = [], None
        self.requests, self.statuses, self.broken = [], [], []

    def fault(self, *specs):
        with self.state.lock:
            self.faults[:] = [Fault(s) for s in specs]

    def listen(self):
        """On its port again; at first on any below those that the system gives to clients, who would take it meanwhile. A
        child that another thread has just forked holds the old socket until its exec: so again after a moment."""
        for _ in range(1000):
            try:
                return Server(self.state, self.port or random.randrange(12000, 32000), self.cert)
            except OSError as e:
                if e.errno != errno.EADDRINUSE:
                    raise
                time.sleep(0.01 if self.port else 0)
        raise OSError(f"port {self.port or 'between 12000 and 32000'} stays in use")

    def start(self):
        self.server = self.listen()
        self.server.faults, self.server.requests = self.faults, self.requests
        self.server.statuses, self.server.broken = self.statuses, self.broken
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self):
        """Nobody listens, nobody stays connected; sessions are lost as with a real one."""
        if not self.server:
            return
        with self.state.lock:
            self.server.ended.set()
            self.state.restart()
        self.server.shutdown()
        self.server.server_close()
        for s in list(self.server.peers):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.server = None

    def restart(self):
        self.stop()
        self.start()

    def become(self, profile):
        """Another release in its place: it has the traces, and knows no agent."""
        with self.state.lock:
            self.state.profile = PROFILES[profile]
            self.state.agents.clear()
            self.state.sessions.clear()

    @property
    def traces(self):
        with self.state.lock:
            return dict(self.state.traces)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--profile", choices=sorted(PROFILES), default="zico-1.90")
    p.add_argument("--port", type=int, default=8640)
    p.add_argument("--port-file")
    p.add_argument("--log", type=argparse.FileType("a", encoding="ascii"), default=sys.stdout)
    p.add_argument("--cert")
    p.add_argument("--key", default="zorka")
    p.add_argument("--fault", action="append", default=[])
    a = p.parse_args()
    c = Collector(a.profile, a.port, a.log, a.cert, a.key)
    c.fault(*a.fault)
    c.start()
    if a.port_file:
        with open(a.port_file, "w", encoding="ascii") as f:
            f.write(f"{c.port}\n")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        c.stop()


if __name__ == "__main__":
    main()
