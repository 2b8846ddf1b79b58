#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# HWPC reports as a PowerAPI formula meets them: TCP, file, CSV.
. tests/e2e/lib.sh
need_root

# listen NAME [HOLDFILE]: a server; its port in $port.
listen() {
	python3 $here/hwpc.py listen "$work/$1.port" "$work/$1.json" ${2:+"$2"} 2>"$work/$1.listen" &
	listener=$!
	agents="$agents $listener"
	wait_until 50 test -s "$work/$1.port" || return 1
	port=$(cat "$work/$1.port")
}

make_cgroup spin
spin "$cgroup"
target=${cgroup#"$(cgroup2)"}

listen tcp
start tcp -i 200ms -o "hwpc=tcp://127.0.0.1:$port"
wait_until 100 ticks_at_least 10 "$work/tcp.json"
kill "$agent"
ended 50 "$agent" || status=none
wait_until 50 test -s "$work/tcp.json.closed"
reason=$(python3 $here/hwpc.py check "$work/tcp.json" 8 2>&1)
rc=$?
if [ $rc -eq 0 ] && [ "$status" = 0 ]; then
	ok "hwpc-tcp-form"
else
	fail hwpc-tcp-form "exit status $status, $reason $(said tcp)"
fi
if [ -f tests/golden/check_smartwatts.py ]; then
	reason=$(python3 tests/golden/check_smartwatts.py --min-ticks 8 <"$work/tcp.json" 2>&1)
	rc=$?
	[ $rc -eq 0 ] || fail hwpc-smartwatts "$(printf %s "$reason" | tail -n 1)"
	[ $rc -ne 0 ] || ok hwpc-smartwatts
else
	skip hwpc-smartwatts "no check_smartwatts.py"
fi
python3 $here/hwpc.py targets "$work/tcp.json" >"$work/targets"
if grep -qx "$target" "$work/targets"; then
	ok hwpc-target-by-path
else
	fail hwpc-target-by-path "$target is not among the targets"
fi
if grep -qx / "$work/targets"; then
	ok hwpc-root-is-a-target
else
	fail hwpc-root-is-a-target "no target /"
fi
case $(head -n 1 "$work/tcp.json") in
*'"timestamp":1'[0-9]*) ok hwpc-ms-on-sockets ;;
*) fail hwpc-ms-on-sockets "$(head -c 80 "$work/tcp.json")" ;;
esac

# The time in the reports of a program that was started and stopped meanwhile is what the kernel says it used.
listen sum
make_cgroup sum
start sum -i 100ms -o "hwpc=tcp://127.0.0.1:$port"
wait_until 50 lines_at_least 5 "$work/sum.json"
spin "$cgroup"
used_two_seconds() {
	[ "$(sed -n 's/^usage_usec //p' "$cgroup/cpu.stat")" -gt 2000000 ]
}
wait_until 300 used_two_seconds
kill -STOP "$spinner"
# within 1 %, which is more than the tick in which the kernel's books have the move into the cgroup
told_what_was_used() {
	used=$(($(sed -n 's/^usage_usec //p' "$cgroup/cpu.stat") * 1000))
	told=$(python3 $here/hwpc.py sum "$work/sum.json" "${cgroup#"$(cgroup2)"}" time_running)
	[ "$told" -lt $((used + used / 100)) ] || return 1
	# a report that came late is withheld, and that is said
	[ "$told" -gt $((used - used / 100)) ] || grep -q 'reports withheld: interval' "$work/sum.err"
}
if wait_until 30 told_what_was_used; then
	ok hwpc-time-is-cpu-stat
else
	fail hwpc-time-is-cpu-stat "told $told ns, cpu.stat says $used ns"
fi
kill -9 "$spinner"
kill "$agent"
ended 50 "$agent"

# A formula that comes back finds the agent again; nothing is sent in halves.
kill "$listener"
wait_until 50 gone "$listener"
start back -i 100ms -o "hwpc=tcp://127.0.0.1:$port"
rm -f "$work/sum.json"
listen sum
if wait_until 100 lines_at_least 10 "$work/sum.json" && ! grep -q TRUNCATED "$work/sum.json"; then
	ok hwpc-reconnects
else
	fail hwpc-reconnects "$(said back)"
fi
kill "$agent"
ended 50 "$agent"

run file -n 4 -i 100ms -o "hwpc=file://$work/file.json"
reason=$(sed 's/"timestamp":"[^"]*"/"timestamp":1/' "$work/file.json" | python3 -c 'import json,sys; [json.loads(l) for l in sys.stdin]' 2>&1)
rc=$?
if [ $status -eq 0 ] && [ $rc -eq 0 ] && grep -q '"timestamp":"20' "$work/file.json" && grep -q '"metadata":{' "$work/file.json"; then
	ok hwpc-file-iso
else
	fail hwpc-file-iso "exit status $status $reason $(said file)"
fi

mkdir "$work/csv"
run csv -n 4 -i 100ms -o "hwpc=file://$work/csv?file-format=csv"
bad=
for group in rapl msr core; do
	head -n 1 "$work/csv/$group.csv" 2>/dev/null | grep -q '^timestamp,sensor,target,socket,cpu,' || bad="$bad $group"
	awk -F, 'NR == 1 { n = NF } NF != n || (NR > 1 && $1 !~ /^[0-9]+$/) { bad = 1 } END { exit bad || NR < 2 }' \
		"$work/csv/$group.csv" || bad="$bad $group-rows"
