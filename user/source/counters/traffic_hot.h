/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of cgroups that work much, beside a traffic table: a program of the kernel that finds a row for a cgroup adds there
 * and saves the table's hash. A row is a line of the cache on each CPU: the cgroup's id, then the values. Rows are given out
 * and taken back here, the kernel's program only looks for ids: so no two CPUs and no interrupt ever fight for one. */
#ifndef JD_TRAFFIC_HOT_H
#define JD_TRAFFIC_HOT_H
#include "model/reading.h"

struct bpf_map;
struct traffic_hot;

/* Rows for n values of struct traffic from `first` on. Call before the object is loaded: it sets the map's size. 0 or
 * -errno. */
int traffic_hot_open(struct bpf_map *map, unsigned n_cpus, unsigned first, unsigned n, struct traffic_hot **ret);
/* After it is loaded and before it is attached: frees every row. 0 or -errno. */
int traffic_hot_loaded(struct traffic_hot *h);
/* Begins a reading. */
void traffic_hot_begin(struct traffic_hot *h);
/* The next cgroup whose rows have new work, and how much; false: no more in this reading. */
bool traffic_hot_next(struct traffic_hot *h, uint64_t *ret_id, struct traffic *ret_d);
/* The cgroup works and has no row: gives it one when one of its two places is free. */
void traffic_hot_offer(struct traffic_hot *h, uint64_t id);
/* The cgroup's row was dropped; ret_d: what its rows had since the last reading. */
void traffic_hot_forget(struct traffic_hot *h, uint64_t id, struct traffic *ret_d);
void traffic_hot_close(struct traffic_hot *h); /* NULL too */

#endif
