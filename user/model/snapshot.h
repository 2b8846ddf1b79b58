/* SPDX-License-Identifier: Apache-2.0 */
/* The spine: one plain struct that holds the whole machine for one interval. A consumer makes it
 * as the difference of two readings; the formula adds the energy columns; encoders, recorder and
 * query server take it const. Everything inside is owned by the consumer (or the replay source)
 * and valid until its next snapshot. Steady state allocates nothing. */
#ifndef JD_SNAPSHOT_H
#define JD_SNAPSHOT_H
#include <stddef.h>
#include "reading.h"

struct snap_cell { /* the counts of one row on one CPU in the interval */
	uint32_t row;
	uint16_t cpu;
	uint16_t quality;
	uint64_t time_ns, switches;
	uint64_t counters[SCHEMA_MAX_EVENTS];
	uint64_t enabled_ns, running_ns;
};

struct snap_row {
	enum row_kind kind;
	uint32_t key; /* stable small integer while the row lives: index for a formula's own state */
	uint32_t generation; /* changes when `key` is reused for another cgroup */
	uint32_t renamed; /* with key and generation: moves when `path` does */
	uint64_t id;
	const char *path; /* target path; "idle", "kernel", "irq+steal", "other" for special rows */
	struct names *names; /* lives as long as the snapshot; NULL = none */
	uint16_t level;
	bool ended; /* removed: these are its last counts */
	bool selected; /* cgroups.include/exclude; energy is split over all rows alike */
	unsigned quality;
	uint64_t time_ns, switches; /* sums over CPUs */
	uint64_t counters[SCHEMA_MAX_EVENTS];
	uint64_t enabled_ns, running_ns;
	struct traffic traffic;
	uint32_t first_cell, n_cells; /* its cells: snapshot.cells[first .. first + n), by cpu */
};

/* What a cell and a row count lies together and in one order, from time_ns to running_ns, so that it is added in one go. */
#define SNAP_COUNTS (4 + SCHEMA_MAX_EVENTS)
_Static_assert(offsetof(struct snap_cell, running_ns) - offsetof(struct snap_cell, time_ns) ==
			       (SNAP_COUNTS - 1) * sizeof(uint64_t) &&
		       offsetof(struct snap_row, running_ns) - offsetof(struct snap_row, time_ns) ==
			       (SNAP_COUNTS - 1) * sizeof(uint64_t) &&
		       offsetof(struct snap_row, counters) - offsetof(struct snap_row, time_ns) ==
			       offsetof(struct snap_cell, counters) - offsetof(struct snap_cell, time_ns),
	       "counts of rows and cells");

struct snap_use { /* time at full use of the device behind a domain, in the interval; of a wall: microjoules of a cause */
	uint32_t row; /* in rows, or USE_NOBODY */
	uint16_t domain;
	uint64_t ns;
};

struct snap_cpu {
	bool online;
	unsigned quality; /* PARTIAL: came, went or lost counts; STALE: msr values are of its last flush */
	uint64_t elapsed_ns, idle_ns, irq_steal_ns, offline_ns, busy_ns;
	uint64_t msr[SCHEMA_MAX_MSR];
	uint64_t msr_enabled_ns, msr_running_ns;
};

/* What formula model tries as a column of a domain, beside idle power and the column that formula share would take: heat
 * and being awake as parts of idle power; a row's time and each event of the core set; the prices of all of them bent
 * by a state together, and each by itself; prices of single rows; all bases at once; waits for memory (docs/attribution.md). */
enum {
	SNAP_TRY_HEAT,
	SNAP_TRY_AWAKE,
	SNAP_TRY_TIME,
	SNAP_TRY_EVENT,
	SNAP_TRY_BEND = SNAP_TRY_EVENT + SCHEMA_MAX_EVENTS,
	SNAP_BENDS_OF_ALL = 4, /* load, clock, sibling, core type */
	SNAP_BENDS = SNAP_BENDS_OF_ALL + 2, /* traffic, queue: of misses alone */
	SNAP_TRY_FREE = SNAP_TRY_BEND + SNAP_BENDS,
	SNAP_TRY_OWN = SNAP_TRY_FREE + SNAP_BENDS_OF_ALL, /* rows with a price of their own */
	SNAP_TRY_ALL,
	SNAP_TRY_WAIT, /* misses beside waits for memory */
	SNAP_TRIALS
};

