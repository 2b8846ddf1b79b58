/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of model*.c: what is learned of one domain, and the least squares below it. */
#ifndef JD_MODEL_H
#define JD_MODEL_H
#include <stdbool.h>
#include <stdint.h>
#include "../model/schema.h"

/* Columns of the regression: idle, CPUs busy, then the configured counters by their index. */
enum { COL_IDLE, COL_BUSY, COL_EVENT, COLUMNS = COL_EVENT + SCHEMA_MAX_EVENTS };

#define MODEL_WINDOW 64 /* points kept one by one */
#define MODEL_POINT_NS 500000000ull /* shorter intervals are joined */
#define MODEL_HALF_LIFE_NS 900000000000ull /* of what has left the window: 15 minutes */
#define MODEL_LOWEST_NS 3600000000000ull /* how long the smallest power is remembered */
#define MODEL_READY 4 /* points before the model is used */

/* One interval of a domain, or several joined: means over its time. */
struct model_point {
	double seconds, watts;
	double rate[COLUMNS]; /* 1, CPUs busy, counts per second */
	double skew; /* by which the times of energy and of counters differ, relative */
	unsigned columns; /* bit per column that was there */
};

struct model_sums {
	double n, xx[COLUMNS][COLUMNS], xy[COLUMNS], yy; /* xx: lower half */
	unsigned columns;
};

/* What is known before anything was learned. */
struct model_prior {
	double idle_watts;
	bool idle_fixed; /* configured, or known by the source: not to be learned */
	unsigned share_column; /* what formula share would split by */
};

/* One way to explain the points: W; W per busy CPU; J per count. Columns without evidence are 0. */
struct model_coef {
	double c[COLUMNS];
};

/* Other ways to explain the same points, for what they differ by (model_doubt.c). */
enum { OTHER_LOW, OTHER_HIGH, OTHERS };

struct model_solution {
	unsigned columns;
	struct model_coef coef;
	double cov[COLUMNS][COLUMNS];
	double n; /* points behind it, by weight */
	double sigma; /* W by which a point misses, as a standard deviation */
	double mean_watts;
	struct model_coef other[OTHERS]; /* by the points of little and of much power */
	bool has_other[OTHERS];
};

/* Zeroed = nothing learned. */
struct model_fit {
	struct model_point window[MODEL_WINDOW], open, lowest;
	unsigned n_window, next;
	struct model_sums old; /* what left the window, forgotten by half-life */
	uint64_t last_ns, lowest_ns;
	bool ready;
	unsigned points; /* since it was learned anew */
	unsigned relearned; /* how often that was because the error had grown */
	double usual; /* W^2: by which points are missed before they are learned from */
	unsigned strikes; /* points missed by much more, less those met */
	double per_busy[SCHEMA_MAX_EVENTS]; /* counts per CPU-second: tells a dead counter */
	struct model_solution s;
};

/* model_fit.c. Learns from an interval that was measured in full. */
void model_learn(struct model_fit *f, const struct model_point *p, const struct model_prior *prior, uint64_t end_ns);
/* An interval that was not: what it would have been joined to is dropped. */
void model_skip(struct model_fit *f);
/* `columns` less the counters that stand still although they should have counted. */
unsigned model_alive(const struct model_fit *f, const struct model_point *p, unsigned columns);

/* model_solve.c. Adds a point to sums over s->columns. */
void model_add_point(struct model_sums *s, const struct model_point *p, double weight);
/* Power above idle for rates, or joules for counts. */
double model_dynamic(const struct model_coef *c, const double *what);
/* Non-negative coefficients for the sums; sigma_guess 0 = none. False when there is nothing to solve. */
bool model_solve(const struct model_sums *s, const struct model_prior *prior, double sigma_guess,
		 struct model_solution *ret);

/* model_doubt.c: half widths of ranges that hold the true value 9 times in 10, relative to it; NaN
 * when nothing can be said. What a row did, what all did, in CPU-seconds and counts. */
struct model_doubt {
	const struct model_fit *fit;
	const double *all;
	double seconds, joules; /* of the interval */
	double dynamic; /* what the rows were given of them */
	double skew; /* as of a point */
	double rows; /* among how many, about, the dynamic energy is spread */
};
double model_row_doubt(const struct model_doubt *d, const double *did);
double model_idle_doubt(const struct model_fit *f);

/* model_nnls.c. Rows of matrices are COLUMNS long; n <= COLUMNS. */
/* x >= 0 that minimizes x'Ax/2 - b'x for a symmetric positive definite A (Lawson and Hanson,
 * Solving Least Squares Problems, chapter 23). */
void model_nnls(unsigned n, const double (*a)[COLUMNS], const double *b, double *ret_x);
/* Inverse of a symmetric positive definite matrix; false when it is not. */
bool model_invert(unsigned n, const double (*a)[COLUMNS], double (*ret)[COLUMNS]);

#endif
