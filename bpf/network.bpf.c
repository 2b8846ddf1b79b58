// SPDX-License-Identifier: GPL-2.0-only
/* Bytes and packets per cgroup, at the root cgroup, where every IPv4 and IPv6 packet of a local
 * socket passes. In both directions the packet's socket is the local one (the kernel sets it for
 * the ingress hook, __cgroup_bpf_run_filter_skb), so its cgroup is the sender's or the receiver's.
 *
 * Bytes are the IP packet's as the hook sees it; a packet that the card will cut (or has joined)
 * counts its segments as packets and its headers once. A socket belongs to the cgroup it was
 * created in. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "network.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1);         /* set by user space */
	__type(key, u64);               /* cgroup id, or JD_TRAFFIC_OTHER */
	__type(value, struct jd_traffic);
} traffic SEC(".maps");

/* When the table is full, what finds no entry goes to the one for all others. */
static __always_inline struct jd_traffic *entry(struct __sk_buff *skb)
{
	u64 id = bpf_skb_cgroup_id(skb), other = JD_TRAFFIC_OTHER;
	struct jd_traffic zero = {}, *t = bpf_map_lookup_elem(&traffic, &id);

	if (t)
		return t;
	bpf_map_update_elem(&traffic, &id, &zero, BPF_NOEXIST);
	t = bpf_map_lookup_elem(&traffic, &id);
	return t ? t : bpf_map_lookup_elem(&traffic, &other);
}

/* Atomic although per CPU: a send in process context is interrupted by sends from softirq. */
static __always_inline void count(__u64 *bytes, __u64 *packets, const struct __sk_buff *skb)
{
	__sync_fetch_and_add(bytes, skb->len);
	__sync_fetch_and_add(packets, skb->gso_segs ? skb->gso_segs : 1);
}

SEC("cgroup_skb/ingress")
int ingress(struct __sk_buff *skb)
{
	struct jd_traffic *t = entry(skb);

	if (t)
		count(&t->rx_bytes, &t->rx_packets, skb);
	return 1;       /* let it pass */
}

SEC("cgroup_skb/egress")
int egress(struct __sk_buff *skb)
{
	struct jd_traffic *t = entry(skb);

	if (t)
		count(&t->tx_bytes, &t->tx_packets, skb);
	return 1;
}
