/* SPDX-License-Identifier: Apache-2.0 */
/* Cumulative totals, from the snapshots of one consumer. Scrapes of metrics and answers of the query socket are
 * made of them. All values are integers, so nothing drifts. At every instant, per domain, this holds exactly:
 *
 *	energy = sum of the rows' + idle + residual + retired
 *
 * A cgroup is known by its name. An ended cgroup keeps its final value for keep_ns and then becomes part of
 * `retired`. It does so earlier when more than TOTALS_ENDED_MAX have ended and its subtree has more than its
 * share of them (model/fair.h). With `top` only that many cgroups are shown. What the others use goes into the
 * row `other` for good, so the value of a row never goes down.
 *
 * With `by` the rows are groups of cgroups (model/grouping.h), and all this holds for groups: a cgroup's use goes into
 * its group of that moment, and stays there when the cgroup ends. A group ends with its last cgroup. */
#ifndef JD_TOTALS_H
#define JD_TOTALS_H
#include "base/buf.h"
#include "base/err.h"
#include "base/format/fields.h"
#include "base/hash.h"
#include "model/fair.h"
#include "model/grouping.h"
#include "model/naming.h"
#include "model/selection.h"
#include "model/snapshot.h"

#define TOTALS_ENDED_MAX 1024
#define TOTALS_QUALITIES 7 /* measured, then the bits of enum quality in order */

/* Rows: those of enum row_kind, with what is not selected in place of ROW_CGROUP, then cgroups or groups. */
enum { TOTAL_UNSELECTED = ROW_CGROUP, TOTAL_FIRST_CGROUP = ROW_KINDS };

struct totals_options {
	uint64_t keep_ns; /* how long an ended cgroup's final value stays */
	unsigned top; /* cgroups or groups shown, 0 = all */
	struct grouping by; /* none: a row is a cgroup */
	bool no_names; /* leaves out names, also those that were saved */
};

struct total_row {
	const char *name; /* valid UTF-8, unique; see total_row_named */
	struct names *names; /* a reference; NULL = none */
	uint64_t id, hash;
	uint32_t serial; /* changes when the place is used for another name */
	uint32_t seen; /* the last add in which it was alive */
	uint32_t changed, named; /* the last add in which the row, or its name, changed */
	uint32_t next; /* next in the free list */
	uint32_t ended_prev, ended_next;
	uint16_t level;
	bool used, ended, shown;
	bool waits; /* loaded, and in no interval since */
	bool recalled; /* its names were loaded: they stay until newer ones are known */
	unsigned quality; /* of the last interval that had it */
	unsigned energy_quality; /* the same, of its energy; not saved */
	unsigned ever; /* of all intervals that had it */
	/* Energy of the last interval that had it, in the domains that add up, and half the range that holds it nine times in
	 * ten, errors taken to have the same sign; NaN = not known. Both in uJ, not saved. */
	double last_uj, last_range_uj;
	uint32_t told; /* the add in which they were */
	/* The same, summed over the intervals in which it was known; not saved. */
	uint64_t ranged_uj, range_nj;
	uint64_t first_ns, ended_ns; /* CLOCK_MONOTONIC */
};

struct total_domain {
	uint64_t energy_uj, idle_uj, residual_uj; /* idle_uj includes the part of the row `idle` */
	uint64_t intervals[TOTALS_QUALITIES]; /* by worst quality */
	unsigned quality; /* of the rows of the last interval, with that of the split */
	uint64_t idle_power_uw; /* of the last interval */
	unsigned idle_quality;
	struct snap_price price; /* of the last interval that split anything; not saved */
};

struct totals {
	const struct schema *schema;
	struct totals_options options;
	uint32_t adds;
	uint64_t start_ns, mono_ns;
	int64_t real_ns;
	char formula[16]; /* of the last interval, like idle_policy */
	enum idle_policy idle_policy;
	unsigned n_rows, cap_rows, n_shown, n_ended;
	struct total_row *rows;
	uint64_t *values; /* [row * width + column] */
	uint64_t *hidden; /* with top: the part of values that went into `other`; else NULL */
	uint64_t *retired; /* [width] */
	struct total_domain domains[SCHEMA_MAX_DOMAINS];
	uint64_t busy_ns, idle_ns, irq_steal_ns, offline_ns;
	uint64_t msr[SCHEMA_MAX_MSR];
	struct losses losses;
	/* of the table only; a copy has none of these */
	struct hash by_name;
	uint32_t free_row, ended_first, ended_last, next_serial;
	unsigned n_waits; /* rows with `waits` */
	uint64_t waits_max; /* largest id of a row that had `waits` */
	struct total_key *keys;
	unsigned cap_keys;
	bool added; /* an interval, since it was made or loaded */
	bool reselected; /* groups: those that the next interval does not have go at once */
	struct fair fair;
	struct buf names; /* of a copy */
	struct totals *view; /* of a copy too: the same intervals with other options; NULL = none */
};

