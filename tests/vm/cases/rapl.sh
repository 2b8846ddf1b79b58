# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# The three doors to one energy model, each alone and all of them: what jouled reports in all is what was drawn.
# kernels: 6.1 6.12
# seconds: 150
# qemu: -cpu Skylake-Client
# modules: simpmu simrapl
# stock: msr
# tests: vm/simload
. /guest/lib.sh
. /guest/energy.sh
doors="powercap perf msr auto"
load msr || fail msr "cannot be loaded"

# each_door COMMAND...: with the agent's name after it.
each_door() {
	for door in $doors; do
		"$@" "$door"
	done
}

begin() {
	measure "$1" --rapl "$1" -i 400ms
}

# Nanojoules are cut from the unit of powercap: 61035 for 61035.156 (formats: intel_rapl_common.c).
door_exact() {
	case $2 in
	powercap | auto) all_exact "$1: $2" "$2" 2.56 64 ;;
	*) all_exact "$1: $2" "$2" 0 64 ;;
	esac
}

end_all() {
	for pid in $agents; do
		kill "$pid" 2>/dev/null
		ended 100 "$pid"
	done
	agents=
}

# Running free, then standing still, so that the last report has it all.
simulate
each_door begin
sim stop 0
/tests/simload ipc30m20 1200 &
sleep 2
sim stop 1
each_door two_more
each_door door_exact "energy running free"
keep "$work"/*.json "$work"/*.err

# Steps to the microjoule; back is no energy, and said.
sim inject "0 package 1234567, 0 core 1000001, 0 uncore 300003, 0 dram 7654321, 0 psys 20000000"
each_door two_more
each_door door_exact "injected steps"
sim inject "0 package -234567"
each_door two_more
each_door door_exact "a step back"
back_said() {
	contains "a step back is told: $1" "$work/$1.err" 'package-0: .* (began anew|jumped or was read too late)'
}
each_door back_said

# Reads fail for a while: told, and nothing is lost.
sim stop 0
sim err 1
sleep 1
sim err 0
sleep 2
sim stop 1
each_door two_more
doors="powercap msr auto"
each_door door_exact "after failed reads"
err_said() {
	contains "failed reads are told: $1" "$work/$1.err" 'package-0: .* cannot be read' 'package-0: .* answers again'
}
each_door err_said
doors="powercap perf msr auto"
end_all
finish
