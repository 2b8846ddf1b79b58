/* SPDX-License-Identifier: Apache-2.0 */
/* The experiment with loads of its own: a round has each state (none, one, the other, both) once, in random order. */
#include "session.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "loads.h"
#include "tape.h"

#define SETTLE_NS (40 * NS_PER_MS) /* after a switch: clocks and caches follow */
#define BLOCK_NS (360 * NS_PER_MS)
#define ROUND_NS (AUDIT_STATES * (SETTLE_NS + BLOCK_NS))
#define APPEAR_NS (10 * NS_PER_S) /* within that the loads are ready and the agent knows their cgroups */

struct experiment {
	struct audit_session *s;
	struct audit_loads *loads;
	struct audit_rounds rounds;
	struct audit_tape *tape;
	unsigned cap_times;
	struct audit_times (*times)[AUDIT_STATES]; /* of the rounds */
	const char *paths[AUDIT_LOADS];
};

static int read_now(struct experiment *e, struct audit_reading *ret, struct err *err)
{
	struct run_rows rows[AUDIT_LOADS] = { 0 };
	struct buf body = { 0 };
	int rc = run_reading_fetch(e->s->with.agent, audit_loads_top(e->loads), &body, err);

	if (!rc)
		rc = audit_read(e->s, &body, e->paths, AUDIT_LOADS, rows, ret, err);
	for (unsigned i = 0; i < AUDIT_LOADS; i++)
		run_rows_free(&rows[i]);
	buf_free(&body);
	return rc;
}

static double rate(uint64_t after, uint64_t before, uint64_t ns)
{
	return after > before && ns ? (double)(after - before) / (double)ns : 0;
}

static void block_between(const struct experiment *e, const struct audit_reading *a, const struct audit_reading *b,
			  struct audit_block *ret)
{
	const unsigned cpu = e->s->with.facts.n_domains + RUN_CPU;
	uint64_t ns = b->machine.mono_ns - a->machine.mono_ns;

	*ret = (struct audit_block){ 0 };
	ret->others = rate(b->machine.busy_ns, a->machine.busy_ns, ns);
	for (unsigned i = 0; i < AUDIT_LOADS; i++) {
		ret->load[i] = rate(b->of[i].value[cpu], a->of[i].value[cpu], ns);
		ret->others -= ret->load[i];
	}
	for (unsigned d = 0; d < e->s->with.facts.n_domains; d++) {
		ret->drawn[d] = 1e3 * rate(b->machine.energy_uj[d], a->machine.energy_uj[d], ns);
		for (unsigned i = 0; i < AUDIT_LOADS; i++)
			ret->charged[i][d] = 1e3 * rate(b->of[i].value[d], a->of[i].value[d], ns);
	}
}

static int run_block(struct experiment *e, unsigned state, struct audit_block *ret, struct audit_times *ret_times,
		     struct err *err)
{
	struct audit_reading before, after;
	int rc;

	audit_loads_set(e->loads, state);
	audit_sleep(SETTLE_NS);
	rc = read_now(e, &before, err);
	if (!rc) {
		audit_sleep(BLOCK_NS);
		rc = read_now(e, &after, err);
	}
	if (!rc)
		block_between(e, &before, &after, ret);
	if (!rc)
		*ret_times = (struct audit_times){ before.machine.mono_ns, after.machine.mono_ns };
	return rc;
}

/* Without one of its processes a load is another load. */
static int check_loads(struct experiment *e, struct err *err)
{
	const char *ended = audit_loads_ended(e->loads);

	if (!ended)
		return 0;
	return err_set(
		err, -ECHILD,
		"audit: a process of its load %s ended: it was killed, or the 64 MiB of a process of `memory` could not be had; "
		"look at the kernel's log, memory.max and vm.overcommit_memory",
		ended);
}

static int run_round(struct experiment *e, struct err *err)
{
	unsigned order[AUDIT_STATES] = { 0, 1, 2, 3 };
	struct audit_block blocks[AUDIT_STATES];
	struct audit_times times[AUDIT_STATES];
	int rc = 0;

	random_shuffle(&e->s->random, order, AUDIT_STATES);
	for (unsigned i = 0; i < AUDIT_STATES && !rc && !audit_interrupted; i++)
		rc = run_block(e, order[i], &blocks[order[i]], &times[order[i]], err);
	/* a signal to all of a group ends the loads too: then what was measured counts */
	if (!rc && !audit_interrupted)
		rc = check_loads(e, err);
	if (rc || audit_interrupted)
		return rc;
	rc = ARRAY_ROOM(e->times, e->cap_times, e->rounds.n + 1);
	if (!rc)
		memcpy(e->times[e->rounds.n], times, sizeof(times));
	return rc || audit_rounds_add(&e->rounds, blocks) ? err_set(err, -ENOMEM, "audit: out of memory; free some") :
							    0;
}

