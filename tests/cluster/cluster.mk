# SPDX-License-Identifier: Apache-2.0
# make test-cluster: deploy/kubernetes on a real node; minutes, and 6 more the first time (docs/kubernetes.md).
CLUSTER_DEPS := golang-1.19-go rsync dpkg-dev xz-utils etcd-server containerd runc containernetworking-plugins conntrack \
	iptables iproute2 openssl procps busybox-static curl python3 prometheus

.PHONY: test-cluster cluster-deps
cluster-deps:
	$(Q)sh deploy/deps.sh $(CLUSTER_DEPS)

# A make of its own after the packages: what they bring is looked for anew.
test-cluster: deps cluster-deps
	$(Q)$(MAKE) --no-print-directory $(JOBS) $(PROGRAMS)
	$(Q)B=$(B) sh tests/cluster/run.sh
