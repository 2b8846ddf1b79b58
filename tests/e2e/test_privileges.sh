#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Least privilege: what the agent has given up when it runs, what still works then, and what it says with fewer rights.
. tests/e2e/lib.sh
need_root
doc=docs/privileges.md
asks_for_more=yes

# status_of PID FIELD: that of each thread, each different value once.
status_of() {
	sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/task/"*/status | sort -u
}

# has CAPABILITY-BIT MASK
has() {
	[ $((0x$2 >> $1 & 1)) -eq 1 ]
}

# expect NAME COMMAND...
expect() {
	expected=$1
	shift
	if "$@"; then ok "$expected"; else fail "$expected" "$*: $(said "$started")"; fi
}

quiet_about_calls() {
	! grep -q 'seccomp: .* is not one' "$work/$1.err"
}

config() {
	printf '%s\ninterval: 200ms\nhistory: { path: %s/state/history.db }\noutputs:\n  - { format: hwpc, to: "file://%s" }\n' "$1" "$work" "$2" >"$work/jouled.yaml"
}

# Every thread has the same few rights, with all that has threads of its own switched on.
mkdir "$work/state" "$work/out" "$work/elsewhere"
config 'spans: { processes: true, functions: [ { binary: /bin/sh, symbol: "0x1000" } ] }' "$work/out/threads.json"
"$JOULED" -c "$work/jouled.yaml" --socket "$work/jouled.sock" --state-dir "$work/state" >"$work/threads.out" 2>"$work/threads.err" &
agent=$! started=threads
agents="$agents $agent"
wait_until 100 lines_at_least 3 "$work/out/threads.json"
threads=$(find "/proc/$agent/task" -mindepth 1 -maxdepth 1 | wc -l)
caps=$(status_of "$agent" CapPrm)
expect privileges-threads-alike [ "$threads" -ge 5 -a "$(echo "$caps" | wc -w)" -eq 1 ]
expect privileges-no-new [ "$(status_of "$agent" NoNewPrivs)" = 1 ]
expect privileges-filtered [ "$(status_of "$agent" Seccomp)" = 2 ]
wrong=
for bit in 0 5 6 7 8 12 16 17 18 22 24 25 27; do   # chown kill setgid setuid setpcap net_admin module rawio chroot boot resource time mknod
	has $bit "$caps" && wrong="$wrong $bit"
done
[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 2 ] || ! has 21 "$caps" || wrong="$wrong 21"
expect privileges-given-up [ -z "$wrong" ]
expect privileges-kept has 39 "$caps"
mode=$(stat -c %a "$work/out/threads.json" "$work/state/history.db" "$work/jouled.sock" | tr '\n' ' ')
expect privileges-modes [ "$mode" = "640 640 660 " -o "$mode" = "640 640 600 " -o "$mode" = "640 600 660 " -o "$mode" = "640 600 600 " ]
kill "$agent"
ended 100 "$agent"
expect privileges-nothing-refused quiet_about_calls threads

# Calls for which a hole would be used.
if ${CC:-gcc} -D_GNU_SOURCE -shared -fPIC -O1 -o "$work/probe.so" $here/probe_calls.c 2>"$work/cc.err"; then
	chmod 755 "$work/probe.so"
else
	fail privileges-probe "$(head -n 3 "$work/cc.err")"
fi
probed() {
	sed -n "s/^probe $2 //p" "$work/$1.err"
}
# probe NAME CONFIGURATION: an agent that tries it all.
probe() {
	: >"$work/$1.err"
	config "$2" "$work/out/$1.json"
	LD_PRELOAD=$work/probe.so PROBE_ELSEWHERE=$work/elsewhere/$1 PROBE_INSIDE=$work/out/$1.probe "$JOULED" -c "$work/jouled.yaml" \
		--socket none --state-dir "$work/state" >"$work/$1.out" 2>"$work/$1.err" &
	agent=$! started=$1
	agents="$agents $agent"
	wait_until 100 grep -q '^probe read-elsewhere' "$work/$1.err"
	wait_until 100 lines_at_least 3 "$work/out/$1.json"
}
# not_refused NAME: of the calls that it tried.
not_refused() {
	for call in io_uring_setup ptrace mount setns unshare clone-newuser keyctl init_module personality packet-socket execve; do
		[ "$(probed "$1" $call)" = 38 ] || echo "$call:$(probed "$1" $call)"
	done
}
probe on ''
expect privileges-calls-refused [ -z "$(not_refused on)" ]
for call in io_uring_setup mount execve; do
	expect "privileges-named-$call" wait_until 50 grep -q "warning: seccomp: $call (system call [0-9]*).*refused, 1 so far" "$work/on.err"
