#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# joulectl record and mark: trees as pandas and sqlite read them, GPUs and limits of a scripted driver, and what is
# left of a recording that was cut off.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
need_root
JOULECTL=${JOULECTL:-$B/joulectl}
JOULECTL=$(realpath "$JOULECTL")
sock=$work/sock
root=$work/root
limits=$work/limits
mkdir "$limits"
printf 'gpus 2\npower 0 100000 60000 1000\npower 1 50000 0 1000\n' >"$work/script"
export FAKE_NVML="$work/script" FAKE_NVML_LIMITS="$limits"
LD_LIBRARY_PATH=$(realpath "$B/gpu")
export LD_LIBRARY_PATH
cat >"$work/meter" <<'END'
#!/bin/sh
sleep 0.7 # a recording that begins with the agent waits for the first value
while :; do
	echo d0c0=120.5 d0c1=30
	sleep 0.1
done
END
chmod +x "$work/meter"
cat >"$work/config.yaml" <<END
weight: time
rapl: none
events: { core: [TASK_CLOCK], msr: [] }
estimate-idle-watts: 1.5
estimate-max-watts: 8
gpu: { library: $LD_LIBRARY_PATH/libnvidia-ml.so.1 }
meters: [ { type: command, command: [ $work/meter ] } ]
END
check() {
	name=$1
	shift
	if "$@" >"$work/check.out" 2>&1; then
		ok "$name"
	else
		fail "$name" "$(tail -n 1 "$work/check.out" | head -c 300)"
	fi
}

python_with pandas

by() {
	"$python" $here/record.py "$@"
}

record() {
	recorded=$1
	shift
	"$JOULECTL" record --socket "$sock" --root "$root" "$@" >"$work/$recorded.out" 2>"$work/$recorded.err"
	status=$?
}

expect() {
	if [ "$status" = "$2" ]; then
		ok "$1"
	else
		fail "$1" "exit status $status instead of $2: $(said "$recorded")"
	fi
}

staged() {
	find "$root" -maxdepth 3 -name '_staged-*' 2>/dev/null | grep -c .
}

whole() {
	check "$1-whole" by whole "$2"
}

limit_is() {
	[ "$(cut -d' ' -f1 "$limits/0")" = "$1" ]
}

start agent -c "$work/config.yaml" --socket "$sock" -o null:
wait_until 300 listens "$sock" || fail agent "no socket: $(said agent)"

# The machine alone.
record plain --experiment e --benchmark b --run r -r 2 --gpu none -- sh -c '
	cd / && "$0" mark train_begin && "$0" mark epoch_begin && "$0" mark epoch_end && "$0" mark epoch_begin 1
	echo "batch_begin 7" >"$JOULED_MARK_FIFO"
	echo nonsense >"$JOULED_MARK_FIFO"
	"$0" mark epoch_end 5
	"$0" mark epoch_end
	"$0" mark nonsense 2>/dev/null && exit 9
	"$0" mark batch_begin x 2>/dev/null && exit 9
	"$0" mark train_end; "$0" mark batch_end 8; sleep 1; printf "epoch_begin 2" >"$JOULED_MARK_FIFO"' "$JOULECTL"
expect plain 0
for n in 0 1; do
	whole plain-$n "$root/e/b/r/$n"
done
check plain-events by holds "$root/e/b/r/1" 'events == [("experiment_begin", 0), ("train_begin", 0), ("epoch_begin", 0), ("epoch_end", 0),
	("epoch_begin", 1), ("batch_begin", 7), ("epoch_end", 1), ("train_end", 0), ("batch_end", 8), ("epoch_begin", 2), ("epoch_end", 2),
	("experiment_end", 0)] and info["epoch_closed"] == 2'
check plain-epoch-closed grep -q 'epoch 2 has not ended' "$work/plain.err"
check plain-refused grep -q 'mark epoch_end 5: epochs are counted from 0' "$work/plain.err"
check plain-unknown grep -q 'mark nonsense: no such event' "$work/plain.err"
check plain-files by holds "$root/e/b/r/0" '"gpu-power.csv" not in files and "total_power_samples.csv" not in files and
	"snapshot.cbor" in files and info["power_samples_from"] is None and "missing" in info["gpu"] and info["marks_refused"] == 2'
check plain-external by holds "$root/e/b/r/0" 'info["external_unit"] == "mW" and
	{(r["d0c0"], r["d0c1"]) for r in table("power-external.csv")} == {("120500", "30000")}'
