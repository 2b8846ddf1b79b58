#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# joulectl top, list, status, stream, doctor, help and completion: screens on pseudo-terminals (top_screens.py),
# then all of them beside a real agent.
. tests/e2e/lib.sh
JOULECTL=${JOULECTL:-$B/joulectl}
sock=$work/jouled.sock
unset JOULED_SOCKET

# ctl NAME ARGUMENT...: exit status in $status.
ctl() {
	ran=$1
	shift
	timeout 300 "$JOULECTL" "$@" >"$work/$ran.out" 2>"$work/$ran.err"
	status=$?
}

# expect NAME STATUS PATTERN ARGUMENT...: of the message on stderr.
expect() {
	name=$1
	want=$2
	pattern=$3
	shift 3
	ctl "$name" "$@"
	if [ $status -ne "$want" ]; then
		fail "$name" "exit $status: $(said "$name")"
	elif ! grep -q -- "$pattern" "$work/$name.err"; then
		fail "$name" "no '$pattern': $(said "$name")"
	else
		ok "$name"
	fi
}

python_with pyte
export PYTHONPATH=$here

expect no_agent 1 'no agent there; .*Start it' top --socket "$work/nobody"
expect no_agent_once 1 'no agent there; .*--socket' top --once --json --socket "$work/nobody"
for verb in list status stream; do
	expect "no_agent_$verb" 1 'no agent there; .*Start it' $verb --socket "$work/nobody"
done
expect unknown_verb 2 'did you mean stream' steam
expect unknown_option 2 'did you mean --interval' top --intervall 1s
expect unknown_column 2 'did you mean watts' top --sort wats
expect unknown_format 2 'one of json, cbor' stream --format xml
expect bad_interval 2 '10ms to 1h' top --interval 1ms
expect replay_interval 2 'a recording has intervals of its own' top --replay "$work/nothing" --interval 1s
expect bad_count 2 'not a number' stream --count 0

ctl help help
[ $status -eq 0 ] && grep -q '^Usage: joulectl VERB' "$work/help.out" && [ ! -s "$work/help.err" ] && ok help_word || fail help_word "exit $status: $(said help)"
ctl help_of help top
[ $status -eq 0 ] && grep -q '^Usage: joulectl top' "$work/help_of.out" && ok help_of_verb || fail help_of_verb "exit $status: $(said help_of)"
expect help_of_nothing 2 'did you mean top' help tip

for verb in $("$JOULECTL" --completion ""); do
	case $verb in --*) continue ;; esac
	ctl "help_$verb" "$verb" --help
	if [ $status -eq 0 ] && grep -q "^Usage: joulectl $verb" "$work/help_$verb.out" && [ ! -s "$work/help_$verb.err" ]; then
		ok "help_$verb"
	else
		fail "help_$verb" "exit $status: $(said "help_$verb")"
	fi
	grep -q "^@VERB $verb@" docs/man/joulectl.1.in || fail "manual_$verb" "joulectl(1) has no section of it"
done

