/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of model.c, fit.c and doubt.c: the figures learned of one domain, and the least squares below
 * them. */
#ifndef JD_MODEL_H
#define JD_MODEL_H
#include <stdbool.h>
#include <stdint.h>
#include "model/schema.h"

/* Columns of the regression: idle, CPUs busy, then the configured counters by their index. */
enum { COL_IDLE, COL_BUSY, COL_EVENT, COLUMNS = COL_EVENT + SCHEMA_MAX_EVENTS };

#define MODEL_WINDOW 64 /* points kept one by one */
#define MODEL_POINT_NS 500000000ull /* shorter intervals are joined */
#define MODEL_HALF_LIFE_NS 900000000000ull /* of points that have left the window: 15 minutes */
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

/* The knowledge before anything was learned. */
struct model_prior {
	double idle_watts;
	bool idle_fixed; /* configured, or known by the source: not to be learned */
	unsigned share_column; /* the column by which formula share would split */
};

/* One way to explain the points: W; W per busy CPU; J per count. Columns without evidence are 0. */
struct model_coef {
	double c[COLUMNS];
};

/* Other ways to explain the same points; doubt.c looks at the differences between them. */
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

/* Errors of points predicted before they were learned from: a running mean over about MODEL_HELD points. */
#define MODEL_HELD 32
struct model_held {
	unsigned points;
	double model, share; /* W of miss, of the model and of formula share */
	double dynamic; /* W above idle */
	/* The one price of formula share: of what it split, and of what it split by. */
	unsigned share_column;
	double share_watts, share_rate;
};

/* Zeroed = nothing learned. */
struct model_fit {
	struct model_point window[MODEL_WINDOW], open, lowest;
	unsigned n_window, next;
	struct model_sums old; /* points that left the window, forgotten by half-life */
	uint64_t last_ns, lowest_ns;
	bool ready;
	unsigned points; /* since it was learned anew */
	unsigned relearned; /* the times that it was learned anew because the error had grown */
	double usual; /* W^2: mean square error of points before they are learned from */
	unsigned strikes; /* points missed by much more, less the points that were met */
	struct model_held held;
	double per_busy[SCHEMA_MAX_EVENTS]; /* counts per CPU-second: tells a dead counter */
	struct model_solution s;
};

/* fit.c: learns from an interval that was measured in full. */
void model_learn(struct model_fit *f, const struct model_point *p, const struct model_prior *prior, uint64_t end_ns);
/* Skips an interval that was not measured in full, and drops the open point that it would have been joined to. */
void model_skip(struct model_fit *f);
/* The columns in `columns`, less the counters that stand still although they should have counted. */
unsigned model_alive(const struct model_fit *f, const struct model_point *p, unsigned columns);

/* Power above idle for rates, or joules for counts. */
double model_dynamic(const struct model_coef *c, const double *what);

/* doubt.c: half width of the range that holds the true value 9 times in 10, relative to it; NaN when it is not
 * known. The work of a row and of all rows is in CPU-seconds and counts. */
struct model_doubt {
	const struct model_fit *fit;
	const double *all;
	double seconds, joules; /* of the interval */
	double dynamic; /* joules of the dynamic energy that the rows got */
	double skew; /* as of a point */
	double rows; /* about how many rows share the dynamic energy */
};
double model_row_doubt(const struct model_doubt *d, const double *did);
double model_idle_doubt(const struct model_fit *f);

/* fit.c: rows of matrices are COLUMNS long; n <= COLUMNS. */
/* x >= 0 that minimizes x'Ax/2 - b'x for a symmetric positive definite A (Lawson and Hanson,
 * Solving Least Squares Problems, chapter 23). */
void model_nnls(unsigned n, const double (*a)[COLUMNS], const double *b, double *ret_x);
/* Inverse of a symmetric positive definite matrix; false when it is not. */
bool model_invert(unsigned n, const double (*a)[COLUMNS], double (*ret)[COLUMNS]);

#endif
