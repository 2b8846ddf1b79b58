#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fetch.sh KERNEL: the newest package of that kernel (tests/vm/kernels.table) unpacked, not installed, into
# $B/vm/kernels/KERNEL, or below JOULED_VM_CACHE where that is set; kept for the next time. There:
#   vmlinuz release modules/ (those of lib/modules/RELEASE) headers (a link, where they are wanted)
# The last line printed is the reason when it fails.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
PATH=$PATH:/sbin:/usr/sbin
. tests/apt.sh
name=$1
mkdir -p "${JOULED_VM_CACHE:-$B/vm/kernels}" || exit 1
cache=$(cd "${JOULED_VM_CACHE:-$B/vm/kernels}" && pwd)
final=$cache/$name
# One at a time for each kernel; a process that waited finds it there.
exec 8>"$cache/.$name.lock"
flock 8
[ -e "$final/release" ] && [ -e "$final/modules/modules.dep" ] && exit 0
dir=$cache/.$name.$$
missed=$cache/.$name.missed
# A kernel that could not be fetched is not asked for again by each guest of a run.
if [ -n "$(find "$missed" -mmin -10 2>/dev/null)" ]; then
	cat "$missed"
	exit 1
fi
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

die() {
	[ -s "$dir/log" ] && tail -n 5 "$dir/log"
	echo "$*" | tee "$missed"
	exit 1
}

# The packages of a kernel: since 7.x the image's package is a bundle of others.
parts() {
	echo "$1"
	apt-cache depends "$1" | sed -n 's/^ *Depends: \(linux-\(binary\|modules\)-[^ ]*\)$/\1/p'
	[ "$with" = busybox ] && echo busybox-static
	[ "$with" = headers ] || return 0
	headers=$(echo "$1" | sed 's/^linux-image/linux-headers/')
	echo "$headers"
	apt-cache depends "$headers" | sed -n 's/^ *Depends: \(linux-\(headers\|kbuild\)-[^ ]*\)$/\1/p'
}

newest_of_series() {
	[ "$series" = '*' ] && series='[0-9]+[.][0-9]+'
	apt-cache pkgnames linux-image- | grep -E "^linux-image-${series}[.][0-9]([0-9.-]|[+]deb[0-9]+)*-$flavour$arch\$" | sort -V | tail -n 1
}

download() {
	package=$(newest_of_series)
	[ -n "$package" ] || die "no linux-image of series $series in: $suites"
	# shellcheck disable=SC2046 # a list
	(cd "$dir/debs" && apt-get download $(parts "$package")) >"$dir/log" 2>&1 || die "$package cannot be downloaded"
}

# The one absolute path in Debian's headers is the way from the flavour's part to the common one.
settle_headers() {
	set -- "$dir"/root/usr/src/linux-headers-*-"$arch"
	[ -d "$1" ] || die "no headers in the packages"
	sed -i "s#^include /usr/src/#include $final/root/usr/src/#" "$1/Makefile"
	ln -s "root/usr/src/$(basename "$1")" "$dir/headers"
}

settle() {
	set -- "$dir"/root/usr/lib/modules/* "$dir"/root/lib/modules/*
	while [ ! -d "$1/kernel" ]; do
		shift
		[ $# -gt 0 ] || die "no modules in the packages"
	done
	modules=${1#"$dir/"}
	ln -s "$modules" "$dir/modules"
	for k in "$dir"/root/boot/vmlinuz-* "$1"/vmlinuz*; do
		[ -f "$k" ] && ln -sf "${k#"$dir/"}" "$dir/vmlinuz"
	done
	[ -e "$dir/vmlinuz" ] || die "no vmlinuz in the packages"
	[ "$with" != headers ] || settle_headers
	depmod -b "${1%/lib/modules/*}" "$(basename "$1")" || die "depmod"
	basename "$modules" >"$dir/release"
}

set -f
# shellcheck disable=SC2046 # the words of a line
set -- $(grep "^$name " tests/vm/kernels.table)
set +f
[ $# -ge 6 ] || { echo "no kernel $name in tests/vm/kernels.table" && exit 2; }
arch=$2 series=$(printf '%s' "$3" | sed 's/[.]/[.]/g') with=$4 flavour=
case $name in *-rt) flavour=rt- ;; esac
shift 5
suites=$*
mkdir -p "$dir/debs" "$dir/root" "$dir/apt" || exit 1
echo "vm: fetching kernel $name of $suites"
apt_suite_sources "$arch" "$@" | apt_begin "$dir/apt" "$arch" || die "apt knows no archive of this machine's release"
export APT_CONFIG="$dir/apt/apt.conf"
apt-get update >"$dir/log" 2>&1 || die "the package lists of $suites cannot be fetched"
download
unset APT_CONFIG
for deb in "$dir"/debs/*.deb; do
	dpkg-deb -x "$deb" "$dir/root" || die "$deb cannot be unpacked"
done
settle
rm -rf "$dir/debs" "$dir/apt" "$dir/log" "$dir/root/usr/share/doc"
rm -rf "$final"
mv "$dir" "$final"
