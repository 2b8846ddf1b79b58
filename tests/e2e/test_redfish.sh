#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A meter of type redfish against a controller over TLS: what it finds, what it leaves out, and a named gap for each thing that can
# be wrong with a controller.
. tests/e2e/lib.sh

certificate() {
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$1" -addext "subjectAltName=$2" -keyout "$work/$1.key" -out "$work/$1.pem" \
		>>"$work/openssl" 2>&1 || fail "redfish-certificate-$1" "$(tail -n 1 "$work/openssl")"
}

# controller NAME CERTIFICATE: sets port
controller() {
	python3 $here/redfish.py "$work/$2.pem" "$work/$2.key" "$work/$1.port" "$work/mode" "$work/$1.asked" 2>"$work/$1.log" &
	agents="$agents $!"
	wait_until 150 test -s "$work/$1.port" || fail "redfish-listens-$1" "$(tail -n 1 "$work/$1.log")"
	port=$(cat "$work/$1.port")
}

# configured FILE [KEY: VALUE]...
configured() {
	file=$1
	shift
	printf 'socket: { path: %s/own.sock }\nmeters: [ { type: redfish%s } ]\n' "$work" "$(printf ', %s' "$@")" >"$work/$file.yaml"
}

# ask NAME MODE KEYS...: a doctor in the background; told NAME PATTERN...: what it said of the meter
ask() {
	asking=$1 mode=$2
	shift 2
	configured "$asking" "url: \"https://127.0.0.1:$port/$mode\"" "$@"
	"$JOULED" doctor -c "$work/$asking.yaml" --state-dir "$work/state-$asking" >"$work/$asking.out" 2>&1 &
	doctors="$doctors $!"
}

# A request that a busy machine did not answer within its second is made again.
told() {
	name=$1
	shift
	for _ in 1 2 3 4 5; do
		grep -q 'timed out' "$work/$name.out" || break
		[ "$name" = slow ] && break
		"$JOULED" doctor -c "$work/$name.yaml" --state-dir "$work/state-$name" >"$work/$name.out" 2>&1
	done
	for pattern; do
		grep -qE "$pattern" "$work/$name.out" && continue
		fail "redfish-$name" "no \"$pattern\": $(grep -A 2 '^meter' "$work/$name.out" | tr '\n' '|')"
		return
	done
	ok "redfish-$name"
}

# refused NAME PATTERN KEYS...: --check
refused() {
	name=$1 pattern=$2
	shift 2
	configured "$name" "$@"
	if "$JOULED" --check -c "$work/$name.yaml" >"$work/$name.out" 2>&1; then
		fail "redfish-check-$name" "it was accepted"
	elif grep -qE "$pattern" "$work/$name.out"; then
		ok "redfish-check-$name"
	else
		fail "redfish-check-$name" "$(tail -n 1 "$work/$name.out")"
	fi
}

certificate board IP:127.0.0.1
certificate stranger IP:127.0.0.1
certificate elsewhere DNS:other.invalid
echo 'of the board' >"$work/password"
echo 'a guess' >"$work/wrong"
echo good >"$work/mode"
controller named elsewhere
named=$port
controller board board
who="user: power" secret="password-file: $work/password" ca="ca-file: $work/board.pem" url="url: \"https://127.0.0.1:$port\""

refused no-url 'url: is missing' "$who" "$secret"
refused plain-http 'over TLS alone' "url: \"http://127.0.0.1\""
refused half-a-login 'without the other' "$url" "$who"
refused user-in-url 'no https://HOST' 'url: "https://a:b@127.0.0.1"'

# A session: the password is sent once, the session is begun anew when it has ended, and ended by us.
controller session board
doctors=
ask session session "$who" "$secret" "$ca"
ask session-denied session "$who" "password-file: $work/wrong" "$ca"
for doctor in $doctors; do
	wait "$doctor"