static bool has_rows(const struct experiment *e, const struct audit_reading *r)
{
	const unsigned cpu = e->s->with.facts.n_domains + RUN_CPU;

	return r->of[0].value[cpu] && r->of[1].value[cpu] && audit_loads_ready(e->loads);
}

/* Runs both loads until they are ready and the agent charges them: it may not report cgroups of that name. */
static int wait_for_rows(struct experiment *e, struct err *err)
{
	uint64_t until = clock_mono_ns() + APPEAR_NS;
	struct audit_reading r;
	int rc = 0;

	audit_loads_set(e->loads, AUDIT_STATES - 1);
	do {
		audit_sleep(BLOCK_NS / 4);
		rc = audit_interrupted ? 0 : check_loads(e, err);
		if (!rc)
			rc = read_now(e, &r, err);
	} while (!rc && !audit_interrupted && !has_rows(e, &r) && clock_mono_ns() < until);
	if (!rc && !has_rows(e, &r) && !audit_interrupted)
		rc = err_set(
			err, -ENODATA,
			"audit: its loads got too little CPU time in %d s, or the agent does not report %s; audit a less busy "
			"machine, or look at cgroups.include, exclude and max",
			(int)(APPEAR_NS / NS_PER_S), audit_loads_top(e->loads));
	return rc;
}

static void add_answer(struct audit *ret, const struct experiment *e, unsigned load, unsigned d, enum audit_question q)
{
	static const char *const words[] = {
		[AUDIT_ALONE] = AUDIT_DRAW_ALONE, [AUDIT_MARGINAL] = AUDIT_DRAW_MARGINAL, [AUDIT_AVERAGE] = AUDIT_DRAW_AVERAGE
	};
	struct audit_answer a = audit_ask(&e->rounds, load, d, q, ret->seed);
	struct audit_line l = { .judged = q == AUDIT_AVERAGE,
				.pairs = a.n,
				.charged_w = a.charged_w,
				.drawn_w = a.drawn_w,
				.bias = a.bias,
				.low = a.interval.low,
				.high = a.interval.high };

	snprintf(l.cgroup, sizeof(l.cgroup), "%s", audit_load_names[load]);
	snprintf(l.domain, sizeof(l.domain), "%s", e->s->with.facts.domain[d].name);
	snprintf(l.draw, sizeof(l.draw), "%s", words[q]);
	audit_add(ret, &l);
}

/* Of the first domain that tells it, which is the package. */
static void add_saturation(struct audit *ret, const struct experiment *e)
{
	for (unsigned d = 0; d < e->s->with.facts.n_domains; d++) {
		struct audit_answer a = audit_ask(&e->rounds, 0, d, AUDIT_SATURATION, ret->seed);

		if (!e->s->audited[d] || !a.known)
			continue;
		ret->saturation = a.bias + 1;
		ret->saturation_low = a.interval.low + 1;
		ret->saturation_high = a.interval.high + 1;
		return;
	}
}

static void report(struct experiment *e, struct audit *ret)
{
	audit_tape_judge(e->tape, e->s, &e->rounds, (const struct audit_times(*)[AUDIT_STATES])e->times, e->paths, ret);
	audit_hold_equal(&e->rounds, e->s->with.facts.n_domains, e->s->plan->cpus);
	snprintf(ret->method, sizeof(ret->method), "loads");
	for (enum audit_question q = AUDIT_AVERAGE + 1; q-- > AUDIT_ALONE;)
		for (unsigned load = 0; load < AUDIT_LOADS; load++)
			for (unsigned d = 0; d < e->s->with.facts.n_domains; d++)
				if (e->s->audited[d])
					add_answer(ret, e, load, d, q);
	add_saturation(ret, e);
}

int audit_by_loads(struct audit_session *s, struct audit *ret, struct err *err)
{
	struct experiment e = { .s = s };
	int rc = audit_loads_start(&s->place, s->plan->cpus, &e.loads, err);

	for (unsigned i = 0; i < AUDIT_LOADS && !rc; i++)
		e.paths[i] = audit_loads_path(e.loads, i);
	if (!rc)
		rc = wait_for_rows(&e, err);
	if (!rc)
		rc = audit_tape_start(s, &e.tape, err);
	while (!rc && audit_goes_on(s, ROUND_NS)) {
		rc = run_round(&e, err);
		audit_progress(s, "rounds", e.rounds.n);
	}
	audit_progress_end(s);
	if (rc == -ECHILD && e.rounds.n >= AUDIT_ROUNDS_LEAST) {
		log_warn("%s; the result is of the %u rounds before", err->text, e.rounds.n);
		ret->ended_early = true;
		rc = 0;
	}
	if (e.loads)
		audit_loads_set(e.loads, 0);
	if (e.tape)
		audit_tape_end(e.tape);
	if (!rc)
		report(&e, ret);
	audit_loads_stop(e.loads);
	audit_tape_free(e.tape);
	free(e.times);
	audit_rounds_free(&e.rounds);
	return rc;
}
