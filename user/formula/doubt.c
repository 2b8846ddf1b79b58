/* SPDX-License-Identifier: Apache-2.0 */
/* How far a row's energy may be from the truth (docs/attribution.md). A row's energy is its part of the prediction for
 * all rows, times the energy measured above idle. An error that all rows share cancels out; an error of idle power does
 * not. The deviations that follow from the fit are corrected by how often they held: the nine-in-ten quantile of past
 * misses over the deviation that was stated before each (a conformal interval). */
#include <math.h>
#include "model.h"

#define NINE_IN_TEN 1.645 /* deviations to either side that hold 90 % of a normal distribution */
#define ENOUGH 9 /* past misses, for their quantile */
#define WIDER 4.0 /* at most so much wider than the fit says, and ... */
#define UNTESTED 3.0 /* while there are too few past misses */
#define NARROWER 1.4 /* ... at least this part of it */
#define INDEPENDENT 5.0 /* points after which errors that come in phases do not average out any more */
#define MISFIT 16.0 /* a miss that comes in phases is the work of few rows, not of all alike */
#define NOISE 2.0 /* a miss of the sensor is of all rows alike */

#define LEAST 1e-5 /* of the mean power: counters of energy move in units */
#define NOT_CLAIMED 0.01 /* relative range of a row or of idle power below which nothing is claimed */
#define BENT 0.25 /* relative error of a price at less power than was seen, at most, and ... */
#define BENT_PER_MISS 100.0 /* ... by how much points miss the line that there is, of the dynamic power */
#define GOES_ON 1.25 /* of the bend of prices that goes on below the least power seen */
#define CENTRE 0.5 /* of states that are parts of one: terms.c */

/* g'Cg over the columns of the covariance */
static double variance(const struct model_solution *s, const double *g)
{
	unsigned at[COLUMNS], n = 0;
	double sum = 0;

	for (model_columns left = s->cov_columns; left; left &= left - 1)
		if (g[__builtin_ctzll(left)] != 0)
			at[n++] = (unsigned)__builtin_ctzll(left);
	for (unsigned i = 0; i < n; i++) {
		double row = g[at[i]] * s->cov[at[i]][at[i]];

		for (unsigned k = 0; k < i; k++)
			row += 2 * g[at[k]] * s->cov[at[i]][at[k]];
		sum += g[at[i]] * row;
	}
	return fmax(sum, 0);
}

double model_point_deviation(const struct model_solution *s, const struct model_point *p)
{
	return sqrt(variance(s, p->rate) + s->sigma * s->sigma);
}

double model_autocorrelation(const struct model_fit *f)
{
	double before = 0, product = 0, square = 0;

	for (unsigned i = 0; i < f->n_window; i++) {
		double miss = model_miss(&f->s.coef, model_nth(f, i)) * model_skew_weight(model_nth(f, i));

		product += miss * before;
		square += miss * miss;
		before = miss;
	}
	return square > 0 ? fmin(fmax(product / square, 0), 1) : 0;
}

/* What the stated deviations must be multiplied by to have held. */
double model_spread(const struct model_held *h)
{
	unsigned n = h->scores < MODEL_WINDOW ? h->scores : MODEL_WINDOW, rank;
	double sorted[MODEL_WINDOW];

	if (n < ENOUGH)
		return UNTESTED;
	for (unsigned i = 0; i < n; i++) {
		unsigned k = i;

		for (; k > 0 && sorted[k - 1] > h->score[i]; k--)
			sorted[k] = sorted[k - 1];
		sorted[k] = h->score[i];
	}
	rank = (unsigned)ceil(0.9 * (n + 1));
	return fmin(fmax(sorted[rank > n ? n - 1 : rank - 1] / NINE_IN_TEN, NARROWER), WIDER);
}

/* W by which idle power is wrong when prices at the least power seen have stopped to bend, or bend as much again, down to
 * where nothing runs. */
static double bend_goes_on(const struct model_fit *f)
{
	static const unsigned whole[] = { BEND_LOAD, BEND_TRAFFIC }; /* states that end where nothing runs */
	double watts = 0;

	for (unsigned b = 0; b < sizeof(whole) / sizeof(whole[0]); b++) {
		for (unsigned i = 0; i < BASES; i++) {
			unsigned bent = COL_BENT + whole[b] * BASES + i;

			watts += f->s.coef.c[bent] * (CENTRE * f->lowest.rate[COL_BASE + i] + f->lowest.rate[bent]);
		}
	}
	return fabs(watts);
}

/* W by which idle power may be wrong because the line bends where no point was seen. */
static double bent_below(const struct model_fit *f)
{
	double lowest = model_dynamic(&f->s.coef, f->lowest.rate);
	double mean = fmax(f->s.mean_watts - f->s.coef.c[COL_IDLE], 0);
	double unseen = mean > 0 ? fmin(BENT, BENT_PER_MISS * f->s.sigma / mean) * fmax(lowest, 0) : 0;

	return fmax(unseen, GOES_ON * bend_goes_on(f));
}

/* How far the row's part is from that of the column by which formula share splits. It counts as far as that column
 * predicts as well as the prices do; and in full in memory where others are in use beside it: a bend that no column follows
 * looks like them. */
static double other_way(const struct model_doubt *d, const double *did, double part)
{
	const struct model_held *h = &d->fit->held;
	model_columns others = d->fit->s.columns & COLUMNS_OF_BASES & ~COLUMN(h->share_column);
	double all = d->all[h->share_column];

	if (!h->points || !(h->share > 0) || !(all > 0))
		return 0;
	return fabs(did[h->share_column] / all / part - 1) * (d->narrow && others ? 1 : fmin(h->model / h->share, 1));
}

double model_row_doubt(const struct model_doubt *d, const double *did, double part)
{
	const struct model_solution *s = &d->fit->s;
	double dynamic = d->dynamic;
	double mine = model_dynamic(&s->coef, did), all = model_dynamic(&s->coef, d->all), got = part * all;
	double g[COLUMNS], square, point = s->sigma * d->seconds / dynamic;

	if (!(got > 0) || !(dynamic > 0)) /* by the prices, nothing cost anything */
		return 1;
	for (unsigned i = 0; i < COL_BASE; i++)
		g[i] = -d->state[i] * d->seconds / dynamic;
	for (unsigned i = COL_BASE; i < COLUMNS; i++)
		g[i] = did[i] / got - d->all[i] / all;
	square = variance(s, g) * (1 + d->phases * s->n / INDEPENDENT);
	square += point * point * (NOISE + MISFIT * d->phases * d->rows);
	square *= pow(NINE_IN_TEN * d->spread, 2);
	square += pow(NINE_IN_TEN * d->skew, 2) + pow(bent_below(d->fit) * d->seconds / dynamic, 2);
	square += pow(other_way(d, did, part), 2);
	return fmax(sqrt(square), NOT_CLAIMED) + fabs(mine / got - 1);
}

double model_idle_doubt(const struct model_fit *f, const struct model_doubt *d)
{
	double g[COLUMNS] = { 0 }, idle = 0, square;

	for (unsigned i = 0; i < COL_BASE; i++) {
		g[i] = d->state[i];
		idle += f->s.coef.c[i] * d->state[i];
	}
	if (!(idle > 0))
		return NAN;
	square = variance(&f->s, g) * (1 + f->s.n / INDEPENDENT) * pow(NINE_IN_TEN * d->spread, 2);
	square += pow(bent_below(f), 2) + pow(LEAST * f->s.mean_watts, 2);
	return fmax(sqrt(square) / idle, NOT_CLAIMED);
}
