#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A recording made here is replayed by somebody who may do nothing: the same reports come out.
. tests/e2e/lib.sh
need_root

run record -n 6 -i 100ms -o "snapshot=file://$work/rec.cbor" -o "hwpc=file://$work/live.json" -o "power=file://$work/live.power"
[ $status -eq 0 ] && [ -s "$work/rec.cbor" ] && ok record || fail record "exit status $status: $(said record)"

# as_nobody COMMAND...
as_nobody() {
	setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set -all "$@"
}
cp "$JOULED" "$work/jouled"
chmod 755 "$work/jouled"
chmod 644 "$work/rec.cbor"
mkdir -m 777 "$work/nobody"
if ! command -v setpriv >/dev/null; then
	skip replay-unprivileged "no setpriv"
	finish
fi
as_nobody "$work/jouled" --socket none --state-dir "$work/nobody" --replay "$work/rec.cbor" -o "hwpc=file://$work/nobody/hwpc.json" \
	-o "power=file://$work/nobody/power.json" >"$work/replay.out" 2>"$work/replay.err"
status=$?
if [ $status -eq 0 ]; then
	ok replay-unprivileged
else
	fail replay-unprivileged "exit status $status: $(said replay)"
fi
if cmp -s "$work/live.json" "$work/nobody/hwpc.json"; then
	ok replay-hwpc-is-the-same
else
	fail replay-hwpc-is-the-same "$(cmp "$work/live.json" "$work/nobody/hwpc.json" 2>&1)"
fi
reason=$(python3 $here/power.py "$work/nobody/power.json" 6 2>&1) && ok replay-power-sums || fail replay-power-sums "$reason"
as_nobody sh -c 'exec "$1" --socket none --state-dir "$2" --replay - -o power=stdout: <"$3"' replay "$work/jouled" "$work/nobody" \
	"$work/rec.cbor" >"$work/stdin.power" 2>"$work/stdin.err"
status=$?
if [ $status -eq 0 ] && cmp -s "$work/stdin.power" "$work/nobody/power.json"; then
	ok replay-from-stdin
else
	fail replay-from-stdin "exit status $status: $(said stdin)"
fi

# Cgroups chosen at replay: the energy of those left out is told in one sum, and the parts still sum.
printf 'cgroups: { exclude: ["/"] }\n' >"$work/exclude.yaml"
run exclude -c "$work/exclude.yaml" --replay "$work/rec.cbor" -o power=stdout:
if [ $status -eq 0 ] && ! grep -q '"target":"/"' "$work/exclude.out" && grep -q '"target":"unselected"' "$work/exclude.out" &&
	reason=$(python3 $here/power.py "$work/exclude.out" 6 2>&1); then
	ok replay-exclude
else
	fail replay-exclude "exit status $status $reason $(said exclude)"
fi

# Cut anywhere, a recording is refused with its offset or ends where the last whole snapshot ends.
size=$(wc -c <"$work/rec.cbor")
bad=
for part in 1 7 30 50 75 99; do
	head -c $((size * part / 100 + 1)) "$work/rec.cbor" >"$work/cut.cbor"
	run cut --replay "$work/cut.cbor" -o power=stdout:
	[ $status -le 1 ] && [ "$(wc -l <"$work/cut.err")" -le 1 ] || bad="$bad $part%:$status"
done
[ -z "$bad" ] && ok replay-cut-files || fail replay-cut-files "$bad $(said cut)"

# Without any right it measures nothing and says what it would need.
as_nobody "$work/jouled" --socket none --state-dir "$work/nobody" -n 1 -i 50ms -o null: >"$work/plain.out" 2>"$work/plain.err"
status=$?
if { [ $status -eq 0 ] || [ $status -eq 1 ]; } && grep -qE 'CAP_|root|capabilit|perf_event_paranoid' "$work/plain.err"; then
	ok unprivileged-says-what-is-missing
else
	fail unprivileged-says-what-is-missing "exit status $status: $(said plain)"
fi
as_nobody "$work/jouled" doctor >"$work/doctor.out" 2>"$work/doctor.err"
status=$?
if grep -qE 'CAP_[A-Z]+' "$work/doctor.out" && grep -qi 'denied' "$work/doctor.out"; then
	ok doctor-names-capabilities
else
	fail doctor-names-capabilities "exit status $status: $(head -c 300 "$work/doctor.out" | tr '\n' '|')"
fi
finish
