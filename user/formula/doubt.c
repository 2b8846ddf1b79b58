/* SPDX-License-Identifier: Apache-2.0 */
/* How far a row's energy may be from the truth (docs/attribution.md). Each stretch of the window is left out once: how far
 * the row's part differs by what the others teach is how well it is known, whatever the reason. Idle power has the
 * deviations that follow from the fit, corrected by how often they held: the nine-in-ten quantile of past misses over the
 * deviation that was stated before each (a conformal interval). */
#include <math.h>
#include "model.h"

#define NINE_IN_TEN 1.645 /* deviations to either side that hold 90 % of a normal distribution */
#define ENOUGH 9 /* past misses, for their quantile */
#define WIDER 4.0 /* at most so much wider than the fit says, and ... */
#define UNTESTED 3.0 /* while there are too few past misses */
#define NARROWER 1.4 /* ... at least this part of it */
#define INDEPENDENT 5.0 /* points after which errors that come in phases do not average out any more */
#define WITHOUT 5.0 /* deviations of the jackknife that hold nine values in ten; it has only five stretches */
#define NOISE 1.0 /* a miss of a point that is of all rows alike, as of the sensor ... */
#define OF_ONE 0.6 /* ... and what is of each row by itself, by the root of its part ... */
#define IN_PHASES 20.0 /* ... which is the most of it where misses come in phases, ... */
#define BY_CHANCE 0.5 /* ... more than those of noise seem to: by so much, over the root of their number */
#define NOISE_BENT 2.0 /* the first two where prices bend: by a line, and by the mean of a state */
#define OF_ONE_BENT 0.8
#define BURSTS 3.0 /* power of a row at a moment, over its mean */
#define AVERAGE 0.3 /* of what bent prices of memory move between rows, at most, and ... */
#define AVERAGE_PER_MISS 30.0 /* ... by how much points miss, of the dynamic power */
#define STOPS 0.8 /* of what bends take or add below the least power seen */

#define LEAST 1e-5 /* of the mean power: counters of energy move in units */
#define NOT_CLAIMED 0.001 /* relative range of a row or of idle power below which nothing is claimed */
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

static double bend_at(const struct model_fit *f, unsigned bent, unsigned base)
{
	return f->s.coef.c[bent] * (CENTRE * f->lowest.rate[base] + f->lowest.rate[bent]);
}

double model_bend_goes_on(const struct model_fit *f)
{
	/* states that end where nothing runs */
	double watts = 0;

	for (unsigned i = 0; i < BASES; i++)
		watts += bend_at(f, model_bent(BEND_LOAD, i), COL_BASE + i);
	for (unsigned b = BENDS_OF_ALL; b < BENDS && f->misses; b++)
		watts += bend_at(f, model_bent(b, 0), f->misses);
	return fabs(watts);
}

/* W by which idle power may be wrong because the line bends where no point was seen. */
static double bent_below(const struct model_fit *f)
{
	double lowest = model_dynamic(&f->s.coef, f->lowest.rate);
	double mean = fmax(f->s.mean_watts - f->s.coef.c[COL_IDLE], 0);
	double unseen = mean > 0 ? fmin(BENT, BENT_PER_MISS * f->s.sigma / mean) * fmax(lowest, 0) : 0;

	return fmax(unseen, GOES_ON * model_bend_goes_on(f));
}

void model_without(struct model_doubt *d)
{
	const struct model_fit *f = d->fit;
	double idle = model_idle(&f->s.coef, d->state);

	d->columns = 0;
	for (model_columns left = f->s.columns & (COLUMN(COLUMNS) - COLUMN(COL_BASE)); left; left &= left - 1)
		d->column[d->columns++] = (unsigned)__builtin_ctzll(left);
	for (unsigned b = 0; b < f->n_without; b++) {
		double all = model_dynamic(&f->without[b], d->all);
		double more = (idle - model_idle(&f->without[b], d->state)) * d->seconds;

		d->per_joule[b] = all > 0 && d->dynamic > 0 ? (d->dynamic + more) / d->dynamic / all : 0;
	}
}

/* Mean square by which the row's part would be another had one stretch of the window not been learned from (the jackknife:
 * Efron, The Jackknife, the Bootstrap and Other Resampling Plans, 1982, chapter 3). */
static double without_a_stretch(const struct model_doubt *d, const double *did, double part)
{
	const struct model_fit *f = d->fit;
	double square = 0;

	for (unsigned b = 0; b < f->n_without; b++) {
		double joules = 0;

		for (unsigned i = 0; i < d->columns; i++)
			joules += f->without[b].c[d->column[i]] * did[d->column[i]];
		square += pow(joules * d->per_joule[b] / part - 1, 2);
	}
	return f->n_without ? square * (MODEL_BLOCKS - 1) / MODEL_BLOCKS : 1;
}

/* How far the row's part is from that of the misses alone, where prices of memory bend: what filled the queue beside a row is
 * known on average only. */
static double beside_average(const struct model_doubt *d, const double *did, double part, double point)
{
	double all = d->misses ? d->all[d->misses] : 0;

	return all > 0 && d->columns > 1 ?
		       fmin(AVERAGE, AVERAGE_PER_MISS * point) * fabs(did[d->misses] / all / part - 1) :
		       0;
}

/* Mean square of a row's part in the miss of a point, in misses. */
static double of_the_point(const struct model_doubt *d, double part)
{
	double chance = BY_CHANCE / sqrt(d->fit->n_window);

	if ((d->misses && d->columns > 1) || d->fit->s.columns >> COL_BENT)
		return NOISE_BENT + (OF_ONE_BENT + IN_PHASES * d->phases) / part;
	return NOISE + (OF_ONE + IN_PHASES * fmax(d->phases - chance, 0)) / part;
}

double model_row_doubt(const struct model_doubt *d, const double *did, double part)
{
	const struct model_solution *s = &d->fit->s;
	double g[COLUMNS], mine = 0, got = part * d->all_joules, point = s->sigma * d->seconds / d->dynamic, square;

	if (!(got > 0) || !(d->dynamic > 0)) /* by the prices, nothing cost anything */
		return 1;
	for (unsigned i = 0; i < d->columns; i++)
		mine += s->coef.c[d->column[i]] * did[d->column[i]];
	for (unsigned i = 0; i < COL_BASE; i++)
		g[i] = -d->state[i] * d->seconds / d->dynamic;
	for (unsigned i = COL_BASE; i < COLUMNS; i++)
		g[i] = did[i] / got - d->all[i] / d->all_joules;
	square = pow(WITHOUT, 2) * without_a_stretch(d, did, part) + pow(NINE_IN_TEN, 2) * variance(s, g);
	square += pow(NINE_IN_TEN * point, 2) * of_the_point(d, part);
	square += pow(NINE_IN_TEN * BURSTS * d->skew, 2) + pow(STOPS * d->goes_on * d->seconds / d->dynamic, 2);
	square += pow(beside_average(d, did, part, point), 2);
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
