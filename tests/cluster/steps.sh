# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# Sourced by run.sh: what is tried on the cluster.
# shellcheck disable=SC2154 # here: of run.sh

# Paths of the host that our pods change; they are put back.
host_paths='/var/log/pods /var/log/containers /run/jouled /var/lib/jouled'

host_enter() {
	for p in $host_paths; do
		[ -e "$p" ] && echo "$p"
	done >"$here/there-before"
	find /var/lib/jouled -mindepth 1 2>/dev/null >"$here/state-before"
}

host_leave() {
	[ -e "$here/there-before" ] || return 0
	for p in $host_paths; do
		grep -qx "$p" "$here/there-before" || rm -rf "$p"
	done
	rm -rf /var/log/pods/*_*_????????-????-* /run/jouled/jouled.sock
	rm -f /var/log/containers/*_jouled_*.log /var/log/containers/*_test_*.log
	find /var/lib/jouled -mindepth 1 2>/dev/null | grep -vxF -f "$here/state-before" | while read -r f; do
		rm -rf "$f"
	done
}

node_left() {
	left=$(node_processes | wc -l)
	mounts=$(grep -cF "$D/" /proc/self/mountinfo)
	cgroups=$(find /sys/fs/cgroup -name kubepods -type d 2>/dev/null | wc -l)
	links=$(ip -o link show "$BRIDGE" 2>/dev/null | wc -l)
	sysctls=$(while read -r s; do [ "$(sysctl -n "${s%%=*}")" = "${s#*=}" ] || echo "$s"; done <"$D/sysctls" | wc -l)
	echo "$left processes, $mounts mounts, $cgroups cgroups, $links links, $sysctls sysctls"
	[ "$left$mounts$cgroups$links$sysctls" = 00000 ]
}

manifests() {
	"$BIN/kubectl" kustomize "deploy/kubernetes/overlays/$1"
}

refused() {
	manifests least-privilege | sed "$1" >"$here/planted.yaml"
	kc apply --dry-run=server -f "$here/planted.yaml" && return 1
	return 0
}

server_validation() {
	kc create namespace jouled >/dev/null
	kc create namespace test >/dev/null
	for overlay in least-privilege privileged kubelet kubelet-proxy; do
		manifests $overlay >"$here/$overlay.yaml"
		check "server takes $overlay" kc apply --dry-run=server -f "$here/$overlay.yaml"
	done
	check 'server takes the network policy' kc apply --dry-run=server -f deploy/kubernetes/optional/networkpolicy.yaml
	check 'server refuses a misspelt field' refused 's/imagePullPolicy/imagePulPolicy/'
	check 'server refuses a wrong type' refused 's/terminationGracePeriodSeconds: 15/terminationGracePeriodSeconds: soon/'
	check 'server refuses a mount without volume' refused '/mountPath: \/run\/jouled/{n;s/name: run/name: walk/}'
}

# The one container of jouled that runs.
agent_pid() {
	pgrep -f '^/usr/sbin/jouled --sensor=node-1' | tail -n 1
}

page() {
	address=$(kc -n jouled get pods -l app.kubernetes.io/name=jouled -o 'jsonpath={.items[0].status.podIP}')
	curl -sf --max-time 10 "http://$address:9464/metrics"
}

page_pods() {
	kc get pods --all-namespaces -o json >"$here/pods.json" && page >"$here/page"
}

rollout() {
	kc apply -f "$here/$1.yaml" && kc -n jouled rollout status ds/jouled --timeout=120s
}

# The rights of the process as the kernel tells them, against those that the overlay asks for.
rights_least_privilege() {
	pid=$(agent_pid)
	grep -E '^(CapBnd|NoNewPrivs|Seccomp):' "/proc/$pid/status" | tr -s '\t\n' '  '
	# dac_read_search 2, net_admin 12, perfmon 38, bpf 39
	grep -q '^CapBnd:.000000c000001004$' "/proc/$pid/status" && grep -q '^NoNewPrivs:.1$' "/proc/$pid/status" &&
		grep -q '^Seccomp:.2$' "/proc/$pid/status" && [ "$(readlink "/proc/$pid/ns/net")" != "$(readlink /proc/1/ns/net)" ] &&
		awk '$5 == "/" && $6 !~ /^ro/ { bad = 1 } END { exit bad }' "/proc/$pid/mountinfo"
}

rights_privileged() {
	pid=$(agent_pid)
	grep -E '^(CapBnd|Seccomp):' "/proc/$pid/status" | tr -s '\t\n' '  '
	awk '$5 == "/" && $6 !~ /^ro/ { bad = 1 } END { exit bad }' "/proc/$pid/mountinfo"
}

quiet_log() {
	kc -n jouled logs ds/jouled >"$here/agent.log" && [ -s "$here/agent.log" ] || return 1
	echo "$(wc -l <"$here/agent.log") lines"
	! grep -E 'error:|socket .*nobody|counters: .*(denied|cannot)' "$here/agent.log"
}

probe_passes() {
	pod=$(kc -n jouled get pods -l app.kubernetes.io/name=jouled -o 'jsonpath={.items[0].metadata.name}')
	kc -n jouled exec "$pod" -- /usr/bin/joulectl status >"$here/status" && head -n 1 "$here/status"
}

rolls_out() {
	t0=$(date +%s)
	check "$1 rolls out" rollout "$1"
	echo "  after $(($(date +%s) - t0)) s"
	check "$1: rights" "rights_$(echo "$1" | tr - _)"
	check "$1: joulectl status in the pod" probe_passes
	check "$1: log" quiet_log
}

page_names_everything() {
	kc -n test apply -f tests/cluster/pods/mixed.yaml >"$here/out" 2>&1
	kc -n test wait --for=condition=Ready pods --all --timeout=90s >"$here/out" 2>&1 || fail "$1: pods: $(cat "$here/out")"
	sleep 3
	page_pods
	check "$1: /metrics names every container" python3 tests/cluster/check.py names "$here/pods.json" "$here/page"
	check "$1: the ledger closes" python3 tests/cluster/check.py ledger "$here/page"
	check "$1: promtool" sh -c "promtool check metrics <'$here/page' && echo nothing to say"
}

# Only the kubelet can say: the log folders that the pod is shown are empty. Its port is another here, its certificate its own.
manifests_kubelet() {
	manifests "$1" | sed "s#path: /var/log/pods\$#path: $D/nothing#; s#path: /var/log/containers\$#path: $D/nothing#; s#:10250#:11250#
		s#^    history:.*#&\n    kubelet: { insecure: true }#; s#^\( *name: jouled\)-[a-z0-9]\{10\}\$#\1-asks#"
}

log_says() {
	kc -n jouled logs ds/jouled >"$here/agent.log" && grep -m 1 "$1" "$here/agent.log"
}

all_named() {
	page_pods && python3 tests/cluster/check.py names "$here/pods.json" "$here/page"
}

# Kubernetes 1.20 knows no nodes/pods: that role is refused, and named.
asks_kubelet() {
	manifests_kubelet kubelet >"$here/asks.yaml"
	check 'kubelet rolls out' rollout asks
	until_true 60 log_says 'status 403'
	check 'kubelet: the right that is missing is named' log_says 'kubelet: https.*status 403; the service account needs get on'
	kc -n jouled delete ds/jouled >"$here/out" 2>&1
	until_true 60 sh -c "! pgrep -f '^/usr/sbin/jouled --sensor=node-1'"
	manifests_kubelet kubelet-proxy >"$here/asks.yaml"
	check 'kubelet-proxy rolls out' rollout asks
	until_true 40 all_named
	check 'kubelet-proxy: names without any file' all_named
	kc -n jouled delete ds/jouled >"$here/out" 2>&1
	until_true 60 sh -c "! pgrep -f '^/usr/sbin/jouled --sensor=node-1'"
}

limited_pod() {
	until_true 60 page   # of a pod that has just come
	page >"$here/page-1"
	sleep "${LIMITED_SECONDS:-40}"
	page >"$here/page-2"
	check 'a pod limited to 250m' python3 tests/cluster/check.py limited "$here/page-1" "$here/page-2" test mixed-limited burn 0.25 2
}

# Says in its log what the kernel charged it, by times of its shell.
short_pod() {
	kc -n test apply -f tests/cluster/pods/short.yaml >"$here/out" 2>&1
	until_true 60 sh -c "'$BIN/kubectl' --kubeconfig '$D/kubeconfig' -n test get pod short -o 'jsonpath={.status.phase}' | grep -q Succeeded"
	kc -n test get pod short -o json >"$here/short.json"
	kc -n test logs short >"$here/short.log"
	kc -n test delete pod short --grace-period=0 --force >"$here/out" 2>&1
	sleep 3
	page >"$here/page"
	check 'a pod of less than 2 s' python3 tests/cluster/check.py short "$here/short.json" "$here/short.log" "$here/page"
}

agent_figures() {
	pid=$(agent_pid)
	echo "pid=$pid fds=$(find "/proc/$pid/fd" -mindepth 1 | wc -l) rss_kib=$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")"
}

# wave N: 50 pods made, run to their ends, seen, deleted and looked for in the page.
wave() {
	python3 tests/cluster/check.py wave "$1" "${WAVE:-50}" >"$here/wave.yaml"
	kc -n test create -f "$here/wave.yaml" >"$here/out" 2>&1 || fail "wave $1: $(tail -n 2 "$here/out")"
	until_true 240 sh -c "! '$BIN/kubectl' --kubeconfig '$D/kubeconfig' -n test get pods -l wave=$1 -o 'jsonpath={.items[*].status.phase}' |
		grep -qE 'Pending|Running'" || fail "wave $1: not all came to their end"
	kc -n test get pods -l "wave=$1" -o json >"$here/wave.json"
	kc -n test delete pods -l "wave=$1" --grace-period=0 --force >"$here/out" 2>&1
	sleep 3
	page >"$here/page"
	check "wave $1: all named and counted" python3 tests/cluster/check.py storm "$here/page" "$here/wave.json" "${WAVE:-50}"
	agent_figures >"$here/figures-$1"
	echo "  $(cat "$here/figures-$1")"
}

# Ended cgroups are shown for two minutes instead of five, so that a leak stands out.
storm() {
	manifests least-privilege |
		sed 's#^    history:.*#&\n    metrics: { keep: 2m }#; s#^\( *name: jouled\)-[a-z0-9]\{10\}$#\1-storm#' >"$here/storm.yaml"
	rollout storm >"$here/out" 2>&1 || fail "storm: $(tail -n 2 "$here/out")"
	for n in 1 2 3 4; do
		wave "$n"
	done
	check 'a storm of 200 pods: nothing is lost' python3 tests/cluster/check.py losses "$here/page"
	sleep 125
	wave 5
	check 'a storm of 200 pods: nothing leaks' python3 tests/cluster/check.py leak "$here"/figures-?
}
