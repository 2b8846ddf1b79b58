/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes and packets per cgroup from cgroup_skb programs at the root cgroup (v2 only). */
#ifndef JD_NETWORK_SOURCE_H
#define JD_NETWORK_SOURCE_H
#include "base/err.h"
#include "model/reading.h"
#include "source/cgroup/hierarchy.h"

struct network;

int network_open(const struct hierarchy *h, const char *btf, unsigned max_cgroups, struct network **ret,
		 struct err *err);
/* Updates `traffic` of every row whose cgroup had any. No allocation. 0 or -errno. */
int network_read(struct network *n, struct reading *r);
void network_forget(struct network *n, uint64_t cgroup_id); /* the cgroup's row was dropped */
void network_close(struct network *n);

#endif
