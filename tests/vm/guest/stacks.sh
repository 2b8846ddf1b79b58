# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: Apache-2.0
# Sourced after lib.sh: stacks of user space and of the kernel on this kernel and machine, and their sum against the history of
# the agent. A case that uses it names "# tests: vm/mixes joulectl".

# history_until SOCKET TIME: the history has what was measured up to that time, as date prints it.
history_until() {
	/tests/joulectl history --socket "$1" --csv -s -10m / | tail -n 1 | awk -F, -v t="$2" '{ exit !($1 > t) }'
}

# wait_for_history SOCKET: up to now.
wait_for_history() {
	wait_until 300 history_until "$1" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" || fail history "it does not go on"
}

# Of the programs whose names mixes takes: what is in stacks that reach its start, and in others.
mixes_whole() {
	awk -F';' '{ n = $NF; sub(/.* /, "", n) }
	$2 ~ /-s[0-7]$/ { all += n; if (/;main;mix_[0-7]/ && !/\[truncated\]/) whole += n }
	END { if (!all || whole < 0.95 * all) { print whole + 0 " of " all + 0 " uJ"; exit 1 } }' "$1"
}

# The stacks of the cgroup, its [no sample] with them, are its row of the ledger.
sums_close() {
	cgroup=$(awk -F';' '/;main;mix_/ { print $1; exit }' "$1")
	stacks=$(awk -v c="$cgroup;" 'index($0, c) == 1 { sum += $NF } END { printf "%.0f", sum }' "$1")
	row=$(/tests/joulectl history --socket "$2" --csv -s -10m "$cgroup" | awk -F, 'NR > 1 { sum += $3 } END { printf "%.0f", sum }')
	[ -n "$cgroup" ] && [ "$stacks" -gt 0 ] && [ "$stacks" = "$row" ] && return
	echo "$cgroup: stacks have $stacks uJ, the ledger $row"
	return 1
}

stacks_are_whole() {
	# perf's controller comes to cgroups with the first that is asked for; systemd does so at every boot
	echo +pids >/sys/fs/cgroup/cgroup.subtree_control
	start stacks --formula share -i 500ms --socket "$work/stacks.sock" --state-dir "$work/stacks" -o null:
	wait_until 200 test -S "$work/stacks.sock" || fail "stacks: agent" "no socket: $(said stacks)"
	expect "stacks: profiled" /tests/joulectl profile --socket "$work/stacks.sock" -o "$work/stacks.folded" -- \
		sh -c '/tests/mixes 11300 2 s & timeout 2 dd if=/dev/zero of=/dev/null bs=64k; wait'
	wait_for_history "$work/stacks.sock"
	expect "stacks: user space reaches the program's start" mixes_whole "$work/stacks.folded"
	expect "stacks: the kernel below user space" grep -q ';dd;.*vfs_read \[k\]' "$work/stacks.folded"
	expect "stacks: they add up to the ledger" sums_close "$work/stacks.folded" "$work/stacks.sock"
	kill "$agent"
	ended 100 "$agent"
}
