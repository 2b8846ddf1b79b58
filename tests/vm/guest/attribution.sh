# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: Apache-2.0
# Sourced by the attribution cases, after lib.sh and energy.sh: programs in cgroups under simulated RAPL and
# counters, recorded with formula model, and again with share from that recording; judged on the host
# (tests/vm/attribution.py), which needs the truth of every interval.
PLAIN="busy_mw=1500 cycle_pj=300 instruction_pj=400 hidden_pj=0 reference_pj=2000 miss_pj=20000 square_permille=0
saturate_permille=0 noise_permille=0 core_idle_mw=1000 uncore_idle_mw=500 package_idle_mw=4000 dram_idle_mw=800
smt_permille=2000 small_permille=1000 step_mv=0 exit_nj=0 sleep_mw=0 sleep_exit_nj=0 first_waker_pays=1 queue_permille=0
leak_permille=0"
INTERVAL_MS=${INTERVAL_MS:-1000}

set_all() {
	for setting in "$@"; do
		case $setting in
		swing_* | small=* | bandwidth=*) echo "${setting#*=}" >"/sys/module/simpmu/parameters/${setting%%=*}" ;;
		hidden_per_1000=*) hidden=${setting#*=} ;;
		load=*) load=${setting#*=} ;;
		*) sim "${setting%%=*}" "${setting#*=}" ;;
		esac
	done
}

# attribute SCENARIO CGROUPS SEED BEFORE SNAPSHOTS [SETTING=VALUE...]: BEFORE are to learn from.
attribute() {
	scenario=$1 cgroups=$2 seed=$3 before=$4 shots=$5
	shift 5
	hidden=0
	load=1100
	# shellcheck disable=SC2086 # words
	set_all $PLAIN swing_permille=0 small=0 bandwidth=0 "$@"
	echo reset >/proc/simpmu
	mkdir -p "/sys/fs/cgroup/$scenario"
	start "$scenario" -i "${INTERVAL_MS}ms" -n $((before + shots)) --formula model -o "snapshot=file://$work/$scenario.model"
	# a reading that the programs interrupt has energy and counts of different times
	for task in /proc/"$agent"/task/*; do
		chrt -f -p 50 "${task##*/}" || fail "$scenario" "jouled cannot be given priority"
	done
	/tests/attrib -d "/sys/fs/cgroup/$scenario" -n "$cgroups" -s "$seed" -b "$load" -x "$hidden" -o "$work/$scenario.truth" &
	programs=$!
	expect "$scenario: recorded" ended $(((before + shots) * INTERVAL_MS / 50 + 100)) "$agent"
	kill $programs
	wait $programs
	expect "$scenario: replayed with share" "$JOULED" --replay "$work/$scenario.model" --formula share \
		-o "snapshot=file://$work/$scenario.share"
	expect "$scenario: replayed with model" "$JOULED" --replay "$work/$scenario.model" --formula model \
		-o "snapshot=file://$work/$scenario.again"
	expect "$scenario: a replay gives the same model" cmp "$work/$scenario.model" "$work/$scenario.again"
	echo "$scenario $cgroups $before $*" >>"$work/scenarios"
	gzip -1 "$work/$scenario.truth" "$work/$scenario.model" "$work/$scenario.share"
	keep "$work/$scenario.truth.gz" "$work/$scenario.model.gz" "$work/$scenario.share.gz" "$work/scenarios"
	rmdir /sys/fs/cgroup/"$scenario"/p* "/sys/fs/cgroup/$scenario"
}

begin_attribution() {
	load simpmu counters=8 || fail simpmu "cannot be loaded"
	load simrapl || fail simrapl "cannot be loaded"
}
