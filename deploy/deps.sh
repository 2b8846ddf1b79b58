#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deps.sh PACKAGE...: installs the Debian packages that are missing and says so first; silent when
# nothing is. Elsewhere than on Debian it only names what is wanted.
set -u

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
	echo "deps: not a Debian system; these or their like are needed: $*" >&2
	exit 0
fi

missing=
for package in "$@"; do
	state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)
	[ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null 2>&1; then
		echo "deps: missing packages; as root: apt-get install$missing" >&2
		exit 1
	fi
	as_root=sudo
fi

install() {
	# shellcheck disable=SC2086 # the list is meant to split
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -qq -y --no-install-recommends $missing >"$log" 2>&1
}

log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
echo "deps: installing with apt-get:$missing"
# Package lists may be absent or older than the archive: refreshed only when installing fails without.
if ! install; then
	echo "deps: refreshing the package lists (apt-get update)"
	$as_root apt-get update -qq >"$log" 2>&1
	if ! install; then
		cat "$log" >&2
		echo "deps: apt-get could not install:$missing; see above" >&2
		exit 1
	fi
fi
