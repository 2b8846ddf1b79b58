#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# guard.sh SOURCE COMMAND...: one test, so that it disturbs no other on this machine, of this or another checkout, and leaves
# nothing behind. A SOURCE with a line "Alone: why", and those of tests/kernel and tests/deploy, have the machine for themselves; the
# others share it. Mounts are made in a namespace of the test's own. What it leaves (processes, cgroups, mounts, files, settings)
# is removed and is a failure: "FAIL leftovers: ...". NO_PMU=1: hardware events are refused (tests/pmu/none.c). TEST_TIMEOUT: a bound in seconds against hanging, for the test alone.
# The next guard removes what a killed guard has left. Exit status: the command's; 1 with leftovers.
set -u
# Some tests look for the process of a compiler that they start, so it must not take its result from a cache.
export CCACHE_DISABLE=1
source=$1
shift
id=$$
root=no
[ "$(id -u)" -eq 0 ] && root=yes
lock=/run/jouled-tests.lock
[ $root = yes ] || lock=/tmp/jouled-tests-$(id -u).lock
base=/tmp/jouled.         # short: names of sockets begin with it

mode=-s
case $source in tests/kernel/* | tests/deploy/*) mode=-x ;; esac
grep -qs 'Alone: ' "$source" && mode=-x

# alive PID: a process that is no zombie
alive() {
	[ -e "/proc/$1" ] && ! grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null
}

# processes ID: those that a test has started, by their environment
processes() {
	grep -lsz "^JOULED_TEST=$1\$" /proc/[0-9]*/environ | cut -d/ -f3
}

no_processes() {
	[ -z "$(processes "$1")" ]
}

# within TENTHS COMMAND...: tries every 100 ms
within() {
	tries=$1
	shift
	until "$@" 2>/dev/null; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.1
	done
}

end_processes() {
	for p in $(processes "$1"); do
		kill -9 "$p" 2>/dev/null
	done
	within 100 no_processes "$1"
}

remove_cgroup() {
	find "$1" -depth -type d 2>/dev/null | while read -r dir; do
		while read -r p; do
			kill -9 "$p" 2>/dev/null
		done <"$dir/cgroup.procs"
		within 100 rmdir "$dir"
	done
}

# Cgroups that are named after a process which has ended. Whose they are is known for those of PID; the others may belong to a test
# beside this one, so they are looked for when there is none.
orphans() {
	find /sys/fs/cgroup -maxdepth 4 -type d -name '*jouled-[a-z0-9]*-[0-9]*' 2>/dev/null | while read -r dir; do
		owner=$(printf %s "${dir##*/}" | sed -n 's/.*jouled-[a-z0-9]*-\([0-9][0-9]*\).*/\1/p')
		[ -n "$owner" ] && ! alive "$owner" || continue
		[ "$1" = all ] || [ "$owner" = "$1" ] || continue
		printf '%s\n' "$dir"
	done
}

# Removes what killed guards have left: processes, folders, and cgroups when no test is beside this one.
reap() {
	for dir in "$base"[0-9]*; do
		[ -d "$dir" ] || continue
		alive "${dir#"$base"}" && continue
		end_processes "${dir#"$base"}"
		rm -rf "$dir"
	done
	[ $mode = -s ] || orphans all | while read -r dir; do
		remove_cgroup "$dir"
	done
}

settings() {
	for f in kernel/perf_event_paranoid kernel/kptr_restrict kernel/bpf_stats_enabled kernel/unprivileged_bpf_disabled \
		kernel/core_pattern kernel/yama/ptrace_scope kernel/nmi_watchdog kernel/sched_schedstats vm/overcommit_memory; do
		[ -r "/proc/sys/$f" ] && printf '/proc/sys/%s %s\n' "$f" "$(cat "/proc/sys/$f")"
	done
	for f in /sys/devices/system/cpu/cpu[0-9]*/online; do
		[ -r "$f" ] && printf '%s %s\n' "$f" "$(cat "$f")"
	done
}

# Mounts and files with jouled's name; other programs of the machine make and remove others at any time.
places() {
	{
		cut -d ' ' -f 5 /proc/self/mountinfo | sed 's/^/mount /'
		find /sys/fs/bpf -mindepth 1 -maxdepth 2 2>/dev/null
		find . -maxdepth 1 -name 'jouled-*'
		find /dev/shm /run /var/lib /etc /var/spool -maxdepth 1 -name 'jouled*' ! -name 'jouled-tests.lock*' 2>/dev/null
	} | grep jouled | sort
}

