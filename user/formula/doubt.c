/* SPDX-License-Identifier: Apache-2.0 */
/* How far a row's energy may be from the truth (docs/attribution.md). Statistics alone give the error of
 * coefficients of a true model. Work that no counter sees is covered by a comparison: how much does the answer
 * change when only points of little power, or only points of much power, are used? Between no power and the least
 * power seen, the line may bend.
 *
 * * * A row's energy is its part of the prediction for all rows, times the energy measured above idle. An error that
 * all rows share cancels out; an error of idle power does not. */
#include <math.h>
#include "model.h"

#define NINE_IN_TEN 1.645 /* deviations to either side that hold 90 % of a normal distribution */
#define INDEPENDENT 10.0 /* errors are averaged over at most so many points: unseen work comes in phases */
#define FEW 2.0 /* the error of a point belongs to a few rows, not evenly to all */
#define BENT 0.25 /* relative error of a price where no power was seen */

/* Neighbouring points have similar errors. */
static double repeated(const struct model_solution *s)
{
	return fmax(s->n / INDEPENDENT, 1);
}

/* g'Cg */
static double variance(const struct model_solution *s, const double *g)
{
	double sum = 0;

	for (unsigned i = 0; i < COLUMNS; i++) {
		if (!(s->columns >> i & 1))
			continue;
		for (unsigned k = 0; k < COLUMNS; k++)
			sum += g[i] * g[k] * s->cov[i][k];
	}
	return sum;
}

/* The least power above idle that was seen. */
static double lowest_dynamic(const struct model_fit *f)
{
	return model_dynamic(&f->s.coef, f->lowest.rate);
}

/* A row's joules in another explanation. */
static double joules_by(const struct model_doubt *d, const struct model_coef *c, const double *did)
{
	double all = model_dynamic(c, d->all);

	return all > 0 ? fmax(d->joules - c->c[COL_IDLE] * d->seconds, 0) * model_dynamic(c, did) / all : NAN;
}

double model_row_doubt(const struct model_doubt *d, const double *did)
{
	const struct model_solution *s = &d->fit->s;
	double dynamic = d->dynamic;
	double mine = model_dynamic(&s->coef, did), all = model_dynamic(&s->coef, d->all);
	double g[COLUMNS], square, half = 0;

	if (!(mine > 0) || !(dynamic > 0))
		return NAN;
	g[COL_IDLE] = -d->seconds / dynamic;
	for (unsigned i = COL_BUSY; i < COLUMNS; i++)
		g[i] = did[i] / mine - d->all[i] / all;
	square = variance(s, g) * repeated(s) + d->rows * pow(FEW * s->sigma * d->seconds / dynamic, 2);
	square *= NINE_IN_TEN * NINE_IN_TEN;
	square += pow(NINE_IN_TEN * d->skew, 2);
	square += pow(BENT * lowest_dynamic(d->fit) * d->seconds / dynamic, 2);
	for (unsigned i = 0; i < OTHERS; i++) {
		double other = s->has_other[i] ? joules_by(d, &s->other[i], did) : NAN;

		half = fmax(half, fabs(other * all / (mine * dynamic) - 1)); /* fmax takes the number */
	}
	return sqrt(square + half * half);
}

double model_idle_doubt(const struct model_fit *f)
{
	const struct model_solution *s = &f->s;
	double idle = s->coef.c[COL_IDLE], half = 0, square;

	if (!(idle > 0))
		return NAN;
	for (unsigned i = 0; i < OTHERS; i++)
		if (s->has_other[i])
			half = fmax(half, fabs(s->other[i].c[COL_IDLE] - idle));
	square = NINE_IN_TEN * NINE_IN_TEN * s->cov[COL_IDLE][COL_IDLE] * repeated(s);
	return sqrt(square + half * half + pow(BENT * lowest_dynamic(f), 2)) / idle;
}