# complete WORD...: what bash offers for the last word.
complete_words() {
	bash -c 'PATH=$1:$PATH; . deploy/completions/jouled.bash; shift; COMP_WORDS=(joulectl "$@"); COMP_CWORD=$#
_jouled; printf "%s " "${COMPREPLY[@]}"' complete "$(dirname "$JOULECTL")" "$@" 2>/dev/null
}
offers() {
	got=$(complete_words "$@")
	[ "$got" = "$want " ] || fail "complete_$*" "$got"
}
want="status stream" offers st
want="--sort --since --socket" offers top --s
want="watts" offers top --sort w
want="json" offers stream --format = j
want="cbor" offers stream -f c
want="deploy/deps.sh" offers top --replay deploy/deps
# jouled, and the same words in other shells
complete_jouled() {
	bash -c 'PATH=$1:$PATH; . deploy/completions/jouled.bash; shift; COMP_WORDS=(jouled "$@"); COMP_CWORD=$#
_jouled; printf "%s " "${COMPREPLY[@]}"' complete "$(dirname "$JOULECTL")" "$@" 2>/dev/null
}
same() {
	[ "$2" = "$3" ] && ok "$1" || fail "$1" "$2 is not $3"
}
same complete_jouled "$(complete_jouled --rapl p)" "powercap perf "
same complete_jouled_first "$(complete_jouled "doc")" "doctor "
in_zsh() {
	# shellcheck disable=SC2016
	PATH=$(dirname "$JOULECTL"):$PATH zsh -fc 'compdef() { :; }; compadd() { shift 2; print -r -- ${(P)1}; }
compset() { :; }; _files() { print FILES; }; . deploy/completions/jouled.zsh; words=("$@"); CURRENT=$#; _jouled' zsh "$@" 2>&1
}
in_fish() {
	PATH=$(dirname "$JOULECTL"):$PATH fish --no-config -c "source deploy/completions/jouled.fish; complete -C '$1'" 2>&1 | tr '\n' ' '
}
same complete_zsh "$(in_zsh joulectl st)" "status stream"
same complete_zsh_value "$(in_zsh joulectl stream --format=j)" "--format=json"
same complete_zsh_jouled "$(in_zsh jouled --rapl p)" "powercap perf"
same complete_zsh_file "$(in_zsh jouled --config '')" FILES
same complete_fish "$(in_fish 'joulectl st')" "status stream "
same complete_fish_value "$(in_fish 'joulectl stream --format=j')" "--format=json "
same complete_fish_jouled "$(in_fish 'jouled --rapl p')" "perf powercap "
ok completion

$python $here/top_screens.py "$JOULECTL" "$work" >"$work/screens" 2>&1
cat "$work/screens"
failures=$((failures + $(grep -c '^FAIL' "$work/screens")))
grep -q '^ok' "$work/screens" || fail top_screens "it did not run"

