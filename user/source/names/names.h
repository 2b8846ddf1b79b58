/* SPDX-License-Identifier: Apache-2.0 */
/* Names of cgroups, from their path and local files (docs/formats/names.md). Files are read by a thread
 * of its own, which may be held up by a disk; the measuring thread asks and takes answers without waiting. A name that needs
 * no file it finds itself.
 * A cgroup is asked for when its path is new, and again for half a minute while its runtime has not
 * written its files yet. */
#ifndef JD_NAMING_H
#define JD_NAMING_H
#include "base/err.h"
#include "base/fsroot.h"
#include "model/cgroup.h"

struct kubelet;
struct naming;

/* root is borrowed; mount: where the hierarchy of the table lies below it. No thread yet, because
 * capabilities are given up after opening. */
int naming_open(const struct fsroot *root, const char *mount, struct naming **ret); /* 0 or -ENOMEM */
/* Names that no local file gives are asked of k, which n owns from now on. Before naming_start. */
void naming_use_kubelet(struct naming *n, struct kubelet *k);
int naming_start(struct naming *n); /* 0 or -errno; NULL accepted: nothing to start */
/* Measuring thread: names new paths of t that need no file, hands over the others and takes the names that were found into
 * the table. NULL accepted. Paths that do not fit the queue stay with the table until the next call. True when it handed
 * one over, or could not try to. */
bool naming_follow(struct naming *n, struct cgroup_table *t);
/* When naming_follow is wanted again, because the other thread was in its way: CLOCK_MONOTONIC, UINT64_MAX = at the next
 * occasion. NULL accepted. */
uint64_t naming_due(const struct naming *n);
/* Names that came when their cgroup was no longer known: takes one, the reference is the caller's. False when there is
 * none. Measuring thread; NULL accepted. */
bool naming_late(struct naming *n, uint64_t *ret_id, struct names **ret_names);
/* Something new to say of the kubelet; false when there is nothing. NULL accepted. */
bool naming_news(struct naming *n, char *text, size_t size);
void naming_close(struct naming *n); /* NULL accepted; waits for the file it is reading */

/* The look-up itself, once, as the thread does it: the names of path, NULL when there are none or no
 * memory. *ret_complete false: files that belong to it were not there (yet). */
struct names *naming_look(const struct fsroot *root, const char *mount, const char *path, bool *ret_complete);

#endif
