/* SPDX-License-Identifier: Apache-2.0 */
/* A reading: cumulative totals of the whole machine at one instant, never reset. Sources add to it. Consumers
 * (model/snapshot.h) keep their own copies and take differences. There is one object per process, owned by the
 * measuring thread, and only sources write to it. Vectors grow when something new appears and are reused: a steady
 * state allocates nothing. */
#ifndef JD_READING_H
#define JD_READING_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "schema.h"

struct cgroup;
struct names;

/* The causes of power outside of the CPUs come after ROW_CGROUP: only a machine with a calibrated wall has them, each once, and
 * they have energy of the wall, and of psys. */
enum row_kind {
	ROW_IDLE,
	ROW_KERNEL,
	ROW_IRQ_STEAL,
	ROW_OTHER,
	ROW_CGROUP,
	ROW_SUPPLY,
	ROW_FANS,
	ROW_DISK,
	ROW_NETWORK,
	ROW_KINDS
};
#define ROW_FIRST_CAUSE ROW_SUPPLY
const char *row_kind_name(enum row_kind k); /* "idle", "kernel", "irq+steal", "other", "cgroup", "supply" ... */
#define READING_SPECIAL_ROWS 4 /* rows[0..3] are the special ones, by kind */
#define READING_MAX_DROPPED 8192 /* dropped rows kept for slow consumers */

/* What a row moved over the network, then to and from block devices. All are uint64_t and cumulative or a difference
 * alike, so that sums go over traffic_values() and a new one needs a name and nothing else. */
struct traffic {
	uint64_t rx_bytes, rx_packets, tx_bytes, tx_packets;
	uint64_t read_bytes, read_requests, write_bytes, write_requests, discard_bytes, discard_requests;
};
#define TRAFFIC_NETWORK 4 /* values of the network, which stand first */
#define TRAFFIC_BLOCK 6 /* values of block devices, behind them */
#define TRAFFIC_VALUES (TRAFFIC_NETWORK + TRAFFIC_BLOCK)
_Static_assert(sizeof(struct traffic) == TRAFFIC_VALUES * sizeof(uint64_t), "traffic holds nothing else");

/* The values in the order of the struct. */
static inline uint64_t *traffic_values(struct traffic *t)
{
	return (uint64_t *)t;
}

static inline const uint64_t *traffic_const(const struct traffic *t)
{
	return (const uint64_t *)t;
}

static inline void traffic_add(struct traffic *to, const struct traffic *t)
{
	for (unsigned i = 0; i < TRAFFIC_VALUES; i++)
		traffic_values(to)[i] += traffic_const(t)[i];
}

/* Wraps below zero: a later difference then includes what was taken off. */
static inline void traffic_take_off(struct traffic *from, const struct traffic *t)
{
	for (unsigned i = 0; i < TRAFFIC_VALUES; i++)
		traffic_values(from)[i] -= traffic_const(t)[i];
}

/* True when one of n values is not 0. first: 0, or TRAFFIC_NETWORK for those of block devices. */
static inline bool traffic_any(const struct traffic *t, unsigned first, unsigned n)
{
	uint64_t any = 0;

	for (unsigned i = first; i < first + n; i++)
		any |= traffic_const(t)[i];
	return any;
}

/* What a unit of work costs in a domain, as a calibration learned it: in 2^-32 uJ, whole numbers so that a replay works with the same
 * ones. 0 = it has no price. */
struct work_price {
	uint64_t read_byte_q32, write_byte_q32, request_q32; /* of block devices; a request is a read or a write */
	uint64_t network_byte_q32, packet_q32; /* both ways */
};

struct reading_row {
	enum row_kind kind;
	bool used; /* false: on the free list */
	bool dropped; /* given up by its source, kept until every consumer has seen its last counts */
	uint32_t generation; /* +1 when the entry is reused: a consumer's copy is void then */
	uint32_t first_cell; /* list of cells by cpu through cell_head.next_in_row; UINT32_MAX = none */
	uint32_t next_dropped;
	uint32_t moved; /* number of the reading that added traffic last */
	uint64_t id; /* cgroup id, 0 for special rows */
	struct cgroup *cgroup; /* NULL for special rows */
	struct traffic traffic; /* cumulative */
};

#define CELL_EVENTS 6 /* counters in a cell; those of more events are in its rest */

/* One (row, CPU) pair that was ever touched: all that a row's charge changes where no more events are counted and none
 * is multiplexed or lost, in one cache line. Cumulative. */
