#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# joulectl report and check on generated experiment trees: report against an independent computation with pandas, check
# against a list of traps, pictures against their energies.
. tests/e2e/lib.sh
JOULECTL=${JOULECTL:-$B/joulectl}
python_with pandas

for kind in good odd traps; do
	python3 $here/report_trees.py $kind "$work/$kind" >"$work/$kind.list" || fail "report-trees-$kind" "no tree"
done

# agrees NAME TREE "REPORT OPTIONS" EXPECT_OPTION...
agrees() {
	name=$1
	tree=$2
	options=$3
	shift 3
	# shellcheck disable=SC2086 # words
	"$JOULECTL" report --json $options "$work/$tree" >"$work/report.json" 2>"$work/report.err"
	if "$python" $here/report_expect.py "$work/$tree" "$work/report.json" "$@" >"$work/expect" 2>&1; then
		ok "$name"
	else
		fail "$name" "$(tail -n 3 "$work/expect" | tr '\n' '|' | head -c 400)"
	fi
}

for tree in good odd traps/empty-power traps/na-power traps/early-samples traps/cut-off; do
	agrees "report-$tree" $tree ""
	agrees "report-$tree-compat" $tree --compat compat
	agrees "report-$tree-external" $tree "--external-unit 10mW --external-idle 65.5" unit=10 idle=65.5
done

# The three forms say the same.
"$JOULECTL" report --json "$work/good" >"$work/good.json" 2>/dev/null
"$JOULECTL" report --csv "$work/good" >"$work/good.csv" 2>/dev/null
"$JOULECTL" report "$work/good" >"$work/good.txt" 2>/dev/null
if python3 $here/report_forms.py "$work/good.json" "$work/good.csv" "$work/good.txt" >"$work/forms" 2>&1; then
	ok report-forms
else
	fail report-forms "$(tail -n 1 "$work/forms" | head -c 300)"
fi

# Any directory of the tree, with the names of those above it.
for below in power-limit power-limit/bert power-limit/bert/150W power-limit/bert/150W/10; do
	"$JOULECTL" report "$work/good/$below" >"$work/below" 2>/dev/null
	grep -q '^power-limit / bert / 150W: ' "$work/below" && ok "report-below-$below" || fail "report-below-$below" "$(head -n 1 "$work/below")"
done

# warned NAME TREE PATTERN OPTION...
warned() {
	name=$1
	tree=$2
	pattern=$3
	shift 3
	"$JOULECTL" report "$@" "$work/$tree" >"$work/warned.out" 2>"$work/warned.err"
	grep -q -- "$pattern" "$work/warned.err" && ok "$name" || fail "$name" "$(said warned)"
}

warned report-unit good/power-limit/bert/200W 'below that of the GPU alone.*--external-unit 10mW'
warned report-tenfold traps/milliwatts 'times that of the GPU.*--external-unit mW' --external-unit 10mW
warned report-hole traps/empty-power '1 rows without power; they are left out'
warned report-early traps/early-samples 'hd: nothing for .* too little energy'
warned report-epochs traps/epoch-restart 'left out: .*epoch_end 3 stands there 0 times'
warned report-original traps/no-index 'joulectl check'
cp -r "$work/traps/cut-off/e/b/100W/0" "$work/counter"
awk -F, 'BEGIN { OFS = "," } NR > 1 { $8 = int($8 * 1.2) } { print }' "$work/counter/gpu-power.csv" >"$work/gpu" && mv "$work/gpu" "$work/counter/gpu-power.csv"
warned report-counter counter "the GPU's counter says"
if "$JOULECTL" report "$work/good/power-limit/bert/150W" 2>&1 >/dev/null | grep .; then
	fail report-quiet "a warning about a tree without fault"
else
	ok report-quiet
fi

