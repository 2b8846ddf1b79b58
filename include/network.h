/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Traffic per cgroup: one per-CPU hash entry per cgroup, filled by cgroup_skb programs at the root. */
#ifndef JOULED_NETWORK_H
#define JOULED_NETWORK_H

#define JD_TRAFFIC_OTHER 0ull /* key of all traffic that found the table full; no cgroup has id 0 */

struct jd_traffic {
	__u64 rx_bytes;
	__u64 rx_packets;
	__u64 tx_bytes;
	__u64 tx_packets;
};

_Static_assert(sizeof(struct jd_traffic) == 32, "traffic layout");

#endif