done
told session '^meter 0 +ok +redfish https://127.0.0.1:[0-9]+/session: [12] channel'
told session-denied '^meter 0 +(absent|denied)' 'answered with 401 for /redfish/v1/SessionService/Sessions: it does not accept who asks'
posts=$(grep -c '^POST /redfish/v1/SessionService/Sessions$' "$work/session.asked")
[ "$posts" -ge 3 ] && ok redfish-session-renewed || fail redfish-session-renewed "$posts sessions: $(tr '\n' '|' <"$work/session.asked")"
grep -q '^DELETE /redfish/v1/SessionService/Sessions/token' "$work/session.asked" && ok redfish-session-ended ||
	fail redfish-session-ended "$(tr '\n' '|' <"$work/session.asked")"
port=$(cat "$work/board.port")

doctors=
for mode in null none hostile crowd deep long slow; do
	ask $mode $mode "$who" "$secret" "$ca"
done
ask found good "$who" "$secret" "$ca"
ask password good "$who" "password-file: $work/wrong" "$ca"
ask no-password-file good "$who" "password-file: $work/nowhere" "$ca"
ask stranger good "$who" "$secret" "ca-file: $work/stranger.pem"
ask self-signed good "$who" "$secret"
port=$named
ask host-name good "$who" "$secret" "ca-file: $work/elsewhere.pem"
for doctor in $doctors; do
	wait "$doctor"
done
told found '^meter 0 +ok +redfish https://127.0.0.1:[0-9]+/good: [12] channel'
told null '^meter 0 +absent' 'no power at /redfish/v1/Chassis/older/Power at the moment'
told none '^meter 0 +absent' 'no chassis tells EnvironmentMetrics.PowerWatts'
told crowd '^meter 0 +ok +redfish https://127.0.0.1:[0-9]+/crowd: 1 channel'
grep -q 'left out' "$work/crowd.out" && fail redfish-crowd-left "$(grep 'left out' "$work/crowd.out")" || ok redfish-crowd-left
told hostile '^meter 0 +absent' 'no chassis tells'
told deep '^meter 0 +absent' 'no JSON object at /redfish/v1/'
told long '^meter 0 +absent' 'longer than 262144 bytes'
told slow '^meter 0 +absent' 'timed out after'
told password '^meter 0 +absent' 'answered with 401.*mend user and password-file'
told no-password-file '^meter 0 +absent' 'nowhere: No such file'
told stranger '^meter 0 +absent' 'certificate is refused.*ca-file'
told self-signed '^meter 0 +absent' 'certificate is refused'
told host-name '^meter 0 +absent' 'certificate is refused'
[ -e "$work/named.asked" ] && fail redfish-no-secret-leaves "a request was sent to a server with another name" || ok redfish-no-secret-leaves

strange=$(grep -vE '^(OVERLAPS )?/redfish/v1(/[A-Za-z0-9]*)*$' "$work/board.asked")
[ -z "$strange" ] && ok redfish-paths-within || fail redfish-paths-within "asked for $(echo "$strange" | head -n 3 | cut -c 1-60 | tr '\n' '|')"

# Who is not accepted is asked once, and not again while the rest of this file runs: controllers lock out who guesses.
controller shut board
configured shut "url: \"https://127.0.0.1:$port\"" "$who" "password-file: $work/wrong" "$ca" 'pace: 100ms'
sed -i "s/own.sock/shut.sock/" "$work/shut.yaml"
printf 'outputs: [ { format: "null", to: "null:" } ]\n' >>"$work/shut.yaml"
"$JOULED" -c "$work/shut.yaml" -i 500ms --state-dir "$work/state-shut" >"$work/shut.out" 2>"$work/shut.err" &
shut=$!
agents="$agents $shut"

# The agent: two channels, 120.5 W of the box with its sled and 30 W of the older one, one request at a time.
echo good >"$work/mode"
: >"$work/board.asked"
configured good "$url" "$who" "$secret" "$ca" 'pace: 100ms'
printf 'outputs: [ { format: "null", to: "null:" } ]\n' >>"$work/good.yaml"
"$JOULED" -c "$work/good.yaml" -i 500ms --state-dir "$work/state" >"$work/agent.out" 2>"$work/agent.err" &
agent=$!
agents="$agents $agent"
devices() {
	curl -s --max-time 5 --unix-socket "$work/own.sock" http://x/v1/devices >"$work/devices" && grep -q "$1" "$work/devices"
}
asked() {
	[ "$(grep -c "$1" "$work/board.asked")" -ge "$2" ]
}
if wait_until 200 devices '"channel":1' && wait_until 200 asked box/EnvironmentMetrics 4; then
	ok redfish-channels
