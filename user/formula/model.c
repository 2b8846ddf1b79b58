/* SPDX-License-Identifier: Apache-2.0 */
/* Formula model. Per domain, power is regressed on the counts (fit.c). A row's weight is the energy that the model
 * predicts for its counts. The energy measured above idle is split by these weights, so the ledger closes. Until the
 * model has enough points, weights and idle power are those of formula share. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/event_find.h"
#include "charge.h"
#include "terms.h"
#include "waits.h"
#include "wall_charge.h"

#define WEIGHT_SUM 0x1p52 /* about the sum of a domain's weights */
#define MIN_POINT_NS 1000000 /* a shorter point says nothing: energy counters move once in a millisecond */
#define JOULES_MIN 1e-12 /* range of a believable prediction for an interval */
#define JOULES_MAX 1e12
#define MAX_WATTS 1e6
#define MAX_PPM 1e9
#define LOSSY 0.005 /* of the busy time: its counts may be missing */
#define LEARNING 30 /* points in which the model must be better than formula share by more than chance would do ... */
#define SURELY 0.7 /* ... its errors are at most this part of those of share */
#define CLEARLY 1.25 /* times those of share: from there on share splits, after that. Noise misses both alike */
#define LOW_BY_NOISE 2.0 /* deviations of a point's miss by which the smallest power of many is too low */
#define GUESS 0.25 /* uncertainty from which a value is called estimated */

_Static_assert((int)TRIALS == (int)SNAP_TRIALS, "model.h tries what snapshot.h can tell");

struct formula {
	struct formula_options options;
	struct charge charge;
	struct weights share, blend;
	struct model_fit *fit; /* [domain] */
	struct model_scratch *work;
	struct waits waits;
	struct terms terms; /* of the domain at hand */
	unsigned cap_rows;
	struct model_point now; /* the interval of the domain at hand */
	/* Work of the rows on the CPUs of the domain at hand, row by row: terms.width values each (terms.h). */
	double *did; /* [cap_rows * WORK_MOST] */
	double all[COLUMNS]; /* of all rows: 0, CPU-seconds, counts */
	struct model_own_rows rows; /* room for cap_rows */
	double *own; /* [cap_rows]: what a unit of its work costs more than that of all, J */
	double noise; /* model_noise_part() of the domain at hand */
	bool whole; /* the interval of the domain at hand was measured in full */
	double lossy_s; /* time with incomplete counts */
};

static void model_destroy(struct formula *f)
{
	if (!f)
		return;
	charge_free(&f->charge);
	weights_free(&f->share);
	weights_free(&f->blend);
	terms_free(&f->terms);
	waits_free(&f->waits);
	free(f->fit);
	free(f->work);
	free(f->did);
	free(f->rows.row);
	free(f->rows.did);
	free(f->rows.place);
	free(f->own);
	free(f);
}

static struct formula *model_create(const struct formula_options *o)
{
	struct formula *f = calloc(1, sizeof(*f));

	if (f)
		f->options = *o;
	return f;
}

/* Room for rows, whose work is not known yet. */
static int reserve_rows(struct formula *f, unsigned n_rows)
{
	unsigned cap = n_rows + n_rows / 2 + 16;

	if (f->cap_rows && f->cap_rows >= n_rows)
		return 0;
	free(f->did);
	free(f->rows.row);
	free(f->rows.did);
	free(f->rows.place);
	free(f->own);
	f->did = calloc(cap, WORK_MOST * sizeof(*f->did));
	f->rows.row = calloc(cap, sizeof(*f->rows.row));
	f->rows.did = calloc(cap, sizeof(*f->rows.did));
	f->rows.place = calloc(cap, sizeof(*f->rows.place));
	f->own = calloc(cap, sizeof(*f->own));
	f->cap_rows = f->did && f->rows.row && f->rows.did && f->rows.place && f->own ? cap : 0;
	return f->cap_rows ? 0 : -ENOMEM;
}

static int prepare(struct formula *f, const struct snapshot *s)
{
	bool anew;
	int rc = charge_prepare(&f->charge, s, &anew);

	if (rc)
		return rc;
	if (anew || !f->fit) {
		waits_free(&f->waits);
		free(f->fit);
		f->fit = calloc(s->schema->n_domains + 1, sizeof(*f->fit));
	}
	if (!f->work)
		f->work = calloc(1, sizeof(*f->work));
	if (!f->fit || !f->work || reserve_rows(f, s->n_rows) || terms_reserve(&f->terms, s) ||
	    waits_take(&f->waits, s))
		return -ENOMEM;
	f->terms.usual = f->waits.usual;
	f->terms.most = f->waits.most;
	rc = weights_reserve(&f->share, s);
	return rc ? rc : weights_reserve(&f->blend, s);
}

