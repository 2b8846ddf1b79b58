/* SPDX-License-Identifier: Apache-2.0 */
/* The labels of the rows of a page, made once for all families, and which series each row has. Those of the page before are
 * kept where a format can say that a series has ended: else a receiver shows its last value for minutes, beside that of the
 * row in which its energy is now. */
#ifndef JD_ENCODE_ROW_LABELS_H
#define JD_ENCODE_ROW_LABELS_H
#include "base/buf.h"
#include "base/hash.h"
#include "encode/totals/totals.h"

#define ROW_RANGE_SHOWN_MAX 1e6 /* more is no range, nor is NaN */

/* Labels as the writer's label() and complete() made them, one behind the other. */
struct series_labels {
	const char *text;
	size_t len;
};

/* Series that a row has. */
enum row_series {
	ROW_SERIES = 1, /* those that all rows have that are shown */
	ROW_SERIES_RANGE = 2,
	ROW_SERIES_NETWORK = 4,
	ROW_SERIES_BLOCK = 8,
};

/* Series of the last page that was made and kept, which this one does not have. */
struct row_ended {
	uint32_t row; /* of that page */
	unsigned has; /* enum row_series */
};

/* {0} is an empty one; reused, as the labels are, so that steady state allocates nothing. */
struct row_ends {
	struct buf before; /* labels of the last page that was made and kept */
	bool made; /* the labels are of such a page; the encoder sets it when the page is whole */
	struct buf list; /* struct row_ended */
	struct hash now; /* rows of this page by their labels, made where a row is not in its place */
};

struct series_writer;
/* Makes w->labels those of every row of w->totals that is shown: cgroup and names, or those of its group, in the writer's syntax.
 * 0 or -ENOMEM. */
int row_labels_make(struct series_writer *w);
struct series_labels row_labels_of(const struct buf *b, uint32_t row);
unsigned row_labels_has(const struct buf *b, uint32_t row); /* enum row_series; 0 = not shown */

/* Before labels are made: those that are there become the page before, if it was made. Of a page that was not, nobody has seen the
 * ends, so they are found again. */
void row_ends_begin(struct row_ends *e, struct buf *labels);
/* After it: finds what has ended: all series of rows that are not shown any more or have other labels, and some of a row that goes
 * on without its range, traffic or requests. 0 or -ENOMEM. */
int row_ends_find(struct row_ends *e, const struct buf *labels);
const struct row_ended *row_ends_list(const struct row_ends *e, size_t *n);
void row_ends_free(struct row_ends *e); /* its members */

#endif
