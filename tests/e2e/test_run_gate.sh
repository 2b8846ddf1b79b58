#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The gate of joulectl run: verdicts, exit statuses, refusals by name, and the files for a pipeline.
. tests/e2e/lib.sh
need_root
JOULECTL=${JOULECTL:-$B/joulectl}
sock=$work/jouled.sock
JOULED_SOCKET=$sock
export TMPDIR="$work" JOULED_SOCKET JOULECTL

check() {
	name=$1
	shift
	if "$@" >"$work/check.out" 2>&1; then
		ok "$name"
	else
		fail "$name" "$(tail -n 1 "$work/check.out" | head -c 300) $(tail -n 1 "$work/$judged.err" | head -c 300)"
	fi
}

# judge NAME STATUS ARGUMENT...: figures in $work/NAME.json; the exit status is STATUS.
judge() {
	judged=$1 wanted=$2
	shift 2
	timeout 300 "$JOULECTL" run --json -o "$work/$judged.json" "$@" >"$work/$judged.out" 2>"$work/$judged.err"
	status=$?
	if [ $status -eq "$wanted" ]; then
		ok "$judged-status"
	else
		fail "$judged-status" "exit status $status instead of $wanted: $(head -c 300 "$work/$judged.err" | tr '\n' '|') $(grep -o '"verdict":.*' "$work/$judged.json")"
	fi
}

has() {
	check "$1" python3 $here/run_verb.py has "$work/$judged.json" "$2"
}

printf 'weight: time\nrapl: none\nevents: { core: [TASK_CLOCK], msr: [] }\nestimate-idle-watts: 1.5\nestimate-max-watts: 8\n' >"$work/config.yaml"
start agent -c "$work/config.yaml" --socket "$sock" -o null:
wait_until 100 listens "$sock" || fail agent "no socket: $(said agent)"

# Eight times the work is told from none on the busiest machine.
light='i=0; while [ $i -lt 4000 ]; do i=$((i+1)); done'
heavy='i=0; while [ $i -lt 32000 ]; do i=$((i+1)); done'
judge worse 1 "$heavy" --base-cmd "$light" --junit "$work/junit.xml" --badge "$work/badge.svg" --hyperfine "$work/hyperfine.json"
has worse-figures 'd["verdict"]["verdict"] == "worse" and 2 < d["verdict"]["ratio"] < 20 and d["verdict"]["low"] > 1 and 6 <= d["rounds"] == d["verdict"]["rounds"] < 40'
has worse-cautious '"estimated from CPU time" in d["verdict"]["caution"] and d["verdict"]["of"] == "energy"'
check worse-files python3 $here/run_verb.py files "$work" "$heavy"
judge better 0 "$light" --base-cmd "$heavy"
has better-figures 'd["verdict"]["verdict"] == "better" and d["verdict"]["high"] < 1'
# A limit that is wide enough for any machine's noise: the same command passes.
judge same 0 "$heavy" --base-cmd "$heavy" --fail 100% -r 300 --figure cpu
has same-figures 'd["verdict"]["verdict"] == "same" and d["verdict"]["of"] == "CPU time" and d["verdict"]["fail"] == 1'
judge few 2 "$light" --base-cmd "$light" -r 4 --save "$work/four.json"
has few-figures 'd["verdict"]["verdict"] == "cannot tell" and d["verdict"]["needed_rounds"] > 4 and d["rounds"] == 4'

