/* SPDX-License-Identifier: GPL-2.0-only */
/* One energy model, three doors. See README. */
#ifndef SIMRAPL_H
#define SIMRAPL_H
#include <linux/cpumask.h>
#include <linux/powercap.h>
#include <linux/types.h>

/* In the order of the events' codes less one, and of the bits of the parameter `domains`. */
enum rapl_kind { RAPL_CORE, RAPL_PACKAGE, RAPL_DRAM, RAPL_UNCORE, RAPL_PSYS, RAPL_KINDS };

enum rapl_door { DOOR_POWERCAP, DOOR_PERF, DOOR_MSR, RAPL_DOORS };

#define RAPL_UNITS 8
#define RAPL_STEPS 8 /* of voltage */
#define PJ_PER_UJ 1000000ull
#define PJ_PER_J 1000000000000ull

struct rapl_domain {
	bool exists;
	enum rapl_kind kind;
	int unit;
	char name[32];
	u64 static_pj, dynamic_pj, injected_pj; /* the truth */
	u64 counter_pj; /* what the doors show */
	u64 reads[RAPL_DOORS];
	struct powercap_zone zone;
	bool has_zone;
};

/* A package, or a die where dies have counters of their own. */
struct rapl_unit {
	int package, die;
	cpumask_t cpus, draws; /* that see its counters; whose energy it is */
	struct rapl_domain domain[RAPL_KINDS];
	u64 asleep_ns, exits; /* of its package, as charged */
	u64 warm_uw; /* power of the time before, smoothed: what the temperature follows */
};

struct rapl_settings {
	uint busy_mw, cycle_pj, instruction_pj, hidden_pj, reference_pj, miss_pj;
	uint class_permille[8];
	int square_permille, saturate_permille;
	uint smt_permille, small_permille; /* of what one thread, or a large core, would draw */
	uint step_permille[RAPL_STEPS], step_mv[RAPL_STEPS], n_steps;
	uint exit_nj, sleep_mw, sleep_exit_nj;
	uint queue_permille, leak_permille, leak_ms;
	uint idle_mw[RAPL_KINDS];
	uint noise_permille, quantum_us, esu, range_uj;
	bool stop, freeze, err, resume_reset, msr, mirror, first_waker_pays;
};
extern struct rapl_settings settings;
extern struct rapl_unit rapl_units[RAPL_UNITS];
extern int rapl_n_units;
extern bool rapl_multi_die;

/* simrapl_charge.c: the energy of a stretch, picojoules. */
struct sim_stretch;
void model_charge(const struct sim_stretch *s, u64 *ret_pj);
/* simrapl_model.c */
int model_init(uint packages, uint dies, uint domains, u64 start_uj);
/* Everything up to now; returns that instant. */
u64 model_settle(void);
/* "P D UJ": 0 or -EINVAL. */
int model_inject(const char *text);
void model_seed(u64 seed);
void model_reset_counters(void);
/* Counter of a domain; settles first, at most once in a quantum. */
u64 model_counter_pj(struct rapl_domain *d, enum rapl_door door);
/* Counter of the physical core of a CPU (AMD). */
u64 model_core_counter_pj(int cpu);
struct rapl_unit *model_unit_of(int cpu);
/* Energy as the register shows it, before it is cut to 32 bits. */
u64 model_raw(u64 pj);
const char *model_kind_name(enum rapl_kind kind);

int proc_publish(void);
void proc_hide(void);
int zones_register(void);
void zones_unregister(void);
int power_pmu_register(void);
void power_pmu_unregister(void);
int msr_register(void);
void msr_unregister(void);

#endif
