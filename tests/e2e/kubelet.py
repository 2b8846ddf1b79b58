#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kubelet.py CERTIFICATE KEY PORT-FILE DIR: a kubelet's GET /pods over TLS, as DIR says at each request: `token` is what it
asks for (403 without it, 401 with another), `mode` is one of pods (answers DIR/pods.json), slow (a byte a second), endless,
html, cut (half of pods.json), silent. First lines of requests are added to DIR/asked."""
import http.server
import ssl
import sys
import threading
import time

DIR = sys.argv[4]


def said(name):
    with open(f"{DIR}/{name}", encoding="utf-8") as f:
        return f.read().strip()


class Kubelet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", length=None):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, piece, pause):
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        self.wfile.write(b'{"items":[')
        while True:
            self.wfile.write(piece)
            time.sleep(pause)

    def do_GET(self):
        with open(f"{DIR}/asked", "a", encoding="utf-8") as f:
            f.write(f"{self.path} {said('mode')}\n")
        given = self.headers.get("Authorization")
        if given != f"Bearer {said('token')}":
            return self.answer(401 if given else 403)
        if self.path != "/pods":
            return self.answer(404)
        mode, pods = said("mode"), said("pods.json").encode()
        if mode == "silent":
            time.sleep(3600)
        if mode == "slow":
            return self.stream(b" ", 1)
        if mode == "endless":
            return self.stream(b"[" * 65536, 0)
        if mode == "html":
            return self.answer(200, b"<html>not here</html>")
        if mode == "cut":
            self.close_connection = True
            return self.answer(200, pods[:len(pods) // 2], len(pods))
        return self.answer(200, pods)


class Server(http.server.ThreadingHTTPServer):
    def get_request(self):
        plain, address = super().get_request()
        return CONTEXT.wrap_socket(plain, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, *_):
        pass


CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
CONTEXT.load_cert_chain(sys.argv[1], sys.argv[2])
server = Server(("127.0.0.1", 0), Kubelet)
threading.Thread(target=server.serve_forever, daemon=True).start()
with open(sys.argv[3], "w", encoding="utf-8") as port:
    port.write(str(server.server_address[1]))
threading.Event().wait()