/* What formula model has learned of a domain, as it stands after this interval. Zeroed under another formula. */
struct snap_learned {
	bool ready; /* it splits by what it learned; without it the split is that of formula share */
	unsigned points; /* behind the held-out errors; 0 = there are none */
	/* Mean error of a point's power, predicted before the point was learned from, over the mean power above idle:
	 * of the model, and of formula share with the price that its one column had until then. */
	double held_out, held_out_share;
	uint32_t in_use; /* bit per trial */
	float error_ratio[SNAP_TRIALS]; /* held-out error with it over that without, when it was tried last; 0 = never */
};
/* The name of a trial, in buf: "heat", "time", an event's name, "clock", "clock of each". "" for SNAP_TRY_ALL. */
const char *snapshot_trial_name(const struct schema *s, unsigned trial, char *buf, unsigned size);

/* The prices by which the rows were told apart in this interval: under `model` what it has learned, under `share` that of
 * its one column. 0: it had no part in it. All 0 = nothing was split. */
struct snap_price {
	double per_second; /* J of a second of a row's time on a CPU */
	double per_count[SCHEMA_MAX_EVENTS]; /* J, by the schema's core set */
};

struct snap_domain {
	uint64_t start_ns, end_ns; /* times of the two reads behind it */
	unsigned quality;
	uint64_t energy_uj; /* measured (or estimated) in this interval */
	uint64_t energy_q32; /* the same in 2^-32 J, without drift */
	uint32_t uncertainty_ppm; /* of energy_uj, by its source; 0 = none stated, SNAPSHOT_UNKNOWN = it does not know */
	uint32_t audit_ppm; /* of a row's energy: how far charges may be off by the last audit; 0 = it did not tell */
	struct work_price work; /* as they stood at the end; all 0: the causes `disk` and `network` have no prices */
	/* by the formula: energy_uj = sum of rows + idle_uj + residual_uj, exactly */
	uint64_t idle_uj, residual_uj;
	uint64_t idle_power_uw; /* idle power it used */
	unsigned idle_quality; /* of idle_uj and idle_power_uw: the domain's quality, and ESTIMATED until the power
					     is learned or configured */
	unsigned share_quality; /* added to every row's energy by the way of splitting: dram by
				   cache misses is ESTIMATED although the domain is measured */
	double scale; /* model: factor that closed the ledger; 1 for share */
	/* model: half width, relative to the value, of the range that holds the true one 9 times in 10;
	 * NaN = unknown */
	double uncertainty; /* of the rows' energy, mean by energy */
	double idle_uncertainty; /* of the idle power */
	struct snap_learned learned;
	struct snap_price price;
};

enum idle_policy { IDLE_OWN, IDLE_BY_TIME, IDLE_BY_SHARE };
const char *idle_policy_name(enum idle_policy p); /* "own", "by-time", "by-share" */

#define SNAPSHOT_UNKNOWN UINT32_MAX
#define SNAP_AUDIT_MOST_PPM 1000000000u
#define SNAP_SKEW_PPM 5000

/* What the last audit says (docs/audit.md), beside audit_ppm of each domain. A recording has it, so that it replays to the same. */
struct snap_audit {
	char formula[16]; /* that it judged; "" = there was no audit */
	char better[16]; /* the formula that is better here, "share" or "model"; "" = not told */
	char why[200]; /* of `better`, in words; "" in a replay */
};

