# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# A kernel with PREEMPT_RT: most of its locks sleep, and the programs of a switch may take none of those.
# kernels: 6.1-rt
# seconds: 240
# threads: single
# append: printk.devkmsg=on printk.time=0
# tests: kernel/test_counters kernel/test_counters_rows kernel/test_lifecycle
. /guest/lib.sh
expect "the guest is a real-time kernel" [ "$(cat /sys/kernel/realtime)" = 1 ]
for program in /tests/test_*; do
	kernel_test "$(basename "$program")"
done
cpu_is_right "CPU time, read a hundred times a second" -i 10ms
dmesg >"$work/dmesg"
contains "the kernel's words are there" "$work/dmesg" PREEMPT_RT
expect "none is of sleeping where it may not" sh -c '! grep -iE "BUG:|WARNING:|scheduling while atomic" "$1"' sh "$work/dmesg"
finish
