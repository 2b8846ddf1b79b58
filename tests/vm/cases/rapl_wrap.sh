# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# Counters that wrap many times within one interval, looks at 1 kHz, perf stat beside jouled, and the kernel's
# own powercap driver over the simulated registers.
# kernels: 6.12
# seconds: 150
# qemu: -cpu Skylake-Client
# modules: simpmu simrapl
# stock: msr intel_rapl_msr
# programs: perf
. /guest/lib.sh
. /guest/energy.sh
load msr || fail msr "cannot be loaded"
steady="busy_mw=0 instruction_pj=0 reference_pj=0 miss_pj=0 core_idle_mw=28000 uncore_idle_mw=28000 package_idle_mw=28000 dram_idle_mw=28000 psys_idle_mw=0"
printf 'rapl-poll: 1ms\n' >"$work/fast.yaml"

# perf_joules EVENT: of the file of perf stat -x,
perf_joules() {
	awk -F, -v event="power/$1/" '$3 == event { print $1; seen = 1 } END { exit !seen }' "$work/perf.csv"
}

# looked MORE: jouled has opened its counters and looks at them.
looked() {
	[ "$(truth reads package)" -gt "$1" ]
}

# 2 J in a turn and 28 W (56 W for psys): 14 wraps a second, over 100 within the interval of 10 s.
many_wraps() {
	rm -f "$work"/*.json
	# shellcheck disable=SC2086 # words
	simulate range_uj=1999999 esu=31 quantum_us=100 $steady
	begin powercap --rapl powercap -i 10s -n 1 -v
	begin perf --rapl perf -i 10s -n 1 -v
	begin msr --rapl msr -i 10s -n 1 -v
	begin khz --rapl powercap -i 10s -n 1 -v -c "$work/fast.yaml"
	wait_until 100 looked 200 || fail "looks" "only $(truth reads package): $(said msr)"
	sim stop 0
	perf stat -a -x, -o "$work/perf.csv" -e power/energy-pkg/,power/energy-ram/,duration_time sleep 3
	sleep 4.3
	sim stop 1
	wraps=$(($(truth energy_uj package) / 2000000))
	for pid in $agents; do
		ended 200 "$pid" || fail "the interval ends" "it does not"
	done
	agents=
	for a in powercap perf msr khz; do
		echo "note $a: $(grep -o 'rapl: [0-9]* looks.*' "$work/$a.err"); $(qualities "$work/$a.json" package-0)"
	done
}

# A guest that got no CPU for a whole turn cannot know: that must be marked, and is tried again.
missed_a_turn() {
	for a in powercap msr khz; do
		close_to "$(truth energy_uj psys)" "$(reported "$work/$a.json" all psys)" 0 1 && continue
		qualities "$work/$a.json" psys | grep -q partial && return 0
	done >/dev/null
	return 1
}

many_wraps
for again in 1 2; do
	missed_a_turn || break
	echo "note the guest got no CPU for the time of a wrap, marked as partial; once more ($again)"
	many_wraps
done
if [ $wraps -ge 100 ]; then
	ok "over 100 wraps within one interval"
else
	fail "over 100 wraps within one interval" "$wraps"
fi
all_exact "wraps many times a second: powercap" powercap 0 1
all_exact "wraps many times a second: perf" perf 0 1
all_exact "wraps many times a second: msr" msr 0 1
all_exact "looks at 1 kHz: the sum is exact" khz 0 1
contains "looks at 1 kHz: late ones are counted" "$work/khz.err" 'rapl: [0-9]+ looks at the counters every 1.000 ms, [0-9]+ left out'
watts=$(awk -F, -v j="$(perf_joules energy-pkg)" '$3 == "duration_time" { print j / $1 * 1e9 }' "$work/perf.csv")
expect "perf stat running free" close_to 28 "$watts" 10 0

# Nothing but exact steps: the same to perf's last digit.
# shellcheck disable=SC2086
simulate $steady
measure steps --rapl auto -i 300ms
perf stat -a -x, -o "$work/perf.csv" -e power/energy-pkg/,power/energy-ram/ sleep 3 &
perf=$!
sleep 1.5
sim inject "0 package 12340000, 0 dram 7650000"
wait $perf
two_more steps
# what lies below 2^-14 J stays in the register
expect "perf stat, exact steps: package" [ "$(perf_joules energy-pkg)" = 12.34 ]
expect "perf stat, exact steps: dram" [ "$(perf_joules energy-ram)" = 7.65 ]
all_exact "jouled, exact steps beside perf stat" steps 2.56 64
end_all

# The kernel's own driver makes zones from the registers.
# shellcheck disable=SC2086
simulate powercap=0 perf=0 $steady domains=29
load intel_rapl_msr || fail intel_rapl_msr "cannot be loaded"
ls /sys/class/powercap
measure stock --rapl powercap -i 300ms
sim stop 0
sleep 2
sim stop 1
two_more stock 4
for kind in package core dram psys; do
	domain=$kind-0
	[ $kind != psys ] || domain=psys
	expect "the kernel's own driver: $kind" exact stock stock $domain "$(truth energy_uj $kind)" 2.56 64
done
keep "$work"/*.json "$work"/*.err "$work"/*.csv
end_all
finish
