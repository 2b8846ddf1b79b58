/* SPDX-License-Identifier: Apache-2.0 */
/* How far a row's energy may be from the truth (docs/attribution.md). How well prices are known follows from the fit, but where points
 * told them, no worse than by how much others were learned without each stretch of the window. Idle power has the deviations that
 * follow from the fit, corrected by how often they held: the nine-in-ten quantile of past misses over the deviation that was stated
 * before each (a conformal interval). */
#include <math.h>
#include "terms.h"

#define NINE_IN_TEN 1.645 /* deviations to either side that hold 90 % of a normal distribution */
#define ENOUGH 9 /* past misses, for their quantile */
#define WIDER 4.0 /* at most so much wider than the fit says, and ... */
#define UNTESTED 3.0 /* while there are too few past misses */
#define NARROWER 1.4 /* ... at least this part of it */
#define INDEPENDENT 5.0 /* points after which errors that come in phases do not average out any more */
#define STRAIGHT 2.2 /* deviations of prices that hold nine values in ten, where they do not bend, ... */
#define BENT_BY_NOISE 5.0 /* ... and where they do; ... */
#define STRAIGHT_FINE \
	4.0 /* ... the same where points miss by less than NOISY: it is not the sensor that is off then, ... */
#define BENT_FINE 7.0 /* ... and nothing else widens the range */
#define NOISY 0.015 /* of the dynamic power */
#define WITHOUT 3.0 /* deviations of the jackknife above which those of the fit are too much: no price is below zero */
#define FOR_ALL 4.0 /* a miss of a point that is not noise is of all rows alike, by so much, ... */
#define OF_ONE 0.08 /* ... and of each row by itself, by the root of its part, ... */
#define OF_ONE_FINE 0.4 /* ... more where points miss by less than NOISY: that is not the sensor's, ... */
#define IN_PHASES 30.0 /* ... and what is of each row where misses come in phases, ... */
#define BY_CHANCE 2.0 /* ... more than those of noise seem to: by so much, over the root of their number */
#define BURSTS 3.0 /* power of a row at a moment, over its mean */
#define AVERAGE 0.3 /* of what bent prices of memory move between rows, at most, and ... */
#define AVERAGE_PER_MISS 30.0 /* ... by how much points miss, of the dynamic power */
#define SEEN 2.0 /* deviations from which a bend is seen */
#define STOPS 0.8 /* of what bends take or add below the least power seen */

#define LEAST 1e-5 /* of the mean power: counters of energy move in units */
#define NOT_CLAIMED 0.001 /* relative range of a row or of idle power below which nothing is claimed */
#define BENT 0.25 /* relative error of a price at less power than was seen, at most, and ... */
#define BENT_PER_MISS 100.0 /* ... by how much points miss the line that there is, of the dynamic power */
#define GOES_ON 1.25 /* of the bend of prices that goes on below the least power seen */
#define CENTRE 0.5 /* of states that are parts of one: terms.c */

static double blend(double part, double from, double to)
{
	return from + part * (to - from);
}

/* g'Cg over the columns of the covariance; rounding can make zero slightly negative. */
static double square_of(const struct model_solution *s, const double (*cov)[COLUMNS], const double *g)
{
	unsigned at[COLUMNS], n = 0;
	double sum = 0;

	for (model_columns left = s->cov_columns; left; left &= left - 1)
		if (g[model_first(left)] != 0)
			at[n++] = model_first(left);
	for (unsigned i = 0; i < n; i++) {
		double row = g[at[i]] * cov[at[i]][at[i]];

		for (unsigned k = 0; k < i; k++)
			row += 2 * g[at[k]] * cov[at[i]][at[k]];
		sum += g[at[i]] * row;
	}
	return sum;
}