while read -r name effect trap file line; do
	"$JOULECTL" check "$work/traps/$name" >"$work/check.out" 2>&1
	status=$?
	[ "$line" = 0 ] && place="$file:\{0,1\}[0-9]*: $effect: " || place="$file:$line: $effect: "
	[ "$effect" = note ] && want=0 || want=1
	if ! grep "^$place.*\[$trap\]" "$work/check.out" >/dev/null; then
		fail "check-$name" "$(head -c 300 "$work/check.out" | tr '\n' '|')"
	elif [ $status -ne $want ] || [ "$(grep -cE ': (aborts|skipped|wrong): ' "$work/check.out")" -ne $want ]; then
		fail "check-$name" "status $status: $(head -c 300 "$work/check.out" | tr '\n' '|')"
	else
		ok "check-$name"
	fi
done <"$work/traps.list"
for tree in good odd; do
	"$JOULECTL" check -q "$work/$tree" >"$work/check.out" 2>&1 && [ "$(wc -l <"$work/check.out")" -eq 1 ] && ok "check-$tree" ||
		fail "check-$tree" "$(head -c 300 "$work/check.out" | tr '\n' '|')"
done

# refused NAME STATUS PATTERN ARGUMENT...
refused() {
	name=$1
	want=$2
	pattern=$3
	shift 3
	timeout 300 "$JOULECTL" "$@" >"$work/refused.out" 2>"$work/refused.err"
	status=$?
	if [ $status -eq "$want" ] && grep -q -- "$pattern" "$work/refused.err" && [ "$(wc -l <"$work/refused.err")" -eq 1 ]; then
		ok "$name"
	else
		fail "$name" "exit status $status: $(said refused)"
	fi
}

mkdir -p "$work/empty/a/b" "$work/fifo"
mkfifo "$work/fifo/gpu-power.csv" "$work/fifo/system_info.json" "$work/fifo/timestamps.csv"
ln -s . "$work/empty/loop"
refused report-none 1 'No such file' report "$work/nothing"
refused report-empty 1 'no recorded repetition' report "$work/empty"
refused check-empty 1 'no recorded repetition' check "$work/empty"
refused report-file 1 'no directory' report "$work/good.json"
refused report-no-dir 2 'no directory; name' report
refused report-source 2 'no such source' report --source gpu "$work/good"
refused report-idle 2 'no power in watts' report --external-idle much "$work/good"
refused report-unit-word 2 'did you mean' report --external-unit 1mW "$work/good"
refused report-compat-idle 2 'leave out' report --compat --external-idle 3 "$work/good"
refused report-forms-both 2 'choose one' report --json --csv "$work/good"
timeout 300 "$JOULECTL" report "$work/fifo" >/dev/null 2>"$work/fifo.err"
[ $? -eq 1 ] && grep -q 'no repetition with energy' "$work/fifo.err" && ok report-fifo || fail report-fifo "$(said fifo)"
timeout 300 "$JOULECTL" check "$work/fifo" >"$work/fifo.out" 2>&1
[ $? -eq 1 ] && grep -q 'gpu-power.csv: aborts: ' "$work/fifo.out" && ok check-fifo || fail check-fifo "$(head -c 200 "$work/fifo.out")"

# draw NAME DIR OPTION...
draw() {
	drawn=$1
	shift
	"$JOULECTL" report --plot "$work/$drawn.svg" "$@" >/dev/null 2>"$work/$drawn.err" || fail "report-plot-$drawn" "$(said "$drawn")"
}

draw sweep "$work/good/power-limit"
draw clocks "$work/good/clock-limit" --source sd
draw names "$work/odd"
draw power "$work/good/power-limit/bert/150W"
draw one "$work/good/power-limit/bert/150W/10" --source rapl
draw phone "$work/good/power-limit/bert/150W" --width 360
draw batches "$work/odd/odd/bench/batches"
if python3 $here/report_svg.py "$work" "$work/good.json" >"$work/svg" 2>&1; then
	ok report-plots
else
	fail report-plots "$(tail -n 1 "$work/svg" | head -c 300)"
fi
python3 $here/plot.py safe "$work"/*.svg >"$work/safe" 2>&1 && ok report-plot-safe || fail report-plot-safe "$(tail -n 1 "$work/safe")"
refused report-plot-full 3 'No space left' report --plot /dev/full --json --source hd "$work/good/power-limit/bert/150W/0"
[ -n "${SHOTS:-}" ] && cp "$work"/*.svg "$SHOTS"
finish
