/* SPDX-License-Identifier: Apache-2.0 */
/* The audit's statistics against a plant of known truth: a domain's power with noise, drift and steps of its counter, and
 * charges that are wrong by a known part. 10 minutes of blocks as joulectl audit measures them; the interval has the truth
 * in it in 9 of 10 trials, and is at most 2 points wide where loads neither share anything nor lose time to others. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "ctl/audit/consent.h"
#include "ctl/audit/session.h"
#include "ctl/audit/trial.h"
#include "model/audit.h"

#define TRIALS 24
#define ROUNDS 340 /* 10 minutes of four blocks of 0.44 s */
#define BLOCK_S 0.36
#define FREEZES 11 /* 10 minutes of 50 ms at 0.1 % */
#define FREEZE_S 0.05
#define OTHERS_W 4 /* a CPU of others */
#define OTHERS_USE 0.5 /* CPUs, in the mean */
#define TICK_S 0.001 /* RAPL moves so often */

struct plant {
	const char *name;
	double load_w[AUDIT_LOADS]; /* alone */
	double both_w; /* of both together */
	double bias[AUDIT_LOADS]; /* of what is charged, by the average draw */
	double noise_w; /* of everything else: standard deviation from block to block */
	double wander_w; /* the same, of a walk that goes on from block to block */
	double own_noise; /* of the load itself, relative: it is drawn and charged alike */
	double drift_w; /* from the begin to the end */
	double others_more; /* CPUs that others use more while a load runs; each costs OTHERS_W */
	double taken; /* CPUs that others take from a load, of each that they use */
	double beside_w; /* what a CPU of others and one of a load cost more beside each other: half is the load's */
	double lost; /* CPUs that a load loses while the other runs, for others who ran there move over */
	double others_both; /* CPUs that others use more while both run, beside others_more */
};

static double uniform(struct random *r)
{
	return (double)(random_next(r) >> 11) / 9007199254740992.0;
}

static double normal(struct random *r)
{
	double sum = -6;

	for (unsigned i = 0; i < 12; i++)
		sum += uniform(r);
	return sum;
}

/* What the counter shows of a block: its two ends are up to a tick old. */
static double told(struct random *r, double watts, double seconds)
{
	return watts + watts * TICK_S * (uniform(r) - uniform(r)) / seconds;
}

struct weather {
	struct random r;
	double walk, drift;
};

static double rest_w(struct weather *w, const struct plant *p, double at)
{
	w->walk = 0.9 * w->walk + p->wander_w * normal(&w->r);
	return 10 + p->drift_w * at + w->walk + p->noise_w * normal(&w->r);
}

static void measure(struct weather *w, const struct plant *p, unsigned state, double at, struct audit_block *ret)
{
	double own[AUDIT_LOADS], alone = 0, all = rest_w(w, p, at), shared, beside[AUDIT_LOADS];

	memset(ret, 0, sizeof(*ret));
	for (unsigned i = 0; i < AUDIT_LOADS; i++)
		own[i] = state >> i & 1 ? p->load_w[i] * (1 + p->own_noise * normal(&w->r)) : 0;
	ret->others = OTHERS_USE + 0.1 * normal(&w->r) + (state ? p->others_more : 0) +
		      (state == AUDIT_STATES - 1 ? p->others_both : 0);
	for (unsigned i = 0; i < AUDIT_LOADS; i++) {
		double lost = state == AUDIT_STATES - 1 ? p->lost : 0;
		double cpus = state >> i & 1 ? 1 - p->taken * ret->others - lost : 0;

		own[i] *= cpus;
		beside[i] = p->beside_w * cpus * (1 - p->taken) * ret->others;
		alone += own[i] + beside[i];
		ret->load[i] = cpus;
	}
	/* what two cost less than each alone is nobody's: half each */
	shared = state == AUDIT_STATES - 1 ? (p->load_w[0] + p->load_w[1] - p->both_w) * ret->load[0] * ret->load[1] :
					     0;
	all += OTHERS_W * ret->others;
	ret->drawn[0] = told(&w->r, all + alone - shared, BLOCK_S);
	for (unsigned i = 0; i < AUDIT_LOADS; i++)
		ret->charged[i][0] = state >> i & 1 ? (own[i] - shared / 2 + beside[i] / 2) * (1 + p->bias[i]) : 0;
}

