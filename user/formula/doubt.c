/* SPDX-License-Identifier: Apache-2.0 */
/* How far a row's energy may be from the truth (docs/attribution.md). How well prices are known follows from the fit, but where points
 * told them, no worse than by how much others were learned without each stretch of the window. Idle power has the same deviations. They
 * are corrected by how often they held: the nine-in-ten quantile of past misses over the deviation that was stated before each (a
 * conformal interval). */
#include <math.h>
#include "terms.h"

#define NINE_IN_TEN 1.645 /* deviations to either side that hold 90 % of a normal distribution */
#define ENOUGH 9 /* past misses, for their quantile */
#define WIDER 4.0 /* at most so much wider than the fit says, and ... */
#define UNTESTED 3.0 /* while there are too few past misses */
#define NARROWER 0.8 /* ... at least this part of it */
#define IDLE_WITHOUT 2.0 /* deviations of the jackknife that those of idle power are at most, as points told it */
#define IDLE_MISS 70.0 /* misses that come in phases do not average out: their square by so much, ... */
#define IDLE_JACKKNIFE 60.0 /* ... and that of the jackknife, times how alike they are */
#define NOISY 0.015 /* of the dynamic power: points that miss by more do so by noise */
#define POSSIBLE 1.3 /* times what a possible bend would move, ... */
#define POSSIBLE_MOST 0.25 /* ... the square of which is at most this */
#define BY_CHANCE 2.0 /* misses of noise seem to come in phases: by so much, over the root of their number */
#define BURSTS 3.0 /* power of a row at a moment, over its mean */
#define AVERAGE 0.3 /* of what bent prices of memory move between rows, at most, and ... */
#define AVERAGE_PER_MISS 30.0 /* ... by how much points miss, of the dynamic power */
#define SEEN 2.0 /* deviations from which a bend is seen */
#define WARMS 0.05 /* deviation of heat that is of the interval's own power, which may have come early or late in it */
#define STOPS 0.8 /* of what bends take or add below the least power seen */

#define LEAST 1e-5 /* of the mean power: counters of energy move in units */
#define NOT_CLAIMED 0.001 /* relative range of a row or of idle power below which nothing is claimed */
#define BENT 0.06 /* relative error of a price at less power than was seen, at most, and ... */
#define BENT_PER_MISS 5.0 /* ... by how much points miss the line that there is, of the dynamic power */
#define CENTRE 0.5 /* of states that are parts of one: terms.c */

/* By how much ranges are widened, as chosen on machines of known truth (docs/accuracy.md). Points that miss by little tell that it is
 * not the sensor that is off, and nothing else widens the range there. */
struct widths {
	double straight, bent_by_clock,
		bent; /* deviations of prices that hold nine values in ten: where they do not bend, where the clock alone
			 bends them, where other states do */
	double without,
		without_bent; /* deviations of the jackknife above which those of the fit are too much: no price is
					 below zero */
	double for_all, for_all_bent; /* a miss of a point is of all rows alike, by so much (square), ... */
	double of_one; /* ... and of each row by itself, by the root of its part, ... */
	double in_phases; /* ... and more by this times their likeness, where misses come in phases */
};
enum { FINE, NOISE, SLEEPS }; /* points: fine, noisy, fine and of a package that sleeps */
static const struct widths of_package[] = {
	[FINE] = { 3, 5, 7, 2, 3, 4, 4, 0.4, 16 },
	[NOISE] = { 2.2, 3, 3, 1.2, 1.2, 0.02, 0.1, 0.1, 16 },
	[SLEEPS] = { 4, 7, 7, 3, 3, 4, 4, 0.4, 16 },
};
/* What rows do in memory is counted. */
static const struct widths of_memory[] = {
	[FINE] = { 4, 7, 7, 3, 3, 4, 4, 0.4, 2 },
	[NOISE] = { 2.6, 9, 9, 1.2, 1.2, 0.02, 0.1, 0, 2 },
};

/* The same of idle power. */
static const struct idle_widths {
	double told; /* times the square of what points told */
	double goes_on; /* of the bend of prices that goes on below the least power seen */
} idle_of_package = { 0.7, 1 }, idle_of_memory = { 1.7, 2 };

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

