/* SPDX-License-Identifier: Apache-2.0 */
/* Samples are made family by family for all rows, and pushed in groups of rows, each family by family: what has the same
 * labels stands where a packer still sees it, however many rows there are. */
#ifndef JD_ENCODE_ROW_ORDER_H
#define JD_ENCODE_ROW_ORDER_H
#include <stdint.h>
#include "base/buf.h"

#define ROW_ORDER_DEFLATE 64 /* rows of a group: two families of them are in its window of 32 KiB */
#define ROW_ORDER_SNAPPY 1 /* each copy takes three bytes, and what is near is found first */

/* {0} is an empty one; reused, so that steady state allocates nothing. */
struct row_order {
	struct buf samples; /* in the order of the families */
	struct buf runs; /* lengths and groups of what is in it */
	struct buf places; /* scratch */
	size_t noted; /* bytes of samples that have a run */
	uint32_t rows; /* of a group, as the packer likes it */
};

void row_order_begin(struct row_order *o, uint32_t rows);
/* The sample of a row is in samples from `at` on; what stands before it without a run is the machine's. */
void row_order_row(struct row_order *o, uint32_t row, size_t at);
/* Appends those of the machine, then those of each group. 0 or -ENOMEM. */
int row_order_write(struct row_order *o, uint32_t n_rows, struct buf *out);
void row_order_free(struct row_order *o); /* its members */

#endif
