/* SPDX-License-Identifier: Apache-2.0 */
/* Power of a domain = idle + sum of coefficient x rate, learned from points of half a second or more
 * (docs/attribution.md, formula model). The last MODEL_WINDOW points are kept one by one; older ones
 * are sums that lose half their weight in MODEL_HALF_LIFE_NS. When the model errs much more than it
 * used to, all but the newest points are forgotten. */
#include <math.h>
#include <string.h>
#include "model.h"

#define ROBUST 3.0 /* deviations beyond which a point weighs less */
#define SETTLED 20 /* points before a model can be called wrong */
#define USUAL 32 /* the usual error is a mean of about so many points */
#define WRONG 9.0 /* times the usual square: the point is missed */
#define WRONG_SHARE 0.03 /* ... if the error is also more than this part of the mean power */
#define STRIKES 4 /* points missed, less points met, that prove a model wrong; it begins anew with these points */
#define AT_ONCE 3.0 /* times the miss of share: the most that one point tells against the model, which learns from it */
#define SKEW 0.005 /* from which a point weighs less */
#define DEAD_COUNTS 1000.0 /* counts that must be missing */

/* In which the weight of a moment's power falls by e. Leakage that follows the dynamic power with the time T, as the part L of it,
 * is the part L / (1 + L) of the power that is remembered for T / (1 + L). */
#define HEAT_S 4.0 /* the first of the times ... */
#define HEAT_NEXT 1.25 /* ... and what each is of the one before */

#define START_LEAST 0.001 /* of the heat at the start: it counts no more */

static double heat_s(unsigned which)
{
	return HEAT_S * pow(HEAT_NEXT, which);
}

double model_miss(const struct model_coef *c, const struct model_point *p)
{
	return p->watts - model_idle(c, p->rate) - model_dynamic(c, p->rate);
}

/* Less weight for a point whose energy and counts are of different times, because a CPU was slow to answer. */
double model_skew_weight(const struct model_point *p)
{
	return 1 / (1 + pow(p->skew / SKEW, 2));
}

/* A point far off the line says little about the line. */
static double weight_of(const struct model_fit *f, const struct model_point *p)
{
	double miss = f->ready ? fabs(model_miss(&f->s.coef, p)) : 0;

	return model_skew_weight(p) * (miss > ROBUST * f->s.sigma ? ROBUST * f->s.sigma / miss : 1);
}

static void decay(struct model_sums *s, double factor)
{
	for (unsigned i = 0; i < COLUMNS; i++) {
		for (unsigned k = 0; k <= i; k++)
			s->xx[i][k] *= factor;
		s->xy[i] *= factor;
	}
	s->yy *= factor;
	s->n *= factor;
}

/* When the window is full, its oldest point becomes part of the sums, unless it lacks a column that is in use. Sums that lack one teach
 * nothing, and begin anew with a point that has it. */
static void push(struct model_fit *f, const struct model_point *p)
{
	struct model_point *place = &f->window[f->next];

	if (f->n_window < MODEL_WINDOW) {
		f->n_window++;
	} else if (!(f->s.columns & ~place->columns)) {
		if (f->s.columns & ~f->old.columns)
			memset(&f->old, 0, sizeof(f->old));
		f->old.columns = f->old.n > 0 ? f->old.columns & place->columns : place->columns;
		model_add_point(&f->old, place, weight_of(f, place));
	}
	*place = *p;
	f->next = (f->next + 1) % MODEL_WINDOW;
}

const struct model_point *model_nth(const struct model_fit *f, unsigned n)
{
	return &f->window[(f->next + MODEL_WINDOW - f->n_window + n) % MODEL_WINDOW];
}

void model_sum_window(const struct model_fit *f, model_columns columns, unsigned from, unsigned to,
		      struct model_sums *ret)
{
	model_clear_sums(ret, columns);
	for (unsigned i = from; i < to; i++) {
		const struct model_point *p = model_nth(f, i);

		if ((p->columns & columns) == columns)
			model_add_point(ret, p, weight_of(f, p));
	}
}

void model_sum_all(const struct model_fit *f, model_columns columns, struct model_sums *ret)
{
	model_sum_window(f, columns, 0, f->n_window, ret);
	if (f->old.n > 0 && (f->old.columns & columns) == columns)
		model_add_sums(ret, &f->old);
}

static void fit(struct model_fit *f, model_columns had, model_columns known, const struct model_prior *prior,
		struct model_scratch *work)
{
	struct model_shape shape = model_in_use(&f->choice, had, prior), all = shape;

