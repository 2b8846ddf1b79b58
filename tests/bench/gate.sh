#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gate.sh BUILD: trials of the gate of joulectl run on this machine, with two busy neighbours. A command against itself:
# how often is a change told that is not there? Against a command that does CHANGE percent more: how often is it found? The
# figure is CPU time unless FIGURE names another (instructions, where the machine counts them).
B=${1:-build} TRIALS=${TRIALS:-100} CHANGE=${CHANGE:-2} ROUNDS=${ROUNDS:-20} WORK=${WORK:-30000} FIGURE=${FIGURE:-cpu} NEIGHBOURS=${NEIGHBOURS:-2}
work=$(mktemp -d) && mkdir "$work/state" || exit 1
pids=
trap 'kill $pids 2>/dev/null; wait; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
"$B/jouled" --socket "$work/s" --state-dir "$work/state" -o null: >"$work/log" 2>&1 &
pids=$!
while [ ! -S "$work/s" ]; do kill -0 $pids || { cat "$work/log" >&2; exit 1; }; sleep 0.1; done
i=0
while [ $i -lt "$NEIGHBOURS" ]; do
	sh -c 'while :; do :; done' &
	pids="$pids $!"
	i=$((i + 1))
done

# trials NAME LOOPS: a line with the verdicts of TRIALS trials against WORK loops.
trials() {
	: >"$work/verdicts"
	i=0
	while [ $i -lt "$TRIALS" ]; do
		"$B/joulectl" run --socket "$work/s" "i=$2; while [ \$i -gt 0 ]; do i=\$((i-1)); done" --base-cmd "i=$WORK; while [ \$i -gt 0 ]; do i=\$((i-1)); done" \
			--fail "$CHANGE%" -r "$ROUNDS" --figure "$FIGURE" --json -o "$work/json" 2>"$work/err"
		[ $? -le 2 ] || { cat "$work/err" >&2; exit 1; }
		python3 -c 'import json, sys; d = json.loads(open(sys.argv[1]).read().splitlines()[-1]); print(d["rounds"], d["verdict"]["verdict"])' "$work/json" >>"$work/verdicts"
		i=$((i + 1))
	done
	sort -n "$work/verdicts" | awk -v name="$1" '{ rounds[NR] = $1; $1 = ""; n[$0]++ }
		END { printf "| %s | %d | %d | %d | %d | %d | %d |\n", name, NR, n[" worse"], n[" better"], n[" same"], n[" cannot tell"], rounds[int((NR + 1) / 2)] }'
}

printf '| command beside %s busy neighbours, by %s | trials | worse | better | same | cannot tell | rounds, median |\n|---|---|---|---|---|---|---|\n' "$NEIGHBOURS" "$FIGURE"
trials "against itself" "$WORK"
trials "$CHANGE % more work" $((WORK * (1000 + 10 * CHANGE) / 1000))
trials "$((10 * CHANGE)) % more work" $((WORK * (100 + 10 * CHANGE) / 100))
