# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# calibrate: wall on a machine with a supply, a board and a disk whose truth is known (tests/vm/plant.c): learned beside the meter from
# changing loads, judged without it on others. JOULED_VM_CASES=tests/vm/soak sh tests/vm/run.sh 6.1 wall
# kernels: 6.1
# seconds: 600
# memory: 512
# modules: simpmu simrapl
# stock: null_blk
# tests: vm/plant vm/simload
. /guest/lib.sh
. /guest/energy.sh

# loads N SEED: N phases of 4 s, some CPUs busy in two cgroups, some disk work.
loads() {
	awk -v n="$1" -v seed="$2" 'BEGIN { srand(seed); for (i = 0; i < n; i++) print int(rand() * 100), int(rand() * 100), int(rand() * 3) }' |
		while read -r a b disk; do
			[ "$a" -lt 15 ] || /tests/simload -d /sys/fs/cgroup/wall-a -c 50 -b "$a" ipc20m10 $((a * 40)) &
			[ "$b" -lt 15 ] || /tests/simload -d /sys/fs/cgroup/wall-b -c 50 -b "$b" ipc10m2 $((b * 40)) &
			end=$(($(date +%s) + 4))
			while [ "$(date +%s)" -lt $end ]; do
				case $disk in
				0) sleep 0.5 ;;
				1) dd if=/dev/zero of=/dev/nullb0 bs=1M count=20 oflag=direct 2>/dev/null; sleep 0.3 ;;
				2) dd if=/dev/nullb0 of=/dev/null bs=1M count=40 iflag=direct 2>/dev/null; sleep 0.1 ;;
				esac
			done
			wait
		done
}

drawn() {
	cut -d ' ' -f "$1" "$work/plant"
}

simulate busy_mw=9000 instruction_pj=2000 package_idle_mw=8000
load null_blk nr_devices=1 gb=1 || fail null_blk "cannot be loaded"
mkdir /sys/fs/cgroup/wall-a /sys/fs/cgroup/wall-b
sim stop 0
cat >"$work/wall.yaml" <<YAML
calibrate: wall
block: false # the row disk keeps all that the disk drew, to be compared with the plant
state-dir: $work/state
meters:
  - { type: command, command: [/tests/plant, $work/plant], pace: 100ms }
YAML
mkdir "$work/state"
begin learning -c "$work/wall.yaml" -i 500ms
begun learning
loads 40 7
kill "$agent"
wait "$agent" 2>/dev/null
expect "points are kept" test -s "$work/state/wall.csv"
echo "note $(wc -l <"$work/state/wall.csv") lines of wall.csv"

# Without the meter: the plant goes on by itself, and nobody reads it.
sed -i '/^meters/,$d' "$work/wall.yaml"
/tests/plant "$work/plant" >/dev/null &
plant=$!
sleep 1
"$JOULED" doctor -c "$work/wall.yaml" >"$work/doctor.out" 2>&1
contains "the doctor says what was learned" "$work/doctor.out" '^wall +ok +[0-9]+ points' 'price +ok +disk-'
grep -E "^wall|price" "$work/doctor.out" | sed "s/^/note /"
begin told -c "$work/wall.yaml" -i 500ms
begun told
sleep 1
before=$(cat "$work/plant")
wall=$(reported "$work/told.json" all wall-0)
disk=$(reported "$work/told.json" disk wall-0)
supply=$(reported "$work/told.json" supply wall-0)
loads 12 99
now=$(cat "$work/plant")
for each in "1 all 3 $wall" "2 supply 40 $supply" "3 disk 15 ${disk:-0}"; do
	set -- $each
	true=$(($(echo "$now" | cut -d ' ' -f "$1") - $(echo "$before" | cut -d ' ' -f "$1")))
	got=$(($(reported "$work/told.json" "$2" wall-0) - $4))
	echo "note $2: told $got uJ, true $true uJ, $(awk -v g="$got" -v t="$true" 'BEGIN { printf "%.2f", 100 * g / t - 100 }') %"
	expect "$2 of the wall within $3 %" awk -v g="$got" -v t="$true" -v p="$3" 'BEGIN { exit !(g > t * (1 - p / 100) && g < t * (1 + p / 100)) }'
done
kill $plant "$agent"
finish
