/* SPDX-License-Identifier: Apache-2.0 */
/* Formula auto on a machine whose every joule is known: it takes model where its held-out error is smaller, obeys an audit, and
 * gives what the chosen formula alone gives. */
#include "unit/model_errors.h"

static const struct mw_config mixed = { .name = "mixed", .seed = 3, .cgroups = 6, .load = 0.5 };

/* Runs auto beside the formulas alone, over the same intervals. */
struct beside {
	struct mw w;
	struct formula *f, *share, *model;
	struct formula_options o;
	unsigned as_share, as_model;
};

static void begin(struct beside *b, const struct mw_config *c)
{
	memset(b, 0, sizeof(*b));
	b->o = learn_options();
	assert_int_equal(mw_init(&b->w, c), 0);
	b->f = formula_auto.create(&b->o);
	b->share = formula_share.create(&b->o);
	b->model = formula_model.create(&b->o);
	assert_true(b->f && b->share && b->model);
}

static void end(struct beside *b)
{
	formula_auto.destroy(b->f);
	formula_share.destroy(b->share);
	formula_model.destroy(b->model);
	mw_free(&b->w);
}

static void one(struct beside *b)
{
	struct snapshot *s = mw_step(&b->w);
	size_t n = (size_t)s->n_rows * MW_DOMAINS;
	uint64_t by_share[MW_ROWS * MW_DOMAINS], by_model[MW_ROWS * MW_DOMAINS];
	unsigned points;

	assert_int_equal(formula_share.apply(b->share, s), 0);
	memcpy(by_share, s->energy_uj, n * sizeof(by_share[0]));
	assert_int_equal(formula_model.apply(b->model, s), 0);
	memcpy(by_model, s->energy_uj, n * sizeof(by_model[0]));
	points = s->domains[MW_PACKAGE].learned.points;
	assert_int_equal(formula_auto.apply(b->f, s), 0);
	ledger_closes(s);
	assert_int_equal(s->domains[MW_PACKAGE].learned.points, points); /* told under share too */
	assert_true(strlen(formula_auto.reason(b->f)) > 10);
	b->as_share += strcmp(s->formula, "share") == 0;
	b->as_model += strcmp(s->formula, "model") == 0;
	assert_memory_equal(s->energy_uj, strcmp(s->formula, "share") ? by_model : by_share, n * sizeof(by_share[0]));
}

static void held_out_errors_decide(void **state)
{
	static struct beside b;

	begin(&b, &mixed);
	for (unsigned i = 0; i < 30; i++)
		one(&b);
	assert_int_equal(b.as_model, 0); /* too little was learned */
	assert_non_null(strstr(formula_auto.reason(b.f), "too little"));
	for (unsigned i = 0; i < 120; i++)
		one(&b);
	assert_true(b.as_model > 60);
	assert_string_equal(b.w.s.formula, "model");
	assert_non_null(strstr(formula_auto.reason(b.f), "model misses"));
	end(&b);
}

static void audit(struct beside *b, const char *better, const char *why)
{
	snprintf(b->w.s.audit.better, sizeof(b->w.s.audit.better), "%s", better);
	snprintf(b->w.s.audit.why, sizeof(b->w.s.audit.why), "%s", why);
}

static void an_audit_decides_first(void **state)
{
	static struct beside b;

	begin(&b, &mixed);
	audit(&b, "model", "share is off by 9 %");
	for (unsigned i = 0; i < 20; i++)
		one(&b);
	assert_int_equal(b.as_model, 19); /* the first interval is split before anything is chosen */
	assert_non_null(strstr(formula_auto.reason(b.f), "share is off by 9 %"));
	audit(&b, "share", "");
	for (unsigned i = 0; i < 150; i++)
		one(&b);
	assert_string_equal(b.w.s.formula, "share");
	assert_true(b.as_share >= 149);
	assert_non_null(
		strstr(formula_auto.reason(b.f), "the last audit found it better")); /* a recording has no more words */
	audit(&b, "other", "x"); /* it told nothing that is known here: the held-out errors again */
	for (unsigned i = 0; i < 3; i++)
		one(&b);
	assert_string_equal(b.w.s.formula, "model");
	end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(held_out_errors_decide),
		cmocka_unit_test(an_audit_decides_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
