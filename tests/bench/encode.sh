#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# encode.sh PROGRAM: what encoders and formulas cost, as a table and as lines of the goals.
env LD_PRELOAD="$PWD/${B:-build}/bench/alloc_count.so" "$1" >"${B:-build}/bench.encode" || exit 1
printf '\n### Encoders and formulas (one domain), 1000 cgroups with 92-byte paths, 2 CPUs, 6 counters\n\n| encoder | bytes | a report | each | a copy | |\n|---|---|---|---|---|---|\n'
awk -F '\t' '{ printf "| %s | %s | %s | %s | %s | %s |\n", $1, $2, $3, $4, $5, $6 }' "${B:-build}/bench.encode"
awk -F '\t' -v out="${BENCH_RESULTS:-/dev/stdout}" '
function goal(text, most) {
	match($4, /[0-9.]+ ns/)
	ns = substr($4, RSTART, RLENGTH) + 0
	printf "10\t%s\t%s: %s\t%s\n", text, $1, $4, ns <= most ? "pass" : "MISS" >>out
}
function pushed() {
	goal($1 " at most 100 ns a series", 100)
	printf "10\t%s no heap allocation\t%s\t%s\n", $1, $6, $6 == "0.00 heap allocations" ? "pass" : "MISS" >>out
}
$1 == "remote-write" || $1 == "otlp" || $1 == "influx" { pushed() }
# of 1000 cgroups: a nanosecond each is a microsecond
$1 == "answer json" { goal("socket, 1000 cgroups as JSON at most 0.3 ms", 300) }
$1 == "answer cbor" { goal("socket, 1000 cgroups as CBOR at most 0.1 ms", 100) }
$1 == "answer metrics" { goal("socket, /metrics of 1000 cgroups at most 1 ms", 1000) }
$1 == "vjoule" { goal("vjoule at most 20 ns a cgroup", 20) }
$1 == "snapshot" { goal("binary at most 60 ns a cgroup", 60) }
$1 ~ /^(hwpc|power)/ { goal("JSON at most 160 ns a document", 160) }' "${B:-build}/bench.encode"
