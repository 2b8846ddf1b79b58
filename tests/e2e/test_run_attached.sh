#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# joulectl run --pid and --cgroup: what already runs.
. tests/e2e/lib.sh
need_root
JOULECTL=${JOULECTL:-$B/joulectl}
unset JOULED_SOCKET
sock=$work/jouled.sock
export TMPDIR="$work"

check() {
	name=$1
	shift
	if "$@" >"$work/check.out" 2>&1; then
		ok "$name"
	else
		fail "$name" "$(tail -n 1 "$work/check.out" | head -c 300)"
	fi
}

# measure NAME ARGUMENT...: stdout, stderr, JSON in $work/NAME.{out,err,json}, $status.
measure() {
	measured=$1
	shift
	timeout 120 "$JOULECTL" run --socket "$sock" --json -o "$work/$measured.json" "$@" >"$work/$measured.out" 2>"$work/$measured.err"
	status=$?
}

# has NAME EXPRESSION: status 0, and it is true of the object d.
has() {
	if [ "$status" != 0 ]; then
		fail "$1" "exit status $status: $(head -c 200 "$work/$measured.err" | tr '\n' '|')"
	else
		check "$1" python3 $here/run_verb.py has "$work/$measured.json" "$2"
	fi
}

# refused NAME WORDS ARGUMENT...: a wrong use, of which the one line on stderr has the words.
refused() {
	name=$1 words=$2
	shift 2
	"$JOULECTL" run --socket "$sock" "$@" >"$work/refused.out" 2>"$work/refused.err"
	status=$?
	if [ $status -eq 2 ] && [ "$(wc -l <"$work/refused.err")" = 1 ] && grep -q -e "$words" "$work/refused.err"; then
		ok "$name"
	else
		fail "$name" "exit status $status: $(head -c 200 "$work/refused.err" | tr '\n' '|')"
	fi
}

# spin_in CGROUP: as spin; it is there when this returns.
spin_in() {
	spin "$1"
	wait_until 100 grep -qx "$spinner" "$1/cgroup.procs"
}

# It has found its subject, and takes signals.
watches() {
	grep -q sigmask "/proc/$1/fdinfo"/* 2>/dev/null
}

start agent -i 1s --idle own -o null: --socket "$sock"
agent=$!
wait_until 300 listens "$sock" || fail agent-socket "$(said agent)"

make_cgroup watched
top=$cgroup
make_cgroup watched/below
spin_in "$cgroup"
inside=$spinner
path=/${top##*/}

# The cgroup itself has no process. What its sum has is of those below it, also of one that ends meanwhile.
measure below --cgroup "$path" -d 400ms
has cgroup-counts-what-is-below 'd["by"] == "rows" and d["cgroup"] == "'"$path"'" and d["until"] == "duration" and 0 < d["cpu_ns"] and d["wall_ns"] >= 4e8 and d["share"] == 1 and "pid" not in d and "exit_status" not in d and "user_ns" not in d and "memory_peak_bytes" not in d'
kill "$inside"
wait "$inside" 2>/dev/null
wait_until 100 rmdir "$top/below"
measure quiet --cgroup "$path" -d 100ms
has cgroup-difference-only 'd["cpu_ns"] < 2e7'
make_cgroup watched/short
"$JOULECTL" run --socket "$sock" --json -o "$work/ended.json" --cgroup "$path/" 2>"$work/ended.err" &
ctl=$!
wait_until 100 watches $ctl
sh -c 'echo $$ >"$1/cgroup.procs"; exec python3 "$2" burn 3' - "$cgroup" "$here/run_verb.py"
wait_until 100 rmdir "$cgroup"
kill -TERM $ctl
wait $ctl
status=$? measured=ended
has cgroup-ended-counted 'd["cpu_ns"] >= 2.5e9'

