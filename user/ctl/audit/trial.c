/* SPDX-License-Identifier: Apache-2.0 */
#include "trial.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/statistics.h"

static double mean(const double *v, unsigned n)
{
	double sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += v[i];
	return n ? sum / n : 0;
}

/* True when the mean is above 0 by twice the half width of its interval: a ratio to less says nothing. */
static bool is_told_from_none(const double *v, unsigned n)
{
	struct statistics s = statistics_of(v, n);

	return s.mean > 2 * s.ci95 && s.mean > 0;
}

struct audit_answer audit_judge(const double *charged, const double *drawn, unsigned n, uint64_t seed)
{
	struct audit_answer a = {
		.n = n, .charged_w = mean(charged, n), .drawn_w = mean(drawn, n), .bias = NAN, .interval = { NAN, NAN }
	};
	struct interval ratio;

	if (n < AUDIT_ROUNDS_LEAST || !is_told_from_none(drawn, n))
		return a;
	ratio = bootstrap_ratio(drawn, charged, n, seed);
	if (!isfinite(ratio.low) || !isfinite(ratio.high))
		return a;
	a.known = true;
	a.bias = a.charged_w / a.drawn_w - 1;
	a.interval = (struct interval){ ratio.low - 1, ratio.high - 1 };
	return a;
}

/* A question's draw, of the difference that a load makes alone and beside the other. ratio: its CPU time beside the other by that
 * alone. */
static double draw_of(double alone, double beside, double ratio, enum audit_question q)
{
	switch (q) {
	case AUDIT_MARGINAL:
		return beside;
	case AUDIT_AVERAGE:
		return (alone + (alone * ratio + beside) / 2) / 2;
	default:
		return alone;
	}
}

static double charge_of(double alone, double beside, enum audit_question q)
{
	return q == AUDIT_ALONE ? alone : q == AUDIT_MARGINAL ? beside : (alone + beside) / 2;
}

/* The figures of a question in one round. by: what the prices of others are multiplied with and taken off, so that they are held
 * equal. */
struct pair {
	double charged, charged_by[AUDIT_PRICES];
	double drawn, drawn_by[AUDIT_PRICES];
};

/* CPUs of others by loads' CPUs that they run beside, without what of that is this load's. */
static double beside_without(const struct audit_rounds *r, const struct audit_block *v, unsigned state, unsigned load,
			     enum audit_question q)
{
	const double all = audit_beside(v, state, r->processes);
	const double own = state >> load & 1 ? all / __builtin_popcount(state) : 0;

	return all - (q == AUDIT_AVERAGE ? own / 2 : own);
}

static struct pair pair_of(const struct audit_rounds *r, unsigned round, unsigned load, unsigned d,
			   enum audit_question q)
{
	const struct audit_block *v = r->v[round];
	const unsigned own = 1u << load, both = AUDIT_STATES - 1, other = both & ~own;
	double held[AUDIT_STATES], by[AUDIT_PRICES][AUDIT_STATES];
	struct pair p = { 0 };

	for (unsigned k = 0; k < AUDIT_STATES; k++) {
		by[AUDIT_PRICE_EACH][k] = v[k].others;
		by[AUDIT_PRICE_BESIDE][k] = beside_without(r, &v[k], k, load, q);
		held[k] = v[k].drawn[d];
		for (unsigned i = 0; i < AUDIT_PRICES; i++)
			held[k] -= r->price[d].of[i] * by[i][k];
	}
	/* nor what the other load does more or less because of this one */
	for (unsigned i = 0; i < AUDIT_LOADS; i++)
		if (i != load)
			held[both] -= r->price[d].load[i] * (v[both].load[i] - v[other].load[i]);
	p.drawn = draw_of(held[own] - held[0], held[both] - held[other], r->ratio[load], q);
	for (unsigned i = 0; i < AUDIT_PRICES; i++)
		p.drawn_by[i] = draw_of(by[i][own] - by[i][0], by[i][both] - by[i][other], r->ratio[load], q);
	if (q != AUDIT_SATURATION) {
		p.charged = charge_of(v[own].charged[load][d] - v[0].charged[load][d],
				      v[both].charged[load][d] - v[other].charged[load][d], q);
		return p;
	}
	p.charged = held[both] - held[other];
	for (unsigned i = 0; i < AUDIT_PRICES; i++)
		p.charged_by[i] = by[i][both] - by[i][other];
	return p;
}

