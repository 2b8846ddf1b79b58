/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroups of one output: patterns on top of what the configuration selects for all. A snapshot
 * is shared by the outputs of an interval, so a selection is put on for one of them and taken off
 * again. A path is matched when it is new; after that a row costs a look-up. */
#ifndef JD_SELECTION_H
#define JD_SELECTION_H
#include "snapshot.h"

struct selection_row {
	uint32_t generation, renamed;
	bool known, match;
};

struct selection { /* zeroed to begin with */
	struct selection_row *memo; /* by row key */
	bool *was; /* `selected` of each row before */
	unsigned cap_memo, cap_rows;
};

/* Takes `selected` from every row that no pattern matches; globs as text_glob. Kernel threads and
 * the other special rows are matched by "/kernel", "/irq+steal", "/other"; idle stays. Always the
 * same patterns for the same selection. 0, or -ENOMEM with the snapshot as it was. */
int selection_put(struct selection *sel, struct snapshot *s, char *const *globs, unsigned n);
/* Undoes it, on the same snapshot. */
void selection_take_off(const struct selection *sel, struct snapshot *s);
void selection_free(struct selection *sel);

#endif
