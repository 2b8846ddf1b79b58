#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The books at the centre, in short: stores out of Debian's packages that are away, while agents are killed and a disk is full.
# Kafka is the mock cluster of librdkafka. FLEET_AWAY_S=600 is the long form (make soak).
. tests/e2e/lib.sh
need_root
make_cgroup fleet
spin "$cgroup"
python_with google.protobuf
JOULED=$JOULED $python tests/fleet/fleet.py "$work" "${cgroup#"$(cgroup2)"}" "${FLEET_AWAY_S:-6}" ${FLEET_STORES:-} || failures=1

# make run-fleet, as long as it takes to answer
FLEET_SECONDS=0 PORT=$(python3 $here/free_port.py) timeout 1200 sh tests/fleet/run.sh >"$work/run.out" 2>"$work/run.err"
status=$?
if grep -q 'cannot be downloaded' "$work/run.err"; then
	skip fleet-run "victoria-metrics of trixie cannot be downloaded"
elif [ $status -eq 0 ] && [ "$(grep -c '^domain:[a-z]* instance:node-[123] 0$' "$work/run.out")" -ge 3 ]; then
	ok fleet-run
else
	fail fleet-run "status $status: $(tail -n 5 "$work/run.out" "$work/run.err" | tr '\n' '|')"
fi
finish