check plain-snapshots sh -c '"$1" decode "$2" >/dev/null' sh "$JOULECTL" "$root/e/b/r/0/snapshot.cbor"
check plain-reader grep -q 'no GPU is recorded (--gpu none).*the original reader leaves out' "$work/plain.err"
check plain-reader-each test "$(grep -c 'e/b/r/[01]: not there: gpu-power.csv, total_power_samples.csv: the original reader leaves this' "$work/plain.err")" = 2
record rapl --experiment e --benchmark b --run rapl --gpu none --samples-from rapl --external-unit 10mW -- sleep 1
expect rapl 0
whole rapl "$root/e/b/rapl/0"
check rapl-said by holds "$root/e/b/rapl/0" 'info["power_samples_from"] == "rapl" and "total_power_samples.csv" in files and
	info["external_unit"] == "10mW" and {r["d0c0"] for r in table("power-external.csv")} == {"12050"}'

# A meter that never says a value: it is named, and the rest is recorded.
mute=$work/mute
sed 's|^meters: .*|meters: [ { type: command, command: [ sleep, "1000" ] } ]|' "$work/config.yaml" >"$work/mute.yaml"
recorded_by=$agent
start mute-agent -c "$work/mute.yaml" --socket "$mute" -o null:
wait_until 300 listens "$mute" || fail mute-agent "no socket: $(said mute-agent)"
record mute --socket "$mute" --experiment e --benchmark b --run mute --gpu none -- true
expect mute 0
check mute-said grep -q '1 power meter of the agent sent no value in 2 s, and is not in power-external.csv' "$work/mute.err"
check mute-rest by holds "$root/e/b/mute/0" '"power-external.csv" not in files and info["external_unit"] is None'
kill "$agent"
ended 300 "$agent" || fail mute-agent-end "does not end"
agent=$recorded_by

# An agent that splits no energy: what a cgroup used is not known, so there is no file with zeros.
plain=$work/plain
sed 's|^meters: .*|formula: none|' "$work/config.yaml" >"$work/plain.yaml"
recorded_by=$agent
start plain-agent -c "$work/plain.yaml" --socket "$plain" -o null:
wait_until 300 listens "$plain" || fail plain-agent "no socket: $(said plain-agent)"
record unsplit --socket "$plain" --experiment e --benchmark b --run unsplit --gpu none -- sleep 1
expect unsplit 0
check unsplit-said grep -q 'warning: record: the agent gives no energy to cgroups (formula none), so there is no cgroup-power.csv; ' "$work/unsplit.err"
check unsplit-files by holds "$root/e/b/unsplit/0" '"cgroup-power.csv" not in files and info["energy_quality"] == {} and
	{"rapl-power.csv", "counters.csv"} <= set(files) and int(table("counters.csv")[-1]["cpu-ns"]) > 0'
record unsplit-samples --socket "$plain" --experiment e --benchmark b --run samples --gpu none --samples-from cgroup -- true
expect unsplit-samples 125
check unsplit-samples-said grep -q 'record: --samples-from cgroup: the agent gives no energy to cgroups' "$work/unsplit-samples.err"
check unsplit-samples-not test ! -e "$root/e/b/samples"
kill "$agent"
ended 300 "$agent" || fail plain-agent-end "does not end"
agent=$recorded_by

# Two GPUs, the machine busy: a directory each, energy of the curve, rows at their pace.
make_cgroup load
spin "$cgroup"
first=$spinner
spin "$cgroup"
record gpus --experiment e --benchmark g --run r --gpu gpu-0,GPU-fake1-0000-1111-2222-333344445555 --baseline 1s -- sleep 5
kill -9 "$first" "$spinner"
expect gpus 0
for n in 0 1; do
	whole gpu-$n "$root/e/g-gpu$n/r/0"
	check gpu-$n-pace by pace "$root/e/g-gpu$n/r/0" gpu-power.csv 150
done
check gpu-readings-pace by pace "$root/e/g-gpu0/r/0" rapl-power.csv 250
check gpu-0-energy by energy "$root/e/g-gpu0/r/0" 100000 60000 1000
check gpu-1-energy by energy "$root/e/g-gpu1/r/0" 50000 0 1000
check gpu-info by holds "$root/e/g-gpu1/r/0" 'info["device_name"] == "Scripted GPU 1" and info["cuda_version"] == [12, 4] and
	info["power_samples_from"] == "nvml" and info["effective_power_limit"] == 250000'
