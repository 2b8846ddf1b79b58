#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# collect.sh DESTINATION BUILD-FOLDER [SYSROOT]: the image's whole file system: both programs and the library for Kafka stripped, the libraries
# that they load, and the few files that those read. With SYSROOT, that of another architecture (tests/cross/arm64.sh).
set -eu
cd "$(dirname "$0")/../.."
root=$1 b=$2 sysroot=${3:-}
strip="strip"
[ -z "$sysroot" ] || strip=aarch64-linux-gnu-strip

# Paths as the loader names them, without the sysroot.
libraries() {
	if [ -z "$sysroot" ]; then
		ldd "$@"
	else
		for program in "$@"; do
			qemu-aarch64 -L "$sysroot" "$sysroot/lib/ld-linux-aarch64.so.1" --list "$program"
		done
	fi | grep '^[[:space:]]' | sed "s#$sysroot/#/#g" | grep -oE '/[^ :]+\.so[^ :]*' | sort -u
}

# The licence texts of the packages that the libraries are from.
licences() {
	if [ -n "$sysroot" ]; then
		(cd "$sysroot/usr/share/doc" && find lib* -name copyright ! -path '*-dev/*')
	else
		dpkg-query -S "$@" 2>/dev/null | sed 's/[:,].*//' | sort -u | sed 's#$#/copyright#'
	fi | while read -r file; do
		[ -e "$sysroot/usr/share/doc/$file" ] || continue
		mkdir -p "$root/usr/share/doc/${file%/*}"
		cp -L "$sysroot/usr/share/doc/$file" "$root/usr/share/doc/$file"
	done
}

umask 022
rm -rf "$root"
mkdir -p "$root/usr/bin" "$root/usr/sbin" "$root/etc/ssl/certs" "$root/etc/jouled" "$root/run/jouled" \
	"$root/var/lib/jouled" "$root/usr/share/doc/jouled" "$root/proc" "$root/sys" "$root/dev"
mkdir -m 1777 "$root/tmp"
$strip -o "$root/usr/sbin/jouled" "$b/jouled"
$strip -o "$root/usr/bin/joulectl" "$b/joulectl"
kafka=
if [ -e "$b/kafka.so" ]; then
	kafka=$b/kafka.so
	mkdir -p "$root/usr/local/lib/jouled"
	$strip -o "$root/usr/local/lib/jouled/kafka.so" "$kafka"
fi
list=$(libraries "$b/jouled" "$b/joulectl" ${kafka:+"$kafka"})
for lib in $list; do
	mkdir -p "$root${lib%/*}"
	cp -L "$sysroot$lib" "$root$lib"
done
# shellcheck disable=SC2086,SC2046 # lists; where /usr is merged the loader and dpkg may name different paths
licences $list $(printf '%s\n' "$list" | sed 's#^#/usr#; s#^/usr/usr##')
cp LICENSE LICENSE.GPL-2.0 "$root/usr/share/doc/jouled/"
cp deploy/jouled.yaml "$root/etc/jouled/jouled.yaml.example"
# https collectors; absent where the building machine has none
[ ! -e /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
for name in l/linux s/screen s/screen-256color t/tmux-256color v/vt100 x/xterm x/xterm-256color; do
	for from in /lib/terminfo /usr/share/terminfo; do
		[ ! -e "$from/$name" ] || install -D -m 644 "$from/$name" "$root/lib/terminfo/$name"
	done
done
# names in UTF-8 (LANG=C.UTF-8); the table is the same for all architectures that there are images for
locale=/usr/lib/locale/C.utf8/LC_CTYPE
[ ! -e $locale ] || install -D -m 644 $locale "$root$locale"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
echo 'root:x:0:0:root:/:/usr/sbin/jouled' >"$root/etc/passwd"
# no group jouled: its number would be another group's on the host. Mount the host's /etc/group over it and its members may use the socket
echo 'root:x:0:' >"$root/etc/group"
