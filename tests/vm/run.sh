#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh KERNEL CASE: boots that kernel under QEMU and runs CASE.sh of tests/vm/cases in it; prints the results
# as test lines. run.sh --list prints KERNEL/CASE for each guest there is. See tests/vm/README.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
export B
logs=$B/vm/logs
cases=${JOULED_VM_CASES:-tests/vm/cases}
STARVED=20   # part of its time that a guest may be kept waiting before its failure is the host's
TRIES=3      # of a guest that the host kept waiting, that ended early or never came up: the last one counts

head_of() {
	sed -n "s/^# $2: *//p" "$cases/$1.sh"
}

# Kernel by kernel, so that one which cannot be had is met once.
list() {
	sed '/^#/d; s/ .*//' tests/vm/kernels.table | while read -r k; do
		for file in "$cases"/*.sh; do
			c=$(basename "$file" .sh)
			case " $(head_of "$c" kernels) " in
			*" $k "*) echo "$k/$c" ;;
			esac
		done
	done
}

give_up() {
	echo "FAIL vm/$kernel/$name: $1"
	exit 1
}

# An error, or a named skip for the kernels that the archive may have let go.
not_fetched() {
	if [ "$(awk -v k="$kernel" '$1 == k { print $5 }' tests/vm/kernels.table)" = may ]; then
		echo "SKIP vm/$kernel: $1"
		exit 0
	fi
	give_up "$1"
}

# Never KVM: on a nested host /dev/kvm can be opened and the guest hangs. $threads: multi, or single where all CPUs of the guest
# share one thread of the host.
machine() {
	cpus=$(head_of "$name" cpus)
	common="-m $(head_of "$name" memory | grep . || echo 512) -display none -nodefaults -no-reboot"
	common="$common -monitor none -kernel $cache/$kernel/vmlinuz -initrd $initramfs $(head_of "$name" qemu | sed "s#@log@#$log#g")"
	accel="-accel tcg,thread=$threads"
	case $common in *-icount*) accel='-accel tcg,thread=single' ;; esac
	if [ "$arch" = amd64 ]; then
		echo "qemu-system-x86_64 -M pc $accel -smp ${cpus:-2} $common -serial file:$log.console -serial file:$log.keep"
	else
		echo "qemu-system-aarch64 -M virt -cpu cortex-a57 $accel -smp ${cpus:-2} $common -serial file:$log.console"
	fi
}

append() {
	tty=ttyS0
	[ "$arch" = amd64 ] || tty=ttyAMA0
	echo "console=$tty quiet loglevel=1 panic=-1 oops=panic softlockup_panic=1 mitigations=off random.trust_cpu=on tsc=reliable $(head_of "$name" append)"
}

# Milliseconds that the guest's threads were ready to run and the host had no CPU for them, so far.
waited_ms() {
	awk '{ ns += $2 } END { printf "%d\n", ns / 1000000 }' /proc/"$1"/task/*/schedstat 2>/dev/null
}

# Milliseconds of CPU that the guest has used so far.
used_ms() {
	awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*[)] /, ""); printf "%d\n", ($12 + $13) * 1000 / hz }' "/proc/$1/stat" 2>/dev/null
}

# Milliseconds that a hypervisor below took from this machine's CPUs, since it was started: what it tells, and what no column of
# /proc/stat has, for a CPU that was taken away in silence misses its ticks.
stolen_ms() {
	read -r up_s _ </proc/uptime
	awk -v hz="$(getconf CLK_TCK)" -v up_s="$up_s" '/^cpu[0-9]/ {
		for (i = 2; i <= 9; i++) missing_s -= $i / hz
		missing_s += up_s
		told_s += $9 / hz
	} END { printf "%d\n", (missing_s + told_s) * 1000 }' /proc/stat
}

# Follows a guest to its end; $starved_ms: how long it was kept waiting, $cpu_ms: what it used.
attend() {
	stolen=$(stolen_ms)
	while kill -0 "$qemu" 2>/dev/null; do
		read -r child _ <"/proc/$qemu/task/$qemu/children"   # no end of line: it says that it failed
		now=$(waited_ms "${child:-$qemu}")
		starved_ms=${now:-$starved_ms}
		now=$(used_ms "${child:-$qemu}")
		cpu_ms=${now:-$cpu_ms}
		sleep 0.3
	done
	starved_ms=$((starved_ms + $(stolen_ms) - stolen))
}

# boot: 0 when the case ran to its end, 1 when the guest died or hung, 2 when it never came up.
boot() {
	rm -f "$log.console" "$log.keep"
	: >"$log.console"
	starved_ms=0 took_ms=0 cpu_ms=0
	booted=$(date +%s%N)
	# A guest's clocks go on while it waits for a CPU: it comes before what else the host does.
	# shellcheck disable=SC2046 # words
	nice -n -10 timeout -k 5 "$seconds" $(machine) -append "$(append)" >"$log.qemu" 2>&1 &
	qemu=$!
	waited=0
	while kill -0 $qemu 2>/dev/null && ! grep -q '^@up' "$log.console"; do
		sleep 0.2
		waited=$((waited + 1))
		[ $waited -lt $((5 * come_up)) ] || kill $qemu 2>/dev/null
	done
	grep -q '^@up' "$log.console" || { wait $qemu; return 2; }
	attend
	wait $qemu
	took_ms=$((($(date +%s%N) - booted) / 1000000))
	grep -q '^@end' "$log.console"
}

