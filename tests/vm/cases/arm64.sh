# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# arm64 with its own PMU: cycles count (virtual time at 1 GHz), instructions are not there and are named. Block work equals
# io.stat and the device's statistics.
# kernels: arm64-6.1
# seconds: 150
# cgroup: v2
# stock: null_blk
# tests: vm/mixes joulectl
. /guest/lib.sh
. /guest/block.sh
. /guest/stacks.sh
doctor arm64
contains "doctor: cycles but no instructions" "$work/arm64.out" '^event CYCLES +ok' '^event INSTRUCTIONS +absent +this machine.s PMU' \
	'^event LLC_MISSES +absent' '^trigger +ok +tp_btf'
contains "doctor: no energy counter" "$work/arm64.out" '^rapl powercap +absent' '^rapl perf +absent' '^rapl msr +absent' '^estimate +ok'
cpu_is_right "CPU time"
cycles=$(counted "$work/cpu-1.sum" /cpu-1 CYCLES)
# The PMU counts interrupts too, which may or may not be in the cgroup's time.
expect "cycles are virtual time at 1 GHz" close_to $((used * 1000)) "${cycles:-0}" 20 100000
expect "no count of instructions is made up" [ -z "$(counted "$work/cpu-1.sum" /cpu-1 INSTRUCTIONS)" ]
contains "the agent names what is left out" "$work/cpu-1.err" 'note: measured here: .*not measured: INSTRUCTIONS, LLC_MISSES'
expect "no system call is refused" [ -z "$(grep 'seccomp: ' "$work/cpu-1.err")" ]
cpu_is_right "CPU time by raw_tp" --trigger raw_tp
stacks_are_whole
block_agent
disk 0
echo "+io" >$ROOT/cgroup.subtree_control
mkdir $ROOT/writes $ROOT/reads
within writes dd if=/dev/zero of=/dev/nullb0 bs=64k count=30 conv=fsync 2>/dev/null
within reads dd if=/dev/nullb0 of=/dev/null bs=64k skip=100 count=20 2>/dev/null
same_both() {
	same_as_io_stat writes && same_as_io_stat reads
}
expect "block work equals io.stat" wait_until 20 same_both
page
expect "writes and reads are there" [ "$(metric write_bytes /writes)/$(($(metric read_bytes /reads) >= 20 * 65536))" = $((30 * 65536))/1 ]
expect "block work equals the device's statistics" wait_until 20 same_as_device
echo "note books $(books), device $(device), /reads $(metric read_bytes /reads)"
finish
