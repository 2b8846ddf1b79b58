#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trim.sh [BTF]: writes vmlinux/x86_64/vmlinux.h, the kernel types that bpf/ and the benchmark's
# program use and no more, from a kernel's BTF (default: the running one).
#
# The programs are compiled against the whole kernel; what they then ask to be relocated is exactly
# what they use. Layouts need not be right, because libbpf relocates every access (CO-RE), so padding
# is dropped. Types of the BPF interface itself are not relocated and are taken as they stand.
set -eu
cd "$(dirname "$0")/.."
btf=${1:-/sys/kernel/btf/vmlinux}
bpftool=${BPFTOOL:-$(command -v bpftool || echo /usr/sbin/bpftool)}
clang=${CLANG:-clang}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

"$bpftool" btf dump file "$btf" format c >"$tmp/vmlinux.h"
for source in bpf/*.bpf.c tests/bench/*.bpf.c; do
	"$clang" -O2 -g -target bpf -mcpu=v3 -D__TARGET_ARCH_x86 -I"$tmp" -Iinclude -Ibpf \
		-c "$source" -o "$tmp/$(basename "$source" .c).o"
done
"$bpftool" gen min_core_btf "$btf" "$tmp/used.btf" "$tmp"/*.bpf.o
"$bpftool" btf dump file "$tmp/used.btf" format c >"$tmp/used.h"

# interface FILE: the declarations of the BPF interface that programs name.
interface() {
	awk '
	/^(enum|struct|union).*\{$/ { block = ""; on = 1 }
	on { block = block $0 "\n" }
	on && /^\}/ {
		on = 0
		if (block ~ /^enum bpf_map_type \{/ || block ~ /^struct (__sk_buff|bpf_raw_tracepoint_args|bpf_perf_event_value) \{/ ||
		    (block ~ /^enum \{/ && block ~ /\t(BPF_NOEXIST|BPF_F_MMAPABLE|BPF_F_CURRENT_CPU) =/))
			printf "%s\n", block
	}' "$1"
}

# used FILE: the kernel types without padding, without what interface() gives, and without frame.
used() {
	awk '
	/^\t+(long|int|short|char): [0-9]+;$/ { next }
	/^#/ { next }
	/^struct (__sk_buff|bpf_raw_tracepoint_args|bpf_perf_event_value) \{$/ { skip = 1 }
	!skip && ($0 != "" || before != "") { print; before = $0 }
	/^\};$/ { skip = 0 }' "$1"
}

{
	cat <<-'END'
	/* SPDX-License-Identifier: GPL-2.0-only */
	/* Kernel types that the programs under bpf/ use, made by vmlinux/trim.sh: do not edit. Only the
	 * names of fields matter; their places are relocated when a program is loaded (CO-RE). */
	#ifndef __VMLINUX_H__
	#define __VMLINUX_H__

	typedef signed char __s8;
	typedef unsigned char __u8;
	typedef short int __s16;
	typedef short unsigned int __u16;
	typedef int __s32;
	typedef unsigned int __u32;
	typedef long long int __s64;
	typedef long long unsigned int __u64;
	typedef __s8 s8;
	typedef __u8 u8;
	typedef __s16 s16;
	typedef __u16 u16;
	typedef __s32 s32;
	typedef __u32 u32;
	typedef __s64 s64;
	typedef __u64 u64;
	typedef __u16 __be16;
	typedef __u32 __be32;
	typedef __u32 __wsum;
	typedef _Bool bool;

	enum { false = 0, true = 1 };

	/* The BPF interface: fixed layouts. */
	END
	interface "$tmp/vmlinux.h"
	printf '/* The kernel: places relocated. */\n'
	printf '#pragma clang attribute push (__attribute__((preserve_access_index)), apply_to = record)\n\n'
	used "$tmp/used.h" | grep -vE '^typedef (unsigned int __u32|long long unsigned int __u64|__u32 u32|__u64 u64);$' | cat -s
	printf '\n#pragma clang attribute pop\n\n#endif\n'
} >"$tmp/trimmed.h"
cp "$tmp/trimmed.h" vmlinux/x86_64/vmlinux.h
