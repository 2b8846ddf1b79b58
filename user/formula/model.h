/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of model.c, terms.c, fit.c, own_price.c, bends.c, solve.c, noise.c and doubt.c: the figures learned of one domain,
 * and the least squares below them. */
#ifndef JD_MODEL_H
#define JD_MODEL_H
#include <stdbool.h>
#include <stdint.h>
#include "model/snapshot.h"

/* A base is what a row did: its time on CPUs, and its counts by their index. */
enum { BASE_BUSY, BASE_EVENT, BASES = BASE_EVENT + SCHEMA_MAX_EVENTS };

/* What can bend a price. The column of a bent base is base x (state - centre), so that the plain price is that of the
 * centre and the bend has either sign. BEND_SERVED has the centre 0, because rows have prices of their own by it. */
enum model_bend {
	BEND_LOAD, /* busy share of the domain's other CPUs while the row ran, or in the whole interval */
	BEND_CLOCK, /* (clock / the first clock seen)^2 */
	BEND_SIBLING, /* part of the row's time in which the other thread of the core was busy */
	BEND_TYPE, /* 1 on the CPUs of the second core type */
	BENDS_OF_ALL, /* those below bend the price of misses alone */
	BEND_TRAFFIC = BENDS_OF_ALL, /* misses of the whole domain while the row ran: m / (m + the first seen) */
	BEND_QUEUE, /* m / the first seen */
	BENDS_TRIED, /* each by itself; the two below say together how long a row waited for memory, and are tried as one */
	BEND_ITSELF = BENDS_TRIED, /* misses of the row itself while it ran / the first seen of the domain */
	BEND_SERVED, /* misses per cycle / those that the row has as a rule (waits.h) */
	BENDS
};

#define MODEL_OWN 24 /* rows that may have a price of their own */

/* Columns of the regression: idle, heat (part of idle that follows past power), awake (part of idle while any CPU is busy),
 * what is left of the heat at the start, the bases, the bent bases, the base of formula share of some rows (in memory: COL_SERVED). */
enum {
	COL_IDLE,
	COL_HEAT,
	COL_AWAKE,
	COL_START, /* in use with heat: by how much the heat of the first point was another than it is taken to be */
	COL_BASE,
	COL_BUSY = COL_BASE + BASE_BUSY,
	COL_EVENT = COL_BASE + BASE_EVENT,
	COL_BENT = COL_BASE + BASES,
	COL_MISSES = COL_BENT + BENDS_OF_ALL * BASES, /* a column for each bend of misses alone */
	COL_OWN = COL_MISSES + BENDS -
		  BENDS_OF_ALL, /* what a row's work costs more or less than that of all, for some rows */
	COLUMNS = COL_OWN + MODEL_OWN
};
_Static_assert(COLUMNS < 128, "a bit per column");
typedef unsigned __int128 model_columns; /* bit per column */
#define COLUMN(i) ((model_columns)1 << (i))
/* The lowest of the columns, of which there is one at least. */
static inline unsigned model_first(model_columns columns)
{
	const uint64_t low = (uint64_t)columns;

	return (unsigned)(low ? __builtin_ctzll(low) : 64 + __builtin_ctzll((uint64_t)(columns >> 64)));
}
#define COLUMNS_OF_BASES ((COLUMN(BASES) - 1) << COL_BASE)
#define COLUMNS_OF_OWN ((COLUMN(MODEL_OWN) - 1) << COL_OWN)
/* The column of a base in a bend; bends of misses have one for any base. */
static inline unsigned model_bent(unsigned bend, unsigned base)
{
	return bend < BENDS_OF_ALL ? COL_BENT + bend * BASES + base : COL_MISSES + bend - BENDS_OF_ALL;
}
#define COL_ITSELF (COL_MISSES + BEND_ITSELF - BENDS_OF_ALL)
#define COL_SERVED (COL_MISSES + BEND_SERVED - BENDS_OF_ALL)
#define COLUMNS_OF_WAIT (COLUMN(COL_ITSELF) | COLUMN(COL_SERVED))
static inline model_columns model_columns_of_bend(unsigned bend)
{
	return bend < BENDS_OF_ALL ? (COLUMN(BASES) - 1) << model_bent(bend, 0) : COLUMN(model_bent(bend, 0));
}

