#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tls_peer.py CERTIFICATE KEY PORT-FILE GOT-FILE: first lines of requests that came over TLS, all answered 503."""
import socket
import ssl
import sys

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
listener = socket.create_server(("127.0.0.1", 0))
with open(sys.argv[3], "w") as f:
    f.write(str(listener.getsockname()[1]))
while True:
    plain, _ = listener.accept()
    try:
        with context.wrap_socket(plain, server_side=True) as peer:
            first = peer.recv(65536).split(b"\r\n")[0]
            with open(sys.argv[4], "ab") as f:
                f.write(first + b"\n")
            peer.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    except OSError:
        pass
