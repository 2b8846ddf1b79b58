#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 200 vjoule clients of which most do not behave: VJOULE_SECONDS (10; 60 in soak) at least, LOAD_MS (500) between two reports.
# Alone: its deadlines are compared with those of a program that only sleeps.
. tests/e2e/lib.sh
need_root
seconds=${VJOULE_SECONDS:-10}
interval=${LOAD_MS:-500}

descriptors() {
	find "/proc/$agent/fd" -mindepth 1 | wc -l
}

resident() {
	sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$agent/status"
}

settled() {
	[ "$(descriptors)" -le "$fds" ]
}

# 300 cgroups that have run make a report of 40 KiB
make_cgroup load
top=$cgroup
for i in $(seq 300); do
	mkdir "$top/a-cgroup-with-a-long-name-as-containers-have-it-$i" && made_cgroups="$top/a-cgroup-with-a-long-name-as-containers-have-it-$i $made_cgroups"
done
start load -i "${interval}ms" -o "vjoule=tcp-listen://127.0.0.1:0?port-file=$work/port&queue=256KiB" \
	-o "vjoule=file://$work/load.vjoule" -o "snapshot=file://$work/load.jd"
if ! wait_until 100 test -s "$work/port"; then
	fail vjoule-load "$(said load)"
	finish
fi
port=$(cat "$work/port")
for dir in "$top"/*/; do
	sh -c 'echo $$ >"$1/cgroup.procs"' touch "$dir"
done
python3 tests/golden/read_vjoule.py --quiet --count 2 "tcp:127.0.0.1:$port" || fail vjoule-load "no reports"
python3 $here/deadlines.py reference "$interval" 5 "$work/reference" &
sleeper=$!
agents="$agents $sleeper"
fds=$(descriptors) rss=$(resident)
python3 $here/vjoule_load.py "$port" "$seconds" "$work/ready" "$work/result" >"$work/told" 2>&1 &
load=$!
agents="$agents $load"
wait_until 100 test -s "$work/ready" || fail vjoule-load "$(cat "$work/told")"
most=$rss
while ! gone $load; do
	now=$(resident)
	[ "${now:-0}" -gt "$most" ] && most=$now
	sleep 0.5
done
wait $load
status=$?
[ $status -eq 0 ] || fail vjoule-load "$(tail -n 1 "$work/told")"
if wait_until 50 settled; then
	ok vjoule-load-descriptors
else
	fail vjoule-load-descriptors "$fds before, $(descriptors) after"
fi
kill "$agent"
ended 100 "$agent" || status=none
reason=$(python3 $here/vjoule_load.py check "$work/result" "$work/load.vjoule" 2>&1) && rc=0 || rc=1
echo "$(cat "$work/told"); $reason"
# 3: clients that were too slow have lost some
if [ $rc -eq 0 ] && [ "$status" = 3 ]; then
	ok vjoule-load-complete-and-in-order
else
	fail vjoule-load-complete-and-in-order "exit status $status, $reason $(said load)"
fi
if grep -q 'and 50 of 50 that never read were closed' "$work/told"; then
	ok vjoule-load-mute-are-closed
else
	fail vjoule-load-mute-are-closed "$(cat "$work/told")"
fi
python3 tests/golden/read_snapshot.py "$work/load.jd" >"$work/load.jsonl"
kill $sleeper
reason=$(python3 $here/deadlines.py check "$work/load.jsonl" 5 "$work/reference") && rc=0 || rc=1
echo "$reason"
# how many is the machine's affair; DEADLINES=check where it has nothing else to do
if [ $rc -eq 0 ] || [ "${DEADLINES:-}" != check ]; then
	ok vjoule-load-deadlines
else
	fail vjoule-load-deadlines "$reason"
fi
# queues share their documents: what waits for the slowest is all there is
echo "resident: $rss KiB before, $most KiB at most"
if [ "$most" -le $((rss + 8192)) ]; then
	ok vjoule-load-memory
else
	fail vjoule-load-memory "$rss KiB before, $most KiB during"
fi
finish