#define MODEL_HEATS 16 /* times over which a package may keep its heat (fit.c) */
#define MODEL_WINDOW 64 /* points kept one by one */
#define MODEL_BLOCKS 5 /* stretches of the window that are held out */
#define MODEL_POSSIBLE 4 /* bends that memory may have, and none */
#define MODEL_OTHERS (MODEL_BLOCKS + MODEL_POSSIBLE) /* prices beside those in use */
#define MODEL_POINT_NS 500000000ull /* shorter intervals are joined */
#define MODEL_HALF_LIFE_NS 900000000000ull /* of points that have left the window: 15 minutes */
#define MODEL_LOWEST_NS 3600000000000ull /* how long the smallest power is remembered */
#define MODEL_READY 4 /* points before the model is used */

/* One interval of a domain, or several joined: means over its time. */
struct model_point {
	double seconds, watts;
	double heat[MODEL_HEATS]; /* W: past power, by how long it is remembered; rate[COL_HEAT] is one of them */
	double age_s; /* since the first one began; rate[COL_START] is what is left of the heat at the start, as a part */
	double rate[COLUMNS]; /* 1, heat, part of the time, part, CPUs busy, counts per second, the same bent */
	double skew; /* by which the times of energy and of counters differ, relative */
	model_columns columns; /* those that were there */
	model_columns counted; /* of the bases: what every row has by itself, time and perf events */
};

struct model_sums {
	double n, xx[COLUMNS][COLUMNS], xy[COLUMNS], yy; /* xx: lower half */
	model_columns columns;
};

/* The knowledge before anything was learned. */
struct model_prior {
	double idle_watts;
	bool idle_fixed; /* configured, or known by the source: not to be learned */
	unsigned share_column; /* the column by which formula share would split */
	unsigned misses; /* column of misses; 0 = there is none */
	unsigned exits; /* column of exits from idle, if a wake-up can cost this domain; 0 = there is none */
	double own; /* by how much prices of rows are taken to differ, of the mean price */
	bool narrow; /* memory: what is not seen to cost is taken to cost nothing */
};

/* What is fitted. */
struct model_shape {
	model_columns columns;
	unsigned joint; /* bit per bend whose columns are in the proportion of the prices of their bases */
};

/* One way to explain the points: W; W per busy CPU; J per count. Columns without evidence are 0. */
struct model_coef {
	double c[COLUMNS];
};

struct model_solution {
	model_columns columns;
	struct model_coef coef;
	double cov[COLUMNS][COLUMNS];
	double assumed[COLUMNS][COLUMNS]; /* the part of it that the prior says, and no point has told */
	model_columns cov_columns; /* those in use; in a package, the bases that are not, too: they may still cost */
	double n; /* points behind it, by weight */
	double sigma; /* W by which a point misses, as a standard deviation */
	double mean_watts;
};

/* What a bend would teach that is not in use, since noise may hide it; what is learned without one is among them. */
struct model_possible {
	double probability;
	struct model_coef coef;
};

/* Errors of points predicted before they were learned from: a running mean over about MODEL_HELD points. */
#define MODEL_HELD 32
#define MODEL_RECENT 6
struct model_held {
	unsigned points;
	double model, share; /* W of miss, of the model and of formula share */
	double dynamic; /* W above idle */
	double recent_model, recent_share; /* the first two over about MODEL_RECENT points */
	unsigned scores; /* since the columns were others */
	double score[MODEL_WINDOW]; /* the last misses of the model, over the deviation that it stated for them */
	/* The one price of formula share: of what it split, and of what it split by. */
	unsigned share_column;
	double share_watts, share_rate;
};

/* What is tried: heat, awake, each base, each bend of all bases in proportion to their prices, and each base by
 * itself in that bend; prices of single rows; how long a row waited for memory. */
