# shellcheck shell=sh disable=SC2034,SC2154
# SPDX-License-Identifier: Apache-2.0
# Sourced after lib.sh: podman as this machine lets it run.
name=jouled-test-$$
image=localhost/jouled:test-$$
PATH=$PATH:/usr/sbin:/sbin
podman_flags=
run_flags="--ulimit nofile=1024:1024 --ulimit nproc=1024:1024"

# crun refuses hosts with both versions of cgroups; and what podman would raise needs CAP_SYS_RESOURCE.
usable_podman() {
	why="podman is not installed"
	command -v podman >/dev/null 2>&1 || return 1
	[ -e /sys/fs/cgroup/cgroup.controllers ] || podman_flags="--runtime runc"
	why="podman starts no container here"
	trap 'podman rm -f "$name" >/dev/null 2>&1; podman rmi -f "$image" >/dev/null 2>&1; cleanup' EXIT
	# shellcheck disable=SC2086 # words
	podman $podman_flags info >/dev/null 2>&1
}

# runs ARGUMENT...: podman run with them; at most a minute.
runs() {
	# shellcheck disable=SC2086 # words
	timeout 300 podman $podman_flags run $run_flags "$@"
}

# image_of FOLDER BUILD-FOLDER [SYSROOT]: the last stage's input in FOLDER, and that stage alone in $work/Containerfile.
image_of() {
	sed -n '/^FROM scratch/,$p' deploy/image/Containerfile | sed 's#--from=build /image /#. /#' >"$work/Containerfile"
	sh deploy/image/collect.sh "$@" >"$work/build.log" 2>&1
}
