#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# joulectl plot on a real recording and the history of a real agent: the areas are the energy, the picture is
# safe and nothing in it overlaps.
. tests/e2e/lib.sh
need_root
JOULECTL=${JOULECTL:-$B/joulectl}
sock=$work/jouled.sock

# plot NAME ARGUMENT...: $work/NAME.svg; its exit status in $status.
plot() {
	plotted=$1
	shift
	timeout 300 "$JOULECTL" plot -o "$work/$plotted.svg" "$@" 2>"$work/$plotted.err"
	status=$?
}

# check NAME ARGUMENT...: of plot.py
check() {
	name=$1
	shift
	if python3 $here/plot.py "$@" >"$work/check.out" 2>&1; then
		if grep '^SKIP' "$work/check.out"; then :; else ok "$name"; fi
	else
		fail "$name" "$(tail -n 1 "$work/check.out" | head -c 300)"
	fi
}

# refused NAME STATUS PATTERN ARGUMENT...
refused() {
	name=$1
	want=$2
	pattern=$3
	shift 3
	plot refused "$@"
	if [ "$status" -eq "$want" ] && grep -q -- "$pattern" "$work/refused.err" && [ "$(wc -l <"$work/refused.err")" -eq 1 ]; then
		ok "$name"
	else
		fail "$name" "exit status $status: $(said refused)"
	fi
}

has_history() {
	curl -s --max-time 60 -o "$work/history" --unix-socket "$sock" 'http://jouled/v1/history?since=-10m&limit=3' &&
		[ "$(grep -o '\[1[0-9]*,' "$work/history" | sort -u | wc -l)" -ge 5 ]
}

make_cgroup 'hostile-<script>alert(1)&"-and-a-name-so-long-that-it-cannot-stand-in-any-legend-of-a-phone-0123456789'
spin "$cgroup"
make_cgroup two
spin "$cgroup"
run record -n 12 -i 200ms -o "snapshot=file://$work/rec.cbor"
"$JOULECTL" decode --json "$work/rec.cbor" >"$work/rec.json"

for width in 360 960 1600; do
	plot "rec-$width" --width $width "$work/rec.cbor"
	[ "$status" -eq 0 ] && ok "plot-recording-$width" || fail "plot-recording-$width" "exit status $status: $(said "rec-$width")"
	check "plot-energy-$width" energy "$work/rec-$width.svg" "$work/rec.json"