struct cell {
	uint64_t time_ns;
	uint64_t switches;
	uint64_t counters[CELL_EVENTS]; /* scaled when multiplexed */
};
_Static_assert(sizeof(struct cell) == 64, "a cell is a cache line");

/* What few machines have of a cell. Cumulative. */
struct cell_rest {
	uint64_t counters[SCHEMA_MAX_EVENTS - CELL_EVENTS];
	uint64_t enabled_ns,
		running_ns; /* min over events; while the schema is multiplexed: else the time stands for both */
	uint64_t lost; /* failed counter reads */
};

/* An event's counter. rest may be NULL for the first CELL_EVENTS. */
static inline uint64_t *cell_counter(struct cell *c, struct cell_rest *rest, unsigned event)
{
	return event < CELL_EVENTS ? &c->counters[event] : &rest->counters[event - CELL_EVENTS];
}

/* What is looked at in every cell of a row, apart from the values: many to a cache line. */
struct cell_head {
	uint32_t row;
	uint32_t next_in_row;
	uint32_t changed; /* number of the reading that changed the cell last */
	uint32_t generation; /* +1 when the cell becomes that of another row or CPU: a consumer's copy is void then */
	uint16_t cpu;
	bool used;
	bool has_rest : 1; /* something may stand there */
	bool ahead : 1; /* its ahead_ns is not 0 */
};

struct reading_cpu {
	bool online;
	uint32_t online_changes; /* +1 at each change: an interval across one is partial on this CPU */
	uint64_t elapsed_ns; /* cumulative time online, on the scheduler's clock: rows + idle + irq_steal */
	uint64_t offline_ns;
	uint64_t read_mono_ns; /* when this CPU was read last (flush or idle close) */
	uint64_t msr[SCHEMA_MAX_MSR]; /* cumulative increments */
	uint64_t msr_enabled_ns, msr_running_ns;
	bool msr_stale; /* idle at the reading: msr values are of its last flush */
	uint64_t lost_ns; /* time whose counters could not be read */
};

/* Cumulative energy of a domain, in the native unit of its interface, exact. */
struct reading_domain {
	uint64_t units; /* cumulative raw units since start, wraps corrected */
	uint64_t uj_num, uj_den; /* microjoules = units * num / den (floor, 128 bit) */
	uint64_t time_ns; /* CLOCK_MONOTONIC of the read behind `units` */
	uint64_t wraps, resets, errors; /* cumulative events: differences become quality flags */
	bool estimated;
	bool stale; /* the last read failed: units are older than the reading */
	uint64_t dropped; /* intervals whose delta was refused as absurd: cumulative */
	uint32_t uncertainty_ppm; /* the source's own: half width of the range that holds the truth 9 times in 10; 0 = none */
	struct work_price work; /* of the wall, and of a psys that holds them, as they stand now */
};
uint64_t reading_domain_uj(const struct reading_domain *d);
uint64_t reading_domain_q32(const struct reading_domain *d); /* in 2^-32 J, floor; mod 2^64 */

/* The use of a device by a row: cumulative time at full use of the GPU behind a domain. A device has no CPU. Of a wall and of psys: the
 * microjoules of a cause, and of ROW_IDLE what nothing explains. */
#define USE_NOBODY UINT32_MAX /* the device was used, but the row is no longer known */
struct use {
	uint32_t row; /* or USE_NOBODY */
	uint32_t generation; /* of the row, so that the next cgroup in that row does not get this use */
	uint16_t domain;
	uint64_t ns;
};

/* Losses of the whole machine, cumulative. */
struct losses {
	uint64_t folded; /* charges folded into an ancestor or `other`: table full or quota */
	uint64_t lost_reads; /* counter reads that failed, or whose event had no turn on the PMU */
	uint64_t lost_events; /* lifecycle records that did not fit the ring */
	uint64_t missed_switches; /* not reported by the kernel; found and mended by the scheduler's stamps */
	uint64_t away_reads; /* of lost_reads: on CPUs that were offline meanwhile; not recorded */
};

struct reading;
/* A consumer as the reading knows it: the last reading it took, so that no row is freed before it was reported. */
struct reading_viewer {
	struct reading_viewer *next, **prev; /* prev NULL = not in a list */
	uint32_t seen; /* number of the reading it took last */
	/* The row is freed now although this consumer may not have seen all of it. */
	void (*absorb)(struct reading_viewer *v, struct reading *r, uint32_t row);
};