static const double *work_of(const struct formula *f, unsigned row)
{
	return f->did + (size_t)row * f->terms.width;
}

static void add_row(struct formula *f, const struct snapshot *s, unsigned i, double *work)
{
	const struct snap_row *row = &s->rows[i];
	const bool idle = s->schema->idle_merged && row->kind == ROW_CGROUP && row->level == 0;

	for (unsigned k = 0; k < row->n_cells && row->kind != ROW_IDLE; k++) {
		const struct snap_cell *c = &s->cells[row->first_cell + k];

		if (!f->share.cpus[c->cpu])
			continue;
		terms_add(&f->terms, c, idle, work);
		if (!idle && c->quality & (QUALITY_LOST | QUALITY_PARTIAL))
			f->lossy_s += (double)c->time_ns / 1e9;
	}
}

/* Sums cells on the domain's CPUs, unless they are those of the domain before. */
static void collect(struct formula *f, const struct snapshot *s)
{
	const unsigned width = f->terms.width;
	double all[WORK_MOST] = { 0 };

	if (f->terms.same)
		return;
	f->lossy_s = 0;
	memset(f->did, 0, (size_t)s->n_rows * width * sizeof(*f->did));
	for (unsigned i = 0; i < s->n_rows; i++) {
		double *work = f->did + (size_t)i * width;

		add_row(f, s, i, work);
		for (unsigned k = 0; k < width; k++)
			all[k] += work[k];
	}
	memset(f->all, 0, sizeof(f->all));
	for (unsigned i = COL_BASE; i < COLUMNS; i++) {
		const int at = terms_place(&f->terms, i);

		f->all[i] = at >= 0 ? all[at] : 0;
	}
}

/* False when more than LOSSY of the time has incomplete counts. A smaller part is tolerated, because with multiplexed
 * counters some row always ran too shortly for every counter to have its turn. */
static bool is_whole(const struct formula *f)
{
	return f->share.whole && f->lossy_s <= LOSSY * f->all[COL_BUSY];
}

static unsigned share_column(const struct formula *f, const struct snapshot *s, unsigned d, model_columns columns)
{
	int event = s->schema->domains[d].kind == DOMAIN_DRAM ? event_find_misses(&s->schema->core) : -1;

	if (event >= 0 && columns >> (COL_EVENT + event) & 1)
		return COL_EVENT + (unsigned)event;
	event = f->options.weight == WEIGHT_TIME ? -1 : event_find_cycles(&s->schema->core);
	return event >= 0 && columns >> (COL_EVENT + event) & 1 ? COL_EVENT + (unsigned)event : COL_BUSY;
}

/* Who wakes a CPU pays (attribution.md), but not out of memory. */
static unsigned exits_column(const struct snapshot *s)
{
	for (unsigned i = 0; i < s->schema->core.n; i++)
		if (s->schema->core.ev[i].kind == EVENT_IDLE_EXITS)
			return COL_EVENT + i;
	return 0;
}

/* Rates by the counters' own time: the energy was read at other instants. */
static struct model_point point_of(const struct formula *f, const struct snapshot *s, unsigned d)
{
	const struct snap_domain *dom = &s->domains[d];
	struct model_point p = { .seconds = (double)(dom->end_ns - dom->start_ns) / 1e9 };
	unsigned online = 0;
	double counted;

	for (unsigned i = 0; i < s->schema->n_cpus; i++) {
		if (!f->share.cpus[i] || !s->cpus[i].elapsed_ns)
			continue;
		online++;
		p.skew += fabs((double)s->cpus[i].elapsed_ns / 1e9 / p.seconds - 1);
	}
	counted = online ? (double)f->share.elapsed_ns / online / 1e9 : p.seconds;
	p.skew /= online ? online : 1;
	p.watts = (double)dom->energy_uj / 1e6 / p.seconds;
	p.rate[COL_IDLE] = 1;
	p.rate[COL_AWAKE] = f->terms.awake >= 0 ? f->terms.awake : 0;
	for (unsigned i = COL_BASE; i < COLUMNS; i++)
		p.rate[i] = f->all[i] / counted;
	return p;
}

/* Who a row is as long as it lives. */
static uint64_t who(const struct snap_row *row)
{
	return row->kind == ROW_CGROUP ? row->id : UINT64_MAX - row->kind;
}