/* True where the bend's state takes two values: prices at both are on a line, however they bend. */
static bool has_two_states(const struct model_fit *f, unsigned bend)
{
	return bend == BEND_SIBLING || bend == BEND_TYPE || (bend == BEND_LOAD && f->beside_most <= 1);
}

double model_bend_goes_on(const struct model_fit *f)
{
	/* states that end where nothing runs */
	double watts = 0;

	for (unsigned i = 0; i < BASES && !has_two_states(f, BEND_LOAD); i++)
		watts += bend_at(f, model_bent(BEND_LOAD, i), COL_BASE + i);
	for (unsigned b = BENDS_OF_ALL; b < BENDS_TRIED && f->misses; b++)
		watts += bend_at(f, model_bent(b, 0), f->misses);
	return fabs(watts);
}

/* W by which idle power may be wrong because the line bends where no point was seen. */
static double bent_below(const struct model_fit *f, double goes_on)
{
	double lowest = model_dynamic(&f->s.coef, f->lowest.rate);
	double mean = fmax(f->s.mean_watts - f->s.coef.c[COL_IDLE], 0);
	double unseen = mean > 0 ? fmin(BENT, BENT_PER_MISS * f->s.sigma / mean) * fmax(lowest, 0) : 0;

	return fmax(unseen, goes_on * model_bend_goes_on(f));
}

/* W, a standard deviation. */
static double warms(const struct model_doubt *d)
{
	const double heat = d->fit->s.coef.c[COL_HEAT] * d->state[COL_HEAT];

	return heat > 0 && d->seconds > 0 ? WARMS * heat * model_own_heat(d->fit, d->seconds) : 0;
}

/* Other prices: the n-th. */
static const struct model_coef *other_prices(const struct model_fit *f, unsigned n)
{
	return n < f->n_without ? &f->without[n] : &f->possible[n - f->n_without].coef;
}

