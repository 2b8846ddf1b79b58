# SPDX-License-Identifier: Apache-2.0
"""Decodes OTLP with what protoc makes of the published messages (tests/golden/otlp_*.proto)."""
import re
import subprocess
import sys
from decimal import Decimal


def compiled(folder):
    """The modules that protoc makes of the published messages."""
    subprocess.run(["protoc", "-I", "tests/golden", f"--python_out={folder}", "otlp_metrics.proto", "otlp_traces.proto"], check=True)
    sys.path.insert(0, folder)
    return __import__("otlp_metrics_pb2"), __import__("otlp_traces_pb2")


def prometheus_name(metric, monotonic):
    """The name under Prometheus' rules for OTLP: other bytes become underscores, the unit and _total are added."""
    unit = {"": "", "J": "_joules", "s": "_seconds", "By": "_bytes"}[metric.unit]
    return re.sub("[^a-zA-Z0-9:]", "_", metric.name) + unit + ("_total" if monotonic else "")


def read(messages, body, ended=None):
    """ExportMetricsServiceRequest: name, labels, value, time and start in ns, as Prometheus would have them, without series
    that end: points with the flag NO_RECORDED_VALUE. Their names and labels are added to the list ended."""
    if not body:
        return []  # the doctor's
    request, samples, names = messages.ExportMetricsServiceRequest.FromString(body), [], []
    size = request.ByteSize()
    request.DiscardUnknownFields()
    if request.ByteSize() != size or len(request.resource_metrics) != 1:
        raise ValueError(f"unknown fields, or {len(request.resource_metrics)} resources")
    resource = {a.key: a.value.string_value for a in request.resource_metrics[0].resource.attributes}
    if resource["host.name"] != resource["service.instance.id"] or not resource["service.version"]:
        raise ValueError(f"resource {resource}")
    if resource["job"] != resource["service.name"] or resource["instance"] != resource["service.instance.id"]:
        raise ValueError(f"resource {resource}")
    whose = {"job": resource["service.name"], "instance": resource["service.instance.id"]}
    for metric in (m for s in request.resource_metrics[0].scope_metrics for m in s.metrics):
        kind = metric.WhichOneof("data")
        if kind == "sum" and (metric.sum.aggregation_temporality, metric.sum.is_monotonic) != (2, True):
            raise ValueError(f"{metric.name} is not cumulative")
        names.append((metric.name, metric.unit))
        for p in getattr(metric, kind).data_points:
            labels = {a.key: a.value.string_value for a in p.attributes}
            whole = (prometheus_name(metric, kind == "sum"), {**labels, **whose})
            if len(labels) != len(p.attributes) or not 0 < p.start_time_unix_nano < p.time_unix_nano:
                raise ValueError(f"point {p}")
            if p.flags == 1 and p.WhichOneof("value") is None:
                if ended is not None:
                    ended.append(whole)
                continue
            value = Decimal(repr(p.as_double)) if p.WhichOneof("value") == "as_double" else Decimal(p.as_int)
            samples.append((*whole, value, p.time_unix_nano, p.start_time_unix_nano))
    if len(set(names)) != len(names) or len({n for n, _ in names}) != len(names):
        raise ValueError(f"a metric stands twice: {names}")
    return samples
