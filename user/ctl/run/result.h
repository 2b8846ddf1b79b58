/* SPDX-License-Identifier: Apache-2.0 */
/* What joulectl run knows of a command, and the three forms in which it says so. */
#ifndef JD_CTL_RUN_RESULT_H
#define JD_CTL_RUN_RESULT_H
#include <stdbool.h>
#include <stdint.h>
#include "../base/buf.h"
#include "../model/schema.h"
#include "run_cgroup.h"

/* Values of rows: energy per domain, these, then counters. */
enum { RUN_CPU, RUN_SWITCHES, RUN_RX_BYTES, RUN_RX_PACKETS, RUN_TX_BYTES, RUN_TX_PACKETS, RUN_FIXED };
#define RUN_VALUES_MAX (SCHEMA_MAX_DOMAINS + RUN_FIXED + SCHEMA_MAX_EVENTS)

struct run_domain {
	char name[64];
	enum domain_kind kind;
	unsigned idle_quality;
	uint64_t idle_power_uw;
	char reason[240]; /* why it is estimated; "" = it is not */
};

/* The same for all runs. */
struct run_facts {
	unsigned n_domains, n_counters;
	struct run_domain domain[SCHEMA_MAX_DOMAINS];
	char counter[SCHEMA_MAX_EVENTS][SCHEMA_NAME_MAX];
	char formula[16], idle[16];
	bool split; /* the formula gives energy to cgroups */
	bool switches, network; /* are counted here */
	bool private_agent;
};

struct run_result {
	int exit_status, signal; /* signal: that killed it, 0 = none */
	char error[512]; /* why there are no figures of the agent, or no run at all; "" = there are */
	bool started, measured;
	uint64_t wall_ns, user_ns, system_ns; /* system, user: of the command and what it waited for */
	uint64_t window_ns; /* between the two readings */
	uint64_t value[RUN_VALUES_MAX];
	unsigned quality; /* of the counts */
	unsigned energy_quality[SCHEMA_MAX_DOMAINS];
	uint64_t machine_uj[SCHEMA_MAX_DOMAINS], idle_uj[SCHEMA_MAX_DOMAINS]; /* of the machine, in the window */
	uint64_t memory_peak;
	bool memory_of_cgroup; /* else of its largest process */
	struct run_left left;
};

struct run_report {
	char *const *command;
	const struct run_facts *facts;
	const struct run_result *runs;
	unsigned n;
	int exit_status; /* of the first run that failed, 0 = none did */
};

static inline uint64_t run_fixed(const struct run_facts *f, const struct run_result *r, unsigned fixed)
{
	return r->value[f->n_domains + fixed];
}

static inline uint64_t run_counter(const struct run_facts *f, const struct run_result *r, unsigned counter)
{
	return r->value[f->n_domains + RUN_FIXED + counter];
}

/* Is value[column] one? Without the agent none is, and the zero of a counter that was lost is no count. */
bool run_value_known(const struct run_facts *f, const struct run_result *r, unsigned column);

static inline bool run_counter_known(const struct run_facts *f, const struct run_result *r, unsigned counter)
{
	return run_value_known(f, r, f->n_domains + RUN_FIXED + counter);
}

/* The worst word for all of a result. */
unsigned run_quality(const struct run_facts *f, const struct run_result *r);
/* package, dram and gpu domains are apart from each other; core and uncore are parts of a package, and psys
 * holds all of them. */
bool run_domain_adds_up(const struct run_domain *d);
/* CPU time: the agent's, which has every process of the cgroup; where that is missing, the kernel's for
 * what was waited for. */
uint64_t run_cpu_ns(const struct run_facts *f, const struct run_result *r);

/* Has the agent given figures of any run? */
bool run_any_measured(const struct run_report *r);

void run_write_text(const struct run_report *r, struct buf *b);
void run_write_notes(const struct run_report *r, struct buf *b); /* the end of text */
void run_write_json(const struct run_report *r, struct buf *b);
void run_write_csv(const struct run_report *r, struct buf *b);

#endif
