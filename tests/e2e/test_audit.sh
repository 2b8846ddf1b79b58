#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What an agent does with the result of an audit: status, metrics and history have it, also after kill -9; anything else is refused. And
# what joulectl audit refuses. The experiment itself: tests/unit/test_audit.c, tests/vm/cases/audit.sh.
# shellcheck disable=SC1091
. tests/e2e/lib.sh

result='{"version":1,"time_ns":1795598045362797206,"duration_ns":600000000000,"seed":1,"method":"loads","formula":"share","better":"model","why":"share is off by 9.0 %, model by 1.0 %","lines":[{"cgroup":"compute","domain":"package-0","draw":"average","judged":true,"pairs":340,"bias":0.1,"low":0.05,"high":0.2},{"cgroup":"/secret","domain":"package-0","draw":"marginal","judged":true,"pairs":11,"bias":0.01,"low":-0.05,"high":0.05}]}'

ask() {
	curl -sS --max-time 10 --unix-socket "$work/sock" "$@"
}

# check NAME COMMAND...
check() {
	checked=$1
	shift
	if "$@" >"$work/check" 2>&1; then ok "$checked"; else fail "$checked" "$(tail -c 400 "$work/check" | tr '\n' '|')"; fi
}

says() {
	ask "http://x/$1" >"$work/said" && grep -q -- "$2" "$work/said"
}

restart() {
	rm -f "$work/sock"
	start "$1" --formula auto --socket "$work/sock" --state-dir "$work/state" -o null:
	wait_until 200 ask -o /dev/null http://x/v1/status || fail "$1" "no answer: $(said "$1")"
}

restart agent
check "no audit yet is said" sh -c "\"$B/joulectl\" status --socket \"$work/sock\" | grep -q 'Audit *none yet'"
check "the choice of auto is told" wait_until 50 says v1/status '"formula":"share","formula_reason":"no audit told'
check "what was learned is told while share splits" says v1/status '"learned":\[{"domain":"[a-z0-9-]*","split_by":"share",.*"terms":\['
check "and in the text of status" sh -c "\"$B/joulectl\" status --socket \"$work/sock\" | grep -q '^Learned  *[a-z0-9-]*, split by share: '"
check "and below what doctor says" sh -c "JOULED_SOCKET=\"$work/sock\" \"$B/joulectl\" doctor | grep -q '^Learned  *[a-z0-9-]*, split by share: '"
check "doctor says that no agent answers" sh -c "JOULED_SOCKET=\"$work/none\" \"$B/joulectl\" doctor | grep -q '^None answers'"
check "a result is kept" sh -c "curl -sS --max-time 10 --unix-socket \"$work/sock\" -d '$result' http://x/v1/audit | grep -q '\"kept\":true'"
check "status has it" says v1/status '"audit":{"version":1,.*"within":0.2'
check "status names no cgroup" sh -c "! grep -q secret \"$work/said\""
check "metrics have it" says metrics '^jouled_audit_time_seconds 1795598045.362797206$'
check "auto obeys it" wait_until 50 says v1/status '"formula":"model","formula_reason":"the last audit found it better'
check "no result: refused" sh -c "curl -sS --max-time 10 --unix-socket \"$work/sock\" -d '{}' http://x/v1/audit | grep -q 'not the result of an audit'"
check "no body: refused" sh -c "curl -sS --max-time 10 --unix-socket \"$work/sock\" -X POST http://x/v1/audit | grep -q 'not the result of an audit'"
check "GET is not for it" sh -c "curl -sS --max-time 10 --unix-socket \"$work/sock\" http://x/v1/audit | grep -q 'use POST'"
stored() {
	python3 -c 'import sqlite3, sys; sys.exit(not sqlite3.connect("file:" + sys.argv[1] + "?mode=ro", uri=True).execute("SELECT count(*) FROM audit").fetchone()[0])' "$work/state/history.db"
}
check "the next interval stores it" wait_until 100 stored
kill -9 "$agent"
wait "$agent" 2>/dev/null
restart again
check "after kill -9 it is still there" sh -c "\"$B/joulectl\" status --socket \"$work/sock\" | grep -q 'the split is right within 20.0 % (formula share, by loads.*better here: formula model'"

# A recording made after an audit replays to the same bytes: share states the range that the audit told, auto obeys it.
recorded() {
	formula=$1 better=$2 expected=$3
	printf 'formula: %s\nmeters: [{ type: command, command: [/bin/sh, -c, "while :; do echo d0c0=50; sleep 0.1; done"] }]\n' "$formula" \
		>"$work/$formula.yaml"
	rm -f "$work/sock"
	start "$formula" -c "$work/$formula.yaml" --socket "$work/sock" --state-dir "$work/state-$formula" -i 200ms \
		-o "power=file://$work/$formula.json" -o "snapshot=file://$work/$formula.cbor"
	wait_until 25 says v1/status '"name":"energy external' || return
	domain=$(grep -o '"name":"energy external[^"]*' "$work/said" | head -n 1 | sed 's/.*energy //')
	ask -d "$(echo "$result" | sed "s/package-0/$domain/g; s/\"better\":\"model\"/\"better\":\"$better\"/")" -o /dev/null http://x/v1/audit
	wait_until 25 grep -q -- "$expected" "$work/$formula.json" || return
	kill "$agent"
	wait "$agent"
	"$JOULED" -q --socket none --state-dir "$work/replayed" --formula "$formula" --replay "$work/$formula.cbor" -o "power=file://$work/$formula-replayed.json" &&
		grep -q -- "$expected" "$work/$formula-replayed.json" && cmp "$work/$formula.json" "$work/$formula-replayed.json"
}
check "a replay by share states what the audit told" recorded share "" '"uncertainty": *0.2'
check "a replay by auto obeys the audit" recorded auto model '"formula": *"model"'

# refuses NAME STATUS WORDS ARGUMENT...
refuses() {
	named=$1 wanted=$2 words=$3
	shift 3
	"$B/joulectl" audit --socket "$work/sock" "$@" >"$work/refused" 2>&1
	status=$?
	if [ $status -eq "$wanted" ] && grep -qe "$words" "$work/refused"; then
		ok "$named"
	else
		fail "$named" "status $status: $(tr '\n' '|' <"$work/refused")"
	fi
}

refuses "a duty above 5 %" 2 "such as 0.1%" --cgroup /a --duty 6
refuses "a time too short" 2 "at least 11s" -d 5s
refuses "a time too short for the duty" 2 "or a higher --duty" --cgroup /a -d 60s
refuses "a long freeze" 2 "not from 10ms to 100ms" --cgroup /a --freeze 1s
refuses "options of the other experiment" 2 "leave it or --cgroup out" --cgroup /a --cpus 2
refuses "duty without a cgroup" 2 "own loads are never frozen" --duty 1%
if ask http://x/v1/status | grep -q '"name":"energy package-0","state":"estimated"'; then
	refuses "an estimate is not audited" 1 "it needs RAPL" -d 11s
fi
finish