done
expect privileges-needed-calls-work [ "$(probed on tcp-socket)$(probed on read-elsewhere)$(probed on write-inside)" = 000 ]
if "$JOULED" doctor | grep -q '^landlock  *ok  *ABI'; then
	expect privileges-write-elsewhere [ "$(probed on write-elsewhere)" = 13 ]
	# A reload: what lies outside is named and everything stays, what lies inside works.
	config '' "$work/elsewhere/reload.json"
	kill -HUP "$agent"
	wait_until 50 grep -q 'reload: .*elsewhere lies outside' "$work/on.err"
	expect privileges-reload-outside grep -q 'reload: .*elsewhere lies outside.*restart it, or start it with landlock: off' "$work/on.err"
	config '' "$work/out/reload.json"
	kill -HUP "$agent"
	expect privileges-reload-inside wait_until 50 lines_at_least 3 "$work/out/reload.json"
	mv "$work/out/reload.json" "$work/out/rotated.json"
	expect privileges-rotation wait_until 50 lines_at_least 3 "$work/out/reload.json"
	kill "$agent"
	ended 100 "$agent"
	# what systemd has made for the service
	mkdir "$work/logs"
	config '' "$work/out/service.json"
	LOGS_DIRECTORY=$work/logs "$JOULED" -c "$work/jouled.yaml" --socket none --state-dir "$work/state" >"$work/service.out" 2>"$work/service.err" &
	agent=$! started=service
	agents="$agents $agent"
	wait_until 100 lines_at_least 3 "$work/out/service.json"
	config '' "$work/logs/service.json"
	kill -HUP "$agent"
	expect privileges-reload-service wait_until 50 lines_at_least 3 "$work/logs/service.json"
	kill "$agent"
	ended 100 "$agent"
	probe free 'landlock: off'
	expect privileges-landlock-off [ "$(probed free write-elsewhere)" = 0 ]
else
	skip privileges-landlock "$("$JOULED" doctor | sed -n 's/^landlock  *//p')"
fi
kill "$agent"
ended 100 "$agent"
probe log 'seccomp: log'
expect privileges-log-lets-through [ "$(probed log personality)" = 0 ]
expect privileges-log-names wait_until 50 grep -q 'warning: seccomp: personality .*let through' "$work/log.err"
kill "$agent"
ended 100 "$agent"
probe off 'seccomp: off'
expect privileges-off [ "$(probed off personality)" = 0 ]
expect privileges-off-is-quiet quiet_about_calls off
kill "$agent"
ended 100 "$agent"
# Below a filter that has a listener there is no second one: the calls are refused all the same, without a name.
printf '#!/bin/sh\nexec python3 %s/nested_listener.py %s "$@"\n' "$here" "$JOULED" >"$work/nested.sh"
chmod 755 "$work/nested.sh"
alone=$JOULED JOULED=$work/nested.sh
probe nested ''
JOULED=$alone
expect privileges-nested-refused [ -z "$(not_refused nested)" ]
expect privileges-nested-works lines_at_least 3 "$work/out/nested.json"
kill "$agent"
ended 100 "$agent"

# A name that only a resolver knows, and TLS: what libraries ask for when the list stands already.
if openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key.pem" -out "$work/cert.pem" -days 1 -subj /CN=localhost \
	-addext subjectAltName=DNS:localhost >"$work/openssl" 2>&1; then
	python3 $here/tls_peer.py "$work/cert.pem" "$work/key.pem" "$work/tls.port" "$work/tls.got" &
	agents="$agents $!"
	wait_until 50 test -s "$work/tls.port"
	printf "spans: { processes: true, trace-period: 10s }\n" >"$work/spans.yaml"
	: >"$work/tls.got"
	start resolve -c "$work/spans.yaml" -i 200ms -o "hwpc=tcp://jouled-test.invalid:9" -o "hwpc=tcp://localhost:9" -o "hwpc=file://$work/out/resolve.json" \
		-o "zico=https://localhost:$(cat "$work/tls.port")?ca-file=$work/cert.pem"
	wait_until 100 lines_at_least 3 "$work/out/resolve.json"
	expect privileges-tls wait_until 150 grep -q '^[A-Z]* /' "$work/tls.got"
	expect privileges-resolver wait_until 150 grep -q 'jouled-test.invalid' "$work/resolve.err"
	expect privileges-libraries-refused-nothing quiet_about_calls resolve
	kill "$agent"
	ended 150 "$agent"
else
	fail privileges-tls "$(tail -n 1 "$work/openssl")"
fi

# As in a container with few rights: the socket cannot be given to a group, and is there all the same.
printf 'socket: { path: %s/own.sock, group: daemon }\noutputs: [ { format: "null", to: "null:" } ]\n' "$work" >"$work/own.yaml"
setpriv --bounding-set -chown "$JOULED" -c "$work/own.yaml" --state-dir "$work/state" >"$work/own.out" 2>"$work/own.err" &
agent=$! started=own
agents="$agents $agent"
expect privileges-socket-own wait_until 100 curl -sf -o "$work/own.json" --unix-socket "$work/own.sock" http://localhost/v1/status
expect privileges-socket-own-mode [ "$(stat -c '%G %a' "$work/own.sock")" = "root 660" ]
expect privileges-socket-own-said grep -q 'socket: it cannot be given to the group daemon' "$work/own.err"
kill "$agent"
ended 100 "$agent"

# The doctor says of each capability what the documentation says; without any it still measures, and says so.
setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all --ambient-caps -all --bounding-set -all \
	"$JOULED" doctor >"$work/none.out" 2>"$work/none.err"
started=none
wrong=
sed -n 's/^\(CAP_[A-Z_]*\) *denied *for \(.*\);.*/| \1 | \2 |/p' "$work/none.out" >"$work/sentences"
while read -r sentence; do
	grep -qF "$sentence" $doc || wrong="$wrong$sentence"
done <"$work/sentences"
expect privileges-documented [ "$(wc -l <"$work/sentences")" -ge 9 -a -z "$wrong" ]
chmod 777 "$work/out"
setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all --ambient-caps -all --bounding-set -all timeout 300 \
	"$JOULED" -i 200ms -n 3 --socket none --state-dir "$work/none" -o "hwpc=file://$work/out/none.json" >/dev/null 2>"$work/none.err"
status=$?
expect privileges-none [ $status -eq 0 ]
expect privileges-none-says grep -q 'CPU time comes from cpu.stat' "$work/none.err"
finish
