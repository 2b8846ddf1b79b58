# shellcheck shell=sh disable=SC2034,SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# Sourced by every case, inside the guest: the helpers of the end-to-end tests, with the kernel's
# name before every result, and what only a guest can do.
JOULED=/bin/jouled
. /guest/settings
. /guest/e2e.sh

ok() {
	echo "ok vm/$KERNEL/$1"
}

fail() {
	echo "FAIL vm/$KERNEL/$1: $2"
	failures=$((failures + 1))
}

skip() {
	echo "SKIP vm/$KERNEL/$1: $2"
}

# expect NAME COMMAND...: ok when it succeeds; what it printed is the reason when not.
expect() {
	expected=$1
	shift
	if "$@" >"$work/expect" 2>&1; then
		ok "$expected"
	else
		fail "$expected" "$* ($?): $(tail -c 300 "$work/expect" | tr '\n' '|')"
	fi
}

# contains NAME FILE REGEX...: ok when every extended regex has a line in it.
contains() {
	in=$2
	named=$1
	shift 2
	for regex in "$@"; do
		if ! grep -qE -- "$regex" "$in"; then
			fail "$named" "no line /$regex/ in: $(tail -c 600 "$in" | tr '\n' '|')"
			return 1
		fi
	done
	ok "$named"
}

# load MODULE [PARAMETER=VALUE...]: one of ours, or the kernel's own with those that it needs.
load() {
	module=$1
	shift
	if [ -e "/modules/$module.ko" ]; then
		insmod "/modules/$module.ko" "$@"
		return
	fi
	while read -r needed; do
		grep -q "^$(basename "$needed" .ko | tr - _) " /proc/modules || [ "$needed" = "$module.ko" ] ||
			insmod "/stock/$needed" || return 1
	done <"/stock/$module.order"
	insmod "/stock/$module.ko" "$@"
}

# keep FILE...: brought back to the host, into the log folder of this case.
keep() {
	mkdir -p /tmp/keep && cp -r "$@" /tmp/keep/
}

# kernel_test PROGRAM: a cmocka program of tests/kernel; one result per test.
kernel_test() {
	timeout 300 "/tests/$1" >"$work/$1.log" 2>&1
	rc=$?
	awk -v p="vm/$KERNEL/$1/" -v rc=$rc '
	/^\[ RUN / { skipped = 0; why = "" }
	/^SKIP / { skipped = 1; sub(/^SKIP /, ""); print "SKIP " p $0; next }
	/^\[       OK \]/ { n++; if (!skipped) print "ok " p $NF; next }
	/^\[  FAILED  \] [^0-9]/ && !ended { n++; bad++; print "FAIL " p $NF ": " why; next }
	/^\[==========\] [0-9]+ test.*run/ { ended = 1 }
	/^\[/ { next }
	{ why = substr(why " " $0, 1, 300) }
	END {
		if ((rc != 0 && !bad) || !n) { bad++; print "FAIL " p "program: exit status " rc ": " why }
		exit bad != 0
	}' "$work/$1.log" || failures=$((failures + 1))
}

# used_us CGROUP-DIRECTORY: CPU time by the kernel's own account.
used_us() {
	if [ -e "$1/cpu.stat" ]; then
		awk '$1 == "usage_usec" { print $2 }' "$1/cpu.stat"
	else
		echo $(($(cat "$1/cpuacct.usage") / 1000))
	fi
}

# close_to WANTED GOT PER-MILLE ABSOLUTE: within the larger of the two.
close_to() {
	awk -v a="$1" -v b="$2" -v r="$3" -v s="$4" 'BEGIN {
		d = a - b; if (d < 0) d = -d
		lim = a * r / 1000; if (lim < s) lim = s
		if (d > lim) { print "wanted " a ", got " b; exit 1 } }'
}

# doctor NAME [ARGUMENT...]: what jouled finds here, in $work/NAME.out.
doctor() {
	asked=$1
	shift
	timeout 240 "$JOULED" doctor "$@" >"$work/$asked.out" 2>&1
}

# Where cgroups are made so that jouled sees them (first) and their CPU time can be read (last).
trees() {
	case ${CGROUP:-v2} in
	v1 | hybrid) echo "/sys/fs/cgroup/perf_event /sys/fs/cgroup/cpuacct" ;;
	*) echo /sys/fs/cgroup ;;
	esac
}

# spin_for SECONDS DIRECTORY...: uses a CPU for that long in these cgroups.
spin_for() {
	sh -c 's=$1; shift; for d in "$@"; do echo $$ >"$d/cgroup.procs"; done; exec timeout "$s" sh -c "while :; do :; done"' spin "$@"
}

ticks() {
	[ -f "$work/$1.json" ] && grep -c '"target":"all"' "$work/$1.json"
}

more_ticks() {
	n=$(ticks "$1") && [ "$n" -ge "$2" ]
}

empty() {
	[ -z "$(cat "$1/cgroup.procs")" ]
}

# counted FILE PATH COLUMN: of what /tests/recsum printed of a recording.
counted() {
	awk -v path="$2" -v col="$3" '
	NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
	NR > 1 && (path == "" || $1 == path) { sum += $at[col]; seen = 1 }
	END { if (!seen || !at[col]) exit 1; printf "%.0f\n", sum }' "$1"
}

# cpu_is_right NAME [ARGUMENT...]: what an agent tells of a cgroup that lives 1.5 s against the kernel's account
# of it, within 1 %. N the count of calls: the agent's words are in $work/cpu-N.err, the sums of its recording in
# $work/cpu-N.sum (the cgroup is /cpu-N), the kernel's microseconds in $used. hwpc only tells its progress: it
# withholds intervals that are too long.
cpu_calls=0
cpu_is_right() {
	cpu_name=$1
	shift
	cpu_calls=$((cpu_calls + 1))
	cpu=cpu-$cpu_calls
	start "$cpu" -i 300ms -o "hwpc=file://$work/$cpu.json" -o "snapshot=file://$work/$cpu.jd" "$@"
	if ! wait_until 100 more_ticks "$cpu" 1; then
		fail "$cpu_name" "no report: $(said "$cpu")"
		return 1
	fi
	dirs=
	for tree in $(trees); do
		mkdir "$tree/$cpu" && dirs="$dirs $tree/$cpu"
	done
	# shellcheck disable=SC2086 # directories
	spin_for 1.5 $dirs
	wait_until 50 empty "${dirs##* }"
	used=$(used_us "${dirs##* }")
	wait_until 50 more_ticks "$cpu" $(($(ticks "$cpu") + 3))
	kill "$agent"
	ended 50 "$agent"
	/tests/recsum "$work/$cpu.jd" >"$work/$cpu.sum"
	told=$(counted "$work/$cpu.sum" "/$cpu" time_ns)
	told=$((${told:-0} / 1000))
	# shellcheck disable=SC2086 # directories
	rmdir $dirs
	if close_to "$used" "$told" 10 100 >"$work/expect"; then
		ok "$cpu_name"
	else
		fail "$cpu_name" "$(cat "$work/expect") us; $(grep -v ': note: ' "$work/$cpu.err" | tail -n 3 | tr '\n' '|')"
	fi
}