else
	fail redfish-channels "$(head -c 400 "$work/devices") $(tail -n 2 "$work/agent.err")"
fi
grep -q '"channel":2' "$work/devices" && fail redfish-once "a power counts twice: $(head -c 400 "$work/devices")" || ok redfish-once
grep -q OVERLAPS "$work/board.asked" && fail redfish-one-at-a-time "requests overlap" || ok redfish-one-at-a-time
grep -q 'box/Power' "$work/board.asked" && fail redfish-newer-first "the older document was asked for too" || ok redfish-newer-first
# once for each time that the meter was opened: a request that takes too long opens it anew
discoveries=$(grep -c '^/redfish/v1/$' "$work/board.asked") read_inner=$(grep -c sled/Env "$work/board.asked")
[ "$read_inner" -ge 1 ] && [ "$read_inner" -le "$discoveries" ] && ok redfish-contained || fail redfish-contained "the inner chassis is read: $(sort "$work/board.asked" | uniq -c | tr '\n' '|')"
watts() {
	curl -s --max-time 5 --unix-socket "$work/own.sock" http://x/v1/cgroups >"$work/cgroups"
	grep -q '"external-0"' "$work/cgroups"
}
wait_until 100 watts && ok redfish-domain || fail redfish-domain "$(head -c 300 "$work/cgroups")"
echo slow >"$work/mode"
wait_until 300 grep -q 'meter 0 (redfish).*timed out' "$work/agent.err" && ok redfish-slow-told || fail redfish-slow-told "$(tail -n 2 "$work/agent.err")"
echo good >"$work/mode"
wait_until 400 grep -q 'meter 0 (redfish): it answers again' "$work/agent.err" && ok redfish-comes-back || fail redfish-comes-back "$(tail -n 2 "$work/agent.err")"
kill "$agent"

# More than a meter asks for is told once per meter, also when it is opened anew.
echo many >"$work/mode"
printf 'socket: { path: %s/left.sock }\nmeters:\n' "$work" >"$work/left.yaml"
for at in "" /pages; do
	printf '  - { type: redfish, %s%s", %s, %s, %s, pace: 100ms }\n' "${url%\"}" "$at" "$who" "$secret" "$ca" >>"$work/left.yaml"
done
printf 'outputs: [ { format: "null", to: "null:" } ]\n' >>"$work/left.yaml"
"$JOULED" -c "$work/left.yaml" -i 500ms --state-dir "$work/state-left" >"$work/left.out" 2>"$work/left.err" &
agent=$!
agents="$agents $agent"
left_out() {
	if wait_until 300 grep -q "$2" "$work/left.err"; then
		ok "redfish-left-out-$1"
	else
		fail "redfish-left-out-$1" "no \"$2\": $(tail -n 2 "$work/left.err")"
	fi
}
left_out powers 'meter 0 (redfish): 4 members of its Chassis are left out.*64 members of the first page and 10 powers'
left_out pages 'meter 1 (redfish): 7 members and further pages of its Chassis are left out'
echo deep >"$work/mode"
left_out failing 'meter 0 (redfish).*no JSON object'
echo many >"$work/mode"
left_out again 'meter 0 (redfish): it answers again'
told=$(grep -c 'are left out' "$work/left.err")
[ "$told" -eq 2 ] && ok redfish-left-out-once || fail redfish-left-out-once "two meters told $told times"
kill "$agent"
asked=$(grep -cv "^/redfish/v1/$" "$work/shut.asked")
grep -q "asked again in 5 minutes" "$work/shut.err" && [ "$asked" -eq 1 ] && ok redfish-asked-rarely ||
	fail redfish-asked-rarely "$asked requests: $(tail -n 1 "$work/shut.err")"
kill "$shut"
grep -rq 'of the board' "$work"/*.out "$work"/*.err && fail redfish-secret "the password is printed" || ok redfish-secret
finish
