/* SPDX-License-Identifier: Apache-2.0 */
/* Cumulative totals of everything, from the snapshots of one consumer: what counters of a scrape and
 * answers of the query socket are made of. Integers all the way, so nothing drifts, and at every
 * instant, per domain, exactly
 *
 *	energy = sum of the rows' + idle + residual + retired
 *
 * A cgroup is known by its name. One that ended keeps its final value for a while; then, or when more
 * than TOTALS_ENDED_MAX have ended and its subtree has more than its part of them (model/fair.h), it becomes
 * part of `retired`. With `top` only that many cgroups
 * are shown; what the others get goes into the row `other` for good, so no row ever goes back. */
#ifndef JD_TOTALS_H
#define JD_TOTALS_H
#include "../base/buf.h"
#include "../model/fair.h"
#include "../model/naming.h"
#include "../model/snapshot.h"

#define TOTALS_ENDED_MAX 1024
#define TOTALS_QUALITIES 7 /* measured, then the bits of enum quality in order */

enum { TOTAL_UNSELECTED = READING_SPECIAL_ROWS, TOTAL_FIRST_CGROUP }; /* rows; those before: enum row_kind */

struct totals_options {
	uint64_t keep_ns; /* an ended cgroup's final value */
	unsigned top; /* cgroups shown, 0 = all */
	bool no_names; /* those that are kept are left out too */
};

struct total_row {
	const char *name; /* valid UTF-8, unique */
	struct names *names; /* a reference; NULL = none */
	uint64_t id, hash;
	uint32_t serial; /* moves when the place is used for another name */
	uint32_t seen; /* add in which it was alive last */
	uint32_t changed, named; /* add in which the row, its name moved last */
	uint32_t next; /* of its bucket, or free */
	uint32_t ended_prev, ended_next;
	uint16_t level;
	bool used, ended, shown;
	bool waits; /* loaded, and not met in an interval since */
	bool recalled; /* its names are loaded ones: they stay until it is known anew */
	unsigned quality; /* of the last interval it was in */
	unsigned ever; /* of all intervals it was in */
	uint64_t first_ns, ended_ns; /* CLOCK_MONOTONIC */
};

struct total_domain {
	uint64_t energy_uj, idle_uj, residual_uj; /* idle: the row's part included */
	uint64_t intervals[TOTALS_QUALITIES]; /* by worst quality */
	unsigned quality; /* of the last interval's rows: the split's included */
	uint64_t idle_power_uw; /* of the last interval */
	unsigned idle_quality;
};

struct totals {
	const struct schema *schema;
	struct totals_options options;
	uint32_t adds;
	uint64_t start_ns, mono_ns;
	int64_t real_ns;
	char formula[16]; /* of the last interval, as the next one */
	enum idle_policy idle_policy;
	unsigned n_rows, cap_rows, n_shown, n_ended;
	struct total_row *rows;
	uint64_t *values; /* [row * width + column] */
	uint64_t *hidden; /* with top: the part of it that went into `other`; else NULL */
	uint64_t *retired; /* [width] */
	struct total_domain domains[SCHEMA_MAX_DOMAINS];
	uint64_t busy_ns, idle_ns, irq_steal_ns, offline_ns;
	uint64_t msr[SCHEMA_MAX_MSR];
	struct losses losses;
	/* the table's own; a copy has none of them */
	uint32_t *buckets, n_buckets, free_row, ended_first, ended_last, next_serial;
	unsigned n_waits; /* rows that do */
	uint64_t waits_max; /* largest id that one of them had */
	struct total_key *keys;
	unsigned cap_keys;
	struct fair fair;
	struct buf names; /* of a copy */
};

/* Columns of a row: energy per domain, then these, then counters. */
enum { TOTAL_TIME, TOTAL_SWITCHES, TOTAL_RX_BYTES, TOTAL_RX_PACKETS, TOTAL_TX_BYTES, TOTAL_TX_PACKETS, TOTAL_FIXED };

static inline unsigned totals_width(const struct totals *t)
{
	return t->schema->n_domains + TOTAL_FIXED + t->schema->core.n;
}

static inline unsigned totals_column(const struct totals *t, unsigned fixed)
{
	return t->schema->n_domains + fixed;
}

static inline unsigned totals_counter(const struct totals *t, unsigned event)
{
	return t->schema->n_domains + TOTAL_FIXED + event;
}

static inline uint64_t *totals_row(const struct totals *t, unsigned row)
{
	return &t->values[(size_t)row * totals_width(t)];
}

/* Of a row as it is shown: without what went into `other` before it was. */
static inline uint64_t totals_shown(const struct totals *t, unsigned row, unsigned column)
{
	size_t at = (size_t)row * totals_width(t) + column;

	return t->values[at] - (t->hidden ? t->hidden[at] : 0);
}

struct totals *totals_new(const struct schema *s, const struct totals_options *o); /* NULL = no memory */
void totals_free(struct totals *t); /* NULL and zeroed copies (freed with free afterwards) accepted */
/* Adds an interval. What finds no memory for a row is counted in `unselected`, so that the sum holds. */
void totals_add(struct totals *t, const struct snapshot *s);
/* Makes dst (zeroed, or an earlier copy) equal to src, with names of its own. 0 or -ENOMEM. */
int totals_copy(struct totals *dst, const struct totals *src);

#endif
