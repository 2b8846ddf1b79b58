#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# userland.sh CASE-FILE OUTPUT: the file system of a guest that runs systemd: Debian's own packages of this
# machine's release (kept for the next time), and above them what the case asks for, with jouled as its Debian package
# in /guest, not installed. Two archives in one file: the kernel unpacks both (Documentation/driver-api/early-userspace/buffer-format.rst).
set -eu
cd "$(dirname "$0")/../.."
B=${B:-build}
case_file=$1 out=$2
kernel=${3:-}
cache=$(cd "${JOULED_VM_CACHE:-$B/vm/kernels}" && pwd)
. tests/apt.sh

head_of() {
	sed -n "s/^# $1: *//p" "$case_file"
}

# The packages that jouled's package depends on, and curl with systemd.
wanted() {
	dpkg-deb -f "$1" Depends Pre-Depends | tr ',' '\n' | sed 's/^[A-Za-z-]*: //; s/|.*//; s/(.*//; s/ //g' | grep .
	printf '%s\n' systemd systemd-sysv dbus kmod iproute2 passwd
	head_of userland | tr ' ' '\n' | grep . || true
}

# The packages' tree without what no guest reads; dpkg's own records stay.
make_base() {
	codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	apt_own_sources amd64 >"$base.list"
	rm -rf "$base.tree"
	mmdebstrap --variant=essential --include="$packages" --mode=root "$codename" "$base.tree" "$base.list" ||
		{ echo "no userland: mmdebstrap of $codename failed" && exit 1; }
	(cd "$base.tree" && rm -rf usr/share/locale/* usr/share/man/* usr/share/doc/* usr/share/i18n usr/lib/udev/hwdb.d \
		var/cache/* var/lib/apt/lists/* usr/lib/x86_64-linux-gnu/gconv usr/share/perl usr/lib/udev/hwdb.bin)
	(cd "$base.tree" && find . | cpio -o -H newc --quiet) >"$base.tmp"
	rm -rf "$base.tree" "$base.list"
	mv "$base.tmp" "$base"
}

# One package for all guests of a tree that stays as it is.
exec 8>"$B/vm/.deb.lock"
flock 8
deb=$(find "$B/deb" -name 'jouled_*_amd64.deb' 2>/dev/null | head -n 1)
if [ -z "$deb" ] || [ -n "$(find Makefile bpf deploy docs include user vmlinux -newer "$deb" -print -quit)" ]; then
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s B="$B" deb >"$out.deb.log" 2>&1 || { tail -n 5 "$out.deb.log" && echo "no package: make deb" && exit 1; }
	deb=$(ls "$B"/deb/jouled_*_amd64.deb)
fi
exec 8>&-
packages=$(wanted "$deb" | sort -u | tr '\n' ',' | sed 's/,$//')
base=$cache/userland-$(echo "$packages" | md5sum | cut -c1-12).cpio
exec 8>"$base.lock"
flock 8
[ -s "$base" ] || make_base
exec 8>&-

root=$out.root
rm -rf "$root"
mkdir -p "$root/guest" "$root/tests" "$root/modules" "$root/etc/systemd/system"
ln -s /lib/systemd/systemd "$root/init"
cp tests/vm/guest/*.sh "$root/guest/"
cp tests/e2e/lib.sh "$root/guest/e2e.sh"
cp "$case_file" "$root/guest/case.sh"
cp "$deb" "$root/guest/jouled.deb"
printf 'KERNEL=%s\nCASE=%s\nCGROUP=v2\n' "$kernel" "$(basename "$case_file" .sh)" >"$root/guest/settings"
cp tests/vm/guest/guest.service "$root/etc/systemd/system/"
mkdir "$root/etc/systemd/system/multi-user.target.wants"
ln -s ../guest.service "$root/etc/systemd/system/multi-user.target.wants/"
for file in $(head_of files); do
	cp -r "$file" "$root/guest/"
done
for module in $(head_of modules); do
	cp "$B/vm/modules/$kernel/$module.ko" "$root/modules/"
done
[ -z "$(head_of image)" ] || sh deploy/image/collect.sh "$root/guest/image" "$B"
cat "$base" >"$out"
(cd "$root" && find . | cpio -o -H newc --quiet -R 0:0) >>"$out"
rm -rf "$root" "$out.deb.log"
