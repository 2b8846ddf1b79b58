/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of formula model: what a row did on a CPU, and the state beside which it did it. */
#ifndef JD_TERMS_H
#define JD_TERMS_H
#include "model.h"
#include "weight.h"

struct term_cpu;

/* What the rows on some CPUs did in all. */
struct term_sums {
	double time_s, cycles, misses;
	double asleep_s; /* no CPU was busy: what the idle row has in the column of others */
	double tasks_s; /* of time_s, what is not of interrupts and not stolen */
	double beside_s; /* of all rows, what other CPUs were busy for meanwhile: each two at once count twice */
	bool in_part; /* there is more that counts: other CPUs, or cells that lost theirs */
};

/* Values of a row's work at most: the bases and each bend of them begin at an even place, then come bends of misses. */
#define WORK_BASES (BASES + BASES % 2)
#define WORK_MOST (WORK_BASES * (1 + BENDS_OF_ALL) + BENDS - BENDS_OF_ALL)

/* The state of a domain's CPUs in an interval. */
struct terms {
	const struct snapshot *s;
	unsigned n_bases; /* of this schema */
	unsigned width; /* values of a row's work: the columns that there are, and padding */
	uint8_t bent[BENDS + 1]; /* place of a bend in a row's work; the last one: of what is not bent */
	bool same; /* CPUs and bends are those of the domain before, and so is the work of all rows */
	bool summed; /* sums and cpu are of the CPUs in `of` */
	uint8_t *of; /* [n_cpus] */
	struct term_sums sums;
	int cycles, misses, sibling, others; /* events, -1 = there are none */
	unsigned bends; /* those that are known here */
	double first_clock, first_traffic; /* counts per s of CPU time, counts per s: where states are 1 */
	double others_most; /* CPUs that can be busy beside one */
	double traffic; /* misses per s of the whole interval */
	double awake; /* part of the time in which a CPU was busy; NaN = not known */
	const double *usual, *most; /* [row]: misses per cycle of a row as a rule, and at most (waits.h) */
	struct term_cpu *cpu; /* [n_cpus] */
	unsigned cap_cpus;
};

/* The prices that are not 0, in the order of their columns, to add up what a cell cost. */
struct terms_prices {
	const struct terms *terms;
	unsigned bends; /* that one of them has */
	unsigned n;
	const double *own; /* [row]: what a unit of the next costs more, or less; NULL = no row has a price of its own */
	unsigned own_base, own_bend; /* as of a price */
	struct term_price {
		double price;
		uint8_t base, bend; /* bend: BENDS = the price is not bent */
	} of[COLUMNS];
};

/* Room for an interval, whose work is not known yet. 0 or -ENOMEM. */
int terms_reserve(struct terms *t, const struct snapshot *s);
void terms_free(struct terms *t);
/* Takes the state of the interval on the CPUs of w. Sets the first states in f where they are not known yet. */
void terms_of(struct terms *t, const struct snapshot *s, const struct weights *w, struct model_fit *f);
/* Adds what a cell did, and that bent by each bend that there is, to work[width]. `idle`: its time is not work. */
void terms_add(const struct terms *t, const struct snap_cell *c, bool idle, double *work);
/* The place of a column in a row's work; -1 = there is no such column. */
int terms_place(const struct terms *t, unsigned column);
/* Those of these prices that are not 0. */
void terms_prices(const struct terms *t, const struct model_coef *coef, struct terms_prices *ret);
/* Adds prices of single rows: own[row] J for a unit of the column, more than that of all. `own` is the caller's, and stays. */
void terms_own(struct terms_prices *p, const double *own, unsigned column);
/* Joules of a cell by them, at least 0. */
double terms_joules(const struct terms_prices *p, const struct snap_cell *c, bool idle);
/* The columns that there are, bent ones too. */
model_columns terms_columns(const struct terms *t, const struct snapshot *s, const struct weights *w);
/* Of the bases, time and perf events. */
model_columns terms_counted(const struct snapshot *s);
/* The price of a base at the mean state of the interval. `all` is the work of all rows. */
double terms_price(const struct terms *t, const struct model_coef *c, const double *all, unsigned base);

#endif