need_root
begin() {
	"$JOULED" --socket "$sock" --state-dir "$work/state" -o null: -i 200ms "$@" >"$work/agent.out" 2>"$work/agent.err" &
	agent=$!
	agents="$agents $agent"
	echo $agent >"$work/pid"
	wait_until 100 curl -sf --unix-socket "$sock" -o "$work/first" http://jouled/v1/snapshot || fail agent "$(head -c 300 "$work/agent.err")"
}
begin
make_cgroup top
spin "$cgroup"
shown=${cgroup##*/}

listed() {
	"$JOULECTL" list --socket "$sock" | grep -q "$shown"
}
wait_until 100 listed || fail list "no $shown"
ctl list list --socket "$sock" --limit 1 --sort energy
if [ $status -eq 0 ] && grep -q '= the machine' "$work/list.out" && grep -q 'more)' "$work/list.out"; then ok list; else
	fail list "$status: $(cat "$work/list.out" "$work/list.err")"
fi
if python3 tests/e2e/list_columns.py "$JOULECTL" "$work/told.sock" >"$work/told" 2>&1; then ok list_columns; else
	fail list_columns "$(tail -n 9 "$work/told")"
fi
ctl list_below list --socket "$sock" "$shown"
if [ "$(sed -n 2p "$work/list_below.out" | awk '{ print $NF }')" = "/$shown" ]; then ok list_below; else
	fail list_below "$(cat "$work/list_below.out" "$work/list_below.err")"
fi
# A cgroup that has ended at 0 W is summed in one line with others of its kind, and so are idle ones with --active.
gone=$(cgroup2)/jouled-e2e-$$-gone
mkdir "$gone" && sh -c 'echo $$ >"$1/cgroup.procs"; exec true' spin "$gone"
wait_until 50 rmdir "$gone"
has_gone() {
	"$JOULECTL" list --all --socket "$sock" | grep -q "/${gone##*/} (ended)"
}
if wait_until 100 has_gone; then ok list_all; else fail list_all "no ${gone##*/}"; fi
hides_gone() {
	"$JOULECTL" list --socket "$sock" >"$work/hides.out"
	grep -q 'ended; --all names them)$' "$work/hides.out" && ! grep -q "/${gone##*/}" "$work/hides.out"
}
if wait_until 100 hides_gone; then ok list_hides_ended; else fail list_hides_ended "$(head -n 8 "$work/hides.out")"; fi
# of the last interval, in which a busy machine may not have let the spinner run
lists_active() {
	"$JOULECTL" list --active --socket "$sock" >"$work/active"
	grep -q "$shown" "$work/active" && grep -q 'used nothing now; --all names them)$' "$work/active"
}
wait_until 50 lists_active && ok list_active || fail list_active "$(head -n 8 "$work/active")"
lists_csv() {
	"$JOULECTL" list --all --csv --socket "$sock" >"$work/list.csv" && python3 -c 'import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
one = {r["cgroup"]: r for r in rows}
joules = [k for k in rows[0] if k.endswith("_uj")]
assert joules and len(joules) == len([k for k in rows[0] if k.endswith("_w")]), rows[0]
assert int(one[sys.argv[2]][joules[0]]) > 0 and float(one[sys.argv[2]][joules[0][:-2] + "w"]) > 0, one[sys.argv[2]]
assert one[sys.argv[3]]["ended"] == "1" and "kernel" in one' "$work/list.csv" "/$shown" "/${gone##*/}" 2>"$work/csv.err"
}
if wait_until 50 lists_csv; then ok list_csv; else
	fail list_csv "$(tail -n 1 "$work/csv.err"); $(head -n 2 "$work/list.csv")"
fi
expect list_two_forms 2 'one of them' list --json --csv
expect list_unknown 1 'none of this path' list --socket "$sock" /no/such/cgroup
ctl status status --socket "$sock"
if [ $status -eq 0 ] && grep -q '^jouled .* on .*: up' "$work/status.out" && grep -q 'trigger ' "$work/status.out" &&
	grep -q "^History     ok; $work/state/history.db" "$work/status.out" &&
	! grep -q '^Losses.*mended' "$work/status.out" &&
	grep -q '^Itself .* in the kernel [0-9]* ns per switch' "$work/status.out"; then ok status; else
	fail status "$(cat "$work/status.out" "$work/status.err")"
fi
for verb in list status; do
	ctl ${verb}_json $verb --json --socket "$sock"
	if python3 -c 'import json, sys; json.load(open(sys.argv[1]))["sensor"]' "$work/${verb}_json.out"; then ok ${verb}_json; else
		fail ${verb}_json "$(head -c 300 "$work/${verb}_json.out")"
	fi
done

# The account of each interval, to the microjoule.
ctl ledger top --json -n 5 --socket "$sock"
if reason=$(python3 - "$work/ledger.out" <<'PY' 2>&1
import json, sys
docs = [json.loads(line) for line in open(sys.argv[1])]
assert len(docs) == 5, len(docs)
numbers = [d["number"] for d in docs]
assert numbers == sorted(set(numbers)), numbers
for doc in docs:
    assert doc["domains"], "no domain"
    for d in doc["domains"]:
        rows = sum(r["energy_uj"][d["name"]] for r in doc["rows"])
        assert rows + d["idle_uj"] + d["residual_uj"] == d["energy_uj"] > 0, (d, rows)
    assert {r["name"] for r in doc["rows"]} >= {"idle", "kernel", "irq+steal", "other"}
PY
); then ok ledger; else fail ledger "$reason"; fi

looks_once() {
	ctl once top --once --socket "$sock"
	[ $status -ne 0 ] || grep -q "/$shown\$" "$work/once.out"
}
if wait_until 50 looks_once && [ $status -eq 0 ] && [ "$(grep -c JOULES "$work/once.out")" = 1 ]; then ok once; else
	fail once "$status: $(cat "$work/once.out" "$work/once.err")"
fi
ctl stream stream -n 3 --socket "$sock"
if [ $status -eq 0 ] && [ "$(python3 -c 'import json, sys
for line in sys.stdin: json.loads(line)["rows"]; print("ok")' <"$work/stream.out" | wc -l)" = 3 ]; then ok stream; else
	fail stream "$status: $(said stream)"
fi
ctl record stream -f cbor -n 4 --socket "$sock"
ctl replayed top --replay "$work/record.out" --json
if [ $status -eq 0 ] && [ "$(wc -l <"$work/replayed.out")" = 4 ]; then ok stream_replayed; else
	fail stream_replayed "$status: $(said record) $(said replayed)"
fi
"$JOULECTL" stream --socket "$sock" 2>"$work/pipe.err" | head -c 10 >"$work/pipe.out"
if [ -s "$work/pipe.err" ]; then fail stream_pipe "$(said pipe)"; else ok stream_pipe; fi

ctl doctor doctor --rapl none
"$JOULED" doctor --rapl none >"$work/doctor.want" 2>/dev/null
if [ $status -eq $? ] && [ "$(head -n 1 "$work/doctor.out")" = "$(head -n 1 "$work/doctor.want")" ]; then ok doctor; else
	fail doctor "$status: $(said doctor)"
fi
ctl doctor_option doctor --no-such-option
if [ $status -ne 0 ] && grep -q 'no-such-option' "$work/doctor_option.err"; then ok doctor_option; else
	fail doctor_option "$status: $(said doctor_option)"
fi

# Plain tables say when the agent goes, and go on when it is there again.
"$JOULECTL" top --socket "$sock" -i 200ms >"$work/plain.out" 2>"$work/plain.err" &
plain=$!
agents="$agents $plain"
tables() {
	[ "$(grep -c JOULES "$work/plain.out")" -ge "$1" ]
}
wait_until 100 tables 2 || fail plain "no tables: $(said plain)"
kill -9 $agent
wait_until 100 grep -q 'trying again' "$work/plain.err" || fail plain "says nothing: $(said plain)"
begin
before=$(grep -c JOULES "$work/plain.out")
if wait_until 100 tables $((before + 2)); then ok plain; else fail plain "does not go on: $(said plain)"; fi
kill $plain

start_again="'$JOULED' --socket '$sock' --state-dir '$work/state' -o null: -i 200ms >'$work/again.out' 2>&1 & echo \$! >'$work/pid'"
if reason=$($python $here/top_live.py "$JOULECTL" "$sock" "$work/pid" "$start_again" 2>&1); then ok agent_killed; else fail agent_killed "$reason"; fi
agent=$(cat "$work/pid")
agents="$agents $agent"

# What was measured before, from the history: energies alone, in the order of time.
ctl since top --since -10m --json --socket "$sock"
if reason=$(python3 - "$work/since.out" "/$shown" <<'PY' 2>&1
import json, sys
docs = [json.loads(line) for line in open(sys.argv[1])]
times = [d["time_ns"] for d in docs]
assert len(docs) > 3 and times == sorted(set(times)), times
for doc in docs:
    for d in doc["domains"]:
        rows = sum(r["energy_uj"][d["name"]] for r in doc["rows"])
        assert rows + d["idle_uj"] + d["residual_uj"] == d["energy_uj"], (d, rows)
assert any(r["name"] == sys.argv[2] and sum(r["energy_uj"].values()) > 0 for r in docs[-1]["rows"] + docs[-2]["rows"])
PY
); then ok since; else fail since "$status: $reason $(said since)"; fi
ctl since_table top --since -10m --socket "$sock"
grep -q "^ .* -  .*/$shown\$" "$work/since_table.out" && ok since_table || fail since_table "$(tail -n 8 "$work/since_table.out")"
expect since_wrong 1 'since' top --since yesterdayish --socket "$sock"
expect since_and_replay 2 'leave one out' top --since -1h --replay x
expect until_alone 2 'give --since' top --until -1h

# Without energy there are no joules, in no form.
kill -9 "$agent"
rm -f "$sock"
begin --rapl none --estimate off
ctl bare top --once --socket "$sock"
ctl bare_json top --once --json --socket "$sock"
ctl bare_list list --socket "$sock"
if grep -q 'no energy source' "$work/bare.out" && grep -q '^ *- .* kernel$' "$work/bare.out" &&
	! grep -q '_uj' "$work/bare_json.out" && grep -q 'no energy source' "$work/bare_list.out"; then ok no_energy; else
	fail no_energy "$(cat "$work/bare.out" "$work/bare_list.out")"
fi
finish
