# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# Two packages, CPUs that go away and come back.
# kernels: 6.1
# seconds: 300
# qemu: -cpu Skylake-Client -smp 4,sockets=2
# modules: simpmu simrapl
# stock: msr intel_rapl_msr
# tests: vm/simload
. /guest/lib.sh
. /guest/energy.sh
load msr || fail msr "cannot be loaded"
cpu=/sys/devices/system/cpu

ppm() {
	case $1 in
	powercap) echo 2.56 ;;
	*) echo 0 ;;
	esac
}

# Work in the second package alone: each package has its own.
simulate
for door in powercap perf msr; do
	begin_light $door --rapl $door -i 300ms
done
for door in powercap perf msr; do
	begun $door
done
sim stop 0
/tests/simload -p 2 ipc30m20 1500
sim stop 1
for door in powercap perf msr; do
	two_more $door 9
	all_exact "two packages, the first: $door" $door "$(ppm $door)" 64 0
	all_exact "two packages, the second: $door" $door "$(ppm $door)" 64 1
done
expect "the second package did the work" [ "$(truth dynamic_uj core 1)" -gt $((4 * $(truth dynamic_uj core 0))) ]

# One of its CPUs goes and comes back: the other one goes on for it.
sim stop 0
sleep 0.5
echo 0 >$cpu/cpu2/online
sleep 1
echo 1 >$cpu/cpu2/online
sleep 1
sim stop 1
for door in powercap msr; do
	two_more $door 9
	all_exact "a CPU goes and comes back: $door" $door "$(ppm $door)" 64 1
done
two_more perf 9
missing=$(($(truth energy_uj package 1) - $(reported "$work/perf.json" all package-1)))
if [ $missing -ge -64 ] && [ $missing -lt $(($(truth energy_uj package 1) / 2)) ]; then
	ok "a CPU goes and comes back: perf loses less than half of all"
else
	fail "a CPU goes and comes back: perf loses less than half of all" "$missing uJ of $(truth energy_uj package 1)"
fi
contains "a CPU goes and comes back: perf says so" "$work/perf.err" 'package-1: perf .* began anew'
all_exact "a CPU goes and comes back: the other package by perf" perf 0 64 0
keep "$work"/*.json "$work"/*.err
end_all

# A whole package goes, and its zones of the kernel's own driver with it.
simulate powercap=0 perf=0
load intel_rapl_msr || fail intel_rapl_msr "cannot be loaded"
for door in powercap msr; do
	measure_light away-$door --rapl $door -i 300ms
done
sim stop 0
sleep 1
echo 0 >$cpu/cpu2/online
echo 0 >$cpu/cpu3/online
sleep 2
echo 1 >$cpu/cpu2/online
echo 1 >$cpu/cpu3/online
sleep 2
sim stop 1
for door in powercap msr; do
	two_more away-$door 9
	all_exact "a package goes and comes back: the one that stays by $door" away-$door "$(ppm $door)" 64 0
	exact "a package goes and comes back: $door" away-$door package-1 "$(truth energy_uj package 1)" "$(ppm $door)" 64 &&
		ok "a package goes and comes back: $door"
done
keep "$work"/*.json "$work"/*.err
end_all
finish
