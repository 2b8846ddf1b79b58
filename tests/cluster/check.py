#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What /metrics says against what the cluster says; last line: the figure, or what is wrong. Shares nothing with jouled."""
import json
import re
import sys

SERIES = re.compile(r'^(\w+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def read_page(path):
    """[(metric, labels, value)]"""
    rows = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            m = SERIES.match(line.rstrip("\n"))
            if m and not line.startswith("#"):
                rows.append((m[1], dict(LABEL.findall(m[2] or "")), float(m[3])))
    return rows


def cpu_of(rows):
    """[(labels, seconds)] of every cgroup"""
    return [(labels, value) for name, labels, value in rows if name == "jouled_cgroup_cpu_seconds_total"]


def elapsed(rows, cpus):
    return sum(v for name, _, v in rows if name == "jouled_cpu_seconds_total") / cpus


def key(labels):
    return labels.get("namespace"), labels.get("pod"), labels.get("container")


def pods_of(path):
    with open(path, encoding="utf-8") as f:
        doc = json.load(f)
    return doc.get("items", [doc])


def containers_of(pod):
    """[(name, id)] of those that began"""
    return [(s["name"], s["containerID"].split("//")[1]) for s in pod["status"].get("containerStatuses", []) if s.get("containerID")]


def wrong_names(pods, rows):
    """What of the pods' containers is not there under its own id, with its own names and some CPU time."""
    by_id = {labels["cgroup"].rsplit("/", 1)[-1]: (labels, value) for labels, value in cpu_of(rows)}
    wrong, right = [], 0
    for pod in pods:
        meta = pod["metadata"]
        for name, container_id in containers_of(pod):
            labels, value = by_id.get(container_id, ({}, 0))
            if key(labels) != (meta["namespace"], meta["name"], name) or meta["uid"] not in labels.get("cgroup", "") or value <= 0:
                wrong.append(f"{meta['namespace']}/{meta['name']}/{name}: {labels or 'not there'} {value}")
            else:
                right += 1
    return wrong, right


def end(good, text):
    print(text)
    sys.exit(0 if good else 1)


def names(pods_path, page_path):
    pods = [p for p in pods_of(pods_path) if p["status"]["phase"] == "Running"]
    wrong, right = wrong_names(pods, read_page(page_path))
    end(not wrong and right >= 5, "; ".join(wrong) or f"{right} containers of {len(pods)} pods")


def ledger(page_path):
    rows = read_page(page_path)

    def total(metric):
        return sum(round(v * 1e6) for name, labels, v in rows if name == metric and labels.get("domain") == "package")

    whole = total("jouled_energy_joules_total")
    parts = [total(f"jouled_{p}_energy_joules_total") for p in ("cgroup", "idle", "residual", "retired")]
    end(whole > 0 and whole == sum(parts), f"{whole} uJ = {' + '.join(map(str, parts))} uJ (cgroups, idle, residual, retired)")


def limited(first, second, namespace, pod, container, limit, percent):
    pages = [read_page(first), read_page(second)]
    cpu = [sum(v for labels, v in cpu_of(rows) if key(labels) == (namespace, pod, container)) for rows in pages]
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        cpus = sum(line.startswith("processor") for line in f)
    interval = elapsed(pages[1], cpus) - elapsed(pages[0], cpus)
    share = (cpu[1] - cpu[0]) / interval
    off = 100 * (share / float(limit) - 1)
    end(interval > 20 and abs(off) <= float(percent), f"{share:.4f} CPUs over {interval:.1f} s, {off:+.2f} % from {limit}")


def short(pod_path, log_path, page_path):
    pod = pods_of(pod_path)
    rows = read_page(page_path)
    wrong, _ = wrong_names(pod, rows)
    with open(log_path, encoding="utf-8") as f:
        charged = int(f.read().split()[0]) / 1e9
    seen = sum(v for labels, v in cpu_of(rows) if key(labels) == ("test", "short", "work"))
    # before the shell the same cgroup ran the runtime's own start, some tens of milliseconds
    good = not wrong and charged <= seen <= charged + 0.3
    state = pod[0]["status"]["containerStatuses"][0]["state"]["terminated"]
    end(good, "; ".join(wrong) or f"the kernel charged the shell {charged:.4f} s, /metrics has {seen:.4f} s; "
        f"{state['startedAt']} to {state['finishedAt']}")


def wave(number, count):
    pods = []
    for n in range(int(count)):
        pods.append({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"storm-{number}-{n}", "labels": {"wave": number}},
            "spec": {
                "restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False,
                "containers": [{"name": f"c{n}", "image": "jouled-test:1",
                                "command": ["/bin/sh", "-c", "i=0; while [ $i -lt 5000 ]; do i=$((i + 1)); done"]}],
            },
        })
    json.dump({"apiVersion": "v1", "kind": "List", "items": pods}, sys.stdout)


def storm(page_path, wave_path, count):
    wrong, right = wrong_names(pods_of(wave_path), read_page(page_path))
    end(not wrong and right == int(count), f"{len(wrong)} wrong: " + "; ".join(wrong[:3]) if wrong else f"{right} of {count}")


def leak(*paths):
    """The last wave came when nothing of the ones before was kept any more: it fits where they were."""
    figures = []
    for path in paths:
        with open(path, encoding="utf-8") as f:
            figures.append({k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", f.read())})
    last, before = figures[-1], figures[:-1]
    text = "; ".join(f"{f['fds']} fds, {f['rss_kib']} KiB" for f in figures)
    end(len({f["pid"] for f in figures}) == 1 and last["fds"] <= max(f["fds"] for f in before) and
        last["rss_kib"] <= max(f["rss_kib"] for f in before) + 512, text)


def losses(page_path):
    lost = {labels["reason"]: v for name, labels, v in read_page(page_path) if name == "jouled_losses_total" and v}
    end(not {"folded", "lifecycle_events"} & set(lost), f"{lost or 'nothing'}")


COMMANDS = {f.__name__: f for f in (names, ledger, limited, short, wave, storm, leak, losses)}
COMMANDS[sys.argv[1]](*sys.argv[2:])
