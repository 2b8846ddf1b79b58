# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# As many CPUs as QEMU numbers without interrupt remapping in this shape: 248 in two sockets with four dies each, and four NUMA
# nodes. The short form, with 64, is tests/vm/cases/many_cpus.sh. This guest has not been seen to its end on a host of two CPUs with
# other work. With all CPUs from the start it stood still at 24 s of its own time: QEMU's main thread was in timer_mod_ns() (77 % of
# perf's samples), presumably for the periodic ticks of 248 CPUs. With maxcpus=1 it came up, and the first 124 CPUs were switched on
# one after the other in 350 s, the last 31 of them in 126 s.
# kernels: 6.12
# seconds: 3000
# up: 1200
# memory: 3072
# append: watchdog_thresh=0 nowatchdog rcupdate.rcu_cpu_stall_suppress=1
# qemu: -cpu Skylake-Client -smp 248,sockets=2,dies=4,cores=31,threads=1 -object memory-backend-ram,id=m0,size=1536M -object memory-backend-ram,id=m1,size=512M -object memory-backend-ram,id=m2,size=512M -object memory-backend-ram,id=m3,size=512M -numa node,memdev=m0,cpus=0-61 -numa node,memdev=m1,cpus=62-123 -numa node,memdev=m2,cpus=124-185 -numa node,memdev=m3,cpus=186-247
# modules: simpmu simrapl
# stock: msr
# tests: joulectl vm/recsum
. /guest/lib.sh
. /guest/energy.sh
CPUS='0 30 31 61 62 123 124 185 186 247'

# on CPU SECONDS DIRECTORY: works there for so long.
on() {
	sh -c 'echo $$ >"$3/cgroup.procs"; exec taskset -c "$1" timeout "$2" sh -c "while :; do :; done"' on "$@"
}

# An emulated machine of this size needs minutes for what others do in a second.
begun() {
	wait_until 3000 more_values "$1" 0 || fail "$1" "no report: $(said "$1")"
}

two_more() {
	now=$(values "$1")
	wait_until 3000 more_values "$1" $((now + 1)) || fail "$1" "stopped reporting: $(said "$1")"
}

expect "the guest has 248 CPUs" [ "$(nproc)" -eq 248 ]
expect "the guest has two sockets" [ "$(sort -u /sys/devices/system/cpu/cpu*/topology/physical_package_id | wc -l)" -eq 2 ]
expect "the guest has eight dies" [ "$(sort -u /sys/devices/system/cpu/cpu*/topology/die_id | wc -l)" -eq 8 ]
expect "the guest has four nodes" [ "$(find /sys/devices/system/node -maxdepth 1 -name 'node[0-9]*' | wc -l)" -eq 4 ]
load msr || fail msr "cannot be loaded"
simulate
begin powercap --socket "$work/sock" --rapl powercap -i 2s -o "snapshot=file://$work/powercap.jd"
begun powercap
sim stop 0
mkdir /sys/fs/cgroup/wide
for cpu in $CPUS; do
	mkdir "/sys/fs/cgroup/cpu-$cpu"
	on "$cpu" 0.5 "/sys/fs/cgroup/cpu-$cpu"
	on "$cpu" 0.2 /sys/fs/cgroup/wide
done
# A part of a node's CPUs leaves and comes back; what runs there afterwards is counted.
for cpu in $(seq 124 127); do
	echo 0 >"/sys/devices/system/cpu/cpu$cpu/online"
done
two_more powercap
expect "the agent lives on without a part of a node" kill -0 "$agent"
for cpu in $(seq 124 127); do
	echo 1 >"/sys/devices/system/cpu/cpu$cpu/online"
done
two_more powercap
mkdir /sys/fs/cgroup/after
on 127 0.5 /sys/fs/cgroup/after
sim stop 1
two_more powercap
/tests/joulectl status --socket "$work/sock" --json >"$work/status.json" || fail status "$(said powercap)"
map_bytes=$(sed -n 's/.*"map_bytes": *\([0-9]*\).*/\1/p' "$work/status.json")
expect "the kernel's maps take less than 64 MiB" [ "${map_bytes:-999999999}" -lt $((64 << 20)) ]
expect "the time from the energy to the last CPU is told" grep -qE '"reading_gap_ns": *[1-9]' "$work/status.json"
expect "the time from the first CPU to the last is told" grep -qE '"reading_spread_ns": *[1-9]' "$work/status.json"
echo "note $(grep -oE '"(map_bytes|reading_gap_ns|reading_spread_ns)": *[0-9]*' "$work/status.json" | tr '\n' ' ')"
end_all
/tests/recsum "$work/powercap.jd" >"$work/sum" || fail powercap "the recording cannot be read"
for cpu in $CPUS; do
	expect "time of CPU $cpu" close_to "$(used_us "/sys/fs/cgroup/cpu-$cpu")" "$(($(counted "$work/sum" "/cpu-$cpu" time_ns) / 1000))" 10 1000
done
expect "time of all of them" close_to "$(used_us /sys/fs/cgroup/wide)" "$(($(counted "$work/sum" /wide time_ns) / 1000))" 10 1000
expect "time of a CPU that came back" close_to "$(used_us /sys/fs/cgroup/after)" "$(($(counted "$work/sum" /after time_ns) / 1000))" 10 1000
for die in 0 1 2 3 4 5 6 7; do
	for kind in package core dram; do
		exact "energy of the dies" powercap $kind-$((die / 4))-die-$die "$(truth energy_uj $kind $die)" 2.56 64 || continue 2
	done
	ok "energy of die $die"
done
keep "$work"/*.json "$work"/*.err "$work"/*.jd
finish
