#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# joulectl run: figures, exit statuses, signals, and that nothing is left behind.
. tests/e2e/lib.sh
need_root
JOULECTL=${JOULECTL:-$B/joulectl}
unset JOULED_SOCKET
sock=$work/jouled.sock
root=$(cgroup2)
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

# A process that is waited for on another CPU has rusage without its time since the scheduler's last update.
one_cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')

# measure NAME ARGUMENT...: the running agent; stdout, stderr, JSON in $work/NAME.{out,err,json}, $status.
measure() {
	measured=$1
	shift
	timeout 300 taskset -c "$one_cpu" "$JOULECTL" run --socket "$sock" --json -o "$work/$measured.json" "$@" >"$work/$measured.out" 2>"$work/$measured.err"
	status=$?
}

expect_status() {
	if [ "$status" = "$2" ]; then
		ok "$1"
	else
		fail "$1" "exit status $status instead of $2: $(head -c 200 "$work/$measured.err" | tr '\n' '|')"
	fi
}

has() {
	check "$1" python3 $here/run_verb.py has "$work/$measured.json" "$2"
}

cpu() {
	check "$1" python3 $here/run_verb.py cpu "$work/$measured.json"
}

nothing_left() {
	[ -z "$(find "$root" -maxdepth 2 -name 'jouled-run-*' 2>/dev/null | grep "jouled-run-$1-")" ] &&
		[ -z "$(find "$work" -maxdepth 1 -name 'jouled-??????')" ]
}

# With nobody to ask: an agent of its own, gone afterwards.
taskset -c "$one_cpu" "$JOULECTL" run --private --json -o "$work/private.json" -- sleep 1 >"$work/private.out" 2>"$work/private.err"
status=$?
measured=private
expect_status private 0
has private-figures 'd["agent"] == "private" and 1e9 <= d["wall_ns"] and 0 < d["cpu_ns"] < 1e8'
check private-said grep -q 'starting a private agent' "$work/private.err"
check private-nothing-left nothing_left ''
cpu private-cpu

# Counters of the machine may be in use by other programs.
printf 'weight: time\nrapl: none\nevents: { core: [TASK_CLOCK], msr: [] }\nestimate-idle-watts: 1.5\nestimate-max-watts: 8\n' >"$work/config.yaml"
start agent -c "$work/config.yaml" --socket "$sock" -o null:
wait_until 100 listens "$sock" || fail agent "no socket: $(said agent)"

measure sleep -- sleep 1
expect_status sleep 0
has sleep-figures 'd["agent"] == "running" and 1e9 <= d["wall_ns"] and 0 < d["cpu_ns"] < 1e8 and d["memory_peak_bytes"] > 1e5'
"$JOULECTL" run --socket "$sock" -- true >"$work/text.out" 2>"$work/text.err"
check text-estimated grep -qx ' Energy is estimated here, not measured: no energy counter here; from busy time per core\.' "$work/text.err"
# A caller that ignores SIGCHLD: its children have their status all the same.
for verb in run profile; do
	# shellcheck disable=SC2016 # perl's
	timeout 300 perl -e '$SIG{CHLD} = "IGNORE"; exec @ARGV' "$JOULECTL" $verb --socket "$sock" -- sh -c 'exit 3' >"$work/ignored.out" 2>"$work/ignored.err"
	status=$?
	measured=ignored
	expect_status ignored-children-$verb 3