/* The rows that may have a price of their own in this domain, and what they did. */
static void find_own(struct formula *f, const struct snapshot *s, unsigned d, unsigned column, struct model_point *p)
{
	const int at = terms_place(&f->terms, column);

	f->rows.n = s->n_rows;
	f->rows.usual = column == COL_SERVED ? f->waits.usual : NULL;
	for (unsigned i = 0; i < s->n_rows; i++) {
		f->rows.row[i] = who(&s->rows[i]);
		f->rows.did[i] = work_of(f, i)[at];
	}
	model_own_place(&f->fit[d], column, p->seconds, &f->rows);
	for (unsigned i = 0; i < s->n_rows; i++)
		if (f->rows.place[i] < MODEL_OWN)
			f->all[COL_OWN + f->rows.place[i]] += f->rows.did[i];
	/* in the time of the counts, as the other rates of the point */
	for (unsigned i = COL_OWN; i < COLUMNS; i++)
		p->rate[i] = f->all[column] > 0 ? f->all[i] * (p->rate[column] / f->all[column]) : 0;
}

/* True when waits are among the columns, and misses and cycles do not stand still. */
static bool counts_waits(const struct terms *t, model_columns columns)
{
	return columns >> COL_SERVED & 1 && columns >> (COL_EVENT + t->misses) & 1 &&
	       columns >> (COL_EVENT + t->cycles) & 1;
}

static void learn(struct formula *f, struct snapshot *s, unsigned d, bool idle_fixed)
{
	struct snap_domain *dom = &s->domains[d];
	struct model_prior prior = { .idle_watts = (double)dom->idle_power_uw / 1e6, .idle_fixed = idle_fixed };
	struct model_point p;
	model_columns columns;
	bool waits;

	model_look_back(&f->fit[d], dom->end_ns);
	terms_of(&f->terms, s, &f->share, &f->fit[d]);
	collect(f, s);
	memset(f->all + COL_OWN, 0, MODEL_OWN * sizeof(*f->all));
	memset(f->rows.place, MODEL_OWN, s->n_rows); /* until they are found */
	f->whole = is_whole(f) && !(dom->quality & (QUALITY_STALE | QUALITY_PARTIAL | QUALITY_LOST));
	if (dom->end_ns < dom->start_ns + MIN_POINT_NS || !f->share.elapsed_ns) {
		model_skip(&f->fit[d]);
		return;
	}
	p = point_of(f, s, d);
	columns = model_alive(&f->fit[d], &p, terms_columns(&f->terms, s, &f->share));
	prior.narrow = s->schema->domains[d].kind == DOMAIN_DRAM;
	prior.share_column = share_column(f, s, d, columns);
	waits = prior.narrow && counts_waits(&f->terms, columns);
	if (!waits)
		columns &= ~COLUMNS_OF_WAIT;
	if (!prior.narrow || waits) {
		columns |= COLUMNS_OF_OWN;
		find_own(f, s, d, prior.narrow ? COL_SERVED : prior.share_column, &p);
	}
	model_set_heat(&f->fit[d], &p);
	f->now = p;
	if (!f->whole) {
		model_skip(&f->fit[d]);
		return;
	}
	p.counted = terms_counted(s);
	p.columns = columns;
	prior.misses = f->fit[d].misses;
	prior.own = model_own_within(&f->fit[d]);
	prior.exits = prior.narrow ? 0 : exits_column(s);
	model_learn(&f->fit[d], &p, &prior, dom->end_ns, f->work);
	model_point_heat(&f->now, f->fit[d].heat_at); /* which may be another now */
}

static uint32_t millionths(double relative)
{
	return relative >= 0 ? (uint32_t)fmin(relative * 1e6, MAX_PPM) : SNAPSHOT_UNKNOWN;
}

static struct model_doubt doubt_of(const struct formula *f, const struct snapshot *s, unsigned d)
{
	const struct snap_domain *dom = &s->domains[d];

	return (struct model_doubt){ .fit = &f->fit[d],
				     .all = f->all,
				     .misses = s->schema->domains[d].kind == DOMAIN_DRAM ? f->fit[d].misses : 0,
				     .state = f->now.rate,
				     .seconds = (double)(dom->end_ns - dom->start_ns) / 1e9,
				     .dynamic = (double)(dom->energy_uj - f->charge.idle_uj) / 1e6,
				     .skew = f->now.skew,
				     .phases = model_autocorrelation(&f->fit[d]),
				     .spread = model_spread(&f->fit[d].held),
				     .noise = f->noise,
				     .parts = &f->work->doubt };
}

