/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of formula model: what a row did on a CPU, and the state beside which it did it. */
#ifndef JD_TERMS_H
#define JD_TERMS_H
#include "model.h"
#include "weight.h"

struct term_cpu;

/* The state of a domain's CPUs in an interval. */
struct terms {
	const struct snapshot *s;
	unsigned n_bases;
	int cycles, misses, sibling, others; /* events, -1 = there are none */
	unsigned bends; /* those that are known here */
	double first_clock, first_traffic; /* counts per s of CPU time, counts per s: where states are 1 */
	double others_most; /* CPUs that can be busy beside one */
	double traffic; /* misses per s of the whole interval */
	double awake; /* part of the time in which a CPU was busy; NaN = not known */
	struct term_cpu *cpu; /* [n_cpus] */
	unsigned cap_cpus;
};

/* 0 or -ENOMEM. */
int terms_reserve(struct terms *t, const struct snapshot *s);
void terms_free(struct terms *t);
/* Takes the state of the interval on the CPUs of w. Sets the first states in f where they are not known yet. */
void terms_of(struct terms *t, const struct snapshot *s, const struct weights *w, struct model_fit *f);
/* Adds what a cell did to did[COLUMNS], bent by the bends in `bends`. `idle`: its time is not work. */
void terms_add(const struct terms *t, const struct snap_cell *c, bool idle, unsigned bends, double *did);
/* Joules of a cell by c, at least 0. What it did in these bends is added to did[COLUMNS]. */
double terms_joules(const struct terms *t, const struct snap_cell *c, bool idle, const struct model_coef *coef,
		    unsigned bends);
/* The columns that there are, bent ones too. */
model_columns terms_columns(const struct terms *t, const struct snapshot *s, const struct weights *w);
/* Of the bases, time and perf events. */
model_columns terms_counted(const struct snapshot *s);
/* The price of a base at the mean state of the interval. `all` is the work of all rows. */
double terms_price(const struct terms *t, const struct model_coef *c, const double *all, unsigned base);

#endif