done
measure exit -- sh -c 'exit 3'
expect_status exit 3
has exit-figures 'd["exit_status"] == 3 and 0 < d["cpu_ns"] < 1e8 and "signal" not in d and d["command"] == ["sh", "-c", "exit 3"]'
measure short -- sh -c 'i=0; while [ $i -lt 2000 ]; do /bin/true; i=$((i+1)); done'
expect_status short 0
cpu short-cpu
has short-figures 'd["switches"] > 0 and d["quality"] == "estimated" and d["counters_quality"] == "measured" and d["counters"] == {"TASK_CLOCK": d["cpu_ns"]}'
measure pipeline -- sh -c 'yes | head -c 20000000 | wc -c; exit 4'
expect_status pipeline 4
check pipeline-stdout grep -qx 20000000 "$work/pipeline.out"
cpu pipeline-cpu
measure missing -- ./no/such/command
expect_status missing 127
has missing-said 'd["exit_status"] == 127 and "No such file" in d["error"] and "energy_uj" not in d and "cpu_ns" not in d'
measure denied -- /etc/passwd
expect_status denied 126
# shellcheck disable=SC2016 # its own pid
measure killed -- sh -c 'kill -9 $$'
expect_status killed 137
has killed-figures 'd["signal"] == 9 and d["cpu_ns"] > 0'
measure own-words echo --json -r 5 -- -o
check own-words grep -qx -e '--json -r 5 -- -o' "$work/own-words.out"

# The work of joulectl to start the command is not counted: a search through 40000 absent directories of PATH costs a
# hundred times `true`.
long=$(awk 'BEGIN { for (i = 0; i < 40000; i++) printf "/~:" }')$PATH
cat >"$work/with-path" <<'END'
#!/bin/sh
PATH=$(cat "${0%/*}/path") exec "$@"
END
echo "$long" >"$work/path"
chmod +x "$work/with-path"
for named in true /bin/true; do
	"$work/with-path" "$(realpath "$JOULECTL")" run --socket "$sock" --json -r 5 -o "$work/search-${named##*/}-${#named}.json" -- "$named"
done
check search-not-counted python3 $here/run_verb.py alike "$work/search-true-4.json" "$work/search-true-9.json"
measure burn -- python3 $here/run_verb.py burn 0.5
expect_status burn 0
cpu burn-cpu
check burn-energy python3 $here/run_verb.py energy "$work/burn.json" 6.5
measure many -r 5 -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'
expect_status many 0
cpu many-cpu
check many-statistics python3 $here/run_verb.py statistics "$work/many.json" 5
measure some-fail -r 3 -- sh -c "echo >>$work/tries; [ \$(wc -l <$work/tries) -ne 2 ] || exit 6"
expect_status some-fail 6
has some-fail-runs '[r["exit_status"] for r in d["runs"]] == [0, 6, 0]'
"$JOULECTL" run --socket "$sock" --csv -r 2 -o - true >"$work/csv" 2>&1
check csv awk -F, 'NR == 1 { n = NF; if ($1 != "run") exit 1 } NF != n { exit 1 } END { exit NR != 3 }' "$work/csv"
"$JOULECTL" run --socket "$sock" true 2>"$work/text"
check text grep -q 'package-0  *[0-9.]* m\{0,1\}W .*estimated' "$work/text"
check text-idle grep -q 'not included (idle: own' "$work/text"

# A cgroup that the command made, used and removed.
# shellcheck disable=SC2016
measure child -- sh -c 'd=$1$(sed -n s/^0:://p /proc/self/cgroup); mkdir "$d/kid"; (sh -c "echo \$PPID" >"$d/kid/cgroup.procs"
	i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done); rmdir "$d/kid"' sh "$root"
expect_status child 0
cpu child-cpu
has child-figures 'd["cpu_ns"] > 3e7'

# Daemons outlive it, the cgroup does not.
measure daemon -- sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!'
expect_status daemon 0
agents="$agents $(cat "$work/daemon.out")"
has daemon-named 'd["left_running"] == 1 and d["left"][0]["name"] in ("sleep", "sh")'
check daemon-lives kill -0 "$(cat "$work/daemon.out")"
check daemon-cgroup nothing_left ''

# A signal sent to joulectl reaches the command; no further run follows.
: >"$work/term.out"
"$JOULECTL" run --socket "$sock" -r 9 --json -o "$work/term.json" -- \
	sh -c 'trap "exit 7" TERM; echo ready; while :; do sleep 0.1; done' >"$work/term.out" 2>"$work/term.err" &
