# SPDX-License-Identifier: Apache-2.0
"""Stores out of Debian's packages, started for one test: where they take documents, and what they hold afterwards."""
import json
import os
import shutil
import subprocess
import urllib.parse
import urllib.request
from decimal import Decimal

from free_port import free_port
from pushed import Influx, Otlp, RemoteWrite, WORK, wait_until

WANTED = "jouled_(.*energy_joules|intervals)_total"


def fetched(name):
    """A store of another release, unpacked: its program. None, and the reason is printed, where it cannot be had."""
    done = subprocess.run(["sh", "tests/fetch.sh", name], capture_output=True, check=False)
    said = done.stdout.decode().strip().splitlines() or [done.stderr.decode()]
    return (said[-1], None) if done.returncode == 0 else (None, said[-1])


def installed(package, program):
    subprocess.run(["sh", "deploy/deps.sh", package], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    path = shutil.which(program)
    return path, f"{package} cannot be installed here"


class Store:
    """A server in a folder of its own. samples(): {time in ns: [(name, labels, value)]} of the series WANTED."""
    fmt = RemoteWrite
    ready = "/-/ready"
    ends = True  # can be told that a series has ended

    def __init__(self, name):
        self.name, self.port, self.dir = name, free_port(), f"{WORK}/{name}.store"
        os.mkdir(self.dir)
        self.process = None

    def ask(self, path, data=None):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", data, timeout=60) as r:
            return r.read()

    def query_at(self, query, when=None):
        """What an instant query says: {labels as sorted pairs: value}. when: in seconds; None = now."""
        # VictoriaMetrics looks at half a minute ago, but for nocache
        text = urllib.parse.urlencode({"query": query, "nocache": 1, **({"time": f"{when:.3f}"} if when else {})})
        return {tuple(sorted(r["metric"].items())): Decimal(r["value"][1])
                for r in json.loads(self.ask(f"/api/v1/query?{text}"))["data"]["result"]}

    def flush(self):
        pass

    def up(self):
        try:
            return self.ask(self.ready) is not None
        except OSError:
            return False

    def start(self, program):
        with open(f"{self.dir}/log", "ab") as log:
            self.process = subprocess.Popen([program, *self.arguments()], stdout=log, stderr=log)
        wait_until(f"{self.name} to start", 60, self.up)

    def end(self):
        if self.process:
            self.process.kill()
            self.process.wait()


class Prometheus(Store):
    path = "/api/v1/write"
    program = staticmethod(lambda: installed("prometheus", "prometheus"))

    def arguments(self):
        open(f"{self.dir}/conf", "w", encoding="utf-8").close()
        return ["--config.file", f"{self.dir}/conf", "--storage.tsdb.path", f"{self.dir}/data", "--web.enable-remote-write-receiver",
                "--web.listen-address", f"127.0.0.1:{self.port}"]

    def samples(self):
        query = urllib.parse.urlencode({"query": '{__name__=~"%s",job="jouled"}[2h]' % WANTED})
        times = {}
        for series in json.loads(self.ask(f"/api/v1/query?{query}"))["data"]["result"]:
            labels = dict(series["metric"])
            name = labels.pop("__name__")
            for when, value in series["values"]:
                times.setdefault(round(when * 1000) * 1000000, []).append((name, labels, Decimal(value)))
        return times


class NewPrometheus(Prometheus):
    program = staticmethod(lambda: fetched("prometheus-sid"))


class Victoria(Store):
    path = "/api/v1/write"
    ready = "/health"
    memory = ["-memory.allowedBytes", "200MB"]
    program = staticmethod(lambda: fetched("victoria-metrics-trixie"))

    def arguments(self):
        return ["-storageDataPath", f"{self.dir}/data", "-httpListenAddr", f"127.0.0.1:{self.port}", "-retentionPeriod", "1y",
                "-opentelemetry.usePrometheusNaming", *self.memory]

    def flush(self):
        self.ask("/internal/force_flush")

    def samples(self):
        self.flush()
        query = urllib.parse.urlencode({"match[]": '{__name__=~"%s"}' % WANTED})
        times = {}
        for line in self.ask(f"/api/v1/export?{query}").splitlines():
            series = json.loads(line, parse_float=Decimal)
            labels = dict(series["metric"])
            name = labels.pop("__name__")
            for when, value in zip(series["timestamps"], series["values"]):
                if value is None:  # the series ends
                    continue
                times.setdefault(when * 1000000, []).append((name, labels, Decimal(value)))
        return times


class VictoriaOtlp(Victoria):
    fmt, path = Otlp, "/opentelemetry/v1/metrics"


class VictoriaInflux(Victoria):
    fmt, path, ends = Influx, "/write?db=jouled", False


class InfluxDb(Store):
    fmt, path, ends = Influx, "/write?db=jouled", False
    program = staticmethod(lambda: installed("influxdb", "influxd"))

    def arguments(self):
        with open(f"{self.dir}/conf", "w", encoding="utf-8") as f:
            f.write(f'bind-address = "127.0.0.1:{free_port()}"\nreporting-disabled = true\n[meta]\ndir = "{self.dir}/meta"\n'
                    f'[data]\ndir = "{self.dir}/data"\nwal-dir = "{self.dir}/wal"\n[monitor]\nstore-enabled = false\n'
                    f'[http]\nbind-address = "127.0.0.1:{self.port}"\n')
        return ["-config", f"{self.dir}/conf"]

    def query(self, q):
        data = urllib.parse.urlencode({"q": q, "db": "jouled", "epoch": "ns"}).encode()
        return json.loads(self.ask("/query", data), parse_float=Decimal)

    def up(self):
        try:
            return self.query("CREATE DATABASE jouled") is not None
        except OSError:
            return False

    def samples(self):
        times = {}
        for series in self.query('SELECT /energy_joules_total|intervals_total/ FROM jouled GROUP BY *')["results"][0]["series"]:
            labels = {k: v for k, v in series["tags"].items() if v}
            for row in series["values"]:
                for column, value in zip(series["columns"][1:], row[1:]):
                    if value is not None and column != "energy_intervals_total":
                        times.setdefault(row[0], []).append((f"jouled_{column}", labels, Decimal(value)))
        return times


STORES = {"prometheus": Prometheus, "prometheus-sid": NewPrometheus, "victoria-metrics": Victoria,
          "victoria-metrics-otlp": VictoriaOtlp, "victoria-metrics-influx": VictoriaInflux, "influxdb": InfluxDb}
