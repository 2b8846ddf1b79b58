/* SPDX-License-Identifier: Apache-2.0 */
/* Which bends of prices are in use (docs/attribution.md). Two are always in use in a package, and near zero until points tell
 * more (solve.c): noise would hide them for long. The window is cut into MODEL_BLOCKS stretches of time. Each
 * stretch is predicted by what the others teach, with the columns in use and with one bend more or less. The change is
 * made when the points held out are predicted better by it, by more than chance would do. */
#include <math.h>
#include <string.h>
#include "model.h"

#define LEAST 6
#define LEAST_NARROW 30 /* memory is split well without bends, and badly by those that few points tell */
#define LEAST_HEATS 20 /* of few points, a step of the load looks like heat of one time or another */
#define CHANGES 3 /* at most, at a point */
#define HOLD 8
#define EVERY_TURN 40 /* up to so many points all bends are tried at each point, then one */
#define GAIN 0.9
#define DEVIATIONS 2.2
#define GAIN_OWN 0.6
#define DEVIATIONS_OWN 3.0
#define DROP 1.0
#define GAIN_HEAT 0.97 /* of the heat of another time */
#define TURNS (TRY_OWN + 1)
#define GAIN_WAIT 0.75 /* many columns at once, which noise can seem to need */
#define DEVIATIONS_WAIT 3.0
#define SMALL_WAIT 0.001 /* of the mean power: so small an error needs no waits, and nothing beside them */
#define SMALL 0.003 /* of the mean power: an error to which no base has to be dropped */
#define NEEDED 1.25 /* times what points are missed by with a base: without it, when it is needed ... */
#define NEEDED_SMALL 0.0003 /* ... and so much of the mean power more */
#define AS_GOOD 1.05 /* of one column in the place of several */
#define SURE 100.0 /* evidence for a bend, as a logarithm, at most */

static model_columns columns_of(unsigned trial)
{
	if (trial < TRY_BASE)
		return COLUMN(COL_HEAT + trial);
	if (trial < TRY_BEND)
		return COLUMN(COL_BASE + trial - TRY_BASE);
	if (trial == TRY_OWN)
		return COLUMNS_OF_OWN;
	if (trial == TRY_ALL)
		return (COLUMN(BASES) - 1) << COL_BASE;
	if (trial == TRY_WAIT)
		return COLUMNS_OF_WAIT;
	return model_columns_of_bend((trial - TRY_BEND) % BENDS_TRIED);
}

/* A bend is of the bases in use only. */
struct model_shape model_in_use(const struct model_choice *c, model_columns had, const struct model_prior *prior)
{
	struct model_shape s = { COLUMN(COL_IDLE) | COLUMN(prior->share_column),
				 c->in_use >> TRY_BEND & ~(c->in_use >> TRY_FREE) & ((1u << BENDS_OF_ALL) - 1) };
	model_columns bases;

	for (unsigned i = 0; i < TRY_FREE; i++)
		if (c->in_use >> i & 1)
			s.columns |= columns_of(i);
	if (c->in_use >> TRY_WAIT & 1)
		s.columns |= COLUMNS_OF_WAIT;
	if (s.columns & COLUMN(COL_HEAT))
		s.columns |= COLUMN(COL_START);
	bases = s.columns >> COL_BASE & (COLUMN(BASES) - 1);
	for (unsigned b = 0; b < BENDS_OF_ALL; b++)
		s.columns &= ~(model_columns_of_bend(b) & ~(bases << model_bent(b, 0)));
	s.columns &= had;
	if (!prior->misses || !(s.columns >> prior->misses & 1))
		s.columns &= COLUMN(COL_MISSES) - 1;
	if (model_has_own(c))
		s.columns |= COLUMNS_OF_OWN & had;
	return s;
}

/* Misses of the points held out, by what the others teach, and what that is of each stretch. False when a stretch cannot
 * be predicted. */
