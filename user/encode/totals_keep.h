/* SPDX-License-Identifier: Apache-2.0 */
/* Totals as bytes that outlive the program, for the same boot: CLOCK_MONOTONIC and kernel ids stay what
 * they are. A text holds everything, or what changed since an earlier one; read in order, they give the
 * totals back as they were. */
#ifndef JD_TOTALS_KEEP_H
#define JD_TOTALS_KEEP_H
#include "../model/cgroup.h"
#include "totals.h"

/* Appends what changed after `since` adds (t->adds of the text before); 0 = everything. */
void totals_save(const struct totals *t, uint32_t since, struct buf *out);
/* Reads a text into totals that nothing was added to. 0; -ESTALE: of other columns (domains, events) or
 * options, nothing is changed; -ENODATA: a change without what it changes; -EBADMSG: broken; -ENOMEM. After
 * the last two t can only be freed. */
int totals_load(struct totals *t, const void *data, size_t size);
/* After the last text: rows that are not met in the next interval have ended, unless totals_still knows better. 0 or
 * -ENOMEM. */
int totals_loaded(struct totals *t);
/* Before an interval is added: who lives and has only not run since, which no interval shows, has not ended. */
void totals_still(struct totals *t, const struct cgroup_table *table);

#endif
