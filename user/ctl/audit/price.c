/* SPDX-License-Identifier: Apache-2.0 */
#include "price.h"
#include <math.h>
#include <string.h>
#include "trial.h"

#define LEAST_CPUS 0.1 /* of a load beside the other: less tells nothing of what they share */
#define FITS 4 /* by then they agree to a thousandth */
#define ALIKE 1e-9 /* of what a figure varies: nothing tells it from the others */
/* What a CPU that is taken from loads draws, by what their CPUs draw: 1, but where others do not take from both alike. */
#define OF_TAKEN_VARIANCE 0.01

/* What is told of a block in one domain: what it drew, then covariates. BESIDE is audit_beside. */
enum { DRAWN, LOADS, OTHERS, BESIDE, FIGURES };

/* What a CPU of each load counts in the covariate, by state. */
struct weights {
	double of[AUDIT_STATES][AUDIT_LOADS];
};

static double loads_of(const struct audit_block *v)
{
	double sum = 0;

	for (unsigned i = 0; i < AUDIT_LOADS; i++)
		sum += v->load[i];
	return sum;
}

double audit_beside(const struct audit_block *v, unsigned state, unsigned processes)
{
	const unsigned n = processes * (unsigned)__builtin_popcount(state);
	const double loads = loads_of(v), taken = fmin(fmax(n - loads, 0), v->others);

	return n ? loads * fmax(v->others - taken / n, 0) : 0;
}

static double weighed(const struct audit_block *v, unsigned state, const struct weights *w)
{
	double sum = 0;

	for (unsigned i = 0; i < AUDIT_LOADS; i++)
		sum += w->of[state][i] * v->load[i];
	return sum;
}

static double figure(const struct audit_rounds *r, unsigned round, unsigned state, unsigned d, unsigned which,
		     const struct weights *w)
{
	const struct audit_block *v = &r->v[round][state];

	switch (which) {
	case DRAWN:
		return v->drawn[d];
	case LOADS:
		return weighed(v, state, w);
	case OTHERS:
		return v->others;
	default:
		return audit_beside(v, state, r->processes);
	}
}

/* Means over the rounds, by state. */
static void state_means(const struct audit_rounds *r, unsigned d, const struct weights *w,
			double ret[FIGURES][AUDIT_STATES])
{
	for (unsigned f = 0; f < FIGURES; f++)
		for (unsigned k = 0; k < AUDIT_STATES; k++) {
			ret[f][k] = 0;
			for (unsigned i = 0; i < r->n; i++)
				ret[f][k] += figure(r, i, k, d, f, w) / r->n;
		}
}

/* Sums of squares and products of what is left of the figures when the means of rounds and of states are taken off. */
struct left {
	double of[FIGURES][FIGURES];
};

static struct left left_of(const struct audit_rounds *r, unsigned d, const struct weights *w)
{
	double means[FIGURES][AUDIT_STATES];
	struct left s = { 0 };

	state_means(r, d, w, means);
	for (unsigned i = 0; i < r->n; i++) {
		double v[FIGURES][AUDIT_STATES], of_round[FIGURES] = { 0 };

		for (unsigned f = 0; f < FIGURES; f++)
			for (unsigned k = 0; k < AUDIT_STATES; k++) {
				v[f][k] = figure(r, i, k, d, f, w) - means[f][k];
				of_round[f] += v[f][k] / AUDIT_STATES;
			}
		for (unsigned f = 0; f < FIGURES; f++)
			for (unsigned g = 0; g < FIGURES; g++)
				for (unsigned k = 0; k < AUDIT_STATES; k++)
					s.of[f][g] += (v[f][k] - of_round[f]) * (v[g][k] - of_round[g]);
	}
	return s;
}

/* Takes a covariate into the fit (the sweep operator: Goodnight, A Tutorial on the SWEEP Operator, 1979). Then its column
 * of DRAWN is its coefficient, the rows and columns of all that were taken in are the inverse of theirs, and what is left of
 * DRAWN is the sum of squares that they do not explain. varies: its square before. False, and nothing is done, when the
 * others tell it already. */
static bool sweep(struct left *s, unsigned c, double varies)
{
	const double pivot = s->of[c][c];

	if (!(pivot > ALIKE * varies))
		return false;
	for (unsigned g = 0; g < FIGURES; g++)
		s->of[c][g] /= pivot;
	for (unsigned f = 0; f < FIGURES; f++) {
		const double times = s->of[f][c];

		if (f == c)
			continue;
		for (unsigned g = 0; g < FIGURES; g++)
			s->of[f][g] -= times * s->of[c][g];
		s->of[f][c] = -times / pivot;
	}
	s->of[c][c] = 1 / pivot;
	return true;
}

/* A first fit, which knows nothing before: what others cost, and the variance of what the figures leave. */
static double first_fit(const struct audit_rounds *r, unsigned d, const struct weights *w, double *ret_variance)
{
	struct left s = left_of(r, d, w);
	const struct left all = s;
	double each;

	sweep(&s, LOADS, all.of[LOADS][LOADS]);
	each = sweep(&s, OTHERS, all.of[OTHERS][OTHERS]) ? s.of[OTHERS][DRAWN] : 0;
	sweep(&s, BESIDE, all.of[BESIDE][BESIDE]);
	*ret_variance = fmax(s.of[DRAWN][DRAWN], 0) / ((AUDIT_STATES - 1) * (r->n - 1) - (FIGURES - 1));
	return each;
}

