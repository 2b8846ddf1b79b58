# shellcheck shell=sh disable=SC2034
# SPDX-License-Identifier: Apache-2.0
# Sourced by every end-to-end test. A case prints "ok NAME", "FAIL NAME: reason" or "SKIP NAME: reason";
# the test's exit status is 0 when none failed. Nothing is slept for: conditions are waited for.
# By hand as in a run a test is guarded (tests/guard.sh).
case ${JOULED_TEST:-}$0 in tests/*/test_*.sh | [./]*/tests/*/test_*.sh)
	exec sh "${0%/*}/../guard.sh" "tests/$(basename "$(dirname "$0")")/${0##*/}" sh "$0" "$@" ;;
esac
set -u
B=${B:-build}
JOULED=${JOULED:-$B/jouled}
here=tests/e2e
work=$(mktemp -d) || exit 2
chmod 755 "$work"
failures=0
agents=
made_cgroups=

cleanup() {
	for pid in $agents; do
		kill -9 "$pid" 2>/dev/null
	done
	for dir in $made_cgroups; do
		[ -d "$dir" ] || continue
		while read -r pid; do
			kill -9 "$pid" 2>/dev/null
		done <"$dir/cgroup.procs"
		wait_until 50 rmdir "$dir" 2>/dev/null
	done
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

ok() {
	echo "ok $1"
}

fail() {
	echo "FAIL $1: $2"
	failures=$((failures + 1))
}

skip() {
	echo "SKIP $1: $2"
}

# A call that was refused is a gap in user/agent/sandbox/seccomp.c; a test that makes some on purpose sets asks_for_more.
finish() {
	refused=$(grep -hm 1 'seccomp: .* is not one that jouled needs' "$work"/*.err 2>/dev/null)
	[ -z "$refused" ] || [ -n "${asks_for_more:-}" ] || fail "$(basename "$0" .sh)-seccomp" "$(echo "$refused" | head -n 3 | tr '\n' '|')"
	[ $failures -eq 0 ]
	exit
}

# python_with MODULE: sets $python to a Python that has the module. Modules of Debian's packages are for Debian's Python, which
# need not be the first in PATH.
python_with() {
	for python in python3 /usr/bin/python3; do
		$python -c "import $1" 2>/dev/null && return
	done
	fail "$(basename "$0" .sh)-python" "no Python here has the module $1; install the packages of make test-deps"
	finish
}

# wait_until TENTHS COMMAND...: tries every 100 ms until the command succeeds; SLOWER (8) times as long as a quiet machine may
# need, as this is only a bound against hanging.
wait_until() {
	tries=$(($1 * ${SLOWER:-8}))
	shift
	while ! "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.1
	done
}

# listens PATH: a Unix socket that somebody listens on; its file is there a moment before that.
listens() {
	awk -v path="$1" '$4 == "00010000" && $8 == path { found = 1 } END { exit !found }' /proc/net/unix
}

gone() {
	! kill -0 "$1" 2>/dev/null
}

# ticks_at_least N FILE: N intervals of hwpc reports, however many cgroups this machine has.
ticks_at_least() {
	[ -f "$2" ] && [ "$(grep -c '"target":"all"' "$2")" -ge "$1" ]
}

lines_at_least() {
	[ -f "$2" ] && [ "$(wc -l <"$2")" -ge "$1" ]
}

# start NAME ARGUMENT...: an agent in the background; its pid in $agent, its output in $work/NAME.{out,err}.
start() {
	started=$1
	shift
	"$JOULED" --socket none --state-dir "$work/state" "$@" >"$work/$started.out" 2>"$work/$started.err" &
	agent=$!
	agents="$agents $agent"
}

# ended TENTHS PID: waits for its end; its exit status in $status. 1 when it did not end.
ended() {
	wait_until "$1" gone "$2" || return 1
	wait "$2"
	status=$?
}

# run NAME ARGUMENT...: to its end; exit status in $status.
run() {
	ran=$1
	shift
	timeout 300 "$JOULED" --socket none --state-dir "$work/state" "$@" >"$work/$ran.out" 2>"$work/$ran.err"
	status=$?
}

# The program's words, for a failure's reason.
said() {
	head -c 300 "$work/$1.err" | tr '\n' '|'
}

cgroup2() {
	awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts
}

# Things that a killed test has left: its pid is in the name.
remove_leftovers() {
	for left in "$(cgroup2)"/jouled-e2e-*; do
		[ -d "$left" ] || continue
		owner=${left##*/jouled-e2e-}
		kill -0 "${owner%%[-.]*}" 2>/dev/null && continue
		while read -r pid; do
			kill -9 "$pid" 2>/dev/null
		done <"$left/cgroup.procs"
		wait_until 10 rmdir "$left" 2>/dev/null
	done
}

# make_cgroup NAME: directory in $cgroup, removed at the end.
make_cgroup() {
	[ -n "$made_cgroups" ] || remove_leftovers
	cgroup=$(cgroup2)/jouled-e2e-$$-$1
	mkdir "$cgroup" && made_cgroups="$made_cgroups $cgroup"
}

# spin CGROUP: a process of that cgroup that works for some milliseconds, sleeps for 20, and so on until it is killed; pid in
# $spinner. Another test runs beside this one: most of the CPU is left to both.
spin() {
	sh -c 'echo $$ >"$1/cgroup.procs"
		exec perl -e "for (;;) { for (1 .. 500000) {} select undef, undef, undef, 0.02 }"' spin "$1" &
	spinner=$!
	agents="$agents $spinner"
}

# Ids of the BPF programs, maps and links that a process holds: "prog 12" a line.
bpf_objects() {
	cat "/proc/$1/fdinfo"/* 2>/dev/null | sed -n 's/^\(prog\|map\|link\)_id:[[:space:]]*\([0-9]*\)$/\1 \2/p' | sort -u
}

bpftool_path() {
	for tool in bpftool /usr/sbin/bpftool; do
		command -v $tool && return
	done
}

# still_there FILE: those of the listed objects that the kernel still has.
still_there() {
	while read -r kind id; do
		"$(bpftool_path)" "$kind" show id "$id" >/dev/null 2>&1 && echo "$kind $id"
	done <"$1"
	return 0
}

all_gone() {
	[ -z "$(still_there "$1")" ]
}

need_root() {
	if [ "$(id -u)" -ne 0 ]; then
		skip "$(basename "$0" .sh)" "root is needed"
		exit 0
	fi
}