static void run_plant(const struct plant *p, uint64_t seed, struct audit_rounds *ret)
{
	struct weather w = { .r = { seed * 7919 + 1 } };

	for (unsigned k = 0; k < ROUNDS; k++) {
		unsigned order[AUDIT_STATES] = { 0, 1, 2, 3 };
		struct audit_block blocks[AUDIT_STATES];

		random_shuffle(&w.r, order, AUDIT_STATES);
		for (unsigned i = 0; i < AUDIT_STATES; i++)
			measure(&w, p, order[i], (double)k / ROUNDS, &blocks[order[i]]);
		assert_int_equal(audit_rounds_add(ret, blocks), 0);
	}
}

struct score {
	unsigned n, held;
	double widest;
};

static void add_score(struct score *s, const struct audit_answer *a, double truth)
{
	assert_true(a->known);
	s->n++;
	s->held += a->interval.low <= truth && truth <= a->interval.high;
	s->widest = fmax(s->widest, a->interval.high - a->interval.low);
}

static void good(const char *name, const struct score *s, double wide)
{
	printf("  %-28s %u of %u hold the truth, at most %.2f points wide\n", name, s->held, s->n, 100 * s->widest);
	assert_true(s->held >= 0.9 * s->n - sqrt(0.9 * 0.1 * s->n));
	assert_true(s->widest <= wide);
}

enum { NOISY = 1 }; /* of the plants */

#define USUAL .noise_w = 0.1, .wander_w = 0.02, .own_noise = 0.01
static const struct plant plants[] = {
	{ .name = "quiet", .load_w = { 3, 4 }, .both_w = 7, .noise_w = 0.05 },
	{ .name = "noise and walk",
	  .load_w = { 3, 4 },
	  .both_w = 7,
	  .noise_w = 0.15,
	  .wander_w = 0.05,
	  .own_noise = 0.01 },
	{ .name = "drift",
	  .load_w = { 3, 4 },
	  .both_w = 7,
	  .bias = { 0.05, -0.04 },
	  .noise_w = 0.1,
	  .wander_w = 0.02,
	  .drift_w = 5 },
	{ .name = "wrong charges", .load_w = { 3, 4 }, .both_w = 7, .bias = { 0.12, -0.09 }, USUAL },
	{ .name = "others cost more beside them",
	  .load_w = { 3, 4 },
	  .both_w = 8,
	  .bias = { 0, 0.04 },
	  USUAL,
	  .beside_w = 1 },
	{ .name = "they cost less, and take time",
	  .load_w = { 3, 4 },
	  .both_w = 6,
	  .bias = { 0.03, 0 },
	  USUAL,
	  .taken = 0.2,
	  .beside_w = -0.8 },
	{ .name = "each moves others over",
	  .load_w = { 3, 9 },
	  .both_w = 12,
	  .bias = { 0, 0.02 },
	  .noise_w = 0.05,
	  .wander_w = 0.01,
	  .own_noise = 0.01,
	  .taken = 0.1,
	  .lost = 0.05 },
	{ .name = "saturation", .load_w = { 3, 4 }, .both_w = 6, .bias = { 0.03, -0.03 }, USUAL, .drift_w = 1 },
	{ .name = "together they cost more", .load_w = { 3, 4 }, .both_w = 8, USUAL },
	{ .name = "others do more beside them",
	  .load_w = { 3, 4 },
	  .both_w = 7,
	  .bias = { 0, 0.05 },
	  USUAL,
	  .others_more = 0.2 },
	{ .name = "others do more beside both", .load_w = { 3, 4 }, .both_w = 7, USUAL, .others_both = 0.5 },
	{ .name = "others take their time",
	  .load_w = { 3, 4 },
	  .both_w = 7,
	  .bias = { 0.05, 0 },
	  USUAL,
	  .others_more = -0.1,
	  .taken = 0.5 },
};

