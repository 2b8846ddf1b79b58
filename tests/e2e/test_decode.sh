#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# joulectl decode on what jouled really writes, in every binary format, from files, TCP and Unix sockets, against
# readers that share no code with it; and on inputs that want too much.
. tests/e2e/lib.sh
need_root
JOULECTL=${JOULECTL:-$B/joulectl}

# decode NAME ARGUMENT...: its exit status in $status, output in $work/NAME.json, errors in NAME.err.
decode() {
	decoded=$1
	shift
	timeout 300 "$JOULECTL" decode --json "$@" >"$work/$decoded.json" 2>"$work/$decoded.err"
	status=$?
}

# expect NAME FORMAT FILE DECODED AT_LEAST: what was decoded is what the reader finds.
expect() {
	if [ "$status" -ne 0 ]; then
		fail "$1" "exit status $status: $(said "$4")"
	elif reason=$(python3 $here/decode.py "$2" "$3" "$work/$4.json" "$5" 2>&1); then
		ok "$1"
	else
		fail "$1" "$(printf %s "$reason" | tail -n 1)"
	fi
}

make_cgroup spin
spin "$cgroup"
run record -n 6 -i 200ms -o "snapshot=file://$work/rec.cbor" -o "vjoule=file://$work/vjoule.document" \
	-o "vjoule=file://$work/vjoule.v02?dialect=v0.2"
[ $status -eq 0 ] && ok decode-record || fail decode-record "exit status $status: $(said record)"
for f in vjoule.document vjoule.v02; do
	decode "$f" "$work/$f"
	expect "decode-file-$f" vjoule "$work/$f" "$f" 5
done
decode rec "$work/rec.cbor"
expect decode-file-snapshot snapshot "$work/rec.cbor" rec 5

# Standard input, and every format by its name.
timeout 300 "$JOULECTL" decode -j <"$work/rec.cbor" >"$work/stdin.json" 2>"$work/stdin.err"
status=$?
expect decode-stdin snapshot "$work/rec.cbor" stdin 5
decode named --format vjoule - <"$work/vjoule.document"
expect decode-named vjoule "$work/vjoule.document" named 5

# Text has the same records.
for f in vjoule.v02 rec.cbor; do
	"$JOULECTL" decode "$work/$f" >"$work/text" 2>"$work/text.err" || fail "decode-text-$f" "exit status $?"
	n=$(grep -c '^[a-z]* [a-z]* [0-9]* at byte [0-9]*:' "$work/text")
	want=$("$JOULECTL" decode -j "$work/$f" 2>/dev/null | wc -l)
	[ "$n" -eq "$want" ] && ok "decode-text-$f" || fail "decode-text-$f" "$n records, $want in JSON"
done

# A listening output, live: records come while it goes on, and its end is the end.
# live NAME FORMAT READER URL [OPTION]
live() {
	rm -f "$work/port" "$work/live.sock" "$work/live.json"
	case $4 in
	tcp) to="tcp-listen://127.0.0.1:0?port-file=$work/port${5:+&$5}" ;;
	unix) to="unix-listen://$work/live.sock${5:+?$5}" ;;
	esac
	start live -i 100ms -o "$2=$to"
	if [ "$4" = tcp ]; then
		wait_until 300 test -s "$work/port" || fail "$1" "no port: $(said live)"
		from=tcp://127.0.0.1:$(cat "$work/port")
	else
		wait_until 300 listens "$work/live.sock" || fail "$1" "no socket: $(said live)"
		from=unix://$work/live.sock
	fi
	"$JOULECTL" decode -j "$from" >"$work/live.json" 2>"$work/live-decode.err" &
	decoder=$!
	agents="$agents $decoder"
	came=no
	wait_until 300 lines_at_least 6 "$work/live.json" && came=yes
	kill "$agent"
	ended 200 "$agent"
	ended 200 "$decoder" || status=none
	if [ $came = yes ] && [ "$status" = 0 ] && python3 -c 'import json, sys
