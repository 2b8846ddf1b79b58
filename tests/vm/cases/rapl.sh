# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# The three doors to one energy model, each alone and all of them: what jouled reports in all is what was drawn.
# kernels: 6.1
# seconds: 300
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

one_door() {
	begin_light "$1" --rapl "$1" -i 300ms
}

# package_values DOOR [QUALITY]: how many there are.
package_values() {
	grep '"target":"all"' "$work/$1.json" | grep '"domain":"package-0"' | grep -c "\"quality\":\"${2:-}"
}

count_package() {
	eval "package_$1=$(package_values "$1")"
}

count_partial() {
	eval "partial_$1=$(package_values "$1" partial)"
}

# A counter shows whole units of 61.035 uJ: what was drawn between two looks is known to less than one of them.
# Where a counter stepped back a second account begins, with a first and a last look of its own. Two
# microjoules are cut by the truth and by the reports.
room=64
room_after_step=125
# Nanojoules are cut from the unit of powercap: 61035 for 61035.156 (formats: intel_rapl_common.c).
door_exact() {
	case $2 in
	powercap | auto) all_exact "$1: $2" "$2" 2.56 $room ;;
	*) all_exact "$1: $2" "$2" 0 $room ;;
	esac
}

# Running free, then standing still, so that the last report has it all.
simulate
each_door one_door
each_door begun
sim stop 0
/tests/simload ipc30m20 1200 &
sleep 2
sim stop 1
each_door two_more
each_door door_exact "energy running free"

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
room=$room_after_step

# Reads fail for a while: told, and nothing is lost.
sim stop 0
sim err 1
for door in powercap msr auto; do
	wait_until 150 grep -q 'package-0: .* cannot be read' "$work/$door.err"
done
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

# Counters that stand while the machine runs: marked, not believed to be zero; then they go on.
sim freeze 1
sim stop 0
frozen_said() {
	wait_until 200 grep -q 'package-0: .* stands still' "$work/$1.err"
	contains "a frozen counter is told: $1" "$work/$1.err" 'package-0: .* stands still'
}
each_door frozen_said
sleep 0.5   # what was on its way when that was said
each_door count_package
sleep 1
frozen_left_out() {
	eval "before=\$package_$1"
	expect "a frozen counter is left out: $1" [ "$before" -eq "$(package_values "$1")" ]
}
each_door frozen_left_out
each_door count_partial
sim freeze 0
sleep 1
sim stop 1
each_door two_more
missed_marked() {
	eval "before=\$partial_$1"
	expect "what a frozen counter missed is partial: $1" [ "$before" -lt "$(package_values "$1" partial)" ]
}
each_door missed_marked
keep "$work"/*.json "$work"/*.err
end_all

# A machine that has fewer domains.
simulate domains=5
doctor few
cat "$work/few.out"
contains "what is there is found" "$work/few.out" '^domain +ok +package-0 from powercap' '^domain +ok +core-0 from powercap'
if grep -E '(dram|uncore|psys).* ok ' "$work/few.out" >"$work/more"; then
	fail "what is not there is not made up" "$(cat "$work/more")"
else
	ok "what is not there is not made up"
fi
finish
