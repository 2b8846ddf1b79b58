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
	$2 ~ /-s[0-7]$/ { all += n; if (/;main;/ && !/\[truncated\]/) whole += n }
	END { if (!all || whole < 0.95 * all) { print whole + 0 " of " all + 0 " uJ"; exit 1 } }' "$1"
}

# sums_close FOLDED LEDGER: the stacks of the cgroup, its [no sample] with them, are its row of the ledger, in the domains that are
# added up. It began and ended while the agent ran, so both have its whole life.
sums_close() {
	stacks=$(awk 'index($0, "/stacks;") == 1 { sum += $NF } END { printf "%.0f", sum }' "$1")
	row=$(awk -F, 'NR == 1 { for (i = 3; i <= NF; i++) take[i] = $i ~ /^(package|dram)-[0-9]+_uj$/; next }
	{ for (i = 3; i <= NF; i++) sum += take[i] * $i } END { printf "%.0f", sum }' "$2")
	[ "$stacks" -gt 0 ] && [ "$stacks" = "$row" ] && return
	echo "stacks have $stacks uJ, the ledger $row"
	return 1
}

# A chunk is a minute, and on a slow machine there may be several.
read_chunks() {
	for chunk in "$work"/stacks.state/profile/*.pb.gz; do
		/tests/joulectl profile --symbolize "$chunk" -o "$work/chunk.folded" || return 1
		cat "$work/chunk.folded"
	done >"$work/stacks.folded"
}

# stacks_work CGROUP: two programs in it, each until it has had seconds of CPU, however long a starved machine takes for them.
stacks_work() {
	sh -c 'echo $$ >"$1/cgroup.procs"
	dd if=/dev/zero of=/dev/null bs=64k &
	/tests/mixes 11300 5 s
	while awk "{ exit (\$14 + \$15 >= 300) }" "/proc/$!/stat"; do sleep 0.1; done
	kill $!' work "$1"
}

# stacks_close FORMULA: by the continuous profile of an agent. What it kept is in $work/stacks.state/profile and $work/stacks.ledger.
stacks_close() {
	# perf's controller comes to cgroups with the first that is asked for; systemd does so at every boot
	echo +pids >/sys/fs/cgroup/cgroup.subtree_control
	echo 'profile: { frequency: 25 }' >"$work/stacks.yaml"
	start stacks -c "$work/stacks.yaml" --formula "$1" -i 500ms --socket "$work/stacks.sock" --state-dir "$work/stacks.state" -o null:
	wait_until 200 test -S "$work/stacks.sock" || fail "stacks: agent" "no socket: $(said stacks)"
	mkdir /sys/fs/cgroup/stacks
	stacks_work /sys/fs/cgroup/stacks
	wait_until 100 rmdir /sys/fs/cgroup/stacks 2>/dev/null
	wait_for_history "$work/stacks.sock"
	/tests/joulectl history --socket "$work/stacks.sock" --csv -s -10m /stacks >"$work/stacks.ledger"
	kill "$agent"
	ended 300 "$agent"
	expect "stacks: kept" read_chunks
	expect "stacks: they add up to the ledger" sums_close "$work/stacks.folded" "$work/stacks.ledger"
}

# The same, and what the stacks are. Not for a guest so slow that samples are lost before files of code are read.
stacks_are_whole() {
	stacks_close share
	expect "stacks: user space reaches the program's start" mixes_whole "$work/stacks.folded"
	expect "stacks: the kernel below user space" grep -q ';dd;.*vfs_read \[k\]' "$work/stacks.folded"
}
