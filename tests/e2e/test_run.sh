#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first thing a user does.
. tests/e2e/lib.sh
need_root

run two -n 2 -i 300ms
tables=$(grep -ci 'cgroup' "$work/two.out")
if [ $status -eq 0 ] && [ "$tables" -ge 2 ]; then
	ok run-two-tables
else
	fail run-two-tables "exit status $status, $tables tables: $(said two)"
fi

t0=$(date +%s%N)
run five -n 5 -i 200ms -o null:
ms=$((($(date +%s%N) - t0) / 1000000))
if [ $status -eq 0 ] && [ $ms -ge 1000 ]; then
	ok run-five-intervals
else
	fail run-five-intervals "exit status $status after $ms ms: $(said five)"
fi

# The two programs of one run are found in its table: a spinner uses a whole CPU of the row of its cgroup.
make_cgroup busy
spin "$cgroup"
run busy -n 3 -i 500ms -o 'table=stdout:?limit=50'
if grep -q "jouled-e2e-$$-busy" "$work/busy.out"; then
	ok run-shows-busy-cgroup
else
	fail run-shows-busy-cgroup "not in the table: $(said busy)"
fi
kill "$spinner"

for flag in --help --version -h -V; do
	"$JOULED" $flag >"$work/flag.out" 2>"$work/flag.err"
	status=$?
	if [ $status -eq 0 ] && [ -s "$work/flag.out" ] && [ ! -s "$work/flag.err" ]; then
		ok "run$flag"
	else
		fail "run$flag" "exit status $status"
	fi
done
# One line says what is measured and what is not; the reasons show with -v, and none with -q.
run summary -n 1 -i 100ms -o null:
run summary-v -v -n 1 -i 100ms -o null:
run summary-q -q -n 1 -i 100ms -o null:
absent=$(sed -n 's/.*; not measured: \([^;]*\);.*/\1/p' "$work/summary.err" | tr ',' '\n' | grep -vc '^ *energy$\|^$')
if [ "$(grep -c '^jouled: note: measured here: CPU time' "$work/summary.err")" = 1 ] && ! grep -q 'left out\|stand-in' "$work/summary.err" &&
	[ "$(grep -c '^jouled: info: event .* is left out: ' "$work/summary-v.err")" = "$absent" ] && [ ! -s "$work/summary-q.err" ]; then
	ok run-says-what-it-measures
else
	fail run-says-what-it-measures "$absent absent: $(said summary)"
fi
run summary-root --root tests/sysroot/kabylake-laptop -n 1 -i 100ms -o null:
grep -q 'note: measured here: energy of package-0, core-0, .* (powercap); not measured: CPU time, ' "$work/summary-root.err" && ok run-says-what-a-capture-has ||
	fail run-says-what-a-capture-has "$(said summary-root)"

missing=
for word in --config --interval --count --output --socket --state-dir --rapl --formula --idle --trigger --estimate --root \
	--replay --btf --check --version; do
	"$JOULED" --help | grep -q -- "$word" || missing="$missing $word"
done
[ -z "$missing" ] && ok run-help-is-complete || fail run-help-is-complete "no$missing"

cat >"$work/good.yaml" <<EOF
sensor: e2e
interval: 200ms
outputs:
  - { format: power, to: "file://$work/check.json" }
EOF
run check --check -c "$work/good.yaml"
if [ $status -eq 0 ] && [ ! -e "$work/check.json" ]; then
	ok check-good-file
else
	fail check-good-file "exit status $status, or it opened the output: $(said check)"
fi
run conf -c "$work/good.yaml" -n 3
if [ $status -eq 0 ] && lines_at_least 3 "$work/check.json"; then
	ok config-file
else
	fail config-file "exit status $status: $(said conf)"
fi

# Ready means: measuring and outputs open. systemd is told so.
python3 $here/notify.py "$work/watchdog" 120 env WATCHDOG_USEC=1000000 "$JOULED" --socket none --state-dir "$work/state" -i 1s -n 2 -o null: \
	>"$work/watchdog.out" 2>"$work/notify.err"
python3 $here/notify.py "$work/notify" 120 env "$JOULED" --socket none --state-dir "$work/state" -i 200ms -n 3 -o null: \
	>"$work/notify.out" 2>"$work/notify.err"
if [ "$(grep -c '^WATCHDOG=1' "$work/watchdog.out")" -ge 2 ]; then
	ok systemd-watchdog
else
	fail systemd-watchdog "not twice in 2 s: $(tr '\n' '|' <"$work/watchdog.out")"
fi
if grep -q '^READY=1' "$work/notify.out"; then
	ok systemd-readiness
else
	fail systemd-readiness "no READY=1: $(tr '\n' '|' <"$work/notify.out")"
fi
finish
