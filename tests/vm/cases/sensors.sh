# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# Energy without RAPL, from drivers of the kernel's own classes: counters and averages of hwmon, zones of another
# control type; then beside RAPL; then a driver that goes and comes back.
# kernels: 6.1
# seconds: 120
# modules: simpmu simrapl simsensors
. /guest/lib.sh
. /guest/energy.sh
SENSORS=/sys/module/simsensors/parameters

draw() {
	for each in "$@"; do
		echo "${each#*=}" >"$SENSORS/${each%=*}_mw"
	done
}

# drawn N: energy of channel N since the load, uJ: core0 core1 socket rail memory.
drawn() {
	cut -d ' ' -f "$1" "$SENSORS/truth_uj"
}

load simsensors || fail simsensors "cannot be loaded"
# Some power before the start: a machine that is on uses some.
draw socket=1 rail=1 memory=1
sleep 0.5
doctor sensors
contains "the doctor names each sensor" "$work/sensors.out" \
	'^sensor +ok +core-0: energy counter of hwmon[0-9]+ energy1_input \(amd_energy: Ecore000\) and 1 more' \
	'^sensor +ok +package-0: energy counter of hwmon[0-9]+ energy3_input \(amd_energy: Esocket0\)' \
	'^sensor +ok +core-1: average power of hwmon[0-9]+/device power1_average \(power_meter: CPU Power Socket 1\)' \
	'^sensor +ok +dram-0: energy counter of arm-scmi:0:0 energy_uj \(arm-scmi: DDR\)' \
	'^sensor +ok +psys: power of an instant of arm-scmi:0 power_uw \(arm-scmi: board\)' \
	'^estimate +ok +not needed'
draw socket=0 rail=0 memory=0
rmmod simsensors

# From the load on, everything that was drawn is in the reports: the agent is there before the power is.
load simsensors || fail simsensors "cannot be loaded again"
draw rail=1
sleep 0.5
measure_light sensors -i 300ms
rail=$(drawn 4)
draw core0=1500 core1=2500 socket=9000 rail=5001 memory=3000
sleep 6
draw core0=0 core1=0 socket=0 rail=0 memory=0
two_more sensors
exact "counters of cores" sensors core-0 $(($(drawn 1) + $(drawn 2))) 0 2 && ok "counters of cores are summed to the microjoule"
exact "counter of the socket" sensors package-0 "$(drawn 3)" 0 2 && ok "the counter of the socket is exact"
exact "counter of the zone" sensors dram-0 "$(drawn 5)" 0 2 && ok "the counter of the zone is exact over its wrap"
# Averages are known at the steps of their interval: a tenth covers both ends of six seconds.
exact "average power" sensors core-1 $(($(drawn 4) - rail)) 0 $((($(drawn 4) - rail) / 10)) && ok "averages are integrated"
expect "the average is measured, the instant is estimated" \
	sh -c "case '$(qualities "$work/sensors.json" psys)' in *estimated*) ;; *) exit 1 ;; esac
	case '$(qualities "$work/sensors.json" package-0)' in *measured*) ;; *) exit 1 ;; esac"

expect "the wrap was seen" sh -c "case '$(qualities "$work/sensors.json" dram-0)' in *wrapped*) ;; *) exit 1 ;; esac"

# A counter that stands still while the machine is on is no measurement; then its driver goes and comes back.
contains_later() {
	wait_until 150 grep -qE -- "$2" "$work/sensors.err"
	contains "$1" "$work/sensors.err" "$2"
}
contains_later "a counter that stands still is told" 'package-0: hwmon.*stands still'
rmmod simsensors
contains_later "a sensor that is gone is told" 'dram-0: arm-scmi.*cannot be read'
load simsensors || fail simsensors "cannot be loaded again"
draw socket=9000 memory=3000
contains_later "a sensor that is back is told" 'dram-0: arm-scmi.*answers again'
contains_later "so is a chip" 'package-0: hwmon.*answers again'
end_all
rmmod simsensors

# RAPL comes first, and its domains stay; a chip fills in what it lacks.
simulate domains=4 perf=0 msr=0
load simsensors || fail simsensors "cannot be loaded again"
measure_light mixed -i 300ms
draw socket=9000 memory=3000
sim stop 0
sleep 2
sim stop 1
draw socket=0 memory=0
two_more mixed 3
exact "mixed: package by RAPL" mixed package-0 "$(truth energy_uj package 0)" 2.56 64 && ok "mixed: package by RAPL"
exact "mixed: memory by powercap" mixed dram-0 "$(drawn 5)" 0 2 && ok "mixed: memory by powercap of another type"
doctor mixed
contains "mixed: the doctor says which" "$work/mixed.out" 'domain +ok +package-0 from powercap: powercap is the first' \
	'sensor +absent +hwmon.*package-0, told by RAPL already'
keep "$work"/*.json "$work"/*.err "$work"/*.out
end_all
finish
