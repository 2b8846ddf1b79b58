#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh PROGRAM SECONDS: libFuzzer over its committed corpus, what it finds new kept in the build folder.
set -u
program=$1 seconds=$2
name=${program##*/}
corpus=tests/fuzz/corpus/${name#fuzz_}
found=${B:-build}/fuzz/found-${name#fuzz_}
mkdir -p "$found"
[ -d "$corpus" ] || {
	echo "FAIL $name: no corpus in $corpus"
	exit 1
}
"$program" -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=5 -max_len=65536 -print_final_stats=1 \
	-artifact_prefix="$found-" "$found" "$corpus" 2>"$found.log"
rc=$?
grep -E 'stat::number_of_executed_units|ERROR|SUMMARY|runtime error' "$found.log"
if [ $rc -ne 0 ]; then
	echo "FAIL $name: exit status $rc, input in $found-*, log $found.log"
	exit 1
fi
echo "ok $name"
