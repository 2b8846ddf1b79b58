/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the rows of a snapshot that an output shows. `selected` of a row says whether the configuration selects it
 * for all outputs. The outputs of an interval share one snapshot, so the patterns of one output stand beside it, as one
 * bool per row. A path is matched when it is new; after that a row costs a look-up. */
#ifndef JD_SELECTION_H
#define JD_SELECTION_H
#include <stdbool.h>
#include "snapshot.h"

struct selection_row {
	uint32_t generation, renamed;
	bool known, match;
};

struct selection { /* zeroed to begin with */
	struct selection_row *memo; /* by row key */
	bool *shown; /* by row of the last snapshot */
	unsigned cap_memo, cap_rows;
};

/* Returns, by row of s, whether it is selected for all and a pattern matches it; globs as text_glob. Kernel
 * threads and the other special rows are matched by "/kernel", "/irq+steal", "/other"; idle always is. Always
 * pass the same patterns for the same selection. The result holds until the next call. NULL = out of memory. */
const bool *selection_of(struct selection *sel, const struct snapshot *s, char *const *globs, unsigned n);
void selection_free(struct selection *sel);

/* True when row i is shown. shown: a result of selection_of, or NULL = the rows that are selected for all outputs. */
static inline bool selection_shows(const bool *shown, const struct snapshot *s, uint32_t i)
{
	return shown ? shown[i] : s->rows[i].selected;
}

/* The rules for the cgroups that may be shown outside: cgroups.include and exclude, and the patterns of one output on
 * top. Paths are judged here and nowhere else, for rows, totals and traces. */

struct selection_rules { /* globs as text_glob; borrowed. No include, no of_output: every cgroup */
	char *const *include, *const *exclude, *const *of_output;
	unsigned n_include, n_exclude, n_of_output;
};

/* A path that is not known whole ("/?17", cgroup.h) passes only where every path does. */
bool selection_admits(const struct selection_rules *r, const char *path);
bool selection_rules_same(const struct selection_rules *a, const struct selection_rules *b);
/* Copies the rules with their lists and globs into one piece of memory, which the caller frees. NULL = out of
 * memory. */
struct selection_rules *selection_rules_copy(const struct selection_rules *r);

/* A snapshot without the cgroups that are not shown: their counts and energy are added to the row `other`, so that sums
 * hold. For the forms that write every row. */

struct selection_fold { /* zeroed to begin with */
	struct snapshot own; /* arrays */
	struct snapshot view;
	struct snap_cell *sums; /* of `other`, by CPU */
	uint32_t *row_of; /* in the view, of each row */
	unsigned cap_sums, cap_rows;
};

/* Returns s itself when every row is shown as it is, else a view of it with `selected` set in the rows that are shown.
 * The view is valid as long as f and s are. shown: as for selection_shows. NULL = out of memory. */
const struct snapshot *selection_fold(struct selection_fold *f, const struct snapshot *s, const bool *shown);
void selection_fold_free(struct selection_fold *f);

#endif
