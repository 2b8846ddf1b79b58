/* SPDX-License-Identifier: Apache-2.0 */
/* State of the counters source, shared by its files. Flow of one reading: counters.c has every busy CPU
 * flushed (flush.c) and idle ones closed from the clock (read_cpu.c); take.c takes the rows of a bank; slots.c turns slots
 * into rows of the reading and retires slots of cgroups that ended. load.c loads the programs, perf_events.c opens the
 * events. */
#ifndef JD_ROWS_H
#define JD_ROWS_H
#include "counters.h"
#include "topology.h"
#include <linux/types.h>
#include "../../../include/counters.h"

/* A load that the compiler neither repeats nor leaves out: another CPU writes there. */
#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))

struct counters_bpf;
struct ring_buffer;

/* The contents of a row at one moment. */
struct row_values {
	uint64_t time_ns, switches, lost, counters[JD_MAX_EVENTS];
};

struct staged_row {
	uint32_t row, slot;
	struct row_values now;
	struct jd_mux_row mux;
};

struct cpu_source {
	bool online;
	bool broken; /* its events could not all be opened */
	bool returned; /* from a time offline that a reading saw: it began at states[].began_mono_ns */
	bool restarted; /* its events are new: they count from the next flush */
	bool flushed; /* by the reading in progress, which is yet to take `left_bank`, unless ... */
	int flush_rc; /* ... it failed */
	unsigned left_bank;
	bool visit; /* to be flushed at the next reading, idle or not */
	uint64_t msr_credit_ns, tsc_credit; /* reported ahead of the counters, from the clock */
	uint64_t seq; /* of the last complete read of the CPU while idle */
	bool taken; /* rows of the active bank were taken while idle: `seen` says how much */
	uint64_t irq_steal_ns, lost_reads, msr_lost, folded, missed, msr_mono_ns;
	uint64_t msr[JD_MAX_MSR_EVENTS];
	uint64_t offline_since_ns;
	uint32_t retry_at, retry_after; /* reading number of the next reopen, doubling distance */
};

struct counters {
	const struct counters_options *o; /* valid during open only */
	struct counters_bpf *skel;
	struct bpf_link *links[2];
	struct ring_buffer *full; /* CPUs whose rows run out; NULL where there are as many as slots */
	struct bpf_link **perf_links; /* trigger perf_event: one per CPU */
	struct perf_seam seam;
	struct schema *schema;
	const struct fsroot *root; /* borrowed */
	const uint16_t *siblings; /* by CPU, for tests; NULL: as the machine says; borrowed */
	struct event_variants *core_variants, *msr_variants; /* [SCHEMA_MAX_EVENTS], the machine's */
	struct online_cpus *online;
	uint8_t *online_bits, *gone_bits;
	unsigned n_cpus;
	uint32_t max_slots, bank_rows;
	uint32_t wake_row; /* of a bank: much of it is used; 0 where a bank has rows for every slot */
	size_t row_bytes; /* distance of two rows */
	int flush_fd, retire_fd, events_fd;
	int *event_fds; /* [(JD_MAX_EVENTS core, then msr) * n_cpus + cpu], -1 = closed */
	struct jd_cpu_state *states; /* mapped */
	uint8_t *rows; /* mapped; struct jd_row up to the last configured counter */
	struct jd_mux_row *mux_rows; /* mapped while multiplexed */
	const uint64_t *row_slots; /* mapped */
	const struct jd_slot_info *info; /* mapped */
	struct staged_row *seen; /* [cpu * bank_rows + row]: taken from the active bank while idle */
	struct staged_row *staged;
	unsigned *to_flush; /* CPUs, of the reading in progress */
	struct flush_crew *crew; /* flush.c; NULL where one thread is enough */
	uint32_t *slot_cells; /* [cpu * max_slots + slot]: number of its cell in the reading + 1, 0 = none yet */
	struct cpu_source *cpus;
	uint32_t *slot_row; /* reading row of a slot, UINT32_MAX = none yet */
	uint32_t top_slot; /* highest slot seen + 1 */
	int64_t asleep_ns; /* CLOCK_BOOTTIME less CLOCK_MONOTONIC at the last reading */
	bool clock_ktime;
	bool clock_events; /* a core event is the row's own time */
	bool cpus_came; /* in this reading: the siblings of all are read anew */
	bool visit_idle; /* an event counts while a CPU is idle: flush those CPUs too */
	int tsc_event; /* index of the TSC in the msr set, -1 = not there */
	double tsc_per_ns; /* between two flushes of a CPU: the TSC is constant and shared */
	char reason[600];
};