	if (f->s.columns & ~had) /* a counter is gone: what was known of misses is of another model */
		f->held.scores = 0;
	if (!prior->narrow)
		all.columns |= had & (known | (prior->exits ? COLUMN(prior->exits) : 0));
	model_sum_all(f, all.columns, &work->all);
	f->ready = model_solve(&work->all, &shape, prior, &f->s, &f->s) &&
		   model_covariance(&work->all, &all, prior, &f->s) && f->points >= MODEL_READY;
	model_own_learn(f, &work->all, prior);
	model_take_possible(f, had, &shape, prior, work);
}

static void begin_anew(struct model_fit *f)
{
	memset(&f->old, 0, sizeof(f->old));
	memset(&f->s, 0, sizeof(f->s));
	f->n_window = f->n_window < STRIKES - 1 ? f->n_window : STRIKES - 1; /* and the point at hand */
	f->points = f->n_window;
	memset(f->choice.since, 0, sizeof(f->choice.since));
	f->strikes = 0;
	f->usual = 0;
	f->ready = false;
	f->relearned++;
}

/* Compares a point's error, before the point is learned from, with the usual error. */
static void check_error(struct model_fit *f, const struct model_point *p)
{
	const struct model_solution *s = &f->s;
	double square, least;

	if (!f->ready || (p->columns & s->columns) != s->columns || p->skew > 2 * SKEW)
		return;
	square = pow(model_miss(&s->coef, p), 2);
	least = fmax(WRONG * f->usual, pow(WRONG_SHARE * s->mean_watts, 2));
	if (square > least && f->points >= SETTLED)
		f->strikes++;
	else if (f->strikes)
		f->strikes--;
	/* large errors raise the usual error slowly */
	square = f->usual > 0 ? fmin(square, WRONG * f->usual) : square;
	f->usual += (square - f->usual) / fmin(f->points, USUAL);
	if (f->strikes >= STRIKES)
		begin_anew(f);
}

static double running(double mean, double value, unsigned n)
{
	return mean + (value - mean) / (n < MODEL_HELD ? n : MODEL_HELD);
}

/* What the model and formula share make of a point that neither has seen. Share's idle power is the prior's. */
static void hold_out(struct model_fit *f, const struct model_point *p, const struct model_prior *prior)
{
	struct model_held *h = &f->held;
	double idle = fmin(prior->idle_watts, p->watts), rate = p->rate[prior->share_column];

	if (h->share_column != prior->share_column)
		*h = (struct model_held){ .share_column = prior->share_column };
	if (p->skew > 2 * SKEW)
		return;
	if (f->ready && h->share_rate > 0 && (p->columns & f->s.columns) == f->s.columns) {
		const double model = fabs(model_miss(&f->s.coef, p)),
			     share = fabs(p->watts - idle - h->share_watts / h->share_rate * rate);

		h->score[h->scores++ % MODEL_WINDOW] = model / model_point_deviation(&f->s, p);
		h->points++;
		h->model = running(h->model, model, h->points);
		h->share = running(h->share, share, h->points);
		h->recent_model += (fmin(model, AT_ONCE * fmax(share, h->recent_share)) - h->recent_model) /
				   fmin(h->points, MODEL_RECENT);
		h->recent_share += (share - h->recent_share) / fmin(h->points, MODEL_RECENT);
		h->dynamic = running(h->dynamic, p->watts - idle, h->points);
	}
	h->share_watts = h->share_watts * (1 - 1.0 / MODEL_WINDOW) + (p->watts - idle) * p->seconds;
	h->share_rate = h->share_rate * (1 - 1.0 / MODEL_WINDOW) + rate * p->seconds;
}

static void close_point(struct model_fit *f, const struct model_prior *prior, struct model_scratch *work)
{
	struct model_point *p = &f->open;

	if (!f->lowest_ns || p->watts <= f->lowest.watts || f->last_ns - f->lowest_ns > MODEL_LOWEST_NS) {
		f->lowest = *p;
		f->lowest_ns = f->last_ns;
	}
	hold_out(f, p, prior);
	check_error(f, p);
	push(f, p);
	f->points++;
	model_choose(f, p->columns, prior, work);
	fit(f, p->columns, p->counted, prior, work);
	for (unsigned i = 0; i < MODEL_HEATS; i++)
		f->heat[i] = p->watts + (f->age_s > 0 ? (f->heat[i] - p->watts) * exp(-p->seconds / heat_s(i)) : 0);
	f->age_s += p->seconds;
	memset(p, 0, sizeof(*p));
}

