#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The history of a running agent: asked for, killed, full, broken, off. KILLS (10): how often it is killed.
. tests/e2e/lib.sh
need_root
KILLS=${KILLS:-10}
sock=$work/jouled.sock
JOULECTL=${JOULECTL:-$B/joulectl}

ask() {
	code=$(curl -s --max-time 60 --unix-socket "$sock" -o "$work/$1" -w '%{http_code}' "http://jouled$2")
}

expect() {
	ask "$1" "$3"
	if [ "$code" = "$2" ]; then ok "$1"; else fail "$1" "$code: $(head -c 200 "$work/$1")"; fi
}

check() {
	name=$1
	shift
	if "$@" >"$work/check.out" 2>&1; then ok "$name"; else fail "$name" "$(tail -n 1 "$work/check.out" | head -c 300)"; fi
}

answers() {
	ask up "$1"
	[ "$code" = 200 ]
}

# begin NAME [ARGUMENT...]: an agent whose totals can be asked for.
begin() {
	name=$1
	shift
	start "$name" -i 100ms --socket "$sock" -o null: "$@"
	wait_until 100 answers /metrics
}

stop() {
	kill -"${1:-TERM}" "$agent"
	wait "$agent" 2>/dev/null
}

# figure KEY: of the history in /v1/status.
figure() {
	ask figure /v1/status
	python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["history"].get(sys.argv[2], ""))' "$work/figure" "$1"
}

kept() {
	[ "$(figure intervals)" -ge "$1" ]
}

# a batch job of two steps and its agent's own cgroups, which ends while the first agent runs
job=$$
steps=$(cgroup2)/jouled-e2e-$$.slice/slurmstepd.scope/job_$job
for part in "${steps%/*/*}" "${steps%/*}" "$steps" "$steps/step_0" "$steps/step_0/user" "$steps/step_0/user/task_0" "$steps/step_batch"; do
	mkdir "$part" && made_cgroups="$part $made_cgroups"
