/* SPDX-License-Identifier: Apache-2.0 */
/* Rows with a price of their own (docs/attribution.md): what a program does that nobody counts makes its work cost more or less than
 * the same counts of others. The price of a row is the common one and its own part, which is taken to be within a deviation that
 * all rows share and that is learned from them (random effects; the step is that of Dempster, Laird and Rubin, 1977). Only
 * the rows that do most have one. */
#include <math.h>
#include <string.h>
#include "model.h"

#define OWN_S 30.0 /* over which it is told who does most */
#define MORE 4.0 /* times what the least one does: then another row takes its place */
#define WITHIN 0.1 /* of the mean price, before anything is known, and ... */
#define WITHIN_ROWS 1.0 /* ... for how many rows that counts */
#define WITHIN_MOST 0.5
#define WITHIN_WAIT \
	0.03 /* the same by COL_SERVED, which is not learned: the usual is about as far from the most for all rows */
#define STEP 4.0 /* times the usual, up and down: a row whose usual moves by more does something else */

static unsigned find(const struct model_own *o, uint64_t row)
{
	unsigned k = 0;

	while (k < MODEL_OWN && o->row[k] != row)
		k++;
	return k;
}

/* One of 64 bits: most rows have no place, and are told from those that have by it. */
static uint64_t bit_of(uint64_t row)
{
	return 1ull << (row * 0x9e3779b97f4a7c15u >> 58);
}

/* Takes the place from the row that has it: what that did is of rows without a price of their own. */
static void clear(struct model_fit *f, unsigned place)
{
	const unsigned column = COL_OWN + place;

	for (unsigned i = 0; i < MODEL_WINDOW; i++)
		f->window[i].rate[column] = 0;
	f->open.rate[column] = f->lowest.rate[column] = 0;
	for (unsigned i = 0; i < COLUMNS; i++) {
		f->old.xx[column][i] = f->old.xx[i][column] = 0;
		f->s.cov[column][i] = f->s.cov[i][column] = f->s.assumed[column][i] = f->s.assumed[i][column] = 0;
	}
	f->old.xy[column] = 0;
	f->s.coef.c[column] = 0;
	for (unsigned b = 0; b < f->n_without; b++)
		f->without[b].c[column] = 0;
}

/* What the row did in COL_SERVED, times `factor`. It is a part of what all rows did. */
static void rescale_point(struct model_point *p, unsigned column, double factor)
{
	const double more = (factor - 1) * p->rate[column];

	p->rate[COL_SERVED] += more;
	p->rate[column] += more;
}

static void rescale_sums(struct model_sums *s, unsigned own, double factor)
{
	const double more = factor - 1, both = s->xx[own][COL_SERVED], square = s->xx[own][own];

	for (unsigned i = 0; i < COLUMNS; i++) {
		double *with_own = i < own ? &s->xx[own][i] : &s->xx[i][own];

		*(i < COL_SERVED ? &s->xx[COL_SERVED][i] : &s->xx[i][COL_SERVED]) += more * *with_own;
		*with_own *= factor;
	}
	s->xx[COL_SERVED][COL_SERVED] += more * (both + more * square);
	s->xx[own][COL_SERVED] = factor * (both + more * square);
	s->xx[own][own] = factor * factor * square;
	s->xy[COL_SERVED] += more * s->xy[own];
	s->xy[own] *= factor;
}

/* So that the prices predict the same. */
static void rescale_price(struct model_coef *c, unsigned column, double factor)
{
	c->c[column] = (c->c[column] - (factor - 1) * c->c[COL_SERVED]) / factor;
}

static void rescale_covariance(double (*cov)[COLUMNS], unsigned own, double factor)
{
	const double more = factor - 1, both = cov[own][COL_SERVED], square = cov[own][own];

	for (unsigned i = 0; i < COLUMNS; i++)
		cov[own][i] = cov[i][own] = (cov[own][i] - more * cov[COL_SERVED][i]) / factor;
	cov[own][own] = (square - 2 * more * both + more * more * cov[COL_SERVED][COL_SERVED]) / (factor * factor);
}

