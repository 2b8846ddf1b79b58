# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# Each trigger: what the doctor says of it, and the CPU time it brings. What a killed agent leaves behind.
# kernels: 6.1 5.10 newest
# seconds: 300
# threads: single
# programs: bpftool
. /guest/lib.sh

# tell TRIGGER WANTED: the doctor's line.
tell() {
	doctor "$1" --trigger "$1"
	contains "doctor of trigger $1" "$work/$1.out" "$2"
}

tell auto '^trigger +ok +tp_btf, clock scheduler'
tell tp_btf '^trigger +ok +tp_btf, clock scheduler'
tell raw_tp '^trigger +ok +raw_tp, clock scheduler'
tell none '^trigger +ok +none: CPU time from cpu.stat'
for trigger in auto raw_tp none; do
	cpu_is_right "CPU time by $trigger" --trigger $trigger
done
if [ "$KERNEL" = 5.10 ]; then
	tell perf_event '^trigger +absent .*no event of cgroup switches, 5.13 was the first'
	run absent -n 1 --trigger perf_event
	expect "an absent trigger is an error" [ $status -eq 1 ]
else
	# The kernel's event counts nothing until some controller is on below the root.
	tell perf_event '^trigger +absent .*cgroup.subtree_control'
	echo +pids >/sys/fs/cgroup/cgroup.subtree_control
	doctor perf_event --trigger perf_event
	contains "doctor of trigger perf_event with a controller" "$work/perf_event.out" \
		'^trigger +ok +perf_event, clock ktime.*root and idle merged'
	cpu_is_right "CPU time by perf_event" --trigger perf_event
	cpu_is_right "CPU time by tp_btf with a controller" --trigger tp_btf
fi

start killed -i 100ms -o "hwpc=file://$work/killed.json"
wait_until 100 more_ticks killed 2
bpf_objects "$agent" >"$work/objects"
kill -9 "$agent"
ended 50 "$agent"
expect "an agent holds BPF objects" [ "$(grep -c . "$work/objects")" -ge 8 ]
wait_until 50 all_gone "$work/objects"
expect "kill -9 leaves none" all_gone "$work/objects"
run again -n 1 -o null:
expect "and another starts" [ $status -eq 0 ]
finish
