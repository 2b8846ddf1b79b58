#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# repeat.sh ROUNDS TEST...: each of the tests that often, in turn, and how often it passed; logs of failures are kept in
# build/test-logs/repeat. LOAD=1: beside `stress-ng --cpu 4 --io 2`. Exit status 0 when all passed. What happens on every machine
# now and then is found so: make test-repeat TEST='kernel/test_network e2e/test_history' N=50 LOAD=1
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
rounds=$1
shift
[ $# -gt 0 ] || {
	echo "repeat.sh: no test; say TEST='kernel/test_network e2e/test_history'" >&2
	exit 2
}
kept=$B/test-logs/repeat
rm -rf "$kept"
mkdir -p "$kept"
load=
stop() {
	[ -z "$load" ] || kill "$load" 2>/dev/null
}
trap stop EXIT
trap 'exit 130' INT TERM
if [ "${LOAD:-0}" = 1 ]; then
	stress-ng --quiet --cpu 4 --io 2 --temp-path "$kept" &
	load=$!
fi
round=0
bad=0
while [ $round -lt "$rounds" ]; do
	round=$((round + 1))
	for t in "$@"; do
		if sh tests/run.sh "$t" >"$kept/now" 2>&1; then
			echo "$t" >>"$kept/passed"
		else
			bad=$((bad + 1))
			echo "round $round: $(grep -m 1 '^FAIL ' "$kept/now" || tail -n 1 "$kept/now")"
			grep '^    ' "$kept/now" | head -n 5
			cp "$B/test-logs/$(printf '%s' "$t" | tr '/ ' '--').log" "$kept/$(printf '%s' "$t" | tr '/ ' '--').$round.log" 2>/dev/null
		fi
	done
done
for t in "$@"; do
	echo "$t: $(grep -cxF "$t" "$kept/passed" 2>/dev/null || true) of $rounds passed"
done
[ $bad -eq 0 ]
