# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# Suspend to memory between two readings: energy, and the counters of CPUs that sleep takes offline.
# kernels: 6.1
# seconds: 120
# qemu: -cpu Skylake-Client
# modules: simpmu simrapl
# stock: msr
# tests: vm/simload vm/recsum
. /guest/lib.sh
. /guest/energy.sh
load msr || fail msr "cannot be loaded"
for g in before after later; do
	mkdir /sys/fs/cgroup/$g
done

asleep_ns() {
	awk 'NR == 1 { print $4 - $2 }' /proc/simrapl
}

sleep_now() {
	echo 0 >/sys/class/rtc/rtc0/wakealarm
	echo +3 >/sys/class/rtc/rtc0/wakealarm
	echo mem >/sys/power/state || fail "suspend to memory" "$(dmesg | tail -n 3)"
}

simulate
for door in powercap perf msr; do
	begin $door --rapl $door -i 500ms -o "snapshot=file://$work/$door.jd"
done
for door in powercap perf msr; do
	begun $door
done
# One whose next reading is long after the sleep.
measure slow --rapl none -i 3s -o "snapshot=file://$work/slow.jd"
asleep=$(asleep_ns)
sim stop 0
/tests/simload -d /sys/fs/cgroup/before -p 1 ipc20m9 500
sleep_now
sleep 0.3
/tests/simload -d /sys/fs/cgroup/after -p 1 ipc20m9 500
sim stop 1
asleep=$((($(asleep_ns) - asleep) / 1000000))
expect "the machine slept" [ $asleep -ge 1500 ]
for door in powercap perf msr; do
	two_more $door
done
all_exact "energy over a sleep: powercap" powercap 2.56 64
all_exact "energy over a sleep: perf" perf 0 64
all_exact "energy over a sleep: msr" msr 0 64
/tests/simload -d /sys/fs/cgroup/later -p 1 ipc20m9 300
two_more msr
two_more slow 1
keep "$work"/*.json "$work"/*.err "$work"/*.jd
end_all
/tests/recsum "$work/msr.jd" >"$work/sum" || fail recsum "the recording cannot be read"
cat "$work/sum"

# Events of CPUs that sleep took offline are dead: opened anew as soon as the machine is awake, whatever the interval.
/tests/recsum "$work/slow.jd" >"$work/slow.sum" || fail recsum "the recording cannot be read"
cat "$work/slow.sum"
for sums in sum slow.sum; do
	for g in before after; do
		expect "counters $g a sleep: $sums" close_to "$(task_truth instructions /$g task)" "$(counted "$work/$sums" /$g INSTRUCTIONS)" 1 0
	done
done
expect "counters later" close_to "$(task_truth instructions /later task)" "$(counted "$work/sum" /later INSTRUCTIONS)" 1 0

# Registers that begin at 0 after sleep: what they had not told is lost, and said; nothing is made up.
simulate resume_reset=1 start_uj=5000000000
for door in powercap perf msr; do
	begin $door --rapl $door -i 500ms
done
for door in powercap perf msr; do
	begun $door
done
sim stop 0
sleep 2
sleep_now
sleep 1
sim stop 1
for door in powercap perf msr; do
	two_more $door
	missing=$(($(truth energy_uj package) - $(reported "$work/$door.json" all package-0)))
	if [ $missing -ge -64 ] && [ $missing -lt 8000000 ]; then
		ok "registers begin at 0 after sleep: $door"
	else
		fail "registers begin at 0 after sleep: $door" "$missing of $(truth energy_uj package) uJ are missing; $(said $door)"
	fi
	contains "registers begin at 0 after sleep, told: $door" "$work/$door.err" 'package-0: .* (began anew|jumped or was read too late)'
done
keep "$work"/*.json "$work"/*.err
end_all
finish
