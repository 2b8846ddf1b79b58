#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make run-fleet: three nodes and one store on this machine. node-1 measures; node-2 and node-3 replay what it records, under
# their own names. Prints the page of the store, and the query that shows that the books close. Ends with Ctrl-C, or after
# FLEET_SECONDS. PORT is the store's.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
PORT=${PORT:-8428}
die() {
	echo "run-fleet: $*" >&2
	exit 1
}
store=$(B=$B sh tests/fetch.sh victoria-metrics-trixie) || die "$store"
dir=$(mktemp -d) || exit 2
pids=
end() {
	trap - EXIT INT TERM
	# shellcheck disable=SC2086 # a list
	kill $pids 2>/dev/null
	wait
	rm -rf "$dir"
}
trap end EXIT
trap 'exit 0' INT TERM

curl -s "http://127.0.0.1:$PORT/health" >/dev/null && die "port $PORT is taken; write PORT=N"
"$store" -storageDataPath "$dir/store" -httpListenAddr "127.0.0.1:$PORT" -memory.allowedBytes 200MB \
	-search.latencyOffset 1s >"$dir/store.log" 2>&1 &
pids=$!
tries=300
until curl -sf "http://127.0.0.1:$PORT/health" >/dev/null; do
	tries=$((tries - 1))
	{ [ $tries -gt 0 ] && kill -0 "$pids" 2>/dev/null; } || die "the store does not start: $(tail -n 1 "$dir/store.log")"
	sleep 0.1
done

to=remote-write=http://127.0.0.1:$PORT/api/v1/write
node() {
	name=$1
	shift
	exec "$B/jouled" -q --sensor "$name" --socket none --state-dir "$dir/$name" -o "$to" "$@" 2>"$dir/$name.err"
}
mkfifo "$dir/1" "$dir/2" "$dir/3" || exit 2
node node-2 --replay - <"$dir/2" &
pids="$pids $!"
node node-3 --replay - <"$dir/3" &
pids="$pids $!"
tee "$dir/2" <"$dir/1" >"$dir/3" &
pids="$pids $!"
node node-1 -i 1s -o snapshot=stdout: >"$dir/1" &
pids="$pids $!"

query='sum by (instance, domain) (jouled_energy_joules_total) - sum by (instance, domain) ({__name__=~"jouled_(cgroup|idle|residual|retired)_energy_joules_total"})'
ask_lines() {
	curl -sf --data-urlencode "query=$1" ${when:+-d "time=$when"} -d nocache=1 "http://127.0.0.1:$PORT/api/v1/query" | grep -oE '"metric":\{[^}]*\},"value":\[[^]]*\]' | sed 's/"metric"://; s/"value":\[[0-9.]*,//; s/[]"{}]//g; s/,/ /g' | sort
}
tries=300
until [ "$(ask_lines "$query" | wc -l)" -ge 3 ]; do
	tries=$((tries - 1))
	[ $tries -gt 0 ] || die "no series of three nodes; $(cat "$dir"/node-*.err | tail -n 1)"
	sleep 0.2
done
# The store makes what it gets visible part by part, so it is asked about one time until all of that is there.
when=$(date +%s)
tries=150
until [ "$(ask_lines "round($query, 0.000001) + 0" | grep -c ' 0$')" -ge 3 ]; do
	tries=$((tries - 1))
	[ $tries -gt 0 ] || break
	sleep 0.2
done
echo "page:   http://127.0.0.1:$PORT/vmui/"
echo "query:  $query"
echo "        joules that are in no row at $when, by node and domain; 0 but for the rounding of sums of doubles:"
ask_lines "round($query, 0.000001) + 0"
echo "also:   topk(10, sum by (instance, cgroup) (rate(jouled_cgroup_energy_joules_total)))"
if [ -n "${FLEET_SECONDS:-}" ]; then
	sleep "$FLEET_SECONDS"
else
	echo "Ctrl-C ends it."
	wait
fi