enum {
	TRY_HEAT = SNAP_TRY_HEAT,
	TRY_AWAKE = SNAP_TRY_AWAKE,
	TRY_BASE = SNAP_TRY_TIME,
	TRY_BEND = TRY_BASE + BASES,
	TRY_FREE = TRY_BEND + BENDS_TRIED,
	TRY_OWN = TRY_FREE + BENDS_OF_ALL,
	TRY_ALL, /* all bases at once */
	TRY_WAIT,
	TRIALS
};

/* How the columns in use were chosen (bends.c). */
struct model_choice {
	bool begun;
	unsigned in_use; /* bit per trial */
	unsigned turn; /* whose turn it is to be tried */
	unsigned since[TRIALS]; /* point at which it was last changed */
	double error[TRIALS]; /* held-out error with it over that without, at its last trial; 0 = never tried */
};

/* The rows that may have a price of their own: those that did most. */
struct model_own {
	uint64_t row[MODEL_OWN]; /* who it is; 0 = nobody */
	unsigned column; /* of what they did: that of formula share, or COL_SERVED */
	double rate[MODEL_OWN]; /* what it does per second, the mean of about OWN_S seconds (own_price.c) */
	double within; /* by how much prices of rows differ, of the mean price; 0 = not yet known */
	double usual[MODEL_OWN]; /* with COL_SERVED: misses per cycle by which what the row did is told; 0 = not by any */
};

/* Zeroed = nothing learned. */
struct model_fit {
	struct model_point window[MODEL_WINDOW], open, lowest;
	unsigned n_window, next; /* the points in use end before `next`, and may begin anywhere (model_nth) */
	struct model_sums old; /* points that left the window, forgotten by half-life */
	uint64_t last_ns, lowest_ns;
	bool ready;
	unsigned points; /* since it was learned anew */
	unsigned relearned; /* the times that it was learned anew because the error had grown */
	double usual; /* W^2: mean square error of points before they are learned from */
	unsigned strikes; /* points missed by much more, less the points that were met */
	struct model_held held;
	struct model_choice choice;
	struct model_own own;
	double heat[MODEL_HEATS], age_s; /* as of a point, when the open one begins; 0 = no power is known yet */
	unsigned heat_at; /* which of them is the column */
	double first_clock, first_traffic; /* counts per s of CPU time, counts per s: centres of bends; 0 = none yet */
	double beside_most; /* CPUs that were there beside one, at most */
	unsigned misses; /* column of misses; 0 = there is none */
	double per_busy[SCHEMA_MAX_EVENTS]; /* counts per CPU-second: tells a dead counter */
	struct model_solution s;
	unsigned n_without; /* of the next: 0 or MODEL_BLOCKS */
	struct model_coef without[MODEL_BLOCKS]; /* what all points but a stretch of the window teach */
	unsigned n_possible; /* of the next: 0 or MODEL_POSSIBLE */
	struct model_possible possible[MODEL_POSSIBLE];
};

/* What the ranges of all rows have in common (doubt.c). */
struct model_doubt_parts {
	unsigned used, place[COLUMNS]; /* columns in use here or there, as places in the work of a row */
	/* other prices: first what is learned without a stretch of the window, then with a bend that is possible */
	unsigned n_without, n_others;
	double price[COLUMNS], other[MODEL_OTHERS][COLUMNS]; /* of these columns */
	double per_joule[MODEL_OTHERS]; /* what a joule by other prices is as a part */
	double probability[MODEL_OTHERS]; /* of a bend */
	int misses; /* place of their column */
	unsigned columns, at[COLUMNS]; /* the columns of the covariance that all rows have */
	/* of rows with a price of their own, by their place; the last one is of those without, whose price is not known */
	int own; /* place of the base in the work of a row; -1 = no row has one */
	double own_price[MODEL_OWN + 1], own_other[MODEL_OTHERS][MODEL_OWN + 1];
	/* A row's part moves with a price by g: its work, over what it got, less what is the same for all rows. g'Cg is that of its own
	 * columns (the lower half of C), twice what they have in common with the same, and the square of the same. */
	struct model_square {
		double cov[COLUMNS * (COLUMNS + 1) / 2], same[COLUMNS], same_square;
		double own_square[MODEL_OWN + 1], own_same[MODEL_OWN + 1], own_cov[MODEL_OWN + 1][COLUMNS];
	} known, assumed; /* by all of the covariance, and by what of it no point has told */
	double deviations; /* of prices, that hold nine values in ten */
	double without; /* deviations of the jackknife that one of prices is at most */
	double point, for_all, of_one; /* misses of points: relative, and the mean square as a + b / part */
	double others; /* mean square of what is the same for all rows */
};

