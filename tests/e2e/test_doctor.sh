#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What this machine can measure, and what reconstructed machines can.
. tests/e2e/lib.sh

doctor() {
	doctored=$1
	shift
	timeout 300 "$JOULED" doctor "$@" >"$work/$doctored.out" 2>"$work/$doctored.err"
	status=$?
}

# says NAME PATTERN...: each is found in what doctor printed.
says() {
	name=$1
	shift
	for pattern in "$@"; do
		if ! grep -qiE -- "$pattern" "$work/$doctored.out"; then
			fail "$name" "no '$pattern' in: $(head -c 400 "$work/$doctored.out" | tr '\n' '|')"
			return
		fi
	done
	ok "$name"
}

if [ "$(id -u)" -eq 0 ]; then
	doctor here
	says doctor-here 'counters' 'cgroup' 'powercap' 'perf' 'msr'
	doctor none --trigger none
	says doctor-no-program 'network.*absent.*beside a switch program' 'block.*absent.*beside a switch program'
	if [ -e /sys/class/powercap ]; then
		skip doctor-absent-rapl "this machine has powercap"
	else
		says doctor-absent-rapl 'powercap.*absent' 'estimate'
	fi
else
	skip doctor-here "root is needed"
fi
for root in tests/sysroot/*/; do
	[ -d "$root" ] || continue
	name=$(basename "$root")
	doctor "$name" --root "$root"
	# A tree that is only a mount table is no machine: refused in one line.
	if [ $status -eq 0 ] && [ -s "$work/$name.out" ] && [ ! -s "$work/$name.err" ]; then
		ok "doctor-$name"
	elif [ $status -eq 1 ] && [ ! -d "$root/sys/devices/system/cpu" ] && [ "$(wc -l <"$work/$name.err")" -eq 1 ]; then
		ok "doctor-$name"
	else
		fail "doctor-$name" "exit status $status: $(said "$name")"
	fi
done
finish
