# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# The doors on the oldest kernel: energy running free, and exact steps.
# kernels: 5.10
# seconds: 120
# qemu: -cpu Skylake-Client
# modules: simpmu simrapl
# stock: msr
# tests: vm/simload
. /guest/lib.sh
. /guest/energy.sh
load msr || fail msr "cannot be loaded"
simulate
for door in powercap perf msr; do
	begin_light $door --rapl $door -i 300ms
done
for door in powercap perf msr; do
	begun $door
done
sim stop 0
/tests/simload ipc30m20 1000
sim stop 1
sim inject "0 package 1234567, 0 core 1000001, 0 uncore 300003, 0 dram 7654321, 0 psys 20000000"
for door in powercap perf msr; do
	two_more $door
	# as in rapl.sh
	ppm=0
	[ $door != powercap ] || ppm=2.56
	all_exact "the oldest kernel: $door" $door $ppm 64
done
measure counted --rapl none -i 250ms -o "snapshot=file://$work/counted.jd"
mkdir /sys/fs/cgroup/work
echo reset >/proc/simpmu
/tests/simload -d /sys/fs/cgroup/work ipc30m20 500
two_more counted 1
end_all
/tests/recsum "$work/counted.jd" >"$work/sum" || fail recsum "the recording cannot be read"
expect "the oldest kernel: counters" close_to "$(task_truth instructions /work task)" "$(counted "$work/sum" /work INSTRUCTIONS)" 1 0
finish
