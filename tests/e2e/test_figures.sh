#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One machine, one figure and one quality, whoever tells it: every verb, route, format, the page and the metrics, on
# machines whose domains hold one another. Their zones of RAPL are files in a /sys/class of the agent's own.
. tests/e2e/lib.sh
need_root
JOULECTL=${JOULECTL:-$B/joulectl}
sock=$work/jouled.sock

# feed DIR ZONE;NAME;WATTS...: zones whose counters move on until $work/feed-stop is there. A machine without work draws a third
# of WATTS, one with all CPUs busy all of them, so that a command has energy above idle. WATTS none: the zone has no counter.
feed() {
	python3 - "$work/feed-stop" "$@" <<'END' &
import os, sys, time
stop, top, zones = sys.argv[1], sys.argv[2], [z.rsplit(";", 2) for z in sys.argv[3:]]
def busy_s():                      # seconds that all CPUs together were busy
    user, nice, system, idle, iowait, *rest = map(int, open("/proc/stat").readline().split()[1:9])
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK") / os.cpu_count()
def full_s():                      # seconds of full power
    return (time.monotonic() + 2 * busy_s()) / 3
start, files = full_s(), []
for zone, name, watts in zones:
    os.makedirs(f"{top}/{zone}", exist_ok=True)
    for file, text in (("name", name), ("max_energy_range_uj", "262143328850"), ("energy_uj", "1000000")):
        if file == "energy_uj" and watts == "none":
            continue
        with open(f"{top}/{zone}/{file}", "w") as f:
            f.write(text + "\n")
    if watts != "none":
        files.append((os.open(f"{top}/{zone}/energy_uj", os.O_WRONLY), float(watts)))
open(top + ".ready", "w").close()
while not os.path.exists(stop):
    for fd, watts in files:        # one write of a length that only grows: no reader sees half of it
        os.pwrite(fd, b"%d\n" % (1000000 + (full_s() - start) * watts * 1e6), 0)
    time.sleep(0.02)
END
	feeder=$!
	agents="$agents $feeder"
}

answers() {
	curl -s --max-time 5 -o "$work/up" --unix-socket "$sock" http://jouled/v1/snapshot && grep -q '"rows"' "$work/up"
}

# machine NAME SUMMED METER ZONE;NAME;WATTS...: SUMMED are the domains that add up.
machine() {
	machine=$1
	summed=$2
	meter=$3
	shift 3
	mkdir -p "$work/$machine"
	rm -f "$work/feed-stop"
	{
		echo "socket: { path: $sock }"
		echo "interval: 1s"
		echo "outputs: [{ format: snapshot, to: \"file://$work/$machine/rec.cbor\" }]"
		[ "$meter" = yes ] && echo "meters: [{ type: command, command: [/bin/sh, -c, \"while :; do echo d0c0=50; sleep 0.1; done\"] }]"
	} >"$work/$machine.yaml"
	if [ $# -gt 0 ]; then
		feed "$work/$machine/powercap" "$@"
		wait_until 100 [ -e "$work/$machine/powercap.ready" ]
		unshare -m --propagation private sh -c 'mount -t tmpfs none /sys/class && mkdir /sys/class/powercap &&
			mount --bind "$1" /sys/class/powercap && mount --bind "$2" /proc/cpuinfo && shift 2 && exec "$@"' \
			sh "$work/$machine/powercap" "$work/cpuinfo" \
			"$JOULED" -c "$work/$machine.yaml" --state-dir "$work/$machine/state" >"$work/$machine.out" 2>"$work/$machine.err" &
	else
		"$JOULED" -c "$work/$machine.yaml" --state-dir "$work/$machine/state" >"$work/$machine.out" 2>"$work/$machine.err" &
	fi
	agent=$!
	agents="$agents $agent"
	if ! wait_until 300 answers; then
		fail "figures-$machine" "no answer: $(said "$machine")"
		return
	fi
	python3 $here/figures.py "$machine" "$summed" "$sock" "$JOULECTL" "$work/$machine" "$cgroup" >"$work/check.out" 2>&1
	cat "$work/check.out"
	grep -q '^ok\|^FAIL\|^SKIP' "$work/check.out" || fail "figures-$machine" "$(tail -n 1 "$work/check.out")"
	failures=$((failures + $(grep -c '^FAIL' "$work/check.out")))
	kill "$agent"
	ended 300 "$agent" || fail "figures-$machine-ends" "still there"
	touch "$work/feed-stop"
}

# an AMD host's zone "core" shows one core and is not taken
sed 's/AuthenticAMD/GenuineIntel/; s/HygonGenuine/GenuineIntel/' /proc/cpuinfo >"$work/cpuinfo"
make_cgroup one
spin "$cgroup"
machine meter package-0 yes
machine psys psys no 'intel-rapl:0;psys;40'
machine core core-0,uncore-0 yes 'intel-rapl:0:0;core;12' 'intel-rapl:0:1;uncore;3' 'intel-rapl:0;package-0;none'
machine all package-0,dram-0 yes 'intel-rapl:0;package-0;20' 'intel-rapl:0:0;core;12' 'intel-rapl:0:1;uncore;3' \
	'intel-rapl:0:2;dram;4' 'intel-rapl:1;psys;40'
finish
