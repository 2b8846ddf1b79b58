/* SPDX-License-Identifier: Apache-2.0 */
/* A table that programs of the kernel fill: a per-CPU hash from cgroup ids to numbers of struct traffic. It is read whole,
 * in batches, and the increments are added to the rows. Numbers of a cgroup that has no row (folded, or gone while a
 * socket or a request lives on) are the row `other`'s, so that the rows sum to everything. All memory is taken at open.
 * Cgroups that work may have rows beside the hash (traffic_hot.h). */
#ifndef JD_TRAFFIC_TABLE_H
#define JD_TRAFFIC_TABLE_H
#include "model/reading.h"

#define TRAFFIC_TABLE_OTHER 0ull /* key of all numbers that found the table full; no cgroup has id 0 */

struct bpf_map;
struct traffic_table;

struct traffic_table_options {
	struct bpf_map *map, *hot; /* hot: struct jd_block_rows, by CPU; NULL = none */
	unsigned max_cgroups;
	unsigned first,
		n; /* of struct traffic, in pairs of bytes and how often; the kernel's value is the same n uint64_t */
};

/* Call before the object is loaded: it sets the sizes of the maps. 0 or -errno. */
int traffic_table_open(const struct traffic_table_options *o, struct traffic_table **ret);
/* After it is loaded and before it is attached: enters TRAFFIC_TABLE_OTHER. changed: what the kernel's program sets behind
 * its work in the hash; without, the hash is not read. 0 or -errno. */
int traffic_table_loaded(struct traffic_table *t, uint32_t *changed);
/* Updates `traffic` of every row whose cgroup had any, and losses.folded. No allocation. 0 or -errno. */
int traffic_table_read(struct traffic_table *t, struct reading *r);
void traffic_table_forget(struct traffic_table *t, uint64_t cgroup_id); /* the cgroup's row was dropped */
void traffic_table_close(struct traffic_table *t); /* NULL too */

#endif
