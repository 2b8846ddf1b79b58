#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fetch.sh NAME: a program of another release of the distribution, or of this one that would begin a service or is large, its
# packages unpacked and not installed, in $B/fetched/NAME.
# Prints the path of the program or folder; the last line printed is the reason when it fails.
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
. tests/apt.sh
release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
only=.
case $1 in
go-pprof)
	suite=$release package=golang-1.19-go program=usr/lib/go-1.19/bin/go
	only="./$program ./usr/lib/go-1.19/pkg/tool/linux_amd64/pprof" # of 330 MB
	;;
profiled) suite=$release package="nginx redis-server redis-tools libjemalloc2 liblzf1 ripgrep fzf musl-dev musl-tools" program=usr ;;
prometheus-sid) suite=sid package=prometheus program=usr/bin/prometheus ;;
opentelemetry-proto-trixie) suite=trixie package=python3-opentelemetry-proto program=usr/lib/python3/dist-packages/opentelemetry ;;
opentelemetry-proto-sid) suite=sid package=python3-opentelemetry-proto program=usr/lib/python3/dist-packages/opentelemetry ;;
pcp)
	suite=$release program=usr/lib/pcp/bin/pmlogger
	package="pcp pcp-conf libpcp3 libpcp-archive1 libpcp-gui2 libpcp-import1 libpcp-mmv1 libpcp-pmda3 libpcp-trace2 libpcp-web1 libsasl2-2"
	;;
scaphandre-trixie) suite=trixie package=scaphandre program=usr/bin/scaphandre ;;
victoria-metrics-trixie) suite=trixie package=victoria-metrics program=usr/bin/victoria-metrics ;;
*)
	echo "no such program: $1"
	exit 2
	;;
esac
mkdir -p "$B/fetched" || exit 1
cache=$(cd "$B/fetched" && pwd)
dir=$cache/.$1.$$
exec 8>"$cache/.$1.lock"
flock 8
if [ ! -e "$cache/$1/$program" ]; then
	trap 'rm -rf "$dir"' EXIT
	trap 'exit 1' INT TERM
	apt_suite_sources "$(dpkg --print-architecture)" $suite | apt_begin "$dir" "$(dpkg --print-architecture)" || {
		echo "no archive of $suite"
		exit 1
	}
	export APT_CONFIG="$dir/apt.conf"
	mkdir "$dir/debs"
	# shellcheck disable=SC2086 # several packages
	{ apt-get update && (cd "$dir/debs" && apt-get download $package); } >"$dir/log" 2>&1 || {
		tail -n 3 "$dir/log"
		echo "$package of $suite cannot be downloaded"
		exit 1
	}
	mkdir "$dir/root"
	for deb in "$dir"/debs/*.deb; do
		# shellcheck disable=SC2086 # several paths
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$dir/root" $only || exit 1
	done
	rm -rf "${cache:?}/$1"
	mv "$dir/root" "$cache/$1"
fi
echo "$cache/$1/$program"
