# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# Block work per cgroup of a disk with a file system: equal to io.stat and to the device's own statistics; writeback is
# the dirtying cgroup's, whoever asked for it. Where the io controller is off, the task that began it says whose it is.
# kernels: 6.1 6.12 5.10
# seconds: 200
# threads: single
# cgroup: v2
# stock: null_blk crc32c_generic ext4 loop
# tests: kernel/test_block
# programs: mkfs.ext4 dd
. /guest/lib.sh
. /guest/block.sh

told() {
	echo "books $(books), device $(device)"
	for dir in "$@"; do
		echo "/$dir: $(metric read_bytes "/$dir") $(metric write_bytes "/$dir"), io.stat $(tr '\n' ';' <"$ROOT/$dir/io.stat")"
	done
}

load crc32c_generic
load ext4
load loop
kernel_test test_block
keep "$work/test_block.log"
doctor block
contains "doctor of block work" "$work/block.out" '^block +ok +bytes and requests per cgroup, by the io controller, below it by the task that began it$'
block_agent
disk 1
mkfs.ext4 -q -O ^orphan_file,^metadata_csum_seed /dev/nullb0 64M
mkdir /tmp/disk && mount -t ext4 /dev/nullb0 /tmp/disk || fail "a disk with a file system" "$(dmesg | tail -n 1)"
echo "+io +memory" >$ROOT/cgroup.subtree_control
mkdir $ROOT/dirty $ROOT/syncs $ROOT/reads
within dirty dd if=/dev/zero of=/tmp/disk/file bs=64k count=128 2>/dev/null
within syncs sync
within reads dd if=/tmp/disk/file of=/dev/null bs=64k count=50 iflag=direct 2>/dev/null
if wait_until 10 same_as_io_stat dirty && wait_until 10 same_as_io_stat reads; then
	ok "block work equals io.stat"
else
	fail "block work equals io.stat" "$(told dirty syncs reads | tr '\n' '|')"
fi
if [ "$(metric write_bytes /dirty)" -ge $((128 * 65536)) ] && [ "$(metric write_bytes /syncs)" -lt $((16 * 65536)) ]; then
	ok "writeback is the dirtying cgroup's"
else
	fail "writeback is the dirtying cgroup's" "$(told dirty syncs | tr '\n' '|')"
fi
if [ "$(metric read_bytes /reads)" = $((50 * 65536)) ]; then
	ok "reads are the reader's"
else
	fail "reads are the reader's" "$(told reads)"
fi
if wait_until 10 same_as_device; then
	ok "block work equals the device's statistics"
else
	fail "block work equals the device's statistics" "$(told)"
fi
mkdir $ROOT/deep && echo "+memory" >$ROOT/deep/cgroup.subtree_control && mkdir $ROOT/deep/below
echo "-io" >$ROOT/cgroup.subtree_control
within deep/below dd if=/dev/zero of=/tmp/disk/direct bs=64k count=20 oflag=direct 2>/dev/null
direct_is_there() {
	page && [ "$(metric write_bytes /deep/below)" -ge $((20 * 65536)) ]
}
if wait_until 10 direct_is_there && [ "$(metric write_bytes /deep/below)" -lt $((22 * 65536)) ]; then
	ok "without the io controller the task says whose it is"
else
	fail "without the io controller the task says whose it is" "$(told deep/below)"
fi
sync
if wait_until 10 same_as_device; then
	ok "block work equals the device's statistics without the io controller"
else
	fail "block work equals the device's statistics without the io controller" "$(told)"
fi
finish