static bool hold_out(const struct model_fit *f, const struct model_shape *shape, const struct model_prior *prior,
		     struct model_scratch *work, double *ret, struct model_coef *ret_without)
{
	for (unsigned b = 0; b < MODEL_BLOCKS; b++) {
		unsigned from = f->n_window * b / MODEL_BLOCKS, to = f->n_window * (b + 1) / MODEL_BLOCKS;

		if (!model_solve(&work->without[b], shape, prior, &f->s, &work->trial))
			return false;
		if (ret_without)
			ret_without[b] = work->trial.coef;
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

/* small: what either misses a point by at least, W. */
static struct verdict compare(const double *now, const double *then, unsigned n, double small)
{
	double sum = small * n, sum_then = sum, square = 0, fall, deviation;

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

#define OF_LOAD (1u << (TRY_BEND + BEND_LOAD) | 1u << (TRY_FREE + BEND_LOAD))
#define STANDING (1u << (TRY_BEND + BEND_LOAD) | 1u << (TRY_BEND + BEND_CLOCK))

#define IN_PLACE (1u << TRY_AWAKE | 1u << (TRY_BEND + BEND_TRAFFIC) | 1u << (TRY_BEND + BEND_QUEUE))

/* Prices that fall beside other work look like a package that is awake for all of it, and those that rise like a queue. */
static bool takes_place(const struct model_choice *c, unsigned trial, const struct model_prior *prior)
{
	unsigned in_place = prior->narrow ? 1u << TRY_AWAKE : IN_PLACE;

	return in_place >> trial & 1 && !(c->in_use >> trial & 1) && c->in_use & OF_LOAD;
}

static unsigned changed(const struct model_choice *c, unsigned trial, unsigned all, const struct model_prior *prior)
{
	unsigned in_use = c->in_use ^ 1u << trial;

	if (takes_place(c, trial, prior))
		return in_use & ~OF_LOAD;
	if (trial == TRY_ALL)
		return c->in_use | all << TRY_BASE;
	if (trial == TRY_HEAT && in_use & 1u << TRY_HEAT && !prior->narrow)
		return in_use | all << TRY_BASE; /* what leakage made noise of may have hidden one */
	if (!prior->narrow && !(in_use & (IN_PLACE | OF_LOAD)))
		in_use |= OF_LOAD & STANDING;
	return in_use;
}

static bool pays(const struct verdict *v)
{
	return v->ratio < GAIN && v->deviations > DEVIATIONS;
}

/* True when points are predicted better by what missed `then` than by prices that do not bend in load: where noise hides
 * both, being awake explains nothing. */
static bool beats_straight(const struct model_fit *f, const double *then, model_columns had,
			   const struct model_prior *prior, struct model_scratch *work)
{
	struct model_choice straight = f->choice;
	struct model_shape shape;
	double misses[MODEL_WINDOW];
	struct verdict v;

	straight.in_use &= ~OF_LOAD;
	shape = model_in_use(&straight, had, prior);
	if (!hold_out(f, &shape, prior, work, misses, NULL))
		return false;
	v = compare(misses, then, f->n_window, 0);
	return pays(&v);
}

/* W by which these columns miss a point, as a standard deviation, by what all points teach; below 0: they teach nothing. */
static double miss_of_learned(const struct model_fit *f, const struct model_shape *shape,
			      const struct model_prior *prior, struct model_scratch *work)
{
	double sum = 0;

	model_sum_window(f, work->all.columns, 0, f->n_window, &work->block);
	model_add_sums(&work->block, &work->all);
	if (!model_solve(&work->block, shape, prior, &f->s, &work->trial))
		return -1;
	for (unsigned i = 0; i < f->n_window; i++) {
		const struct model_point *p = model_nth(f, i);

		if ((p->columns & work->all.columns) == work->all.columns)
			sum += pow(model_miss(&work->trial.coef, p), 2) * model_skew_weight(p);
	}
	return sqrt(sum / f->n_window);
}

/* True when the points are told worse without the base. The newest stretch may be all that tells its price: held out, it
 * is predicted badly by what the others make of that base. */
static bool needed(const struct model_fit *f, const struct model_shape *with, const struct model_shape *without,
		   const struct model_prior *prior, struct model_scratch *work)
{
	const double now = miss_of_learned(f, with, prior, work), then = miss_of_learned(f, without, prior, work);

	return now >= 0 && then > NEEDED * now + NEEDED_SMALL * f->s.mean_watts;
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

	if (which == TRY_HEAT && f->points < LEAST_HEATS)
		return false;
	other.in_use = changed(&f->choice, which, counted(f), prior);
	shape = model_in_use(&other, had, prior);
	if ((shape.columns == before.columns && shape.joint == before.joint) ||
	    (drop && f->points < f->choice.since[which] + HOLD) || !hold_out(f, &shape, prior, work, then, NULL))
		return false;
	v = compare(now, then, f->n_window, 0);
	f->choice.error[which] = drop ? 1 / v.ratio : v.ratio;
	*ret_ratio = v.ratio;
	if (which == TRY_OWN) /* many prices at once, which noise can seem to have */
		return drop ? v.ratio <= AS_GOOD : v.ratio < GAIN_OWN && v.deviations > DEVIATIONS_OWN;
	if (drop && !prior->narrow && STANDING >> which & 1)
		return false;
	if (drop && which >= TRY_BASE && which < TRY_BEND && !prior->narrow) {
		v = compare(now, then, f->n_window, SMALL * f->s.mean_watts);
		return pays(&v) && !needed(f, &before, &shape, prior, work);
	}
	if (drop)
		return v.ratio <= DROP;
	if (takes_place(&f->choice, which, prior))
		return v.ratio <= (which == TRY_AWAKE ? AS_GOOD : 1) && beats_straight(f, then, had, prior, work);
	if (f->choice.in_use >> TRY_WAIT & 1)
		v = compare(now, then, f->n_window, SMALL_WAIT * f->s.mean_watts);
	return pays(&v);
}

/* Sums over all points but a stretch, for each stretch. */
static void sum_without(const struct model_fit *f, model_columns had, struct model_scratch *work)
{
	if (f->old.n > 0 && (f->old.columns & had) == had)
		model_copy_sums(&work->all, &f->old, had);
	else
		model_clear_sums(&work->all, had);
	for (unsigned b = 0; b < MODEL_BLOCKS; b++)
		model_copy_sums(&work->without[b], &work->all, had);
	for (unsigned k = 0; k < MODEL_BLOCKS; k++) {
		model_sum_window(f, had, f->n_window * k / MODEL_BLOCKS, f->n_window * (k + 1) / MODEL_BLOCKS,
				 &work->block);
		for (unsigned b = 0; b < MODEL_BLOCKS; b++)
			if (b != k)
				model_add_sums(&work->without[b], &work->block);
	}
}

/* Keeps what all points but a stretch teach, for each stretch, with the columns in use. False when a stretch cannot be
 * predicted. */
static bool leave_out(struct model_fit *f, model_columns had, const struct model_prior *prior,
		      struct model_scratch *work, double *ret)
{
	struct model_shape shape = model_in_use(&f->choice, had, prior);

	f->n_without = hold_out(f, &shape, prior, work, ret, f->without) ? MODEL_BLOCKS : 0;
	return f->n_without > 0;
}

/* Makes the best change that pays. False when none does: then what stretches teach is of the columns in use. */
static bool change_one(struct model_fit *f, unsigned tries, model_columns had, const struct model_prior *prior,
		       struct model_scratch *work)
{
	double now[MODEL_WINDOW], best = INFINITY, ratio;
	unsigned change = TRIALS;

	if (!leave_out(f, had, prior, work, now))
		return false;
	for (unsigned i = 0; i < tries; i++) {
		/* the last turn is that of all trials after it */
		const unsigned last = f->choice.turn == TRY_OWN ? TRIALS - 1 : f->choice.turn;

		for (unsigned which = f->choice.turn; which <= last; which++) {
			if (had & columns_of(which) && try_one(f, which, now, had, prior, work, &ratio) &&
			    ratio < best) {
				best = ratio;
				change = which;
			}
		}
		f->choice.turn = (f->choice.turn + 1) % TURNS;
	}
	if (change == TRIALS)
		return false;
	f->choice.in_use = changed(&f->choice, change, counted(f), prior);
	f->choice.since[change] = f->points;
	return true;
}

/* True when a trial is among the next `tries`. */
static bool has_turn(const struct model_choice *c, unsigned trial, unsigned tries)
{
	return ((trial < TURNS ? trial : TRY_OWN) + TURNS - c->turn) % TURNS < tries;
}

/* What points held out are missed by with these columns; below 0: that cannot be told. */
static double missed_by(const struct model_fit *f, const struct model_choice *c, model_columns had,
			const struct model_prior *prior, struct model_scratch *work)
{
	struct model_shape shape = model_in_use(c, had, prior);
	double misses[MODEL_WINDOW], sum = 0;

	sum_without(f, had, work);
	if (!hold_out(f, &shape, prior, work, misses, NULL))
		return -1;
	for (unsigned i = 0; i < f->n_window; i++)
		sum += misses[i];
	return sum;
}

/* Takes the heat of a longer or a shorter time, as long as points held out are predicted better by the next one. Older points do not
 * have it, and are forgotten for it only where heat explains something. */
static void choose_heat(struct model_fit *f, model_columns had, const struct model_prior *prior,
			struct model_scratch *work)
{
	const unsigned before = f->heat_at;
	const double now = missed_by(f, &f->choice, had, prior, work);
	struct model_choice with = f->choice;
	unsigned best = before;
	double least;

	with.in_use |= 1u << TRY_HEAT | (prior->narrow ? 0 : counted(f) << TRY_BASE);
	least = missed_by(f, &with, had, prior, work);
	work->kept = f->old;
	for (int way = 1; way >= -1 && best == before; way -= 2) {
		for (int i = (int)before + way; i >= 0 && i < MODEL_HEATS; i += way) {
			double sum;

			model_take_heat(f, (unsigned)i);
			sum = missed_by(f, &with, had, prior, work);
			if (!(sum >= 0 && sum < GAIN_HEAT * least))
				break;
			least = sum;
			best = (unsigned)i;
		}
	}
	if (!(f->choice.in_use >> TRY_HEAT & 1) && !(least < GAIN * now))
		best = before;
	model_take_heat(f, best);
	if (best == before)
		f->old = work->kept;
}

/* True when points that miss by `then` in place of `now` are predicted better by enough. */
static bool explains(const struct model_fit *f, const double *now, const double *then, double gain, double deviations)
{
	const struct verdict v = compare(now, then, f->n_window, SMALL_WAIT * f->s.mean_watts);

	return v.ratio < gain && v.deviations > deviations;
}

/* Takes waits when they pay. They are tried by themselves, because the oldest points lack them and would be missing when something else
 * is tried. A row's own misses and prices of single rows may predict better although nobody waits. So waits have to pay beside the first,
 * and without the second. */
static void try_wait(struct model_fit *f, model_columns had, const struct model_prior *prior,
		     struct model_scratch *work)
{
	enum { NOW, ITSELF, SERVED, OWN, STEPS };
	const model_columns more[STEPS] = {
		[ITSELF] = COLUMN(COL_ITSELF), [SERVED] = COLUMNS_OF_WAIT, [OWN] = COLUMNS_OF_WAIT | COLUMNS_OF_OWN
	};
	double missed[STEPS][MODEL_WINDOW];

	sum_without(f, had, work);
	for (unsigned i = 0; i < STEPS; i++) {
		struct model_shape shape = model_in_use(&f->choice, had, prior);

		shape.columns |= had & more[i];
		if (!hold_out(f, &shape, prior, work, missed[i], NULL))
			return;
	}
	f->choice.error[TRY_WAIT] = compare(missed[NOW], missed[OWN], f->n_window, 0).ratio;
	if (!explains(f, missed[ITSELF], missed[SERVED], GAIN, DEVIATIONS) ||
	    !explains(f, missed[NOW], missed[OWN], GAIN_WAIT, DEVIATIONS_WAIT))
		return;
	f->choice.in_use |= 1u << TRY_WAIT;
	f->choice.since[TRY_WAIT] = f->points;
}

void model_choose(struct model_fit *f, model_columns had, const struct model_prior *prior, struct model_scratch *work)
{
	unsigned tries = f->points < EVERY_TURN ? TURNS : 2, changes = 0;
	double misses[MODEL_WINDOW];

	if (!f->choice.begun) {
		f->choice.begun = true;
		f->choice.in_use = prior->narrow ? 0 : counted(f) << TRY_BASE | STANDING;
	}
	if (f->n_window < LEAST)
		return;
	if (prior->narrow && f->points < LEAST_NARROW)
		tries = 0;
	if (prior->narrow && !(f->choice.in_use >> TRY_WAIT & 1) && had & COLUMNS_OF_WAIT &&
	    has_turn(&f->choice, TRY_WAIT, tries))
		try_wait(f, had, prior, work);
	if (!model_has_own(&f->choice) && (prior->narrow || !has_turn(&f->choice, TRY_OWN, CHANGES * tries)))
		had &= ~(COLUMNS_OF_WAIT | COLUMNS_OF_OWN); /* they have no turn, and would only be added up */
	if (f->points >= LEAST_HEATS && has_turn(&f->choice, TRY_HEAT, tries))
		choose_heat(f, had, prior, work);
	sum_without(f, had, work);
	while (changes < CHANGES && change_one(f, tries, had, prior, work))
		changes++;
	if (changes == CHANGES) /* the last one was not held out yet */
		leave_out(f, had, prior, work, misses);
}

/* Weights of some models, the sum of which is 1, by their log-likelihoods less what each but the first has to pay. */
static void weigh(const double *evidence, double pay, double *ret)
{
	double sum = 0;

	for (unsigned i = 0; i < MODEL_POSSIBLE; i++)
		sum += ret[i] = exp(fmin(evidence[i] - (i ? pay : 0), SURE));
	for (unsigned i = 0; i < MODEL_POSSIBLE; i++)
		ret[i] /= sum;
}

/* The probability is Akaike's weight (Burnham and Anderson, Model Selection, 2002, chapter 2.9), and prices are means over the models
 * (chapter 4.2), where a bend has to pay twice as much as Schwarz asks (Estimating the Dimension of a Model, 1978): noise alone
 * makes one of three seem to be there more often than one of one. */
void model_take_possible(struct model_fit *f, model_columns had, const struct model_shape *in_use,
			 const struct model_prior *prior, struct model_scratch *work)
{
	static const unsigned bends[MODEL_POSSIBLE] = { BENDS, BEND_LOAD, BEND_TRAFFIC, BEND_QUEUE };
	double evidence[MODEL_POSSIBLE] = { 0 }, probability[MODEL_POSSIBLE], weight[MODEL_POSSIBLE];

	f->n_possible = 0;
	if (!f->ready || !prior->narrow || !prior->misses || in_use->columns & (COLUMN(COL_OWN) - COLUMN(COL_BENT)))
		return;
	f->possible[0].coef = f->s.coef;
	for (unsigned i = 1; i < MODEL_POSSIBLE; i++) {
		struct model_shape with = *in_use;

		with.columns |= had & (COLUMN(prior->misses) | COLUMN(model_bent(bends[i], prior->misses - COL_BASE)));
		model_sum_all(f, with.columns, &work->all);
		if (!model_solve(&work->all, &with, prior, &f->s, &work->trial))
			return;
		f->possible[i].coef = work->trial.coef;
		evidence[i] = f->s.n * log(f->s.sigma / work->trial.sigma);
	}
	weigh(evidence, 1, probability);
	weigh(evidence, fmax(log(f->s.n), 0), weight);
	memset(&f->s.coef, 0, sizeof(f->s.coef));
	for (unsigned i = 0; i < MODEL_POSSIBLE; i++) {
		f->possible[i].probability = probability[i];
		for (unsigned k = 0; k < COLUMNS; k++)
			f->s.coef.c[k] += weight[i] * f->possible[i].coef.c[k];
	}
	f->n_possible = MODEL_POSSIBLE;
}
