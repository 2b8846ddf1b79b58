# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# Sourced. A Kubernetes cluster of one node out of processes of this machine, below $D (an absolute path that is
# ours alone); $BIN has its programs. node_up, node_down; kc is kubectl, node_ctr containerd's client.
# kubelet changes these, and CNI's bridge the last.
node_sysctls='vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys
	kernel.keys.root_maxbytes net.ipv4.ip_forward'
API=https://127.0.0.1:16443
BRIDGE=jouled-k8s0

kc() {
	"$BIN/kubectl" --kubeconfig "$D/kubeconfig" --request-timeout=60s "$@"
}

node_ctr() {
	ctr -a "$D/containerd.sock" -n k8s.io "$@"
}

# daemon NAME COMMAND...: in a session of its own, its pid kept.
daemon() {
	name=$1
	shift
	setsid "$@" >"$D/log/$name" 2>&1 </dev/null &
	echo $! >"$D/pid/$name"
}

# until_true SECONDS COMMAND...
until_true() {
	limit=$(($(date +%s) + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt $limit ] || return 1
		sleep 0.3
	done
}

# The certificates by which kubelet knows the apiserver, for logs and exec.
node_certificates() {
	(
		umask 077
		openssl genrsa -out "$D/sa.key" 2048
		openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=jouled-test -keyout "$D/ca.key" -out "$D/ca.crt"
		openssl req -newkey rsa:2048 -nodes -subj /O=system:masters/CN=apiserver -keyout "$D/client.key" -out "$D/client.csr"
		openssl x509 -req -days 2 -in "$D/client.csr" -CA "$D/ca.crt" -CAkey "$D/ca.key" -CAcreateserial -out "$D/client.crt"
	) >"$D/log/openssl" 2>&1
}

node_files() {
	node_certificates
	token=$(openssl rand -hex 16)
	echo "$token,admin,admin,system:masters" >"$D/tokens"
	chmod 600 "$D/tokens"
	sed -e "s#@API@#$API#; s#@TOKEN@#$token#" tests/cluster/conf/kubeconfig >"$D/kubeconfig"
	chmod 600 "$D/kubeconfig"
	for f in containerd.toml kubelet.yaml; do
		sed -e "s#@D@#$D#g" "tests/cluster/conf/$f" >"$D/$f"
	done
	mkdir -p "$D/cni"
	sed -e "s#@D@#$D#g; s#@BRIDGE@#$BRIDGE#" tests/cluster/conf/cni.conflist >"$D/cni/10-jouled.conflist"
}

control_plane() {
	daemon etcd etcd --data-dir "$D/etcd" --listen-client-urls http://127.0.0.1:12379 --advertise-client-urls http://127.0.0.1:12379 \
		--listen-peer-urls http://127.0.0.1:12380 --initial-advertise-peer-urls http://127.0.0.1:12380 \
		--initial-cluster default=http://127.0.0.1:12380
	daemon kube-apiserver "$BIN/kube-apiserver" --etcd-servers=http://127.0.0.1:12379 --secure-port=16443 --bind-address=127.0.0.1 \
		--cert-dir="$D/api" --service-cluster-ip-range=10.96.77.0/24 --token-auth-file="$D/tokens" \
		--authorization-mode=Node,RBAC --kubelet-preferred-address-types=InternalIP \
		--kubelet-client-certificate="$D/client.crt" --kubelet-client-key="$D/client.key" --allow-privileged=true --service-account-issuer=https://kubernetes.default.svc \
		--service-account-key-file="$D/sa.key" --service-account-signing-key-file="$D/sa.key"
	until_true 90 kc get --raw /readyz || return 1
	daemon kube-controller-manager "$BIN/kube-controller-manager" --kubeconfig="$D/kubeconfig" --leader-elect=false \
		--service-account-private-key-file="$D/sa.key" --root-ca-file="$D/api/apiserver.crt" --port=0 --secure-port=0 \
		--cert-dir="$D/api"
	daemon kube-scheduler "$BIN/kube-scheduler" --kubeconfig="$D/kubeconfig" --leader-elect=false --port=0 --secure-port=0 \
		--cert-dir="$D/api"
}

node_up() {
	mkdir -p "$D/log" "$D/pid"
	for s in $node_sysctls; do
		v=$(sysctl -n "$s" 2>/dev/null) && echo "$s=$v"
	done >"$D/sysctls"
	node_files
	daemon containerd containerd --config "$D/containerd.toml"
	control_plane || return 1
	until_true 30 node_ctr version || return 1
	for tar in "$D"/images/*.tar; do
		node_ctr images import "$tar" >"$D/log/import" 2>&1 || return 1
	done
	daemon kubelet "$BIN/kubelet" --kubeconfig="$D/kubeconfig" --config="$D/kubelet.yaml" --root-dir="$D/kubelet" \
		--container-runtime=remote --container-runtime-endpoint="unix://$D/containerd.sock" --hostname-override=node-1 \
		--cert-dir="$D/kubelet/pki" --v=2
	until_true 90 kc wait --for=condition=Ready node/node-1 --timeout=5s && until_true 30 kc -n default get serviceaccount default
}

# Ours alone: every name of a process of the cluster holds $D.
node_processes() {
	for p in /proc/[0-9]*; do
		[ "${p#/proc/}" != $$ ] && grep -qsF "$D/" "$p/cmdline" && echo "${p#/proc/}"
	done
}

stop() {
	pid=$(cat "$D/pid/$1" 2>/dev/null) || return 0
	kill "$pid" 2>/dev/null
	until_true 15 sh -c "! kill -0 $pid" || kill -9 "$pid"
}

# Ends what is left of pods when deleting them did not help.
containers_down() {
	for task in $(node_ctr tasks list -q 2>/dev/null); do
		node_ctr tasks kill -s 9 "$task" >/dev/null 2>&1
	done
	sleep 1
	for c in $(node_ctr containers list -q 2>/dev/null); do
		node_ctr tasks delete -f "$c" >/dev/null 2>&1
		node_ctr containers delete "$c" >/dev/null 2>&1
	done
}

mounts_down() {
	awk -v d="$D/" 'index($5, d) == 1 { print $5 }' /proc/self/mountinfo | sort -r | while read -r m; do
		umount -l "$m"
	done
	ip link delete "$BRIDGE" 2>/dev/null
}

cgroups_down() {
	for h in /sys/fs/cgroup /sys/fs/cgroup/*; do
		for sub in kubepods k8s.io; do
			[ -d "$h/$sub" ] && find "$h/$sub" -depth -type d -exec rmdir {} + 2>/dev/null
		done
	done
	return 0
}

node_down() {
	[ -d "$D/pid" ] || return 0
	timeout 90 "$BIN/kubectl" --kubeconfig "$D/kubeconfig" delete pods,daemonsets,deployments --all --all-namespaces \
		--grace-period=1 >"$D/log/delete" 2>&1
	stop kubelet
	containers_down
	for p in kube-scheduler kube-controller-manager kube-apiserver etcd containerd; do
		stop "$p"
	done
	for p in $(node_processes); do
		kill -9 "$p" 2>/dev/null
	done
	mounts_down
	cgroups_down
	while read -r s; do
		sysctl -q -w "$s" || true
	done <"$D/sysctls"
	rm -f "$D"/pid/*
}