results() {
	tr -d '\r' <"$log.console" | grep -aE '^(ok|FAIL|SKIP|note) '
}

# The guest's last lines: its own and the kernel's.
last_words() {
	tr -d '\r' <"$log.console" | grep -avE '^(ok|SKIP|@|$)' | tail -n 25 | cut -c1-200 | sed 's/^/    /'
	head -n 5 "$log.qemu" | sed 's/^/    /'
}

unpack_kept() {
	[ -s "$log.keep" ] || return 0
	rm -rf "$log.files"
	mkdir -p "$log.files" && tar -C "$log.files" -xf "$log.keep" 2>/dev/null
	rm -f "$log.keep"
}

# Judges the files that came back, where a case wants that.
judge() {
	judge=$(head_of "$name" judge)
	[ -z "$judge" ] || [ $rc -ne 0 ] || python3 "$judge" "$log.files" "$kernel" 2>&1 || echo "FAIL vm/$kernel/$name: $judge ($?)"
}

if [ "${1:-}" = --list ]; then
	list
	exit 0
fi
if [ $# -ne 2 ] || [ ! -f "$cases/$2.sh" ]; then
	echo "usage: run.sh KERNEL CASE, or run.sh --list" >&2
	exit 2
fi
kernel=$1 name=$2
arch=$(awk -v k="$kernel" '$1 == k { print $2 }' tests/vm/kernels.table)
case $arch in
amd64 | arm64) ;;
*) echo "FAIL vm/$kernel: not in tests/vm/kernels.table" && exit 1 ;;
esac
if [ "$(uname -m)" != x86_64 ]; then
	echo "SKIP vm: the guests need programs of an x86_64 machine"
	exit 0
fi
mkdir -p "$logs" "$B/vm"
cache=${JOULED_VM_CACHE:-$B/vm/kernels}
log=$logs/$kernel-$name
initramfs=$B/vm/$kernel-$name.cpio
seconds=$(head_of "$name" seconds | grep . || echo 60)
come_up=$(head_of "$name" up | grep . || echo 60)
sh tests/vm/fetch.sh "$kernel" >"$log.fetch" 2>&1 || not_fetched "$(tail -n 1 "$log.fetch")"
if [ "$arch" = arm64 ]; then
	sh tests/cross/arm64.sh >"$log.build" 2>&1 || give_up "$(grep -m 1 FAIL "$log.build")"
	mkdir -p "$B/arm64/vm"
	for helper in recsum $(head_of "$name" tests | tr ' ' '\n' | sed -n 's#^vm/##p'); do
		aarch64-linux-gnu-gcc -O2 -static -o "$B/arm64/vm/$helper" "tests/vm/$helper.c" >>"$log.build" 2>&1 || give_up "$helper does not build"
	done
fi
if [ -n "$(head_of "$name" modules)" ]; then
	sh tests/vm/modules.sh "$kernel" >"$log.modules" 2>&1 || { cat "$log.modules" && give_up "$(tail -n 1 "$log.modules")"; }
fi
sh tests/vm/initramfs.sh "$kernel" "$cases/$name.sh" "$initramfs" >"$log.initramfs" 2>&1 ||
	give_up "no initramfs: $(tail -n 1 "$log.initramfs")"
# attempt: boots, judges; the results in $log.console, 0 when all is well.
attempt() {
	boot
	rc=$?
	echo "note vm/$kernel/$name: $took_ms ms, $cpu_ms of CPU, kept waiting for $starved_ms; guest $(tr -d '\r' <"$log.console" | grep -aE '^@' | tr '\n' ' ')"
	unpack_kept
	judge >>"$log.console"
	[ $rc -eq 0 ] && ! results | grep -q '^FAIL '
}

# How the guest of this try went.
ending() {
	case $rc in
	0) echo "the case came to its end" ;;
	1) echo "the guest ended before the case did" ;;
	*) echo "the guest did not come up" ;;
	esac
}

# Of what two CPUs had to give.
was_starved() {
	[ "$starved_ms" -gt $((took_ms / STARVED)) ]
}

# An emulated CPU that stops answering while code is patched under it (text_poke, arch/x86/kernel/alternative.c)
# is QEMU's: the guest locks up and ends, or never comes up. One thread for all CPUs has nothing to race with, and may take twice as long.
once=$(head_of "$name" once)
threads=$(head_of "$name" threads | grep . || echo multi)
tries=1
until attempt || [ $tries -eq "$TRIES" ] || ! { [ $rc -ne 0 ] || { [ -z "$once" ] && was_starved; }; }; do
	results | sed -n 's/^FAIL /note failed: /p'
	if [ $rc -ne 0 ]; then
		last_words | sed 's/^/note/'
		threads=single
		[ $tries -gt 1 ] || seconds=$((seconds * 2)) come_up=$((come_up * 2))
	fi
	tries=$((tries + 1))
	echo "note vm/$kernel/$name: failed (kept waiting for $starved_ms of $took_ms ms, $(ending)); try $tries of $TRIES"
done
rm -f "$initramfs"
results
if [ $rc -ne 0 ]; then
	echo "FAIL vm/$kernel/$name: $(ending); its last lines:"
	last_words
	exit 1
fi
! results | grep -q '^FAIL '