# Controllers enabled for the cgroups below the root. Only kernel tests are asked: beside the others, systemd and container runtimes
# may enable some.
controllers() {
	case $source in tests/kernel/*) ;; *) return 0 ;; esac
	for f in /sys/fs/cgroup/cgroup.subtree_control /sys/fs/cgroup/unified/cgroup.subtree_control; do
		[ -r "$f" ] && tr ' ' '\n' <"$f" | sed "/^$/d; s#^#$f #"
	done | sort
}

said=$base$id
mkdir -m 755 "$said" || exit 2
exec 7>"$lock.next" 8>"$lock"
# A test that waits to be alone holds this lock, so that no later test overtakes it.
flock 7
flock $mode 8
exec 7>&-
trap : INT      # of a terminal: the test has it too, and then there is something to clean
[ $root = yes ] && reap
tmp=$said/t
mkdir -m 755 "$tmp"
settings >"$said/settings"
places >"$said/places"
controllers >"$said/controllers"
orphans all | sort >"$said/orphans"

private=
[ $root = yes ] && unshare -m true 2>/dev/null && private='unshare -m'
refused=
if [ "${NO_PMU:-0}" = 1 ]; then
	refused="LD_PRELOAD=$PWD/${B:-build}/pmu/none.so ASAN_OPTIONS=verify_asan_link_order=0"
	[ -f "${B:-build}/pmu/none.so" ] || echo "FAIL no-pmu: ${B:-build}/pmu/none.so is not built; make test-programs"
fi
t0=$(date +%s%N)
# shellcheck disable=SC2086,SC2016 # words; for the shell within
timeout --foreground -k 10 "${TEST_TIMEOUT:-1800}" $private sh -c 'echo $$ >"$0/pid"; exec "$@"' "$said" env JOULED_TEST=$id TMPDIR="$tmp" $refused "$@" 7>&- 8>&-
rc=$?
[ -t 1 ] || echo "# guard: $((($(date +%s%N) - t0) / 1000000)) ms"

left=
if ! within 100 no_processes $id; then
	for p in $(processes $id); do
		left="$left process $p ($(tr '\0' ' ' <"/proc/$p/cmdline" | head -c 80));"
	done
	end_processes $id
fi
whose=$(cat "$said/pid" 2>/dev/null)
[ $root = yes ] && flock -n -x 8 && whose=all
orphans "${whose:-none}" | sort | comm -13 "$said/orphans" - >"$said/new"
while read -r dir; do
	remove_cgroup "$dir"
	# of a process that this test has started, or of a test by hand without a guard
	case $dir in
	*jouled-[a-z0-9]*-"$(cat "$said/pid")"*) left="$left cgroup $dir;" ;;
	*) [ "${STRICT_SKIPS:-0}" = 1 ] && left="$left cgroup $dir;" || echo "# guard: removed $dir" ;;
	esac
done <"$said/new"
settings | sort >"$said/settings.now"
sort "$said/settings" | comm -23 - "$said/settings.now" >"$said/changed"
while read -r file value; do
	left="$left $file was $value, is $(cat "$file");"
	printf '%s\n' "$value" >"$file"
done <"$said/changed"
controllers | comm -13 "$said/controllers" - >"$said/new"
while read -r file name; do
	left="$left controller $name in $file;"
	printf '%s\n' "-$name" >"$file"
done <"$said/new"
places >"$said/places.now"
comm -13 "$said/places" "$said/places.now" >"$said/new"
while read -r what path; do
	left="$left $what $path;"
	[ "$what" != mount ] || umount -l "$path"
done <"$said/new"
files=$(find "$tmp" -mindepth 1 -maxdepth 1 | head -n 5 | tr '\n' ' ')
[ -z "$files" ] || left="$left files $files;"
rm -rf "$said"
if [ -n "$left" ]; then
	if [ $rc -eq 124 ] || [ $rc -ge 128 ]; then
		echo "removed after it was ended:$left"
	else
		echo "FAIL leftovers:$left"
		[ $rc -ne 0 ] || rc=1
	fi
fi
exit $rc
