#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# vJoule streams as a formula meets them: both dialects live, figures against the recording of the same
# intervals, selections, a reload that changes the metrics, a restart.
. tests/e2e/lib.sh
need_root
reader=tests/golden/read_vjoule.py

# read_live NAME PLACE COUNT
read_live() {
	reason=$(timeout 300 python3 $reader --check --count "$3" "$2" 2>&1 >"$work/$1.json") && rc=0 || rc=1
	if [ $rc -eq 0 ]; then
		ok "$1"
	else
		fail "$1" "$reason $(said live)"
	fi
}

count() {
	grep -c "^$1" "$work/follow" 2>/dev/null
}

at_least() {
	[ "$(count "$1")" -ge "$2" ]
}

# has_reports N: that many since the last header.
has_reports() {
	[ "$(awk '/^header/ { n = 0 } /^report/ { n++ } END { print n + 0 }' "$work/follow")" -ge "$1" ]
}

make_cgroup spin
spin "$cgroup"
target=${cgroup#"$(cgroup2)"}

start live -i 100ms -o "vjoule=tcp-listen://127.0.0.1:0?port-file=$work/port" \
	-o "vjoule=unix-listen://$work/sock?dialect=v0.2" \
	-o "vjoule=unix-listen://$work/few?cgroups=$target&cgroups=/no/such/*"
wait_until 100 listens "$work/few" || fail vjoule-start "$(said live)"
read_live vjoule-document-live "tcp:127.0.0.1:$(cat "$work/port")" 8
read_live vjoule-v02-live "unix:$work/sock" 8
read_live vjoule-selected-live "unix:$work/few" 8
if head -n 1 "$work/vjoule-v02-live.json" | grep -q '"PERF_COUNT_HW_CPU_CYCLES".*"LLC_MISSES"'; then
	ok vjoule-v02-names
else
	fail vjoule-v02-names "$(head -n 1 "$work/vjoule-v02-live.json")"
fi
if tail -n 1 "$work/vjoule-selected-live.json" | grep -q "\"cgroups\": {\"$target\": {[^}]*}}"; then
	ok vjoule-cgroups-of-one-output
else
	fail vjoule-cgroups-of-one-output "$(tail -n 1 "$work/vjoule-selected-live.json" | cut -c 1-300)"
fi
if tail -n 1 "$work/vjoule-document-live.json" | grep -q "\"$target\": {"; then
	ok vjoule-target-by-path
else
	fail vjoule-target-by-path "$target is not in the report"
fi
kill "$agent"
ended 50 "$agent" || status=none
if [ "$status" = 0 ] && [ ! -e "$work/port" ] && [ ! -e "$work/sock" ]; then
	ok vjoule-ends-and-leaves-nothing
else
	fail vjoule-ends-and-leaves-nothing "exit status $status, $(ls "$work")"
fi

run same -n 5 -i 200ms -o "vjoule=file://$work/same.vjoule" -o "snapshot=file://$work/same.jd"
python3 tests/golden/read_snapshot.py "$work/same.jd" >"$work/same.jsonl"
reason=$(python3 $here/vjoule.py compare "$work/same.vjoule" "$work/same.jsonl" 2>&1) && rc=0 || rc=1
if [ $status -eq 0 ] && [ $rc -eq 0 ]; then
	ok vjoule-equals-the-ledger
else
	fail vjoule-equals-the-ledger "exit status $status, $reason $(said same)"
fi

run replayed --replay "$work/same.jd" -o "vjoule=file://$work/replayed.vjoule"
if [ $status -eq 0 ] && cmp -s "$work/same.vjoule" "$work/replayed.vjoule"; then
	ok vjoule-replayed-is-the-same
else
	fail vjoule-replayed-is-the-same "exit status $status, $(cmp "$work/same.vjoule" "$work/replayed.vjoule" 2>&1) $(said replayed)"
fi

# Cgroups that come and go with others inside: simple_formula must get over it.
start churn -i 50ms -o "vjoule=file://$work/churn.vjoule?dialect=v0.2"
make_cgroup nested
nested=$cgroup
for round in 1 2 3 4 5 6; do
	mkdir -p "$nested/a-$round/b/c" "$nested/a-$round/b/d"
	for dir in "$nested/a-$round" "$nested/a-$round/b" "$nested/a-$round/b/c" "$nested/a-$round/b/d"; do
		sh -c 'echo $$ >"$1/cgroup.procs"; exec sleep 0.08' nested "$dir"
	done
	rmdir "$nested/a-$round/b/c" "$nested/a-$round/b/d" "$nested/a-$round/b" "$nested/a-$round"
done
# p and p/c once more, with load in p/c alone for longer than p's directory would stay; and a machine of two cgroups beside
# a cgroup of its name and a machine of a file's name.
ran_in() {
	sh -c 'echo $$ >"$1/cgroup.procs"; i=0; while [ $i -lt "$2" ]; do i=$((i + 1)); done' nested "$1" "$2"
}
machine='machine-qemu\x2d1\x2dvm.scope'
mkdir -p "$nested/p/c" "$nested/$machine/libvirt" "$nested/vm" "$nested/machine-qemu\x2d2\x2dpackage.scope"
for dir in "$nested/p" "$nested/p/c"; do
	ran_in "$dir" 1000
done
rmdir "$nested/p/c" "$nested/p"
sleep 0.3
mkdir -p "$nested/p/c"
for round in 1 2 3 4 5 6 7 8 9 10 11 12; do
	for dir in "$nested/p/c" "$nested/$machine" "$nested/$machine/libvirt" "$nested/vm" "$nested/machine-qemu\x2d2\x2dpackage.scope"; do
		ran_in "$dir" 1000
	done
	sleep 0.05
done
rmdir "$nested/p/c" "$nested/p" "$nested/$machine/libvirt" "$nested/$machine" "$nested/vm" "$nested/machine-qemu\x2d2\x2dpackage.scope"
sleep 1
kill "$agent"
ended 50 "$agent" || status=none
reason=$(python3 tests/golden/check_vjoule_formula.py "$work/churn.vjoule" 2>&1) && rc=0 || rc=1
echo "$reason"
case $rc-$status-$reason in
*"removed 0 times"*) fail vjoule-formula-survives-churn "nothing came and went: $reason" ;;
0-0-*) ok vjoule-formula-survives-churn ;;
*) fail vjoule-formula-survives-churn "exit status $status, $reason $(said churn)" ;;
esac