/* Mean over an interval of what falls by e in each `s` seconds, and is 1 when it begins. */
static double mean_left(double seconds, double s)
{
	return seconds > 0 ? s / seconds * (1 - exp(-seconds / s)) : 1;
}

double model_own_heat(const struct model_fit *f, double seconds)
{
	return 1 - mean_left(seconds, heat_s(f->heat_at));
}

void model_point_heat(struct model_point *p, unsigned which)
{
	const double left = exp(-p->age_s / heat_s(which));

	p->rate[COL_HEAT] = p->heat[which];
	p->rate[COL_START] = left < START_LEAST ? 0 : left * mean_left(p->seconds, heat_s(which));
}

void model_set_heat(const struct model_fit *f, struct model_point *p)
{
	double watts = p->watts;

	p->age_s = f->age_s;
	memcpy(p->heat, f->heat, sizeof(p->heat));
	model_point_heat(p, f->heat_at);
	if (f->age_s > 0 && f->ready) /* what the prices say: that of the sensor would explain itself */
		watts = model_idle(&f->s.coef, p->rate) + model_dynamic(&f->s.coef, p->rate);
	for (unsigned i = 0; i < MODEL_HEATS; i++)
		p->heat[i] = f->age_s > 0 ? watts + (f->heat[i] - watts) * mean_left(p->seconds, heat_s(i)) : watts;
	p->rate[COL_HEAT] = p->heat[f->heat_at];
}

void model_take_heat(struct model_fit *f, unsigned which)
{
	f->heat_at = which;
	for (unsigned i = 0; i < MODEL_WINDOW; i++)
		model_point_heat(&f->window[i], which);
	model_point_heat(&f->lowest, which);
	model_point_heat(&f->open, which);
	memset(&f->old, 0, sizeof(f->old));
}

void model_look_back(struct model_fit *f, uint64_t end_ns)
{
	if (end_ns < f->last_ns)
		memset(f, 0, sizeof(*f));
}

void model_skip(struct model_fit *f)
{
	memset(&f->open, 0, sizeof(f->open));
}

static void join(struct model_point *open, const struct model_point *p)
{
	double seconds = open->seconds + p->seconds;

	open->counted = p->counted;
	open->columns = open->seconds > 0 ? open->columns & p->columns : p->columns;
	open->watts = (open->watts * open->seconds + p->watts * p->seconds) / seconds;
	for (unsigned i = 0; i < COLUMNS; i++)
		open->rate[i] = (open->rate[i] * open->seconds + p->rate[i] * p->seconds) / seconds;
	for (unsigned i = 0; i < MODEL_HEATS; i++)
		open->heat[i] = (open->heat[i] * open->seconds + p->heat[i] * p->seconds) / seconds;
	open->age_s = p->age_s;
	open->skew = (open->skew * open->seconds + p->skew * p->seconds) / seconds;
	open->seconds = seconds;
}

void model_learn(struct model_fit *f, const struct model_point *p, const struct model_prior *prior, uint64_t end_ns,
		 struct model_scratch *work)
{
	if (f->last_ns)
		decay(&f->old, exp2(-(double)(end_ns - f->last_ns) / (double)MODEL_HALF_LIFE_NS));
	f->last_ns = end_ns;
	for (unsigned i = 0; i < SCHEMA_MAX_EVENTS; i++)
		if (p->rate[COL_EVENT + i] > 0 && p->rate[COL_BUSY] > 0)
			f->per_busy[i] = p->rate[COL_EVENT + i] / p->rate[COL_BUSY];
	join(&f->open, p);
	if (f->open.seconds * 1e9 >= (double)MODEL_POINT_NS)
		close_point(f, prior, work);
	else if ((p->columns & f->s.columns) != f->s.columns)
		fit(f, p->columns, p->counted, prior,
		    work); /* a counter is gone: the model is fitted without it at once */
}

model_columns model_alive(const struct model_fit *f, const struct model_point *p, model_columns columns)
{
	for (unsigned i = 0; i < SCHEMA_MAX_EVENTS; i++)
		if (!(p->rate[COL_EVENT + i] > 0) && f->per_busy[i] * p->rate[COL_BUSY] * p->seconds >= DEAD_COUNTS)
			for (unsigned k = COL_EVENT + i; k < COL_MISSES; k += BASES)
				columns &= ~COLUMN(k);
	return columns;
}
