# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# A large machine: 64 CPUs in two sockets with two dies each, a NUMA node a die. Each CPU's work is counted once, also that of CPUs
# which leave and return; the kernel's maps do not follow CPUs x cgroups.max.
# kernels: 6.12
# seconds: 420
# memory: 2048
# qemu: -cpu Skylake-Client -smp 64,sockets=2,dies=2,cores=16,threads=1 -object memory-backend-ram,id=m0,size=512M -object memory-backend-ram,id=m1,size=512M -object memory-backend-ram,id=m2,size=512M -object memory-backend-ram,id=m3,size=512M -numa node,memdev=m0,cpus=0-15 -numa node,memdev=m1,cpus=16-31 -numa node,memdev=m2,cpus=32-47 -numa node,memdev=m3,cpus=48-63
# modules: simpmu simrapl
# stock: msr
# tests: joulectl vm/recsum
. /guest/lib.sh
. /guest/energy.sh
CPUS='0 15 16 31 32 47 48 63'

# on CPU SECONDS DIRECTORY: works there for so long.
on() {
	sh -c 'echo $$ >"$3/cgroup.procs"; exec taskset -c "$1" timeout "$2" sh -c "while :; do :; done"' on "$@"
}

expect "the guest has 64 CPUs" [ "$(nproc)" -eq 64 ]
expect "the guest has four nodes" [ "$(find /sys/devices/system/node -maxdepth 1 -name 'node[0-9]*' | wc -l)" -eq 4 ]
load msr || fail msr "cannot be loaded"
simulate
begin powercap --socket "$work/sock" --rapl powercap -i 1s -o "snapshot=file://$work/powercap.jd"
begun powercap
sim stop 0
mkdir /sys/fs/cgroup/wide
for cpu in $CPUS; do
	mkdir "/sys/fs/cgroup/cpu-$cpu"
	on "$cpu" 0.5 "/sys/fs/cgroup/cpu-$cpu"
	on "$cpu" 0.2 /sys/fs/cgroup/wide
done
# A node's CPUs leave and come back; what runs there afterwards is counted.
for cpu in $(seq 32 47); do
	echo 0 >"/sys/devices/system/cpu/cpu$cpu/online"
done
two_more powercap 1
expect "the agent lives on without a node" kill -0 "$agent"
for cpu in $(seq 32 47); do
	echo 1 >"/sys/devices/system/cpu/cpu$cpu/online"
done
two_more powercap 1
mkdir /sys/fs/cgroup/after
on 47 0.5 /sys/fs/cgroup/after
sim stop 1
two_more powercap 1
/tests/joulectl status --socket "$work/sock" --json >"$work/status.json" || fail status "$(said powercap)"
map_bytes=$(sed -n 's/.*"map_bytes": *\([0-9]*\).*/\1/p' "$work/status.json")
expect "the kernel's maps take less than 64 MiB" [ "${map_bytes:-999999999}" -lt $((64 << 20)) ]
expect "the time from the energy to the last CPU is told" grep -qE '"reading_gap_ns": *[1-9]' "$work/status.json"
expect "the time from the first CPU to the last is told" grep -qE '"reading_spread_ns": *[1-9]' "$work/status.json"
end_all
/tests/recsum "$work/powercap.jd" >"$work/sum" || fail powercap "the recording cannot be read"
cat "$work/sum"
for cpu in $CPUS; do
	expect "time of CPU $cpu" close_to "$(used_us "/sys/fs/cgroup/cpu-$cpu")" "$(($(counted "$work/sum" "/cpu-$cpu" time_ns) / 1000))" 10 1000
done
expect "time of all of them" close_to "$(used_us /sys/fs/cgroup/wide)" "$(($(counted "$work/sum" /wide time_ns) / 1000))" 10 1000
expect "time of a CPU that came back" close_to "$(used_us /sys/fs/cgroup/after)" "$(($(counted "$work/sum" /after time_ns) / 1000))" 10 1000
for die in 0 1 2 3; do
	for kind in package core dram; do
		exact "energy of the dies" powercap $kind-$((die / 2))-die-$die "$(truth energy_uj $kind $die)" 2.56 64 || continue 2
	done
	ok "energy of die $die"
done
keep "$work"/*.json "$work"/*.err "$work"/*.jd
finish