/* Work space of a fit, shared by all domains. */
struct model_scratch {
	struct model_sums all, block, kept, without[MODEL_BLOCKS];
	struct model_solution trial;
	struct model_doubt_parts doubt;
};

/* fit.c: forgets all when the time went back, which is another recording. */
void model_look_back(struct model_fit *f, uint64_t end_ns);
/* Learns from an interval that was measured in full; end_ns is never before that of the interval learned before. */
void model_learn(struct model_fit *f, const struct model_point *p, const struct model_prior *prior, uint64_t end_ns,
		 struct model_scratch *work);
/* Skips an interval that was not measured in full, and drops the open point that it would have been joined to. */
void model_skip(struct model_fit *f);
/* The columns in `columns`, less those of counters that stand still although they should have counted. */
model_columns model_alive(const struct model_fit *f, const struct model_point *p, model_columns columns);
/* Sums over points `from` to `to` of the window, the oldest first, of the columns they all need to have. */
void model_sum_window(const struct model_fit *f, model_columns columns, unsigned from, unsigned to,
		      struct model_sums *ret);
/* The same over all points, those that left the window too. */
void model_sum_all(const struct model_fit *f, model_columns columns, struct model_sums *ret);
/* The n-th oldest point of the window. */
const struct model_point *model_nth(const struct model_fit *f, unsigned n);
/* Heat and what is left of its start in the point's interval, as means over it; its other columns are known. */
void model_set_heat(const struct model_fit *f, struct model_point *p);
/* Makes another heat the column of a point. */
void model_point_heat(struct model_point *p, unsigned which);
/* 0 to 1: what of the heat in an interval of so many seconds is of its own power. */
double model_own_heat(const struct model_fit *f, double seconds);
/* Makes another heat the column of the window and of points to come. Sums of older points have the former one, and are forgotten. */
void model_take_heat(struct model_fit *f, unsigned which);
double model_miss(const struct model_coef *c, const struct model_point *p); /* W */
double model_skew_weight(const struct model_point *p);

/* own_price.c: what some rows did by a column, in an interval of so many seconds. The place of each row is told,
 * MODEL_OWN = it has none. Rows that do more than another one with a place take it when a point begins. */
struct model_own_rows {
	unsigned n;
	uint64_t *row; /* who they are; 0 has no place */
	double *did;
	const double *usual; /* misses per cycle by which COL_SERVED is told (waits.h); NULL: another column */
	uint8_t *place;
};
void model_own_place(struct model_fit *f, unsigned column, double seconds, struct model_own_rows *rows);
/* By how much prices of rows are taken to differ, of the mean price. */
double model_own_within(const struct model_fit *f);
/* Learns the same from the prices of a solution; by COL_SERVED it stays. */
void model_own_learn(struct model_fit *f, const struct model_sums *s, const struct model_prior *prior);

/* bends.c: tries one change of the columns in use against points held out, and takes it when it pays. `had` are the
 * columns that the newest point has. */
void model_choose(struct model_fit *f, model_columns had, const struct model_prior *prior, struct model_scratch *work);
/* Learns what memory's prices would be with a bend that is not in use, and how probable it is. The prices in use are the means of
 * all of these. */
void model_take_possible(struct model_fit *f, model_columns had, const struct model_shape *in_use,
			 const struct model_prior *prior, struct model_scratch *work);
/* True when rows have prices of their own. In memory they come with waits, since what is the most of a row is not known well. */
static inline bool model_has_own(const struct model_choice *c)
{
	return c->in_use & (1u << TRY_OWN | 1u << TRY_WAIT);
}
/* Of those columns, the ones in use. */
struct model_shape model_in_use(const struct model_choice *c, model_columns had, const struct model_prior *prior);

