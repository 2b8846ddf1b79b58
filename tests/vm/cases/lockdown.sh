# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# Lockdown raised while the machine runs, after the modules are loaded: integrity takes nothing that is
# needed (MSRs may still be read), confidentiality the kernel's memory, which programs read.
# kernels: 6.1
# seconds: 300
# threads: single
# stock: msr
# qemu: -cpu Skylake-Client
. /guest/lib.sh
load msr
printf 'rapl: msr\n' >"$work/msr.yaml"

# raised LEVEL
raised() {
	echo "$1" >/sys/kernel/security/lockdown
	grep -q "\[$1\]" /sys/kernel/security/lockdown || fail "lockdown $1" "cannot be raised: $(cat /sys/kernel/security/lockdown)"
	doctor "$1" -c "$work/msr.yaml"
	cat "$work/$1.out"
}

raised none
contains "no lockdown: doctor" "$work/none.out" '^trigger +ok +tp_btf' '^lifecycle +ok' '^network +ok'
start before -i 200ms -o "hwpc=file://$work/before.json"
wait_until 100 more_ticks before 1
raised integrity
contains "lockdown=integrity: doctor" "$work/integrity.out" '^trigger +ok +tp_btf' '^lifecycle +ok' '^network +ok' '^lockdown +ok +integrity' \
	'^rapl msr +absent +the unit register reads 0'
cpu_is_right "lockdown=integrity: CPU time"
raised confidentiality
contains "lockdown=confidentiality: doctor" "$work/confidentiality.out" '^lockdown +denied +confidentiality' '^trigger +denied .*lockdown=confidentiality' \
	'^lifecycle +denied .*lockdown=confidentiality' '^rapl msr +absent +the unit register reads 0'
# Programs that were loaded before it keep running, and so does the agent that loaded them.
agent=${agents#" "}
agent=${agent%% *}
made=$(ticks before)
wait_until 50 more_ticks before $((made + 3))
expect "lockdown raised under an agent: it goes on" more_ticks before $((made + 3))
kill "$agent"
ended 50 "$agent"
cpu_is_right "lockdown=confidentiality: CPU time from cpu.stat"
contains "lockdown=confidentiality: the agent says why" "$work/cpu-2.err" 'warning: .*lockdown=confidentiality'
finish
