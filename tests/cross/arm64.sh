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

# The distribution's own archives as this machine is set up to use them; third parties, which
# may not have the architecture, are told by their suite's name.
write_sources() {
	codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	keys=
	for k in /usr/share/keyrings/debian-archive-keyring.gpg /usr/share/keyrings/debian-archive-keyring.pgp; do
		[ -e "$k" ] && keys=" signed-by=$k" && break
	done
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		sort -u | awk -v c="$codename" -v k="$keys" 'index($2, c) == 1 { print "deb [arch=arm64" k "]", $1, $2, $3 }'
}

# How this machine reaches its archives (proxies and the like), and nothing else of its settings:
# its hooks would clean up after an apt that is not its own.
write_config() {
	apt-config dump | grep '^Acquire::' | grep -v '^Acquire::IndexTargets'
	cat <<-EOF
		Dir::Etc::main "/dev/null";
		Dir::Etc::parts "/dev/null";
		Dir::Etc::sourcelist "$apt/sources.list";
		Dir::Etc::sourceparts "/dev/null";
		Dir::State "$apt/state";
		Dir::State::status "$apt/state/status";
		Dir::Cache "$apt/cache";
		APT::Architecture "arm64";
		APT::Architectures { "arm64"; };
		APT::Install-Recommends "false";
		APT::Sandbox::User "root";
		Acquire::Languages "none";
		Acquire::Retries "2";
	EOF
}

packages() {
	sed -n '/^BUILD_DEPS/,/[^\\]$/p' Makefile | grep -oE '[a-z0-9.+-]+-dev\b'
}

make_sysroot() {
	wanted=$(packages | sort | tr '\n' ' ')
	[ "$(cat "$sysroot/.packages" 2>/dev/null)" = "$wanted" ] && return 0
	rm -rf "$sysroot" "$apt/state" "$apt/cache/archives"
	mkdir -p "$sysroot" "$apt/state/lists/partial" "$apt/cache/archives/partial" || return 1
	: >"$apt/state/status"
	write_sources >"$apt/sources.list"
	write_config >"$apt/apt.conf"
	[ -s "$apt/sources.list" ] || skip "apt knows no archive of this release"
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
