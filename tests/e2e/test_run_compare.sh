#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# joulectl run --vs: rounds, order, the user's own commands around them, input, and the ratio.
. tests/e2e/lib.sh
need_root
JOULECTL=${JOULECTL:-$B/joulectl}
unset JOULED_SOCKET
sock=$work/jouled.sock
export TMPDIR="$work"

# measure NAME ARGUMENT...: stdout, stderr, figures in $work/NAME.{out,err,json}, $status.
measure() {
	measured=$1
	shift
	timeout 300 "$JOULECTL" run --socket "$sock" --json -o "$work/$measured.json" "$@" >"$work/$measured.out" 2>"$work/$measured.err"
	status=$?
}

check() {
	name=$1
	shift
	if "$@" >"$work/check.out" 2>&1; then
		ok "$name"
	else
		fail "$name" "$(tail -n 1 "$work/check.out" | head -c 300) $(head -c 900 "$work/$measured.err" | tr '\n' '|')"
	fi
}

expect_status() {
	if [ "$status" = "$2" ]; then
		ok "$1"
	else
		fail "$1" "exit status $status instead of $2: $(head -c 900 "$work/$measured.err" | tr '\n' '|')"
	fi
}

has() {
	check "$1" python3 $here/run_verb.py has "$work/$measured.json" "$2"
}

printf 'weight: time\nrapl: none\nevents: { core: [TASK_CLOCK], msr: [] }\nestimate-idle-watts: 1.5\nestimate-max-watts: 8\n' >"$work/config.yaml"
start agent -c "$work/config.yaml" --socket "$sock" -o null:
wait_until 100 listens "$sock" || fail agent "no socket: $(said agent)"

# One runs the other's work eight times: their ratio is told, and holds for energy and CPU time alike.
short='i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'
long='i=0; while [ $i -lt 160000 ]; do i=$((i+1)); done'
measure ratio "$short" --vs "$long" -r 6 --seed 5 -w 1 --setup "echo setup >>$work/log" --prepare "echo \$JOULED_SIDE >>$work/log" \
	--cleanup "echo cleanup >>$work/log"
expect_status ratio 0
check ratio-figures python3 $here/run_verb.py comparison "$work/ratio.json" 2 6
has ratio-found 'd["comparisons"][0]["low"] > 1 and 4 < d["comparisons"][0]["ratio"] < 16 and d["comparisons"][0]["quality"] == "estimated"'
check ratio-shell-said grep -q "runs through /bin/sh" "$work/ratio.err"
check hooks-order awk 'NR == 1 && $0 != "setup" { exit 1 } { n[$0]++; last = $0 } END { exit n["A"] != 7 || n["B"] != 7 || n["setup"] != 1 ||
	n["cleanup"] != 1 || last != "cleanup" }' "$work/log"
measure again "$short" --vs "$long" --repeat=6 --seed=5
check seed-repeats-order python3 $here/run_verb.py same_order "$work/ratio.json" "$work/again.json"
measure three true --vs true --vs 'exit 6' -r 3 --input "$work/config.yaml"
expect_status three 6
check three-figures python3 $here/run_verb.py comparison "$work/three.json" 3 3
has three-statuses '[s["exit_status"] for s in d["sides"]] == [0, 0, 6] and d["input"].endswith("config.yaml")'

# Forms, and no line of progress where stderr is no terminal.
"$JOULECTL" run --socket "$sock" -r 3 'true;' --vs 'true; true' >"$work/text.out" 2>"$work/text"
measured=text
check text-answer grep -q '^ B uses [0-9.]* x ([0-9.]* to [0-9.]*) the energy of A (estimated)\.' "$work/text"
check text-seed grep -q 'rounds in random order (seed [0-9]*)\. Input of every run: /dev/null\.' "$work/text"
check no-progress-on-a-pipe sh -c "! grep -q \"\$(printf '\\r')\" $work/text"
check progress-on-a-terminal python3 $here/run_verb.py progress "$JOULECTL" run --socket "$sock" -r 3 'true;' --vs 'true; true'
"$JOULECTL" run --socket "$sock" --csv -o - -r 2 true --vs 'true;' >"$work/csv" 2>"$work/csv.err"
check csv awk -F, 'NR == 1 { n = NF; if ($1 $2 $3 != "sideorderrun") exit 1 } NF != n { exit 1 } NR > 1 { side[$1]++; order[$2]++ }
	END { exit NR != 5 || side["A"] != 2 || side["B"] != 2 || length(order) != 4 }' "$work/csv"
"$JOULECTL" run --socket "$sock" --markdown -o - -r 2 'true | true' --vs 'true;' >"$work/markdown" 2>"$work/markdown.err"
check markdown grep -q '^| A | `true \\| true` | 2 |' "$work/markdown"

"$JOULECTL" run --socket "$sock" --plot "$work/plot.svg" -r 4 'true;' --vs true >"$work/plot.out" 2>"$work/plot.err"
check plot python3 -c "import sys, xml.etree.ElementTree as e; n = len(list(e.parse(sys.argv[1]).iter('{http://www.w3.org/2000/svg}path'))); assert n == 10, n" "$work/plot.svg"