/* How wide an interval is at most. Half a CPU of others tells in 10 minutes only so well what it costs where it runs on the
 * loads' CPUs, what it shares with the loads where they share something with each other, and what more of it costs. */
static double wide_of(const struct plant *p)
{
	const bool taken = p->taken > 0, shared = fabs(p->load_w[0] + p->load_w[1] - p->both_w) > 0;

	return taken && shared ? 0.04 : taken || shared || p->others_more + p->others_both > 0 ? 0.025 : 0.02;
}

static void intervals_hold_the_truth(void **state)
{
	for (unsigned i = 0; i < sizeof(plants) / sizeof(plants[0]); i++) {
		const struct plant *p = &plants[i];
		struct score s = { 0 };

		for (unsigned t = 0; t < TRIALS; t++) {
			struct audit_rounds r = { 0 };

			run_plant(p, t + 100 * i, &r);
			audit_hold_equal(&r, 1, 1);
			for (unsigned load = 0; load < AUDIT_LOADS; load++) {
				struct audit_answer a = audit_ask(&r, load, 0, AUDIT_AVERAGE, t);

				add_score(&s, &a, p->bias[load]);
			}
			audit_rounds_free(&r);
		}
		good(p->name, &s, wide_of(p));
	}
}

/* What a question's answer truly is: charged over drawn, less 1. Of the means: what varies is small. */
static double truth_of(const struct plant *p, unsigned load, enum audit_question q)
{
	const double others = OTHERS_USE + p->others_more, cpus = 1 - p->taken * others, both = cpus - p->lost;
	const double own = p->load_w[load], shared = (p->load_w[0] + p->load_w[1] - p->both_w) * both * both;
	const double beside = p->beside_w * (1 - p->taken) * others; /* of a CPU of the load */
	const double alone = (own + beside) * cpus, marginal = (own + beside) * both - shared;

	switch (q) {
	case AUDIT_ALONE:
		return (own + beside / 2) * cpus * (1 + p->bias[load]) / alone - 1;
	case AUDIT_MARGINAL:
		return ((own + beside / 2) * both - shared / 2) * (1 + p->bias[load]) / marginal - 1;
	case AUDIT_SATURATION:
		return marginal / alone - 1;
	default:
		return p->bias[load];
	}
}

/* Each draw by itself, also where power does not add up: nine in ten, less two deviations of so many trials. */
static void each_draw_has_its_own_truth(void **state)
{
	static const char *const words[] = { "alone", "marginal", "average", "saturation" };

	for (unsigned i = NOISY; i < sizeof(plants) / sizeof(plants[0]); i++) {
		struct score s[AUDIT_SATURATION + 1] = { 0 };

		for (unsigned t = 0; t < TRIALS; t++) {
			struct audit_rounds r = { 0 };

			run_plant(&plants[i], 5000 + t + 100 * i, &r);
			audit_hold_equal(&r, 1, 1);
			for (unsigned k = 0; k < AUDIT_LOADS * (AUDIT_SATURATION + 1); k++) {
				enum audit_question q = (enum audit_question)(k / AUDIT_LOADS);
				struct audit_answer a = audit_ask(&r, k % AUDIT_LOADS, 0, q, t);

				add_score(&s[q], &a, truth_of(&plants[i], k % AUDIT_LOADS, q));
			}
			audit_rounds_free(&r);
		}
		for (unsigned q = AUDIT_ALONE; q <= AUDIT_SATURATION; q++) {
			printf("  %-28s %-10s %u of %u hold the truth, at most %.2f points wide\n", plants[i].name,
			       words[q], s[q].held, s[q].n, 100 * s[q].widest);
			assert_true(s[q].held >= 0.9 * s[q].n - 2 * sqrt(0.9 * 0.1 * s[q].n));
			assert_true(q != AUDIT_AVERAGE || s[q].widest <= wide_of(&plants[i]));
		}
	}
}

