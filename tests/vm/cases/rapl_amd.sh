# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# AMD: a register for each physical core, dies that show their socket's counter again.
# kernels: 6.1
# seconds: 300
# qemu: -cpu EPYC -smp 4,sockets=1,cores=2,threads=2
# modules: simpmu simrapl
# stock: msr intel_rapl_msr
# tests: vm/simload
. /guest/lib.sh
. /guest/energy.sh
load msr || fail msr "cannot be loaded"

# counted_once AGENT FOR
counted_once() {
	exact "$2: package" "$1" package-0 "$(truth energy_uj package 0)" "$3" 64 && ok "$2: package"
}

simulate domains=5 mirror=1 dies=2
expect "there is a zone for each die" [ "$(cat /sys/class/powercap/intel-rapl:*/name | grep -c '^package-0-die-')" -eq 2 ]
for door in powercap perf msr; do
	begin_light $door --rapl $door -i 300ms
done
for door in powercap perf msr; do
	begun $door
done
sim stop 0
/tests/simload -p 3 ipc30m20 600 &
/tests/simload -p 2 ipc10m20 600
wait $!
sim stop 1
for door in powercap perf msr; do
	two_more $door 1
done
counted_once powercap "dies that mirror their socket are counted once: powercap" 2.56
counted_once perf "dies that mirror their socket are counted once: perf" 0
counted_once msr "dies that mirror their socket are counted once: msr" 0
exact "cores are added up: msr" msr core-0 "$(truth energy_uj core 0)" 0 256 && ok "cores are added up: msr"
doctor rapl --rapl auto
contains "one core is not taken for all: powercap" "$work/rapl.out" 'core-0 +absent .*shows one core'
keep "$work"/*.json "$work"/*.err
end_all

# The kernel's own driver over AMD's registers.
simulate domains=5 powercap=0 perf=0
load intel_rapl_msr || fail intel_rapl_msr "cannot be loaded"
measure_light stock --rapl powercap -i 300ms
sim stop 0
sleep 1.5
sim stop 1
two_more stock 1
counted_once stock "the kernel's own driver on AMD" 2.56
end_all
finish
