# SPDX-License-Identifier: Apache-2.0
"""Recordings as docs/formats/snapshot.md describes them, written without any of jouled's code, for screens
whose every number is known."""
import struct


def head(major, n):
    if n < 24:
        return bytes([major << 5 | n])
    for info, size, code in ((24, 1, "B"), (25, 2, ">H"), (26, 4, ">I"), (27, 8, ">Q")):
        if n < 1 << 8 * size:
            return bytes([major << 5 | info]) + struct.pack(code, n)
    raise ValueError(n)


def cbor(v):
    if isinstance(v, bool):
        return b"\xf5" if v else b"\xf4"
    if isinstance(v, int):
        return head(0, v) if v >= 0 else head(1, -1 - v)
    if isinstance(v, float):
        return b"\xfb" + struct.pack(">d", v)
    if isinstance(v, str):
        return head(3, len(v.encode())) + v.encode()
    if isinstance(v, bytes):
        return head(2, len(v)) + v
    if isinstance(v, dict):
        return head(5, len(v)) + b"".join(cbor(k) + cbor(x) for k, x in v.items())
    return head(4, len(v)) + b"".join(map(cbor, v))


IDLE, KERNEL, IRQ_STEAL, OTHER, CGROUP = range(5)
S = 10**9
START_REAL = 1_700_000_000 * S


class Machine:
    def __init__(self, domains=(("package", "package-0"),), events=("CYCLES", "INSTRUCTIONS"), cpus=2, interval=S):
        self.domains, self.events, self.cpus, self.interval = domains, events, cpus, interval
        self.number, self.now = 0, 1000 * S

    def header(self):
        core = [{"name": e, "kind": 0, "type": 0, "config": i, "config1": 0, "config2": 0, "pmu": "cpu", "reason": ""}
                for i, e in enumerate(self.events)]
        return b"\xd9\xd9\xf7" + cbor({
            "format": "jouled-snapshot", "version": 1, "schema": 7, "sensor": "node-7", "boot_id": "b" * 36,
            "trigger": "tp_btf", "clock": "scheduler", "multiplexed": False, "irq_separate": True, "idle_merged": False,
            "core": core, "msr": [], "packages": 1,
            "cpus": [[True, 0, 0, i] for i in range(self.cpus)],
            "domains": [{"kind": k, "package": 0, "interface": "powercap", "name": n, "reason": "test"} for k, n in self.domains],
        })

    def snapshot(self, rows, idle=(), residual=(), formula="share", quality=0, busy=0.5, suspended=0):
        """rows: [(kind, path, {"uj": [...], "cpu": ns, "counters": [...], "net": (rx, tx), "flags": n})]"""
        self.number += 1
        start, self.now = self.now, self.now + self.interval
        given = {kind: values for kind, path, values in rows if kind != CGROUP}
        full = [(k, None, given.get(k, {})) for k in range(4)] + [r for r in rows if r[0] == CGROUP]
        out = []
        for key, (kind, path, v) in enumerate(full):
            cpu = v.get("cpu", 0)
            row = {0: kind, 1: key, 2: 1}
            if kind == CGROUP:
                raw = path if isinstance(path, bytes) else path.encode()
                row.update({3: 100 + key, 4: 0, 5: raw, 6: raw.count(b"/"), 7: v.get("flags", 2)})
            else:
                row[7] = 2
            if "net" in v:
                row[14] = [v["net"][0], 1, v["net"][1], 1]
            if "block" in v:
                row[19] = v["block"]
            if cpu:
                row[15] = [[0, v.get("quality", 0), cpu, 1, v.get("counters", [0] * len(self.events))]]
            if formula and "uj" in v:
                row[16] = v["uj"]
            out.append(row)
        domains = []
        for d in range(len(self.domains)):
            i = idle[d] if idle else 0
            r = residual[d] if residual else 0
            total = sum(v.get("uj", [0] * 9)[d] for _, _, v in full) + i + r
            dom = {"start_ns": start, "end_ns": self.now, "quality": quality, "energy_uj": total, "energy_q32": total * 4295}
            if formula:
                dom.update({"idle_uj": i, "residual_uj": r, "idle_power_uw": i, "idle_quality": 0, "share_quality": 0,
                            "scale": 1.0, "uncertainty": float("nan"), "idle_uncertainty": float("nan")})
            domains.append(dom)
        busy_ns = int(self.interval * busy)
        doc = {"schema": 7, "number": self.number, "start_ns": start, "end_ns": self.now,
               "end_real_ns": START_REAL + self.now, "suspended_ns": suspended, "nominal_ns": self.interval, "missed": 0,
               "losses": {"folded": 0, "lost_reads": 0, "lost_events": 0, "missed_switches": 0}}
        if formula:
            doc.update({"formula": formula, "idle_policy": "own"})
        doc["cpus"] = [[c, 1, 0, self.interval, self.interval - busy_ns, 0, 0, busy_ns, [], 0, 0] for c in range(self.cpus)]
        doc["domains"] = domains
        doc["rows"] = out
        return cbor(doc)