done
if [ $status -eq 0 ] && [ -z "$bad" ]; then
	ok hwpc-csv
else
	fail hwpc-csv "exit status $status,$bad $(said csv)"
fi

# A file has rows of one header, in the order of time: what does not fit it goes into a set of its own, and that is said.
# set NAME WORD ARGUMENT...: a run that must leave csv as it is and write to csv/$number.
set_of() {
	name=$1 word=$2 before=$(cat "$work/csv/"*.csv | cksum)
	shift 2
	run set "$@" -o "hwpc=file://$work/csv?file-format=csv"
	if [ $status -eq 0 ] && [ "$before" = "$(cat "$work/csv/"*.csv | cksum)" ] &&
		[ "$(grep -c "$word; the files of this run are in $work/csv/$number" "$work/set.err")" -eq 1 ] &&
		reason=$(python3 tests/golden/check_smartwatts.py --csv "$work/csv/$number" 2>&1); then
		ok "hwpc-csv-$name"
	else
		fail "hwpc-csv-$name" "exit status $status, $reason $(ls -R "$work/csv" | tr '\n' ' ') $(said set)"
	fi
}
lines=$(wc -l <"$work/csv/core.csv")
ticks=$(tail -qn +2 "$work/csv/core.csv" | cut -d, -f1 | sort -u | wc -l)
run more -n 3 -i 100ms -o "hwpc=file://$work/csv?file-format=csv" -o "snapshot=file://$work/more.jd"
if [ $status -eq 0 ] && [ "$(wc -l <"$work/csv/core.csv")" -gt "$lines" ] && [ ! -e "$work/csv/2" ] &&
	reason=$(python3 tests/golden/check_smartwatts.py --min-ticks $((ticks + 1)) --csv "$work/csv" 2>&1); then
	ok hwpc-csv-goes-on
else
	fail hwpc-csv-goes-on "exit status $status, $reason $(said more)"
fi
number=2
set_of older "rows that are not older than these" --replay "$work/more.jd"
number=3
set_of again "rows that are not older than these" --replay "$work/more.jd"
number=2
printf 1673 >>"$work/csv/msr.csv"
set_of torn "ends within a row" -n 3 -i 100ms
number=4
for dir in csv csv/2 csv/3; do
	sed -i '1s/,RAPL_ENERGY_PKG/,RAPL_ENERGY_DRAM,RAPL_ENERGY_PKG/' "$work/$dir/rapl.csv"
done
set_of columns "rapl.csv there has other columns" -n 3 -i 100ms

run renamed --replay "$work/more.jd" --sensor renamed -o "hwpc=file://$work/renamed.json"
if [ $status -eq 0 ] && grep -q '"sensor":"renamed"' "$work/renamed.json" && ! grep -qv '"sensor":"renamed"' "$work/renamed.json"; then
	ok hwpc-sensor-of-a-replay
else
	fail hwpc-sensor-of-a-replay "exit status $status $(head -c 100 "$work/renamed.json") $(said renamed)"
fi

# What the start refuses, --check refuses.
bad=
for sensor in "$(printf 'a\377')" "$(head -c 201 /dev/zero | tr '\0' s)" "bob's"; do
	run bad --check --sensor "$sensor" -o hwpc=stdout:
	[ $status -eq 2 ] && [ "$(wc -l <"$work/bad.err")" -eq 1 ] || bad="$bad $sensor:$status"
done
printf 'sensor: s\nevents: { core: ["cpu/event=0x3c,umask=0x0/"] }\n' >"$work/comma.yaml"
for options in 'hwpc=file:///nowhere?file-format=csv&time=iso' "hwpc=file:///nowhere?file-format=csv"; do
	run bad --check -c "$work/comma.yaml" -o "$options"
	[ $status -eq 2 ] || bad="$bad $options:$status"
done
run bad --check --sensor "$(head -c 200 /dev/zero | tr '\0' s)" -o 'hwpc=file:///nowhere?file-format=csv' -o 'hwpc=stdout:?metadata=false'
[ $status -eq 0 ] || bad="$bad good:$(said bad)"
if [ -z "$bad" ]; then
	ok hwpc-check-refuses
else
	fail hwpc-check-refuses "$bad"
fi

run power -n 4 -i 100ms -o "power=file://$work/power.json"
reason=$(python3 $here/power.py "$work/power.json" 4 2>&1)
rc=$?
if [ $status -eq 0 ] && [ $rc -eq 0 ]; then
	ok power-parts-sum-to-all
else
	fail power-parts-sum-to-all "exit status $status $reason $(said power)"
fi

# A machine-wide stand-in is named where the machine has no such counter.
if [ -d /sys/class/powercap ] && [ -n "$(ls /sys/class/powercap)" ]; then
	skip hwpc-stand-ins-named "this machine has RAPL"
elif grep '"target":"all"' "$work/file.json" | grep -q '"stand_in_rapl":"estimate","stand_in_msr":"APERF'; then
	ok hwpc-stand-ins-named
else
	fail hwpc-stand-ins-named "$(grep '"target":"all"' "$work/file.json" | head -n 1 | head -c 300)"
fi
finish
