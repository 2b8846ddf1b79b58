#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh BUILD-FOLDER VERSION: what git would carry, with deploy/debian as debian/, built by dpkg-buildpackage;
# the package is BUILD-FOLDER/deb/jouled_VERSION_ARCH.deb. Its maintainer is who builds it, where DEBFULLNAME and DEBEMAIL
# say who that is; else an address that reaches nobody (RFC 2606), for no archive carries this package.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p "$1/deb/obj"
out=$(cd "$1/deb" && pwd)
tree=$out/jouled-$2
exec 9>"$out/.lock"
flock 9
rm -rf "$tree" "$out"/*.deb
mkdir -p "$tree"
if [ -e .git ]; then
	git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -cf - -T - 2>/dev/null
else
	tar --exclude="./${1#./}" -cf - .
fi | tar -C "$tree" -xf -
mv "$tree/deploy/debian" "$tree/debian"
# as a release: the last change, not the hour of the build
date=$(date -R -u -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Makefile)}")
sed "s/@VERSION@/$2/; s/@DATE@/$date/" "$tree/debian/changelog.in" >"$tree/debian/changelog"
rm "$tree/debian/changelog.in" "$tree/debian/build.sh"
if [ -n "${DEBEMAIL:-}" ]; then
	who=$(printf '%s <%s>' "${DEBFULLNAME:-$DEBEMAIL}" "$DEBEMAIL" | sed 's/[&|\\]/\\&/g')
	sed -i "s|jouled developers <jouled@example.org>|$who|" "$tree/debian/control" "$tree/debian/changelog"
fi
unset MAKEFLAGS MFLAGS MAKELEVEL
if ! (cd "$tree" && OBJ=$out/obj dpkg-buildpackage -b -us -uc -d "-j$(nproc)") >"$out/log" 2>&1; then
	tail -n 40 "$out/log" >&2
	exit 1
fi
rm -rf "$tree"
ls "$out"/*.deb