for n in 0 1; do
	check baseline-$n by holds "$root/e/_baseline-gpu$n" 'events is None and info is None and "rapl-power.csv" in files and
		(max(int(r["power"]) for r in table("gpu-power.csv")) > 50000) == ('$n' == 0)'
	check gpu-$n-cgroup by holds "$root/e/g-gpu$n/r/0" 'list(table("cgroup-power.csv")[0]) == ["", "timestamp", "package-0",
		"gpu-'$n'", "package-0-energy", "gpu-'$n'-energy"] and list(info["energy_quality"]) == ["package-0", "gpu-'$n'"]'
done
# A command that is over before the driver's ring is asked: readers need its samples.
record short --experiment e --benchmark b --run short --gpu gpu-0 -- true
expect short 0
check short-shape by shape "$root/e/b/short/0"
check short-samples by holds "$root/e/b/short/0" 'len(table("total_power_samples.csv")) > 1 and info["power_samples_from"] == "nvml"'
# Epochs between two rows: readers stop at a window without any, and it is said.
record instant --experiment e --benchmark b --run instant --gpu gpu-0 -- sh -c '
	for i in 1 2 3; do printf "epoch_begin\nepoch_end\n"; done >"$JOULED_MARK_FIFO"; sleep 0.5'
expect instant 0
check instant-said grep -Eq 'no row in the part that counts.*outside-window|end before they begin.*no-window' "$work/instant.err"
check instant-only sh -c '! grep -q warning "$1"' sh "$work/short.err"
# Killed before the ring was asked: recovery makes the samples of the rows.
rm -f "$work/ready"
"$JOULECTL" record --socket "$sock" --root "$root" --experiment early --benchmark b --run r --gpu gpu-0 -- \
	sh -c "echo \$\$ >$work/ready.new; mv $work/ready.new $work/ready; exec sleep 100" >/dev/null 2>"$work/early.err" &
recorder=$!
wait_until 200 test -e "$work/ready"
check early-begun wait_until 50 sh -c 'grep -q experiment_begin "$1"/early/b/_staged-*/r/timestamps.csv 2>/dev/null' sh "$root"
kill -9 $recorder
wait $recorder 2>/dev/null
kill -9 "$(cat "$work/ready")" 2>/dev/null
rm -f "$root/early/b"/_staged-*/r/total_power_samples.csv
check early-recover "$JOULECTL" record --root "$root" --recover
check early-shape by shape "$root/early/b/r/0"
check early-samples by holds "$root/early/b/r/0" 'info["power_samples_from"] == "polling" and
	[r["value"] for r in table("total_power_samples.csv")] == [r["power"] for r in table("gpu-power.csv")]'
# A ring that stays empty: rows take its place.
printf 'gpus 1\npower 0 100000 0 1000\nsilent\n' >"$work/script"
record silent --experiment e --benchmark b --run silent --gpu gpu-0 -- sleep 1
expect silent 0
check silent-samples by holds "$root/e/b/silent/0" 'info["power_samples_from"] == "polling" and
	{r["value"] for r in table("total_power_samples.csv")} == {"100000"}'

# A GPU that is lost: the files are as good as they were, and it is said.
printf 'gpus 1\npower 0 100000 0 1000\n' >"$work/script"
record lost --experiment e --benchmark b --run lost --gpu gpu-0 -- sh -c "sleep 2; echo lost 0 >>$work/script; sleep 8"
expect lost 0
whole lost "$root/e/b/lost/0"
check lost-gpu-said grep -q 'GPU GPU-fake0.* told no power in the last [0-9.]* s: it was lost' "$work/lost.err"
check lost-reader-said grep -q 'lost/0/gpu-power.csv: ends .* before experiment_end.*\[stops-early\]: the original reader' "$work/lost.err"
check lost-info by holds "$root/e/b/lost/0" 'info["gpu_silent_ns"] > 2e9'
check lost-checked sh -c '! "$1" check "$2" >/dev/null' sh "$JOULECTL" "$root/e/b/lost/0"

# One that refuses its power has no file that the original reader wants.
printf 'gpus 1\nrefuse power\nrefuse samples\n' >"$work/script"
kill -TERM "$agent"
ended 100 "$agent"
start powerless -c "$work/config.yaml" --socket "$sock" -o null:
wait_until 300 listens "$sock" || fail powerless "no socket: $(said powerless)"
record powerless --experiment e --benchmark b --run powerless -- sleep 1
expect powerless 0
check powerless-said grep -q 'GPU GPU-fake0.* refuses to tell its power' "$work/powerless.err"
check powerless-reader grep -q 'not there: gpu-power.csv, total_power_samples.csv: the original reader leaves' "$work/powerless.err"

