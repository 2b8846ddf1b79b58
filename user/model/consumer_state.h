/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a consumer: the last values it has reported, so that the next snapshot holds the differences. Everything
 * here is owned by the consumer. consumer.c keeps cells, rows and the machine, use.c keeps uses of devices. No other
 * file includes this header. */
#ifndef JD_CONSUMER_STATE_H
#define JD_CONSUMER_STATE_H
#include "snapshot.h"

/* The values of a cell in two parts, as cell_values has them, and whose they are: many cells change in the first part
 * alone, and the second is not touched then. */
struct seen_narrow {
	uint64_t time_ns, switches, counters[CELL_NARROW_EVENTS];
};

struct seen_wide {
	uint64_t counters[SCHEMA_MAX_EVENTS - CELL_NARROW_EVENTS], enabled_ns, running_ns, lost;
};
_Static_assert(sizeof(struct seen_narrow) == CELL_NARROW_BYTES &&
		       sizeof(struct seen_narrow) + sizeof(struct seen_wide) == sizeof(struct cell_values),
	       "parts of a cell's values");

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
	uint32_t cap_cells, cap_rows;
	uint32_t *cell_generations; /* by cell: of the copy; 0 = there is none */
	struct seen_narrow *narrow; /* by cell */
	struct seen_wide *wide; /* by cell; all 0 while the cell is not wide */
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
