#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make bench: every line of the goals, measured now on this machine, as one Markdown page on stdout and
# in build/bench.md. run.sh BUILD; ROUNDS, PERF, BENCH_SECONDS may be set;
# EVENT=cycles counts with hardware counters where there are six.
set -u
B=${1:-build}
ROUNDS=${ROUNDS:-21}
PERF=${PERF:-}
EVENT=${EVENT:-tsc}
BENCH_RESULTS=$B/bench.results
export BENCH_RESULTS PERF EVENT
details=$B/bench.details
: >"$BENCH_RESULTS"
: >"$details"

if [ "$(id -u)" -ne 0 ]; then
	echo "bench: root is needed: it makes cgroups and loads programs" >&2
	exit 1
fi

part() {
	echo "bench: $*" >&2
	"$@" >>"$details" || {
		echo "bench: failed: $*" >&2
		failed="${failed:-} $*;"
	}
}

failed=
part "$B/bench/bench" ring "$ROUNDS"
part "$B/bench/bench" running "$ROUNDS"
part "$B/bench/bench" readout "$ROUNDS"
part "$B/bench/bench" large
part "$B/bench/bench" storm "$ROUNDS"
part "$B/bench/bench" sums 2000
part "$B/bench/bench" energy
part "$B/bench/bench" spans "$ROUNDS"
part "$B/bench/bench" block "$ROUNDS"
part env LD_PRELOAD="$PWD/$B/bench/alloc_count.so" "$B/bench/bench" traces 101
[ ! -x "$B/bench/bench_encode" ] || part sh tests/bench/encode.sh "$B/bench/bench_encode"
[ ! -x "$B/jouled" ] || part python3 tests/bench/agent.py "$B" "${BENCH_SECONDS:-60}"
[ ! -x "$B/jouled" ] || part python3 tests/bench/latency.py "$B"
[ ! -x "$B/jouled" ] || part python3 tests/bench/profile.py "$B"

{
	echo "# Measured cost"
	echo
	echo "This page shows what jouled costs: first its goals beside the measured values, then the tables behind them. It is what"
	echo "\`make bench${PERF:+ PERF=...}$([ "$EVENT" = tsc ] || echo " EVENT=$EVENT")\` printed on $(date -u '+%Y-%m-%d') (ROUNDS=$ROUNDS): $(uname -s) $(uname -r | cut -d. -f1,2), $(nproc) CPUs," \
		"$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1). MISS marks a goal that is not reached, and limit"
	echo "one that a program which does nothing but the same plain work, in the same run, does not reach on this machine either."
	echo "not told marks a goal that is missed by less than the noise of this run (95 %), or is smaller than it."
	echo
	if [ "$EVENT" = cycles ]; then
		echo "Counters are hardware cycles."
	else
		echo "Counters are \`msr/tsc/\`. One rdtsc reads such a counter, so the figures can be had on a machine without a PMU. A"
		echo "hardware counter is read with one rdpmc in the same code; some hypervisors trap it (\`EVENT=cycles\`)."
	fi
	echo
	echo "Every switch figure stands beside that of a limit program in the same interleaved run. The limit program makes the"
	echo "scheduler's stamp and the same plain reads, nothing else. Compare the ratios, because nanoseconds move with the machine."
	echo "BPF statistics are off except in the table that says so."
	echo
	echo "| line | goal | measured | |"
	echo "|---|---|---|---|"
	# what has no line number stands last
	awk -F '\t' '{ printf "%d\t| %s | %s | %s | %s |\n", $1 + 0 ? $1 : 99, $1, $2, $3, $4 }' "$BENCH_RESULTS" | sort -s -n | cut -f 2-
	cat "$details"
	[ -z "$failed" ] || printf '\nNot finished:%s\n' "$failed"
} | tee "$B/bench.md"
[ -z "$failed" ]
