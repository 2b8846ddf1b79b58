/* SPDX-License-Identifier: Apache-2.0 */
/* Which of many cgroups that have ended are kept when there is room for fewer. The room is divided as the
 * tree is: in equal parts among the subtrees of a directory, what one does not need among the others, and
 * again below each, down to FAIR_LEVELS; within that the newest are kept. So who makes and removes
 * thousands of cgroups loses their own and nobody else's, as long as the others stay within their part. */
#ifndef JD_FAIR_H
#define JD_FAIR_H
#include <stdbool.h>
#include <stdint.h>

#define FAIR_LEVELS 8 /* of a path; a container of a cluster within a container is at 7 */

struct fair_item {
	const char *path; /* borrowed; begins with a slash */
	uint64_t ended_ns;
	uint32_t index; /* the caller's */
	uint32_t len, size, part; /* ours: of the component, of the group that begins here */
	bool kept;
};

/* Reused from one time to the next. Zeroed is valid. */
struct fair {
	struct fair_item *items;
	uint32_t n, cap;
	uint32_t *order;
};

/* Room for n items; n is 0 then. 0 or -ENOMEM. */
int fair_reserve(struct fair *f, uint32_t n);
/* Not more than were reserved. */
void fair_add(struct fair *f, const char *path, uint64_t ended_ns, uint32_t index);
/* Sets `kept` of room items (all, where there are not more); their order changes. */
void fair_choose(struct fair *f, uint32_t room);
void fair_free(struct fair *f);

#endif