# One run of six works twenty times as much while a neighbour spins: it is named, and the neighbour. Two runs in fewer are not judged.
make_cgroup neighbour
spin "$cgroup"
echo 'echo >>"$1/many"; n=20000; [ $(wc -l <"$1/many") != 3 ] || n=400000; while [ $n -gt 0 ]; do n=$((n-1)); done' >"$work/uneven.sh"
measure outlier -r 6 sh "$work/uneven.sh" "$work"
has outlier-json '[o for o in d["outliers"] if o["run"] == 3 and o["of"] == "energy_total_uj" and o["value"] > 3 * o["median"] and
	any(b["name"].endswith("/jouled-e2e-'$$'-neighbour") and b["energy_uj"] > 0 and b["cpu_ns"] > 0 for b in o["beside"])]'
rm "$work/many"
measured=outlier-text
"$JOULECTL" run --socket "$sock" -r 6 sh "$work/uneven.sh" "$work" 2>"$work/$measured.err"
check outlier-text grep -q "^ Run 3 lies apart: energy [0-9.]* [mu]*J, median [0-9.]* [mu]*J\. Beside it ran .*-neighbour ([0-9.]* [mu]*s of CPU, [0-9.]* [mu]*J)" "$work/$measured.err"
kill "$spinner"
measure few -r 4 true
has outlier-needs-five 'd["outliers"] == []'

# Counters of a private agent.
timeout 300 "$JOULECTL" run -e TASK_CLOCK --json -o "$work/events.json" true >"$work/events.out" 2>"$work/events.err"
measured=events
has events 'list(d["counters"]) == ["TASK_CLOCK"] and d["agent"] == "private"'
check events-said grep -q -e '--events is given; starting a private agent' "$work/events.err"
timeout 300 "$JOULECTL" run -e 'NO_SUCH"EVENT' true >"$work/unknown.out" 2>"$work/unknown.err"
status=$?
measured=unknown
expect_status events-unknown 125
check events-unknown-said grep -q 'private agent: .*NO_SUCH"EVENT" is not valid; expected an event name' "$work/unknown.err"

# Input: the same bytes for every run, or none.
# shellcheck disable=SC2016 # of the command's shell
printf 'a line' | "$JOULECTL" run --socket "$sock" -r 2 --input - --json -o "$work/input.json" 'wc -c' >"$work/input.out" 2>"$work/input.err"
measured=input
check input-read-once test "$(sort -u "$work/input.out" | tr -d ' \n')$(wc -l <"$work/input.out")" = 62
echo lost | "$JOULECTL" run --socket "$sock" -r 2 'wc -c' >"$work/empty.out" 2>"$work/empty.err"
check input-is-empty test "$(sort -u "$work/empty.out" | tr -d ' \n')" = 0
echo kept | "$JOULECTL" run --socket "$sock" cat >"$work/kept.out" 2>"$work/kept.err"
check input-of-one-run-is-ours grep -qx kept "$work/kept.out"

# Runs end when the interval is narrow enough, or at the bound.
measure wide 'sleep 0.01' --until 100% -r 50
has until-reached '5 <= len(d["runs"]) < 50'
measure narrow 'sleep 0.01' --until 0.01% -r 7
has until-bounded 'len(d["runs"]) == 7'

measure prepare-fails -r 3 --prepare "echo \$JOULED_SIDE >>$work/tries; [ \$(wc -l <$work/tries) -lt 2 ]" --cleanup "echo >$work/cleaned" true
expect_status prepare-fails 125
check prepare-fails-said grep -q 'error: run: --prepare: .*: exit status 1; ' "$work/prepare-fails.err"
check prepare-fails-cleaned test -e "$work/cleaned"
has prepare-fails-first-run-kept '"wall_ns" in d and "runs" not in d'
# A signal in the middle of a round: what ran is told, and no further run begins.
"$JOULECTL" run --socket "$sock" --json -o "$work/stopped.json" -r 9 --seed 1 --cleanup "echo >$work/stopped.cleaned" "echo ready >>$work/ready; sleep 0.1" \
	--vs "echo ready >>$work/ready; [ \$(wc -l <$work/ready) -lt 4 ] || exec sleep 100" >"$work/stopped.out" 2>"$work/stopped.err" &
runner=$!
agents="$agents $runner"
wait_until 100 lines_at_least 4 "$work/ready"
kill -TERM $runner
wait $runner
measured=stopped
has stopped-figures 'd["rounds"] in (1, 2, 3) and all(d["rounds"] <= len(s["runs"]) <= d["rounds"] + 1 for s in d["sides"]) and d["comparisons"][0]["ratio"] > 0'
check stopped-cleaned test -e "$work/stopped.cleaned"
measure missing true --vs ./no/such/program -r 3
expect_status missing 127
check missing-said grep -q 'no/such/program: No such file' "$work/missing.err"
finish