for number, line in enumerate(open(sys.argv[1]), 1):
    record = json.loads(line)
    assert record["record"] == number and record["format"] == sys.argv[2], line[:200]' "$work/live.json" "$3" 2>"$work/live.py"; then
		ok "$1"
	else
		fail "$1" "records came: $came, exit status $status: $(head -c 200 "$work/live-decode.err") $(tail -n 1 "$work/live.py")"
	fi
}
live decode-live-tcp-vjoule vjoule vjoule tcp
live decode-live-unix-vjoule-v02 vjoule vjoule unix "dialect=v0.2"
live decode-live-unix-snapshot snapshot snapshot unix
live decode-live-tcp-snapshot snapshot snapshot tcp

# One record at a time: what is whole is printed before the next one comes.
mkfifo "$work/fifo"
"$JOULECTL" decode -j "$work/fifo" >"$work/piece.json" 2>"$work/piece.err" &
decoder=$!
agents="$agents $decoder"
exec 8>"$work/fifo"
size=$(wc -c <"$work/vjoule.document")
first=$(head -n 1 "$work/vjoule.document.json" | sed 's/.*"length":\([0-9]*\).*/\1/')
head -c $((first + 4)) "$work/vjoule.document" >&8
if wait_until 50 lines_at_least 1 "$work/piece.json"; then
	ok decode-as-it-comes
else
	fail decode-as-it-comes "the header is not printed while its writer waits"
fi
tail -c +$((first + 5)) "$work/vjoule.document" | head -c $((size - first - 5)) >&8
exec 8>&-
ended 50 "$decoder" || status=none
if [ "$status" = 1 ] && grep -q "expected the rest of a record, found the end of the input at byte $((size - 1))" "$work/piece.err"; then
	ok decode-cut
else
	fail decode-cut "exit status $status: $(cat "$work/piece.err")"
fi

decode full "$work/vjoule.document" && "$JOULECTL" decode "$work/vjoule.document" >/dev/full 2>"$work/full.err"
status=$?
if [ $status -eq 3 ] && grep -q 'output: No space left' "$work/full.err"; then
	ok decode-full-disk
else
	fail decode-full-disk "exit status $status: $(said full)"
fi

# usage NAME STATUS WORDS ARGUMENT...
usage() {
	name=$1 want=$2 words=$3
	shift 3
	"$JOULECTL" "$@" >"$work/usage.out" 2>"$work/usage.err" </dev/null
	status=$?
	if [ $status -eq "$want" ] && cat "$work/usage.out" "$work/usage.err" | grep -q -- "$words"; then
		ok "$name"
	else
		fail "$name" "exit status $status: $(said usage)"
	fi
}
usage ctl-no-verb 2 'joulectl --help'
usage ctl-unknown-verb 2 'did you mean decode?' decod
usage ctl-unknown-option 2 'did you mean --json?' decode --jsn
usage ctl-help 0 'decode  ' --help
usage ctl-verb-help 0 '--format FORMAT' decode --help
usage ctl-version 0 '^joulectl [0-9]' --version
usage decode-unknown-format 2 'one of vjoule' decode --format xml
usage decode-no-file 1 'No such file' decode "$work/nothing"
usage decode-directory 1 'Is a directory' decode "$work"
usage decode-nobody-listens 1 'is an output listening there?' decode "unix://$work/nobody.sock"
usage decode-bad-address 2 'tcp://HOST:PORT' decode tcp://nowhere
usage decode-empty 1 'the end of the input' decode
usage decode-no-format 1 'or say --format' decode "$JOULECTL"

# Inputs that promise or hold more than is taken: an error with its byte, within 64 MiB; the sanitizer's own
# memory would count too.
if "$JOULECTL" --help | grep -q decode && ! ldd "$JOULECTL" | grep -q libasan; then
	mkdir "$work/hostile"
	python3 $here/decode.py hostile "$work/hostile"
	for f in "$work/hostile"/*; do
		want=1
		case ${f##*/} in vjoule-names) want=0 ;; esac   # large, and right
		if reason=$(python3 $here/decode.py memory 65536 $want "$JOULECTL" decode --json "$f" 2>&1); then
			ok "decode-hostile-${f##*/}"
		else
			fail "decode-hostile-${f##*/}" "$reason"
		fi
	done
fi
finish
