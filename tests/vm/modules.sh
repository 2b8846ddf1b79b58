#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modules.sh KERNEL: builds tests/vm/modules/*.c against that kernel's unpacked headers, into
# $B/vm/modules/KERNEL/NAME.ko. That kernel need not run, and nothing is installed.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
kernel=${JOULED_VM_CACHE:-$B/vm/kernels}/$1
headers=$(cd "$kernel/headers" 2>/dev/null && pwd -P) || { echo "no headers for kernel $1" && exit 1; }
mkdir -p "$B/vm/modules/$1" || exit 1
dir=$(cd "$B/vm/modules/$1" && pwd)
# Objects of another release of this kernel would be taken for new ones.
cmp -s "$kernel/release" "$dir/release" || rm -rf "${dir:?}"/* "$dir"/.*.cmd
cp "$kernel/release" "$dir/release" || exit 1
# Copied when they differ, whatever their dates say; and what is gone here goes there.
for file in "$dir"/*.[ch]; do
	case $file in
	*.mod.c) ;;
	*) [ -e "tests/vm/modules/${file##*/}" ] || rm -f "$file" ;;
	esac
done
for file in tests/vm/modules/*.[ch] tests/vm/modules/Kbuild; do
	cmp -s "$file" "$dir/${file##*/}" || cp "$file" "$dir/" || exit 1
done
unset MAKEFLAGS MFLAGS MAKELEVEL ARCH CROSS_COMPILE CFLAGS V B
# Headers name the compiler of their kernel, which may be gone; BTF of a module wants pahole, and nobody reads it
if ! make -C "$headers" M="$dir" CC=gcc CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$dir/build.log" 2>&1; then
	grep -E 'error|Error|warning' "$dir/build.log" | head -n 20
	echo "modules do not build for kernel $1: $dir/build.log"
	exit 1
fi
