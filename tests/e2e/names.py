# SPDX-License-Identifier: Apache-2.0
"""names.py PAGE PATH [LABEL=VALUE...]: is the cgroup PATH on the metrics page with exactly these labels beside
domain and cgroup? Reads the exposition format by itself; prints what is there when it is not."""
import re
import sys

LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')


def labels_of(text):
	found, at = {}, 0
	while at < len(text):
		m = LABEL.match(text, at)
		if not m or m.group(1) in found:
			raise ValueError(f"labels: {text!r}")
		found[m.group(1)] = re.sub(r"\\(.)", lambda e: "\n" if e.group(1) == "n" else e.group(1), m.group(2))
		at = m.end()
	return found


def main():
	page, path = sys.argv[1], sys.argv[2]
	wanted = dict(a.split("=", 1) for a in sys.argv[3:])
	seen = []
	for line in open(page, encoding="utf-8"):
		m = re.fullmatch(r"jouled_cgroup_cpu_seconds_total\{(.*)\} [0-9.]+\n", line)
		if not m:
			continue
		labels = labels_of(m.group(1))
		if labels.pop("cgroup") == path:
			seen.append(labels)
	if seen != [wanted]:
		print(f"{path}: {seen}, expected {wanted}")
		return 1
	return 0


sys.exit(main())
