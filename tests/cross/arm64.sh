#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Cross-builds everything for arm64: Debian's arm64 libraries unpacked into build/arm64-sysroot, by an
# apt that has lists, cache and architecture of its own, so that this machine's packages stay as
# they are; only the cross compiler and qemu's user mode are installed. What was built is then started
# under qemu, on a captured arm64 machine.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
mkdir -p "$B/arm64-apt" || exit 1
apt=$(cd "$B/arm64-apt" && pwd)
sysroot=$(dirname "$apt")/arm64-sysroot
jobs=$(nproc)
. tests/apt.sh

skip() {
	echo "SKIP cross/arm64: $1"
	exit 0
}

fail() {
	echo "FAIL cross/arm64: $1"
	[ -z "${2:-}" ] || tail -n 40 "$2"
	exit 1
}

for tool in apt-get dpkg-deb; do
	command -v $tool >/dev/null 2>&1 || skip "not a Debian system ($tool is missing)"
done

packages() {
	sed -n '/^BUILD_DEPS/,/[^\\]$/p' Makefile | grep -oE '[a-z0-9.+-]+-dev\b'
}

make_sysroot() {
	wanted=$(packages | sort | tr '\n' ' ')
	[ "$(cat "$sysroot/.packages" 2>/dev/null)" = "$wanted" ] && return 0
	rm -rf "$sysroot"
	mkdir -p "$sysroot" || return 1
	apt_own_sources arm64 | apt_begin "$apt" arm64 || skip "apt knows no archive of this release"
	echo "cross/arm64: fetching the arm64 packages of: $wanted"
	export APT_CONFIG="$apt/apt.conf"
	apt-get update >"$apt/log" 2>&1 || skip "the package lists cannot be fetched"
	# shellcheck disable=SC2086 # a list
	apt-get install --download-only -y $wanted >>"$apt/log" 2>&1 || fail "packages cannot be fetched" "$apt/log"
	unset APT_CONFIG
	for deb in "$apt"/cache/archives/*.deb; do
		dpkg-deb -x "$deb" "$sysroot" || fail "$deb cannot be unpacked"
	done
	# Newer releases have everything below /usr and rely on the base system's links.
	[ -e "$sysroot/lib" ] || ln -s usr/lib "$sysroot/lib"
	printf '%s' "$wanted" >"$sysroot/.packages"
}

# pkg-config that sees the sysroot only.
make_pkg_config() {
	cat >"$apt/pkg-config" <<-EOF
		#!/bin/sh
		PKG_CONFIG_SYSROOT_DIR="$sysroot" PKG_CONFIG_PATH= \\
		PKG_CONFIG_LIBDIR="$sysroot/usr/lib/aarch64-linux-gnu/pkgconfig:$sysroot/usr/share/pkgconfig" \\
		exec pkg-config "\$@"
	EOF
	chmod +x "$apt/pkg-config"
}

is_arm64() {
	[ "$(od -An -tu2 -j18 -N2 "$1" | tr -d ' ')" = 183 ]   # e_machine EM_AARCH64
}

sh deploy/deps.sh gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user || skip "the cross compiler cannot be installed"
make_sysroot || fail "no sysroot"
make_pkg_config
# Variables that would reach the inner make from an outer one, or from its user, are not for this build.
unset MAKEFLAGS MFLAGS MAKELEVEL CPPFLAGS LDFLAGS
# The writer of the manual pages runs here.
make -j"$jobs" B="$B" "$B/mankeys" >"$apt/log" 2>&1 || fail "make mankeys" "$apt/log"
CFLAGS="-O2 -g --sysroot=$sysroot" make -j"$jobs" ARCH=aarch64 CROSS_COMPILE=aarch64-linux-gnu- B="$B/arm64" \
	PKG_CONFIG="$apt/pkg-config" MANKEYS="$B/mankeys" all >"$apt/log" 2>&1 || fail "make" "$apt/log"
for program in $(make -s B="$B/arm64" ARCH=aarch64 --eval='list:;@echo $(PROGRAMS)' list); do
	is_arm64 "$program" || fail "$program is not an arm64 program"
	echo "ok cross/arm64 ${program##*/}"
done

run() {
	qemu-aarch64 -L "$sysroot" "$B/arm64/jouled" "$@" >"$apt/log" 2>&1
}

run --version || fail "jouled --version under qemu" "$apt/log"
grep -q '^jouled [0-9]' "$apt/log" || fail "jouled --version under qemu" "$apt/log"
echo "ok cross/arm64 $(cat "$apt/log")"
run doctor --root tests/sysroot/arm64-no-energy || fail "jouled doctor under qemu" "$apt/log"
grep -q 'LLC_MISSES *ok' "$apt/log" || fail "jouled doctor under qemu does not find LLC_MISSES" "$apt/log"
echo "ok cross/arm64 doctor"
