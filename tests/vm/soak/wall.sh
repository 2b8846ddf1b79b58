# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# calibrate: wall on a machine with a supply, a board, a disk and a network card whose truth is known by cause and by cgroup
# (tests/vm/plant.c, /proc/simpmu, io.stat): learned beside the meter from changing loads, judged without it on others; and psys, which
# holds the disk and the card. JOULED_VM_CASES=tests/vm/soak sh tests/vm/run.sh 6.1 wall
# kernels: 6.1
# seconds: 600
# memory: 512
# modules: simpmu simrapl
# stock: null_blk e1000
# qemu: -netdev hubport,hubid=0,id=n0 -device e1000,netdev=n0,romfile=
# tests: vm/plant vm/simload vm/sender
. /guest/lib.sh
. /guest/energy.sh
ROOT=/sys/fs/cgroup
CGROUPS="wall-a wall-b wall-disk wall-net"

# disk_work CGROUP HOW: 4 s of writes (1) or reads (2).
disk_work() {
	echo 0 >"$ROOT/$1/cgroup.procs"
	end=$(($(date +%s) + 4))
	while [ "$(date +%s)" -lt $end ]; do
		if [ "$2" -eq 1 ]; then
			dd if=/dev/zero of=/dev/nullb0 bs=1M count=20 oflag=direct 2>/dev/null
			sleep 0.3
		else
			dd if=/dev/nullb0 of=/dev/null bs=1M count=40 iflag=direct 2>/dev/null
			sleep 0.1
		fi
	done
}

# loads N SEED: N phases of 4 s; some CPUs busy in two cgroups, some work of the disk and the network in one of two.
loads() {
	awk -v n="$1" -v seed="$2" 'BEGIN { srand(seed); for (i = 0; i < n; i++) {
		print int(rand() * 100), int(rand() * 100), int(rand() * 3), rand() < 0.5 ? "wall-a" : "wall-disk",
			int(rand() * 2) * int(rand() * 8000), rand() < 0.5 ? "wall-b" : "wall-net" } }' |
		while read -r a b disk whose packets sends; do
			[ "$a" -lt 15 ] || /tests/simload -d $ROOT/wall-a -c 50 -b "$a" ipc10m1 $((a * 40)) &
			[ "$b" -lt 15 ] || /tests/simload -d $ROOT/wall-b -c 50 -b "$b" ipc10m1 $((b * 40)) &
			[ "$packets" -eq 0 ] || /tests/sender "$ROOT/$sends" "$packets" 3500 &
			[ "$packets" -eq 0 ] || echo "$sends $packets" >>"$work/sent"
			[ "$disk" -eq 0 ] || (disk_work "$whose" "$disk") &
			sleep 4
			wait
		done
}

# Microjoules of a cgroup so far, as simpmu, io.stat and the packets have it: inside the processor and its memory, disk, network.
truth_of() {
	inside=$(($(task_truth core_nj "/$1") + $(task_truth uncore_nj "/$1") + $(task_truth dram_nj "/$1")))
	disk=$(awk '{ for (i = 2; i <= NF; i++) if ($i ~ /^[rw]bytes=/) sum += substr($i, 8) } END { printf "%.0f", sum * 0.02 }' "$ROOT/$1/io.stat")
	awk -v c="$1" -v i=$inside -v d="$disk" '$1 == c { n += $2 } END { printf "%.0f %.0f %.0f\n", i / 1000, d, n * 1442 * 0.5 }' "$work/sent"
}

# told_of TARGET DOMAIN
told_of() {
	reported "$work/told.json" "$1" "$2" || echo 0
}

