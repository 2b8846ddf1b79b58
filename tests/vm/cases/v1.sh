# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# Hierarchy v1: perf_event alone, no cgroup2 anywhere.
# kernels: 6.1
# seconds: 240
# threads: single
# cgroup: v1
. /guest/lib.sh
doctor v1
contains "doctor of hierarchy v1" "$work/v1.out" '^hierarchy +ok +v1 perf_event at /sys/fs/cgroup/perf_event: perf_event is mounted as a v1 controller$' \
	'^network +absent +counted on v2 only' '^trigger +ok +tp_btf'
for trigger in auto raw_tp; do
	cpu_is_right "v1: CPU time by $trigger" --trigger $trigger
done
umount /sys/fs/cgroup/perf_event
doctor nothing
contains "doctor of no hierarchy" "$work/nothing.out" '^hierarchy +absent .*no cgroup2 is mounted; mount -t cgroup2 none /sys/fs/cgroup'
finish
