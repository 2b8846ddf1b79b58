// SPDX-License-Identifier: GPL-2.0-only
/* Bytes and packets per cgroup, counted at the root cgroup, which every IPv4 and IPv6 packet of a local
 * socket passes. In both directions the packet's socket is the local one (the kernel sets it for
 * the ingress hook, __cgroup_bpf_run_filter_skb), so its cgroup is the sender's or the receiver's.
 *
 * Bytes are those of the IP packets on the wire: for a large packet that is cut into segments further
 * down, or was joined from segments on its way up, each segment counts with its headers. A socket
 * belongs to the cgroup in which it was created. */
#include "common.bpf.h"
#include "network.h"

#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1); /* set by user space */
	__type(key, u64); /* cgroup id, or JD_TRAFFIC_OTHER */
	__type(value, struct jd_traffic);
} traffic SEC(".maps");

__u32 traffic_changed = 0; /* the table above has new traffic; user space sets it back */

/* When the table is full, traffic without an entry goes to the entry for all others. */
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

/* Bytes of IP and TCP or UDP header, which every segment has; 0 when the length is not known (extension
 * headers). RFC 791, 8200, 9293, 768. */
static __always_inline __u32 header_bytes(struct __sk_buff *skb)
{
	__u8 first = 0, protocol = 0, offset = 0;
	__u32 ip;

	if (bpf_skb_load_bytes(skb, 0, &first, 1))
		return 0;
	ip = first >> 4 == 6 ? 40 : (first & 15) * 4;
	if (bpf_skb_load_bytes(skb, first >> 4 == 6 ? 6 : 9, &protocol, 1))
		return 0;
	if (protocol == PROTOCOL_UDP)
		return ip + 8;
	if (protocol != PROTOCOL_TCP || bpf_skb_load_bytes(skb, ip + 12, &offset, 1))
		return 0;
	return ip + (offset >> 4) * 4;
}

/* Atomic although per CPU: sends from softirq can interrupt a send in process context. */
static __always_inline void count(__u64 *bytes, __u64 *packets, struct __sk_buff *skb)
{
	__u32 segments = skb->gso_segs;
	__u64 n = skb->len;

	if (segments > 1)
		n += (__u64)(segments - 1) * header_bytes(skb);
	__sync_fetch_and_add(bytes, n);
	__sync_fetch_and_add(packets, segments ? segments : 1);
	tell_changed(&traffic_changed);
}

SEC("cgroup_skb/ingress")
int ingress(struct __sk_buff *skb)
{
	struct jd_traffic *t = entry(skb);

	if (t)
		count(&t->rx_bytes, &t->rx_packets, skb);
	return 1; /* let it pass */
}

SEC("cgroup_skb/egress")
int egress(struct __sk_buff *skb)
{
	struct jd_traffic *t = entry(skb);

	if (t)
		count(&t->tx_bytes, &t->tx_packets, skb);
	return 1;
}
