#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# initramfs.sh KERNEL CASE-FILE OUTPUT: the guest's whole file system, in memory: busybox, jouled, what the
# case's head asks for (tests/vm/README), and every library of those.
set -eu
cd "$(dirname "$0")/../.."
B=${B:-build}
kernel=$1 case_file=$2 out=$3
arch=$(awk -v k="$kernel" '$1 == k { print $2 }' tests/vm/kernels.table)
cache=${JOULED_VM_CACHE:-$B/vm/kernels}/$kernel
root=$out.root
built=$B
[ "$arch" = amd64 ] || built=$B/arm64
grep -q '^# userland:' "$case_file" && exec sh tests/vm/userland.sh "$case_file" "$out" "$kernel"
[ "$arch" = amd64 ] || sysroot=$(cd "$B/arm64-sysroot" && pwd)
rm -rf "$root"
for d in bin sbin proc sys dev tmp run etc guest tests modules stock; do
	mkdir -p "$root/$d"
done

# head KEY: the words of a "# KEY: words" line of the case.
head_of() {
	sed -n "s/^# $1: *//p" "$case_file"
}

# Libraries as the loader of that architecture finds them.
libraries() {
	if [ "$arch" = amd64 ]; then
		ldd "$1" 2>/dev/null | grep -o '/[^ ]*'
	else
		qemu-aarch64 -L "$sysroot" "$sysroot/lib/ld-linux-aarch64.so.1" --list "$1" | sed "s#$sysroot##" | grep -o '/[^ ]*'
	fi
}

# put FILE FOLDER: a program with its libraries at the places where they were.
put() {
	mkdir -p "$root/$2"
	cp -L "$1" "$root/$2/"
	case $1 in
	*.sh) return ;;
	esac
	from=
	[ "$arch" = amd64 ] || from=$sysroot
	for lib in $(libraries "$1" || true); do
		[ -e "$root$lib" ] || { mkdir -p "$root${lib%/*}" && cp -L "$from$lib" "$root$lib"; }
	done
}

# Ours for both architectures: a busybox, and jouled.
put_base() {
	if [ "$arch" = amd64 ]; then
		busybox=/bin/busybox jouled=$B/jouled recsum=$B/vm/recsum
	else
		busybox=$cache/root/bin/busybox jouled=$B/arm64/jouled recsum=$B/arm64/vm/recsum
	fi
	cp "$busybox" "$root/bin/busybox"
	mkdir "$root/usr"
	ln -s /bin "$root/usr/bin"   # the links made next may point there
	/bin/busybox --install -s "$root/bin" 2>/dev/null || true
	put "$jouled" bin
	cp "$recsum" "$root/tests/"
}

put_stock() {
	modules=$cache/modules
	for name in $(head_of stock); do
		line=$(grep -E "(^|/)$(printf '%s' "$name" | sed 's/[-_]/[-_]/g')\.ko[^:]*:" "$modules/modules.dep") ||
			{ echo "kernel $kernel has no module $name" && exit 1; }
		own=$(printf '%s' "${line%%:*}")
		# modules.dep lists what is needed from nearest to farthest
		# shellcheck disable=SC2086 # words
		order=$(printf '%s\n' ${line#*:} | tac)
		for path in $order $own; do
			file=$(basename "$path" | sed 's/\.ko.*/.ko/')
			case $path in
			*.xz) xz -dc "$modules/$path" >"$root/stock/$file" ;;
			*) cp "$modules/$path" "$root/stock/$file" ;;
			esac
			echo "$file"
		done >"$root/stock/$name.order"
	done
}

put_base
cp tests/vm/guest/init "$root/init"
chmod +x "$root/init"
cp tests/vm/guest/*.sh "$root/guest/"
cp tests/e2e/lib.sh "$root/guest/e2e.sh"
cp "$case_file" "$root/guest/case.sh"
{
	echo "KERNEL=$kernel"
	echo "CASE=$(basename "$case_file" .sh)"
	echo "CGROUP=$(head_of cgroup)"
} >"$root/guest/settings"
printf 'root:x:0:0::/tmp:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
for program in $(head_of programs); do
	path=$(PATH=$PATH:/sbin:/usr/sbin command -v "$program") || { echo "no program $program here" && exit 1; }
	rm -f "$root/bin/$program"
	put "$path" bin
done
for test in $(head_of tests); do
	put "$built/$test" tests
done
for file in $(head_of files); do
	cp -r "$file" "$root/guest/"
done
for module in $(head_of modules); do
	cp "$B/vm/modules/$kernel/$module.ko" "$root/modules/"
done
put_stock
(cd "$root" && find . | cpio -o -H newc --quiet) >"$out"
rm -rf "$root"
