#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The programs of make bench run to their end, each once and short. No figure is judged: that is make bench's.
# Alone: thousands of cgroups make the pages of every other agent long.
. tests/e2e/lib.sh
need_root
bench=$B/bench/bench
for need in 'two CPUs:test "$(nproc)" -ge 2' 'msr/tsc/, whose counters it compares:test -d /sys/bus/event_source/devices/msr'; do
	eval "${need#*:}" && continue
	skip bench "this machine lacks ${need%%:*}"
	finish
done

# runs NAME LINES COMMAND...: it ends with 0, and prints at least LINES lines that are not empty.
runs() {
	name=$1
	lines=$2
	shift 2
	"$@" >"$work/$name" 2>&1 </dev/null
	rc=$?
	found=$(grep -c . "$work/$name")
	if [ $rc -ne 0 ]; then
		fail "$name" "exit status $rc: $(tail -n 1 "$work/$name")"
	elif [ "$found" -lt "$lines" ]; then
		fail "$name" "$found lines, not $lines: $(tail -n 1 "$work/$name")"
	else
		ok "$name"
	fi
}

# perf is left out: a rival that is not there has a line too
runs bench-ring 37 env PERF=/bin/false "$bench" ring 1 100
runs bench-readout 12 "$bench" readout 1
runs bench-storm 9 "$bench" storm 1
runs bench-sums 1 "$bench" sums 200
runs bench-traces 5 "$bench" traces 1
runs bench-encode 13 "$B/bench/bench_encode" 1
finish
