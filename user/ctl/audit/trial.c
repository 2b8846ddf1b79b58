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

/* A question's draw, of the difference that a load makes alone and beside the other. */
static double draw_of(double alone, double beside, enum audit_question q)
{
	switch (q) {
	case AUDIT_MARGINAL:
		return beside;
	case AUDIT_AVERAGE:
		return (alone + (alone + beside) / 2) / 2;
	default:
		return alone;
	}
}

static double charge_of(double alone, double beside, enum audit_question q)
{
	return q == AUDIT_ALONE ? alone : q == AUDIT_MARGINAL ? beside : (alone + beside) / 2;
}

/* The figures of a question in one round. others: by how much others did more. */
struct pair {
	double charged, drawn, others;
};

static struct pair pair_of(const struct audit_block *v, unsigned load, unsigned d, enum audit_question q)
{
	const struct audit_block *none = &v[0], *own = &v[1u << load], *both = &v[AUDIT_STATES - 1],
				 *other = &v[(AUDIT_STATES - 1) & ~(1u << load)];
	double alone = own->drawn[d] - none->drawn[d], beside = both->drawn[d] - other->drawn[d];
	struct pair p = { .drawn = draw_of(alone, beside, q) };

	p.others = draw_of(own->others - none->others, both->others - other->others, q);
	p.charged = charge_of(own->charged[load][d] - none->charged[load][d],
			      both->charged[load][d] - other->charged[load][d], q);
	if (q == AUDIT_SATURATION)
		p.charged = beside;
	return p;
}

/* Adds to both ends what the price of others may be wrong by. */
static void widen(struct audit_answer *a, double error_w, unsigned freedom)
{
	double more = (a->bias + 1) * student_t(freedom) * error_w / a->drawn_w;

	a->interval.low = a->bias - sqrt(pow(a->bias - a->interval.low, 2) + more * more);
	a->interval.high = a->bias + sqrt(pow(a->interval.high - a->bias, 2) + more * more);
}

struct audit_answer audit_ask(const struct audit_rounds *r, unsigned load, unsigned domain, enum audit_question q,
			      uint64_t seed)
{
	struct audit_answer a = { .bias = NAN, .interval = { NAN, NAN } };
	double *charged = r->n ? malloc(3 * r->n * sizeof(*charged)) : NULL, *drawn, *others;

	if (!charged)
		return a;
	drawn = charged + r->n;
	others = drawn + r->n;
	for (unsigned i = 0; i < r->n; i++) {
		struct pair p = pair_of(r->v[i], load, domain, q);

		charged[i] = p.charged;
		drawn[i] = p.drawn;
		others[i] = p.others;
	}
	a = audit_judge(charged, drawn, r->n, seed);
	if (a.known)
		widen(&a, r->price_error[domain] * mean(others, r->n), r->n - 1);
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

/* Means over the rounds, by state. */
static void state_means(const struct audit_rounds *r, unsigned d, double drawn[AUDIT_STATES],
			double others[AUDIT_STATES])
{
	for (unsigned k = 0; k < AUDIT_STATES; k++) {
		drawn[k] = others[k] = 0;
		for (unsigned i = 0; i < r->n; i++) {
			drawn[k] += r->v[i][k].drawn[d] / r->n;
			others[k] += r->v[i][k].others / r->n;
		}
	}
}

/* Sums of squares and products of what is left of `drawn` and `others` when the means of rounds and of states are taken
 * off. */
struct left {
	double ee, eo, oo;
};

static struct left left_of(const struct audit_rounds *r, unsigned d)
{
	double drawn[AUDIT_STATES], others[AUDIT_STATES];
	struct left s = { 0 };

	state_means(r, d, drawn, others);
	for (unsigned i = 0; i < r->n; i++) {
		double e[AUDIT_STATES], o[AUDIT_STATES];

		for (unsigned k = 0; k < AUDIT_STATES; k++) {
			e[k] = r->v[i][k].drawn[d] - drawn[k];
			o[k] = r->v[i][k].others - others[k];
		}
		for (unsigned k = 0; k < AUDIT_STATES; k++) {
			double left_e = e[k] - mean(e, AUDIT_STATES), left_o = o[k] - mean(o, AUDIT_STATES);

			s.ee += left_e * left_e;
			s.eo += left_e * left_o;
			s.oo += left_o * left_o;
		}
	}
	return s;
}

void audit_hold_equal(struct audit_rounds *r, unsigned n_domains)
{
	for (unsigned d = 0; d < n_domains && r->n >= AUDIT_ROUNDS_LEAST; d++) {
		const struct left s = left_of(r, d);
		double price = s.oo > 0 ? fmax(s.eo / s.oo, 0) : 0, freedom = (AUDIT_STATES - 1) * (r->n - 1) - 1;

		r->price_error[d] = s.oo > 0 ? sqrt(fmax(s.ee - price * s.eo, 0) / freedom / s.oo) : 0;
		for (unsigned i = 0; i < r->n; i++)
			for (unsigned k = 0; k < AUDIT_STATES; k++)
				r->v[i][k].drawn[d] -= price * r->v[i][k].others;
	}
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
