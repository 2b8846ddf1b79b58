/* SPDX-License-Identifier: GPL-2.0-only */
/* What simpmu's files share and what simrapl takes from it. See README for the model. */
#ifndef SIMPMU_H
#define SIMPMU_H
#include <linux/irq_work.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/types.h>

enum sim_count {
	SIM_TIME,
	SIM_CYCLES,
	SIM_INSTRUCTIONS,
	SIM_REFERENCES,
	SIM_MISSES,
	SIM_BRANCHES,
	SIM_BRANCH_MISSES,
	SIM_REF_CYCLES,
	SIM_HIDDEN,
	SIM_SIBLING, /* nanoseconds beside a busy thread of the same core */
	SIM_EXITS, /* exits of the CPU from idle */
	SIM_COUNTS
};
enum sim_energy { SIM_CORE, SIM_UNCORE, SIM_DRAM, SIM_ENERGIES };

/* A stretch of one task's run on one CPU, in which nothing changed. */
struct sim_stretch {
	u64 count[SIM_COUNTS];
	u32 frequency_permille; /* of the nominal */
	u32 energy_class;
	u32 others, cpus; /* other CPUs that were busy; CPUs online */
	u32 siblings; /* other threads of the core that were busy */
	u32 load_permille; /* of the memory: 0 = idle, 1000 = it cannot do more */
	bool small; /* on a small core */
	bool package_woke; /* an exit from idle that also woke the package up */
};

/* Energy of each stretch in picojoules, with the lock of its CPU held: it must not settle. */
typedef void (*sim_charge_fn)(const struct sim_stretch *s, u64 ret_pj[SIM_ENERGIES]);
/* neighbours: the energy depends on who else runs, so that stretches end where that changes. */
void simpmu_set_charge(sim_charge_fn fn);
void simpmu_set_neighbours(bool on);
/* Charges every CPU's open stretch up to one instant, and returns it (CLOCK_MONOTONIC). */
u64 simpmu_settle(void);
/* How long all CPUs of a physical package were idle until `now`, and how often that ended. */
void simpmu_package_sleep(int package, u64 now, u64 *ret_asleep_ns, u64 *ret_exits);
/* All rows as they stand, just settled up to now, are kept beside what comes: the truth of a reading of energy. */
void simpmu_mark(u64 now);
/* Dynamic energy of a CPU up to the last settling. */
void simpmu_cpu_energy(int cpu, u64 ret_pj[SIM_ENERGIES]);

/* Inside simpmu. */

struct sim_work {
	u32 ipc_tenths, misses, hidden; /* per 1000 instructions */
	u32 energy_class;
	bool busy; /* not the idle task */
};

enum sim_kind { SIM_TASK, SIM_KTHREAD, SIM_IDLE };

#define SIM_PATH 88
struct sim_row {
	u64 id;
	u32 kind;
	bool used;
	u64 count[SIM_COUNTS];
	u64 pj[SIM_ENERGIES], marked_pj[SIM_ENERGIES];
	u32 mark; /* of marked_pj; another one = pj has not changed since */
	char path[SIM_PATH];
};

#define SIM_ROWS 2048 /* per CPU, a power of two; the last is for what finds no room */
struct sim_cpu {
	raw_spinlock_t lock;
	int cpu;
	u64 last_ns;
	struct task_struct *task; /* on the CPU, and alive while the lock is held */
	u64 hold_ns; /* until then counters stand */
	struct irq_work release;
	struct sim_work work;
	struct sim_row *row, *rows;
	unsigned int n_rows;
	u64 total[SIM_COUNTS], rest[SIM_COUNTS];
	u64 pj[SIM_ENERGIES];
	bool awake; /* as its package counts it */
	unsigned int n_events; /* counters in use */
	struct sim_slot *slots; /* sampling events */
	struct sim_name *name, *names;
};

struct sim_cpu *sim_cpu_of(int cpu);
/* Counter of the CPU that this runs on, now. */
u64 sim_count_here(enum sim_count which);
/* The same, so long ago; as it was at the last look where that came later. */
u64 sim_count_before(enum sim_count which, u64 ago_ns);
/* Counters of this CPU stand while perf takes events off and puts others on. */
void sim_hold_here(bool on);
bool sim_held_here(void); /* and nobody knows until when */
/* How long from now until this CPU's counter has grown by `count`, as things are; U64_MAX = it stands. */
u64 sim_here_ns(enum sim_count which, u64 count);

void sim_work_parse(const char *comm, struct sim_work *ret);
/* Fills s->count and the frequency for dt nanoseconds of w around the middle of [from, from + dt]. */
void sim_work_do(const struct sim_work *w, struct sim_cpu *c, u64 from, u64 dt, struct sim_stretch *s);
/* How long w takes to count so much, from `from` on; U64_MAX = forever. */
u64 sim_work_ns(const struct sim_work *w, int cpu, u64 from, enum sim_count which, u64 count);
/* True when what others do changes what a CPU counts: the memory's bandwidth is bounded. */
bool sim_work_shared(void);
/* How far a stretch that begins at `from` may go without the frequency moving much. */
u64 sim_work_end(u64 from);

struct sim_row *sim_row_of(struct sim_cpu *c, struct task_struct *p);
void sim_row_keep(struct sim_row *row); /* before its energy grows, with the lock held */
int sim_rows_alloc(struct sim_cpu *c);
void sim_rows_free(struct sim_cpu *c);
int sim_rows_publish(void);
void sim_rows_hide(void);

struct perf_event;
/* simpmu_sample.c, on the CPU of the event or of c. */
int sim_sample_find(void); /* before anything samples: 0 or -errno */
int sim_sample_alloc(struct sim_cpu *c);
void sim_sample_free(struct sim_cpu *c);
int sim_sample_add(struct perf_event *event);
void sim_sample_del(struct perf_event *event);
void sim_sample_start(struct perf_event *event, u64 count);
void sim_sample_stop(struct perf_event *event, u64 count);
void sim_sample_arm_here(struct sim_cpu *c); /* after counts stood, or the mix changed */

/* simpmu_names.c; take and charge with the lock held. */
int sim_names_alloc(struct sim_cpu *c);
void sim_names_free(struct sim_cpu *c);
void sim_names_take(struct sim_cpu *c, const char *comm);
void sim_names_charge(struct sim_cpu *c, const struct sim_stretch *s, const u64 pj[SIM_ENERGIES]);
int sim_names_publish(void);
void sim_names_hide(void);

/* simpmu_machine.c: small cores, and packages that sleep. A CPU becomes busy or idle at `now`: true when it woke its
 * package up. */
bool sim_is_small(int cpu);
bool sim_sleep_set(struct sim_cpu *c, bool awake, u64 now);
void sim_machine_begin(u64 now);
void sim_machine_end(void);

int sim_event_register(void);
void sim_event_unregister(void);

#endif