/* The words tell which draw a figure is of, and whether this machine saturates. */
static void the_words_tell_which_draw(void **state)
{
	struct audit a;
	struct audit_line l = { .cgroup = "compute", .domain = "package-0", .draw = AUDIT_DRAW_MARGINAL };
	struct buf text = { 0 };

	audit_init(&a);
	assert_true(audit_add(&a, &l));
	audit_write_text(&a, &text);
	buf_add_char(&text, '\0');
	assert_non_null(strstr((char *)text.data, "marginal: what the machine draws less without it"));
	assert_non_null(strstr((char *)text.data, "no error of the split"));
	assert_null(strstr((char *)text.data, "saturates"));
	snprintf(l.draw, sizeof(l.draw), AUDIT_DRAW_AVERAGE);
	assert_true(audit_add(&a, &l));
	for (unsigned i = 0; i < 3; i++) {
		static const char *const words[] = { "this machine saturates, marginal draws are below averages",
						     "power adds up, marginal and average are not told apart",
						     "marginal draws are above averages" };

		a.saturation = 0.9 + 0.1 * i;
		a.saturation_low = a.saturation - 0.01;
		a.saturation_high = a.saturation + 0.01;
		buf_reset(&text);
		audit_write_text(&a, &text);
		buf_add_char(&text, '\0');
		assert_non_null(strstr((char *)text.data, "average: alone, and beside the other"));
		for (unsigned k = 0; k < 3; k++)
			assert_int_equal(strstr((char *)text.data, words[k]) != NULL, k == i);
	}
	buf_free(&text);
}

/* Under saturation a charge that is right on average is wrong by the marginal draw, and both are told. */
static void marginal_and_average_are_told_apart(void **state)
{
	const struct plant p = { .name = "saturation",
				 .load_w = { 4, 4 },
				 .both_w = 6,
				 .noise_w = 0.1,
				 .wander_w = 0.02,
				 .own_noise = 0.01 };
	struct audit_rounds r = { 0 };
	struct audit_answer average, marginal, alone, saturation;

	run_plant(&p, 5, &r);
	audit_hold_equal(&r, 1, 1);
	average = audit_ask(&r, 0, 0, AUDIT_AVERAGE, 1);
	marginal = audit_ask(&r, 0, 0, AUDIT_MARGINAL, 1);
	alone = audit_ask(&r, 0, 0, AUDIT_ALONE, 1);
	saturation = audit_ask(&r, 0, 0, AUDIT_SATURATION, 1);
	audit_rounds_free(&r);
	assert_true(fabs(average.bias) < 0.01);
	assert_true(fabs(alone.bias) < 0.01);
	assert_true(fabs(marginal.bias - 0.5) < 0.02); /* 3 W charged, 2 W more drawn */
	assert_true(fabs(saturation.bias + 0.5) < 0.02 && saturation.interval.high < 0);
}

/* Of too few rounds no bias is told, but what was drawn is. */
static void few_rounds_tell_the_draws(void **state)
{
	struct audit_rounds r = { 0 };
	struct audit_line l = { .cgroup = "compute", .domain = "package-0", .draw = AUDIT_DRAW_AVERAGE, .bias = NAN };
	struct audit a;
	struct buf text = { 0 };

	run_plant(&plants[0], 3, &r);
	r.n = AUDIT_ROUNDS_LEAST - 2;
	audit_hold_equal(&r, 1, 1);
	for (unsigned i = 0; i < AUDIT_LOADS; i++) {
		struct audit_answer answer = audit_ask(&r, i, 0, AUDIT_AVERAGE, 1);

		assert_false(answer.known);
		assert_true(fabs(answer.drawn_w - plants[0].load_w[i]) < 0.5);
		l.pairs = answer.n;
	}
	audit_rounds_free(&r);
	audit_init(&a);
	assert_true(audit_add(&a, &l));
	audit_write_text(&a, &text);
	buf_add_char(&text, '\0');
	assert_non_null(
		strstr((char *)text.data, "cannot be told after 3 pairs: it takes at least 5; audit longer (-d)"));
	buf_free(&text);
}

/* A freeze against the time before and after it. */
static void freeze(struct weather *w, const struct plant *p, double at, double *charged, double *drawn)
{
	double watts[3], own[3];

	for (unsigned i = 0; i < 3; i++) {
		own[i] = i == 1 ? 0 : p->load_w[0] * (1 + p->own_noise * normal(&w->r));
		watts[i] = told(&w->r, rest_w(w, p, at) + own[i], i == 1 ? FREEZE_S : 3 * FREEZE_S);
	}
	*drawn = (watts[0] + watts[2]) / 2 - watts[1];
	*charged = (1 + p->bias[0]) * (own[0] + own[2]) / 2;
}