/* What others cost more, or less, beside loads is of the size of what the loads cost each other: the square of that, with its error.
 * each: what others cost. */
static double square_of_shared(const struct audit_rounds *r, unsigned d, double each)
{
	double sum = 0, squares = 0, cpus = 0;

	for (unsigned i = 0; i < r->n; i++) {
		double of[AUDIT_STATES], shared;

		for (unsigned k = 0; k < AUDIT_STATES; k++)
			of[k] = r->v[i][k].drawn[d] - each * r->v[i][k].others;
		shared = of[AUDIT_STATES - 1] - of[1] - of[2] + of[0];
		sum += shared / r->n;
		squares += shared * shared / r->n;
		cpus += loads_of(&r->v[i][AUDIT_STATES - 1]) / AUDIT_LOADS / r->n;
	}
	if (cpus < LEAST_CPUS)
		return 0;
	return (sum * sum + fmax(squares - sum * sum, 0) / r->n) / pow(cpus, 4);
}

/* Means of a load's CPUs, by state. */
static void load_means(const struct audit_rounds *r, unsigned load, double ret[AUDIT_STATES])
{
	for (unsigned k = 0; k < AUDIT_STATES; k++) {
		ret[k] = 0;
		for (unsigned i = 0; i < r->n; i++)
			ret[k] += r->v[i][k].load[load] / r->n;
	}
}

/* What a CPU of each load draws: alone, into p; and by state into w, which of both is what the last CPU that came draws. */
static void weigh_loads(const struct audit_rounds *r, unsigned d, struct audit_price *p, struct weights *w)
{
	const unsigned both = AUDIT_STATES - 1;
	double means[FIGURES][AUDIT_STATES], held[AUDIT_STATES], cpus[AUDIT_LOADS][AUDIT_STATES], shared;

	state_means(r, d, w, means);
	for (unsigned k = 0; k < AUDIT_STATES; k++)
		held[k] = means[DRAWN][k] - p->of[AUDIT_PRICE_EACH] * means[OTHERS][k] -
			  p->of[AUDIT_PRICE_BESIDE] * means[BESIDE][k];
	shared = held[both] - held[0];
	memset(w, 0, sizeof(*w));
	for (unsigned i = 0; i < AUDIT_LOADS; i++) {
		load_means(r, i, cpus[i]);
		p->load[i] = cpus[i][1u << i] > LEAST_CPUS ? (held[1u << i] - held[0]) / cpus[i][1u << i] : 0;
		shared -= p->load[i] * cpus[i][both];
		w->of[1u << i][i] = p->load[i];
	}
	for (unsigned i = 0; i < AUDIT_LOADS; i++)
		w->of[both][i] = cpus[i][both] > LEAST_CPUS ? p->load[i] + shared / cpus[i][both] : 0;
}

/* Takes a covariate from what was drawn. */
static void take(struct left *s, unsigned c)
{
	for (unsigned f = 0; f < FIGURES; f++)
		s->of[DRAWN][f] -= s->of[c][f];
	for (unsigned f = 0; f < FIGURES; f++)
		s->of[f][DRAWN] -= s->of[f][c];
}

/* A fit with what is known before. beside: square of what others may cost more beside loads, 0 = they do not. */
static void fit(const struct audit_rounds *r, unsigned d, const struct weights *w, double beside, double variance,
		struct audit_price *ret)
{
	/* variances of the coefficients; what is 0 has its mean, which is 1 of LOADS and else 0 */
	const double before[FIGURES] = { [LOADS] = OF_TAKEN_VARIANCE, [OTHERS] = INFINITY, [BESIDE] = beside };
	struct left s = left_of(r, d, w), all;
	bool in[FIGURES] = { false };

	take(&s, LOADS);
	all = s;
	for (unsigned c = LOADS; c < FIGURES; c++) {
		if (before[c] > 0)
			s.of[c][c] += variance / before[c];
		in[c] = before[c] > 0 && sweep(&s, c, all.of[c][c]);
	}
	for (unsigned i = 0; i < AUDIT_PRICES; i++) {
		ret->of[i] = in[OTHERS + i] ? s.of[OTHERS + i][DRAWN] : 0;
		for (unsigned k = 0; k < AUDIT_PRICES; k++)
			ret->covariance[i][k] = in[OTHERS + i] && in[OTHERS + k] ?
							variance * s.of[OTHERS + i][OTHERS + k] :
							0;
	}
}

struct audit_price audit_price_of(const struct audit_rounds *r, unsigned domain)
{
	struct weights w = { { { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 } } };
	struct audit_price p = { 0 };
	double variance, beside;

	p.of[AUDIT_PRICE_EACH] = first_fit(r, domain, &w, &variance);
	beside = square_of_shared(r, domain, p.of[AUDIT_PRICE_EACH]);
	/* what the loads draw and what others cost beside them are told by each other */
	for (unsigned i = 0; i < FITS; i++) {
		weigh_loads(r, domain, &p, &w);
		fit(r, domain, &w, beside, variance, &p);
	}
	return p;
}
