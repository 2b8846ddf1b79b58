#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# joulectl profile on programs of Debian's packages, which keep no frame pointers and mostly no names: 95 of 100 samples reach the
# program's start, and functions have the shares that perf record sees in the same run.
. tests/e2e/lib.sh
need_root
python_with google.protobuf
JOULECTL=${JOULECTL:-$B/joulectl}
unset JOULED_SOCKET
export TMPDIR="$work"

if [ "$(uname -m)" != x86_64 ]; then
	skip profile-stacks "only x86-64 is unwound by rules"
	exit 0
fi
usr=$(sh tests/fetch.sh profiled) || {
	skip profile-stacks "packages cannot be downloaded: $(echo "$usr" | tail -n 1)"
	exit 0
}
mkdir "$work/pb2" "$work/run"
protoc --proto_path=tests/e2e --python_out="$work/pb2" profile.proto || exit 2

programs="python3 cc1 openssl sqlite3 fzf nginx redis-server rg"
if command -v node >/dev/null; then
	programs="$programs node"
else
	skip profile-stacks-node "no node here"
fi
# perf samples CPUs, as joulectl does: a clock of each program stops while it is not on a CPU, and so never ends within a switch
rate=${RATE:-199}
timeout 500 perf record -q -a -e cpu-clock:I -F "$rate" --call-graph dwarf,8192 -o "$work/perf.data" -- \
	"$JOULECTL" profile --private -F "$rate" -o "$work/x.pb.gz" -- sh "$PWD/tests/e2e/profile_programs.sh" "$work/run" "$usr" "${TURNS:-3}" \
	>"$work/out" 2>"$work/err"
status=$?
perf script -i "$work/perf.data" -G -F pid,ip,sym,dso >"$work/perf.txt" 2>/dev/null
# shellcheck disable=SC2086 # a list
if [ $status -eq 0 ] && $python $here/profile_stacks.py "$work/pb2" "$work/x.pb.gz" "$work/perf.txt" "$usr/bin/fzf" \
	$programs >"$work/out" 2>&1; then
	ok profile-stacks
	cat "$work/out"
else
	fail profile-stacks "status $status: $(cat "$work/err" "$work/out" | tail -n 1)"
	cat "$work/out"
fi
finish