struct reading {
	struct schema *schema;
	uint32_t number; /* +1 per reading */
	uint64_t mono_ns, boot_ns; /* of this reading */
	int64_t real_ns;
	uint32_t n_rows, cap_rows;
	struct reading_row *rows;
	uint32_t *row_changed; /* by row: number of the reading that changed one of its cells last */
	uint32_t n_cells, cap_cells;
	struct cell *cells;
	struct cell_head *heads; /* by cell */
	uint64_t *ahead_ns; /* by cell: of its time, what its source reported ahead, to be taken off what comes */
	struct cell_rest *rests; /* by cell; NULL until one has something there */
	uint32_t free_row, free_cell; /* list heads, UINT32_MAX = none */
	uint32_t *cell_of; /* [row * n_cpus + cpu]: cell number + 1, 0 = none */
	uint32_t dropped_first, dropped_last, n_dropped; /* dropped rows, oldest first */
	struct reading_viewer **viewers; /* head of the list; a pointer, so that a const reading takes consumers */
	struct reading_cpu *cpus; /* schema->n_cpus */
	struct reading_domain domains[SCHEMA_MAX_DOMAINS];
	uint32_t n_uses, cap_uses;
	struct use *uses; /* NULL until there is one */
	struct losses losses;
};

/* The instants at which CPUs were read for a reading. Both 0 where none was. */
struct reading_instants {
	uint64_t gap_ns; /* from its start, when energy is read, to the last CPU */
	uint64_t spread_ns; /* from the first CPU to the last */
};
struct reading_instants reading_instants(const struct reading *r);

int reading_init(struct reading *r, struct schema *schema);
void reading_free(struct reading *r);
/* Adds a row for a cgroup and sets cgroup->in_use. Returns the index or -ENOMEM. A dropped row of the same cgroup that
 * is still kept comes back instead, and counts on. */
int64_t reading_add_row(struct reading *r, struct cgroup *cg);
/* The row of a cause, made at the first call. Its index or -ENOMEM. */
int64_t reading_add_cause(struct reading *r, enum row_kind cause);
/* Gives up a row that its source no longer needs. The row and its cells are freed, and cgroup->in_use is cleared, once
 * every consumer took a reading numbered like the current one or later: a consumer of 10 s must not lose counts that a
 * consumer of 10 ms has long reported. Beyond READING_MAX_DROPPED some rows of the subtrees that have most of them are
 * freed at once (fair.h). Consumers that have not seen those get their counts with `other`, counted as folded.
 * `generation` of a freed row changes. */
void reading_drop_row(struct reading *r, uint32_t row);
/* Frees the dropped rows that all consumers have seen. Add and drop call it, and it is worth a call after the consumers
 * took a reading. Returns how many were freed. */
unsigned reading_reap(struct reading *r);
void reading_view(const struct reading *r, struct reading_viewer *v); /* a consumer begins */
void reading_unview(struct reading_viewer *v); /* and ends */
/* Returns the cell of (row, cpu), created on first use and marked changed by this reading. NULL = no memory. The
 * pointer is valid until the next call. */
struct cell *reading_cell(struct reading *r, uint32_t row, uint16_t cpu);
/* The same in two steps for a source that remembers the number of a cell while its row lives: the cell's number or
 * -ENOMEM / -EINVAL, and the cell, marked changed. */
int64_t reading_cell_number(struct reading *r, uint32_t row, uint16_t cpu);
static inline struct cell *reading_touch(struct reading *r, uint32_t cell)
{
	struct cell_head *h = &r->heads[cell];

	h->changed = r->number;
	r->row_changed[h->row] = r->number;
	return &r->cells[cell];
}
/* The rest of a cell, to be written. The cell is to be touched, too. NULL = no memory. Valid until a cell is created. */
struct cell_rest *reading_rest(struct reading *r, uint32_t cell);
/* Adds time in which nothing but time is counted, and with it what multiplexed events were there for. 0 or -ENOMEM. */
int reading_add_time(struct reading *r, uint32_t cell, uint64_t time_ns);

static inline void reading_add_traffic(struct reading *r, uint32_t row, const struct traffic *t)
{
	traffic_add(&r->rows[row].traffic, t);
	r->rows[row].moved = r->number;
}

/* Adds ns of use of a domain by a row or by USE_NOBODY. 0 or -ENOMEM. */
int reading_use(struct reading *r, uint32_t row, uint16_t domain, uint64_t ns);

#endif