done
spin "$steps/step_0/user/task_0"
workers=$spinner
spin "$steps/step_batch"
workers="$workers $spinner"
make_cgroup one
spin "$cgroup"
path=${cgroup#"$(cgroup2)"}
begin first
wait_until 100 kept 25
# two points of a whole second each
two_points() {
	ask history '/v1/history?limit=3' && python3 $here/history.py ledger "$work/history"
}
check history-ledger wait_until 100 two_points
expect history 200 '/v1/history?limit=3'
expect history-cgroup 200 "/v1/history?cgroup=$path&since=-1m&step=1s"
expect history-rfc3339 200 "/v1/history?since=$(date -u -d '-1 minute' +%Y-%m-%dT%H:%M:%SZ)&until=$(date +%s)"
for wrong in since=yesterday until=1e9 step=0 step=10ms 'since=-1m&until=-2m' limit=5000 limit=x cgroup=x colour=red since=; do
	expect "refused-$wrong" 400 "/v1/history?$wrong"
done
expect unknown-cgroup 404 '/v1/history?cgroup=/nobody'
"$JOULECTL" history --socket "$sock" --since -1m >"$work/table" 2>&1
check ctl-history grep -q 'machine J' "$work/table"
"$JOULECTL" history --socket "$sock" --since -1m "$path" >"$work/lines" 2>&1
check ctl-history-cgroup grep -qE '^20[0-9-]* [0-9:]* [A-Z0-9+-]+ +[0-9.]+ +[0-9.]+' "$work/lines"
# sums: the parts are the whole, in every form
"$JOULECTL" history --socket "$sock" --since -10m --by slice --csv --price 0.32 --carbon 350 >"$work/by.csv" 2>&1
"$JOULECTL" history --socket "$sock" --since -10m --by slice --price 0.32 --carbon 350 >"$work/by" 2>&1
"$JOULECTL" history --socket "$sock" --since -1m --csv >"$work/steps.csv" 2>&1
check ctl-history-sums python3 $here/history.py sums "$work/by.csv" "$work/by"
check ctl-history-total grep -qE '^total +[0-9.]+' "$work/table"
check ctl-history-csv grep -qE '^20[0-9-]*T[0-9:]*Z,[0-9]+,' "$work/steps.csv"
"$JOULECTL" history --socket "$sock" --by hour >"$work/hours" 2>&1
check ctl-history-hours grep -qE ' 20[0-9-]* [0-9]{2}:00 [+-][0-9]{4}$' "$work/hours"
"$JOULECTL" history --socket "$sock" --by hour --csv "$path" >"$work/hours.csv" 2>&1
check ctl-history-hours-of-one python3 $here/history.py hours "$work/hours.csv"
"$JOULECTL" history --socket "$sock" --by decade >"$work/decade" 2>&1
check ctl-history-by-wrong test $? = 2
"$JOULECTL" history --socket "$sock" --carbon "$work/nowhere" >"$work/nowhere.err" 2>&1
check ctl-history-carbon-wrong grep -q 'carbon .*nowhere: No such file' "$work/nowhere.err"
# shellcheck disable=SC2086 # a list
kill -9 $workers
# shellcheck disable=SC2086
wait $workers 2>/dev/null
gone() {
	find "$steps" -depth -type d -exec rmdir {} + 2>/dev/null
	[ ! -d "$steps" ]
}
# at rest for some intervals first: its end is then in no row that used something, and its last use in a second not yet written
sleep 0.3
check job-gone wait_until 100 gone
list_job() {
	"$JOULECTL" list --socket "$sock" --job "$job" "$@"
}
job_ended() {
	list_job >"$work/job" 2>&1 && [ "$(grep -c '(ended)$' "$work/job")" = 3 ]
}
check ctl-list-job wait_until 100 job_ended
list_job --csv >"$work/job.csv"
ask job "/v1/history?since=-24h&step=10m&limit=1000"
# a longer time has the same: a coarser step costs no energy
list_job --csv --since -30d >"$work/job-30d.csv"
check ctl-list-job-since cmp "$work/job.csv" "$work/job-30d.csv"
check ctl-list-job-sum python3 $here/history.py job "$work/job.csv" "$work/job" "$job"
"$JOULECTL" history --socket "$sock" --since -24h --by job --csv >"$work/by-job.csv"
check ctl-history-by-job python3 $here/history.py by_job "$work/job.csv" "$work/by-job.csv" "$job"
expect job-unknown 404 "/v1/history?job=1&since=-1m"
expect job-wrong 400 "/v1/history?job=01"
expect job-and-cgroup 400 "/v1/history?job=1&cgroup=/x"
check state-ok test "$(figure state)" = ok

# Counters never go back, whenever it is killed: what was shown is on disk.
went_back=
n=0
while [ $n -lt "$KILLS" ]; do
	ask "before" /metrics
	stop KILL
	begin again || went_back="no answer after $n kills: $(said again)"
	ask "after" /metrics
	python3 $here/history.py monotonic "$work/before" "$work/after" >"$work/back.out" 2>&1 || went_back="after $n kills: $(tail -n 1 "$work/back.out")"
	[ -z "$went_back" ] || break
	n=$((n + 1))
done
[ -z "$went_back" ] && ok "killed-$KILLS" || fail killed "$went_back"
ask lost "/v1/history?since=-10m"
check killed-is-said python3 $here/history.py lost "$work/lost" 'jouled was killed'
list_job --csv >"$work/job-after.csv"
check ctl-list-job-kept cmp "$work/job.csv" "$work/job-after.csv"
check killed-before test "$(figure killed_before)" = True
stop
before=$(sqlite3 "$work/state/history.db" 'PRAGMA integrity_check' 2>/dev/null || echo ok)
check file-is-whole test "$before" = ok

# The history alone decides whether an answer is too much: an hour of seconds of 1000 cgroups is told at each call,
# and a time of any length fits a screen.
check filled python3 $here/history.py fill "$work/state/history.db" 3500 1000
begin filled
for call in 1 2 3; do
	expect "much-$call" 200 '/v1/history?since=-1h&limit=8'
	check "much-$call-step" python3 $here/history.py step "$work/much-$call" 1 3400
done
# Several at once, one of which leaves in the middle: each of the others is answered.
asked=
for call in 1 2 3 4; do
	curl -s --max-time 60 --unix-socket "$sock" -o "$work/beside-$call" -w '%{http_code}' 'http://jouled/v1/history?since=-1h&limit=8' >"$work/beside-$call.code" &
	asked="$asked $!"
done
curl -s --max-time 0.05 --unix-socket "$sock" -o /dev/null 'http://jouled/v1/history?since=-1h&limit=8'
for pid in $asked; do
	wait "$pid"
done
for call in 1 2 3 4; do
	check "beside-$call" test "$(cat "$work/beside-$call.code")" = 200
done
until=$(($(date +%s) - 5)) # what is younger may still be on its way to the disk
for call in 1 2 3; do
	"$JOULECTL" plot --socket "$sock" --since $((until - 3500)) --until "$until" -o "$work/picture-$call.svg" 2>"$work/picture.err"
done
check pictures-are-one cmp "$work/picture-1.svg" "$work/picture-2.svg"
check pictures-are-three cmp "$work/picture-1.svg" "$work/picture-3.svg"
for since in 100s 10m 50m 30h; do
	"$JOULECTL" history --socket "$sock" --since "-$since" >"$work/lines" 2>&1
	lines=$(grep -c '^20.*[0-9][~? ]$' "$work/lines")
	check "lines-$since" test "$lines" -ge 1 -a "$lines" -le 31
done
"$JOULECTL" history --socket "$sock" --since -100s --step 1s >"$work/lines" 2>&1
check lines-as-asked test "$(grep -c '^20.*[0-9][~? ]$' "$work/lines")" -ge 60
stop

# A file that is none, and one of a later version.
echo "this is not a database, and long enough to be looked at" >"$work/state/history.db"
rm -f "$work/state/history.db-wal" "$work/state/history.db-shm"
begin broken
check broken-is-said grep -q 'it is now .*\.old, a new one has begun' "$work/broken.err"
check broken-is-kept sh -c "grep -q 'not a database' \"$work\"/state/history.db.*.old"
check broken-goes-on test "$(figure state)" = ok
stop

# off, and where nothing can be written: measuring goes on.
printf 'history: off\n' >"$work/off.yaml"
begin off -c "$work/off.yaml"
expect off-history 404 /v1/history
check off-state test "$(figure state)" = off
stop
printf 'history: { path: /proc/nowhere/history.db }\n' >"$work/nowhere.yaml"
begin nowhere -c "$work/nowhere.yaml"
check nowhere-is-said grep -q 'history /proc/nowhere/history.db: .*; .*' "$work/nowhere.err"
check nowhere-state test "$(figure state)" = off
stop

# A full disk: it is said, intervals are on time, and what comes after it is kept. The log of the database grows to 4 MB before it is
# emptied: on a smaller disk it would take all of the room itself, and what the ballast gives back would not be enough.
mkdir "$work/small"
trap 'umount "$work/small" 2>/dev/null; cleanup' EXIT
if mount -t tmpfs -o size=16m tmpfs "$work/small" 2>/dev/null; then
	printf 'history: { path: %s/history.db }\n' "$work/small" >"$work/small.yaml"
	begin full -c "$work/small.yaml"
	head -c 16m /dev/zero >"$work/small/ballast" 2>/dev/null
	failing() { [ "$(figure state)" = failing ]; }
	works() { [ "$(figure state)" = ok ]; }
	if wait_until 150 failing; then ok full-is-seen; else fail full-is-seen "$(figure state)"; fi
	check full-is-named test "$(figure reason | grep -c full)" = 1
	expect full-measures 200 /v1/snapshot
	number() {
		ask number /v1/snapshot && sed -n 's/.*"number":\([0-9]*\).*/\1/p' "$work/number"
	}
	first=$(number)
	ten_more() {
		[ "$(number)" -ge $((first + 10)) ]
	}
	check full-goes-on wait_until 100 ten_more
	failing && ok full-stays || fail full-stays "$(figure state)"
	rm "$work/small/ballast"
	if wait_until 150 works; then ok full-recovers; else fail full-recovers "$(figure reason)"; fi
	stop
	umount "$work/small"
else
	skip history-full "tmpfs cannot be mounted here"
fi
finish
