#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh: Kubernetes' own programs from Debian's source package, which holds the whole tree with what it needs, so
# that nothing but the archive is asked. Into $B/cluster/bin, or below JOULED_CLUSTER_CACHE where that is set, and kept:
#   kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl, swagger.json
# 6 minutes on two cores. The last line printed is the reason when it fails.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
. tests/apt.sh
programs='kube-apiserver kube-controller-manager kube-scheduler kubelet'
mkdir -p "${JOULED_CLUSTER_CACHE:-$B/cluster}" || exit 1
cache=$(cd "${JOULED_CLUSTER_CACHE:-$B/cluster}" && pwd)
exec 8>"$cache/.lock"
flock 8
[ -e "$cache/bin/swagger.json" ] && exit 0
work=$cache/work
trap 'chmod -R u+w "$work" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

die() {
	[ -s "$work/log" ] && tail -n 15 "$work/log"
	echo "$*"
	exit 1
}

fetch() {
	echo "cluster: fetching Kubernetes' source"
	{
		apt_own_sources "$(dpkg --print-architecture)"
		apt_own_sources "$(dpkg --print-architecture)" | sed 's/^deb /deb-src /'
	} | apt_begin "$work/apt" "$(dpkg --print-architecture)" || die "apt knows no archive of this machine's release"
	export APT_CONFIG="$work/apt/apt.conf"
	apt-get update >"$work/log" 2>&1 || die "the package lists cannot be fetched"
	(cd "$work" && apt-get source --download-only kubernetes && apt-get download kubernetes-client) >"$work/log" 2>&1 ||
		die "the package kubernetes cannot be fetched"
	unset APT_CONFIG
	# the archive's signature was checked by apt
	dpkg-source --no-check -x "$work"/kubernetes_*.dsc "$work/gopath/src/k8s.io/kubernetes" >"$work/log" 2>&1 || die "dpkg-source"
	# kubectl of the same release, whatever else this machine has
	dpkg-deb -x "$work"/kubernetes-client_*.deb "$work/client" || die "kubernetes-client cannot be unpacked"
}

compile() {
	set -- /usr/lib/go-1.19/bin
	[ -x "$1/go" ] || die "no golang-1.19"
	PATH=$1:$PATH
	export PATH HOME="$work/home" GOPATH="$work/gopath" GOCACHE="$work/gocache" GO111MODULE=off GOPROXY=off CGO_ENABLED=0
	mkdir -p "$HOME"
	cd "$GOPATH/src/k8s.io/kubernetes" || exit 1
	echo "cluster: building Kubernetes (minutes)"
	nice make gen_openapi >"$work/log" 2>&1 || die "make gen_openapi"
	for program in $programs; do
		nice go install -ldflags '-s -w' "./cmd/$program" >"$work/log" 2>&1 || die "go install $program"
	done
}

mkdir -p "$work/gopath/src/k8s.io" || exit 1
fetch
compile
mkdir -p "$cache/bin"
for program in $programs; do
	mv "$GOPATH/bin/$program" "$cache/bin/" || die "$program was not built"
done
cp "$work/client/usr/bin/kubectl" "$cache/bin/" || die "no kubectl in kubernetes-client"
cp api/openapi-spec/swagger.json "$cache/bin/swagger.json"
