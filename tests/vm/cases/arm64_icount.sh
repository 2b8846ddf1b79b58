# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# arm64 where QEMU counts instructions: 8 ns each (shift 3), so at 1 GHz one in 8 cycles. The guest's clock is
# those counts, and runs as it likes against the host's.
# kernels: arm64-6.1
# seconds: 120
# qemu: -icount shift=3,sleep=off
. /guest/lib.sh
doctor icount
contains "instructions counted: doctor" "$work/icount.out" '^event CYCLES +ok' '^event INSTRUCTIONS +ok' '^event LLC_MISSES +absent'
cpu_is_right "instructions counted: CPU time"
cycles=$(counted "$work/cpu-1.sum" /cpu-1 CYCLES)
instructions=$(counted "$work/cpu-1.sum" /cpu-1 INSTRUCTIONS)
expect "instructions counted: cycles" close_to $((used * 1000)) "${cycles:-0}" 20 100000
expect "instructions counted: one in 8 cycles" close_to $((${cycles:-0} / 8)) "${instructions:-0}" 10 1000
finish
