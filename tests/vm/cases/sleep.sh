# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# A CPU that goes and comes back, and a machine that sleeps (S3): nothing absurd, and said.
# kernels: 6.1
# seconds: 120
. /guest/lib.sh
CPU1=/sys/devices/system/cpu/cpu1/online
start away -i 300ms -o "hwpc=file://$work/away.json" -o "snapshot=file://$work/away.cbor" -o "table=file://$work/away.txt"
wait_until 100 more_ticks away 2
make_cgroup away
spin_for 600 "$cgroup" &
echo 0 >$CPU1
wait_until 50 more_ticks away $(($(ticks away) + 3))
echo 1 >$CPU1
wait_until 50 more_ticks away $(($(ticks away) + 4))
slept_from=$(date +%s)
echo 0 >/sys/class/rtc/rtc0/wakealarm
echo +4 >/sys/class/rtc/rtc0/wakealarm
echo mem >/sys/power/state
slept=$(($(date +%s) - slept_from))
expect "the guest slept" [ $slept -ge 3 ]
wait_until 50 more_ticks away $(($(ticks away) + 4))
echo 1 >"$cgroup/cgroup.kill"
wait_until 50 empty "$cgroup"
used=$(used_us "$cgroup")
wait_until 50 more_ticks away $(($(ticks away) + 3))
kill "$agent"
ended 50 "$agent"
# Every interval is in the recording; hwpc withholds the one in which the machine slept.
/tests/recsum "$work/away.cbor" >"$work/away.sum" || fail recsum "the recording cannot be read"
told=$(counted "$work/away.sum" "/${cgroup##*/}" time_ns)
expect "it worked meanwhile" [ "$used" -gt 1000000 ]
expect "CPU time over hotplug and suspend" close_to "$used" $((${told:-0} / 1000)) 10 100
contains "hwpc: the suspended interval is withheld and said" "$work/away.err" 'withheld: interval: the machine was suspended for [0-9]+ ms'
suspended=$(sed -n 's/^note: \([0-9]*\) ms suspended.*/\1/p' "$work/away.txt")
expect "the time asleep shows as suspended" [ "${suspended:-0}" -ge 2000 -a "${suspended:-0}" -le $((slept * 1000 + 1000)) ]
expect "one CPU while the other was away" [ "$(grep -c ' 1 CPU ' "$work/away.txt")" -ge 2 ]
# Two CPUs of at most 8 W, where the host is busy with uneven readings. In the interval of the sleep the kernel works while
# CLOCK_MONOTONIC stands still: on the way down and up, not half of the time.
expect "no absurd power" awk '/ UTC / { s = $4 }
	$1 == "package-0" { w = $2 + 0; j = $4 + 0; line = $0; if (last > 24) { print was; bad = 1 } last = w; was = line }
	/ms suspended$/ { if (j > 16 * (s + $2 / 2000)) { print line; bad = 1 } last = 0 }
	END { exit bad || last > 24 }' "$work/away.txt"
expect "no interval counts the sleep" awk -v most="${suspended:-0}" '/ UTC / && $4 * 1000 >= most { print; bad = 1 } END { exit bad }' "$work/away.txt"
keep "$work"/away.*
tail -n 30 "$work/away.txt"
cat "$work/away.err"
finish
