# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: Apache-2.0
# Helpers of cases about block work: a disk nullb0, programs in cgroups, what the agent's page says and what the kernel says.
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

# disk MEMORY: nullb0, 128 MiB; with MEMORY 1 it keeps what is written. Before Linux 6.0 configfs alone can say so.
disk() {
	load null_blk nr_devices=0
	mount -t configfs none /sys/kernel/config
	mkdir /sys/kernel/config/nullb/nullb0
	for each in size=128 "memory_backed=$1" power=1; do
		echo "${each#*=}" >"/sys/kernel/config/nullb/nullb0/${each%%=*}" || return 1
	done
}

block_agent() {
	printf 'interval: 200ms\noutputs: [{ format: openmetrics, to: "http-listen://127.0.0.1:9177" }]\n' >"$work/block.yaml"
	start agent -c "$work/block.yaml"
	wait_until 20 page || fail "the agent's page" "$(said agent)"
}