/* Some rows, whose ranges are computed together. */
struct rows {
	unsigned n, row[MODEL_TOGETHER];
	const double *did[MODEL_TOGETHER];
	uint8_t own[MODEL_TOGETHER];
	double part[MODEL_TOGETHER];
};

static void tell_ranges(const struct snapshot *s, unsigned d, const struct model_doubt *doubt, struct rows *r)
{
	double range[MODEL_TOGETHER];

	if (!r->n)
		return;
	for (unsigned i = r->n; i < MODEL_TOGETHER; i++) {
		r->did[i] = r->did[0];
		r->own[i] = r->own[0];
		r->part[i] = r->part[0];
	}
	model_row_doubts(doubt, r->did, r->own, r->part, range);
	for (unsigned i = 0; i < r->n; i++)
		*snapshot_uncertainty(s, r->row[i], d) = millionths(range[i]);
	r->n = 0;
}

/* The ranges of the rows that have energy. `w` are the weights by which they got it. */
static void set_ranges(struct formula *f, const struct snapshot *s, unsigned d, const struct weights *w,
		       const struct model_doubt *doubt)
{
	struct rows r = { 0 };
	double weights = 0;

	for (unsigned i = 0; i <= s->n_rows; i++)
		weights += (double)w->weight[i];
	for (unsigned i = 0; i < s->n_rows; i++) {
		*snapshot_uncertainty(s, i, d) = SNAPSHOT_UNKNOWN;
		if (!*snapshot_energy(s, i, d))
			continue;
		r.row[r.n] = i;
		r.did[r.n] = work_of(f, i);
		r.own[r.n] = f->rows.place[i];
		r.part[r.n++] = weights > 0 ? (double)w->weight[i] / weights : 0;
		if (r.n == MODEL_TOGETHER)
			tell_ranges(s, d, doubt, &r);
	}
	tell_ranges(s, d, doubt, &r);
}

static void set_uncertainty(struct formula *f, struct snapshot *s, unsigned d, const struct weights *w)
{
	struct snap_domain *dom = &s->domains[d];
	struct model_doubt doubt = doubt_of(f, s, d);
	double error = 0, energy = 0;

	doubt.all_joules = model_dynamic(&f->fit[d].s.coef, doubt.all);
	doubt.goes_on = model_bend_goes_on(&f->fit[d]);
	model_doubt_begin(&doubt, &f->terms);
	set_ranges(f, s, d, w, &doubt);
	for (unsigned i = 0; i < s->n_rows; i++) {
		const double joules = (double)*snapshot_energy(s, i, d) / 1e6;
		const uint32_t ppm = *snapshot_uncertainty(s, i, d);

		if (ppm == SNAPSHOT_UNKNOWN)
			continue;
		error += joules * ppm / 1e6;
		energy += joules;
	}
	dom->uncertainty = energy > 0 ? error / energy : NAN;
	if (!(dom->uncertainty <= GUESS))
		dom->share_quality |= QUALITY_ESTIMATED;
}

static void set_idle(const struct formula *f, const struct snapshot *s, unsigned d, struct snap_domain *dom)
{
	const struct model_fit *m = &f->fit[d];
	const struct model_point *p = &f->now;
	struct model_doubt doubt = doubt_of(f, s, d);
	const struct model_coef *c = &m->s.coef;
	/* what the machine once drew is the most, but for being warmer or awake for longer; noise told it too low */
	double watts = model_idle(c, p->rate), most = m->lowest.watts +
						      (m->points < LEARNING ? 0 : LOW_BY_NOISE * m->s.sigma) +
						      fmax(watts - model_idle(c, m->lowest.rate), 0);

	dom->idle_power_uw = (uint64_t)(fmax(fmin(fmin(watts, most), MAX_WATTS), 0) * 1e6);
	dom->idle_uncertainty = model_idle_doubt(m, &doubt);
	dom->idle_quality = dom->quality | (dom->idle_uncertainty <= GUESS ? 0 : QUALITY_ESTIMATED);
}

/* False while formula share predicts new points better, by more than chance would do. */
static bool trusted(const struct model_fit *m)
{
	double within = m->points < LEARNING ? SURELY : CLEARLY;

	if (!m->held.points) /* no point was fit to be held out */
		return m->points >= LEARNING;
	return m->held.recent_model <= within * m->held.recent_share;
}