/* What is usual of a row is known better now. What was learned by the value before is told by the new one. */
static void rescale(struct model_fit *f, unsigned place, double factor)
{
	const unsigned column = COL_OWN + place;

	for (unsigned i = 0; i < MODEL_WINDOW; i++)
		rescale_point(&f->window[i], column, factor);
	rescale_point(&f->open, column, factor);
	rescale_point(&f->lowest, column, factor);
	rescale_sums(&f->old, column, factor);
	rescale_price(&f->s.coef, column, factor);
	rescale_covariance(f->s.cov, column, factor);
	rescale_covariance(f->s.assumed, column, factor);
	for (unsigned b = 0; b < f->n_without; b++)
		rescale_price(&f->without[b], column, factor);
	f->own.rate[place] *= factor;
}

static void tell_by(struct model_fit *f, unsigned place, double usual)
{
	const double before = f->own.usual[place];

	if (!(usual > 0) || usual == before)
		return;
	f->own.usual[place] = usual;
	if (!(before > 0))
		return;
	if (before < STEP * usual && usual < STEP * before)
		rescale(f, place, before / usual);
	else
		clear(f, place);
}

/* What rows with a place do. */
static void follow(struct model_fit *f, double seconds, const struct model_own_rows *rows)
{
	const double part = fmin(seconds / OWN_S, 1);
	struct model_own *o = &f->own;
	uint64_t placed = 0;

	for (unsigned k = 0; k < MODEL_OWN; k++) {
		o->rate[k] *= 1 - part;
		placed |= bit_of(o->row[k]);
	}
	for (unsigned i = 0; i < rows->n; i++) {
		const unsigned k = rows->row[i] && placed & bit_of(rows->row[i]) ? find(o, rows->row[i]) : MODEL_OWN;

		rows->place[i] = (uint8_t)k;
		if (k < MODEL_OWN && rows->usual)
			tell_by(f, k, rows->usual[i]);
		if (k < MODEL_OWN && seconds > 0)
			o->rate[k] += part * rows->did[i] / seconds;
	}
}

/* Gives the row without a place that does most one that is free, or that of one that does much less. */
static bool place_one(struct model_fit *f, double seconds, struct model_own_rows *rows)
{
	struct model_own *o = &f->own;
	unsigned most = rows->n, least = 0;

	for (unsigned i = 0; i < rows->n; i++)
		if (rows->row[i] && rows->place[i] == MODEL_OWN && rows->did[i] > 0 &&
		    (most == rows->n || rows->did[i] > rows->did[most]))
			most = i;
	for (unsigned k = 1; k < MODEL_OWN; k++)
		if (!o->row[k] || (o->row[least] && o->rate[k] < o->rate[least]))
			least = k;
	if (most == rows->n || (o->row[least] && !(rows->did[most] > MORE * o->rate[least] * seconds)))
		return false;
	if (o->row[least])
		clear(f, least);
	for (unsigned i = 0; i < rows->n; i++)
		if (rows->place[i] == least)
			rows->place[i] = MODEL_OWN;
	o->row[least] = rows->row[most];
	o->rate[least] = rows->did[most] / seconds;
	o->usual[least] = rows->usual ? rows->usual[most] : 0;
	rows->place[most] = (uint8_t)least;
	return true;
}

void model_own_place(struct model_fit *f, unsigned column, double seconds, struct model_own_rows *rows)
{
	unsigned placed = 0;

	if (f->own.column != column) {
		for (unsigned k = 0; k < MODEL_OWN; k++)
			clear(f, k);
		f->own = (struct model_own){ .column = column };
	}
	follow(f, seconds, rows);
	while (!(f->open.seconds > 0) && seconds > 0 && placed < MODEL_OWN && place_one(f, seconds, rows))
		placed++;
}

double model_own_within(const struct model_fit *f)
{
	if (f->own.column == COL_SERVED)
		return WITHIN_WAIT;
	return f->own.within > 0 ? f->own.within : WITHIN;
}

void model_own_learn(struct model_fit *f, const struct model_sums *s, const struct model_prior *prior)
{
	const double share = s->xx[prior->share_column][COL_IDLE];
	const double price = share > 0 ? (s->xy[COL_IDLE] - f->s.coef.c[COL_IDLE] * s->n) / share : 0;
	double sum = WITHIN_ROWS * WITHIN * WITHIN, n = WITHIN_ROWS;

	if (!model_has_own(&f->choice) || f->own.column == COL_SERVED || !(price > 0))
		return;
	for (unsigned i = COL_OWN; i < COLUMNS; i++) {
		if (!(f->s.cov[i][i] > 0))
			continue;
		sum += (pow(f->s.coef.c[i], 2) + f->s.cov[i][i]) / (price * price);
		n++;
	}
	f->own.within = fmin(sqrt(sum / n), WITHIN_MOST);
}
