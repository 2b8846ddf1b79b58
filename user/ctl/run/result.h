/* SPDX-License-Identifier: Apache-2.0 */
/* The result of joulectl run: facts of the machine, figures of each run, and the three forms in which they are
 * printed. */
#ifndef JD_CTL_RUN_RESULT_H
#define JD_CTL_RUN_RESULT_H
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "ctl/compare/gate.h"
#include "ctl/compare/paired.h"
#include "cgroup_of_run.h"
#include "encode/totals/totals.h"
#include "model/cost.h"
#include "model/schema.h"

/* Values of rows, as in totals: energy per domain, these, then counters. */
enum {
	RUN_CPU = TOTAL_TIME,
	RUN_SWITCHES = TOTAL_SWITCHES,
	RUN_RX_BYTES = TOTAL_RX_BYTES,
	RUN_TX_BYTES = TOTAL_TX_BYTES,
	RUN_TX_PACKETS = TOTAL_TX_PACKETS,
	RUN_BLOCK = TOTAL_BLOCK,
	RUN_READ_BYTES = TOTAL_READ_BYTES,
	RUN_WRITE_BYTES = TOTAL_WRITE_BYTES,
	RUN_FIXED = TOTAL_FIXED
};
/* At the end: the energy whose range is known, and half the widths of these ranges. */
enum { RUN_RANGED = SCHEMA_MAX_DOMAINS + RUN_FIXED + SCHEMA_MAX_EVENTS, RUN_RANGE, RUN_VALUES_MAX };

struct run_domain {
	char name[64];
	enum domain_kind kind;
	bool summed; /* it is added up over domains: schema.h has the rule */
	unsigned idle_quality;
	uint64_t idle_power_uw;
	char reason[240]; /* the reason why it is estimated; "" = it is not estimated */
};

/* Facts that are the same for all runs. */
struct run_facts {
	unsigned n_domains, n_counters;
	struct run_domain domain[SCHEMA_MAX_DOMAINS];
	char counter[SCHEMA_MAX_EVENTS][SCHEMA_NAME_MAX];
	char formula[16], idle[16];
	bool split; /* the formula gives energy to cgroups */
	bool switches, network, block; /* they are counted on this machine */
	bool private_agent;
	/* What a kWh costs by the agent's configuration, now. */
	bool has_price, has_carbon;
	double price, carbon_g;
};

#define RUN_OTHERS_MAX 3

/* A row that is not the command's, between the two readings of a run. */
struct run_other {
	char name[100]; /* escaped */
	uint64_t energy_uj, cpu_ns; /* energy: of the domains that are added up */
};

struct run_result {
	int exit_status, signal; /* signal: the one that killed it, 0 = none */
	char error[512]; /* the reason why there are no figures of the agent, or no run; "" = there are */
	bool started, measured;
	uint64_t wall_ns, user_ns, system_ns; /* user, system: of the command and the children that it waited for */
	uint64_t window_ns; /* between the two readings */
	int64_t real_ns; /* Unix time of the second one */
	uint64_t value[RUN_VALUES_MAX];
	unsigned quality; /* of the counts */
	unsigned energy_quality[SCHEMA_MAX_DOMAINS];
	uint64_t machine_uj[SCHEMA_MAX_DOMAINS], idle_uj[SCHEMA_MAX_DOMAINS]; /* of the machine, in the window */
	unsigned machine_quality[SCHEMA_MAX_DOMAINS];
	uint64_t memory_peak;
	bool memory_of_cgroup; /* else memory_peak is that of its largest process */
	struct run_left left;
	bool others_known; /* the readings had all rows of the machine */
	unsigned n_others;
	struct run_other other[RUN_OTHERS_MAX]; /* that used most */
};

/* What the figures of something that already ran are. */
enum run_attached_by {
	RUN_BY_ROWS, /* the rows of a cgroup and of those below it */
	RUN_BY_ROW, /* the row of the process's cgroup, in which it is alone */
	RUN_BY_CPU_SHARE, /* the process's part of the CPU time of that row */
};
extern const char *const run_attached_by_name[]; /* as in JSON and CSV */

