#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Output that could not be written or delivered is told in one line and by an exit status of its own: jouled's outputs of every
# kind, and every verb of joulectl with its standard output on a full disk. A replay waits for its readers, and a listener
# ends when they have all.
. tests/e2e/lib.sh
need_root
JOULECTL=${JOULECTL:-$B/joulectl}
LOST=3

# errors NAME: how many error lines it said.
errors() {
	grep -c ': error: ' "$work/$1.err"
}

# lost NAME PATTERN ARGUMENT...: jouled with these ends with the status of a loss, and one error line like PATTERN.
lost() {
	name=$1 pattern=$2
	shift 2
	run "$name" "$@"
	if [ $status -eq $LOST ] && [ "$(errors "$name")" -eq 1 ] && grep -q "error: .*$pattern" "$work/$name.err"; then
		ok "$name"
	else
		fail "$name" "exit status $status, not $LOST, or not one error of '$pattern': $(said "$name")"
	fi
}

# whole NAME ARGUMENT...: it ends with 0 and no error.
whole() {
	name=$1
	shift
	run "$name" "$@"
	if [ $status -eq 0 ] && [ "$(errors "$name")" -eq 0 ]; then ok "$name"; else fail "$name" "exit status $status: $(said "$name")"; fi
}

mkdir "$work/state"
whole lost-nothing -n 3 -i 50ms -o "snapshot=file://$work/rec.cbor" -o "power=file://$work/live.json" -o null: -o power=stdout: \
	-o "vjoule=unix-listen://$work/idle.sock"
whole lost-nothing-long -n 200 -i 10ms -q -o "snapshot=file://$work/long.cbor"
for to in file:///dev/full tcp://127.0.0.1:1 "unix://$work/nobody.sock"; do
	lost "lost-$(echo "$to" | cut -d: -f1)" '3 of 3 documents lost: .*; ' -n 3 -i 50ms -q -o "power=$to"
done
lost lost-one-of-two 'output file:///dev/full: 2 of 2 documents lost: No space left on device; make room there, or write elsewhere' -n 2 -i 50ms -q \
	-o "power=file://$work/two.json" -o power=file:///dev/full
"$JOULED" --socket none --state-dir "$work/state" -n 2 -i 50ms -q -o power=stdout: >/dev/full 2>"$work/full.err"
status=$?
[ $status -eq $LOST ] && [ "$(errors full)" -eq 1 ] && ok lost-stdout || fail lost-stdout "exit status $status: $(said full)"
for word in --help --version doctor; do
	"$JOULED" $word >/dev/full 2>"$work/full.err"
	status=$?
	[ $status -eq $LOST ] && [ "$(errors full)" -eq 1 ] && ok "lost-jouled-$word" || fail "lost-jouled-$word" "exit status $status: $(said full)"
done
# limits of the process: told as what they are, not as a lack of memory, and no signal ends the agent
prlimit --fsize=1000 "$JOULED" --socket none --state-dir "$work/state" -n 2 -i 50ms -q -o "snapshot=file://$work/limit.cbor" 2>"$work/fsize.err"
status=$?
[ $status -eq $LOST ] && grep -q 'limit.cbor: 2 of 2 documents lost: File too large; raise the limit of the size of files' "$work/fsize.err" &&
	ok lost-file-limit || fail lost-file-limit "exit status $status: $(said fsize)"
for n in 64 40 30 28 26 24 22 20; do
	prlimit --nofile=$n:$n --memlock=0 "$JOULED" --socket "$work/limit.sock" --state-dir "$work/state" -n 2 -i 50ms -o null: 2>"$work/nofile.err"
	status=$?
	# how many it needs depends on what this shell has open; 24 are too few
	[ $status -eq 0 ] && [ $n -gt 24 ] && ok "descriptors-$n" && continue
	[ $status -eq 1 ] && [ "$(errors nofile)" -eq 1 ] && grep -q 'error: .*Too many open files; raise the limit of open files' "$work/nofile.err" &&
		! grep -q 'allocate memory' "$work/nofile.err" && ok "descriptors-$n" || fail "descriptors-$n" "exit status $status: $(said nofile)"
done
# a reader that leaves has what it wanted
{
	"$JOULED" --socket none --state-dir "$work/state" -i 50ms -q -o power=stdout: 2>"$work/head.err"
	echo $? >"$work/head.status"
} | head -n 1 >/dev/null
[ "$(cat "$work/head.status")" = 0 ] && [ ! -s "$work/head.err" ] && ok reader-left || fail reader-left "$(cat "$work/head.status"): $(said head)"