# Alone in its cgroup a process has the whole row, with a neighbour its part of it.
make_cgroup alone
spin_in "$cgroup"
one=$spinner
# The clock of the process and the reading are a moment apart, in which a busy machine may do much.
by_row() {
	measure "$1" --pid "$one" -d 400ms
	[ "$status" = 0 ] && grep -q '"by":"row"' "$work/$1.json"
}
wait_until 2 by_row row
has pid-alone-has-the-row 'd["by"] == "row" and d["share"] == 1 and d["pid"] == '"$one"' and d["cpu_ns"] > 0 and "switches" in d'
alone=$cgroup
make_cgroup alone/below
spin_in "$cgroup"
wait_until 2 by_row parent
has pid-without-the-cgroups-below 'd["by"] == "row"'
kill "$spinner"
wait "$spinner" 2>/dev/null
wait_until 100 rmdir "$cgroup"
cgroup=$alone
spin_in "$cgroup"
two=$spinner
measure share --pid "$one" -d 1s
has pid-with-neighbour-has-a-share 'd["by"] == "cpu-share" and 0.05 < d["share"] < 0.95 and d["cpu_ns"] > 0 and d["quality"] in ("estimated", "partial", "lost") and all(q != "measured" for q in d["energy_quality"].values()) and "network" not in d and "switches" not in d'
"$JOULECTL" run --socket "$sock" --pid "$one" -d 200ms 2>"$work/text.err"
check pid-text-says-which grep -q "% of the row of cgroup /${cgroup##*/}, the process's part of the CPU time there: estimated" "$work/text.err"
"$JOULECTL" run --socket "$sock" --pid "$one" -d 200ms --csv -o - >"$work/share.csv" 2>"$work/csv.err"
check csv-says-which python3 -c 'import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="")))
assert len(rows) == 1 and None not in rows[0] and None not in rows[0].values(), rows
r = rows[0]
assert r["pid"] == sys.argv[2] and r["by"] == "cpu-share" and 0 < float(r["share"]) < 1 and r["until"] == "duration", r
assert r["exit_status"] == r["user_ns"] == r["memory_peak_bytes"] == "" and int(r["cpu_ns"]) > 0, r' "$work/share.csv" "$one"

# Without a duration: until it ends, or until Ctrl-C.
"$JOULECTL" run --socket "$sock" --json -o "$work/until.json" --pid "$two" 2>"$work/until.err" &
ctl=$!
wait_until 100 watches $ctl
kill "$two"
wait $ctl
status=$? measured=until
has pid-until-its-end 'd["until"] == "end" and d["pid"] == '"$two"
"$JOULECTL" run --socket "$sock" --json -o "$work/signal.json" --cgroup "/${cgroup##*/}" 2>"$work/signal.err" &
ctl=$!
wait_until 100 watches $ctl
kill -TERM $ctl
wait $ctl
status=$? measured=signal
has cgroup-until-a-signal 'd["until"] == "signal" and d["cpu_ns"] >= 0'
kill "$one"

refused pid-no-command "leave the command 'sleep' out" --pid 1 sleep 1
refused pid-no-vs '--vs: it is for commands' --pid 1 --vs true
refused pid-no-gate '--fail: it is for commands' --cgroup / --fail 2%
refused pid-and-cgroup 'only one of them' --pid 1 --cgroup /
refused duration-alone '--duration: a command has its own time' -d 3s true
refused duration-wrong '--duration 3: not from 10ms' --pid 1 -d 3
refused pid-wrong '--pid' --pid 0
refused cgroup-wrong 'no path below the mount' --cgroup below
for what in "pid 4194000 no.such.process" "cgroup /jouled-e2e-nowhere there.is.none"; do
	set -- $what
	"$JOULECTL" run --socket "$sock" "--$1" "$2" -d 1s 2>"$work/none.err"
	status=$?
	if [ $status -eq 125 ] && grep -q "$3" "$work/none.err"; then
		ok "$1-that-is-not-there"
	else
		fail "$1-that-is-not-there" "exit status $status: $(head -c 200 "$work/none.err")"
	fi
done

kill "$agent"
finish
