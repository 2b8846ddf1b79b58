#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make deb, make install and the systemd units, as far as they can be judged without a running systemd; the rest is
# tests/vm/deploy/systemd.sh.
# shellcheck disable=SC1091
. tests/e2e/lib.sh
MOST_EXPOSURE=35      # tenths, as systemd-analyze security counts

unset MAKEFLAGS MFLAGS MAKELEVEL
if ! make -s B="$B" deb >"$work/deb.log" 2>&1; then
	fail deb-build "$(tail -n 5 "$work/deb.log" | tr '\n' '|')"
	finish
fi
deb=$(ls "$B"/deb/jouled_[0-9]*.deb)
kafka=$(ls "$B"/deb/jouled-kafka_[0-9]*.deb)
ok deb-build
# what a build host without this tree's Makefile would install
wanted=$(sed -n '/^BUILD_DEPS/,/[^\\]$/p' Makefile | grep -oE '[a-z0-9.+-]+-dev\b' | grep -vx libc6-dev)
unnamed=
for package in $wanted; do
	grep -q "^ $package,\{0,1\}\$" deploy/debian/control || unnamed="$unnamed $package"
done
[ -z "$unnamed" ] && ok deb-build-depends || fail deb-build-depends "not in deploy/debian/control:$unnamed"
if TMPDIR=$work lintian --allow-root --fail-on error,warning "$B"/deb/*.changes >"$work/lintian" 2>&1; then
	ok deb-lintian
else
	fail deb-lintian "$(head -n 5 "$work/lintian" | tr '\n' '|')"
fi
dpkg-deb -c "$deb" | awk '{ print $6 }' | sed 's#^\./#/#' >"$work/files"
dpkg-deb -e "$deb" "$work/control"
missing=
for file in /etc/jouled/jouled.yaml /usr/bin/joulectl /usr/sbin/jouled /usr/lib/sysusers.d/jouled.conf /usr/lib/tmpfiles.d/jouled.conf \
	/usr/share/bash-completion/completions/joulectl /usr/share/bash-completion/completions/jouled /usr/share/zsh/vendor-completions/_jouled \
	/usr/share/fish/vendor_completions.d/joulectl.fish /usr/share/fish/vendor_completions.d/jouled.fish /usr/share/man/man1/joulectl.1.gz /usr/share/man/man5/jouled.yaml.5.gz \
	/usr/share/man/man8/jouled.8.gz; do
	grep -qx "$file" "$work/files" || missing="$missing $file"
done
# what manuals and messages point to is below /usr/share/doc/jouled
for page in $(grep -aohE 'docs/[a-z/_-]+\.md' "$B"/man/* "$B/jouled" "$B/joulectl" | sort -u); do
	grep -qx "/usr/share/doc/jouled/$page" "$work/files" || missing="$missing $page"
done
for unit in jouled.service jouled.socket; do
	grep -q "/lib/systemd/system/$unit\$" "$work/files" || missing="$missing $unit"
	grep -q "$unit" "$work/control/postinst" || missing="$missing $unit-in-postinst"
done
dpkg-deb -c "$kafka" | grep -q ' \./usr/lib/jouled/kafka.so$' || missing="$missing kafka.so"
grep -q kafka.so "$work/files" && missing="$missing jouled-without-kafka.so"
dpkg-deb -f "$kafka" Depends | grep -q librdkafka1 && dpkg-deb -f "$deb" Recommends | grep -q jouled-kafka &&
	! dpkg-deb -f "$deb" Depends | grep -q rdkafka || missing="$missing depends"
grep -qx /etc/jouled/jouled.yaml "$work/control/conffiles" || missing="$missing conffile"
[ -z "$missing" ] && ok deb-files || fail deb-files "missing:$missing"

# where no systemd runs, the package says how the agent is started; where one runs, it starts it and is silent
sed '/^# Automatically added/,$d' "$work/control/postinst" >"$work/postinst"
sed "s#/run/systemd/system#$work#" "$work/postinst" >"$work/postinst.systemd"
sed "s#/run/systemd/system#$work/none#" "$work/postinst" >"$work/postinst.none"
if sh "$work/postinst.none" configure | grep -q 'start the agent as root: jouled' && [ -z "$(sh "$work/postinst.systemd" configure)" ]; then
	ok deb-without-systemd
else
	fail deb-without-systemd "$(sh "$work/postinst.none" configure)"
fi

# the same files for those without dpkg, wherever they want them
for prefix in /usr/local /opt/jouled; do
	to=$work/install$prefix
	if ! make -s B="$B" DESTDIR="$work/install" PREFIX=$prefix install >"$work/install.log" 2>&1; then
		fail "install$prefix" "$(tail -n 3 "$work/install.log" | tr '\n' '|')"
		continue
	fi
	unit=$to/lib/systemd/system/jouled.service
	if "$to/sbin/jouled" --version >/dev/null && "$to/bin/joulectl" --version >/dev/null && [ -f "$to/share/man/man8/jouled.8" ] &&
		[ -f "$to/lib/sysusers.d/jouled.conf" ] && [ -f "$to/share/doc/jouled/docs/formats/hwpc.md" ] &&
		[ -x "$to/share/doc/jouled/deploy/slurm/epilog" ] && [ -f "$to/share/doc/jouled/docs/pictures/house.svg" ] && grep -qx "ExecStart=$prefix/sbin/jouled" "$unit" && ! grep -q '@[A-Z]*@' "$unit"; then
		ok "install$prefix"
	else
		fail "install$prefix" "incomplete: $(cd "$to" && find . -type f | tr '\n' ' ')"
	fi
done
# an administrator's own configuration stays
echo '# mine' >"$work/install/etc/jouled/jouled.yaml"
make -s B="$B" DESTDIR="$work/install" install >"$work/install.log" 2>&1
[ "$(cat "$work/install/etc/jouled/jouled.yaml")" = '# mine' ] && ok install-keeps || fail install-keeps "the configuration was replaced"
# and is all that "make uninstall" leaves
for prefix in /usr/local /opt/jouled; do
	make -s B="$B" DESTDIR="$work/install" PREFIX=$prefix uninstall >>"$work/install.log" 2>&1
done
left=$(cd "$work/install" && find . ! -type d)
[ "$left" = ./etc/jouled/jouled.yaml ] && ok uninstall || fail uninstall "left: $(echo "$left" | tr '\n' ' ')"
expect_check() {
	"$JOULED" -c deploy/jouled.yaml --check >"$work/check" 2>&1
}
expect_check && ok example-config || fail example-config "$(cat "$work/check")"

units=$work/units
mkdir "$units"
sed 's#@SBIN@/jouled#/bin/true#; /^Documentation=/d' deploy/systemd/jouled.service >"$units/jouled.service"
sed '/^Documentation=/d' deploy/systemd/jouled.socket >"$units/jouled.socket"
if systemd-analyze verify --man=no "$units/jouled.service" "$units/jouled.socket" >"$work/verify" 2>&1 && [ ! -s "$work/verify" ]; then
	ok units-verify
else
	fail units-verify "$(head -n 5 "$work/verify" | tr '\n' '|')"
fi
exposure=$(systemd-analyze security --offline=true --no-pager "$units/jouled.service" 2>&1 | sed -n 's/.*exposure level.*: \([0-9]\)\.\([0-9]\).*/\1\2/p')
if [ -n "$exposure" ] && [ "$exposure" -le $MOST_EXPOSURE ]; then
	ok units-exposure
else
	fail units-exposure "${exposure:-none} tenths, at most $MOST_EXPOSURE"
fi
# with the socket's group: what the two say must be the same name
mkdir -p "$work/root/etc"
: >"$work/root/etc/passwd"
: >"$work/root/etc/group"
if systemd-sysusers --root="$work/root" "$PWD/deploy/systemd/jouled.sysusers" >"$work/sysusers" 2>&1 &&
	grep -q '^jouled:' "$work/root/etc/group" && grep -q '^jouled:.*nologin' "$work/root/etc/passwd"; then
	ok units-sysusers
else
	fail units-sysusers "$(tail -n 3 "$work/sysusers" | tr '\n' '|')"
fi
finish
