#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make test-image: both stages of deploy/image/Containerfile, on a base that is made here of Debian's packages, so that
# no registry is asked; and the image for arm64, of the cross-build. Minutes, and 3 GB of disk.
# shellcheck disable=SC1091
. tests/e2e/lib.sh
. tests/deploy/podman.sh
. tests/apt.sh
base=localhost/jouled-test-base:$$

usable_podman || { skip deploy/stages "$why"; exit 0; }
trap 'podman rmi -f "$image" "$base" "$image-arm64" >/dev/null 2>&1; cleanup' EXIT
packages=$(sed -n '/^BUILD_DEPS/,/[^\\]$/p' Makefile | sed 's/.*:=//; s/\\//' | tr -s ' \t\n' ',')
apt_own_sources amd64 >"$work/sources"
if mmdebstrap --variant=apt --include="ca-certificates,ncurses-base$packages" "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" \
	- "$work/sources" 2>"$work/base.log" | podman import -q - "$base" >/dev/null; then
	ok stages-base
else
	fail stages-base "$(tail -n 3 "$work/base.log" | tr '\n' '|')"
	finish
fi
# the packages of the base are all it wants
if podman build --isolation chroot --layers=false --format docker --ignorefile deploy/image/Containerfile.dockerignore \
	--build-arg "BASE=$base" -t "$image" -f deploy/image/Containerfile . >"$work/stages.log" 2>&1 && ! grep -q "^deps: installing" "$work/stages.log"; then
	ok stages-build
else
	fail stages-build "$(tail -n 5 "$work/stages.log" | tr '\n' '|')"
	finish
fi
if runs --rm "$image" --version >"$work/version" 2>&1 && grep -q '^jouled [0-9]' "$work/version"; then
	ok stages-run
else
	fail stages-run "$(tail -n 3 "$work/version")"
fi

# The Quadlet through the generator of a podman that has one (4.4), which Debian 12's has not.
quadlet=/usr/libexec/podman/quadlet
if [ ! -x $quadlet ]; then
	apt_suite_sources amd64 trixie | apt_begin "$work/apt" amd64
	(cd "$work" && export APT_CONFIG="$work/apt/apt.conf" && apt-get update -qq && apt-get download -qq podman && dpkg -x podman_*.deb podman) \
		>"$work/quadlet.log" 2>&1
	quadlet=$work/podman/usr/libexec/podman/quadlet
fi
if QUADLET_UNIT_DIRS=$PWD/deploy/quadlet "$quadlet" -dryrun >"$work/quadlet" 2>>"$work/quadlet.log" &&
	grep -q '^ExecStart=/usr/bin/podman run .*--privileged --pid=host --cgroupns=host --uts=host localhost/jouled:latest -o null:$' "$work/quadlet"; then
	ok stages-quadlet
else
	fail stages-quadlet "$(tail -n 3 "$work/quadlet.log" | tr '\n' '|')"
fi

sh tests/cross/arm64.sh >"$work/cross.log" 2>&1 || { fail stages-arm64 "$(grep -m 1 FAIL "$work/cross.log")"; finish; }
sysroot=$(cd "$B/arm64-sysroot" && pwd)
if image_of "$work/arm64" "$B/arm64" "$sysroot" && podman build -q --platform linux/arm64 --layers=false --format docker -t "$image-arm64" \
	-f "$work/Containerfile" "$work/arm64" >"$work/arm64.log" 2>&1 &&
	[ "$(podman inspect -f '{{.Architecture}}' "$image-arm64")" = arm64 ]; then
	ok stages-arm64
else
	fail stages-arm64 "$(tail -n 3 "$work/build.log" "$work/arm64.log" | tr '\n' '|')"
fi
# in its own root, as the kernel of an arm64 machine would find it
if qemu-aarch64 -L "$work/arm64" "$work/arm64/usr/sbin/jouled" --version | grep -q '^jouled [0-9]' &&
	qemu-aarch64 -L "$work/arm64" "$work/arm64/usr/bin/joulectl" --version | grep -q '^joulectl [0-9]'; then
	ok stages-arm64-run
else
	fail stages-arm64-run "jouled --version under qemu"
fi
bytes=$(podman save "$image-arm64" | gzip -6 | wc -c)
[ "$bytes" -le $((15 * 1024 * 1024)) ] && ok stages-arm64-size || fail stages-arm64-size "$bytes bytes compressed"
finish
