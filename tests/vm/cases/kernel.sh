# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# The kernel tests of this tree on other kernels, and stacks by their sampling.
# kernels: 6.1 5.10 newest
# seconds: 600
# threads: single
# tests: kernel/test_counters kernel/test_counters_churn kernel/test_counters_columns kernel/test_counters_hotplug kernel/test_counters_rows kernel/test_lifecycle kernel/test_lifecycle_moves kernel/test_lifecycle_places kernel/test_network vm/mixes joulectl
. /guest/lib.sh
. /guest/stacks.sh
# Stacks first: kernel tests mount perf_event as a hierarchy of its own, and perf knows no cgroups of the other one after that.
stacks_are_whole
echo "note stacks at $(cut -d' ' -f1 /proc/uptime) s"
for program in /tests/test_*; do
	kernel_test "$(basename "$program")"
	keep "$work/$(basename "$program").log"
	echo "note $(basename "$program") at $(cut -d' ' -f1 /proc/uptime) s"
done
finish
