#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh: deploy/kubernetes on a real node: both overlays roll out, /metrics names what runs, a limited pod is measured,
# short pods and storms of pods are accounted. Prints "ok NAME: FIGURE" and "FAIL NAME: ...", ends with a sum.
# KEEP=1 leaves the cluster for a look; "run.sh down" ends it.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
PATH=$PATH:/sbin:/usr/sbin
cache=${JOULED_CLUSTER_CACHE:-$B/cluster}
D=${JOULED_CLUSTER_DIR:-/tmp/jouled-cluster}
SOCKET=/run/jouled/jouled.sock
here=$D/check
passed=0 failed=0
. tests/cluster/node.sh
. tests/cluster/steps.sh

ok() {
	passed=$((passed + 1))
	echo "ok $*"
}

fail() {
	failed=$((failed + 1))
	echo "FAIL $*"
}

# check NAME COMMAND...: passes by its exit status; its last line is the figure, or the reason.
check() {
	what=$1
	shift
	if "$@" >"$here/out" 2>&1; then
		ok "$what: $(tail -n 1 "$here/out")"
	else
		fail "$what: $(tail -n 5 "$here/out")"
	fi
}

end() {
	[ -n "${KEEP:-}" ] && echo "cluster: left; sh tests/cluster/run.sh down" && return
	echo "cluster: ending"
	node_down
	host_leave
	check 'nothing is left' node_left
	# logs stay where something failed
	[ $failed -ne 0 ] && echo "logs: $D/log" && find "$D" -mindepth 1 -maxdepth 1 ! -name log ! -name check -exec rm -rf {} + ||
		rm -rf "$D"
	echo "$passed passed, $failed failed"
}

images() {
	mkdir -p "$D/images" "$D/test/bin" "$D/test/tmp"
	sh deploy/image/collect.sh "$D/jouled" "$B" || return 1
	python3 tests/cluster/image.py docker.io/library/jouled:0.1.0 "$D/jouled" /usr/sbin/jouled >"$D/images/jouled.tar" || return 1
	cp "$(command -v busybox)" "$D/test/bin/busybox" || return 1
	for applet in sh sleep cat; do
		ln -sf busybox "$D/test/bin/$applet"
	done
	python3 tests/cluster/image.py docker.io/library/jouled-test:1 "$D/test" /bin/sleep 2147483647 >"$D/images/test.tar"
}

[ "$(id -u)" -eq 0 ] || { echo "FAIL cluster: root is needed" && exit 1; }
BIN=$(cd "$cache" 2>/dev/null && pwd)/bin
if [ "${1:-}" = down ]; then
	KEEP=
	mkdir -p "$here"
	end
	exit 0
fi
sh tests/cluster/build.sh || exit 1
BIN=$(cd "$cache" && pwd)/bin
if curl -s --max-time 5 --unix-socket $SOCKET http://jouled/v1/status >/dev/null; then
	echo "FAIL cluster: an agent is running on $SOCKET; end it first"
	exit 1
fi
[ -e "$D/pid" ] && node_down
rm -rf "$D"
mkdir -p "$here"
trap 'end; [ $failed -eq 0 ] || exit 1' EXIT
trap 'exit 1' INT TERM
host_enter
images || { fail "images" && exit 1; }
t0=$(date +%s)
node_up || { fail "node: not ready; $(tail -qn 2 "$D"/log/*)" && exit 1; }
ok "node ready: $(($(date +%s) - t0)) s"
server_validation
for overlay in least-privilege privileged; do
	rolls_out $overlay
	page_names_everything $overlay
done
asks_kubelet
rollout least-privilege >"$here/out" 2>&1 || fail "least-privilege again: $(tail -n 2 "$here/out")"
limited_pod
short_pod
storm
