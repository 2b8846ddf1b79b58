#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every built test in order and ends with "N passed, N failed, N skipped" on a line of its own.
# run.sh [SECTION|TEST...]: unit kernel lint cross e2e fuzz golden deploy (default: these), vm, vm_deploy, or a test by its name,
# e2e/test_history. B is the build folder.
# A program passes by its exit status and its own "ok" lines; it names what it cannot do here by
# "SKIP name: reason". STRICT_SKIPS=1: what is skipped must be exactly what tests/skips.txt lists.
# SUM=later: this run prints no sum and ends with status 0. The next one, with SUM=both, prints the sum of both and judges both.
# With either, a test that failed is run once more (again).
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
export B
logs=$B/test-logs
mkdir -p "$logs"
sum=${SUM:-}
unset SUM
if [ "$sum" != both ] || [ ! -e "$logs/began" ]; then
	rm -f "$logs"/*.result "$logs"/*.skips "$logs"/*.failed "$logs"/*.unsteady "$logs"/*.first
	date +%s >"$logs/began"
fi
cpus=$(nproc)

# Counts of one log: "passed failed". cmocka lists a failure twice, so its own sum is taken; a test that
# printed SKIP is not a pass.
count() {
	awk '
	/^\[ RUN / { skipped = 0 }
	/^SKIP / { skipped = 1 }
	/^\[       OK \]/ { if (!skipped) ok++; skipped = 0 }
	/^ok / { ok++ }
	/^Ran [0-9]+ test/ { ran = $2 }
	/^OK/ { ok += ran; ran = 0 }
	/^FAILED \(/ { n = gsub(/[^0-9]+/, " "); split($0, part, " "); for (i in part) { bad += part[i]; ran -= part[i] }; ok += ran; ran = 0 }
	/^FAIL / { bad++ }
	/^ *[0-9]+ FAILED TEST\(S\)/ { bad += $1 }
	END { print ok + 0, bad + 0 }' "$1"
}

# run NAME COMMAND...: one program, its output kept in the log and shown only when it fails; what it brought in NAME.result.
run() {
	name=$1
	log=$logs/$(printf '%s' "$name" | tr '/ ' '--').log
	shift
	t0=$(date +%s%N)
	timeout -k 10 "${TEST_TIMEOUT:-1800}" "$@" >"$log" 2>&1 </dev/null 6>&-
	judge $?
}

# guarded NAME SOURCE COMMAND...: the same for a test that touches the machine (tests/guard.sh).
guarded() {
	name=$1
	log=$logs/$(printf '%s' "$name" | tr '/ ' '--').log
	shift
	t0=$(date +%s%N)
	sh tests/guard.sh "$@" >"$log" 2>&1 </dev/null 6>&-
	judge $?
}

judge() {
	rc=$1
	ms=$((($(date +%s%N) - t0) / 1000000))
	took=$(sed -n 's/^# guard: \([0-9]*\) ms$/\1/p' "$log" | tail -n 1)    # without the wait for other tests
	ms=${took:-$ms}
	# shellcheck disable=SC2046 # two numbers
	set -- $(count "$log")
	sed -n 's/^SKIP //p' "$log" >"${log%.log}.skips"
	bad=$2
	why="exit status $rc"
	[ $rc -eq 124 ] && why="no end within ${TEST_TIMEOUT:-1800} s"
	[ $rc -ne 0 ] && [ "$bad" -eq 0 ] && bad=1
	if [ $rc -eq 0 ] && [ "$1" -eq 0 ] && [ "$bad" -eq 0 ] && [ ! -s "${log%.log}.skips" ]; then
		bad=1
		why="it ran no test"
	fi
	# one write, as another test may print beside it
	rm -f "${log%.log}.failed"
	if [ "$bad" -ne 0 ]; then
		printf '%s\n' "FAIL $name ($1 ok, $bad failed, $ms ms): $why
$(grep -nE '^FAIL |\[  (FAILED|ERROR ) |ERROR: |runtime error|: error: |^[^ ]+:[0-9]+: ' "$log" | head -n 20 | sed 's/^/    /')
    ... $log" | tee "${log%.log}.failed"
	else
		echo "ok   $name ($1, $ms ms)"
	fi
	echo "$1 $bad" >"${log%.log}.result"
}

# at_once N: from now on so many of what runs beside each other; JOBS overrules it.
at_once() {
	fifo=$logs/.jobs
	rm -f "$fifo"
	mkfifo "$fifo"
	exec 6<>"$fifo"
	seq "${JOBS:-$1}" >&6
}

# beside COMMAND...: in the background; settle waits for all. Those that want to be alone wait for it.
beside() {
	read -r turn <&6
	{
		"$@"
		echo "$turn" >&6
	} &
}

settle() {
	wait
}

# No time matters to it: it takes what the next sections leave, and on a busy machine that is little for long.
PATIENT=3600
section_lint() {
	{
		TEST_TIMEOUT=$PATIENT
		run lint/runner sh tests/lint/runner.sh
		run lint/self-test nice -n 19 sh tests/lint/selftest.sh
		run lint/tree nice -n 19 sh -c 'sh tests/lint/lint.sh && echo "ok lint"'
	} &
}

# Many of them wait for most of their time. What takes long begins first.
section_unit() {
	at_once $((cpus * 3))
	begun=
	for t in "$B"/unit/test_model "$B"/unit/test_ledger_property "$B"/unit/test_audit "$B"/unit/test_* "$B"/*-unit/test_*; do
		case " $begun " in *" $t "*) continue ;; esac
		begun="$begun $t"
		[ -x "$t" ] && beside one "${t#"$B"/}"
	done
	settle
}

# one NAME: a test by its name, for those that are guarded. kernel-san and e2e-san: with the sanitizers in.
one() {
	of=${1#*/}
	case $1 in
	kernel/* | kernel-san/*) guarded "$1" "tests/kernel/$of.c" "$B/$1" ;;
	e2e/*) guarded "$1" "tests/$1.sh" sh "tests/$1.sh" ;;
	e2e-san/*) guarded "$1" "tests/e2e/$of.sh" env JOULED="$B/jouled-san" JOULECTL="$B/joulectl-san" sh "tests/e2e/$of.sh" ;;
	golden/*.py) guarded "$1" "tests/$1" python3 "tests/$1" ;;
	golden/* | deploy/*) guarded "$1" "tests/$1.sh" sh "tests/$1.sh" ;;
	unit/* | san-unit/*) run "$1" "$B/$1" ;;
	# its shadow of the memory lies at fixed addresses; a report is exit status 66
	tsan-unit/*) run "$1" setarch -R "$B/$1" ;;
	*) echo "run.sh: no test $1" >&2 && return 2 ;;
	esac
}

# The same programs twice: as shipped, and with the sanitizers in.
section_kernel() {
	for t in "$B"/kernel/test_* "$B"/kernel-san/test_*; do
		[ -x "$t" ] && one "${t#"$B"/}"
	done
}

# Once more with the sanitizers where no time is compared. What takes long begins first.
section_e2e() {
	at_once $((cpus + 1))
	for t in record fleet metrics figures; do
		beside one e2e/test_$t
	done
	for t in tests/e2e/test_*.sh; do
		t=$(basename "$t" .sh)
		case $t in test_record | test_fleet | test_metrics | test_figures) ;; *) beside one "e2e/$t" ;; esac
	done
	[ ! -x "$B/jouled-san" ] || for t in run inputs doctor replay life socket decode report run_verb; do
		beside one e2e-san/test_$t
	done
	settle
}

section_fuzz() {
	at_once "$cpus"
	for t in "$B"/fuzz/fuzz_*; do
		[ -x "$t" ] && beside run "fuzz/${t##*/}" sh tests/fuzz/fuzz.sh "$t" "${FUZZ_SECONDS:-4}"
	done
	settle
}