/* The prices in use and the others, for the columns that rows have. */
static void take_prices(struct model_doubt *d, const struct terms *t)
{
	const struct model_fit *f = d->fit;
	struct model_doubt_parts *p = d->parts;
	double idle = model_idle(&f->s.coef, d->state);

	p->n_without = f->n_without;
	p->n_others = f->n_without + f->n_possible;
	p->used = 0;
	for (unsigned column = COL_BASE; column < COL_OWN; column++) {
		const int place = terms_place(t, column);
		bool used = f->s.columns >> column & 1;

		for (unsigned b = 0; b < p->n_others && place >= 0; b++) {
			p->other[b][p->used] = other_prices(f, b)->c[column];
			used = used || p->other[b][p->used] != 0;
		}
		if (place < 0 || !used)
			continue;
		p->price[p->used] = f->s.coef.c[column];
		p->place[p->used++] = (unsigned)place;
	}
	for (unsigned b = 0; b < p->n_others; b++) {
		const struct model_coef *c = other_prices(f, b);
		double all = model_dynamic(c, d->all), more = (idle - model_idle(c, d->state)) * d->seconds;

		p->per_joule[b] = all > 0 && d->dynamic > 0 ?
					  blend(d->noise, (d->dynamic + more) / d->dynamic / all, 1 / d->all_joules) :
					  0;
		p->probability[b] = b < f->n_without ? 0 : f->possible[b - f->n_without].probability;
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

	p->own = model_has_own(&f->choice) ? terms_place(t, f->own.column) : -1;
	if (p->own < 0)
		return;
	for (unsigned k = 0; k <= MODEL_OWN; k++) {
		p->own_price[k] = k < MODEL_OWN ? f->s.coef.c[COL_OWN + k] : 0;
		for (unsigned b = 0; b < p->n_others; b++)
			p->own_other[b][k] = k < MODEL_OWN ? other_prices(f, b)->c[COL_OWN + k] : 0;
	}
}

/* How well the prices are known of the columns that rows have. */
static void take_covariance(struct model_doubt *d, const struct terms *t)
{
	const struct model_solution *s = &d->fit->s;
	struct model_doubt_parts *p = d->parts;
	const double shared = 1 - d->noise; /* rows share out what is left, as far as it is not of no row */
	const unsigned priced_by = d->misses ? d->misses : d->fit->own.column; /* the mean price is of */
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
	if (p->own >= 0 && d->all[priced_by] > 0)
		unknown = pow(model_own_within(d->fit) * d->all_joules / d->all[priced_by], 2);
	take_square(d, s->cov, column, same, unknown, &p->known);
	take_square(d, s->assumed, column, same, unknown, &p->assumed);
}

/* True when prices are seen to bend over more than two states, by one of these bends: those that are always in use are near zero where
 * they do not. */
static bool prices_bend(const struct model_fit *f, unsigned bends)
{
	const struct model_solution *s = &f->s;
	model_columns bent = 0;

	for (unsigned b = 0; b < BENDS; b++)
		bent |= !(bends >> b & 1) || has_two_states(f, b) ? 0 : model_columns_of_bend(b);
	for (model_columns left = s->columns & bent; left; left &= left - 1) {
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
	const bool waits = f->choice.in_use >> TRY_WAIT & 1; /* they tell what filled the queue beside a row */
	const bool bent_memory = d->misses && priced & (priced - 1); /* more than one */
	const bool bent_by_others = bent_memory || prices_bend(f, ~(1u << BEND_CLOCK));
	const bool bent = bent_by_others || prices_bend(f, 1u << BEND_CLOCK);
	const double chance = bent ? 0 : BY_CHANCE / sqrt(f->n_window);
	/* how long no CPU was busy is known less well than what was counted, and a stretch left out does not tell */
	const bool sleeps = f->s.columns >> COL_AWAKE & 1;
	const struct widths *w = d->misses ? &of_memory[noise ? NOISE : FINE] :
					     &of_package[noise  ? NOISE :
							 sleeps ? SLEEPS :
								  FINE];

	take_prices(d, t);
	take_own_prices(d, t);
	take_covariance(d, t);
	p->misses = bent_memory && !waits && d->all[d->misses] > 0 ? terms_place(t, d->misses) : -1;
	p->point = f->s.sigma * d->seconds / d->dynamic;
	p->deviations = bent_by_others ? w->bent : bent ? w->bent_by_clock : w->straight;
	p->without = bent ? w->without_bent : w->without;
	p->for_all = (bent ? w->for_all_bent : w->for_all) * (noise ? 1 : 1 - d->noise);
	p->of_one = w->of_one + w->in_phases * fmax(d->phases - chance, 0);
	p->others = pow(NINE_IN_TEN * BURSTS * d->skew, 2) + pow(STOPS * d->goes_on * d->seconds / d->dynamic, 2) +
		    pow(NINE_IN_TEN * warms(d) * d->seconds / d->dynamic, 2);
}

/* A value of each row. Every row's numbers are added up in the same order as if it were alone, so its range does not depend on the
 * others. */
typedef double together __attribute__((vector_size(MODEL_TOGETHER * sizeof(double))));

static inline void gather(together *to, const double *const *did, unsigned place)
{
	for (unsigned r = 0; r < MODEL_TOGETHER; r++)
		(*to)[r] = did[r][place]; /* cppcheck-suppress uninitvar ; it is set here */
}

/* Joules of the rows by the prices in use, the mean square by which the rows' parts would be others had one stretch of the window not
 * been learned from (the jackknife: Efron, The Jackknife, the Bootstrap and Other Resampling Plans, 1982, chapter 3), and that by which
 * bends move them that are possible. */
static void by_others(const struct model_doubt_parts *p, const double *const *did, const uint8_t *own,
		      const together *part, together *ret_joules, together *ret_jackknife, together *ret_possible)
{
	together mine = { 0 }, by[MODEL_OTHERS] = { 0 }, jackknife = { 0 }, possible = { 0 }, what;

	for (unsigned i = 0; i < p->used; i++) {
		gather(&what, did, p->place[i]);
		mine += p->price[i] * what;
		for (unsigned b = 0; b < p->n_others; b++)
			by[b] += p->other[b][i] * what;
	}
	for (unsigned r = 0; r < MODEL_TOGETHER && p->own >= 0; r++) {
		const double work = did[r][p->own];

		mine[r] += p->own_price[own[r]] * work;
		for (unsigned b = 0; b < p->n_others; b++)
			by[b][r] += p->own_other[b][own[r]] * work;
	}
	for (unsigned b = 0; b < p->n_others; b++) {
		together other = by[b] * p->per_joule[b] / *part - 1;

		if (b < p->n_without)
			jackknife += other * other;
		else
			possible += p->probability[b] * other * other;
	}
	*ret_joules = mine;
	*ret_jackknife = p->n_without ? jackknife * (MODEL_BLOCKS - 1) / MODEL_BLOCKS : jackknife + 1;
	*ret_possible = possible;
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
	together parts, got, joules, known, assumed, jackknife, possible, g[COLUMNS];

	for (unsigned r = 0; r < MODEL_TOGETHER; r++)
		parts[r] = part[r]; /* cppcheck-suppress uninitvar ; it is set here */
	got = parts * d->all_joules;
	by_others(p, did, own, &parts, &joules, &jackknife, &possible);
	for (unsigned i = 0; i < p->columns; i++) {
		gather(&g[i], did, p->at[i]);
		g[i] /= got;
	}
	of_prices(p, &p->known, g, did, own, &got, &known);
	of_prices(p, &p->assumed, g, did, own, &got, &assumed);
	for (unsigned r = 0; r < MODEL_TOGETHER; r++) {
		double told = fmin(fmax(known[r] - assumed[r], 0), pow(p->without, 2) * jackknife[r]), sum;

		if (!(got[r] > 0) || !(d->dynamic > 0)) { /* by the prices, nothing cost anything */
			ret[r] = 1;
			continue;
		}
		sum = p->for_all + p->of_one * fmax(1 - part[r], 0) / part[r];
		sum = pow(NINE_IN_TEN, 2) * (assumed[r] + pow(p->point, 2) * sum);
		sum += pow(p->deviations, 2) * told + pow(POSSIBLE, 2) * fmin(possible[r], POSSIBLE_MOST) + p->others;
		sum += pow(beside_average(d, did[r], part[r]), 2);
		ret[r] = fmax(sqrt(sum), NOT_CLAIMED) + fabs(joules[r] / got[r] - 1);
	}
}

/* The mean squares by which idle power would be another had one stretch of the window not been learned from, and with bends that are
 * possible. */
static void idle_by_others(const struct model_fit *f, const double *state, double idle, double *ret_jackknife,
			   double *ret_possible)
{
	*ret_jackknife = *ret_possible = 0;
	for (unsigned b = 0; b < f->n_without; b++)
		*ret_jackknife += pow(model_idle(&f->without[b], state) - idle, 2) * (MODEL_BLOCKS - 1) / MODEL_BLOCKS;
	for (unsigned b = 0; b < f->n_possible; b++)
		*ret_possible += f->possible[b].probability * pow(model_idle(&f->possible[b].coef, state) - idle, 2);
}

double model_idle_doubt(const struct model_fit *f, const struct model_doubt *d)
{
	double g[COLUMNS] = { 0 }, idle = 0, square, assumed, told, jackknife, possible;
	const struct idle_widths *w = d->misses ? &idle_of_memory : &idle_of_package;
	const double phases = fmax(d->phases - BY_CHANCE / sqrt(f->n_window), 0);

	for (unsigned i = 0; i < COL_BASE; i++) {
		g[i] = d->state[i];
		idle += f->s.coef.c[i] * d->state[i];
	}
	if (!(idle > 0))
		return NAN;
	assumed = fmax(square_of(&f->s, f->s.assumed, g), 0);
	told = fmax(variance(&f->s, g) - assumed, 0);
	idle_by_others(f, d->state, idle, &jackknife, &possible);
	if (f->n_without)
		told = fmin(told, pow(IDLE_WITHOUT, 2) * jackknife);
	square = w->told * pow(d->spread, 2) * told + assumed;
	square += phases * (IDLE_MISS * pow(f->s.sigma, 2) + IDLE_JACKKNIFE * jackknife);
	square = pow(NINE_IN_TEN, 2) * (square + pow(warms(d), 2)) + pow(POSSIBLE, 2) * possible +
		 pow(bent_below(f, w->goes_on), 2) + pow(LEAST * f->s.mean_watts, 2);
	return fmax(sqrt(square) / idle, NOT_CLAIMED);
}
