#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# GPUs of a scripted library and meters as a user configures them: energy, shares, faults, outputs.
. tests/e2e/lib.sh
need_root
library=$(realpath "$B")/gpu/libnvidia-ml.so.1
[ -f "$library" ] || {
	fail gpu "no $library; make e2e-test builds it"
	finish
}

# script LINE...: the machine from now on.
script() {
	printf '%s\n' "$@" >"$work/script.new" && mv "$work/script.new" "$work/script"
}

# configure NAME LINE...: $work/NAME.yaml
configure() {
	configured=$1
	shift
	{
		printf 'interval: 500ms\nhistory: off\ncgroups: { names: off }\n'
		printf 'outputs: [ { format: power, to: "file://%s/%s.json" } ]\n' "$work" "$configured"
		printf '%s\n' "$@"
	} >"$work/$configured.yaml"
}

reports_of() {
	[ -f "$3" ] && [ "$(grep -c "\"target\":\"all\".*\"domain\":\"$1\"" "$3")" -ge "$2" ]
}

# check NAME COMMAND...: ok when it succeeds.
check() {
	checked=$1
	shift
	if reason=$("$@" 2>&1); then
		ok "$checked"
	else
		fail "$checked" "$(printf %s "$reason" | tail -n 2 | tr '\n' '|') $(said main)"
	fi
}

make_cgroup one
one=$cgroup
make_cgroup two
two=$cgroup
spin "$one"
first=$spinner
spin "$two"
second=$spinner
wait_until 50 grep -qx "$first" "$one/cgroup.procs"
wait_until 50 grep -qx "$second" "$two/cgroup.procs"
export FAKE_NVML="$work/script"

# Two GPUs: 125 W in a square wave, 60 W steady; the first is used 3 to 1 by two cgroups. 20 W are idle.
script "power 0 100000 50000 100" "power 1 60000 0 1000" "process 0 $first 60" "process 0 $second 20" "garbage"
configure main "gpu: { library: $library }" "idle-watts: { gpu: 20 }"
start main -c "$work/main.yaml" --socket "$work/sock"
wait_until 300 reports_of gpu-0 12 "$work/main.json"
cp "$work/main.json" "$work/steady.json"
check gpu-curve-square python3 $here/gpu.py curve "$work/steady.json" gpu-0 125
check gpu-curve-steady python3 $here/gpu.py curve "$work/steady.json" gpu-1 60
sed 's/.*"timestamp":"\([^"]*\)".*/\1/' "$work/steady.json" | sort -u | tail -n 6 >"$work/late"
grep -F -f "$work/late" "$work/steady.json" >"$work/late.json"
python3 $here/gpu.py share "$work/late.json" gpu-0 "${one#"$(cgroup2)"}" "${two#"$(cgroup2)"}" residual >"$work/shares"
if [ "$(tr '\n' ' ' <"$work/shares")" = "75 25 0 " ]; then
	ok gpu-shares
else
	fail gpu-shares "$(tr '\n' ' ' <"$work/shares"), 75 25 0 wanted; $(said main)"
fi
qualities=$(python3 $here/gpu.py quality "$work/late.json" gpu-0 "${one#"$(cgroup2)"}")
# a row whose counters had no turn on the PMU is partial, and worse than estimated
case " $qualities " in
*" measured "* | "  ") fail gpu-share-quality "$qualities" ;;
*) ok gpu-share-quality ;;
esac

# The same in what a person sees: the page of metrics, the table, and a command that uses the GPU alone.
curl -sf --max-time 60 --unix-socket "$work/sock" http://localhost/metrics >"$work/page"
check gpu-metrics-ledger python3 $here/gpu.py page "$work/page"
"$B/joulectl" top --socket "$work/sock" --once --json >"$work/top.json" 2>"$work/top.err"
check gpu-top-ledger python3 $here/gpu.py top "$work/top.json"
"$B/joulectl" run --socket "$work/sock" --json -- sh -c '
	printf "power 0 100000 50000 100\npower 1 60000 0 1000\nprocess 0 %s 50\n" $$ >"$1.new" &&
	mv "$1.new" "$1" && sleep 5' - "$work/script" 2>"$work/run.json"
check gpu-run python3 $here/gpu.py run "$work/run.json" 105

