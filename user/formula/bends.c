/* SPDX-License-Identifier: Apache-2.0 */
/* Which bends of prices are in use (docs/attribution.md). The window is cut into MODEL_BLOCKS stretches of time. Each
 * stretch is predicted by what the others teach, with the columns in use and with one bend more or less. The change is
 * made when the points held out are predicted better by it, by more than chance would do. */
#include <math.h>
#include <string.h>
#include "model.h"

#define LEAST 6
#define CHANGES 3 /* at most, at a point */
#define HOLD 8
#define EVERY_TURN 40 /* up to so many points all bends are tried at each point, then one */
#define GAIN 0.9
#define DEVIATIONS 2.2
#define DROP 1.0

static model_columns columns_of(unsigned trial)
{
	if (trial < TRY_BASE)
		return COLUMN(COL_HEAT);
	if (trial < TRY_BEND)
		return COLUMN(COL_BASE + trial - TRY_BASE);
	if (trial == TRY_ALL)
		return (COLUMN(BASES) - 1) << COL_BASE;
	return COLUMNS_OF_BEND((trial - TRY_BEND) % BENDS);
}

/* A bend is of the bases in use only. */
struct model_shape model_in_use(const struct model_choice *c, model_columns had, const struct model_prior *prior)
{
	struct model_shape s = { COLUMN(COL_IDLE) | COLUMN(prior->share_column),
				 c->in_use >> TRY_BEND & ~(c->in_use >> TRY_FREE) & ((1u << BENDS) - 1) };
	model_columns bases;

	for (unsigned i = 0; i < TRY_FREE; i++)
		if (c->in_use >> i & 1)
			s.columns |= columns_of(i);
	bases = s.columns >> COL_BASE & (COLUMN(BASES) - 1);
	for (unsigned b = 0; b < BENDS; b++)
		s.columns &= ~(COLUMNS_OF_BEND(b) & ~(bases << (COL_BENT + b * BASES)));
	s.columns &= had;
	return s;
}

/* Misses of the points held out, by what the others teach. False when a stretch cannot be predicted. */
static bool hold_out(const struct model_fit *f, const struct model_shape *shape, const struct model_prior *prior,
		     struct model_scratch *work, double *ret)
{
	for (unsigned b = 0; b < MODEL_BLOCKS; b++) {
		unsigned from = f->n_window * b / MODEL_BLOCKS, to = f->n_window * (b + 1) / MODEL_BLOCKS;

		work->train = work->all;
		for (unsigned k = 0; k < MODEL_BLOCKS; k++)
			if (k != b)
				model_add_sums(&work->train, &work->block[k]);
		if (!model_solve(&work->train, shape, prior, &f->s, &work->trial))
			return false;
		for (unsigned i = from; i < to; i++) {
			const struct model_point *p = model_nth(f, i);

			ret[i] = (p->columns & work->all.columns) == work->all.columns ?
					 fabs(model_miss(&work->trial.coef, p)) * model_skew_weight(p) :
					 0;
		}
	}
	return true;
}

struct verdict {
	double ratio; /* mean error with the other columns, over that with those in use */
	double deviations; /* by how many of its standard deviations the error falls */
};

static struct verdict compare(const double *now, const double *then, unsigned n)
{
	double sum = 0, sum_then = 0, square = 0, fall, deviation;

	for (unsigned i = 0; i < n; i++) {
		sum += now[i];
		sum_then += then[i];
		square += pow(now[i] - then[i], 2);
	}
	fall = (sum - sum_then) / n;
	deviation = sqrt(fmax(square / n - fall * fall, 0) / n);
	return (struct verdict){ sum > 0 ? sum_then / sum : 1, deviation > 0 ? fall / deviation : 0 };
}

/* The bases that are time and perf events. */
static unsigned counted(const struct model_fit *f)
{
	return (unsigned)(model_nth(f, f->n_window - 1)->counted >> COL_BASE);
}

static unsigned changed(const struct model_choice *c, unsigned trial, unsigned all)
{
	return trial == TRY_ALL ? c->in_use | all << TRY_BASE : c->in_use ^ 1u << trial;
}

/* True when the change pays. Notes the error with it over that without. */
static bool try_one(struct model_fit *f, unsigned which, const double *now, model_columns had,
		    const struct model_prior *prior, struct model_scratch *work, double *ret_ratio)
{
	struct model_choice other = f->choice;
	bool drop = f->choice.in_use >> which & 1;
	struct model_shape shape, before = model_in_use(&f->choice, had, prior);
	double then[MODEL_WINDOW];
	struct verdict v;

	other.in_use = changed(&f->choice, which, counted(f));
	shape = model_in_use(&other, had, prior);
	if ((shape.columns == before.columns && shape.joint == before.joint) ||
	    (drop && f->points < f->choice.since[which] + HOLD) || !hold_out(f, &shape, prior, work, then))
		return false;
	v = compare(now, then, f->n_window);
	f->choice.error[which] = drop ? 1 / v.ratio : v.ratio;
	*ret_ratio = v.ratio;
	if (drop && which >= TRY_BASE && which < TRY_BEND && !prior->narrow)
		return v.ratio < GAIN && v.deviations > DEVIATIONS;
	return drop ? v.ratio <= DROP : v.ratio < GAIN && v.deviations > DEVIATIONS;
}

static void sum_blocks(const struct model_fit *f, model_columns had, struct model_scratch *work)
{
	memset(&work->all, 0, sizeof(work->all));
	if (f->old.n > 0 && (f->old.columns & had) == had)
		work->all = f->old;
	work->all.columns = had;
	for (unsigned b = 0; b < MODEL_BLOCKS; b++)
		model_sum_window(f, had, f->n_window * b / MODEL_BLOCKS, f->n_window * (b + 1) / MODEL_BLOCKS,
				 &work->block[b]);
}

/* Makes the best change that pays. False when none does. */
static bool change_one(struct model_fit *f, unsigned tries, model_columns had, const struct model_prior *prior,
		       struct model_scratch *work)
{
	struct model_shape shape = model_in_use(&f->choice, had, prior);
	double now[MODEL_WINDOW], best = INFINITY, ratio;
	unsigned change = TRIALS;

	if (!hold_out(f, &shape, prior, work, now))
		return false;
	for (unsigned i = 0; i < tries; i++) {
		unsigned which = f->choice.turn;

		f->choice.turn = (f->choice.turn + 1) % TRIALS;
		if (had & columns_of(which) && try_one(f, which, now, had, prior, work, &ratio) && ratio < best) {
			best = ratio;
			change = which;
		}
	}
	if (change == TRIALS)
		return false;
	f->choice.in_use = changed(&f->choice, change, counted(f));
	f->choice.since[change] = f->points;
	return true;
}

void model_choose(struct model_fit *f, model_columns had, const struct model_prior *prior, struct model_scratch *work)
{
	unsigned tries = f->points < EVERY_TURN ? TRIALS : 2;

	if (!f->choice.begun) {
		f->choice.begun = true;
		f->choice.in_use = prior->narrow ? 0 : counted(f) << TRY_BASE;
	}
	if (f->n_window < LEAST)
		return;
	sum_blocks(f, had, work);
	for (unsigned i = 0; i < CHANGES && change_one(f, tries, had, prior, work); i++)
		;
}