# Fields that a GPU refuses are no columns.
printf 'gpus 1\nrefuse pcie\nrefuse app_clock\n' >"$work/script"
kill -TERM "$agent"
ended 100 "$agent"
start agent2 -c "$work/config.yaml" --socket "$sock" -o null:
wait_until 300 listens "$sock" || fail agent2 "no socket: $(said agent2)"
record fewer --experiment e --benchmark b --run fewer --every 20ms -- sleep 2
expect fewer 0
whole fewer "$root/e/b/fewer/0"
check fewer-samples by holds "$root/e/b/fewer/0" 'info["power_samples_from"] == "nvml"'
check fewer-columns by holds "$root/e/b/fewer/0" 'not {"pci-tx", "pci-rx", "app-clock-mem"} & set(table("gpu-power.csv")[0])'

# Limits.
printf 'gpus 1\n' >"$work/script"
record sweep --benchmark b --sweep '120W 877MHz,1065MHz' -- true
expect sweep-mixed 2
record sweep --benchmark b --sweep '120W 150W' -- cat "$limits/0"
expect sweep 0
check sweep-runs test -d "$root/power-limit/b/120W/0" -a -d "$root/power-limit/b/150W/0"
check sweep-set grep -q '^120000 ' "$work/sweep.out"
check sweep-back limit_is 250000
check sweep-recorded by holds "$root/power-limit/b/150W/0" 'info["effective_power_limit"] == 150000 and info["power_limit_mw"] == 150000'
record beyond --benchmark b --power-limit 50 -- true
expect limit-refused 125
check limit-refused-back limit_is 250000
record clocks --benchmark b --app-clocks 877,1065 -- sh -c 'sleep 0.6; exit 3'
expect failed-command 3
check failed-said grep -q 'status 3; not published, kept in .*--recover publishes' "$work/clocks.err"
check failed-unpublished test ! -e "$root/clock-limit/b/877MHz,1065MHz"
check clocks-back grep -qx '250000 1215 1095' "$limits/0"
check recover "$JOULECTL" record --root "$root" --recover
whole recovered "$root/clock-limit/b/877MHz,1065MHz/0"

staged_rows() {
	find "$root/power-limit/cut" -path '*/_staged-*' -name "$1.csv" -exec cat {} + 2>/dev/null | wc -l
}

look_at_begin() {
	events=$(find "$root/power-limit/cut" -path '*/_staged-*' -name timestamps.csv 2>/dev/null | head -n 1)
	begin=$(sed -n 's/,experiment_begin,.*//p' "$events" 2>/dev/null)
	[ -n "$begin" ] || begin=never
}

# rows_inside TABLE: those of the experiment. Rows from before it may be written after the command has begun.
rows_inside() {
	look_at_begin
	awk -F , -v begin="$begin" '$2 > begin' "${events%/*}/$1.csv" 2>/dev/null | grep -vc timestamp
}

# The driver's samples come in larger parts, and a repetition that is recovered ends where they do.
samples_inside() {
	look_at_begin
	[ "$begin" != never ] || return 1
	last=$(tail -n 2 "${events%/*}/total_power_samples.csv" 2>/dev/null | head -n 1 | cut -d , -f 2)
	[ "${last:-x}" != timestamp ] && [ "${last:-0}" -gt $(($(date -u -d "$begin" +%s) * 1000000 + 2000000)) ] 2>/dev/null
}

