#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Names on the metrics page: a pod whose log folder comes after its cgroup, what a container makes of itself, a
# cgroup given to a user, and a real container of podman that lived for a second.
. tests/e2e/lib.sh
need_root

name=jouled-e2e-$$
uid=$(printf '%08x-0000-4000-8000-000000000001' $$)
id=$(printf %s "$name" | sha256sum | cut -c 1-64)
other=$(printf %s "$name-other" | sha256sum | cut -c 1-64)
logs=/var/log/pods/shop_front-7_$uid
made_logs=
container=

end() {
	[ -z "$container" ] || podman rm -f "$container" >/dev/null 2>&1
	[ -z "$made_logs" ] || rm -rf "$logs" "/var/log/containers/front-7_shop_web-$id.log"
	[ -z "$made_logs" ] || rmdir /var/log/pods /var/log/containers 2>/dev/null
	cleanup
}
trap end EXIT

# make_below PATH: a cgroup below the last one, removed before it.
make_below() {
	cgroup=$(cgroup2)$1
	mkdir "$cgroup" && made_cgroups="$cgroup $made_cgroups"
}

page() {
	curl -sf --max-time 5 "http://127.0.0.1:$(cat "$work/$1.port")/metrics" >"$work/page"
}

# named AGENT PATH LABEL=VALUE...: waited for up to 15 s.
named() {
	of=$1
	shift
	page "$of" && python3 $here/names.py "$work/page" "$@" >"$work/names.out" 2>&1
}

check() {
	case_name=$1
	shift
	if wait_until 150 named "$@"; then
		ok "$case_name"
	else
		fail "$case_name" "$(tail -n 1 "$work/names.out")"
	fi
}

agent() {
	label=$1
	shift
	start "$label" -i 200ms -o "openmetrics=http-listen://127.0.0.1:0?port-file=$work/$label.port" "$@"
	wait_until 150 test -s "$work/$label.port"
}

agent names
kube=/$name-kubepods.slice
make_below "$kube"
pod=$kube/$name-kubepods-pod$(printf %s "$uid" | tr - _).slice
make_below "$pod"
make_below "$pod/cri-containerd-$id.scope"
spin "$cgroup"
place=$pod/cri-containerd-$id.scope
check names-before-the-files names "$place"
mkdir -p "$logs/web" /var/log/containers && made_logs=yes
: >"/var/log/containers/front-7_shop_web-$id.log"
check names-late-files names "$place" namespace=shop pod=front-7 container=web

# what root in the container can make below its own cgroup
make_below "$place/docker-$other.scope"
spin "$cgroup"
check names-inside-is-inside names "$place/docker-$other.scope" namespace=shop pod=front-7 container=web
make_below "$place/nginx.service"
spin "$cgroup"
check names-no-unit-inside names "$place/nginx.service" namespace=shop pod=front-7 container=web

# a path that looks like the pod's, made by a user to whom a cgroup was given
make_cgroup user.slice
chown 12345 "$cgroup"
make_below "/$name-user.slice/kubepods.slice"
make_below "/$name-user.slice/kubepods.slice/kubepods-pod$(printf %s "$uid" | tr - _).slice"
spin "$cgroup"
check names-delegated names "/$name-user.slice/kubepods.slice/kubepods-pod$(printf %s "$uid" | tr - _).slice" user=12345

# texts that shells, JSON, HTML and terminals would obey
strange="a\"b\\\\'\$(id)<b>&;"
make_below "/lxc.payload.$name-$strange"
spin "$cgroup"
check names-strange-text names "/lxc.payload.$name-$strange" "container=$name-$strange"
escape=$(printf 'lxc.payload.%s-\033[31m' "$name")
make_below "/$escape"
spin "$cgroup"
check names-no-terminal-codes names "/$escape"

# the standard input of what runs in the background is empty: a file
echo 'cgroups: { names: off }' >"$work/off.yaml"
agent off -c "$work/off.yaml"
check names-off off "$place"
# a name would come after the first page: what must not come cannot be waited for
sleep 1
if named off "$place"; then
	ok names-stay-off
else
	fail names-stay-off "$(tail -n 1 "$work/names.out")"
fi

container_runs() {
	podman --runtime "$runtime" run --rm --name "$1" --network none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 \
		"localhost/$name" /busybox sh -c 'i=0; while [ $i -lt 1000000 ]; do i=$((i + 1)); done' >"$work/podman" 2>&1
}

try_podman() {
	command -v podman >/dev/null 2>&1 || sh deploy/deps.sh podman runc busybox-static >"$work/deps" 2>&1 || return 1
	command -v busybox >/dev/null 2>&1 || sh deploy/deps.sh busybox-static >"$work/deps" 2>&1 || return 1
	cp "$(command -v busybox)" "$work/busybox" && tar -C "$work" -cf "$work/image.tar" busybox &&
		podman import -q "$work/image.tar" "localhost/$name" >"$work/podman" 2>&1 || return 1
	for runtime in crun runc; do
		command -v $runtime >/dev/null 2>&1 && container_runs "$name-try" && return 0
	done
	return 1
}

if try_podman; then
	container=$name-web
	container_runs "$container"
	podman_path() {
		page names && path=$(sed -n "s/^jouled_cgroup_cpu_seconds_total{cgroup=\"\([^\"]*\)\",container=\"$container\"} .*/\1/p" "$work/page") &&
			[ -n "$path" ]
	}
	if wait_until 100 podman_path; then
		ok names-podman-gone
	else
		fail names-podman-gone "$(grep -c libpod- "$work/page") of its kind, none is $container"
	fi
	podman rmi -f "localhost/$name" >/dev/null 2>&1
else
	skip names-podman "podman cannot run a container here"
fi
finish
