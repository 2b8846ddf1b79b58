#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every built test in order and ends with "N passed, N failed, N skipped" on a line of its own.
# run.sh [SECTION...]: lint unit kernel e2e fuzz golden cross deploy (default: these, and with GUESTS=1 vm and vm_deploy). B is
# the build folder.
# A program passes by its exit status and its own "ok" lines; it names what it cannot do here by
# "SKIP name: reason". STRICT_SKIPS=1: what is skipped must be exactly what tests/skips.txt lists.
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
export B
logs=$B/test-logs
mkdir -p "$logs"
: >"$logs/skipped"
passed=0 failed=0
start=$(date +%s)

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

# run NAME COMMAND...: one program, its output kept in the log and shown only when it fails.
run() {
	name=$1
	log=$logs/$(printf '%s' "$name" | tr '/ ' '--').log
	shift
	t0=$(date +%s%N)
	timeout -k 10 "${TEST_TIMEOUT:-300}" "$@" >"$log" 2>&1 </dev/null
	rc=$?
	ms=$((($(date +%s%N) - t0) / 1000000))
	# shellcheck disable=SC2046 # two numbers
	set -- $(count "$log")
	sed -n 's/^SKIP //p' "$log" >"$logs/now"
	cat "$logs/now" >>"$logs/skipped"
	bad=$2
	why="exit status $rc"
	[ $rc -eq 124 ] && why="no end within ${TEST_TIMEOUT:-300} s"
	[ $rc -ne 0 ] && [ "$bad" -eq 0 ] && bad=1
	if [ $rc -eq 0 ] && [ "$1" -eq 0 ] && [ "$bad" -eq 0 ] && [ ! -s "$logs/now" ]; then
		bad=1
		why="it ran no test"
	fi
	passed=$((passed + $1))
	failed=$((failed + bad))
	if [ "$bad" -ne 0 ]; then
		echo "FAIL $name ($1 ok, $bad failed, $ms ms): $why"
		grep -nE '^FAIL |\[  FAILED  \]|ERROR: |runtime error|: error: |^[^ ]+:[0-9]+: ' "$log" | head -n 20 | sed 's/^/    /'
		echo "    ... $log"
	else
		echo "ok   $name ($1, $ms ms)"
	fi
}

section_lint() {
	run lint/self-test sh tests/lint/selftest.sh
	run lint/tree sh -c 'sh tests/lint/lint.sh && echo "ok lint"'
}

section_unit() {
	for t in "$B"/unit/test_*; do
		[ -x "$t" ] && run "unit/${t##*/}" "$t"
	done
}

# The same programs twice: as shipped, and with the sanitizers in. They mount hierarchies and take CPUs
# offline, so one run at a time on a machine.
section_kernel() {
	exec 9>"${TMPDIR:-/tmp}/jouled-kernel-tests.lock"
	flock 9
	for t in "$B"/kernel/test_* "$B"/kernel-san/test_*; do
		[ -x "$t" ] && run "${t#"$B"/}" "$t"
	done
	exec 9>&-
}

# Once more with the sanitizers where no time is compared.
section_e2e() {
	for t in tests/e2e/test_*.sh; do
		[ -f "$t" ] && run "e2e/$(basename "$t" .sh)" sh "$t"
	done
	[ -x "$B/jouled-san" ] || return 0
	for t in run inputs doctor replay life socket; do
		run "e2e-san/test_$t" env JOULED="$B/jouled-san" sh "tests/e2e/test_$t.sh"
	done
	run e2e-san/test_decode env JOULECTL="$B/joulectl-san" sh tests/e2e/test_decode.sh
	for t in report run_verb; do
		run "e2e-san/test_$t" env JOULED="$B/jouled-san" JOULECTL="$B/joulectl-san" sh "tests/e2e/test_$t.sh"
	done
}

section_fuzz() {
	for t in "$B"/fuzz/fuzz_*; do
		[ -x "$t" ] && run "fuzz/${t##*/}" sh tests/fuzz/fuzz.sh "$t" "${FUZZ_SECONDS:-4}"
	done
}

section_cross() {
	run cross/arm64 sh tests/cross/arm64.sh
}

section_golden() {
	for t in tests/golden/test_*.sh tests/golden/test_*.py; do
		[ -f "$t" ] || continue
		case $t in
		*.py) run "golden/$(basename "$t")" python3 "$t" ;;
		*) run "golden/$(basename "$t")" sh "$t" ;;
		esac
	done
}

# Podman's store is the machine's: one run at a time.
section_deploy() {
	exec 9>"${TMPDIR:-/tmp}/jouled-deploy-tests.lock"
	flock 9
	for t in tests/deploy/test_*.sh; do
		[ -f "$t" ] && run "deploy/$(basename "$t" .sh)" sh "$t"
	done
	exec 9>&-
}

# One guest is one test; VM names kernels or guests, "6.1 6.12/triggers".
section_vm() {
	# the other kernels come while the first one's guests run
	sed '/^#/d; s/ .*//' tests/vm/kernels.table | while read -r kernel; do
		nice -n 19 sh tests/vm/fetch.sh "$kernel"
	done >"$logs/vm-fetch.log" 2>&1 &
	for guest in $(sh tests/vm/run.sh --list); do
		[ -z "${VM:-}" ] || case " $VM " in
		*" $guest "* | *" ${guest%%/*} "*) ;;
		*) continue ;;
		esac
		TEST_TIMEOUT=900 run "vm/$guest" sh tests/vm/run.sh "${guest%%/*}" "${guest#*/}"
	done
}

# Guests that install, contain and restrict it: beside the twelve minutes of the others.
section_vm_deploy() {
	JOULED_VM_CASES=tests/vm/deploy
	export JOULED_VM_CASES
	section_vm
	unset JOULED_VM_CASES
}

# Names only: a reason may carry a figure of the machine. Kernels that the archive has are not skipped.
compare_skips() {
	sed 's/:.*//' "$logs/skipped" | sort -u >"$logs/skipped.names"
	sed -n 's/^\([^#:][^:]*\):.*/\1/p' tests/skips.txt | sort -u >"$logs/skips.listed"
	comm -23 "$logs/skipped.names" "$logs/skips.listed" | sed 's/^/skipped but not in tests\/skips.txt: /'
	[ -z "$part" ] && comm -13 "$logs/skipped.names" "$logs/skips.listed" | grep -v '^vm/' | sed 's/^/in tests\/skips.txt but not skipped: /'
	return 0
}

part=
if [ $# -eq 0 ]; then
	set -- lint unit kernel e2e fuzz golden cross deploy
	[ "${GUESTS:-0}" = 1 ] && set -- "$@" vm vm_deploy
else
	part=yes
fi
for section in "$@"; do
	echo "== $section"
	case $section in
	lint | unit | kernel | e2e | fuzz | golden | cross | deploy | vm | vm_deploy) "section_$section" ;;
	*) echo "run.sh: no section $section" >&2 && exit 2 ;;
	esac
done

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
echo "$(($(date +%s) - start)) s in all"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
