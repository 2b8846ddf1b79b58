#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# LIVING cgroups live while BIRTHS others, RATE a second at most, are born and end: no row is lost, all of their time is counted,
# memory is flat. What the agent uses is printed; make soak judges it (MOST_CPU: per mille of a core) over ten minutes.
. tests/e2e/lib.sh
need_root
# by hand, as make soak: LIVING=10000 BIRTHS=600000 MIDDLE=60 MOST_CPU=10
LIVING=${LIVING:-500} BIRTHS=${BIRTHS:-3000} RATE=${RATE:-1000}
${CC:-cc} -O2 -o "$work/births" $here/births.c 2>"$work/cc" || {
	fail births "$(head -n 1 "$work/cc")"
	finish
}
make_cgroup births
top=$cgroup
page=$work/page

# total NAME: of the last page, the row of the tree.
total() {
	awk -v name="$1" -v row="cgroup=\"/${top##*/}\"" '
	index($1, name "{") == 1 && index($1, row) { v = $2 }
	END { print v + 0 }' "$page"
}

# What stood in the tables is full or unknown: each is a loss.
lost() {
	awk '/^jouled_losses_total/ && !/switches_mended/ { v[$1] = $2 } END { for (k in v) if (v[k] + 0) printf "%s %s; ", k, v[k] }' "$page"
}

pages() {
	[ -f "$page" ] && [ "$(grep -c '^jouled_intervals_total' "$page")" -ge "$1" ]
}

rss() {
	sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$agent/status"
}

cpu_ticks() {
	sed 's/.*) //' "/proc/$agent/stat" | awk '{ print $12 + $13 }'
}

used_s() {
	awk '$1 == "usage_usec" { print $2 / 1e6 }' "$top/cpu.stat"
}

printf 'cgroups: { max: 16384, quota: 16384 }\n' >"$work/births.yaml"
start births -c "$work/births.yaml" -i 1s -o "openmetrics=file://$page?by=depth 1"
if ! wait_until 100 pages 1; then
	fail births "no report: $(said births)"
	finish
fi
: >"$page"
began=$(cpu_ticks)
"$work/births" "$top" "$LIVING" "$BIRTHS" "$RATE" >"$work/took" 2>"$work/births.said" &
load=$!
agents="$agents $load"
wait_until 600 pages "${MIDDLE:-3}"   # memory is flat from here on
middle=$(rss)
wait $load || fail births "$(cat "$work/births.said")"
ended_with=$(rss) used=$(($(cpu_ticks) - began))
: >"$page"
wait_until 100 pages 3
counted=$(total jouled_cgroup_cpu_seconds_total)
echo "note $LIVING living, $BIRTHS born in $(cat "$work/took") s: the agent used $used ticks of CPU, $middle KiB early, $ended_with KiB at the end"
[ -z "$(lost)" ] && ok births-no-loss || fail births-no-loss "$(lost)"
awk -v a="$(used_s)" -v b="$counted" 'BEGIN { d = a - b; exit !((d < 0 ? -d : d) <= a / 100 + 0.002) }' && ok births-all-time ||
	fail births-all-time "the kernel counted $(used_s) s, jouled $counted s"
[ "$ended_with" -le $((middle + middle / 20 + 4096)) ] && ok births-memory || fail births-memory "$middle KiB grew to $ended_with"
if [ "${MOST_CPU:-}" ]; then
	awk -v used="$used" -v hz="$(getconf CLK_TCK)" -v took="$(cat "$work/took")" -v most="$MOST_CPU" 'BEGIN {
		share = used / hz / took * 1000
		printf "note the agent used %.1f per mille of a core\n", share
		exit share > most }' && ok births-cpu || fail births-cpu "more than $MOST_CPU per mille of a core"
fi
kill "$agent"
ended 100 "$agent" && [ "$status" -eq 0 ] && ok births-ends || fail births-ends "exit status $status: $(said births)"
finish