/* Idle power in a state: 1, heat, awake, start. */
double model_idle(const struct model_coef *c, const double *state);
/* Power above idle for rates, or joules for counts. */
double model_dynamic(const struct model_coef *c, const double *what);

#define MODEL_TOGETHER 4 /* rows whose ranges are computed together */

/* noise.c: 0 to 1, the part that is the sensor's of what an interval of so many seconds was `left` J above what idle power and the
 * prices predict. What is the sensor's is of no row. 0 while too few points tell, and of an interval that is no point by itself. */
double model_noise_part(const struct model_fit *f, double seconds, double left);

/* doubt.c: half width of the range that holds the true value 9 times in 10, relative to it; NaN when it is not
 * known. The work of a row and of all rows is in CPU-seconds and counts. */
struct model_doubt {
	const struct model_fit *fit;
	const double *all;
	unsigned misses; /* column by which memory would be split if its prices did not bend; 0 = another domain */
	const double *state; /* idle, heat, awake, start: as of a point */
	double seconds; /* of the interval */
	double dynamic; /* joules of the dynamic energy that the rows got */
	double skew; /* as of a point */
	double all_joules; /* of all rows by the prices */
	double goes_on; /* model_bend_goes_on() */
	double phases; /* model_autocorrelation() */
	double spread; /* model_spread() */
	double noise; /* model_noise_part() of the interval; 0 = the rows share out all that idle power leaves */
	struct model_doubt_parts *parts; /* owner's: room for model_doubt_begin() */
};
struct terms;
/* Fills the parts, once per interval. */
void model_doubt_begin(struct model_doubt *d, const struct terms *t);
/* Of MODEL_TOGETHER rows: their work, their places of model_own_place(), which of the dynamic energy they got as a part. Prices
 * that would have given a row another part widen the range by that. */
void model_row_doubts(const struct model_doubt *d, const double *const *did, const uint8_t *own, const double *part,
		      double *ret);
double model_idle_doubt(const struct model_fit *f, const struct model_doubt *d);
/* 0 to 1: how alike the misses of neighbouring points of the window are. Noise of the sensor is not alike. */
double model_autocorrelation(const struct model_fit *f);
/* W by which idle power is wrong when prices at the least power seen have stopped to bend, or bend as much again, down to
 * where nothing runs. */
double model_bend_goes_on(const struct model_fit *f);
/* What the stated deviations must be multiplied by to hold nine misses in ten of the past. */
double model_spread(const struct model_held *h);
/* Standard deviation, in W, that the solution states for its prediction of a point. */
double model_point_deviation(const struct model_solution *s, const struct model_point *p);

/* solve.c */
/* No points, of these columns. The rest of the matrix is left as it is. */
void model_clear_sums(struct model_sums *s, model_columns columns);
/* Copies what `columns` need, which are the copy's. */
void model_copy_sums(struct model_sums *to, const struct model_sums *from, model_columns columns);
void model_add_point(struct model_sums *s, const struct model_point *p, double weight);
/* Adds sums of the same columns. */
void model_add_sums(struct model_sums *s, const struct model_sums *more);
/* Covariance of the shape's columns by the sums, with the deviation and the prices of ret. */
bool model_covariance(const struct model_sums *s, const struct model_shape *shape, const struct model_prior *prior,
		      struct model_solution *ret);
/* Coefficients of the shape's columns for the sums. guess: deviation and prices to begin with, 0 = none; may be ret. False
 * when there is nothing to solve. The covariance is left as it is. */
bool model_solve(const struct model_sums *s, const struct model_shape *shape, const struct model_prior *prior,
		 const struct model_solution *guess, struct model_solution *ret);
/* Rows of matrices are COLUMNS long; n <= COLUMNS. */
/* x, >= 0 but where any[i], that minimizes x'Ax/2 - b'x for a symmetric positive definite A (Lawson and Hanson,
 * Solving Least Squares Problems, chapter 23). any NULL = all bound. */
void model_nnls(unsigned n, const double (*a)[COLUMNS], const double *b, const bool *any, double *ret_x);
/* Inverse of a symmetric positive definite matrix; false when it is not. */
bool model_invert(unsigned n, const double (*a)[COLUMNS], double (*ret)[COLUMNS]);

#endif