# All that is told and true so far, a line each: name, told, true.
book() {
	read -r all supply disk network <"$work/plant"
	echo "wall $(told_of all wall-0) $all"
	echo "supply $(told_of supply wall-0) $supply"
	of_disk=0 of_network=0
	for c in $CGROUPS; do
		# shellcheck disable=SC2046 # three numbers
		set -- $(truth_of "$c")
		package=$(told_of "/$c" package-0) dram=$(told_of "/$c" dram-0) wall=$(told_of "/$c" wall-0) psys=$(told_of "/$c" psys)
		echo "inside:$c $((package + dram)) $1"
		echo "wall:$c $wall $(($1 + $2 + $3))"
		echo "psys:$c $psys $(($1 + $2 + $3))"
		echo "work-wall:$c $((wall - package - dram)) $(($2 + $3))"
		of_disk=$((of_disk + $2)) of_network=$((of_network + $3))
	done
	echo "psys $(told_of all psys) $(truth energy_uj psys)"
	echo "left:disk $(told_of disk wall-0) $((disk - of_disk))"
	echo "left:network $(told_of network wall-0) $((network - of_network))"
	echo "left-psys:disk $(told_of disk psys) $((disk - of_disk))"
}

# within NAME PERCENT: of what was drawn between two books.
within() {
	awk -v name="$1" -v p="$2" '$1 == name { told += (NR == FNR ? -1 : 1) * $2; true += (NR == FNR ? -1 : 1) * $3 }
		END { printf "told %.0f mJ, true %.0f mJ", told / 1000, true / 1000
		if (true > 0) printf ", %+.2f %%", 100 * told / true - 100
		exit !(told > true * (1 - p / 100) && told < true * (1 + p / 100)) }' "$work/before" "$work/after" >"$work/judged"
	judged=$?
	echo "note $1: $(cat "$work/judged")"
	[ $judged -eq 0 ]
}

judge() {
	if within "$1" "$2"; then
		ok "$1 within $2 %"
	else
		fail "$1 within $2 %" "$(cat "$work/judged")"
	fi
}

simulate busy_mw=9000 instruction_pj=2000 package_idle_mw=8000
load null_blk nr_devices=1 gb=1 || fail null_blk "cannot be loaded"
load e1000 || fail e1000 "cannot be loaded"
{ ip addr add 10.9.0.1/24 dev eth0 && ip link set eth0 up; } || fail eth0 "cannot be used"
echo "+io" >$ROOT/cgroup.subtree_control
for c in $CGROUPS; do
	mkdir "$ROOT/$c"
done
: >"$work/sent"
mkdir "$work/state"
mkfifo "$work/meter"
cat >"$work/wall.yaml" <<YAML
calibrate: wall
state-dir: $work/state
idle-watts: { package: 8, dram: 0.8, psys: 11.8 }
meters:
  - { type: fifo, device: $work/meter, pace: 100ms }
YAML
sim stop 0
begin learning -c "$work/wall.yaml" -i 500ms
/tests/plant "$work/plant" >"$work/meter" 2>"$work/plant.err" &
plant=$!
begun learning
expect "the plant is there" kill -0 $plant || cat "$work/plant.err"
loads 60 7
kill "$agent"
wait "$agent" 2>/dev/null
expect "points are kept" test -s "$work/state/wall.csv" -a -s "$work/state/psys.csv"
echo "note $(wc -l <"$work/state/wall.csv") lines of wall.csv, $(wc -l <"$work/state/psys.csv") of psys.csv"

# Without the meter: the plant goes on, and nobody reads it.
sed -i '/^meters/,$d' "$work/wall.yaml"
"$JOULED" doctor -c "$work/wall.yaml" >"$work/doctor.out" 2>&1
contains "the doctor says what was learned" "$work/doctor.out" '^wall +ok +[0-9]+ points' 'price +ok +disk-' 'psys +ok +holds disk-' \
	'psys +ok +holds network-'
grep -E "^wall|price|psys|^block|^network" "$work/doctor.out" | sed "s/^/note /"
begin told -c "$work/wall.yaml" -i 500ms
begun told
sleep 2
book >"$work/before"
loads 24 99
sleep 3
book >"$work/after"
expect "the plant is still there" kill -0 $plant
judge wall 3
judge supply 40
judge psys 1
for c in $CGROUPS; do
	judge "inside:$c" 3
	judge "wall:$c" 8
	judge "psys:$c" 5
done
judge work-wall:wall-a 20
judge work-wall:wall-disk 20
judge work-wall:wall-net 60
within work-wall:wall-b 100 # a hundredth of what it drew: the wall's own error
for each in left:disk left:network left-psys:disk; do
	within $each 100
done
kill $plant "$agent"
finish
