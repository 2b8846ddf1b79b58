#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The query socket: every route with curl, every refusal, who may ask, and clients that behave badly.
. tests/e2e/lib.sh
need_root
sock=$work/jouled.sock
# the sanitizers' own memory comes on top: 256 MiB of what was freed alone, the longer it runs the more of it
case $JOULED in *-san) most_mib=512 ;; *) most_mib=64 ;; esac

# ask NAME TARGET [CURL ARGUMENT...]: body in $work/NAME, status and type in $code and $type.
ask() {
	asked=$1
	target=$2
	shift 2
	answer=$(curl -s --max-time 60 --unix-socket "$sock" -o "$work/$asked" -w '%{http_code} %{content_type}' "$@" "http://jouled$target")
	code=${answer%% *}
	type=${answer#* }
}

# expect NAME CODE TYPE TARGET [CURL ARGUMENT...]
expect() {
	want=$2
	want_type=$3
	name=$1
	target=$4
	shift 4
	ask "$name" "$target" "$@"
	if [ "$code" != "$want" ] || [ "$type" != "$want_type" ]; then
		fail "$name" "$code $type: $(head -c 200 "$work/$name" | tr -d '\000' | tr '\n' ' ')"
	elif [ "$want" -ge 400 ] && ! grep -q '^{"error":"[^"]*: .*; .*"}$' "$work/$name"; then
		fail "$name" "no subject, cause and remedy: $(head -c 200 "$work/$name")"
	else
		ok "$name"
	fi
}

check() {
	name=$1
	shift
	if "$@" >"$work/check.out" 2>&1; then
		ok "$name"
	else
		fail "$name" "$(tail -n 1 "$work/check.out" | head -c 300)"
	fi
}

# Totals are shown once they are on disk, some time after the first snapshot.
answers() {
	ask up /v1/snapshot
	[ "$code" = 200 ] || return 1
	ask up /v1/cgroups
	[ "$code" = 200 ]
}

# The history's first second must have ended.
remembers() {
	ask remembered '/v1/history?cgroup=/'
	[ "$code" = 200 ]
}

python3 - "$work/stale" <<'END'
import socket, sys
socket.socket(socket.AF_UNIX).bind(sys.argv[1])
END
mv "$work/stale" "$sock"
make_cgroup one
spin "$cgroup"
start agent -i 200ms --socket "$sock" -o "hwpc=file://$work/hwpc.json"
if wait_until 100 answers; then
	ok stale-socket-replaced
else
	fail stale-socket-replaced "no answer: $(said agent)"
	finish
fi
path=${cgroup#"$(cgroup2)"}

json=application/json
expect status 200 $json /v1/status
check status-content python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
assert d["version"] and d["uptime_ns"] > 0 and d["interval_ns"] == 200000000
assert {"name", "state", "reason"} <= d["sources"][0].keys() and any(s["name"].startswith("energy") for s in d["sources"])
assert d["outputs"][0]["format"] == "hwpc" and d["self"]["cpu_ns"] > 0 and d["self"]["resident_bytes"] > 1 << 20
assert d["self"]["resident_bytes"] < int(sys.argv[2]) << 20, d["self"]' "$work/status" $most_mib
expect snapshot-json 200 $json /v1/snapshot
check snapshot-ledger python3 $here/query.py ledger "$work/snapshot-json"
expect snapshot-cbor 200 application/cbor /v1/snapshot -H 'Accept: application/cbor'
check snapshot-cbor-replays "$JOULED" --replay "$work/snapshot-cbor" -o "power=file://$work/replayed.json"
expect snapshot-text 200 'text/plain; charset=utf-8' /v1/snapshot -H 'Accept: text/plain'
check snapshot-text-content grep -q 'CPU %' "$work/snapshot-text"
expect snapshot-vjoule 200 application/x-vjoule /v1/snapshot -H 'Accept: application/x-vjoule'
expect snapshot-best 200 application/cbor /v1/snapshot -H 'Accept: text/*;q=0.3, application/json;q=0.2, application/cbor;q=0.9'
expect snapshot-406 406 $json /v1/snapshot -H 'Accept: image/png'
expect cgroups 200 $json /v1/cgroups
check cgroups-ledger python3 $here/query.py ledger "$work/cgroups"
check cgroups-has-ours grep -q "\"path\":\"$path\"" "$work/cgroups"
expect cgroups-limit 200 $json '/v1/cgroups?sort=power&limit=1&depth=2'
check cgroups-limit-ledger python3 $here/query.py ledger "$work/cgroups-limit"
check cgroups-limit-content python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
power = d["cgroups"][0]["last"]["energy_uj"]
assert len(d["cgroups"]) == 1 and d["other"]["cgroups"] >= 1, d
assert all(v >= d["other"]["last"]["energy_uj"][k] for k, v in power.items()) or d["other"]["cgroups"] > 1, d' \
	"$work/cgroups-limit"
expect cgroups-zero 200 $json '/v1/cgroups?limit=0'
check cgroups-zero-ledger python3 $here/query.py ledger "$work/cgroups-zero"
expect cgroup-one 200 $json "/v1/cgroups$path"
check cgroup-one-content python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
assert [c["path"] for c in d["cgroups"]] == [sys.argv[2]] and d["cgroups"][0]["total"]["cpu_ns"] > 0, d' "$work/cgroup-one" "$path"
expect cgroup-unknown 404 $json /v1/cgroups/nothing/of/this/name
expect hwpc 200 application/x-ndjson /v1/hwpc
# an interval in which others had the counters is withheld
has_groups() {
	ask hwpc /v1/hwpc
	grep -q '"groups"' "$work/hwpc"
}
check hwpc-content wait_until 50 has_groups
expect power 200 application/x-ndjson /v1/power
check power-content grep -q '"target":"all"' "$work/power"
wait_until 100 remembers
expect history 200 $json '/v1/history?cgroup=/'
expect spans 404 $json /v1/spans
expect reading 200 $json /v1/reading -X POST
check reading-ledger python3 $here/query.py ledger "$work/reading"
cp "$work/reading" "$work/reading.1"
expect reading-again 200 $json /v1/reading -X POST
check reading-grows python3 -c 'import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
cpu = [next(r["cpu_ns"] for r in d["rows"] if r["name"] == sys.argv[3]) for d in (a, b)]
assert cpu[1] > cpu[0] and b["monotonic_ns"] > a["monotonic_ns"], cpu
assert cpu[1] - cpu[0] < (b["monotonic_ns"] - a["monotonic_ns"]) * 1.05, cpu' "$work/reading.1" "$work/reading-again" "$path"

expect unknown 404 $json /v1/nothing
expect root 200 "text/html; charset=utf-8" /
expect below 404 $json /v1/status/more
expect method 405 $json /v1/status -X DELETE
expect method-reading 405 $json /v1/reading
ask method-head /v1/reading -I
[ "$code" = 405 ] && grep -q '^Allow: POST' "$work/method-head" && ok method-head || fail method-head "$code"
expect parameter 400 $json '/v1/status?colour=red'
expect parameter-twice 400 $json '/v1/cgroups?limit=1&limit=2'
expect parameter-value 400 $json '/v1/cgroups?sort=colour'
expect parameter-none 400 $json '/v1/cgroups?limit'
expect parameter-range 400 $json '/v1/stream?interval=1ms'
expect format-unknown 400 $json '/v1/stream?format=xml'
expect head 200 $json /v1/status -I

expect metrics 200 'text/plain; version=0.0.4; charset=utf-8' /metrics
expect metrics-head 200 'text/plain; version=0.0.4; charset=utf-8' /metrics -I
expect metrics-1 200 'application/openmetrics-text; version=1.0.0; charset=utf-8' /metrics -H 'Accept: application/openmetrics-text'
check metrics-1-strict python3 $here/query.py openmetrics "$work/metrics-1"

# stream NAME QUERY: it goes on until quit
stream() {
	curl -sN --unix-socket "$sock" "http://jouled/v1/stream?$2" >"$work/stream.$1" &
	streams="$streams $!"
	agents="$agents $!"
}
quit() {
	# shellcheck disable=SC2086 # pids
	kill $streams && wait $streams
	streams=
}
documents() {
	python3 $here/query.py documents "$work/stream.$1" "$2"
}
streams=
for format in json hwpc power table cbor; do
	stream $format "format=$format"
done
wait_until 100 documents json 8 2>/dev/null >&2
wait_until 100 test -s "$work/stream.cbor"
quit
for format in json hwpc power table cbor; do
	[ -s "$work/stream.$format" ] && ok "stream-$format" || fail "stream-$format" "nothing came"
done
check stream-documents documents json 8
check stream-cbor-replays "$JOULED" --replay "$work/stream.cbor" -o "power=file://$work/replayed.json"
stream slow interval=500ms
stream fast interval=20ms
check stream-own-interval wait_until 50 documents fast 30
# of the same time
[ "$(wc -l <"$work/stream.slow")" -lt "$(wc -l <"$work/stream.fast")" ] && ok stream-intervals || fail stream-intervals "$(wc -l "$work"/stream.slow "$work"/stream.fast)"
check stream-longer-interval wait_until 50 documents slow 2
quit

# Clients that behave badly do not delay a report: the file's intervals stay.
check raw-clients python3 $here/query.py raw "$sock"
check crowd python3 $here/query.py crowd "$sock" 1000 512
# documents of many cgroups, so that the client lags
make_cgroup many
for i in $(seq 200); do
	mkdir "$cgroup/$i" && sh -c 'echo $$ >"$0/cgroup.procs"' "$cgroup/$i"
done
check stream-lags python3 $here/query.py lags "$sock" "$agent" $((most_mib / 16))
find "$cgroup" -mindepth 1 -type d -exec rmdir {} +
check reports-go-on wait_until 100 python3 $here/hwpc.py check "$work/hwpc.json" 50
ask metrics-later /metrics
check metrics-grown python3 $here/query.py grown "$work/metrics" "$work/metrics-later"
ask status-later /v1/status
check memory-bounded python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
assert d["self"]["kernel_samples"] and 20 < d["self"]["kernel_ns_per_switch"] < 65536, d["self"]
assert d["self"]["resident_bytes"] < int(sys.argv[2]) << 20 and d["socket"]["clients"] < 5 and d["socket"]["refused_clients"] == 488, (
    d["self"], d["socket"])' "$work/status-later" $most_mib

# Another agent does not take a socket that is in use.
run second --socket "$sock" -n 1 -i 50ms -o null:
if [ "$status" -eq 1 ] && grep -q 'another program uses it' "$work/second.err"; then
	ok socket-in-use
else
	fail socket-in-use "exit status $status: $(said second)"
fi
kill "$agent"
if ended 80 "$agent" && [ "$status" -eq 0 ] && [ ! -e "$sock" ]; then
	ok end-removes-socket
else
	fail end-removes-socket "$(said agent)"
fi

# Members of the group may ask, by any of their groups; others only where they are let in, and they see little.
if ! command -v setpriv >/dev/null 2>&1; then
	skip socket-access "setpriv is needed"
	finish
fi
as() {
	setpriv --reuid "$1" --regid 65534 --groups "$2" curl -s --max-time 60 --unix-socket "$sock" -o "$work/as" -w '%{http_code}' \
		"http://jouled$3" 2>/dev/null
}
stranger=$((20000 + $$ % 30000)) # a user that owns nothing but what is made for it below
# A group that exists everywhere and has no member here: daemon, 1.
printf 'interval: 200ms\nsocket: { path: "%s", group: daemon }\n' "$sock" >"$work/closed.yaml"
chmod 711 "$work"
touch "$work/as" && chmod 666 "$work/as"
"$JOULED" --state-dir "$work/state" -c "$work/closed.yaml" -o null: >"$work/closed.out" 2>"$work/closed.err" &
agent=$!
agents="$agents $agent"
wait_until 100 answers
[ "$(stat -c '%a %G' "$sock")" = '660 daemon' ] && ok socket-mode || fail socket-mode "$(stat -c '%a %G' "$sock")"
[ "$(as "$stranger" 4 /v1/status)" = 000 ] && ok others-kept-out || fail others-kept-out "somebody got in"
[ "$(as "$stranger" 4,1 /v1/status)" = 200 ] && ok supplementary-group || fail supplementary-group "$(as "$stranger" 4,1 /v1/status)"
kill "$agent"
ended 50 "$agent"

printf 'interval: 200ms\nsocket: { path: "%s", group: daemon, access: { others: coarse } }\n' "$sock" >"$work/coarse.yaml"
make_cgroup his
chown "$stranger" "$cgroup"
his=${cgroup#"$(cgroup2)"}
spin "$cgroup"
"$JOULED" --state-dir "$work/state" -c "$work/coarse.yaml" -o null: >"$work/coarse.out" 2>"$work/coarse.err" &
agent=$!
agents="$agents $agent"
wait_until 100 answers
[ "$(as "$stranger" 4,1 /v1/cgroups)" = 200 ] && grep -q "$path" "$work/as" && ok group-sees-all || fail group-sees-all "$(cat "$work/as")"
sleep 1
if [ "$(as "$stranger" 4 /v1/cgroups)" = 200 ] && python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
assert [c["path"] for c in d["cgroups"]] == [sys.argv[2]], d
assert all(v % 1000 == 0 for v in d["cgroups"][0]["total"]["energy_uj"].values()) and d["time_ns"] % 10**9 == 0, d' \
	"$work/as" "$his" 2>"$work/check.out"; then
	ok others-coarse
else
	fail others-coarse "$(tail -n 1 "$work/check.out") $(head -c 300 "$work/as")"
fi
wrong=
for target in / /v1/status /v1/snapshot /v1/hwpc /v1/power /v1/stream /v1/history "/v1/history?cgroup=$his" /v1/spans \
	/v1/devices /metrics "/v1/cgroups$path"; do
	[ "$(as "$stranger" 4 "$target")" = 403 ] || wrong="$wrong $target"
	grep -q "$path" "$work/as" && wrong="$wrong name-in-$target"
done
[ -z "$wrong" ] && ok others-403 || fail others-403 "$wrong"
kill "$agent"
ended 50 "$agent"

# systemd's way: a socket that is passed.
if python3 - "$JOULED" "$work/passed.sock" "$work/state" >"$work/passed.out" 2>&1 <<'END'
import os, socket, subprocess, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[2])
s.listen()
pid = os.fork()
if pid == 0:
    os.dup2(s.fileno(), 3)
    os.set_inheritable(3, True)
    os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
    os.execv(sys.argv[1], [sys.argv[1], "--state-dir", sys.argv[3], "-i", "100ms", "-o", "null:"])
c = subprocess.run(["curl", "-s", "--max-time", "20", "--unix-socket", sys.argv[2], "http://x/v1/status"], capture_output=True)
os.kill(pid, 15)
os.waitpid(pid, 0)
assert b'"version"' in c.stdout, c
assert os.path.exists(sys.argv[2]), "a socket of somebody else's was removed"
END
then
	ok socket-activation
else
	fail socket-activation "$(tail -n 1 "$work/passed.out")"
fi
finish
