#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deploy/kubernetes, deploy/prometheus and deploy/grafana without a cluster: what they render to against the API's own
# description, the configuration in them, and every metric they name against a page of this build.
set -u
cd "$(dirname "$0")/../.." || exit 2
B=${B:-build}
JOULED=${JOULED:-$B/jouled}
work=$(mktemp -d "${TMPDIR:-/tmp}/jouled-manifests.XXXXXX") || exit 1
agent=
trap '[ -z "$agent" ] || kill $agent 2>/dev/null; rm -rf "$work"' EXIT
status=0
sh deploy/deps.sh prometheus python3-yaml python3-jsonschema || exit 1
# some machines have kubectl from elsewhere, which Debian's cannot be installed beside
command -v kubectl >/dev/null 2>&1 || sh deploy/deps.sh kubernetes-client || exit 1

ok() {
	echo "ok $*"
}

fail() {
	echo "FAIL $*"
	status=1
}

for overlay in least-privilege privileged kubelet kubelet-proxy; do
	kubectl kustomize deploy/kubernetes/overlays/$overlay >"$work/$overlay.yaml" 2>"$work/log" ||
		fail "$overlay: $(tail -n 1 "$work/log")"
	case $overlay in
	kubelet) set -- nodes/pods ;;
	kubelet-proxy) set -- nodes/proxy ;;
	*) set -- ;;
	esac
	python3 tests/deploy/manifests.py rights "$work/$overlay.yaml" "$@" || status=1
	python3 tests/deploy/manifests.py config "$work/$overlay.yaml" >"$work/jouled.yaml"
	if "$JOULED" --check --sensor=node-1 -c "$work/jouled.yaml" >"$work/log" 2>&1; then
		ok "$overlay: jouled --check"
	else
		fail "$overlay: jouled --check: $(tail -n 1 "$work/log")"
	fi
done
python3 tests/deploy/manifests.py schema "$work/least-privilege.yaml" "$work/privileged.yaml" "$work/kubelet.yaml" "$work/kubelet-proxy.yaml" \
	deploy/kubernetes/optional/*.yaml tests/cluster/pods/*.yaml || status=1

"$JOULED" --socket "$work/sock" --state-dir "$work" -i 100ms -o null: >"$work/agent.log" 2>&1 &
agent=$!
tries=0
until curl -sf --max-time 5 --unix-socket "$work/sock" http://jouled/metrics >"$work/page" && grep -q jouled_cgroup_cpu "$work/page"; do
	tries=$((tries + 1))
	[ $tries -lt 800 ] || break
	sleep 0.1
done
python3 tests/deploy/manifests.py metrics "$work/page" deploy/grafana/*.json deploy/prometheus/*.rules.yaml || status=1
python3 tests/deploy/manifests.py parse deploy/grafana/*.json >"$work/dashboards.yaml"
if promtool check rules "$work/dashboards.yaml" >"$work/log" 2>&1; then
	ok 'Prometheus reads every expression of the dashboards'
else
	fail "expressions of the dashboards: $(tail -n 3 "$work/log")"
fi

# rules NAME FILE TEST: promtool's opinion of the rules, and what they say of the machines of the test
rules() {
	sed "s#RULES#$PWD/$2#" "$3" >"$work/rules.yaml"
	if promtool check rules "$2" >"$work/log" 2>&1 && promtool test rules "$work/rules.yaml" >>"$work/log" 2>&1; then
		ok "$1"
	else
		fail "$1: $(tail -n 8 "$work/log")"
	fi
}
rules 'alert rules on a healthy and on a sick machine' deploy/prometheus/jouled.rules.yaml tests/deploy/alerts.yaml
rules 'rules of a fleet: sums, and alerts on nodes' deploy/prometheus/fleet.rules.yaml tests/deploy/fleet_alerts.yaml
exit $status
