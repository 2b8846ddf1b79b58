#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""power.py FILE TICKS: per tick and domain the parts of a power report sum to `all`."""
import json
import sys

ticks = {}
with open(sys.argv[1], encoding="utf-8") as f:
    for line in f:
        r = json.loads(line)
        for key in ("timestamp", "sensor", "target", "power"):
            if key not in r:
                sys.exit(f"no {key}: {line[:200]}")
        m = r.get("metadata", {})
        key = (r["timestamp"], m.get("domain"), m.get("package"))
        whole, parts = ticks.setdefault(key, [[], []])
        (whole if r["target"] == "all" else parts).append(float(r["power"]))
stamps = {k[0] for k in ticks}
if len(stamps) < int(sys.argv[2]):
    sys.exit(f"{len(stamps)} ticks")
for key, (whole, parts) in ticks.items():
    if len(whole) != 1 or not parts:
        sys.exit(f"{key}: {len(whole)} times `all`, {len(parts)} parts")
    if abs(whole[0] - sum(parts)) > 1e-3 * max(1.0, whole[0]):
        sys.exit(f"{key}: all {whole[0]} W, parts {sum(parts)} W")
print(f"{len(ticks)} sums")