static double variance(const struct model_solution *s, const double *g)
{
	return fmax(square_of(s, s->cov, g), 0);
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

/* The prices in use and what stretches taught, for the columns that rows have. */
static void take_prices(struct model_doubt *d, const struct terms *t)
{
	const struct model_fit *f = d->fit;
	struct model_doubt_parts *p = d->parts;
	double idle = model_idle(&f->s.coef, d->state);

	p->used = 0;
	for (model_columns left = f->s.columns & (COLUMN(COL_OWN) - COLUMN(COL_BASE)); left; left &= left - 1) {
		const unsigned column = model_first(left);
		const int place = terms_place(t, column);

		if (place < 0)
			continue;
		for (unsigned b = 0; b < f->n_without; b++)
			p->without[b][p->used] = f->without[b].c[column];
		p->price[p->used] = f->s.coef.c[column];
		p->place[p->used++] = (unsigned)place;
	}
	for (unsigned b = 0; b < f->n_without; b++) {
		double all = model_dynamic(&f->without[b], d->all);
		double more = (idle - model_idle(&f->without[b], d->state)) * d->seconds;

		p->per_joule[b] = all > 0 && d->dynamic > 0 ?
					  blend(d->noise, (d->dynamic + more) / d->dynamic / all, 1 / d->all_joules) :
					  0;
	}
}

/* The covariance of a column with what is the same for all rows: idle power, and their sum. */
static double with_same(const struct model_solution *s, const double (*cov)[COLUMNS], unsigned column,
			const double *same)
{
	double sum = 0;

	for (model_columns left = s->cov_columns; left; left &= left - 1) {
		const unsigned i = model_first(left);

		sum += cov[column][i] * same[i];
	}
	return sum;
}

/* What is known of the prices of single rows. */
static void take_own(const struct model_doubt *d, const double (*cov)[COLUMNS], const unsigned *column,
		     const double *same, double unknown, struct model_square *ret)
{
	const struct model_doubt_parts *p = d->parts;

	for (unsigned k = 0; k < MODEL_OWN; k++) {
		const unsigned own = COL_OWN + k;

		ret->own_square[k] = cov[own][own];
		ret->own_same[k] = 2 * with_same(&d->fit->s, cov, own, same);
		for (unsigned i = 0; i < p->columns; i++)
			ret->own_cov[k][i] = 2 * cov[own][column[i]];
	}
	ret->own_same[MODEL_OWN] = 0;
	ret->own_square[MODEL_OWN] = unknown;
	for (unsigned i = 0; i < p->columns; i++)
		ret->own_cov[MODEL_OWN][i] = 0;
}

/* The square by which parts of rows move, as of_prices() walks over it. */
static void take_square(const struct model_doubt *d, const double (*cov)[COLUMNS], const unsigned *column,
			const double *same, double unknown, struct model_square *ret)
{
	const struct model_doubt_parts *p = d->parts;
	double *to = ret->cov;

	ret->same_square = square_of(&d->fit->s, cov, same);
	for (unsigned i = 0; i < p->columns; i++) {
		ret->same[i] = 2 * with_same(&d->fit->s, cov, column[i], same);
		for (unsigned k = 0; k <= i; k++)
			*to++ = cov[column[i]][column[k]];
	}
	if (p->own >= 0)
		take_own(d, cov, column, same, unknown, ret);
}

/* The prices of single rows; those without one have none more than the others. */
static void take_own_prices(struct model_doubt *d, const struct terms *t)
{
	const struct model_fit *f = d->fit;
	struct model_doubt_parts *p = d->parts;

	p->own = f->choice.in_use >> TRY_OWN & 1 ? terms_place(t, f->own.column) : -1;
	if (p->own < 0)
		return;
	for (unsigned k = 0; k <= MODEL_OWN; k++) {
		p->own_price[k] = k < MODEL_OWN ? f->s.coef.c[COL_OWN + k] : 0;
		for (unsigned b = 0; b < f->n_without; b++)
			p->own_without[b][k] = k < MODEL_OWN ? f->without[b].c[COL_OWN + k] : 0;
	}
}

/* How well the prices are known of the columns that rows have. */
static void take_covariance(struct model_doubt *d, const struct terms *t)
{
	const struct model_solution *s = &d->fit->s;
	struct model_doubt_parts *p = d->parts;
	const double shared = 1 - d->noise; /* rows share out what is left, as far as it is not of no row */
	double same[COLUMNS], unknown = 0;
	unsigned column[COLUMNS];

	for (unsigned i = 0; i < COLUMNS; i++)
		same[i] = -shared * (i < COL_BASE ? d->state[i] * d->seconds / d->dynamic : d->all[i] / d->all_joules);
	p->columns = 0;
	for (model_columns left = s->cov_columns & (COLUMN(COL_OWN) - COLUMN(COL_BASE)); left; left &= left - 1) {
		const int place = terms_place(t, model_first(left));

		if (place < 0)
			continue;
		column[p->columns] = model_first(left);
		p->at[p->columns++] = (unsigned)place;
	}
	/* prices of rows that have none of their own differ by as much as those of others */
	if (p->own >= 0 && d->all[d->fit->own.column] > 0)
		unknown = pow(model_own_within(d->fit) * d->all_joules / d->all[d->fit->own.column], 2);
	take_square(d, s->cov, column, same, unknown, &p->known);
	take_square(d, s->assumed, column, same, unknown, &p->assumed);
}

/* True when prices are seen to bend: those that are always in use are near zero where they do not. */
static bool prices_bend(const struct model_solution *s)
{
	for (model_columns left = s->columns & (COLUMN(COL_OWN) - COLUMN(COL_BENT)); left; left &= left - 1) {
		unsigned k = model_first(left);

		if (pow(s->coef.c[k], 2) > pow(SEEN, 2) * s->cov[k][k])
			return true;
	}
	return false;
}

void model_doubt_begin(struct model_doubt *d, const struct terms *t)
{
	const struct model_fit *f = d->fit;
	struct model_doubt_parts *p = d->parts;
	const model_columns priced = f->s.columns >> COL_BASE;
	const bool noise = f->s.sigma * d->seconds > NOISY * d->dynamic;
	const bool bent_memory = d->misses && priced & (priced - 1); /* more than one */
	const bool bent = bent_memory || prices_bend(&f->s);
	const double chance = bent ? 0 : BY_CHANCE / sqrt(f->n_window);

	take_prices(d, t);
	take_own_prices(d, t);
	take_covariance(d, t);
	p->misses = bent_memory && d->all[d->misses] > 0 ? terms_place(t, d->misses) : -1;
	p->point = f->s.sigma * d->seconds / d->dynamic;
	p->deviations = noise ? (bent ? BENT_BY_NOISE : STRAIGHT) : bent ? BENT_FINE : STRAIGHT_FINE;
	p->for_all = noise ? 0 : FOR_ALL * (1 - d->noise);
	p->of_one = (noise ? OF_ONE : OF_ONE_FINE) + IN_PHASES * fmax(d->phases - chance, 0);
	p->others = pow(NINE_IN_TEN * BURSTS * d->skew, 2) + pow(STOPS * d->goes_on * d->seconds / d->dynamic, 2);
}

/* A value of each row. Every row's numbers are added up in the same order as if it were alone, so its range does not depend on the
 * others. */
typedef double together __attribute__((vector_size(MODEL_TOGETHER * sizeof(double))));

static inline void gather(together *to, const double *const *did, unsigned place)
{
	for (unsigned r = 0; r < MODEL_TOGETHER; r++)
		(*to)[r] = did[r][place]; /* cppcheck-suppress uninitvar ; it is set here */
}

/* Joules of the rows by the prices in use, and the mean square by which the rows' parts would be others had one stretch of the window not
 * been learned from (the jackknife: Efron, The Jackknife, the Bootstrap and Other Resampling Plans, 1982, chapter 3). */
static void without_a_stretch(const struct model_doubt *d, const double *const *did, const uint8_t *own,
			      const together *part, together *ret_joules, together *ret_square)
{
	const struct model_doubt_parts *p = d->parts;
	const unsigned blocks = d->fit->n_without;
	together mine = { 0 }, by[MODEL_BLOCKS] = { 0 }, square = { 0 }, what;

	for (unsigned i = 0; i < p->used; i++) {
		gather(&what, did, p->place[i]);
		mine += p->price[i] * what;
		for (unsigned b = 0; b < blocks; b++)
			by[b] += p->without[b][i] * what;
	}
	for (unsigned r = 0; r < MODEL_TOGETHER && p->own >= 0; r++) {
		const double work = did[r][p->own];

		mine[r] += p->own_price[own[r]] * work;
		for (unsigned b = 0; b < blocks; b++)
			by[b][r] += p->own_without[b][own[r]] * work;
	}
	for (unsigned b = 0; b < blocks; b++) {
		together other = by[b] * p->per_joule[b] / *part - 1;

		square += other * other;
	}
	*ret_joules = mine;
	*ret_square = blocks ? square * (MODEL_BLOCKS - 1) / MODEL_BLOCKS : square + 1;
}

/* g'Cg of each row, where g is how its part moves with each price. */
static void of_prices(const struct model_doubt_parts *p, const struct model_square *s, const together *g,
		      const double *const *did, const uint8_t *own, const together *got, together *ret)
{
	const double *cov = s->cov;
	together sum = { 0 };

	sum += s->same_square;
	for (unsigned i = 0; i < p->columns; i++) {
		together row = { 0 };

		for (unsigned k = 0; k < i; k++)
			row += g[k] * *cov++;
		row += row + g[i] * *cov++ + s->same[i];
		sum += g[i] * row;
	}
	for (unsigned r = 0; r < MODEL_TOGETHER && p->own >= 0; r++) {
		const unsigned k = own[r];
		const double of_own = did[r][p->own] / (*got)[r];
		double with = s->own_same[k] + of_own * s->own_square[k];

		for (unsigned i = 0; i < p->columns; i++)
			with += g[i][r] * s->own_cov[k][i];
		sum[r] += of_own * with;
	}
	*ret = sum;
}

/* How far the row's part is from that of the misses alone, where prices of memory bend: what filled the queue beside a row is
 * known on average only. */
static double beside_average(const struct model_doubt *d, const double *did, double part)
{
	const struct model_doubt_parts *p = d->parts;

	return p->misses < 0 ?
		       0 :
		       fmin(AVERAGE, AVERAGE_PER_MISS * p->point) * fabs(did[p->misses] / d->all[d->misses] / part - 1);
}

void model_row_doubts(const struct model_doubt *d, const double *const *did, const uint8_t *own, const double *part,
		      double *ret)
{
	const struct model_doubt_parts *p = d->parts;
	together parts, got, joules, known, assumed, jackknife, g[COLUMNS];

	for (unsigned r = 0; r < MODEL_TOGETHER; r++)
		parts[r] = part[r]; /* cppcheck-suppress uninitvar ; it is set here */
	got = parts * d->all_joules;
	without_a_stretch(d, did, own, &parts, &joules, &jackknife);
	for (unsigned i = 0; i < p->columns; i++) {
		gather(&g[i], did, p->at[i]);
		g[i] /= got;
	}
	of_prices(p, &p->known, g, did, own, &got, &known);
	of_prices(p, &p->assumed, g, did, own, &got, &assumed);
	for (unsigned r = 0; r < MODEL_TOGETHER; r++) {
		double told = fmin(fmax(known[r] - assumed[r], 0), pow(WITHOUT, 2) * jackknife[r]), sum;

		if (!(got[r] > 0) || !(d->dynamic > 0)) { /* by the prices, nothing cost anything */
			ret[r] = 1;
			continue;
		}
		sum = pow(NINE_IN_TEN, 2) * (assumed[r] + pow(p->point, 2) * (p->for_all + p->of_one / part[r]));
		sum += pow(p->deviations, 2) * told + p->others;
		sum += pow(beside_average(d, did[r], part[r]), 2);
		ret[r] = fmax(sqrt(sum), NOT_CLAIMED) + fabs(joules[r] / got[r] - 1);
	}
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