/* Something that already ran, and was measured for a time. */
struct run_attached {
	pid_t pid; /* 0 = a cgroup */
	char comm[16]; /* of the process */
	char cgroup[RUN_PATH_MAX]; /* "/" is the root */
	enum run_attached_by by;
	double share; /* the part of the row */
	const char *until; /* "duration", "signal", "end", or "move" to another cgroup */
};

struct run_report {
	char *const *command; /* NULL = what already ran */
	const struct run_attached *attached; /* NULL = a command */
	const char *text; /* its words in a line, as typed */
	bool shell; /* the command is one string, and ran through /bin/sh */
	char side; /* its letter among those that are compared; 0 = it is alone */
	const struct run_facts *facts;
	const struct cost *cost; /* NULL = not asked for */
	const struct run_result *runs;
	unsigned n;
	int exit_status; /* of the first run that failed, 0 = none did */
};

/* Reports of commands that ran by turns. */
struct run_comparison {
	struct run_report side[SERIES_SIDES_MAX];
	unsigned n_sides;
	const unsigned *order; /* order[round * n_sides + i]: the side that ran as the i-th of the round */
	unsigned warmup;
	const char *input; /* standard input of every run, in words */
	const struct series *series; /* their figures */
	const struct gate *gate; /* the verdict; NULL = nobody asked */
};

static inline uint64_t run_fixed(const struct run_facts *f, const struct run_result *r, unsigned fixed)
{
	return r->value[f->n_domains + fixed];
}

static inline uint64_t run_counter(const struct run_facts *f, const struct run_result *r, unsigned counter)
{
	return r->value[f->n_domains + RUN_FIXED + counter];
}

/* Is value[column] known? Without the agent no value is, and the zero of a lost counter is no count. */
bool run_value_known(const struct run_facts *f, const struct run_result *r, unsigned column);

static inline bool run_counter_known(const struct run_facts *f, const struct run_result *r, unsigned counter)
{
	return run_value_known(f, r, f->n_domains + RUN_FIXED + counter);
}

/* Figures of a run in every form: names with units, and values. cpu_ns is the agent's, which counts every process of
 * the cgroup. Without the agent it is the kernel's, of the command and the children that it waited for. */
enum run_figure { RUN_WALL_NS, RUN_CPU_NS, RUN_USER_NS, RUN_SYSTEM_NS, RUN_MEMORY_PEAK, RUN_FIGURES };
extern const char *const run_figure_name[RUN_FIGURES];
uint64_t run_figure(const struct run_facts *f, const struct run_result *r, enum run_figure k);
/* What already ran has no user and system time and no peak of memory: the kernel has those since its start. */
static inline bool run_figure_known(const struct run_report *r, enum run_figure k)
{
	return !r->attached || k == RUN_WALL_NS || k == RUN_CPU_NS;
}

/* Return the energy of the domains that are added up, and its quality. */
uint64_t run_total_uj(const struct run_facts *f, const struct run_result *r);
unsigned run_total_quality(const struct run_facts *f, const struct run_result *r);
/* Half the range that holds that energy nine times in ten, relative to it, errors taken to have the same sign; NaN = not
 * known of all of it. */
double run_total_range(const struct run_facts *f, const struct run_result *r);
/* What that energy costs, and its CO2 in grams; NAN = not asked for, or not known. */
double run_money(const struct run_report *report, const struct run_result *r);
double run_grams(const struct run_report *report, const struct run_result *r);
/* Returns the worst quality in a result. */
unsigned run_quality(const struct run_facts *f, const struct run_result *r);

/* Returns the place of a side's run i in the sequence of all runs, from 1. */
unsigned run_comparison_place(const struct run_comparison *c, unsigned side, unsigned i);
/* Takes the figures of the first n_rounds of each side. ret is freed with series_free. 0 or -ENOMEM. */
int run_series_fill(const struct run_comparison *c, unsigned n_rounds, uint64_t seed, struct series *ret);

void run_write_text(const struct run_report *r, struct buf *b);
/* Writes what is to be said about the figures of a command; machine: about the machine too. */
void run_write_notes(const struct run_report *r, bool machine, struct buf *b);
void run_write_json(const struct run_report *r, struct buf *b);
void run_write_csv(const struct run_report *r, struct buf *b);
void run_write_comparison_json(const struct run_comparison *c, struct buf *b);
void run_write_comparison_csv(const struct run_comparison *c, struct buf *b);

#endif
