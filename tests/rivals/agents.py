# SPDX-License-Identifier: Apache-2.0
"""What a user could run to see the CPU use or the energy of cgroups: how each is started, when it is ready, what it cost,
and what it said of a cgroup."""
import glob
import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(1, "tests/e2e")
from free_port import free_port  # noqa: E402

HZ = os.sysconf("SC_CLK_TCK")


class Agent:
    """One process. Subclasses say how it is called (arguments) and when it works (is_ready)."""
    name = "?"
    is_meter = True

    def __init__(self, work, build, groups, event):
        self.work, self.build, self.groups, self.event = work, build, groups, event
        self.events = None
        self.output = os.path.join(work, f"{type(self).__name__}.out")
        self.errors = os.path.join(work, f"{type(self).__name__}.err")
        self.p = None

    def watch(self, groups, events):
        """What the next start shall look at: groups() are paths below the mount; `events` in place of the configured one."""
        self.groups, self.events = groups, events

    def missing(self):
        """Why it cannot be run here, or None."""
        return None

    def arguments(self):
        return []

    def environment(self):
        return {}

    def start(self):
        with open(self.output, "wb") as out, open(self.errors, "wb") as err:
            self.p = subprocess.Popen(self.arguments(), stdin=subprocess.PIPE, stdout=out, stderr=err, env={**os.environ, **self.environment()})
        for _ in range(600):
            if self.is_ready():
                return
            if self.p.poll() is not None:
                break
            time.sleep(0.05)
        self.give_up("did not start")

    def give_up(self, what):
        if self.p.poll() is None:
            self.p.kill()
        with open(self.errors, encoding="utf-8", errors="replace") as f:
            raise SystemExit(f"rivals: {self.name} {what} (exit status {self.p.wait()}): {f.read()[-300:]}")

    def is_ready(self):
        return os.path.getsize(self.output) > 0

    def usage(self):
        """CPU seconds so far, largest resident set in MiB, open descriptors."""
        if self.p.poll() is not None:
            self.give_up("ended")
        with open(f"/proc/{self.p.pid}/stat", encoding="utf-8") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        with open(f"/proc/{self.p.pid}/status", encoding="utf-8") as f:
            peak = int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1)) / 1024
        return (int(fields[11]) + int(fields[12])) / HZ, peak, len(os.listdir(f"/proc/{self.p.pid}/fd"))

    def stop(self):
        self.p.send_signal(signal.SIGINT)
        try:
            self.p.wait(30)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()

    def seen(self):
        """Numbers of the short cgroups that what it said names (storm-NUMBER)."""
        with open(self.output, encoding="utf-8", errors="replace") as f:
            return set(re.findall(r"storm-(\d+)", f.read()))

    def cpu_seconds(self, name):
        """CPU seconds of the cgroup of this name since the start, None where it does not say."""
        return None


class Exporter(Agent):
    """Read once a second, as by Prometheus; the pages are kept while `keep` is set."""
    path = "/metrics"

    def __init__(self, *args):
        super().__init__(*args)
        self.port, self.pages, self.keep = free_port(), [], False
        self.ended = threading.Event()
        self.reader = None

    def page(self):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            c.request("GET", self.path)
            return c.getresponse().read().decode(errors="replace")
        except OSError:
            return ""
        finally:
            c.close()

    def is_ready(self):
        if not self.page():
            return False
        self.ended.clear()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        return True

    def read(self):
        at = time.monotonic()
        while not self.ended.wait(max(0, at - time.monotonic())):
            page = self.page()
            if self.keep:
                self.pages.append(page)
            at += 1

    def stop(self):
        self.ended.set()
        self.reader.join()
        super().stop()

    def seen(self):
        return {n for page in self.pages for n in re.findall(r"storm-(\d+)", page)}


