/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a consumer: the last values it has reported, so that the next snapshot holds the differences. Everything
 * here is owned by the consumer. consumer.c keeps cells, rows and the machine, use.c keeps uses of devices. No other
 * file includes this header. */
#ifndef JD_CONSUMER_STATE_H
#define JD_CONSUMER_STATE_H
#include "snapshot.h"

struct seen_row {
	uint32_t generation, renamed;
	struct names *names; /* a reference */
	char *path; /* own copy: a rename must not pull it from under a snapshot */
	struct traffic traffic;
};

struct seen_domain {
	uint64_t uj, q32, time_ns, wraps, resets, errors, dropped;
};

struct consumer {
	struct reading_viewer viewer;
	bool broken; /* no memory at the last mark: nothing to take a difference to */
	uint32_t number; /* reading of the last mark */
	uint64_t mono_ns, boot_ns;
	uint64_t gap_ns; /* of the reading of the last mark */
	uint32_t cap_cells, cap_rests, cap_rows;
	uint32_t *cell_generations; /* by cell: of the copy; 0 = there is none */
	struct cell *cells; /* as seen */
	struct cell_rest *rests; /* as seen, by cell; NULL while the reading has none, all 0 while the cell has none */
	struct seen_row *rows;
	struct reading_cpu *cpus;
	unsigned n_cpus;
	struct seen_domain domains[SCHEMA_MAX_DOMAINS];
	uint32_t n_uses, cap_uses;
	struct use *uses; /* as seen, by the reading's index */
	struct losses losses;
	struct snapshot snap;
};

/* Takes the reading's uses as reported. Without memory the mark before stays. */
void consumer_mark_uses(struct consumer *c, const struct reading *r);
/* Adds to the snapshot every use since the mark. Without memory it gets none. The mark stays. */
void consumer_add_uses(struct consumer *c, const struct reading *r);

#endif
