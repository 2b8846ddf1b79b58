# shellcheck shell=sh disable=SC2154,SC2034
# SPDX-License-Identifier: Apache-2.0
# Sourced by the cases about energy and counters, after lib.sh: the truth of the simulated hardware
# (tests/vm/modules/README) and what jouled wrote of it.
SIM=/sys/module/simrapl/parameters

# sim PARAMETER VALUE
sim() {
	echo "$2" >"$SIM/$1"
}

# simulate PARAMETER=VALUE...: a fresh simrapl, with nothing drawing power yet, and counters for several agents.
simulate() {
	grep -q '^simpmu ' /proc/modules || load simpmu counters=64 || fail simpmu "cannot be loaded"
	grep -q '^simrapl ' /proc/modules && rmmod simrapl
	load simrapl stop=1 "$@" || fail simrapl "cannot be loaded with $*"
}

# truth COLUMN KIND [UNIT]: of /proc/simrapl, summed over the units when none is given.
truth() {
	awk -v col="$1" -v kind="$2" -v unit="${3:-}" '
	NR == 2 { for (i = 1; i <= NF; i++) at[$i] = i }
	NR > 2 && $1 == kind && (unit == "" || $2 == unit) { sum += $at[col]; seen = 1 }
	END { if (!seen) exit 1; printf "%.0f\n", sum }' /proc/simrapl
}

# task_truth COLUMN [PATH] [KIND]: of /proc/simpmu, summed over CPUs; without PATH the whole machine.
task_truth() {
	awk -v col="$1" -v path="${2:-}" -v kind="${3:-}" '
	NR == 2 { for (i = 1; i <= NF; i++) at[$i] = i }
	NR > 2 && (path == "" || $NF == path) && (kind == "" || $2 == kind) { sum += $at[col] }
	END { printf "%.0f\n", sum }' /proc/simpmu
}

# reported FILE TARGET DOMAIN: microjoules over all of a file of power reports.
reported() {
	awk -v target="\"target\":\"$2\"" -v domain="\"domain\":\"$3\"" '
	index($0, target) && index($0, domain) && match($0, /"energy_uj":-?[0-9]+/) {
		sum += substr($0, RSTART + 12, RLENGTH - 12); seen = 1
	}
	END { if (!seen) exit 1; printf "%.0f\n", sum }' "$1"
}

# qualities FILE DOMAIN: those of the machine's value, each once.
qualities() {
	awk -v domain="\"domain\":\"$2\"" '
	index($0, "\"target\":\"all\"") && index($0, domain) && match($0, /"quality":"[a-z]+"/) {
		q = substr($0, RSTART + 11, RLENGTH - 12)
		if (!(q in seen)) printf "%s ", q
		seen[q] = 1
	}' "$1"
}

# Values of the machine so far, all domains.
values() {
	[ -f "$work/$1.json" ] && grep -c '"target":"all"' "$work/$1.json"
}

more_values() {
	n=$(values "$1") && [ "$n" -gt "$2" ]
}

# begin NAME ARGUMENT...: an agent writing power reports to $work/NAME.json.
begin() {
	begun=$1
	shift
	rm -f "$work/$begun.json"
	start "$begun" -o "power=file://$work/$begun.json?time=ms" "$@"
}

# begun NAME: returns when its first report is there.
begun() {
	wait_until 150 more_values "$1" 0 || fail "$1" "no report: $(said "$1")"
}

measure() {
	begin "$@"
	begun "$1"
}

# Energy alone: an agent starts sooner without programs in the kernel.
begin_light() {
	begun=$1
	shift
	begin "$begun" --trigger none "$@"
}

measure_light() {
	begin_light "$@"
	begun "$1"
}

# Ends all agents.
end_all() {
	for pid in $agents; do
		kill "$pid" 2>/dev/null
	done
	for pid in $agents; do
		ended 100 "$pid"
	done
	agents=
}

# two_more NAME [DOMAINS]: waits for two whole intervals.
two_more() {
	now=$(values "$1")
	wait_until 150 more_values "$1" $((now + 2 * ${2:-5} - 1)) || fail "$1" "stopped reporting: $(said "$1")"
}

# exact NAME AGENT DOMAIN WANTED PER-MILLION UNIT: what it reported in all is what was drawn, but for the
# interface's own unit and what it is known to be off.
exact() {
	got=$(reported "$work/$2.json" all "$3") || { fail "$1" "no $3 in the reports: $(said "$2")" && return 1; }
	awk -v want="$4" -v got="$got" -v ppm="$5" -v unit="$6" 'BEGIN {
		d = want * (1 - ppm / 1e6) - got
		if (d < 0) d = -d
		if (d > unit) { print "wanted " want " uJ, got " got " uJ"; exit 1 }
	}' >"$work/exact" || { fail "$1" "$3: $(cat "$work/exact"); $(qualities "$work/$2.json" "$3"); $(said "$2")" && return 1; }
}

# all_exact NAME AGENT PER-MILLION UNIT [PACKAGE]: every domain of it, from the load of simrapl on.
all_exact() {
	p=${5:-0}
	for kind in package core uncore dram psys; do
		domain=$kind-$p
		[ $kind != psys ] || domain=psys
		[ $domain != psys ] || [ "$p" -eq 0 ] || continue
		exact "$1" "$2" $domain "$(truth energy_uj $kind "$p")" "$3" "$4" || return
	done
	ok "$1"
}