# Against saved runs.
"$JOULECTL" run -r 30 --save "$work/base.json" "$heavy" >"$work/save.out" 2>"$work/save.err"
judge against 0 "$light" --against "$work/base.json" -r 100
has against-figures 'd["verdict"]["verdict"] == "better" and "another time" in d["verdict"]["caution"] and len(d["sides"]) == 1'
judge too-few 2 "$light" --against "$work/four.json"
has too-few-stops 'd["rounds"] == 1 and d["verdict"]["verdict"] == "cannot tell"'
judge other-figure 3 "$light" --against "$work/base.json" --figure time
has other-figure-named 'd["verdict"]["verdict"] == "refused" and d["verdict"]["reason"].startswith("figure differs: saved with \x27energy_total_uj\x27, now \x27wall_ns\x27") and d["rounds"] == 1'
sed 's/"machine":"[^"]*"/"machine":"another"/' "$work/base.json" >"$work/moved.json"
judge other-machine 3 "$light" --against "$work/moved.json"
has other-machine-named 'd["verdict"]["reason"].startswith("machine differs: saved with \x27another\x27")'
judge failing 3 "$light; exit 4" --base-cmd "$light"
has failing-named '"ended with status 4" in d["verdict"]["reason"]'

# The exit status of each run: the third fails.
"$JOULECTL" run --private -r 4 --hyperfine "$work/codes.json" -o "$work/codes.out" "echo >>$work/tries; test \$(wc -l <$work/tries) -ne 3" \
	2>"$work/codes.err"
check exit-codes python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))["results"][0]
assert r["exit_codes"] == [0, 0, 1, 0] and len(r["times"]) == 4, r' "$work/codes.json"

echo '{"format":"x"}' >"$work/broken.json"
for wrong in "125 --against $work/broken.json" "125 --against $work/none.json" '2 --fail 3%' '2 --fail x --base-cmd true' '2 --base-cmd true --vs true' \
	'2 --junit x' '2 --base-cmd true --until 2%' '125 --figure nope'; do
	# shellcheck disable=SC2086 # words
	set -- $wrong
	wanted=$1
	shift
	"$JOULECTL" run "$@" true >"$work/wrong.out" 2>"$work/wrong.err"
	judged=wrong status=$?
	check "wrong $*" test $status -eq "$wanted"
	check "wrong-said $*" grep -q 'error: run: .*; ' "$work/wrong.err"
done

# The script of the pipelines, and the variables that its templates give it.
judged=ci
COMMAND=$heavy BASE_COMMAND=$light OUT=$work/ci GITHUB_STEP_SUMMARY=$work/summary GITHUB_OUTPUT=$work/outputs sh deploy/ci/gate.sh >"$work/ci.out" 2>"$work/ci.err"
status=$?
check ci-worse test $status -eq 1
check ci-summary grep -q '^\*\*worse: it uses ' "$work/summary"
check ci-output grep -qx verdict=worse "$work/outputs"
check ci-files test -s "$work/ci/junit.xml" -a -s "$work/ci/badge.svg" -a -s "$work/ci/samples.json"
for choice in 'pass 0' 'fail 1'; do
	COMMAND=$light BASE_COMMAND=$light ROUNDS=2 CANNOT_TELL=${choice% *} OUT=$work/ci sh deploy/ci/gate.sh >"$work/ci.out" 2>"$work/ci.err"
	status=$?
	check "ci-cannot-tell-${choice% *}" test $status -eq "${choice#* }"
done
COMMAND=$light OUT=$work/ci sh deploy/ci/gate.sh >"$work/ci.out" 2>"$work/ci.err"
status=$?
check ci-no-base test $status -eq 125
# A wrong option has the status of cannot tell, but it is no verdict, whatever a run before has left.
COMMAND=$light BASE_COMMAND=$light FAIL=wrong OUT=$work/ci sh deploy/ci/gate.sh >"$work/ci.out" 2>"$work/ci.err"
status=$?
check ci-wrong-option test $status -eq 125
check ci-wrong-option-said grep -qx 'gate: not measured' "$work/ci.out"
for variable in COMMAND BASE_COMMAND BASELINE FAIL ROUNDS FIGURE PREPARE CANNOT_TELL OUT; do
	for template in deploy/ci/github/action.yml deploy/ci/gitlab/energy-gate.yml; do
		check "ci-$variable-${template%/*}" grep -q "^ *$variable: " $template
	done
done
finish