/* What a CPU of others draws, of their work that comes or goes with a load, may differ from what the rounds tell of all their work:
 * standard error, as a part of that price. */
#define OTHERS_DIFFER 0.02

/* Adds to both ends what the prices of others may be wrong by. by: watts of the drawn by a price, less those of the charged. */
static void widen(struct audit_answer *a, const struct audit_price *price, const double by[AUDIT_PRICES],
		  unsigned freedom)
{
	double square = pow(OTHERS_DIFFER * price->of[AUDIT_PRICE_EACH] * by[AUDIT_PRICE_EACH], 2), more;

	for (unsigned i = 0; i < AUDIT_PRICES; i++)
		for (unsigned k = 0; k < AUDIT_PRICES; k++)
			square += by[i] * price->covariance[i][k] * by[k];
	more = student_t(freedom) * sqrt(fmax(square, 0)) / a->drawn_w;
	a->interval.low = a->bias - sqrt(pow(a->bias - a->interval.low, 2) + more * more);
	a->interval.high = a->bias + sqrt(pow(a->interval.high - a->bias, 2) + more * more);
}

struct audit_answer audit_ask(const struct audit_rounds *r, unsigned load, unsigned domain, enum audit_question q,
			      uint64_t seed)
{
	struct audit_answer a = { .bias = NAN, .interval = { NAN, NAN } };
	double *charged = r->n ? malloc(2 * r->n * sizeof(*charged)) : NULL, *drawn;
	double charged_by[AUDIT_PRICES] = { 0 }, by[AUDIT_PRICES] = { 0 };

	if (!charged)
		return a;
	drawn = charged + r->n;
	for (unsigned i = 0; i < r->n; i++) {
		struct pair p = pair_of(r, i, load, domain, q);

		charged[i] = p.charged;
		drawn[i] = p.drawn;
		for (unsigned k = 0; k < AUDIT_PRICES; k++) {
			charged_by[k] += p.charged_by[k] / r->n;
			by[k] += p.drawn_by[k] / r->n;
		}
	}
	a = audit_judge(charged, drawn, r->n, seed);
	for (unsigned k = 0; k < AUDIT_PRICES; k++)
		by[k] = (a.bias + 1) * by[k] - charged_by[k];
	if (a.known)
		widen(&a, &r->price[domain], by, r->n - 1);
	free(charged);
	return a;
}

int audit_rounds_add(struct audit_rounds *r, const struct audit_block *blocks)
{
	if (ARRAY_ROOM(r->v, r->cap, r->n + 1))
		return -ENOMEM;
	memcpy(r->v[r->n++], blocks, sizeof(r->v[0]));
	return 0;
}

void audit_rounds_free(struct audit_rounds *r)
{
	free(r->v);
	*r = (struct audit_rounds){ 0 };
}

static double ratio_of(const struct audit_rounds *r, unsigned load)
{
	double alone = 0, beside = 0;

	for (unsigned i = 0; i < r->n; i++) {
		alone += r->v[i][1u << load].load[load];
		beside += r->v[i][AUDIT_STATES - 1].load[load];
	}
	return alone > 0 ? beside / alone : 1;
}

void audit_hold_equal(struct audit_rounds *r, unsigned n_domains, unsigned processes)
{
	r->processes = processes;
	for (unsigned i = 0; i < AUDIT_LOADS; i++)
		r->ratio[i] = ratio_of(r, i);
	if (r->n < AUDIT_ROUNDS_LEAST)
		return;
	for (unsigned d = 0; d < n_domains; d++)
		r->price[d] = audit_price_of(r, d);
}

uint64_t audit_slot_ns(uint64_t freeze_ns, double duty)
{
	return (uint64_t)((double)freeze_ns / duty);
}

uint64_t audit_instant(struct random *r, uint64_t slot_ns, uint64_t freeze_ns, uint64_t around_ns)
{
	uint64_t taken = freeze_ns + 2 * around_ns, room = slot_ns > taken ? slot_ns - taken : 0;

	return around_ns + (uint64_t)((double)(random_next(r) >> 11) / 9007199254740992.0 * (double)room);
}