# The agent says once, at the start, which values the wire cannot carry.
run said -n 1 -i 100ms --rapl none --estimate off -o "vjoule=file://$work/said.vjoule"
if [ $status -eq 0 ] && [ "$(grep -c 'no core, uncore, package, dram, psys; 0.0 is sent' "$work/said.err")" -eq 1 ]; then
	ok vjoule-absent-domains-are-named
else
	fail vjoule-absent-domains-are-named "exit status $status $(said said)"
fi
run said -n 1 -i 100ms --rapl none -o "vjoule=file://$work/said.vjoule"
if [ $status -eq 0 ] && grep -q 'package is an estimate' "$work/said.err"; then
	ok vjoule-estimate-is-named
else
	fail vjoule-estimate-is-named "exit status $status $(said said)"
fi

bad=
for options in dialect=v0.3 metrics= metrics=A=NO_SUCH_EVENT metrics=FOO max-clients=0 cgroups=relative; do
	run bad --check -o "vjoule=tcp-listen://127.0.0.1:0?$options"
	[ $status -eq 2 ] && [ "$(wc -l <"$work/bad.err")" -eq 1 ] || bad="$bad $options:$status"
done
run bad --check -o "vjoule=file://$work/x?max-clients=3"
[ $status -eq 2 ] || bad="$bad no-clients"
run bad --check -o 'hwpc=stdout:?dialect=v0.2'
[ $status -eq 2 ] || bad="$bad wrong-format"
run bad --check -o "vjoule=tcp-listen://127.0.0.1:0?dialect=v0.2&metrics=A=CYCLES&metrics=LLC_MISSES&cgroups=/a/*&max-clients=3"
[ $status -eq 0 ] || bad="$bad good:$(said bad)"
if [ -z "$bad" ]; then
	ok vjoule-options
else
	fail vjoule-options "$bad"
fi

# A reload: other cgroups change nothing for a client, other metrics bring it to a new header on the same port.
: >"$work/follow"
python3 $here/vjoule.py follow "$work/port" "$work/follow" &
follower=$!
agents="$agents $follower"
config() {
	printf 'interval: 100ms\noutputs:\n- { format: vjoule, to: "tcp-listen://127.0.0.1:0", port-file: %s, cgroups: ["%s"], metrics: [%s] }\n' \
		"$work/port" "$1" "$2" >"$work/vjoule.yaml"
}
config "$target" TASK_CLOCK
start reload -c "$work/vjoule.yaml"
wait_until 100 has_reports 3 || fail vjoule-reload "no reports: $(said reload)"
port=$(cat "$work/port")
config "/no/such" TASK_CLOCK
kill -HUP "$agent"
without() {
	tail -n 1 "$work/follow" | grep '^report' | grep -qv -- "$target"
}
if wait_until 50 without && ! grep -q '^closed' "$work/follow"; then
	ok vjoule-cgroups-change-in-place
else
	fail vjoule-cgroups-change-in-place "$(tail -n 1 "$work/follow") $(said reload)"
fi
config "$target" "TASK_CLOCK, WORK=TASK_CLOCK"
kill -HUP "$agent"
if wait_until 50 at_least 'header .*TASK_CLOCK WORK' 1 && wait_until 50 has_reports 3 && [ "$(count closed)" -eq 1 ] &&
	[ "$(cat "$work/port")" = "$port" ]; then
	ok vjoule-metrics-change-closes-clients
else
	fail vjoule-metrics-change-closes-clients "$(grep -v ^report "$work/follow" | tail -n 3 | tr '\n' '|') $(said reload)"
fi

# Killed and started again: a new port, a new header, nothing twice.
kill -9 "$agent"
ended 50 "$agent"
before=$(count header)
start again -c "$work/vjoule.yaml"
if wait_until 100 at_least header $((before + 1)) && wait_until 50 has_reports 5 &&
	reason=$(python3 $here/vjoule.py twice "$work/follow" 2>&1); then
	ok vjoule-clients-come-back
else
	fail vjoule-clients-come-back "$reason $(said again)"
fi
kill "$agent"
ended 50 "$agent" && [ "$status" -eq 0 ] || fail vjoule-end "exit status $status"
kill "$follower"
finish
