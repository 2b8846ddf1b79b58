/* SPDX-License-Identifier: Apache-2.0 */
/* Totals as bytes that outlive the program. They are valid within one boot, where CLOCK_MONOTONIC and kernel ids go
 * on. A text holds either everything or the changes since an earlier text. All texts, read in order, restore the
 * totals. */
#ifndef JD_TOTALS_KEEP_H
#define JD_TOTALS_KEEP_H
#include "model/cgroup.h"
#include "totals.h"

/* Appends the changes after add number `since` (t->adds when the text before was saved); 0 = everything. */
void totals_save(const struct totals *t, uint32_t since, struct buf *out);
/* Reads a text into totals to which nothing was added. 0; -ESTALE: the text has other columns (domains, events)
 * or options, and t is unchanged; -ENODATA: a change without the text it changes; -EBADMSG: broken; -ENOMEM.
 * After -EBADMSG and -ENOMEM t can only be freed. */
int totals_load(struct totals *t, const void *data, size_t size);
/* Call after the last text. Rows that are not in the next interval count as ended, unless totals_still keeps
 * them. 0 or -ENOMEM. */
int totals_loaded(struct totals *t);
/* Call before an interval is added. A cgroup that exists but has not run since appears in no interval; this
 * keeps its row from ending. */
void totals_still(struct totals *t, const struct cgroup_table *table);

#endif
