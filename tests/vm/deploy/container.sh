# shellcheck shell=sh disable=SC1091,SC2154,SC2034
# SPDX-License-Identifier: Apache-2.0
# The image's file system in containers of podman and crun, on cgroup v2 alone and with energy counters: privileged,
# with capabilities alone, with readings that the runtime masks, and confined by its seccomp profile.
# kernels: 6.1
# seconds: 240
# up: 180
# memory: 2048
# append: systemd.show_status=0 systemd.log_level=warning systemd.getty_auto=no
# userland: podman crun
# image: yes
# modules: simpmu simrapl
. /guest/lib.sh
JOULED=/usr/sbin/jouled
CAPS="--cap-drop=all --cap-add=CAP_BPF,CAP_PERFMON,CAP_NET_ADMIN,CAP_DAC_READ_SEARCH,CAP_SYS_PTRACE"
SEEN="--network=none --pid=host --cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup:ro"

# inside NAME FLAGS ARGUMENT...: jouled in a container; what it said in $work/NAME.
inside() {
	said=$work/$1
	flags=$2
	shift 2
	# shellcheck disable=SC2086 # words
	timeout 300 podman --storage-driver vfs run --rm $SEEN $flags --rootfs /guest/image /usr/sbin/jouled --socket none --state-dir /tmp/state "$@" \
		>"$said" 2>&1
}

# measured FILE: the package's energy without the sign of an estimate, and the table has counters.
measured() {
	grep -qE '^package-0 +[0-9.]+ W +[0-9.]+ J +' "$1" && grep -q ' IPC ' "$1"
}

# result NAME COMMAND...: of what the container said.
result() {
	named=$1
	shift
	if "$@"; then
		ok "$named"
	else
		fail "$named" "$(tail -c 700 "$said" | tr '\n' '|')"
	fi
}

# the first file system of a kernel cannot be pivoted away from (pivot_root(2))
mkdir -p /etc/containers
printf '[engine]\nno_pivot_root = true\n' >/etc/containers/containers.conf
# overlay wants more than memory below it
printf '[storage]\ndriver = "vfs"\nrunroot = "/run/containers/storage"\ngraphroot = "/var/lib/containers/storage"\n' >/etc/containers/storage.conf
rm -rf /var/lib/containers/storage
load simpmu counters=64 || fail container-pmu "simpmu does not load"
load simrapl || fail container-rapl "simrapl does not load"
echo 2 >/proc/sys/kernel/perf_event_paranoid

inside privileged --privileged -n 2
result container-privileged measured "$work/privileged"
result container-row grep -qE ' /machine\.slice.*\.scope/container$' "$work/privileged"
inside caps "$CAPS --read-only --security-opt seccomp=unconfined" -n 2 --rapl powercap
result container-capabilities measured "$work/caps"
inside masked "$CAPS --security-opt seccomp=unconfined --security-opt mask=/sys/devices/virtual/powercap:/sys/class/powercap" -n 1 --rapl powercap
result container-masked grep -q 'powercap is absent: .*the container hides it' "$work/masked"
inside by-perf "$CAPS --security-opt seccomp=unconfined --security-opt mask=/sys/devices/virtual/powercap:/sys/class/powercap" -n 2
result container-by-perf measured "$work/by-perf"
inside confined "$CAPS" -n 2
# podman 4.3's profile refuses bpf() whatever the capabilities; newer ones do not
result container-confined grep -qE 'CPU time comes from cpu.stat| IPC ' "$work/confined"
keep "$work/privileged" "$work/caps" "$work/masked" "$work/by-perf" "$work/confined"
finish