runner=$!
agents="$agents $runner"
wait_until 100 grep -q ready "$work/term.out"
kill -TERM $runner
wait $runner
status=$?
measured=term
expect_status forwarded 7
has forwarded-once 'd["exit_status"] == 7 and "runs" not in d'
check terminal python3 $here/run_verb.py terminal "$JOULECTL" run --socket "$sock" --

# After a SIGKILL only the helper processes can clean up.
"$JOULECTL" run --private -- sh -c 'echo ready; exec sleep 1000' >"$work/kill.out" 2>/dev/null &
runner=$!
wait_until 200 grep -q ready "$work/kill.out"
private=$(pgrep -f "^jouled --socket $work/jouled-") || fail kill-setup "no private agent"
left=$(cat "$root/jouled-run-$runner-1/cgroup.procs")
agents="$agents $left"
kill -9 $runner
wait $runner 2>/dev/null
check kill-cgroup wait_until 100 nothing_left $runner
check kill-agent wait_until 100 gone "$private"
check kill-command-lives kill -0 "$left"

measure policy --idle by-time -- true
expect_status policy 0
check policy-said grep -q 'has idle own, not by-time; starting a private agent' "$work/policy.err"
has policy-taken 'd["idle"] == "by-time" and d["agent"] == "private"'

# Others: a cgroup that is delegated, and the way to one.
cp "$JOULECTL" "$work/joulectl"
chmod 666 "$sock"
cat >"$work/passwd-less" <<'END'
exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
END
grep -q . "$work/passwd-less"
sh "$work/passwd-less" "$work/joulectl" run --socket "$sock" -- true >"$work/other.out" 2>"$work/other.err"
status=$?
measured=other
expect_status not-in-the-group 125
check not-in-the-group-said grep -q 'ask the administrator\|not for your user' "$work/other.err"
kill -TERM $agent
ended 100 $agent
printf 'socket: { group: nogroup }\ncgroups: { exclude: ["/jouled-run-*"] }\n' >"$work/group.yaml"
start group -c "$work/group.yaml" --socket "$sock" -o null:
wait_until 100 listens "$sock" || fail agent "no socket: $(said group)"
sh "$work/passwd-less" "$work/joulectl" run --socket "$sock" -- true >"$work/other.out" 2>"$work/other.err"
status=$?
expect_status not-delegated 125
check not-delegated-said grep -q 'delegated.*systemd-run --user --scope' "$work/other.err"
make_cgroup delegated
chown 65534 "$cgroup" "$cgroup/cgroup.procs"
sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' sh "$cgroup" sh "$work/passwd-less" "$work/joulectl" run --socket "$sock" \
	--json -- sh -c 'exit 5' >"$work/mine.out" 2>"$work/mine.json"
status=$?
measured=mine
cp "$work/mine.json" "$work/mine.err"
expect_status delegated 5
has delegated-figures 'd["cpu_ns"] > 0 and "package-0" in d["energy_uj"]'

# An agent that does not report it says nothing, and that is said; the status stays the command's.
measure withheld -- sh -c 'exit 8'
expect_status withheld 8
has withheld-said '"cgroups.include" in d["error"] and "energy_uj" not in d and d["quality"] == "lost" and d["wall_ns"] > 0'

for wrong in '-r 0 true' '-r x true' '--idle none true' '--json --csv true' '--jsn true' ''; do
	# shellcheck disable=SC2086 # words
	"$JOULECTL" run $wrong >"$work/wrong.out" 2>"$work/wrong.err"
	status=$?
	measured=wrong
	expect_status "wrong $wrong" 2
done
"$JOULECTL" run --socket "$work/nobody" true 2>"$work/nobody.err"
status=$?
measured=nobody
expect_status named-socket-missing 125
"$JOULECTL" run --socket "$sock" -o /nowhere/x true 2>"$work/nowhere.err"
status=$?
measured=nowhere
expect_status output-missing 125
check nothing-left nothing_left ''
finish
