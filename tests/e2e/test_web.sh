#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The page in the browser: who gets it, by joulectl web and by the agent's own port, and the page itself in a
# headless Chromium.
# shellcheck disable=SC2089,SC2090 # quotes are part of a name
. tests/e2e/lib.sh
need_root
JOULECTL=${JOULECTL:-$B/joulectl}
sock=$work/jouled.sock

# code CURL ARGUMENT...: status in $code, body in $work/body, head in $work/head.
code() {
	code=$(curl -s --max-time 60 -D "$work/head" -o "$work/body" -w '%{http_code}' "$@")
}

# expect NAME CODE CURL ARGUMENT...
expect() {
	name=$1
	want=$2
	shift 2
	code "$@"
	if [ "$code" = "$want" ]; then
		ok "$name"
	else
		fail "$name" "$code: $(head -c 200 "$work/body")"
	fi
}

# has NAME PATTERN FILE
has() {
	if grep -qi -- "$2" "$3"; then
		ok "$1"
	else
		fail "$1" "no $2 in $(head -c 300 "$3" | tr '\r\n' '  ')"
	fi
}

answers() {
	curl -s --max-time 60 -o "$work/up" --unix-socket "$sock" http://jouled/v1/snapshot && grep -q '"rows"' "$work/up"
}

# bridge NAME ARGUMENT...: joulectl web; its pid in $bridge, URL in $url and without the token in $base.
bridge() {
	bridged=$1
	shift
	"$JOULECTL" web --socket "$sock" "$@" >"$work/$bridged.url" 2>"$work/$bridged.err" &
	bridge=$!
	agents="$agents $bridge"
	wait_until 100 grep -q '^http' "$work/$bridged.url"
	url=$(cat "$work/$bridged.url")
	base=${url%%\?*}
}

