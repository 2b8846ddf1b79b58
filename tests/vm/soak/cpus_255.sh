# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# The most CPUs that a machine without interrupt remapping has: 255 in five sockets with three dies each and a NUMA node a socket.
# The short form, with 64, is tests/vm/cases/many_cpus.sh.
# kernels: 6.12
# seconds: 2400
# memory: 3072
# append: watchdog_thresh=0 nowatchdog rcupdate.rcu_cpu_stall_suppress=1
# qemu: -cpu Skylake-Client -smp 255,sockets=5,dies=3,cores=17,threads=1 -object memory-backend-ram,id=m0,size=1024M -object memory-backend-ram,id=m1,size=512M -object memory-backend-ram,id=m2,size=512M -object memory-backend-ram,id=m3,size=512M -object memory-backend-ram,id=m4,size=512M -numa node,memdev=m0,cpus=0-50 -numa node,memdev=m1,cpus=51-101 -numa node,memdev=m2,cpus=102-152 -numa node,memdev=m3,cpus=153-203 -numa node,memdev=m4,cpus=204-254
# modules: simpmu simrapl
# stock: msr
# tests: joulectl vm/recsum
. /guest/lib.sh
. /guest/energy.sh
CPUS='0 16 17 50 51 101 102 153 203 204 254'

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

expect "the guest has 255 CPUs" [ "$(nproc)" -eq 255 ]
expect "the guest has five nodes" [ "$(find /sys/devices/system/node -maxdepth 1 -name 'node[0-9]*' | wc -l)" -eq 5 ]
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
for cpu in $(seq 102 105); do
	echo 0 >"/sys/devices/system/cpu/cpu$cpu/online"
done
two_more powercap
expect "the agent lives on without a part of a node" kill -0 "$agent"
for cpu in $(seq 102 105); do
	echo 1 >"/sys/devices/system/cpu/cpu$cpu/online"
done
two_more powercap
mkdir /sys/fs/cgroup/after
on 105 0.5 /sys/fs/cgroup/after
sim stop 1
two_more powercap
/tests/joulectl status --socket "$work/sock" --json >"$work/status.json" || fail status "$(said powercap)"
map_bytes=$(sed -n 's/.*"map_bytes": *\([0-9]*\).*/\1/p' "$work/status.json")
expect "the kernel's maps take less than 64 MiB" [ "${map_bytes:-999999999}" -lt $((64 << 20)) ]
expect "the time from the energy to the last CPU is told" grep -qE '"reading_gap_ns": *[1-9]' "$work/status.json"
echo "note $(grep -oE '"(map_bytes|reading_gap_ns|reading_spread_ns)": *[0-9]*' "$work/status.json" | tr '\n' ' ')"
end_all
/tests/recsum "$work/powercap.jd" >"$work/sum" || fail powercap "the recording cannot be read"
for cpu in $CPUS; do
	expect "time of CPU $cpu" close_to "$(used_us "/sys/fs/cgroup/cpu-$cpu")" "$(($(counted "$work/sum" "/cpu-$cpu" time_ns) / 1000))" 10 1000
done
expect "time of all of them" close_to "$(used_us /sys/fs/cgroup/wide)" "$(($(counted "$work/sum" /wide time_ns) / 1000))" 10 1000
expect "time of a CPU that came back" close_to "$(used_us /sys/fs/cgroup/after)" "$(($(counted "$work/sum" /after time_ns) / 1000))" 10 1000
finish
