# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# arm64 with its own PMU: cycles count (virtual time at 1 GHz), instructions are not there and are named.
# kernels: arm64-6.1
# seconds: 120
. /guest/lib.sh
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
finish
