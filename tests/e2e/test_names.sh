#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Names on the metrics page: a pod whose log folder comes after its cgroup, what a container makes of itself, a
# cgroup given to a user, steps of a batch job, a container whose files go as soon as they were read, between two readings, and real containers of
# podman that lived for a second and for a moment.
. tests/e2e/lib.sh
need_root

name=jouled-e2e-$$
uid=$(printf '%08x-0000-4000-8000-000000000001' $$)
id=$(printf %s "$name" | sha256sum | cut -c 1-64)
other=$(printf %s "$name-other" | sha256sum | cut -c 1-64)
logs=/var/log/pods/shop_front-7_$uid
made_logs=
bundles=/run/containerd/io.containerd.runtime.v2.task/default
made_bundles=
container=

end() {
	[ -z "$container" ] || podman rm -f "$container" >/dev/null 2>&1
	[ -z "$made_logs" ] || rm -rf "$logs" "/var/log/containers/front-7_shop_web-$id.log"
	[ -z "$made_logs" ] || rmdir /var/log/pods /var/log/containers 2>/dev/null
	[ -z "$made_bundles" ] || { rm -rf "${bundles:?}/$id" "${bundles:?}/$other" && rmdir -p "$bundles" 2>/dev/null; }
	cleanup
}
trap end EXIT

# make_below PATH: a cgroup below the last one, removed before it.
make_below() {
	cgroup=$(cgroup2)$1
	mkdir "$cgroup" && made_cgroups="$cgroup $made_cgroups"
}

page() {
	curl -sf --max-time 60 "http://127.0.0.1:$(cat "$work/$1.port")/metrics" >"$work/page"
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
	start "$label" -i 200ms "$@" -o "openmetrics=http-listen://127.0.0.1:0?port-file=$work/$label.port"
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

# a job of Slurm; its steps are one group
job=$$
make_below "/$name.slice"
for part in slurmstepd.scope job_$job step_batch user task_0; do
	below=${below:-/$name.slice}/$part
	make_below "$below"
done
spin "$cgroup"
check names-job names "$below" job_id=$job job_step=batch user=0 unit=slurmstepd.scope
below=/$name.slice/slurmstepd.scope/job_$job/step_0
make_below "$below"
spin "$cgroup"
echo 'metrics: { by: job }' >"$work/job.yaml"
agent job -c "$work/job.yaml"
job_row() {
	page job && grep -c "^jouled_cgroup_cpu_seconds_total{user=\"0\",job_id=\"$job\"} " "$work/page" >"$work/rows"
}
if wait_until 150 job_row && [ "$(cat "$work/rows")" = 1 ] && ! grep -q "step_" "$work/page"; then
	ok names-by-job
else
	fail names-by-job "$(grep cpu_seconds "$work/page" | tail -n 3)"
fi

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

# Files that are there for one look of this agent, which reads nothing for an hour: only the birth of the cgroup can wake it.
# The history would have readings of its own.
echo 'history: off' >"$work/brief.yaml"
start brief -c "$work/brief.yaml" -i 1h --socket "$work/brief.sock" -o null:
ask_brief() {
	curl -sf --max-time 20 --unix-socket "$work/brief.sock" -o "$work/brief" "$@"
}
wait_until 150 ask_brief http://jouled/v1/status || fail brief-start "$(said brief)"
make_cgroup brief
# lives_once ID NAME: until its file was read; then the file and the cgroup go
lives_once() {
	mkdir -p "$bundles/$1" && made_bundles=yes
	printf '{"linux":{"cgroupsPath":"/%s-brief/nerdctl-%s.scope"},"annotations":{"nerdctl/name":"%s"}}' "$name" "$1" "$2" >"$bundles/$1/config.json"
	made_cgroups="$cgroup/nerdctl-$1.scope $made_cgroups"
	python3 $here/names_watch.py "$agent" "$bundles/$1/config.json" "$cgroup/nerdctl-$1.scope"
	woken=$?
	rm -rf "${bundles:?}/$1"
	wait_until 50 rmdir "$cgroup/nerdctl-$1.scope"
	return $woken
}
if lives_once "$id" "$name-moment"; then ok names-woken; else fail names-woken "nobody read the file"; fi
# the files of one are read when the one before it has its name
if lives_once "$other" "$name-second"; then ok names-woken-again; else fail names-woken-again "nobody read the file"; fi
ask_brief -X POST http://jouled/v1/reading
ask_brief http://jouled/metrics
if python3 $here/names.py "$work/brief" "/$name-brief/nerdctl-$id.scope" "container=$name-moment" >"$work/names.out" 2>&1; then
	ok names-of-a-moment
else
	fail names-of-a-moment "$(tail -n 1 "$work/names.out")"
fi

# container_runs NAME TURNS: of an empty loop
container_runs() {
	podman --runtime "$runtime" run --rm --name "$1" --network none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 \
		"localhost/$name" /busybox sh -c "i=0; while [ \$i -lt $2 ]; do i=\$((i + 1)); done" >"$work/podman" 2>&1
}

try_podman() {
	command -v podman >/dev/null 2>&1 || sh deploy/deps.sh podman runc busybox-static >"$work/deps" 2>&1 || return 1
	command -v busybox >/dev/null 2>&1 || sh deploy/deps.sh busybox-static >"$work/deps" 2>&1 || return 1
	cp "$(command -v busybox)" "$work/busybox" && tar -C "$work" -cf "$work/image.tar" busybox &&
		podman import -q "$work/image.tar" "localhost/$name" >"$work/podman" 2>&1 || return 1
	for runtime in crun runc; do
		command -v $runtime >/dev/null 2>&1 && container_runs "$name-try" 1000 && return 0
	done
	return 1
}

if try_podman; then
	podman_path() {
		path=$(sed -n "s/^jouled_cgroup_cpu_seconds_total{cgroup=\"\([^\"]*\)\",container=\"$container\"} .*/\1/p" "$work/$1") && [ -n "$path" ]
	}
	podman_named() {
		page names && podman_path page
	}
	podman_named_brief() {
		ask_brief -X POST http://jouled/v1/reading && ask_brief http://jouled/metrics && podman_path brief
	}
	container=$name-moment-too
	moment() { # of a stalled machine the first may be gone before its name is read
		container_runs "$container" 1000
		wait_until 3 podman_named_brief
	}
	if wait_until 2 moment; then
		ok names-podman-moment
	else
		fail names-podman-moment "$(grep -c libpod- "$work/brief") of its kind, none is $container"
	fi
	container=$name-web
	container_runs "$container" 1000000
	if wait_until 100 podman_named; then
		ok names-podman-gone
	else
		fail names-podman-gone "$(grep -c libpod- "$work/page") of its kind, none is $container"
	fi
	podman rmi -f "localhost/$name" >/dev/null 2>&1
else
	skip names-podman "podman cannot run a container here"
fi
finish
