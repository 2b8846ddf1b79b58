# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# Counters that wrap many times within one interval, looks at 1 kHz, perf stat beside jouled, and the kernel's
# own powercap driver over the simulated registers.
# kernels: 6.12
# seconds: 300
# qemu: -cpu Skylake-Client
# modules: simpmu simrapl
# stock: msr intel_rapl_msr
# programs: perf
. /guest/lib.sh
. /guest/energy.sh
load msr || fail msr "cannot be loaded"
# 28 W, whatever runs
steady="busy_mw=0 instruction_pj=0 reference_pj=0 miss_pj=0 core_idle_mw=28000 uncore_idle_mw=28000 package_idle_mw=28000 dram_idle_mw=28000 psys_idle_mw=0"
# perf_joules EVENT: of the file of perf stat -x,
perf_joules() {
	awk -F, -v event="power/$1/" '$3 == event { print $1; seen = 1 } END { exit !seen }' "$work/perf.csv"
}

# How often the doors were asked for the package, in $by_powercap and $by_msr.
asked() {
	while read -r kind _ _ _ _ _ _ _ _ powercap _ msr; do
		[ "$kind" != package ] || by_powercap=$powercap by_msr=$msr
	done </proc/simrapl
}

# Almost a turn of every counter, and then each agent looks at all of them at least once.
step() {
	sim inject "0 package 1900000, 0 core 1900000, 0 uncore 1900000, 0 dram 1900000, 0 psys 1900000"
	asked
	once_powercap=$by_powercap once_msr=$by_msr
	while [ "$by_powercap" -lt $((once_powercap + 2)) ] || [ "$by_msr" -lt $((once_msr + 2)) ]; do
		asked
	done
}

# many_wraps INTERVAL: false when they did not fit into it, on a host that had other things to do.
many_wraps() {
	simulate range_uj=1999999 esu=31
	for door in powercap perf msr; do
		rm -f "$work/$door-long.json"
		pace=
		[ $door != msr ] || pace="-c $work/fast.yaml"
		# shellcheck disable=SC2086 # words
		begin_light $door --rapl $door -i 300ms -o "power=file://$work/$door-long.json?time=ms&interval=$1" -v $pace
	done
	for door in powercap perf msr; do
		begun $door
	done
	for _ in $(seq 120); do
		step
	done
	values msr-long && return 1
	for door in powercap perf msr; do
		wait_until 1500 more_values $door-long 0 || fail "the interval ends" "it does not: $(said $door)"
	done
}

# 2 J in a turn.
printf 'rapl-poll: 1ms\n' >"$work/fast.yaml"
for interval in 12s 40s 100s; do
	many_wraps $interval && break
	echo "note 120 steps did not fit into $interval"
	end_all
done
end_all
for door in powercap perf msr; do
	echo "note $door: $(grep -o 'rapl: [0-9]* looks.*' "$work/$door.err"); $(qualities "$work/$door-long.json" package-0)"
done
# 228 J are 114 turns of 2 J
expect "over 100 wraps within one interval" [ "$(truth energy_uj package)" -eq 228000000 ]
expect "one interval" [ "$(grep -c '"target":"all".*"domain":"package-0"' "$work/msr-long.json")" -eq 1 ]
all_exact "wraps many times a second: powercap" powercap-long 0 1
all_exact "wraps many times a second: perf" perf-long 0 1
all_exact "wraps many times a second, looked at with 1 kHz: msr" msr-long 0 1
awk '/rapl: [0-9]+ looks/ { for (i = 1; i < NF; i++) { if ($(i + 1) == "looks") n = $i; if ($(i + 1) == "left") n += $i } }
	END { print n + 0; exit !(n >= 10000) }' "$work/msr.err" >"$work/looks" && ok "late looks are counted" ||
	fail "late looks are counted" "$(cat "$work/looks") done and left out in over 10 s; $(said msr)"

# Running free.
# shellcheck disable=SC2086
simulate $steady
sim stop 0
perf stat -a -x, -o "$work/perf.csv" -e power/energy-pkg/,duration_time sleep 2
watts=$(awk -F, -v j="$(perf_joules energy-pkg)" '$3 == "duration_time" { print j / $1 * 1e9 }' "$work/perf.csv")
expect "perf stat running free" close_to 28 "$watts" 10 0

# With exact steps alone, all interfaces agree to perf's last digit.
# shellcheck disable=SC2086
simulate $steady
measure_light steps --rapl auto -i 300ms
perf stat -a -x, -o "$work/perf.csv" -e power/energy-pkg/,power/energy-ram/ \
	sh -c 'echo "0 package 12340000, 0 dram 7650000" >/sys/module/simrapl/parameters/inject && sleep 1'
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
measure_light stock --rapl powercap -i 300ms
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
