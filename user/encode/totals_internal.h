/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of totals*.c: the table of rows (totals_rows.c) and what adding needs of it. */
#ifndef JD_TOTALS_INTERNAL_H
#define JD_TOTALS_INTERNAL_H
#include "totals.h"

#define TOTALS_NONE UINT32_MAX

/* Where a row of a snapshot is counted; TOTAL_UNSELECTED where it has no name or no memory is left. */
uint32_t totals_place(struct totals *t, const struct snap_row *r);
/* Its names, from that add on. */
void totals_call(struct totals *t, uint32_t row, struct names *n, uint32_t add);
void totals_end(struct totals *t, uint32_t row); /* not alive any more: its time to keep begins */
void totals_alive(struct totals *t, uint32_t row);
void totals_met(struct totals *t, uint32_t row); /* a loaded one waits no longer */
/* Not shown any more: what was goes to `retired`, where it does not look like anybody's use now. */
void totals_retire(struct totals *t, uint32_t row);
void totals_drop(struct totals *t, uint32_t row); /* retired and forgotten */
/* For totals_keep.c: one more place, unused and in no list; and all lists anew, from the rows. 0 or
 * -ENOMEM; -EBADMSG: two rows of one name. */
int totals_empty_place(struct totals *t);
int totals_relink(struct totals *t);

#endif
