# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# The table of docs/privileges.md: each capability taken away, at perf_event_paranoid 2 and 3, and what the doctor
# then denies that it did not deny with all of them.
# kernels: 6.1
# seconds: 400
# up: 180
# programs: setpriv
# modules: simpmu simrapl
# stock: msr
# qemu: -cpu Skylake-Client
# files: docs/privileges.md
. /guest/lib.sh
. /guest/energy.sh
. /guest/caps.sh
ALL="bpf perfmon sys_admin net_admin dac_read_search sys_ptrace sys_rawio sys_nice"
load msr
simulate
chmod 755 "$work"
for rapl in powercap perf msr; do
	printf 'rapl: %s\n' $rapl >"$work/$rapl.yaml"
done
chmod 644 "$work"/*.yaml
chmod a+r /dev/cpu/*/msr

# but CAPABILITY: all but that one. CAP_SYS_ADMIN contains others, so it is among them only at the level that needs it.
but() {
	for cap in $ALL; do
		[ "$cap" = "$1" ] && continue
		[ "$cap" = sys_admin ] && [ "$paranoid" = 2 ] && continue
		printf '%s ' "$cap"
	done
}

# denied CAPABILITIES: what the doctor denies, one subject a line. Each way to RAPL is asked of beside the others.
denied() {
	for rapl in powercap perf msr; do
		with "$1" timeout 120 "$JOULED" doctor -c "$work/$rapl.yaml" >"$work/$rapl.said" 2>/dev/null &
	done
	wait
	cat "$work"/*.said | awk '
	/^ / || /^CAP_/ { next }
	{ subject = substr($0, 1, 20); sub(/ +$/, "", subject); split(substr($0, 22), rest, " ") }
	rest[1] == "denied" || rest[1] == "broken" {
		if (subject ~ /^event /) subject = "perf events"
		if (subject == "trigger") subject = "counters"
		if (!seen[subject]++) print subject
	}' | sort
}

# lost CAPABILITIES: that beyond what is denied with all of them.
lost() {
	denied "$1" >"$work/without"
	{ grep -vxFf "$work/all.$paranoid" "$work/without" || echo -; } | tr '\n' ',' | sed 's/,$//; s/,/, /g'
}

# row NAME CAPABILITY: what is lost without it, at either level.
row() {
	printf '| %s |' "$1"
	for paranoid in 2 3; do
		echo $paranoid >/proc/sys/kernel/perf_event_paranoid
		printf ' %s |' "$(lost "${2:+$(but "$2")}")"
	done
	echo
}

for paranoid in 2 3; do
	echo $paranoid >/proc/sys/kernel/perf_event_paranoid
	denied "$(but '')" >"$work/all.$paranoid"
	expect "paranoid $paranoid: nothing is denied with all" [ ! -s "$work/all.$paranoid" ]
	echo nothing >>"$work/all.$paranoid"
done
for cap in bpf perfmon sys_admin net_admin dac_read_search sys_ptrace sys_rawio; do
	row "CAP_$(echo $cap | tr a-z A-Z)" $cap
done >"$work/table"
row "all of them" '' >>"$work/table"
sed 's/^/note /' "$work/table"
while read -r line; do
	expect "the documentation says what is lost without$(echo "$line" | cut -d '|' -f 2 | sed 's/ $//')" grep -qxF "$line" /guest/privileges.md
done <"$work/table"
finish
