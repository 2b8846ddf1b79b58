# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: Apache-2.0
# Sourced by the audit cases, after lib.sh and energy.sh.
CG=/sys/fs/cgroup

begin_audit() {
	simulate stop=0 busy_mw=1500 cycle_pj=0 instruction_pj=1000 hidden_pj=300
	echo 'idle-watts: { package: 4, core: 1, dram: 0.8 }' >"$work/audit.yaml"
	mkdir $CG/target $CG/own $CG/runtime $CG/empty
}

# An agent to audit. Its file of reports grows by 3 MB a minute, and the next one begins anew.
begin_audited() {
	begin agent -c "$work/audit.yaml" -i 200ms --idle own --socket "$work/sock" --state-dir "$work/state"
	wait_until 200 test -S "$work/sock" || fail agent "no socket: $(said agent)"
	! grep -q "no switch program" "$work/agent.out" || fail agent "no counters: $(said agent)"
}

# by_own_loads NAME ARGUMENT...: an audit with loads of its own; the result in $work/NAME.json, its process is $audit.
by_own_loads() {
	result=$1
	shift
	/tests/joulectl audit --socket "$work/sock" --json "$@" >"$work/$result.json" 2>"$work/$result.err" &
	audit=$!
	wait $audit || fail "$result: audit" "$(tail -n 1 "$work/$result.err")"
}

# charge_error LOAD: what that load of the last audit was charged, over what it drew, less 1.
charge_error() {
	path=$(awk -v p="/jouled-audit-$audit-[0-9]+/$1\$" '$NF ~ p { print $NF; exit }' /proc/simpmu)
	awk -v charged_uj="$(reported "$work/agent.json" "$path" package-0)" \
		-v true_nj=$(($(task_truth core_nj "$path") + $(task_truth uncore_nj "$path"))) \
		'BEGIN { if (!(charged_uj && true_nj)) exit 1; print charged_uj * 1000 / true_nj - 1 }'
}

# line FILE CGROUP DRAW FIELD: of the package's line in a JSON result.
line() {
	tr '{' '\n' <"$1" | awk -v c="\"cgroup\":\"$2\"" -v w="\"draw\":\"$3\"" -v f="\"$4\":" '
	index($0, c) && index($0, w) && index($0, "\"domain\":\"package-0\"") {
		at = index($0, f); if (!at) exit 1
		v = substr($0, at + length(f)); sub(/[,}].*/, "", v); print v; seen = 1 }
	END { exit !seen }'
}

# holds NAME FILE CGROUP DRAW TRUTH: the truth is within three times the interval, which one trial in a thousand misses by
# chance, and 15 points: in a guest without time of its host, energy and counters are read at different instants, and others work longer
# beside a load. tests/unit/test_audit.c and the soak ask for the interval itself.
holds() {
	low=$(line "$2" "$3" "$4" low) && high=$(line "$2" "$3" "$4" high) || {
		fail "$1" "no line of $3: $(cut -c 1-900 "$2")"
		return
	}
	echo "note $1: truth $5, interval $low to $high, $(line "$2" "$3" "$4" pairs) pairs"
	if awk -v l="$low" -v h="$high" -v t="$5" 'BEGIN { s = h - l + 0.15; exit !(l - s <= t && t <= h + s) }'; then
		ok "$1"
	else
		fail "$1" "truth $5 not near $low to $high: $(cut -c 1-900 "$2")"
	fi
}

# by_loads NAME TIME: an audit by its own loads, against the true errors of their charges.
by_loads() {
	by_own_loads "$1" -d "$2"
	for load in compute memory; do
		if truth=$(charge_error $load); then
			holds "$1: $load" "$work/$1.json" $load average "$truth"
		else
			fail "$1: $load" "it was charged nothing, or drew nothing"
		fi
	done
	contains "$1: both formulas are judged" "$work/$1.json" '"why":"share is off by [0-9.]+ %, model by [0-9.]+ %'
	find $CG -maxdepth 1 -name 'jouled-audit-*' >"$work/left"
	if [ -s "$work/left" ]; then fail "$1: nothing is left" "$(cat "$work/left")"; else ok "$1: nothing is left"; fi
}

memory_works() {
	grep -qs . $CG/jouled-audit-*/memory/cgroup.procs
}

# More than 5 rounds: of each it works for 0.8 s.
memory_worked() {
	[ "$(used_us $CG/jouled-audit-*/memory)" -gt 8000000 ]
}