/* Columns of a row: first energy per domain, then these, then counters. */
enum {
	TOTAL_TIME,
	TOTAL_SWITCHES,
	TOTAL_TRAFFIC, /* from here on the values of struct traffic */
	TOTAL_RX_BYTES = TOTAL_TRAFFIC,
	TOTAL_RX_PACKETS,
	TOTAL_TX_BYTES,
	TOTAL_TX_PACKETS,
	TOTAL_BLOCK, /* of block devices */
	TOTAL_READ_BYTES = TOTAL_BLOCK,
	TOTAL_READ_REQUESTS,
	TOTAL_WRITE_BYTES,
	TOTAL_WRITE_REQUESTS,
	TOTAL_DISCARD_BYTES,
	TOTAL_DISCARD_REQUESTS,
	TOTAL_FIXED
};
_Static_assert(TOTAL_FIXED == TOTAL_TRAFFIC + TRAFFIC_VALUES && TOTAL_BLOCK == TOTAL_TRAFFIC + TRAFFIC_NETWORK,
	       "columns follow struct traffic");

/* The fields of totals in the answers of the query socket. The object of total_columns is a row's first column behind
 * energy. */
enum { COLUMNS_OF_CPU = 1, COLUMNS_OF_NETWORK = 2, COLUMNS_OF_BLOCK = 4 };
extern const struct fields total_columns;
enum { TOTAL_OF_SUM = 1, TOTAL_OF_RATE = 2 };
extern const struct fields total_domain_fields;
extern const struct fields total_row_fields, totals_fields;

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

/* A value as it is shown: without the part that went into `other` before the row was shown. */
static inline uint64_t totals_shown(const struct totals *t, unsigned row, unsigned column)
{
	size_t at = (size_t)row * totals_width(t) + column;

	return t->values[at] - (t->hidden ? t->hidden[at] : 0);
}

/* True when a row is a group that its names tell, and its name is only a key. */
static inline bool total_row_named(const struct total_row *r)
{
	return r->name[0] == GROUPING_MARK;
}

/* The range of a row's energy in the last interval, relative to it; NaN: not known, or it had none then. */
double totals_range(const struct totals *t, unsigned row);
/* Half widths of all ranges of `ranged_uj`, added up. */
static inline uint64_t total_row_range_uj(const struct total_row *r)
{
	return (r->range_nj + 500) / 1000;
}

/* Adds the counts of a row of a snapshot to its columns, which begin behind those of energy. */
void totals_add_counts(uint64_t *fixed, const struct snap_row *r, unsigned n_events);

struct totals *totals_new(const struct schema *s, const struct totals_options *o); /* NULL = no memory */
/* Adds a view: further totals, to which everything that is done to t is done too. They are t->view, and go with t.
 * Call it before anything is added. 0 or -ENOMEM. */
int totals_view(struct totals *t, const struct totals_options *o);
/* Lowers o->top so far that a page of metrics has at most max_series series; 0 = no bound. more: series on the page
 * that are not of the totals. 0, or -EINVAL with the smallest bound that holds the machine. */
int totals_fit(struct totals_options *o, const struct schema *s, uint64_t max_series, unsigned more, struct err *err);
/* True for the first domain of its kind (any_package), or of its kind, package and die: two GPUs are one series. */
bool totals_first_domain(const struct schema *s, unsigned d, bool any_package);
void totals_free(struct totals *t); /* also NULL, and zeroed copies, whose struct the caller frees */
/* Adds an interval. selected: by row, as for selection_shows. When there is no memory for a row, its use goes into
 * `unselected`, so the sum holds. */
void totals_add(struct totals *t, const struct snapshot *s, const bool *selected);
/* Drops the cgroups that the rules do not admit; their use goes into `retired`. Groups without a cgroup in the next
 * interval go with that interval. */
void totals_select(struct totals *t, const struct selection_rules *rules);
/* Makes dst (zeroed, or an earlier copy) equal to src. Names are copied too. 0 or -ENOMEM. */
int totals_copy(struct totals *dst, const struct totals *src);

/* Takes the names of a cgroup that arrived after its last interval. n is borrowed. Does nothing when the row
 * has not ended or is gone. */
void totals_name_late(struct totals *t, uint64_t id, struct names *n);

/* Inside of totals/: functions of rows.c for totals.c and keep.c. */

#define TOTALS_NONE UINT32_MAX

/* The row of the totals that counts a row of a snapshot. TOTAL_UNSELECTED when it is not selected, has no name, or
 * memory is short. */
uint32_t totals_place(struct totals *t, const struct snap_row *r, bool selected);
/* Sets the row's names, as changed in that add. */
void totals_call(struct totals *t, uint32_t row, struct names *n, uint32_t add);
void totals_end(struct totals *t, uint32_t row); /* it has ended: keep_ns begins */
void totals_alive(struct totals *t, uint32_t row);
void totals_met(struct totals *t, uint32_t row); /* clears `waits` */
/* Stops showing the row. The use that was shown goes into `retired`, where it does not look like present use. */
void totals_retire(struct totals *t, uint32_t row);
void totals_drop(struct totals *t, uint32_t row); /* retires the row and forgets it */
void totals_trim(struct totals *t); /* hides the least of the rows that are shown beyond `top` */
/* The row of the group of a cgroup, or -ENOENT. */
int64_t totals_group(const struct totals *t, const char *path, const struct names *n);
void totals_free_keys(struct totals *t);
/* For keep.c. totals_empty_place adds an unused place that is in no list. totals_relink rebuilds all lists from
 * the rows. 0 or -ENOMEM; -EBADMSG: two rows have the same name. */
int totals_empty_place(struct totals *t);
int totals_relink(struct totals *t);

#endif
