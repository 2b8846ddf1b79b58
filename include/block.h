/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Work of block devices per cgroup, filled when requests complete: one entry per cgroup in a per-CPU hash, and a row per CPU
 * for cgroups to which user space has given one. */
#ifndef JOULED_BLOCK_H
#define JOULED_BLOCK_H

#define JD_BLOCK_OTHER 0ull /* key of all work that found the table full; no cgroup has id 0 */
#define JD_BLOCK_SETS 2048 /* of requests whose cgroup is kept beside them */
#define JD_BLOCK_WAYS 4
#define JD_BLOCK_NEAR 14 /* bits of a bio's address: those below tell sets that stand side by side */
#define JD_BLOCK_STEP 8 /* bits of it that do not tell sets: no bio is much smaller */
#define JD_BLOCK_HOT 64 /* rows of a CPU, a power of two */
#define JD_BLOCK_NO_ID (~0ull) /* of a row that is free */
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

/* user/source/counters/traffic_hot.h */
struct jd_block_row {
	__u64 id; /* user space writes it */
	struct jd_block work;
	__u64 unused;
};

struct jd_block_rows {
	struct jd_block_row row[JD_BLOCK_HOT];
};

_Static_assert(sizeof(struct jd_block) == 48, "block layout");
_Static_assert(sizeof(struct jd_block_row) == 64, "a line of the cache");
_Static_assert(sizeof(struct jd_block_set) == 32, "within one line of the cache");

#endif
