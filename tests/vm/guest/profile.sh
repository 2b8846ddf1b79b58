# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: Apache-2.0
# Sourced by the profile cases, after lib.sh and energy.sh: programs of eight functions with mixes of their own (mixes.c),
# profiled by joulectl with the prices of formulas model and share; judged on the host (tests/vm/profile.py) by the truth
# per function, and by the ledger.

# begin_profiles SECONDS [SIMPMU-PARAMETER...]: agents with both formulas, which see the machine idle for a while, as every
# machine is now and then, and then learn from the same programs, so long. An agent that never saw it idle can hardly tell the
# power that is always drawn from the price of CPU time (docs/profile.md has what that costs).
begin_profiles() {
	learn=$1
	shift
	load simpmu counters=64 "$@" || fail simpmu "cannot be loaded"
	load simrapl busy_mw=1500 cycle_pj=300 instruction_pj=400 reference_pj=2000 miss_pj=20000 || fail simrapl "cannot be loaded"
	for formula in model share; do
		start $formula --formula $formula -i 500ms --socket "$work/$formula.sock" -o null:
		wait_until 200 test -S "$work/$formula.sock" || fail $formula "no socket: $(said $formula)"
	done
	sleep 10
	# perf's controller comes to cgroups with the first that is asked for; systemd does so at every boot
	echo +pids >/sys/fs/cgroup/cgroup.subtree_control
	mkdir /sys/fs/cgroup/learn
	sh -c 'echo $$ >/sys/fs/cgroup/learn/cgroup.procs; /tests/mixes 11300 5 x & exec /tests/mixes 3000 17 y'
	[ "$learn" -lt 20 ] || sh -c 'echo $$ >/sys/fs/cgroup/learn/cgroup.procs; /tests/mixes 11300 $1 x & exec /tests/mixes 3000 $2 y' sh $((learn / 2)) $((learn * 5 / 3))
}

# profiled SCENARIO FORMULA TAGS COMMAND...: what its functions used, and what joulectl says of them.
profiled() {
	scenario=$1 formula=$2 tags=$3
	shift 3
	cat /proc/simpmu_names >"$work/$scenario.before"
	expect "$scenario: profiled" /tests/joulectl profile --socket "$work/$formula.sock" -o "$work/$scenario.pb.gz" -- "$@"
	cat /proc/simpmu_names >"$work/$scenario.after"
	echo "$scenario $formula $tags" >>"$work/scenarios"
	keep "$work/$scenario.before" "$work/$scenario.after" "$work/$scenario.pb.gz" "$work/scenarios"
}

# pair TAGS BLOCK-ROUNDS SPREAD-ROUNDS: two programs at once.
pair() {
	echo "/tests/mixes 11300 $2 $(echo "$1" | cut -c1) & /tests/mixes 3000 $3 $(echo "$1" | cut -c2); wait" >"$work/pair.sh"
}

# What the agent itself keeps, against its ledger, in every domain.
profiled_always() {
	stacks_close model
	keep "$work/stacks.state/profile" "$work/stacks.ledger"
}