static void freezes_hold_the_truth(void **state)
{
	static const struct plant all[] = {
		{ .name = "freezes of most of it",
		  .load_w = { 40 },
		  .bias = { 0.06 },
		  .noise_w = 0.05,
		  .wander_w = 0.02,
		  .own_noise = 0.005 },
		{ .name = "freezes, drift", .load_w = { 40 }, .bias = { -0.03 }, .noise_w = 0.05, .drift_w = 10 },
	};

	for (unsigned i = 0; i < 2; i++) {
		struct score s = { 0 };

		for (unsigned t = 0; t < 5 * TRIALS; t++) {
			struct weather w = { .r = { t * 31 + i } };
			double charged[FREEZES], drawn[FREEZES];
			struct audit_answer a;

			for (unsigned k = 0; k < FREEZES; k++)
				freeze(&w, &all[i], (double)k / FREEZES, &charged[k], &drawn[k]);
			a = audit_judge(charged, drawn, FREEZES, t);
			add_score(&s, &a, all[i].bias[0]);
		}
		good(all[i].name, &s, 0.02);
	}
}

static void too_little_is_told_as_unknown(void **state)
{
	struct weather w = { .r = { 3 } };
	double charged[20], drawn[20];

	for (unsigned k = 0; k < 20; k++) {
		charged[k] = 1;
		drawn[k] = 0.1 + normal(&w.r);
	}
	assert_false(audit_judge(charged, drawn, 20, 1).known);
	for (unsigned k = 0; k < 20; k++)
		drawn[k] = 1 + 0.01 * normal(&w.r);
	assert_true(audit_judge(charged, drawn, 20, 1).known);
	assert_false(audit_judge(charged, drawn, AUDIT_ROUNDS_LEAST - 1, 1).known);
	assert_false(audit_judge(charged, drawn, 0, 1).known);
}

static void instants_are_random_and_within_the_slot(void **state)
{
	const uint64_t freeze = 50000000, around = 150000000, slot = audit_slot_ns(freeze, 0.001);
	struct random r = { 1 };
	unsigned early = 0;

	assert_int_equal(slot, 50000000000ull);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t at = audit_instant(&r, slot, freeze, around);

		assert_true(at >= around && at + freeze + around <= slot);
		early += at < slot / 2;
	}
	assert_in_range(early, 430, 570);
	assert_int_equal(audit_instant(&r, freeze, freeze, around), around); /* no room: as early as can be */
}