# Cut off: joulectl alone, at last with all of its process group.
for signal in TERM INT KILL GROUP; do
	rm -f "$work/ready"
	# a shell's background jobs ignore SIGINT (POSIX), and so would what they start
	"$python" -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.setpgid(0, 0); os.execv(sys.argv[1], sys.argv[1:])' \
		"$JOULECTL" record --socket "$sock" --root "$root" --benchmark cut --power-limit 150 -r 3 -- \
		sh -c "echo \$\$ >$work/ready; exec sleep 1000" >"$work/cut.out" 2>"$work/cut.err" &
	recorder=$!
	wait_until 200 test -s "$work/ready"
	agents="$agents $(cat "$work/ready")"
	has_rows() {
		[ "$(rows_inside rapl-power)" -ge 6 ] && [ "$(rows_inside cgroup-power)" -ge 6 ] && [ "$(rows_inside gpu-power)" -ge 6 ] &&
			samples_inside
	}
	check cut-$signal-begun wait_until 100 has_rows
	check cut-$signal-limited limit_is 150000
	staged_rows rapl-power >"$work/rapl-power" && staged_rows cgroup-power >"$work/cgroup-power" && staged_rows gpu-power >"$work/gpu-power"
	case $signal in
	GROUP) kill -KILL -$recorder ;;
	*) kill -$signal $recorder ;;
	esac
	wait $recorder 2>/dev/null
	check cut-$signal-back wait_until 100 limit_is 250000
	check cut-$signal-unpublished test ! -e "$root/power-limit/cut/150W"
	check cut-$signal-staged test "$(staged)" = 1
	[ $signal = KILL ] || [ $signal = GROUP ] || check cut-$signal-said grep -q "interrupted; not published, kept in $root" "$work/cut.err"
	check cut-$signal-recover "$JOULECTL" record --root "$root" --recover
	whole cut-$signal "$root/power-limit/cut/150W/0"
	# all that could be seen before is still there
	for table in rapl-power cgroup-power gpu-power; do
		check cut-$signal-$table test "$(wc -l <"$root/power-limit/cut/150W/0/$table.csv")" -ge "$(cat "$work/$table")"
	done
	check cut-$signal-told by holds "$root/power-limit/cut/150W/0" 'info["recovered"] and not info["complete"]'
	rm -rf "$root/power-limit/cut"
	kill -9 "$(cat "$work/ready")" 2>/dev/null
done

# Marks after the recorder was killed: the command is not held up, whether it has the FIFO open or opens it then.
"$JOULECTL" record --socket "$sock" --root "$root" --experiment marks --benchmark b --run r -- sh -c '
	exec 3>"$JOULED_MARK_FIFO"
	echo ready >"$1/marks.ready"
	while [ ! -e "$1/marks.go" ]; do sleep 0.1; done
	i=0
	while [ $i -lt 20000 ]; do echo batch_begin >&3; i=$((i + 1)); done
	echo batch_end >"$JOULED_MARK_FIFO"
	echo over >"$1/marks.over"' sh "$work" >/dev/null 2>"$work/marks.err" &
recorder=$!
wait_until 200 test -e "$work/marks.ready"
kill -9 $recorder
wait $recorder 2>/dev/null
: >"$work/marks.go"
check marks-go-on wait_until 300 test -e "$work/marks.over"
check marks-recover "$JOULECTL" record --root "$root" --recover
check marks-published test -s "$root/marks/b/r/0/timestamps.csv" -a "$(staged)" = 0

# limited: a recording with limits in $recorder, the pid of its guard in $guard. The library is the agent's: no path leads to it.
limited() {
	rm -f "$work/ready"
	env -u LD_LIBRARY_PATH "$JOULECTL" record --socket "$sock" --root "$root" --benchmark both --power-limit 150 -- \
		sh -c "echo \$\$ >$work/ready.new; mv $work/ready.new $work/ready; exec sleep $1" >"$work/guard.out" 2>"$work/guard.err" &
	recorder=$!
	wait_until 200 test -e "$work/ready" || fail guard "nothing began: $(said guard)"
	guard=
	for child in $(pgrep -P $recorder); do
		grep -q libnvidia-ml "/proc/$child/maps" 2>/dev/null && guard=$child
	done
	check guard-found test -n "$guard"
}

