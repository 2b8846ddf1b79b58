# shellcheck shell=sh disable=SC1091,SC2154,SC3045
# SPDX-License-Identifier: Apache-2.0
# Maps count as locked memory before 5.11: what the doctor says without CAP_SYS_RESOURCE, with it, and with the limit
# that deploy/systemd/jouled.service has in its place.
# kernels: 5.10
# seconds: 240
# threads: single
# programs: setpriv
. /guest/lib.sh
echo 2 >/proc/sys/kernel/perf_event_paranoid
chmod 755 "$work"

# told NAME CAPABILITIES REGEX...: the doctor as nobody, with these alone and little memory that may be locked.
told() {
	told=$1 caps=$2
	shift 2
	(ulimit -l "$locked" && exec /bin/setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps "-all,$caps" --ambient-caps "-all,$caps" \
		--bounding-set "-all,$caps" timeout 240 "$JOULED" doctor) >"$work/told.out" 2>&1
	contains "$told" "$work/told.out" "$@"
}

rest=+bpf,+perfmon,+net_admin,+dac_read_search
locked=64
told "without CAP_SYS_RESOURCE" $rest '^CAP_SYS_RESOURCE +denied .*locked memory, 64 KiB at most here.*LimitMEMLOCK=infinity' '^trigger +denied'
told "with CAP_SYS_RESOURCE" $rest,+sys_resource '^CAP_SYS_RESOURCE +ok' '^trigger +ok +tp_btf' '^lifecycle +ok'
locked=unlimited
told "without CAP_SYS_RESOURCE, but no limit" $rest '^trigger +ok +tp_btf' '^lifecycle +ok'
cat "$work/told.out"
finish
