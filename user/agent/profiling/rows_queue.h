/* SPDX-License-Identifier: Apache-2.0 */
/* The energy of rows on its way from the measuring thread to the one that profiles: a ring with one writer and one reader.
 * The writer never waits; what does not fit is dropped whole and counted. */
#ifndef JD_ROWS_QUEUE_H
#define JD_ROWS_QUEUE_H
#include <stdatomic.h>
#include "base/buf.h"
#include "model/selection.h"

#define ROWS_QUEUE 64 /* intervals */
#define ROWS_QUEUE_BYTES (2u << 20) /* of all that wait; one alone may be larger */

struct rows_interval {
	uint64_t start_ns, end_ns;
	int64_t end_real_ns;
	char formula[16], idle[16];
	struct buf rows;
	struct snap_price price[SCHEMA_MAX_DOMAINS];
	uint64_t counted[SCHEMA_MAX_EVENTS], cpu_ns; /* of all rows, those that are not shown too */
};

struct rows_queue {
	struct rows_interval v[ROWS_QUEUE];
	_Atomic uint32_t put, taken;
	_Atomic uint64_t dropped;
	_Atomic size_t waiting; /* bytes */
};

/* Writer. shown: by row; NULL = those that are selected for all outputs. */
void rows_queue_put(struct rows_queue *q, const struct snapshot *s, const bool *shown);
/* Reader: the next interval, NULL = there is none. It stays until rows_queue_done. */
const struct rows_interval *rows_queue_next(struct rows_queue *q);
void rows_queue_done(struct rows_queue *q);
void rows_queue_free(struct rows_queue *q);

struct rows_reader {
	const uint8_t *at, *end;
};
struct rows_row {
	uint64_t id;
	uint32_t quality, n_name;
	const char *name; /* ends with a NUL */
	const uint8_t *energy_uj; /* numbers of eight bytes, by domain */
};
/* Reads the next row. False: there is none. */
bool rows_next(struct rows_reader *r, unsigned n_domains, struct rows_row *ret);

#endif