/* Parameters of one CPU's read; made once per reading. */
struct read_context {
	struct counters *c;
	struct reading *r;
	struct cgroup_table *table;
	struct lifecycle *lifecycle;
};

static inline size_t row_index(const struct counters *c, unsigned cpu, unsigned bank, uint32_t row)
{
	return ((size_t)cpu * JD_BANKS + bank) * c->bank_rows + row;
}

/* A row of the kernel's; of its counters only the configured ones are there. */
static inline struct jd_row *row_at(const struct counters *c, size_t index)
{
	return (struct jd_row *)(c->rows + index * c->row_bytes);
}

/* Slot of a row that was given out. */
static inline uint32_t slot_at(const struct counters *c, unsigned cpu, unsigned bank, uint32_t row)
{
	return row < JD_FIRST_SLOT ? row : (uint32_t)READ_ONCE(c->row_slots[row_index(c, cpu, bank, row)]);
}

/* Sets bank_rows, wake_row and row_bytes for a machine and its events. */
void counters_set_sizes(struct counters *c);

/* load.c */
int counters_load(struct counters *c, const struct counters_options *o, struct err *err);
void counters_unload(struct counters *c);

/* topology.c to the CPU's state: the siblings whose busy clocks its switch program reads. */
void counters_set_siblings(struct counters *c, unsigned cpu);

/* perf_events.c: trigger perf_event. 0, -ENOENT (no such event), -ENODEV (it would never fire) or -errno. */
int counters_attach_perf(struct counters *c);
int counters_attach_perf_cpu(struct counters *c, unsigned cpu); /* a CPU that came back */

/* perf_events.c: opens the events of one CPU and puts them into the kernel's map. Number of
 * events that should be there and could not be opened. */
unsigned counters_open_events(struct counters *c, unsigned cpu);
void counters_close_events(struct counters *c, unsigned cpu);
bool counters_must_multiplex(struct counters *c);

/* flush.c */
int counters_flush(struct counters *c, unsigned cpu, enum jd_flush_arg what); /* 0 or -errno */
void counters_flip(struct counters *c, unsigned cpu); /* flushes a CPU and notes in cpus[] how that went */
void counters_flush_all(struct counters *c, unsigned n); /* the same for the first n CPUs of to_flush */
/* Starts n threads that help to flush, when that takes longer than `worth_ns`. 0 or -errno with fewer of them. */
int counters_helpers_start(struct counters *c, unsigned n, uint64_t worth_ns);
void counters_helpers_stop(struct counters *c);

/* take.c: rows into the reading. */
/* The number of a slot's cell on a CPU, or -errno. */
int64_t counters_cell(struct read_context *x, unsigned cpu, uint32_t slot);
void counters_take_bank(struct read_context *x, unsigned cpu, unsigned bank); /* no writer; taken once */
unsigned counters_stage_bank(struct counters *c, unsigned cpu, unsigned bank); /* active bank: copied, their number */
void counters_take_staged(struct read_context *x, unsigned cpu, unsigned n); /* the copies are good */
/* For the active bank of a CPU that is offline: what it holds was taken, and a row is given out anew when the CPU
 * returns. */
void counters_void_bank(struct counters *c, unsigned cpu, unsigned bank);
/* A flushed bank cannot hold more than most_ns. The time above that is taken off its longest row. */
void counters_trim_bank(struct counters *c, unsigned cpu, unsigned bank, uint64_t most_ns);
/* Takes time that was reported ahead off `brought`; a step back becomes credit. Returns the rest. */
uint64_t counters_settle(uint64_t *credit, uint64_t brought);

/* read_cpu.c */
void counters_prime(struct counters *c); /* opens the first interval of every online CPU */
bool counters_looks_idle(const struct counters *c, unsigned cpu);
/* True when the CPU was idle throughout and everything was taken. */
bool counters_read_idle(struct read_context *x, unsigned cpu);
int counters_take_flushed(struct read_context *x, unsigned cpu); /* 0, or why it was not flushed */
int counters_read_cpu(struct read_context *x, unsigned cpu); /* one CPU alone: idle or flushed; 0 or why not */
/* Its last counts: the bank has no writer any more. */
void counters_read_offline(struct read_context *x, unsigned cpu);

/* slots.c */
int64_t counters_row(struct read_context *x, uint32_t slot); /* reading row or -errno */
/* Gives back the slots of cgroups that ended, after complete readings in which they counted nothing. */
void counters_retire(struct read_context *x);

#endif
