/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses which of many ended cgroups are kept when there is room for fewer. The room is divided as the tree is: in
 * equal parts among the subtrees of a directory, and again below each, down to FAIR_LEVELS. Room that a subtree does
 * not need goes to the others. In the last level the newest are kept. So a user that makes and removes thousands of
 * cgroups loses only their own, as long as the others stay within their part. */
#ifndef JD_FAIR_H
#define JD_FAIR_H
#include <stdbool.h>
#include <stdint.h>

#define FAIR_LEVELS 8 /* levels of a path; a container of a cluster within a container is at 7 */

struct fair_item {
	const char *path; /* borrowed; begins with a slash */
	uint64_t ended_ns;
	uint32_t index; /* set by the caller, for its own use */
	uint32_t len, size, part; /* of fair.c: length of the component; size and part of its group */
	bool kept;
};

/* The items to choose from. The memory is used again for the next choice. A zeroed struct is valid. */
struct fair {
	struct fair_item *items;
	uint32_t n, cap;
	uint32_t *order;
};

/* Makes room for n items and sets f->n to 0. 0 or -ENOMEM. */
int fair_reserve(struct fair *f, uint32_t n);
/* Adds an item. Not more may be added than were reserved. */
void fair_add(struct fair *f, const char *path, uint64_t ended_ns, uint32_t index);
/* Sets `kept` of room items, or of all where there are not more. The order of the items changes. */
void fair_choose(struct fair *f, uint32_t room);
void fair_free(struct fair *f);

#endif