hostile='<img src=x onerror=hacked=1>"&'
make_cgroup one
spin "$cgroup"
one=${cgroup#"$(cgroup2)"}
# its own name would be split by lib.sh
evil=$(cgroup2)/jouled-e2e-$$-$hostile
mkdir "$evil"
trap 'kill -9 "$evil_pid" 2>/dev/null; cleanup; wait_until 50 rmdir "$evil" 2>/dev/null' EXIT
spin "$evil"
evil_pid=$spinner

# A port of the agent's own: the secret is in a file that the group of the socket may read.
mkdir "$work/run"
cat >"$work/web.yaml" <<END
outputs: [{ format: null, to: "null:" }]
socket: { path: $sock }
web: { listen: "0", token-file: $work/run/token }
price: "0.32"
carbon: "350"
END
"$JOULED" -c "$work/web.yaml" --state-dir "$work/state" -i 1s -v >"$work/agent.out" 2>"$work/agent.err" &
agent=$!
agents="$agents $agent"
wait_until 150 answers || fail web-agent "no answer: $(said agent)"
port=$(sed -n 's|.*http://127.0.0.1:\([0-9]*\)/.*|\1|p' "$work/agent.err" | head -n 1)
token=$(cat "$work/run/token")
base=http://127.0.0.1:$port/
mode=$(stat -c %a "$work/run/token")
{ [ "$mode" = 600 ] || [ "$mode" = 640 ]; } && [ ${#token} -eq 32 ] && ok web-token-file || fail web-token-file "mode $mode, $token"
expect web-agent-nobody 403 "$base"
has web-agent-nobody-told "SECRET is what $work/run/token on this machine holds" "$work/body"
has web-agent-url "note: web: http://127.0.0.1:$port/?token=\$(cat $work/run/token)" "$work/agent.err"
expect web-agent-nobody-data 403 "${base}v1/snapshot"
expect web-agent-wrong-token 403 "$base?token=0123456789abcdef0123456789abcdef"
expect web-agent-enter 303 -c "$work/jar" "$base?token=$token"
has web-agent-cookie 'Set-Cookie: .*HttpOnly; SameSite=Strict' "$work/head"
expect web-agent-page 200 -b "$work/jar" "$base"
has web-agent-policy "Content-Security-Policy: default-src 'none'; script-src 'nonce-" "$work/head"
expect web-agent-health 200 "${base}healthz"
expect web-agent-ready 200 "${base}readyz"
expect web-agent-bearer 200 -H "Authorization: Bearer $token" "${base}v1/status"
grep -qi access-control "$work/head" && fail web-agent-no-cors "$(grep -i access "$work/head")" || ok web-agent-no-cors
expect web-agent-metrics 200 -H "Authorization: Bearer $token" "${base}metrics"
expect web-agent-rebinding 403 -H "Authorization: Bearer $token" -H 'Host: rebound.example' "${base}v1/status"
expect web-agent-localhost 200 -H "Authorization: Bearer $token" -H "Host: localhost:$port" "${base}v1/status"
expect web-agent-look-only 405 -H "Authorization: Bearer $token" -X POST "${base}v1/reading"
expect web-agent-two-nonces 200 -b "$work/jar" "$base"
first=$(grep -o 'nonce-[0-9a-f]*' "$work/head" | head -n 1)
code -b "$work/jar" "$base"
grep -q "$first" "$work/head" && fail web-nonce-new "the same nonce twice" || ok web-nonce-new

# The bridge: once by the URL, then by the cookie, nobody else.
bridge first
expect web-nobody 403 "$base"
expect web-nobody-data 403 "${base}v1/status"
expect web-enter 303 -c "$work/jar2" "$url"
expect web-spent 403 "$url"
has web-spent-says 'used already' "$work/body"
expect web-page 200 -b "$work/jar2" "$base"
has web-page-policy "script-src 'nonce-" "$work/head"
expect web-data 200 -b "$work/jar2" "${base}v1/cgroups?limit=1"
expect web-other-port-cookie 403 -b "$work/jar" "$base"
expect web-rebinding 403 -b "$work/jar2" -H 'Host: rebound.example' "$base"
expect web-look-only 405 -b "$work/jar2" -X POST "${base}v1/reading"
expect web-head 200 -b "$work/jar2" -I "${base}v1/status"
expect web-not-there 404 -b "$work/jar2" "${base}v1/nothing"
expect web-large-head 431 -b "$work/jar2" -H "X-Large: $(head -c 17000 /dev/zero | tr '\0' x)" "$base"
curl -sN --max-time 300 -b "$work/jar2" "${base}v1/stream?format=json" >"$work/stream" &
streaming=$!
wait_until 100 grep -q '"number"' "$work/stream" && ok web-stream || fail web-stream "nothing came"
kill $streaming
reason=$(python3 - "${base#http://}" <<'END'
import socket, sys
host, port = sys.argv[1].rstrip("/").split(":")
for name, raw in (("split", b"GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: a\r\n b\r\n\r\n"), ("bare", b"GET\r\n\r\n"),
                  ("space", b"GET /v1/st atus HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), ("nul", b"GET /\0 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
                  ("twice", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil\r\n\r\n")):
    s = socket.create_connection((host, int(port)), 10)
    s.sendall(raw)
    answer = s.recv(4096)
    if answer and not answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 403")):
        print(name, answer[:80])
END
)
[ -z "$reason" ] && ok web-broken-requests || fail web-broken-requests "$reason"
kill "$bridge"
ended 50 "$bridge" && [ "$status" -eq 0 ] && ok web-ends || fail web-ends "exit status ${status:-none}"

# The page itself, through a bridge of its own.
bridge page
python3 $here/web.py page "$url" "$sock" "$one" "${evil#"$(cgroup2)"}" "$work" \
	"$agent" "$JOULED" -c "$work/web.yaml" --state-dir "$work/state" -i 1s >"$work/page" 2>&1
cat "$work/page"
grep -q '^ok\|^SKIP' "$work/page" || fail web-page-ran "$(tail -n 2 "$work/page")"
failures=$((failures + $(grep -c '^FAIL' "$work/page")))
[ -n "${SHOTS:-}" ] && cp "$work"/page-*.png "$SHOTS"

# A refusal names its remedy.
"$JOULECTL" web --socket "$work/none.sock" >"$work/none.out" 2>"$work/none.err"
[ $? -eq 1 ] && grep -q 'none.sock: .*; ' "$work/none.err" && ok web-no-agent || fail web-no-agent "$(said none)"
"$JOULECTL" web --port 99999 >"$work/none.out" 2>"$work/none.err"
[ $? -eq 2 ] && ok web-bad-port || fail web-bad-port "$(said none)"
run nosocket --web 0 -n 1 -o null:
[ "$status" -ne 0 ] && grep -q 'web.listen: ' "$work/nosocket.err" && ok web-needs-socket || fail web-needs-socket "$(said nosocket)"
run badlisten --web nowhere -n 1 -o null:
[ "$status" -ne 0 ] && grep -q 'ADDRESS:PORT' "$work/badlisten.err" && ok web-bad-listen || fail web-bad-listen "$(said badlisten)"
"$JOULED" -c "$work/web.yaml" --state-dir "$work/state" -n 1 -i 100ms >"$work/last.out" 2>&1
[ ! -e "$work/run/token" ] && ok web-token-removed || fail web-token-removed "it is still there"
finish
