#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does tests/run.sh judge as it says? Programs that pass and fail are run as unit tests, in a build folder of their own.
set -u
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
fails=0

# program NAME BODY: a test; `first` succeeds when it is run for the first time
program() {
	printf '#!/bin/sh\nfirst() { [ ! -e "%s" ] && : >"%s"; }\n%s\n' "$work/ran-$1" "$work/ran-$1" "$2" >"$work/b/unit/test_$1"
	chmod +x "$work/b/unit/test_$1"
}

fresh() {
	rm -rf "$work/b" "$work"/ran-*
	mkdir -p "$work/b/unit"
	program steady 'echo "ok a"'
}

# judge SUM...: runs them, one run per SUM; status and output of the last one
judge() {
	for sum in "$@"; do
		B=$work/b SUM=$sum STRICT_SKIPS=0 UNSTEADY=2 sh tests/run.sh unit >"$work/out" 2>&1 </dev/null
		rc=$?
	done
}

# expect NAME STATUS LINE...: lines of the output, each a whole one
expect() {
	name=$1 status=$2 wrong=
	shift 2
	[ "$rc" -eq "$status" ] || wrong="status $rc"
	for line in "$@"; do
		grep -qxF -- "$line" "$work/out" || wrong="$wrong; no line '$line'"
	done
	if [ -z "$wrong" ]; then
		echo "ok runner-$name"
	else
		echo "FAIL runner-$name: $wrong: $(tail -n 3 "$work/out" | tr '\n' ' ')"
		fails=$((fails + 1))
	fi
}

fresh
judge ''
expect passes 0 '1 passed, 0 failed, 0 skipped'
program broken 'echo "FAIL b: why"; exit 1'
judge ''
expect fails 1 '1 passed, 1 failed, 0 skipped'
judge later
expect later 0 'note unit/test_broken: run once more'
judge later both
expect fails-twice 1 '1 passed, 1 failed, 0 skipped' '    1:FAIL b: why'
program broken 'exit 0'
judge both
expect ran-nothing 1 '1 passed, 1 failed, 0 skipped'

once='first && echo "FAIL b: why" && exit 1; echo "ok b"'
fresh
program once "$once"
judge ''
expect no-second-try 1 '1 passed, 1 failed, 0 skipped'
fresh
program once "$once"
judge both
expect second-try 0 '2 passed, 0 failed, 0 skipped' '    1:FAIL b: why'
grep -q '^UNSTEADY, passed when it was run once more: unit/test_once' "$work/out" ||
	{ echo "FAIL runner-second-try: it is not named" && fails=$((fails + 1)); }
for n in 1 2 3; do
	program "once$n" "$once"
done
judge both
expect unsteady 1 '5 passed, 1 failed, 0 skipped'
fresh
program race 'first && echo "WARNING: ThreadSanitizer: data race" && exit 66; echo "ok b"'
judge both
expect report 1 '1 passed, 1 failed, 0 skipped'
fresh
program crash 'first && kill -ABRT $$; echo "ok b"'
judge both
expect crash 1 '1 passed, 1 failed, 0 skipped'
[ $fails -eq 0 ]
