#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The container image: built without a registry, run as the README says, with capabilities alone, and with
# the runtime's own seccomp profile; its size, labels and health check. Its build stage is tests/deploy/stages.sh's.
# shellcheck disable=SC1091
. tests/e2e/lib.sh
. tests/deploy/podman.sh
MOST_BYTES=$((15 * 1024 * 1024))   # compressed, of the whole image

# The three ways to run it say the same.
sh deploy/deps.sh python3-yaml
if python3 tests/deploy/containers.py >"$work/same" 2>&1; then
	ok image-examples
else
	fail image-examples "$(tr '\n' '|' <"$work/same")"
fi

usable_podman || { skip deploy/image "$why"; exit 0; }
if image_of "$work/image" "$B" && podman build -q --isolation chroot --layers=false --format docker --build-arg VERSION=9.8.7 --build-arg REVISION=test \
	-t "$image" -f "$work/Containerfile" "$work/image" >"$work/build.log" 2>&1; then
	ok image-build
else
	fail image-build "$(tail -n 3 "$work/build.log" | tr '\n' '|')"
	finish
fi

bytes=$(podman save "$image" | gzip -6 | wc -c)
if [ "$bytes" -le $MOST_BYTES ]; then
	ok image-size
else
	fail image-size "$bytes bytes compressed, at most $MOST_BYTES"
fi
labels=$(podman inspect -f '{{range $k, $v := .Labels}}{{$k}}={{$v}} {{end}}' "$image")
case $labels in
*image.licenses=*image.revision=test*image.title=jouled*image.version=9.8.7*) ok image-labels ;;
*) fail image-labels "$labels" ;;
esac

# what the README says, with a name and a socket folder of the test's own
says=$(grep -m 1 '^podman run .*--privileged' README.md | sed "s#^podman run ##; s#--name jouled#--name $name#; s#-v /run/jouled:#-v $work/run:#; s# jouled -o # $image -o #")
# podman, unlike docker, makes no folder that it is to mount
grep -m 1 '^mkdir -p /run/jouled$' README.md | sed "s#/run/jouled#$work/run#" >"$work/before.sh"
sh "$work/before.sh"
# shellcheck disable=SC2086 # the README's words
if runs $says >"$work/run.log" 2>&1 && wait_until 100 test -S "$work/run/jouled.sock"; then
	ok image-readme
else
	fail image-readme "podman run $says: $(tail -n 3 "$work/run.log" | tr '\n' '|')"
fi
if wait_until 50 podman healthcheck run "$name" >"$work/health.log" 2>&1; then
	ok image-health
else
	fail image-health "$(tail -n 3 "$work/health.log" | tr '\n' '|')"
fi
status=$(podman exec "$name" joulectl status 2>&1)
case $status in
*"ok         trigger"*"ok         lifecycle"*) ok image-privileged ;;
*) fail image-privileged "$(echo "$status" | head -n 12 | tr '\n' '|')" ;;
esac
# somebody who asks from outside, through the folder that is shared
asked() {
	curl -sf --unix-socket "$work/run/jouled.sock" http://localhost/metrics >"$work/metrics" && grep -q '^jouled_' "$work/metrics"
}
if wait_until 50 asked; then
	ok image-socket
else
	fail image-socket "$(head -n 3 "$work/metrics" | tr '\n' '|')"
fi
# the image has a UTF-8 locale: a name that is not ASCII is shown
make_cgroup café
spin "$cgroup"
shows_name() {
	podman exec "$name" joulectl list --all >"$work/list" 2>&1 && grep -qF "${cgroup##*/}" "$work/list"
}
if wait_until 50 shows_name; then
	ok image-utf8
else
	fail image-utf8 "$(grep -a caf "$work/list" | head -n 1) in: $(tr "\n" "|" <"$work/list")"
fi
podman exec "$name" joulectl status --socket /nowhere >/dev/null 2>&1 &&
	fail image-health-fails "joulectl status succeeds without an agent" || ok image-health-fails
podman stop -t 20 "$name" >/dev/null 2>&1
code=$(podman inspect -f '{{.State.ExitCode}}' "$name" 2>/dev/null)
# one that does not end by itself is killed: 137
if [ "$code" = 0 ]; then
	ok image-stop
else
	fail image-stop "exit status $code"
fi
podman rm -f "$name" >/dev/null 2>&1

# The image counts what this machine has: IPC where it has a PMU.
run host -n 1 -i 100ms
heading=$(grep -m 1 -oE 'CPU % +(IPC|task ms)' "$work/host.out")
[ -n "$heading" ] || fail image-host "no table: $(said host)"
has_heading() {
	grep -qF "$heading" "$1" && ! grep -q 'CPU time comes from cpu.stat' "$1"
}

# design section 11's capabilities and no others
caps="--cap-drop=all --cap-add=BPF,PERFMON,NET_ADMIN,DAC_READ_SEARCH,SYS_PTRACE --read-only"
seen="--pid=host --cgroupns=host --uts=host -v /sys/fs/cgroup:/sys/fs/cgroup:ro"
# shellcheck disable=SC2086 # words
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 2 ]; then
	skip deploy/image-capabilities "perf_event_paranoid is above 2"
elif runs --rm $caps --security-opt seccomp=unconfined $seen "$image" --socket none -n 2 >"$work/caps.log" 2>&1 &&
	has_heading "$work/caps.log" && ! grep -qE 'denied|refused' "$work/caps.log"; then
	ok image-capabilities
else
	fail image-capabilities "$(tail -n 6 "$work/caps.log" | tr '\n' '|')"
fi
# healthy, asked from outside: none of these capabilities lets it give the socket to a group
mkdir "$work/few"
# shellcheck disable=SC2086 # words
if runs -d --name "$name" $caps --security-opt seccomp=unconfined $seen -v "$work/few:/run/jouled" "$image" -o null: >"$work/few.log" 2>&1 &&
	wait_until 100 podman healthcheck run "$name" >"$work/health.log" 2>&1 &&
	curl -sf --unix-socket "$work/few/jouled.sock" http://localhost/v1/status | grep -q "\"sensor\":\"$(uname -n)\""; then
	ok image-capabilities-health
else
	fail image-capabilities-health "$(podman logs "$name" 2>&1 | tail -n 3 | tr '\n' '|')"
fi
podman rm -f "$name" >/dev/null 2>&1
# shellcheck disable=SC2086 # words
if runs --rm $caps $seen "$image" --socket none -n 2 >"$work/confined.log" 2>&1 && grep -q '^ *pkg W' "$work/confined.log" &&
	{ has_heading "$work/confined.log" || grep -q 'CPU time comes from cpu.stat' "$work/confined.log"; }; then
	ok image-confined
else
	fail image-confined "$(tail -n 6 "$work/confined.log" | tr '\n' '|')"
fi
# without anything it says what is missing, in one line
if ! runs --rm "$image" --socket none -n 1 >"$work/nothing.log" 2>&1 && grep -q '^jouled: error: .*;' "$work/nothing.log"; then
	ok image-nothing
else
	grep -q 'cpu.stat' "$work/nothing.log" && ok image-nothing || fail image-nothing "$(tail -n 3 "$work/nothing.log" | tr '\n' '|')"
fi
podman rmi -f "$image" >/dev/null 2>&1
finish