# The guard itself is killed: another one puts it back.
limited 2
[ -n "$guard" ] && kill -9 "$guard"
wait $recorder
check guard-back limit_is 250000
# Both are: a note is left, and recovery puts it back, once.
limited 1000
check both-limited limit_is 150000
record beside --benchmark both --power-limit 200 -- true
expect beside-refused 125
check beside-said grep -q 'another recording below .* wait for its end' "$work/beside.err"
kill -9 ${guard:+"$guard"} $recorder
wait $recorder 2>/dev/null
wait_until 50 gone "$guard"     # it may take a moment more
kill -9 "$(cat "$work/ready")" 2>/dev/null
check both-left limit_is 150000
record again --benchmark both --power-limit 200 -- true
expect both-refused 125
check both-refused-said grep -q 'of a recording that was killed are still set; joulectl record --root .* --recover' "$work/again.err"
"$JOULECTL" record --socket "$sock" --root "$root" --recover 2>"$work/both.err"
check both-recovered limit_is 250000
check both-said grep -q 'power limit put back from 150 W to 250 W' "$work/both.err"
check both-no-note sh -c '! ls -d "$1"/_limits-* 2>/dev/null' sh "$root"
limited 1000
kill -9 ${guard:+"$guard"} $recorder
wait $recorder 2>/dev/null
wait_until 50 gone "$guard"
kill -9 "$(cat "$work/ready")" 2>/dev/null
echo '180000 1215 1095' >"$limits/0"
"$JOULECTL" record --socket "$sock" --root "$root" --recover 2>"$work/both.err"
check both-others limit_is 180000
check both-others-said grep -q 'is 180 W, which the recording has not set: left as it is (before: 250 W)' "$work/both.err"
check both-once sh -c '"$1" record --root "$2" --recover 2>&1 | grep -q "nothing is left over"' sh "$JOULECTL" "$root"

# Another one, while the first still takes its baseline and has set nothing.
"$JOULECTL" record --socket "$sock" --root "$root" --benchmark idle --power-limit 150 --baseline 600s -- true \
	>"$work/idle.out" 2>"$work/idle.err" &
recorder=$!
wait_until 200 sh -c 'ls -d "$1"/power-limit/_staged-* 2>/dev/null' sh "$root" >"$work/check.out" || fail idle "no baseline: $(said idle)"
record beside --benchmark both --power-limit 200 -- true
expect idle-refused 125
check idle-said grep -q 'another recording below .* wait for its end' "$work/beside.err"
kill -TERM $recorder
wait $recorder 2>/dev/null
check idle-no-note sh -c '! ls -d "$1"/_limits-* 2>/dev/null' sh "$root"
check idle-as-it-was limit_is 180000

# A disk that is full.
small=$work/small
mkdir "$small"
mount -t tmpfs -o size=72k none "$small"
"$JOULECTL" record --socket "$sock" --root "$small" --experiment e --benchmark b --run r --every 20ms -- sleep 6 \
	>"$work/full.out" 2>"$work/full.err"
status=$?
recorded=full
expect full 125
check full-said grep -q 'No space left.*kept in .*_staged' "$work/full.err"
check full-unpublished test ! -e "$small/e/b/r"
mount -o remount,size=8m "$small"
check full-recover "$JOULECTL" record --root "$small" --recover
check full-shape by shape "$small/e/b/r/0"
umount "$small"

# The directory is removed under it.
rm -f "$work/ready"
"$JOULECTL" record --socket "$sock" --root "$root" --experiment gone --benchmark b --run r -- \
	sh -c "echo >$work/ready; sleep 1" >"$work/gone.out" 2>"$work/gone.err" &
recorder=$!
wait_until 200 test -e "$work/ready"
rm -rf "$root/gone/b"/_staged-*
wait $recorder
status=$?
recorded=gone
expect gone 125
check gone-said grep -q 'nothing of it is left: somebody has removed it' "$work/gone.err"
check gone-unpublished test ! -e "$root/gone/b/r"

# People.
check terminal by terminal "$JOULECTL" record --socket "$sock" --root "$root" --experiment e --benchmark b --run tty -- sleep 1
record missing --experiment e --benchmark b --run missing -- ./no/such
expect missing 127
for wrong in '' '--experiment _e --benchmark b --run r true' '--experiment e --benchmark b/c --run r true' \
	'--experiment e --benchmark b true' '--experiment e --benchmark b --run r' '--benchmark b --run r --power-limit 100 true' \
	'--benchmark b --power-limit 1x true' '--benchmark b --app-clocks 5 true' '--experiment e --benchmark b --run r --every 1ms true' \
	'--recover true'; do
	# shellcheck disable=SC2086 # words
	record wrong $wrong
	expect "wrong $wrong" 2
done
record no-gpu --experiment e --benchmark b --run r --gpu GPU-none -- true
expect no-such-gpu 125
JOULED_MARK_FIFO='' "$JOULECTL" mark epoch_begin 2>"$work/mark.err"
check mark-outside grep -q 'run it inside joulectl record' "$work/mark.err"
check nothing-staged test "$(staged)" = 0
check no-cgroup-left sh -c '! ls -d "$1"/jouled-run-*-* 2>/dev/null | grep -q "jouled-run-'"$recorder"'-"' sh "$(cgroup2)"
finish