# A replay.
whole replay-file --replay "$work/rec.cbor" -o "power=file://$work/replay.json"
whole replay-file-long --replay "$work/long.cbor" -o "power=file://$work/long.json"
lost replay-full 'documents lost: No space left' --replay "$work/rec.cbor" -o power=file:///dev/full
lost replay-no-client '3 of 3 documents lost: no client came; .*wait=' --replay "$work/rec.cbor" -o 'vjoule=tcp-listen://127.0.0.1:0?wait=200ms'
lost replay-no-receiver '3 of 3 documents lost: ' --replay "$work/rec.cbor" -o 'power=tcp://127.0.0.1:1?wait=200ms'
for wrong in power=stdout:?wait=1s "power=file://$work/x?wait=1s" null:?wait=1s power=tcp://127.0.0.1:1?wait=x power=tcp://127.0.0.1:1?wait=1s \
	"zico=file://$work/x --replay $work/rec.cbor" "openmetrics=http-listen://127.0.0.1:0 --replay $work/rec.cbor"; do
	# shellcheck disable=SC2086 # an option may follow
	run wrong --check -o $wrong
	[ $status -eq 2 ] && [ "$(wc -l <"$work/wrong.err")" -eq 1 ] || bad="${bad:-} $wrong:$status"
done
printf 'outputs: [ { format: power, to: "tcp-listen://127.0.0.1:0", wait: 2m } ]\n' >"$work/wait.yaml"
run wrong --check -c "$work/wait.yaml" --replay "$work/rec.cbor"
[ $status -eq 0 ] || bad="${bad:-} yaml:$status"
[ -z "${bad:-}" ] && ok wait-checked || fail wait-checked "$bad $(said wrong)"

# The client comes when it is asked for, leaves late, and reads slowly: the same bytes as into a file.
reason=$(python3 $here/lost.py "$JOULED" "$work" 2>&1) && ok replay-waits || fail replay-waits "$(echo "$reason" | tail -n 1)"
echo "$reason" | grep '^# '

# Every verb.
printf 'spans: { processes: true }\noutputs: [ { format: hwpc, to: "file://%s/agent.json" } ]\n' "$work" >"$work/agent.yaml"
start agent -c "$work/agent.yaml" -i 100ms --socket "$work/sock"
export JOULED_SOCKET="$work/sock"
answers() {
	curl -s --max-time 5 --unix-socket "$work/sock" -o "$work/answer" "http://jouled$1" && [ -s "$work/answer" ] && ! grep -q '"error"' "$work/answer"
}
ended_traces() {
	sh -c 'sleep 0.01; true'
	answers '/v1/spans?limit=5' && grep -q '"trace"' "$work/answer"
}
wait_until 300 answers '/v1/history?since=-10s' && wait_until 300 answers /v1/snapshot && wait_until 300 ended_traces ||
	fail agent "$(said agent) $(head -c 200 "$work/answer")"
python3 $here/report_trees.py good "$work/tree" >/dev/null || fail tree "no tree"

# verb NAME ARGUMENT...: to a full disk; to a file it must work, so that the one is not another failure's status.
verb() {
	name=verb-$(echo "$*" | tr ' /' '--' | cut -c1-40)
	"$JOULECTL" "$@" >"$work/verb.out" 2>"$work/verb.err"
	good=$?
	"$JOULECTL" "$@" >/dev/full 2>"$work/verb.err"
	status=$?
	if [ $good -eq 0 ] && [ -s "$work/verb.out" ] && [ $status -eq $LOST ] && [ "$(errors verb)" -eq 1 ]; then
		ok "$name"
	else
		fail "$name" "exit status $status (to a file $good): $(said verb)"
	fi
}
verb list
verb list --json
verb status
verb status --json
verb history --since -10s
verb history --since -10s --json
verb stream -n 2
verb stream -n 2 -f cbor
verb stream -n 2 -f table
verb top -n 2
verb top -n 2 --json
verb plot --since -10s
verb decode "$work/rec.cbor"
verb decode --json "$work/rec.cbor"
verb spans
verb spans --json
verb flame
verb report "$work/tree"
verb report --json "$work/tree"
verb report --csv "$work/tree"
verb check "$work/tree"
verb check --json "$work/tree"
verb --help
verb --version
verb --completion list
verb list --help
"$JOULECTL" plot --since -10s -o /dev/full >"$work/verb.out" 2>"$work/verb.err"
status=$?
[ $status -eq $LOST ] && [ "$(errors verb)" -eq 1 ] && ok verb-plot-file || fail verb-plot-file "exit status $status: $(said verb)"
"$JOULECTL" run -o - -- true >/dev/full 2>"$work/verb.err"
status=$?
[ $status -eq 125 ] && [ "$(errors verb)" -eq 1 ] && ok verb-run || fail verb-run "exit status $status, not 125: $(said verb)"
(
	trap '' PIPE
	"$JOULECTL" list 2>"$work/verb.err"
	echo $? >"$work/verb.status"
) | true
[ "$(cat "$work/verb.status")" = 0 ] && [ ! -s "$work/verb.err" ] && ok verb-reader-left || fail verb-reader-left "$(cat "$work/verb.status"): $(said verb)"
finish
