# shellcheck shell=sh disable=SC1091,SC2154,SC2034
# SPDX-License-Identifier: Apache-2.0
# joulectl audit for 10 minutes, 20 times in each scenario, against the truth of simrapl; 14 hours:
# JOULED_VM_CASES=tests/vm/soak sh tests/vm/run.sh 6.1 audit
# At least 18 of 20 intervals hold the true error of a load's charge, and each is at most 2 points wide. Leave the host alone: docs/audit.md.
# For another number or time, write TRIALS=1 TIME=150s above the first scenario.
# kernels: 6.1
# seconds: 55000
# once: yes
# memory: 1024
# modules: simpmu simrapl
# tests: joulectl vm/simload
. /guest/lib.sh
. /guest/energy.sh
. /guest/audit.sh
begin_audit
# shellcheck disable=SC2086 # words
for scenario in linear "noise noise_permille=10" "saturation saturate_permille=250" "square square_permille=300"; do
	set -- $scenario
	name=$1
	shift
	for setting in "$@"; do
		sim "${setting%%=*}" "${setting#*=}"
	done
	held=0
	for trial in $(seq "${TRIALS:-20}"); do
		begin_audited
		by_own_loads "$name" -d "${TIME:-10m}" --seed "$trial"
		for load in compute memory; do
			low=$(line "$work/$name.json" $load average low)
			high=$(line "$work/$name.json" $load average high)
			truth=$(charge_error $load) || fail "$name $trial: $load" "it was charged nothing, or drew nothing"
			echo "note $name $trial $load: $low to $high, truth $truth"
			awk -v l="$low" -v h="$high" -v t="$truth" 'BEGIN { exit !(l <= t && t <= h) }' && held=$((held + 1))
			awk -v l="$low" -v h="$high" 'BEGIN { exit !(h - l <= 0.02) }' ||
				fail "$name $trial: $load is narrow" "$low to $high"
		done
		end_all
	done
	expect "$name: $held intervals hold the truth" test $held -ge $((2 * ${TRIALS:-20} * 9 / 10))
	for setting in "$@"; do
		sim "${setting%%=*}" 0
	done
done
finish
