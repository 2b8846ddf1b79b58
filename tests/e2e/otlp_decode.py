#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""otlp_decode.py take FILE JOULED...: keeps the last document that this agent pushes. otlp_decode.py protoc|package FILE: its points,
a line each, by protoc's classes of the published messages or by OpenTelemetry's own package (of PYTHONPATH)."""
import gzip
import http.server
import struct
import subprocess
import sys
import tempfile
import threading


def take(path, command):
    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with open(path, "wb") as f:
                f.write(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        subprocess.run([*command, "-o", f"otlp=http://127.0.0.1:{server.server_port}"], check=True)
        server.shutdown()


def messages(which):
    if which == "package":
        from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
        return metrics_service_pb2
    import otlp
    return otlp.compiled(tempfile.mkdtemp(dir=sys.argv[3]))[0]


def show(which, path):
    with open(path, "rb") as f:
        body = f.read()
    request = messages(which).ExportMetricsServiceRequest.FromString(body)
    if len(request.SerializeToString()) != len(body):  # the order of fields is the encoder's
        raise SystemExit("what it encodes again is not as long as what was sent")
    for metric in (m for r in request.resource_metrics for s in r.scope_metrics for m in s.metrics):
        for p in getattr(metric, metric.WhichOneof("data")).data_points:
            value = struct.pack(">d", p.as_double).hex() if p.WhichOneof("value") == "as_double" else str(p.as_int)
            labels = ",".join(f"{a.key}={a.value.string_value}" for a in p.attributes)
            print(metric.name, metric.unit, labels, value, p.start_time_unix_nano, p.time_unix_nano)


if sys.argv[1] == "take":
    take(sys.argv[2], sys.argv[3:])
else:
    show(*sys.argv[1:3])
