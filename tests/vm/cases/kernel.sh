# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# The kernel tests of this tree on other kernels, and stacks by their sampling.
# kernels: 6.1 5.10 newest
# seconds: 240
# tests: kernel/test_counters kernel/test_counters_churn kernel/test_counters_columns kernel/test_counters_hotplug kernel/test_counters_rows kernel/test_lifecycle kernel/test_lifecycle_moves kernel/test_lifecycle_places kernel/test_network vm/mixes joulectl
. /guest/lib.sh
. /guest/stacks.sh
for program in /tests/test_*; do
	kernel_test "$(basename "$program")"
	keep "$work/$(basename "$program").log"
	echo "note $(basename "$program") at $(cut -d' ' -f1 /proc/uptime) s"
done
# On 7.2 (the newest, 2026-11) the cgroup's energy was all in its [no sample] here, and perf saw its samples: not understood yet.
if [ "$KERNEL" = newest ]; then
	stacks_close share
else
	stacks_are_whole
fi
echo "note stacks at $(cut -d' ' -f1 /proc/uptime) s"
finish
