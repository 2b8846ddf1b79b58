# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# CPUs that go and come within an interval, any number of times: counted again from the next reading, the interval
# partial, nothing 0 as measured. CPU 1 is a package of its own, so that its energy events die with it.
# kernels: 6.1
# seconds: 300
# qemu: -cpu Skylake-Client -smp 2,sockets=2
# modules: simpmu simrapl
# stock: msr
# tests: kernel/test_counters_hotplug vm/simload vm/recsum
. /guest/lib.sh
. /guest/energy.sh
CPU1=/sys/devices/system/cpu/cpu1/online
kernel_test test_counters_hotplug
cat "$work/test_counters_hotplug.log"
load msr || fail msr "cannot be loaded"
simulate counters=4

# toggle TIMES: faster than the interval.
toggle() {
	for _ in $(seq "$1"); do
		echo 0 >$CPU1
		sleep 0.1
		echo 1 >$CPU1
	done
}

domains=10   # values of a report: five of each package, psys once less
[ "$(truth energy_uj psys 1 2>/dev/null)" ] || domains=9
begin powercap --rapl powercap -i 1s -o "hwpc=file://$work/powercap.hwpc" -o "snapshot=file://$work/powercap.jd"
begin_light perf --rapl perf -i 1s
begin_light msr --rapl msr -i 1s
for a in perf msr powercap; do
	begun $a
done
sim stop 0
for times in 1 3 2; do
	toggle $times
	two_more powercap $domains
done
# After the last one all is counted again: what runs from now on is exact, on the CPU that was away.
mkdir /sys/fs/cgroup/after
/tests/simload -p 1 -d /sys/fs/cgroup/after ipc30m20 2500
sim stop 1
for a in perf msr powercap; do
	two_more $a $domains
done
for p in 0 1; do
	all_exact "energy by register, package $p" msr 0 64 $p
	all_exact "energy by powercap, package $p" powercap 2.56 64 $p
done
all_exact "energy by perf, the package whose CPU stayed" perf 0 64 0
# Energy that an event would have counted after its CPU died is lost, and told; it is never more than was drawn.
got=$(reported "$work/perf.json" all package-1)
expect "energy by perf, the other: not above the truth" [ "${got:-0}" -le "$(truth energy_uj package 1)" ]
expect "energy by perf, the other: most of it" [ "${got:-0}" -ge $(($(truth energy_uj package 1) / 2)) ]
contains "energy by perf, the other: partial and told" "$work/perf.err" 'package-1: perf .* began anew'
expect "energy by perf, the other: marked" sh -c 'grep "\"target\":\"all\"" "$1" | grep "\"domain\":\"package-1\"" | grep -q "\"quality\":\"partial"' sh "$work/perf.json"
end_all
/tests/recsum "$work/powercap.jd" >"$work/sum" || fail powercap "the recording cannot be read"
cat "$work/sum" "$work/powercap.err"
for pair in CYCLES=cycles INSTRUCTIONS=instructions LLC_MISSES=misses; do
	expect "counted again after the return: ${pair%=*}" close_to "$(task_truth "${pair#*=}" /after task)" \
		"$(counted "$work/sum" /after "${pair%=*}")" 1 0
done
expect "the time after the return has no mark" awk '$1 == "/after" { exit $2 != 0 }' "$work/sum"
# No remedy that has nothing to do with it, and no counter that stands as measured.
if grep -q 'configure fewer events' "$work/powercap.err"; then
	fail "failed reads after hotplug: nothing to do" "$(said powercap)"
else
	ok "failed reads after hotplug: nothing to do"
fi
sent=$(grep -c '"target":"all"' "$work/powercap.hwpc")
expect "hwpc sends before and after" [ "$sent" -ge 4 ]
# In each report a CPU's TSC goes with the time in which it was counted, as the other's does.
expect "hwpc: the TSC is that of its running time" awk '
	/"target":"all"/ {
		n = split($0, cpu, "\"TSC\":")
		for (i = 2; i <= n; i++) {
			run = cpu[i]
			sub(/.*"time_running":/, "", run)
			tsc[i] = cpu[i] + 0
			ns[i] = run + 0
			if ((tsc[i] > 0) != (ns[i] > 0)) { print "TSC " tsc[i] " in " ns[i] " ns"; exit 1 }
		}
		if (n == 3 && ns[2] && ns[3] && (tsc[2] / ns[2] > 2 * tsc[3] / ns[3] || tsc[3] / ns[3] > 2 * tsc[2] / ns[2])) {
			print tsc[2] " in " ns[2] " ns, " tsc[3] " in " ns[3]
			exit 1
		}
		seen += n == 3
	}
	END { if (!seen) { print "no TSC"; exit 1 } }' "$work/powercap.hwpc"
expect "the intervals around it are partial" awk '$1 == "idle" { exit !(int($2 / 16) % 2) }' "$work/sum"
keep "$work"/*.json "$work"/*.err "$work"/*.hwpc "$work"/*.jd
finish