# load_killed: a load without one of its processes is another load, so the audit ends, with what it has.
load_killed() {
	/tests/joulectl audit --socket "$work/sock" -d 120s >"$work/lost" 2>&1 &
	audit=$!
	expect "a load is killed late: rounds" wait_until 600 memory_worked
	# shellcheck disable=SC2046 # words
	kill -9 $(cat $CG/jouled-audit-*/memory/cgroup.procs)
	if wait $audit; then ok "a load is killed late"; else fail "a load is killed late" "$(tail -n 3 "$work/lost")"; fi
	contains "a load is killed late: it is said" "$work/lost" "a process of its load memory ended.*; the result is of the [0-9]* rounds before"
	contains "a load is killed late: the result" "$work/lost" ", ended early, seed"
	/tests/joulectl audit --socket "$work/sock" -d 60s >"$work/lost" 2>&1 &
	audit=$!
	expect "a load is killed: it works" wait_until 200 memory_works
	# shellcheck disable=SC2046 # words
	kill -9 $(cat $CG/jouled-audit-*/memory/cgroup.procs)
	if wait $audit; then fail "a load is killed" "exit status 0"; fi
	contains "a load is killed: it is said" "$work/lost" "a process of its load memory ended"
}

# refused NAME PATH WORDS
refused() {
	if [ "$1" = program ]; then
		/tests/simload -d $CG/runtime -c 1000 -b 1 containerd 1000000 &
		held=$!
		wait_until 50 grep -q containerd /proc/$held/comm
	fi
	(
		[ "$1" != own-session ] || echo 0 >$CG/own/cgroup.procs
		/tests/joulectl audit --socket "$work/sock" --cgroup "$2" -d 36s --duty 1% --freeze 30ms
	) >"$work/refused" 2>&1 && fail "refused: $1" "it was not"
	contains "refused: $1" "$work/refused" "$3"
	[ "$1" != program ] || kill $held
}

# by_freezing NAME TIME: a cgroup with energy that no counter shows, beside another without.
by_freezing() {
	/tests/simload -p 0 -d $CG/target ipc10m1h900-a 1000000 &
	loads=$!
	mkdir $CG/beside
	/tests/simload -p 1 -d $CG/beside ipc10m1-b 1000000 &
	loads="$loads $!"
	sleep 2
	charged=$(reported "$work/agent.json" /target package-0)
	true_nj=$(($(task_truth core_nj /target) + $(task_truth uncore_nj /target)))
	/tests/joulectl audit --socket "$work/sock" --cgroup /target -d "$2" --duty "${DUTY:-5%}" --freeze "${FREEZE:-40ms}" --json \
		>"$work/$1.json" 2>"$work/$1.err" || fail "$1: audit" "$(tail -n 1 "$work/$1.err")"
	charged=$(($(reported "$work/agent.json" /target package-0) - charged))
	true_nj=$(($(task_truth core_nj /target) + $(task_truth uncore_nj /target) - true_nj))
	holds "$1: frozen" "$work/$1.json" /target marginal \
		"$(awk -v c="$charged" -v t="$true_nj" 'BEGIN { print c * 1000 / t - 1 }')"
	if [ "$(line "$work/$1.json" /target marginal pairs)" -ge 5 ]; then ok "$1: freezes"; else fail "$1: freezes" "$(cut -c 1-400 "$work/$1.json")"; fi
	frozen_ns=$(tr ',' '\n' <"$work/$1.json" | sed -n 's/"frozen_ns"://p')
	duration_ns=$(tr ',' '\n' <"$work/$1.json" | sed -n 's/.*"duration_ns"://p')
	expect "$1: frozen at most 5 % of the time and one freeze" \
		test "$frozen_ns" -le $((duration_ns / 20 + 190000000))
}

killed_while_frozen() {
	/tests/joulectl audit --socket "$work/sock" --cgroup /target -d 300s --duty 5% --freeze 100ms >"$work/killed" 2>&1 &
	audit=$!
	for _ in $(seq 20000); do
		if grep -q "frozen 1" $CG/target/cgroup.events; then
			kill -9 $audit
			seen=1
			break
		fi
		[ -d /proc/$audit ] || break
	done
	[ -n "${seen:-}" ] || fail "killed: seen frozen" "$(cat "$work/killed")"
	wait $audit 2>/dev/null
	expect "killed while frozen: it is thawed" wait_until 50 grep -q "frozen 0" $CG/target/cgroup.events
	used=$(used_us $CG/target)
	expect "killed while frozen: it works on" wait_until 50 works_on "$used"
	expect "killed while frozen: no process is left" wait_until 50 no_joulectl
	# shellcheck disable=SC2086 # words
	kill $loads
}

works_on() {
	[ "$(used_us $CG/target)" -gt "$1" ]
}

no_joulectl() {
	! grep -lq '^joulectl$' /proc/[0-9]*/comm 2>/dev/null
}
