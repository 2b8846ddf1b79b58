# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# Four CPUs in two cores: time beside a busy sibling and exits from idle against what the simulator counted, and the
# energy that the simulator charged for them against what the domain drew.
# kernels: 6.1
# seconds: 120
# qemu: -cpu Skylake-Client -smp 4,sockets=1,cores=2,threads=2
# modules: simpmu simrapl
# tests: vm/simload vm/recsum
. /guest/lib.sh
. /guest/energy.sh
expect "CPUs 0 and 1 are threads of one core" grep -qx '0[-,]1' /sys/devices/system/cpu/cpu0/topology/thread_siblings_list
simulate busy_mw=1000 cycle_pj=0 instruction_pj=0 reference_pj=0 miss_pj=0 smt_permille=1300 exit_nj=4000 sleep_mw=1000 \
	sleep_exit_nj=30000
for g in whole half other; do
	mkdir "/sys/fs/cgroup/$g"
done
printf 'events: { core: [CYCLES, SIBLING_BUSY, IDLE_EXITS] }\n' >"$work/smt.yaml"
measure smt --rapl none -i 250ms -c "$work/smt.yaml" -o "snapshot=file://$work/smt.jd"
echo reset >/proc/simpmu
sim stop 0
/tests/simload -p 0 -d /sys/fs/cgroup/whole ipc10 900 &
one=$!
/tests/simload -p 1 -c 40 -b 50 -d /sys/fs/cgroup/half ipc10 300 &
two=$!
/tests/simload -p 2 -d /sys/fs/cgroup/other ipc10 400
wait $one $two
sim stop 1
two_more smt 1
kill "$agent"
ended 100 "$agent"
/tests/recsum "$work/smt.jd" >"$work/sum" || fail recsum "the recording cannot be read"
cat "$work/sum"
keep "$work/smt.jd" "$work/sum"
for g in whole half other; do
	true_ns=$(task_truth sibling_ns "/$g" task) exits=$(task_truth idle_exits "/$g" task)
	ns=$(counted "$work/sum" "/$g" SIBLING_BUSY) told=$(counted "$work/sum" "/$g" IDLE_EXITS)
	echo "note $g: $(task_truth time_ns "/$g" task) ns, beside a sibling $ns of $true_ns, exits $told of $exits"
	# two programs stamp each switch, one after the other
	expect "time beside a busy sibling: $g" close_to "$true_ns" "$ns" 20 5000000
	expect "exits from idle: $g" [ "$told" -eq "$exits" ]
	cost=$(awk -v ns="$(task_truth time_ns "/$g" task)" -v with="$true_ns" -v exits="$exits" 'BEGIN { printf "%.0f", ns - 0.35 * with + 4000 * exits }')
	expect "what the simulator charges: $g" close_to "$cost" "$(task_truth core_nj "/$g" task)" 0 2000
done
expect "both threads of a core were busy" [ "$(task_truth sibling_ns /half task)" -gt 100000000 ]
expect "an idle CPU was woken up" [ "$(task_truth idle_exits /half task)" -gt 3 ]
drawn=$(truth dynamic_uj package)
charged=$((($(task_truth core_nj) + $(task_truth uncore_nj)) / 1000))
expect "what cgroups are charged is what the package drew" close_to "$drawn" "$charged" 0 3
finish