class Jouled(Exporter):
    name = "jouled"

    def arguments(self):
        path = os.path.join(self.work, "jouled.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"socket: {{ path: none }}\nevents: {{ core: [{self.event}] }}\n")
        return [f"{self.build}/jouled", "-q", "-c", path, "--state-dir", self.work, "-i", "1s", "-o",
                f"openmetrics=http-listen://127.0.0.1:{self.port}"]

    def cpu_seconds(self, name):
        values = re.findall(r'jouled_cgroup_cpu_seconds_total\{[^}]*%s"[^}]*\} (\S+)' % re.escape(name), self.pages[-1])
        return float(values[0]) if values else None


class Limit(Agent):
    """No meter: what whoever sees each switch costs at least, an empty program there."""
    name = "an empty BPF program at each switch"
    is_meter = False

    def arguments(self):
        return [f"{self.build}/bench/bench", "hold"]


class Scaphandre(Exporter):
    """Per process. Where there is no RAPL it runs in its form for guests, with files in place of what a host would write."""
    name = "scaphandre"

    def missing(self):
        done = subprocess.run(["sh", "tests/fetch.sh", "scaphandre-trixie"], capture_output=True, text=True, check=False)
        self.program = (done.stdout.splitlines() or ["not found"])[-1]
        return None if done.returncode == 0 else self.program

    def is_guest(self):
        return not os.path.isdir("/sys/class/powercap/intel-rapl:0")

    def environment(self):
        if not self.is_guest():
            return {}
        zones = os.path.join(self.work, "zones")
        for zone, name in (("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "core")):
            os.makedirs(f"{zones}/{zone}", exist_ok=True)
            for file, text in (("name", name), ("energy_uj", "1000000"), ("max_energy_range_uj", "262143328850")):
                with open(f"{zones}/{zone}/{file}", "w", encoding="utf-8") as f:
                    f.write(text + "\n")
        shim = {} if os.path.exists("/proc/modules") else {"LD_PRELOAD": os.path.abspath(f"{self.build}/rivals/modules.so")}
        return {"SCAPHANDRE_POWERCAP_PATH": zones, **shim}

    def arguments(self):
        return [self.program, "--no-header", *(["--vm"] if self.is_guest() else []), "prometheus", "-a", "127.0.0.1", "-p", str(self.port)]


class NodeExporter(Exporter):
    name = "prometheus-node-exporter"

    def missing(self):
        return None if shutil.which(self.name) else "not installed"

    def arguments(self):
        return [self.name, "--collector.rapl", "--collector.processes", f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=error"]


class Perf(Agent):
    """Cgroups that are there when it starts; it has no other way."""
    name = "perf stat --for-each-cgroup"

    def missing(self):
        return None if shutil.which("perf") else "not installed"

    def arguments(self):
        return ["perf", "stat", "-a", "-x", ";", "-I", "1000", "-o", self.output, "-e", self.events or self.event,
                "--for-each-cgroup", ",".join(self.groups())]

    def cpu_seconds(self, name):
        total = None
        with open(self.output, encoding="utf-8", errors="replace") as f:
            for line in f:
                fields = line.split(";")
                if len(fields) > 4 and fields[4].endswith(name) and re.fullmatch(r"[\d.]+", fields[1]):
                    total = (total or 0) + float(fields[1]) / 1000
        return total


class Cgtop(Agent):
    """Reads the kernel's own cpu.stat or cpuacct.usage of each cgroup: CPU time only."""
    name = "systemd-cgtop"

    def missing(self):
        return None if shutil.which(self.name) else "not installed"

    def arguments(self):
        # where this machine has v1 beside v2 it would look at v1: it gets a view with v2 alone
        call = "mountpoint -q /sys/fs/cgroup/unified && mount -t cgroup2 none /sys/fs/cgroup; exec " + self.name
        return ["unshare", "-m", "sh", "-c", f"{call} --batch --raw --cpu=time -n 1000000 -d 1 --depth=9"]

    def cpu_seconds(self, name):
        """Its column of CPU is microseconds since the cgroup was made."""
        with open(self.output, encoding="utf-8", errors="replace") as f:
            values = re.findall(r"^\S*%s\s+\S+\s+(\d+)" % re.escape(name), f.read(), re.M)
        return float(values[-1]) / 1e6 if values else None


class Pcp(Agent):
    """pcp's logger with its agent of processes and cgroups as a library, which pcp calls a local context: no daemon runs, and it
    costs what one process costs. It writes the kernel's own cpu.stat of each cgroup to an archive, and a "-" of a name as "/"."""
    name = "pcp pmlogger"
    metric = "cgroup.cpu.stat.usage"

    def __init__(self, *args):
        super().__init__(*args)
        self.archive = os.path.join(self.work, "pcp-archive")

    def missing(self):
        done = subprocess.run(["sh", "tests/fetch.sh", "pcp"], capture_output=True, text=True, check=False)
        self.program = (done.stdout.splitlines() or ["not found"])[-1]
        return None if done.returncode == 0 else self.program

    def environment(self):
        """Everything below the folder of the unpacked packages, what it writes below ours."""
        root = self.program.split("/usr/lib/pcp/")[0]
        with open(f"{root}/etc/pcp.conf", encoding="utf-8") as f:
            conf = re.sub(r"^(PCP_\w+=)(/(?:etc|usr)/)", rf"\1{root}\2", f.read(), flags=re.M)
        for name in ("PCP_VAR_DIR", "PCP_RUN_DIR", "PCP_LOG_DIR", "PCP_TMP_DIR", "PCP_TMPFILE_DIR"):
            conf = re.sub(rf"^{name}=.*", f"{name}={self.work}", conf, flags=re.M)
        path = os.path.join(self.work, "pcp.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write(conf)
        libraries = [f"{root}/usr/lib", *glob.glob(f"{root}/usr/lib/*-linux-gnu")]
        return {"PCP_CONF": path, "LD_LIBRARY_PATH": ":".join(libraries)}

    def arguments(self):
        for path in glob.glob(f"{self.archive}.*"):
            os.unlink(path)
        folder = f"{self.program.split('/bin/')[0]}/pmdas/proc"
        with open(f"{folder}/root_proc", encoding="utf-8") as f:
            self.write("pcp.names", f.read())
        self.write("pcp.log-conf", f"log mandatory on 1 second {{ {self.metric} }}\n")
        # it takes the first hierarchy that it finds: where this machine has v1 beside v2 it gets a view with v2 alone
        call = "if mountpoint -q /sys/fs/cgroup/unified; then umount -l /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup || exit; fi; exec "
        options = [self.program, "-o", "-n", f"{self.work}/pcp.names", "-K", "clear", "-K", f"add,3,{folder}/pmda_proc.so,proc_init",
                   "-U", "root", "-c", f"{self.work}/pcp.log-conf", "-l", self.errors, "-L", "-t", "1", self.archive]
        return ["unshare", "-m", "sh", "-c", call + " ".join(options)]

    def write(self, name, text):
        with open(os.path.join(self.work, name), "w", encoding="utf-8") as f:
            f.write(text)

    def is_ready(self):
        """Its first values stand behind the archive's label."""
        path = f"{self.archive}.0"
        return os.path.exists(path) and os.path.getsize(path) > 200

    def seen(self):
        with open(f"{self.archive}.meta", encoding="latin-1") as f:
            return set(re.findall(r"storm[-/](\d+)", f.read()))

    def cpu_seconds(self, name):
        """Microseconds since the cgroup was made, the last that it logged."""
        root = self.program.split("/lib/pcp/")[0]
        said = subprocess.run([f"{root}/bin/pmdumplog", self.archive, self.metric], capture_output=True, text=True, check=True,
                              env={**os.environ, **self.environment()}).stdout
        values = re.findall(r'or "[^"]*%s"\] value (\d+)' % name.replace("-", "[-/]"), said)
        return float(values[-1]) / 1e6 if values else None


def all_of(*args):
    """Those that can be run here, and the others with the reason."""
    here, not_here = [], []
    for kind in (Jouled, Limit, Scaphandre, NodeExporter, Perf, Cgtop, Pcp):
        agent = kind(*args)
        reason = agent.missing()
        (not_here if reason else here).append((agent, reason))
    return [a for a, _ in here], not_here


def cgroup_mount():
    with open("/proc/self/mounts", encoding="utf-8") as f:
        for line in f:
            fields = line.split()
            if fields[2] == "cgroup2":
                return fields[1]
    raise SystemExit("rivals: no cgroup2 mount")


def load_groups(mount):
    """Paths below the mount of the cgroups that bench load made."""
    return [p[len(mount) + 1:] for p in sorted(glob.glob(f"{mount}/jouled-bench.*/*/")) if p.rstrip("/").rsplit("/", 1)[1].isdigit()]
