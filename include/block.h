/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Work of block devices per cgroup: one per-CPU hash entry per cgroup, filled when requests complete. */
#ifndef JOULED_BLOCK_H
#define JOULED_BLOCK_H

#define JD_BLOCK_OTHER 0ull /* key of all work that found the table full; no cgroup has id 0 */
#define JD_BLOCK_SETS 2048 /* of requests whose cgroup is kept beside them */
#define JD_BLOCK_WAYS 4
#define JD_BLOCK_TAG_BITS 24 /* the rest of a word is a cgroup's id */

struct jd_block_set {
	__u64 way[JD_BLOCK_WAYS];
};

enum { JD_BLOCK_READ, JD_BLOCK_WRITE, JD_BLOCK_DISCARD, JD_BLOCK_KINDS };

struct jd_block {
	struct {
		__u64 bytes;
		__u64 requests;
	} kind[JD_BLOCK_KINDS];
};

_Static_assert(sizeof(struct jd_block) == 48, "block layout");
_Static_assert(sizeof(struct jd_block_set) == 32, "within one line of the cache");

#endif
