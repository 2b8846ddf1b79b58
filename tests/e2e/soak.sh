#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make soak: the guests in full length (tests/vm/soak), then an agent for SECONDS among cgroups that come and
# go; memory, descriptors and CPU must be flat from the first tenth on. soak.sh SECONDS
. tests/e2e/lib.sh
need_root
seconds=${1:-3600}
export TEST_TIMEOUT=7200
export JOULED_VM_CASES=tests/vm/soak
for guest in $(sh tests/vm/run.sh --list); do
	sh tests/vm/run.sh "${guest%%/*}" "${guest#*/}" || failures=$((failures + 1))
done
KILLS=200 sh tests/e2e/test_history.sh || failures=1
SCRAPE_SECONDS=120 sh tests/e2e/test_metrics.sh || failures=1
DEADLINES=check VJOULE_SECONDS=60 sh tests/e2e/test_vjoule_load.sh || failures=1
SPANS_STORM=20000 sh tests/guard.sh tests/kernel/test_spans_storm.c "$B/kernel/test_spans_storm" || failures=1
LIVING=10000 BIRTHS=600000 MIDDLE=60 MOST_CPU=10 sh tests/e2e/test_births.sh || failures=1
python3 tests/mutants/mutants.py || failures=1
FLEET_AWAY_S=600 sh tests/e2e/test_fleet.sh || failures=1
AWAY=600 KILL_SECONDS=600 sh tests/e2e/test_zico.sh || failures=1

start soak -i 1s -o "hwpc=file://$work/soak.json" -o "power=file:///dev/null" -o null:
wait_until 100 lines_at_least 2 "$work/soak.json"
make_cgroup soak
top=$cgroup

churn() {
	n=0
	while [ -d "$top" ]; do
		mkdir "$top/$n" 2>/dev/null && sh -c 'echo $$ >"$1/cgroup.procs"; exec sleep 0.02' churn "$top/$n"
		rmdir "$top/$n" 2>/dev/null
		n=$((n + 1))
	done
}
churn &
churner=$!
agents="$agents $churner"

state() {
	rss=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$agent/status")
	fds=$(find "/proc/$agent/fd" -mindepth 1 | wc -l)
}
sleep $((seconds / 10 + 1))
: >"$work/soak.json"
state
rss0=$rss fds0=$fds
echo "after $((seconds / 10 + 1)) s: $rss KiB, $fds descriptors"
left=$((seconds - seconds / 10))
while [ $left -gt 0 ]; do
	step=$((left < 60 ? left : 60))
	sleep $step
	left=$((left - step))
	: >"$work/soak.json"
	kill -0 "$agent" 2>/dev/null || {
		fail soak "the agent ended: $(said soak)"
		finish
	}
done
state
echo "after $seconds s: $rss KiB, $fds descriptors"
kill "$churner"
if [ "$rss" -le $((rss0 + rss0 / 20 + 128)) ] && [ "$fds" -le "$fds0" ]; then
	ok soak-flat
else
	fail soak-flat "$rss0 KiB and $fds0 descriptors grew to $rss and $fds"
fi
kill "$agent"
ended 50 "$agent" && [ "$status" -eq 0 ] && ok soak-ends || fail soak-ends "exit status $status: $(said soak)"
finish