# The same.
section_cross() {
	TEST_TIMEOUT=$PATIENT run cross/arm64 nice -n 19 sh tests/cross/arm64.sh &
}

section_golden() {
	at_once "$cpus"
	for t in tests/golden/test_*.sh tests/golden/test_*.py; do
		[ -f "$t" ] || continue
		t=${t#tests/}
		beside one "${t%.sh}"
	done
	settle
}

section_deploy() {
	for t in tests/deploy/test_*.sh; do
		[ -f "$t" ] && one "deploy/$(basename "$t" .sh)"
	done
}

guest() {
	TEST_TIMEOUT=1500 run "vm/$1" sh tests/vm/run.sh "${1%%/*}" "${1#*/}"
}

# One guest is one test; VM names kernels or guests, "6.1 6.12/triggers".
section_vm() {
	# the other kernels come while the first one's guests run
	sed '/^#/d; s/ .*//' tests/vm/kernels.table | while read -r kernel; do
		nice -n 19 sh tests/vm/fetch.sh "$kernel"
	done >"$logs/vm-fetch.log" 2>&1 &
	pairs=
	for guest in $(sh tests/vm/run.sh --list); do
		[ -z "${VM:-}" ] || case " $VM " in
		*" $guest "* | *" ${guest%%/*} "*) ;;
		*) continue ;;
		esac
		if grep -q '^# threads: single' "${JOULED_VM_CASES:-tests/vm/cases}/${guest#*/}.sh"; then
			pairs="$guest $pairs" # the newest kernel takes longest
		else
			guest "$guest"
		fi
	done
	at_once "$cpus" # each uses one CPU of this machine
	for guest in $pairs; do
		beside guest "$guest"
	done
	settle
}

