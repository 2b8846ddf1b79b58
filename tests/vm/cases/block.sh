# shellcheck shell=sh disable=SC1091,SC2154
# SPDX-License-Identifier: Apache-2.0
# Block work per cgroup of a disk with a file system: equal to io.stat and to the device's own statistics; writeback is
# the dirtying cgroup's, whoever asked for it. Where the io controller is off, the task that began it says whose it is.
# kernels: 6.1 6.12
# seconds: 80
# cgroup: v2
# stock: null_blk crc32c_generic ext4 loop
# tests: kernel/test_block
# programs: mkfs.ext4 dd
. /guest/lib.sh
ROOT=/sys/fs/cgroup

within() {
	dir=$1
	shift
	sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$ROOT/$dir" "$@"
}

page() {
	wget -qO- http://127.0.0.1:9177/metrics >"$work/page" 2>/dev/null
}

# metric NAME CGROUP: of the page; CGROUP "" sums all rows.
metric() {
	awk -v name="jouled_cgroup_block_$1_total{" -v row="cgroup=\"$2\"" 'index($0, name) == 1 && (row == "cgroup=\"\"" || index($0, row)) {
		sum += $NF } END { printf "%.0f\n", sum }' "$work/page"
}

# io_stat CGROUP KEY: of the disk.
io_stat() {
	sed -n "s/^$(cat /sys/block/nullb0/dev) .*$2=\([0-9]*\).*/\1/p" "$ROOT/$1/io.stat"
}

# Device's statistics: bytes and requests read, written.
device() {
	awk '{ print $3 * 512, $1, $7 * 512, $5 }' /sys/block/nullb0/stat
}

books() {
	page
	echo "$(metric read_bytes "") $(metric read_requests "") $(metric write_bytes "") $(metric write_requests "")"
}

same_as_device() {
	[ "$(books)" = "$(device)" ]
}

same_as_io_stat() {
	page
	for key in rbytes:read_bytes wbytes:write_bytes; do
		stat=$(io_stat "$1" "${key%%:*}")
		[ "${stat:-0}" = "$(metric "${key##*:}" "/$1")" ] || return 1
	done
}

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
printf 'interval: 200ms\noutputs: [{ format: openmetrics, to: "http-listen://127.0.0.1:9177" }]\n' >"$work/block.yaml"
doctor block
contains "doctor of block work" "$work/block.out" '^block +ok +bytes and requests per cgroup, by the io controller, below it by the task that began it$'
start agent -c "$work/block.yaml"
wait_until 20 page || fail "the agent's page" "$(said agent)"
load null_blk nr_devices=1 memory_backed=1 gb=1
mkfs.ext4 -q -O ^orphan_file,^metadata_csum_seed /dev/nullb0 64M
mkdir /tmp/disk && mount -t ext4 /dev/nullb0 /tmp/disk
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
