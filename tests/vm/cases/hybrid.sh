# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# Hybrid: perf_event on v1, cgroup2 beside it.
# kernels: 6.1
# seconds: 120
# cgroup: hybrid
. /guest/lib.sh
doctor hybrid
contains "doctor of hybrid" "$work/hybrid.out" '^hierarchy +ok +v1 perf_event at .*beside cgroup2 \(hybrid\)' '^trigger +ok +tp_btf'
cpu_is_right "hybrid: CPU time on v1"
printf 'cgroups: { hierarchy: v2 }\n' >"$work/v2.yaml"
doctor v2 -c "$work/v2.yaml"
contains "doctor of hybrid, v2 named" "$work/v2.out" '^hierarchy +ok +v2 at /sys/fs/cgroup/unified: configured' '^network +ok'
trees() {
	echo /sys/fs/cgroup/unified
}
cpu_is_right "hybrid: CPU time on v2" -c "$work/v2.yaml"
finish
