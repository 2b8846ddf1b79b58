# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# Things that a container may not see: BTF hidden and given by file, sysfs read-only, masked or absent, /proc without
# its kernel settings, a private cgroup namespace.
# kernels: 6.1
# seconds: 150
# programs: unshare
. /guest/lib.sh
BTF=/sys/kernel/btf/vmlinux
cp $BTF /tmp/vmlinux.btf
: >/tmp/empty

mount --bind /tmp/empty $BTF
doctor nobtf
contains "BTF hidden: doctor" "$work/nobtf.out" '^trigger +[a-z]+ .*--btf FILE' '^hierarchy +ok'
cpu_is_right "BTF hidden: CPU time from cpu.stat"
contains "BTF hidden: the agent says why" "$work/cpu-1.err" 'warning: .*--btf FILE'
doctor btf --btf /tmp/vmlinux.btf
contains "BTF by file: doctor" "$work/btf.out" '^BTF +ok +/tmp/vmlinux.btf, as --btf says$' '^trigger +ok +raw_tp' \
	'^lifecycle +ok' '^network +ok'
cpu_is_right "BTF by file: CPU time" --btf /tmp/vmlinux.btf
run broken -n 1 -o null: --btf /tmp/empty
contains "BTF by a file that is none" "$work/broken.err" '^jouled: error: --btf /tmp/empty: neither BTF nor ELF'
umount $BTF
mkdir /tmp/nothing
mount --bind /tmp/nothing /sys/kernel/btf
doctor absent
contains "BTF absent: doctor" "$work/absent.out" '^BTF +absent .*--btf FILE'
umount /sys/kernel/btf

mount -o remount,ro /sys
mount -o remount,ro /sys/fs/cgroup
doctor ro
contains "read-only sysfs: doctor" "$work/ro.out" '^trigger +ok +tp_btf' '^lifecycle +ok' '^network +ok'
mount -o remount,rw /sys/fs/cgroup
cpu_is_right "read-only sysfs: CPU time"
mount --bind /tmp/nothing /sys/devices/virtual
mount --bind /tmp/nothing /sys/bus/event_source
doctor masked
contains "masked sysfs: doctor" "$work/masked.out" '^trigger +ok +tp_btf' '^rapl powercap +absent' '^event TASK_CLOCK +ok'
cpu_is_right "masked sysfs: CPU time"
mount --bind /tmp/nothing /sys/devices/system/cpu
run nocpu -n 1 -o null:
expect "no /sys/devices/system/cpu: an error in one line" [ "$status-$(grep -c '^jouled: error: ' "$work/nocpu.err")" = 1-1 ]
umount /sys/devices/system/cpu
umount /sys/bus/event_source
umount /sys/devices/virtual

# A private cgroup namespace below a cgroup: its part of the tree, named so.
mkdir /sys/fs/cgroup/tenant
sh -c 'echo $$ >/sys/fs/cgroup/tenant/cgroup.procs; exec /bin/unshare -Cm sh -c "
	umount /sys/fs/cgroup; mount -t cgroup2 cgroup /sys/fs/cgroup; exec sh /guest/namespace.sh"'
finish
