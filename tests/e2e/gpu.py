# SPDX-License-Identifier: Apache-2.0
"""Power reports of a machine with scripted GPUs and meters, against the scripts.
    gpu.py curve FILE DOMAIN WATTS      energy over all reports is WATTS x time, within 0.5 %
    gpu.py ledger FILE                  per interval and domain: all = sum of the others, to the microjoule
    gpu.py share FILE DOMAIN TARGET...  targets' energy of what is not idle, in percent, one a line
    gpu.py quality FILE DOMAIN TARGET   qualities seen
    gpu.py page FILE                    metrics: energy of the GPUs = idle + residual + cgroups, to the microjoule
    gpu.py top FILE                     joulectl top --json: the same of each GPU
    gpu.py run FILE WATTS               joulectl run --json: the command's energy is WATTS for most of its time, and no more
"""
import collections
import datetime
import json
import re
import sys


def reports(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):
                yield json.loads(line)


def stamp(text):
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.timezone.utc).timestamp()


def curve(path, domain, watts):
    uj = seconds = n = 0
    for r in reports(path):
        if r["metadata"]["domain"] == domain and r["target"] == "all" and r["power"] > 0:
            uj += r["metadata"]["energy_uj"]
            seconds += r["metadata"]["energy_uj"] / 1e6 / r["power"]
            n += 1
    want = float(watts) * seconds
    print(f"{uj / 1e6:.2f} J in {seconds:.3f} s of {n} reports, {want:.2f} J wanted")
    # a step of the counter is 20 ms, at both ends, and a reader may be held up between its clock and the counter
    return n >= 4 and abs(uj / 1e6 - want) <= 0.005 * want + 2 * 0.05 * float(watts)


def ledger(path):
    total, parts = {}, collections.Counter()
    for r in reports(path):
        key = r["timestamp"], r["metadata"]["domain"]
        if r["target"] == "all":
            total[key] = r["metadata"]["energy_uj"]
        else:
            parts[key] += r["metadata"]["energy_uj"]
    print(len(total), "intervals and domains")
    return total and all(parts[k] == v for k, v in total.items())


def share(path, domain, targets):
    rows = collections.Counter()
    for r in reports(path):
        if r["metadata"]["domain"] == domain and r["target"] not in ("all", "idle"):
            rows[r["target"]] += r["metadata"]["energy_uj"]
    for target in targets:
        print(round(100 * rows[target] / max(1, sum(rows.values()))))
    return True


def quality(path, domain, target):
    print(" ".join(sorted({r["metadata"]["quality"] for r in reports(path)
                           if r["metadata"]["domain"] == domain and r["target"] == target})))
    return True


def page(path):
    sums = collections.Counter()
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            name = re.match(r'jouled_((?:|idle_|residual_|retired_|cgroup_)energy)_joules_total\{.*domain="gpu".*\} (\S+)', line)
            if name:
                sums[name[1]] += round(float(name[2]) * 1e6)
    print(dict(sums))
    return sums["cgroup_energy"] > 0 and sums["energy"] == sum(v for k, v in sums.items() if k != "energy")


def top(path):
    with open(path, encoding="utf-8") as text:
        snapshot = json.load(text)
    gpus = [d for d in snapshot["domains"] if d["kind"] == "gpu"]
    for d in gpus:
        rows = sum(r["energy_uj"].get(d["name"], 0) for r in snapshot["rows"])
        print(d["name"], d["energy_uj"], rows, d["idle_uj"], d["residual_uj"])
        if d["energy_uj"] != rows + d["idle_uj"] + d["residual_uj"]:
            return False
    return len(gpus) == 2


def run(path, watts):
    with open(path, encoding="utf-8") as text:
        r = json.load(text)
    own, machine = r["energy_uj"]["gpu-0"], r["machine"]
    limit = float(watts) * r["wall_ns"] / 1000
    print(own, limit, machine)
    # its use is asked for once a second, and a step of the counter is up to a pace early or late
    return (0.3 * limit < own <= limit + float(watts) * 0.3e6 and
            own <= machine["energy_uj"]["gpu-0"] - machine["idle_uj"]["gpu-0"] and r["energy_uj"]["gpu-1"] == 0)


def main(verb, path, *rest):
    if verb == "share":
        return share(path, rest[0], rest[1:])
    return {"curve": curve, "ledger": ledger, "quality": quality, "page": page, "top": top, "run": run}[verb](path, *rest)


sys.exit(0 if main(*sys.argv[1:]) else 1)
