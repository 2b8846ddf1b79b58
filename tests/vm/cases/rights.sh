# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# perf_event_paranoid 3 and 2, with every capability of the agent and without each: what the doctor says.
# kernels: 6.1
# seconds: 400
# threads: single
# programs: setpriv
# stock: msr
# qemu: -cpu Skylake-Client
. /guest/lib.sh
. /guest/caps.sh
ALL="bpf perfmon net_admin dac_read_search sys_ptrace sys_rawio"
PARANOID=/proc/sys/kernel/perf_event_paranoid
load msr
printf 'rapl: msr\n' >"$work/msr.yaml"

# but CAPABILITY: all but that one.
but() {
	for cap in $ALL; do
		[ "$cap" = "$1" ] || printf '%s ' "$cap"
	done
}

# told NAME CAPABILITIES REGEX...: what the doctor says with these capabilities.
told() {
	told=$1
	caps=$2
	shift 2
	with "$caps" timeout 240 "$JOULED" doctor -c "$work/msr.yaml" >"$work/told.out" 2>&1
	contains "$told" "$work/told.out" "$@"
}

# counts NAME CAPABILITIES: an agent with these counts CPU time in its reports.
counts() {
	with "$2" timeout 240 "$JOULED" --socket none -i 200ms -n 2 -o hwpc=stdout: >"$work/counts.json" 2>"$work/counts.err"
	counted=$?
	if [ $counted -eq 0 ] && grep -q '"TASK_CLOCK":[1-9]' "$work/counts.json"; then
		ok "$1"
	else
		fail "$1" "exit status $counted: $(tail -c 300 "$work/counts.err" | tr '\n' '|')"
	fi
}

chmod 755 "$work"
chmod 644 "$work/msr.yaml"
chmod a+r /dev/cpu/*/msr
for paranoid in 3 2; do
	echo $paranoid >$PARANOID
	if [ $paranoid = 3 ]; then
		msr='^event TSC +denied .*perf_event_paranoid'
		sysctl='^perf_event_paranoid +ok +3; above 2 even CAP_PERFMON may not do: sysctl kernel.perf_event_paranoid=2'
	else
		msr='^event TSC +ok'
		sysctl='^perf_event_paranoid +ok +2$'
	fi
	told "paranoid $paranoid, all capabilities" "$ALL" "$sysctl" "$msr" '^trigger +ok +tp_btf' '^network +ok' '^lifecycle +ok' \
		'^CAP_BPF +ok' '^CAP_PERFMON +ok' '^CAP_NET_ADMIN +ok' '^CAP_DAC_READ_SEARCH +ok' '^CAP_SYS_PTRACE +ok' '^executables +ok' \
		'^CAP_SYS_RAWIO +ok' '^CAP_SYS_NICE +denied +for readings in time.*LimitRTPRIO=1' '^seccomp +ok +on' '^uprobe +'
	told "paranoid $paranoid, without CAP_BPF" "$(but bpf)" '^CAP_BPF +denied +for counters.*AmbientCapabilities=' \
		'^trigger +denied .*CAP_BPF' '^lifecycle +denied .*CAP_BPF' '^network +denied .*CAP_BPF'
	told "paranoid $paranoid, without CAP_PERFMON" "$(but perfmon)" '^CAP_PERFMON +denied +for counters' \
		'^trigger +denied .*CAP_PERFMON' '^event TSC +denied .*CAP_PERFMON'
	told "paranoid $paranoid, without CAP_NET_ADMIN" "$(but net_admin)" '^CAP_NET_ADMIN +denied +for network' \
		'^network +denied .*CAP_NET_ADMIN' '^trigger +ok'
	told "paranoid $paranoid, without CAP_DAC_READ_SEARCH" "$(but dac_read_search)" '^CAP_DAC_READ_SEARCH +denied +for energy_uj' '^trigger +ok'
	told "paranoid $paranoid, without CAP_SYS_PTRACE" "$(but sys_ptrace)" '^CAP_SYS_PTRACE +denied +for executables' '^executables +denied' \
		'^trigger +ok'
	told "paranoid $paranoid, without CAP_SYS_RAWIO" "$(but sys_rawio)" '^CAP_SYS_RAWIO +denied +for rapl: msr' \
		'^rapl msr +denied .*CAP_SYS_RAWIO'
	told "paranoid $paranoid, none" "" '^trigger +denied' '^lifecycle +denied' '^network +denied' '^event TSC +denied'
	counts "paranoid $paranoid, an agent with all capabilities counts" "$ALL"
	counts "paranoid $paranoid, an agent with CAP_BPF and CAP_PERFMON counts" "bpf perfmon"
done
with "" timeout 240 "$JOULED" --socket none -i 200ms -n 2 -o hwpc=stdout: >"$work/poor.json" 2>"$work/poor.err"
expect "without rights the agent still measures" [ $? -eq 0 ]
contains "and says what is missing" "$work/poor.err" '^jouled: warning: .*CAP_BPF and CAP_PERFMON.*trigger: none'
finish