done
plot top --top 1 "$work/rec.cbor"
check plot-top-energy energy "$work/top.svg" "$work/rec.json"
[ "$(grep -c 'class="c[0-9] area"' "$work/top.svg")" -eq 1 ] && ok plot-top || fail plot-top "not one area of a cgroup"
plot one --cgroup '/jouled-e2e-*-two' "$work/rec.cbor"
[ "$(grep -c ' area"' "$work/one.svg")" -eq 1 ] && ok plot-cgroup || fail plot-cgroup "$(said one)"
"$JOULECTL" plot - <"$work/rec.cbor" >"$work/stdin.svg"
cmp -s "$work/stdin.svg" "$work/rec-960.svg" && ok plot-stdin || fail plot-stdin "another picture than from the file"

head -c "$(($(stat -c %s "$work/rec.cbor") * 2 / 3))" "$work/rec.cbor" >"$work/cut.cbor"
plot cut "$work/cut.cbor"
[ "$status" -eq 0 ] && grep -q 'cut.cbor.*the end of the file' "$work/cut.err" && ok plot-cut || fail plot-cut "exit status $status: $(said cut)"
refused plot-no-such-file 1 'nothing.cbor".*No such file' "$work/nothing.cbor"
refused plot-no-recording 1 ': ' "$work/rec.json"
refused plot-domain 2 '--domain nucleus: no such domain; there is ' --domain nucleus "$work/rec.cbor"
refused plot-width 2 '--width 10: ' --width 10 "$work/rec.cbor"
refused plot-top-number 2 '--top many: ' --top many "$work/rec.cbor"
refused plot-no-cgroup 1 'no cgroup that matches' --cgroup /no/such "$work/rec.cbor"
# Part of it: the snapshots that lie between two of their own edges.
python3 - "$work/rec.json" "$work/part.json" >"$work/part.edges" <<'END'
import json, sys
lines = [(json.loads(line), line) for line in open(sys.argv[1])]
part = [s for s in lines if s[0]["kind"] == "snapshot"][4:9]
with open(sys.argv[2], "w") as f:
    f.writelines(line for s, line in lines if s["kind"] != "snapshot" or any(s is p for p, _ in part))
start, end = part[0][0]["end_real_ns"] - (part[0][0]["end_ns"] - part[0][0]["start_ns"]), part[-1][0]["end_real_ns"]
print(*("%d.%09d" % divmod(t, 10**9) for t in (start, end)))
END
read -r since until <"$work/part.edges"
plot part --since "$since" --until "$until" "$work/rec.cbor"
check plot-part-energy energy "$work/part.svg" "$work/part.json"
plot recent --since -1h --until 2100-01-01T00:00:00Z "$work/rec.cbor"
check plot-all-energy energy "$work/recent.svg" "$work/rec.json"
refused plot-before 1 'nothing was measured in that time' --until 2001-01-01T00:00:00Z "$work/rec.cbor"
refused plot-time 2 'plot: --since yesterday: no time' --since yesterday "$work/rec.cbor"
refused plot-no-agent 1 'none.sock: ' --socket "$work/none.sock"
run plain -n 3 -i 100ms --formula none -o "snapshot=file://$work/plain.cbor"
refused plot-not-split 1 'jouled --replay' "$work/plain.cbor"

# The history of an agent. One cgroup works for a moment every three seconds.
make_cgroup rests
rests=${cgroup#"$(cgroup2)"}
sh -c 'echo $$ >"$1/cgroup.procs"
	exec perl -e "for (;;) { for (1 .. 2000000) {} select undef, undef, undef, 3 }"' rests "$cgroup" &
agents="$agents $!"
has_rested() {
	curl -s --max-time 60 -o "$work/rested" --unix-socket "$sock" "http://jouled/v1/history?since=-10m&cgroup=$rests" &&
		[ "$(grep -o '\[1[0-9]*,' "$work/rested" | sort -u | wc -l)" -ge 3 ]
}
"$JOULED" --socket "$sock" --state-dir "$work/state" -i 500ms -o null: >"$work/agent.out" 2>"$work/agent.err" &
agent=$!
agents="$agents $agent"
if wait_until 300 has_history; then
	until=$(($(date +%s) - 2)) # what is younger may still be on its way to the disk
	plot history --socket "$sock" --since -10m --until "$until"
	[ "$status" -eq 0 ] && ok plot-history || fail plot-history "exit status $status: $(said history)"
	curl -s --max-time 60 -o "$work/history" --unix-socket "$sock" "http://jouled/v1/history?since=-10m&limit=8&until=$until"
	check plot-history-energy total "$work/history.svg" "$work/history"
	wait_until 200 has_rested
	plot rests --socket "$sock" --since -10m --until "$(($(date +%s) - 2))" --cgroup "$rests"
	if [ "$status" -eq 0 ] && grep -q "$rests" "$work/rests.svg" && ! grep -q 'nothing was measured here' "$work/rests.svg"; then
		ok plot-history-cgroup
	else
		fail plot-history-cgroup "exit status $status, or a gap where it used nothing: $(said rests)"
	fi
	refused plot-history-time 1 'since' --socket "$sock" --since yesterday
else
	fail plot-history "no history within 30 s: $(head -c 200 "$work/history") $(said agent)"
fi
kill "$agent" 2>/dev/null

check plot-safe safe "$work"/*.svg
[ -s "$work/history.svg" ] || cp "$work/top.svg" "$work/history.svg"
check plot-layout layout "$work/rec-360.svg" "$work/rec-960.svg" "$work/rec-1600.svg" "$work/history.svg"
[ -n "${SHOTS:-}" ] && cp "$work"/*.svg "$SHOTS"
finish