static void tell_learned(const struct model_fit *m, struct snap_domain *dom)
{
	const struct model_held *h = &m->held;
	bool known = h->points && h->dynamic > 0;

	dom->learned = (struct snap_learned){ .ready = m->ready && trusted(m),
					      .points = known ? h->points : 0,
					      .held_out = known ? h->model / h->dynamic : 0,
					      .held_out_share = known ? h->share / h->dynamic : 0,
					      .in_use = m->choice.in_use };
	for (unsigned i = 0; i < TRIALS; i++)
		dom->learned.error_ratio[i] = (float)m->choice.error[i];
}

/* What of the interval's energy is of no row, uJ. What lost counts would have cost is not noise. */
static int64_t noise_of(struct formula *f, const struct snapshot *s, unsigned d, double predicted)
{
	const struct snap_domain *dom = &s->domains[d];
	const double seconds = (double)(dom->end_ns - dom->start_ns) / 1e9;
	const double left = ((double)dom->energy_uj - (double)dom->idle_power_uw * seconds) / 1e6 - predicted;

	f->noise = f->whole && !f->blend.weight[s->n_rows] ? model_noise_part(&f->fit[d], seconds, left) : 0;
	return (int64_t)llround(f->noise * left * 1e6);
}

static void split_by_model(struct formula *f, struct snapshot *s, unsigned d, double predicted)
{
	const struct model_coef *c = &f->fit[d].s.coef;
	struct snap_domain *dom = &s->domains[d];
	struct terms_prices prices;

	terms_prices(&f->terms, c, &prices);
	if (model_has_own(&f->fit[d].choice)) {
		for (unsigned i = 0; i < s->n_rows; i++)
			f->own[i] = f->rows.place[i] < MODEL_OWN ? c->c[COL_OWN + f->rows.place[i]] : 0;
		terms_own(&prices, f->own, f->fit[d].own.column);
	}
	weights_blend(&f->blend, s, d, &prices, WEIGHT_SUM / predicted);
	dom->share_quality = f->blend.quality;
	charge_domain(&f->charge, s, d, &f->blend, &f->options, noise_of(f, s, d, predicted));
	dom->price.per_second = terms_price(&f->terms, c, f->all, BASE_BUSY);
	for (unsigned i = 0; i < SCHEMA_MAX_EVENTS; i++)
		dom->price.per_count[i] = terms_price(&f->terms, c, f->all, BASE_EVENT + i);
	dom->scale = ((double)dom->energy_uj - (double)f->charge.idle_uj + (double)f->charge.noise_uj) / 1e6 /
		     predicted;
	set_uncertainty(f, s, d, &f->blend);
}

static void model_domain(struct formula *f, struct snapshot *s, unsigned d)
{
	struct snap_domain *dom = &s->domains[d];
	const struct model_fit *m = &f->fit[d];
	bool idle_learned;
	double predicted;

	weights_of(&f->share, s, d, f->options.weight);
	f->noise = 0;
	f->whole = false;
	idle_learned = charge_find_idle(&f->charge, s, d, &f->share, &f->options);
	if (s->schema->domains[d].kind != DOMAIN_GPU) /* CPUs do not count work on a GPU */
		learn(f, s, d, !idle_learned);
	if (m->ready && idle_learned && trusted(m))
		set_idle(f, s, d, dom);
	tell_learned(m, dom);
	predicted = m->ready ? model_dynamic(&m->s.coef, f->all) : 0;
	if (predicted > JOULES_MIN && predicted < JOULES_MAX && trusted(m)) {
		split_by_model(f, s, d, predicted);
		return;
	}
	dom->share_quality = f->share.quality | QUALITY_ESTIMATED;
	charge_domain(&f->charge, s, d, &f->share, &f->options, 0);
	dom->price = weights_price(&f->share, s, dom->energy_uj - f->charge.idle_uj);
	if (m->ready)
		set_uncertainty(f, s, d, &f->share);
}

static int model_apply(struct formula *f, struct snapshot *s)
{
	int rc;

	snprintf(s->formula, sizeof(s->formula), "%s", formula_model.name);
	s->idle_policy = f->options.idle;
	formula_all_residual(s);
	rc = prepare(f, s);
	if (rc)
		return rc;
	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		uint64_t work;

		if (wall_charge(&f->charge, s, d, &f->share))
			continue;
		work = work_take_off(&f->charge, s, d);
		model_domain(f, s, d);
		work_put_back(&f->charge, s, d, work);
	}
	return 0;
}

const struct formula_ops formula_model = { "model", model_create, model_apply, model_destroy, NULL };
