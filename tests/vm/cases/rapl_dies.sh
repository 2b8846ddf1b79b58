# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# Intel: dies with counters of their own.
# kernels: 6.12
# seconds: 300
# qemu: -cpu Skylake-Client -smp 4,sockets=1,dies=2,cores=2,threads=1
# modules: simpmu simrapl
# stock: msr
# tests: vm/simload
. /guest/lib.sh
. /guest/energy.sh
load msr || fail msr "cannot be loaded"
expect "the guest has two dies" [ "$(cat /sys/devices/system/cpu/cpu*/topology/die_id | sort -u | wc -l)" -eq 2 ]

simulate
for door in powercap perf msr; do
	begin_light $door --rapl $door -i 300ms
done
for door in powercap perf msr; do
	begun $door
done
sim stop 0
/tests/simload -p 2 ipc30m20 1000
sim stop 1
for door in powercap perf msr; do
	two_more $door 9
	ppm=0
	[ $door != powercap ] || ppm=2.56
	for die in 0 1; do
		for kind in package core uncore dram; do
			exact "dies by $door" $door $kind-0-die-$die "$(truth energy_uj $kind $die)" $ppm 64 || continue 3
		done
	done
	exact "dies by $door" $door psys "$(truth energy_uj psys)" $ppm 64 && ok "dies by $door"
done
expect "the second die did the work" [ "$(truth dynamic_uj core 1)" -gt "$(truth dynamic_uj core 0)" ]
keep "$work"/*.json "$work"/*.err
end_all
finish