# Guests that install, contain and restrict it: beside the twelve minutes of the others.
section_vm_deploy() {
	JOULED_VM_CASES=tests/vm/deploy
	export JOULED_VM_CASES
	section_vm
	unset JOULED_VM_CASES
}

# Once more, alone, what failed: a machine that others share may stand still for seconds. What passes then is passed, but it is named
# at the end, and more than UNSTEADY (2) of them are a failure. No second try: a sanitizer's report, a crash, fuzz, lint and cross.
again() {
	for failed in "$logs"/*.failed; do
		[ -e "$failed" ] || return 0
		read -r _ name _ <"$failed"
		log=${failed%.failed}.log
		case $name in lint/* | cross/* | fuzz/*) continue ;; esac
		[ ! -e "${failed%.failed}.first" ] || continue
		! grep -qE 'ERROR: |runtime error:|WARNING: ThreadSanitizer|Segmentation fault|core dumped' "$log" || continue
		! grep -q 'exit status 13[24569]$' "$failed" || continue # by SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV
		cp "$log" "${failed%.failed}.first"
		cp "$failed" "${failed%.failed}.unsteady"
		echo "note $name: run once more"
		case $name in
		vm/*) (
			[ -e "tests/vm/cases/${name##*/}.sh" ] || export JOULED_VM_CASES=tests/vm/deploy
			guest "${name#vm/}"
		) ;;
		*) one "$name" ;;
		esac
		[ ! -e "$failed" ] || rm -f "${failed%.failed}.unsteady"
	done
}

# Names only: a reason may carry a figure of the machine. Kernels that the archive has are not skipped.
compare_skips() {
	sed 's/:.*//' "$logs/skipped" | sort -u >"$logs/skipped.names"
	sed -n 's/^\([^#:][^:]*\):.*/\1/p' tests/skips.txt | sort -u >"$logs/skips.listed"
	comm -23 "$logs/skipped.names" "$logs/skips.listed" | sed 's/^/skipped but not in tests\/skips.txt: /'
	[ -z "$part" ] && comm -13 "$logs/skipped.names" "$logs/skips.listed" | grep -v -e '^vm/' -e '^fleet-' -e '-sid$' | sed 's/^/in tests\/skips.txt but not skipped: /'
	return 0
}

part=
if [ $# -eq 0 ]; then
	set -- unit kernel lint cross e2e fuzz golden deploy
elif [ "$sum" != both ]; then
	part=yes
fi
for section in "$@"; do
	case $section in */*) ;; *) echo "== $section" ;; esac
	case $section in
	lint | unit | kernel | e2e | fuzz | golden | cross | deploy | vm | vm_deploy) "section_$section" ;;
	*/*) one "$section" || exit 2 ;;
	*) echo "run.sh: no section $section" >&2 && exit 2 ;;
	esac
done
settle
[ -z "$sum" ] || again

seconds=$(($(date +%s) - $(cat "$logs/began")))
if [ "$sum" = later ]; then
	echo "$seconds s so far"
	exit 0
fi
cat "$logs"/*.skips >"$logs/skipped" 2>/dev/null
passed=$(cat "$logs"/*.result 2>/dev/null | awk '{ n += $1 } END { print n + 0 }')
failed=$(cat "$logs"/*.result 2>/dev/null | awk '{ n += $2 } END { print n + 0 }')
skipped=$(sort -u "$logs/skipped" | grep -c .)
[ "$skipped" -eq 0 ] || sort -u "$logs/skipped" | sed 's/^/SKIP /'
difference=$(compare_skips)
if [ -n "$difference" ]; then
	printf '%s\n' "$difference"
	if [ "${STRICT_SKIPS:-0}" = 1 ]; then
		echo "FAIL skips: the list differs; mend the test or tests/skips.txt"
		failed=$((failed + 1))
	fi
fi
cat "$logs"/*.failed 2>/dev/null
unsteady=0
for first in "$logs"/*.unsteady; do
	[ -e "$first" ] || continue
	unsteady=$((unsteady + 1))
	sed '1s/^FAIL/UNSTEADY, passed when it was run once more:/; $s/log$/first/' "$first"
done
if [ $unsteady -gt "${UNSTEADY:-2}" ]; then
	echo "FAIL unsteady: $unsteady tests passed only when they were run once more; at most ${UNSTEADY:-2} may"
	failed=$((failed + 1))
fi
echo "$seconds s in all"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
