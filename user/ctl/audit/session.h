/* SPDX-License-Identifier: Apache-2.0 */
/* The experiments of joulectl audit: with loads of its own, or by freezing cgroups. */
#ifndef JD_CTL_AUDIT_SESSION_H
#define JD_CTL_AUDIT_SESSION_H
#include <signal.h>
#include "ctl/run/run_reading.h"
#include "freezer.h"
#include "model/audit.h"
#include "trial.h"

struct janitor;

struct audit_plan {
	uint64_t duration_ns, freeze_ns, seed;
	double duty; /* part of its time that a cgroup may be frozen */
	unsigned cpus; /* processes of each load of its own */
	unsigned n_cgroups; /* 0 = loads of its own */
	char *cgroup[FREEZER_MAX]; /* paths; owned */
	struct run_agent_wish wish;
	bool quiet; /* no progress */
};

struct audit_session {
	const struct audit_plan *plan;
	struct run_agent with;
	struct run_place place;
	struct janitor *janitor; /* removes the cgroups of the loads when this program is killed */
	uint64_t begin_ns;
	struct random random;
	bool audited[SCHEMA_MAX_DOMAINS]; /* measured, and CPUs draw from it */
};

/* A reading of the machine and of some cgroups with all below: cumulative. */
struct audit_reading {
	struct run_machine machine;
	struct run_result of[AUDIT_LOADS];
};

extern volatile sig_atomic_t audit_interrupted; /* by a signal: the result so far counts */

int audit_session_open(struct audit_session *s, const struct audit_plan *p, struct err *err);
void audit_session_close(struct audit_session *s);
/* True while there is time, and no signal came. */
bool audit_goes_on(const struct audit_session *s, uint64_t needed_ns);
void audit_sleep(uint64_t ns); /* less when a signal comes */
/* Says on a terminal how far it is. */
void audit_progress(const struct audit_session *s, const char *what, unsigned done);
void audit_progress_end(const struct audit_session *s);
/* Reads an answer of the agent: cumulative values of cgroups, each with those below it. rows: one per cgroup, kept over
 * the readings that belong together; a path of NULL is all cgroups. */
int audit_read(struct audit_session *s, const struct buf *body, const char *const *paths, unsigned n,
	       struct run_rows *rows, struct audit_reading *ret, struct err *err);

/* 0, or negative errno with err. *ret has all but what audit_report adds. */
int audit_by_loads(struct audit_session *s, struct audit *ret, struct err *err);
int audit_by_freezing(struct audit_session *s, struct audit *ret, struct err *err);

/* audit_text.c */
void audit_write_text(const struct audit *a, struct buf *b);

#endif