# The second falls off the bus: no report is invented, the other goes on, and it comes back.
script "power 0 100000 50000 100" "power 1 60000 0 1000" "lost 1"
wait_until 100 grep -q "gpu-1: it does not answer" "$work/main.err"
# what was measured before that is told by then
other=$(grep -c '"target":"all".*"domain":"gpu-0"' "$work/main.json")
wait_until 100 reports_of gpu-0 $((other + 2)) "$work/main.json"
before=$(grep -c '"target":"all".*"domain":"gpu-1"' "$work/main.json")
other=$(grep -c '"target":"all".*"domain":"gpu-0"' "$work/main.json")
wait_until 100 reports_of gpu-0 $((other + 3)) "$work/main.json"
after=$(grep -c '"target":"all".*"domain":"gpu-1"' "$work/main.json")
if [ "$before" -eq "$after" ]; then
	ok gpu-lost-is-silent
else
	fail gpu-lost-is-silent "$((after - before)) reports of a GPU that is lost"
fi
script "power 0 100000 50000 100" "power 1 60000 0 1000" "counter_offset 1 -4999000"
wait_until 150 grep -q "gpu-1: it is back" "$work/main.err"
wait_until 100 reports_of gpu-1 $((after + 4)) "$work/main.json"
check gpu-back reports_of gpu-1 $((after + 4)) "$work/main.json"
kill "$agent"
ended 50 "$agent" || status=none
if [ "$status" = 0 ]; then
	ok gpu-end
else
	fail gpu-end "exit status $status $(said main)"
fi
check gpu-ledger python3 $here/gpu.py ledger "$work/main.json"
if python3 - "$work/main.json" <<'PY'; then
import json, sys
worst = max(json.loads(l)["power"] for l in open(sys.argv[1]) if '"domain":"gpu-' in l and '"target":"all"' in l)
sys.exit(worst > 170)
PY
	ok gpu-no-spike
else
	fail gpu-no-spike "a power above the curve's"
fi

# Every output copes with such domains.
script "power 0 100000 0 1000" "process 0 $first 50"
configure forms "gpu: { library: $library }" 'meters: [ { type: command, command: [sh, -c, "while :; do echo d0c0=12.5; sleep 0.1; done"] } ]'
for o in "hwpc=file://$work/hwpc.json" "vjoule=file://$work/vjoule.bin" "table=file://$work/table.txt" "snapshot=file://$work/rec.cbor" \
	"power=file://$work/power.csv?file-format=csv"; do
	set -- "$@" -o "$o"
done
run forms -c "$work/forms.yaml" -n 6 "$@"
if [ "$status" = 0 ] && grep -q '^gpu-1 ' "$work/table.txt" && grep -q '^external-0 ' "$work/table.txt" &&
	grep -q ',gpu-0,' "$work/power.csv" && [ -s "$work/hwpc.json" ] && [ -s "$work/vjoule.bin" ]; then
	ok gpu-outputs
else
	fail gpu-outputs "exit status $status $(said forms)"
fi
"$B/joulectl" decode "$work/rec.cbor" >"$work/rec.json" 2>"$work/decode.err"
if grep -q 'GPU-fake0-0000-1111-2222-333344445555' "$work/rec.json"; then
	ok gpu-recording
else
	fail gpu-recording "$(head -c 200 "$work/decode.err")"
fi
run replay --replay "$work/rec.cbor" -o "power=file://$work/replay.json"
if [ "$status" = 0 ]; then
	check gpu-replay-ledger python3 $here/gpu.py ledger "$work/replay.json"
	share=$(python3 $here/gpu.py share "$work/replay.json" gpu-0 "${one#"$(cgroup2)"}")
	if [ "$share" -gt 50 ]; then
		ok gpu-replay-share
	else
		fail gpu-replay-share "$share % of a GPU that nobody else uses"
	fi
else
	fail gpu-replay-ledger "exit status $status $(said replay)"
fi
if wait_until 20 sh -c "! pgrep -f 'echo d0c0=12.[5]' >/dev/null"; then
	ok meter-command-ends
else
	fail meter-command-ends "the program of a meter outlives the agent"
fi

# Mistakes of a user.
configure wrong "gpu: { library: /nowhere/libnvidia-ml.so.1 }"
run wrong -c "$work/wrong.yaml" -n 1
if [ "$status" = 1 ] && grep -q 'gpu.library' "$work/wrong.err"; then
	ok gpu-no-library
else
	fail gpu-no-library "exit status $status $(said wrong)"
fi
configure bad 'meters: [ { type: shelly } ]'
run bad -c "$work/bad.yaml" --check
if [ "$status" != 0 ] && grep -q 'url' "$work/bad.err"; then
	ok meter-without-url
else
	fail meter-without-url "exit status $status $(said bad)"
fi
if [ -e /proc/driver/nvidia/version ]; then
	configure real "gpu: auto"
	run real -c "$work/real.yaml" -n 4
	check gpu-real reports_of gpu-0 2 "$work/real.json"
else
	skip gpu-real "no NVIDIA GPU on this machine"
fi
finish