struct snapshot {
	const struct schema *schema;
	uint64_t number; /* of this consumer's snapshots, from 1 */
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC of the two readings */
	uint64_t suspended_ns; /* CLOCK_BOOTTIME minus CLOCK_MONOTONIC difference */
	int64_t end_real_ns; /* CLOCK_REALTIME of the later reading */
	uint64_t nominal_ns; /* configured interval, 0 = none */
	uint64_t missed; /* deadlines skipped before this one */
	/* By how much energy and counters may be of different instants: the longer gap of the two readings (reading.h),
	 * where it is more than SNAP_SKEW_PPM of the interval; 0 = it is not. */
	uint64_t skew_ns;
	unsigned n_rows;
	struct snap_row *rows; /* rows[0..3] special, then cgroups in row order */
	unsigned n_cells;
	struct snap_cell *cells;
	struct snap_cpu *cpus; /* schema->n_cpus */
	unsigned n_uses;
	struct snap_use *uses; /* of GPUs, by row and domain; NULL where there never was one */
	struct snap_domain domains[SCHEMA_MAX_DOMAINS];
	uint64_t *energy_uj; /* [row * schema->n_domains + domain], by the formula */
	uint32_t *uncertainty_ppm; /* of the same, as above, in millionths; SNAPSHOT_UNKNOWN */
	char formula[16]; /* "share", "none", "model"; "" before the formula */
	enum idle_policy idle_policy;
	struct snap_audit audit;
	struct losses losses; /* in this interval */
	uint64_t self_cpu_ns, self_resident_bytes; /* of the agent at the end; 0 = they were not read */
	const uint32_t *khz; /* schema->n_cpus frequencies now, 0 = not known; NULL = they were not read */
	uint32_t package_mc; /* package temperature, millidegrees Celsius; 0 = not known */
	/* capacities, for the owner */
	unsigned cap_rows, cap_cells, cap_energy, cap_uses;
};

static inline uint64_t *snapshot_energy(const struct snapshot *s, unsigned row, unsigned domain)
{
	return &s->energy_uj[(uint64_t)row * s->schema->n_domains + domain];
}

static inline uint32_t *snapshot_uncertainty(const struct snapshot *s, unsigned row, unsigned domain)
{
	return &s->uncertainty_ppm[(uint64_t)row * s->schema->n_domains + domain];
}

/* The uncertainty of the sum of two energies, when all errors have the same sign. What has no energy adds none; where one is not
 * known, that of the sum is not. */
uint32_t snapshot_joined_ppm(uint64_t a_uj, uint32_t a_ppm, uint64_t b_uj, uint32_t b_ppm);

/* Quality of a row's energy in a domain: of the energy itself, of the way of splitting it, and of the row's counts when
 * the split used them. A row whose counts are all lost has energy only where time was the weight. */
unsigned snapshot_energy_quality(const struct snapshot *s, unsigned row, unsigned domain);
/* The same for a row's energy in all domains. Without domains it is the quality of the row's counts. */
unsigned snapshot_row_energy_quality(const struct snapshot *s, unsigned row);

/* A consumer of readings: it keeps the values that it saw last. */
struct consumer;

struct consumer *consumer_new(const struct reading *r);
void consumer_free(struct consumer *c);
/* Takes the current reading as the start of the next interval (called by consumer_new too). */
void consumer_mark(struct consumer *c, const struct reading *r);
/* True when the last mark or snapshot was at this reading. */
bool consumer_is_at(const struct consumer *c, const struct reading *r);
/* Makes the difference since the last mark or snapshot. The reading becomes the new start. Rows: the special ones,
 * every live cgroup with a row, and ended ones with new counts. The result belongs to the consumer. NULL when out of
 * memory: the start stays, so that the next snapshot holds this interval too. (Without memory for the first mark there is no start:
 * the reading becomes it.) */
struct snapshot *consumer_snapshot(struct consumer *c, const struct reading *r);

/* Room for rows, cells, energy columns and the schema's CPUs (s->schema is set, a zeroed snapshot is
 * empty). 0 or -ENOMEM; keeps content. */
int snapshot_reserve(struct snapshot *s, unsigned rows, unsigned cells);
/* Room for n uses. 0 or -ENOMEM; keeps content. */
int snapshot_reserve_uses(struct snapshot *s, unsigned n);
/* Frees the arrays and zeroes the counts, not the struct itself; paths are not the snapshot's. */
void snapshot_free(struct snapshot *s);

#endif
