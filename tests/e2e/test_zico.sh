#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Traces to ZICO collectors. The output alone against a strict collector of every release: faults, restarts of either
# side, certificates (zico_feed.py). An agent and real processes: their fields, and the collector away for AWAY
# seconds with the agent killed twice meanwhile (zico_live.py). KILL_SECONDS: how long either side is killed.
. tests/e2e/lib.sh
need_root
if [ ! -x "$B/zico-feed" ]; then
	fail zico "$B/zico-feed is not built; make test-programs"
	finish
fi
make_cgroup zico
mkdir "$work/feed" "$work/live"
# Both mostly wait.
python3 $here/zico_feed.py "$B/zico-feed" "$work/feed" >"$work/feed.log" 2>&1 &
feed=$!
agents="$agents $feed"
python3 $here/zico_live.py "$JOULED" "$work/live" "$cgroup" || failures=1
wait "$feed" || failures=1
cat "$work/feed.log"
finish
