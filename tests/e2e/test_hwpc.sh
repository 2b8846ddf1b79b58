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

# The spinner's time in the reports is what the kernel says it used.
listen sum
start sum -i 100ms -o "hwpc=tcp://127.0.0.1:$port"
wait_until 50 lines_at_least 5 "$work/sum.json"
u0=$(sed -n 's/^usage_usec //p' "$cgroup/cpu.stat") n0=$(python3 $here/hwpc.py sum "$work/sum.json" "$target" time_running)
sleep 2
u1=$(sed -n 's/^usage_usec //p' "$cgroup/cpu.stat") n1=$(python3 $here/hwpc.py sum "$work/sum.json" "$target" time_running)
kill "$agent"
ended 50 "$agent"
used=$(((u1 - u0) * 1000)) told=$((n1 - n0))
if [ $told -gt $((used - used / 10)) ] && [ $told -lt $((used + used / 10)) ]; then
	ok hwpc-time-is-cpu-stat
else
	fail hwpc-time-is-cpu-stat "told $told ns, cpu.stat says $used ns"
fi

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
elif grep '"target":"all"' "$work/file.json" | grep -q '"metadata":{"[^}]*stand'; then
	ok hwpc-stand-ins-named
else
	fail hwpc-stand-ins-named "$(grep '"target":"all"' "$work/file.json" | head -n 1 | head -c 300)"
fi
finish