static void forbidden_paths_are_refused(void **state)
{
	static const char *const refused[] = {
		"/",
		"/system.slice",
		"/init.scope",
		"/user.slice",
		"/user.slice/user-1000.slice",
		"/user.slice/user-1000.slice/user@1000.service",
		"/machine.slice",
		"/kubepods.slice",
		"/kubepods",
		"/system.slice/containerd.service",
		"/system.slice/docker.service",
		"/docker",
		"/system.slice/crio.service",
		"/system.slice/kubelet.service",
		"/system.slice/ssh.service",
		"/system.slice/systemd-journald.service",
		"/a/../b",
		"/a/./b",
		"/a//b",
		"/a/..",
		"a",
		"",
		/* of the caller */
		"/user.slice/user-1.slice/session-4.scope",
		"/user.slice/user-1.slice/session-4.scope/x",
	};
	static const char *const allowed[] = {
		"/batch",
		"/system.slice/nginx.service",
		"/system.slice/docker-0123.scope",
		"/docker/0123",
		"/kubepods.slice/kubepods-pod1.slice/cri-containerd-12.scope",
		"/user.slice/user-1.slice/session-40.scope",
		"/user.slice/user-1.slice/session-4.scopes",
		"/machine.slice/libpod-12.scope",
		"/a/..b",
		"/a/.b",
	};
	const char *own = "/user.slice/user-1.slice/session-4.scope";

	for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (!audit_refuses_path(refused[i], own))
			fail_msg("%s is allowed", refused[i]);
	for (unsigned i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		if (audit_refuses_path(allowed[i], own))
			fail_msg("%s is refused: %s", allowed[i], audit_refuses_path(allowed[i], own));
	assert_non_null(audit_refuses_path("/a", "/a/b"));
	assert_null(audit_refuses_path("/a", "/ab"));
	assert_true(audit_refuses_program("containerd-shim"));
	assert_true(audit_refuses_program("systemd"));
	assert_false(audit_refuses_program("nginx"));
}

/* The record: what is written is read back; what is no audit is refused. */
static void a_record_is_read_back(void **state)
{
	struct audit a, b;
	struct audit_line l = { .cgroup = "/x\x1b[1m",
				.domain = "package-0",
				.draw = "average",
				.judged = true,
				.pairs = 340,
				.charged_w = 3,
				.drawn_w = 2.9,
				.bias = 0.03,
				.low = -0.01,
				.high = 0.05 };
	struct buf text = { 0 };
	struct json j;
	struct err err = { 0 };

	audit_init(&a);
	a.seed = 7;
	snprintf(a.formula, sizeof(a.formula), "share");
	assert_true(audit_add(&a, &l));
	l.judged = false, l.high = 0.5;
	assert_true(audit_add(&a, &l));
	l.judged = true, l.bias = l.low = l.high = NAN;
	assert_true(audit_add(&a, &l));
	audit_sum_up(&a);
	assert_true(fabs(a.within - 0.05) < 1e-12);
	json_init(&j, &text);
	audit_json(&j, &a);
	assert_int_equal(audit_parse((const char *)text.data, text.len, &b, &err), 0);
	assert_int_equal(b.n, 3);
	assert_int_equal(b.seed, 7);
	assert_true(fabs(audit_error(&b, "package-0") - 0.05) < 1e-12);
	assert_true(isnan(audit_error(&b, "dram-0")));
	assert_true(isnan(b.line[2].bias));
	assert_null(strchr(b.line[0].cgroup, '\x1b'));
	assert_int_equal(audit_parse("{}", 2, &b, &err), -EBADMSG);
	assert_int_equal(audit_parse((const char *)text.data, text.len - 1, &b, &err), -EBADMSG);
	assert_int_equal(audit_parse("{\"version\":2,\"lines\":[{\"domain\":\"d\"}]}", 39, &b, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "joulectl audit"));
	buf_free(&text);
}

/* A result has no room for one line more: nothing is frozen, nobody is asked. */
static void too_many_lines_are_refused(void **state)
{
	static struct audit_session s;
	static struct audit a;
	static char root[] = "/";
	struct audit_plan p = { .n_cgroups = 13, .freeze_ns = 1, .duty = 1 };
	struct err err = { 0 };

	s = (struct audit_session){ .plan = &p, .audited = { true, true, false, true, true } };
	s.with.facts.n_domains = 5;
	for (unsigned i = 0; i < p.n_cgroups; i++)
		p.cgroup[i] = root;
	assert_int_equal(audit_by_freezing(&s, &a, &err), -EINVAL);
	assert_non_null(strstr(err.text,
			       "13 cgroups in 4 domains are 52 lines, and a result has 48; name at most 12 at a time"));
	p.n_cgroups = 12; /* the root is refused next */
	assert_int_not_equal(audit_by_freezing(&s, &a, &err), 0);
	assert_null(strstr(err.text, "lines"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals_hold_the_truth),
		cmocka_unit_test(each_draw_has_its_own_truth),
		cmocka_unit_test(the_words_tell_which_draw),
		cmocka_unit_test(marginal_and_average_are_told_apart),
		cmocka_unit_test(few_rounds_tell_the_draws),
		cmocka_unit_test(freezes_hold_the_truth),
		cmocka_unit_test(too_little_is_told_as_unknown),
		cmocka_unit_test(instants_are_random_and_within_the_slot),
		cmocka_unit_test(forbidden_paths_are_refused),
		cmocka_unit_test(a_record_is_read_back),
		cmocka_unit_test(too_many_lines_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
