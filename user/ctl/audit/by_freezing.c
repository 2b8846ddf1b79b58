/* SPDX-License-Identifier: Apache-2.0 */
/* The experiment by freezing: one cgroup at a time, at random instants, with a time before and one after each freeze to
 * compare it with. */
#include "session.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/array.h"
#include "base/clock.h"
#include "base/text.h"
#include "consent.h"

#define AROUND 3 /* times the length of a freeze is measured before it, and after it */
#define SETTLE_NS (5 * NS_PER_MS) /* after a thaw */
#define READ_NS (5 * NS_PER_MS) /* what readings add to a freeze */
#define LATE_NS (150 * NS_PER_MS) /* a freeze that readings make longer by so much ends without them */
#define INSTANTS 5
#define EXCHANGED 0.1 /* of its CPU time: from that on the reading is not of its own draw */

/* The values of the freezes of one cgroup. */
struct frozen {
	const char *path;
	int dir;
	unsigned n, cap;
	struct pair {
		double drawn[SCHEMA_MAX_DOMAINS], charged[SCHEMA_MAX_DOMAINS];
		double own_cpu, other_cpu; /* less of its own, more of others, while it was frozen; CPUs */
	} * pair;
	uint64_t frozen_ns;
	unsigned failed;
};

struct experiment {
	struct audit_session *s;
	struct freezer *freezer;
	struct frozen of[FREEZER_MAX];
};

/* Rates between two instants: of the cgroup and of all. */
struct rates {
	double drawn[SCHEMA_MAX_DOMAINS], charged[SCHEMA_MAX_DOMAINS], own_cpu, other_cpu;
};

static double rate(uint64_t after, uint64_t before, uint64_t ns)
{
	return after > before && ns ? (double)(after - before) / (double)ns : 0;
}

static void rates_between(const struct audit_session *s, const struct audit_reading *a, const struct audit_reading *b,
			  struct rates *ret)
{
	unsigned cpu = s->with.facts.n_domains + RUN_CPU;
	uint64_t ns = b->machine.mono_ns - a->machine.mono_ns;

	for (unsigned d = 0; d < s->with.facts.n_domains; d++) {
		ret->drawn[d] = 1e3 * rate(b->machine.energy_uj[d], a->machine.energy_uj[d], ns);
		ret->charged[d] = 1e3 * rate(b->of[0].value[d], a->of[0].value[d], ns);
	}
	ret->own_cpu = rate(b->of[0].value[cpu], a->of[0].value[cpu], ns);
	ret->other_cpu = rate(b->of[1].value[cpu], a->of[1].value[cpu], ns) - ret->own_cpu;
}

/* Instants: 0 before, 1 and 2 frozen, 3 and 4 after. */
static void pair_of(const struct audit_session *s, const struct audit_reading *at, struct pair *ret)
{
	struct rates before, frozen, after;

	rates_between(s, &at[0], &at[1], &before);
	rates_between(s, &at[1], &at[2], &frozen);
	rates_between(s, &at[3], &at[4], &after);
	for (unsigned d = 0; d < s->with.facts.n_domains; d++) {
		ret->drawn[d] = (before.drawn[d] + after.drawn[d]) / 2 - frozen.drawn[d];
		ret->charged[d] = (before.charged[d] + after.charged[d]) / 2 - frozen.charged[d];
	}
	ret->own_cpu = (before.own_cpu + after.own_cpu) / 2 - frozen.own_cpu;
	ret->other_cpu = frozen.other_cpu - (before.other_cpu + after.other_cpu) / 2;
}

/* Reads the answers after the freeze, so that it is short. */
static int take(struct experiment *e, struct frozen *f, const struct buf *bodies, struct err *err)
{
	struct audit_reading *at = calloc(INSTANTS, sizeof(*at));
	struct run_rows rows[2] = { 0 };
	const char *const paths[2] = { f->path, NULL };
	int rc = at && !ARRAY_ROOM(f->pair, f->cap, f->n + 1) ?
			 0 :
			 err_set(err, -ENOMEM, "audit: out of memory; free some");

	for (unsigned i = 0; i < INSTANTS && !rc; i++)
		rc = audit_read(e->s, &bodies[i], paths, 2, rows, &at[i], err);
	if (!rc && !rows[0].n)
		rc = err_set(err, -ENODATA,
			     "%s: the agent does not report it; look at its cgroups.include, exclude and max", f->path);
	if (!rc)
		pair_of(e->s, at, &f->pair[f->n++]);
	run_rows_free(&rows[0]);
	run_rows_free(&rows[1]);
	free(at);
	return rc;
}

/* While it is frozen nothing may fail without a thaw: the second process thaws after its time, and at our end. */
static int freeze_and_read(struct experiment *e, unsigned i, struct buf *bodies, uint64_t *ret_ns, struct err *err)
{
	struct agent *agent = e->s->with.agent;
	uint64_t begin;
	int rc = freezer_freeze(e->freezer, i, err), thawed;

	if (rc)
		return rc;
	begin = clock_mono_ns();
	rc = run_reading_fetch(agent, NULL, &bodies[1], err);
	if (!rc) {
		uint64_t gone = clock_mono_ns() - begin, want = e->s->plan->freeze_ns;

		freezer_wait(e->freezer, gone < want ? want - gone : 0);
		rc = run_reading_fetch(agent, NULL, &bodies[2], err);
	}
	thawed = freezer_thaw(e->freezer, ret_ns, rc ? NULL : err);
	return rc ? rc : thawed;
}

static int freeze_once(struct experiment *e, unsigned i, struct err *err)
{
	const uint64_t around = AROUND * e->s->plan->freeze_ns;
	struct agent *agent = e->s->with.agent;
	struct buf bodies[INSTANTS] = { 0 };
	struct frozen *f = &e->of[i];
	uint64_t ns = 0;
	int rc = run_reading_fetch(agent, NULL, &bodies[0], err);

	if (!rc) {
		audit_sleep(around);
		rc = freeze_and_read(e, i, bodies, &ns, err);
		f->frozen_ns += ns;
	}
	if (rc == -ETIMEDOUT || rc == -EBUSY) { /* this one does not count, the next ones may */
		f->failed++;
		rc = 0;
		goto out;
	}
	if (!rc) {
		audit_sleep(SETTLE_NS);
		rc = run_reading_fetch(agent, NULL, &bodies[3], err);
	}
	if (!rc) {
		audit_sleep(around);
		rc = run_reading_fetch(agent, NULL, &bodies[4], err);
	}
	if (!rc && !audit_interrupted) /* a signal cuts the sleeps */
		rc = take(e, f, bodies, err);
out:
	for (unsigned k = 0; k < INSTANTS; k++)
		buf_free(&bodies[k]);
	return rc;
}

/* A slot: each cgroup is frozen once, at an instant of its own in its part of the slot; not while it has lost more of
 * its time than it may. */
static int run_slot(struct experiment *e, uint64_t slot_ns, struct err *err)
{
	const struct audit_plan *p = e->s->plan;
	uint64_t part = slot_ns / p->n_cgroups, begin = clock_mono_ns();
	int rc = 0;

	for (unsigned i = 0; i < p->n_cgroups && !rc && !audit_interrupted; i++) {
		uint64_t at = begin + i * part +
			      audit_instant(&e->s->random, part, p->freeze_ns + READ_NS, AROUND * p->freeze_ns);
		uint64_t now = clock_mono_ns(), so_far = now - e->s->begin_ns;

		audit_sleep(at > now ? at - now : 0);
		if (!audit_interrupted && (double)e->of[i].frozen_ns <= p->duty * (double)so_far)
			rc = freeze_once(e, i, err);
		audit_progress(e->s, "freezes", e->of[i].n);
	}
	begin += slot_ns;
	if (!rc && begin > clock_mono_ns())
		audit_sleep(begin - clock_mono_ns());
	return rc;
}

static double displaced(const struct frozen *f)
{
	double own = 0, other = 0;

	for (unsigned i = 0; i < f->n; i++) {
		own += f->pair[i].own_cpu;
		other += f->pair[i].other_cpu;
	}
	return own > 0 ? fmin(fmax(other / own, 0), 1) : 0;
}

static int add_domain(struct audit *ret, const struct experiment *e, const struct frozen *f, unsigned d)
{
	double *charged = malloc((2 * f->n + 1) * sizeof(*charged));
	char shown[4096];
	struct audit_answer a;
	struct audit_line l;
	const char *from;
	size_t n;

	if (!charged)
		return -ENOMEM;
	for (unsigned i = 0; i < f->n; i++) {
		charged[i] = f->pair[i].charged[d];
		charged[f->n + i] = f->pair[i].drawn[d];
	}
	a = audit_judge(charged, charged + f->n, f->n, ret->seed);
	free(charged);
	l = (struct audit_line){ .pairs = a.n,
				 .charged_w = a.charged_w,
				 .drawn_w = a.drawn_w,
				 .bias = a.bias,
				 .low = a.interval.low,
				 .high = a.interval.high,
				 .displaced = displaced(f) };
	l.judged = l.displaced < EXCHANGED;
	n = strlen(text_escape(shown, sizeof(shown), f->path));
	from = n < sizeof(l.cgroup) ? shown : shown + n + 1 - sizeof(l.cgroup);
	memcpy(l.cgroup, from, strlen(from) + 1);
	snprintf(l.domain, sizeof(l.domain), "%s", e->s->with.facts.domain[d].name);
	snprintf(l.draw, sizeof(l.draw), AUDIT_DRAW_MARGINAL);
	return audit_add(ret, &l) ? 0 : -ENOSPC;
}

static int report(const struct experiment *e, struct audit *ret, struct err *err)
{
	int rc = 0;

	snprintf(ret->method, sizeof(ret->method), "freeze");
	for (unsigned i = 0; i < e->s->plan->n_cgroups; i++) {
		ret->frozen_ns += e->of[i].frozen_ns;
		for (unsigned d = 0; d < e->s->with.facts.n_domains && !rc; d++)
			if (e->s->audited[d])
				rc = add_domain(ret, e, &e->of[i], d);
	}
	if (rc == -ENOSPC) /* check_lines has seen to it */
		return err_set(err, rc, "audit: no room for all lines; name fewer cgroups");
	return rc ? err_set(err, rc, "audit: out of memory; free some") : 0;
}

/* Checks all cgroups that were named before any is touched. */
static int open_all(struct experiment *e, int dirs[FREEZER_MAX], struct err *err)
{
	const struct audit_plan *p = e->s->plan;

	for (unsigned i = 0; i < p->n_cgroups; i++) {
		int dir = audit_consent(&e->s->place, p->cgroup[i], err);

		if (dir < 0)
			return dir;
		e->of[i].path = p->cgroup[i];
		e->of[i].dir = dirs[i] = dir;
		for (unsigned k = 0; k < i; k++) {
			const char *a = p->cgroup[k], *b = p->cgroup[i];
			size_t n = strlen(a) < strlen(b) ? strlen(a) : strlen(b);

			if (strncmp(a, b, n) == 0 && (a[n] == '\0' || a[n] == '/') && (b[n] == '\0' || b[n] == '/'))
				return err_set(err, -EINVAL,
					       "%.200s: it is in another one that was named; leave one out", b);
		}
	}
	return 0;
}

/* A result has room for so many lines: one for each cgroup in each domain. */
static int check_lines(const struct audit_session *s, struct err *err)
{
	unsigned domains = 0, cgroups = s->plan->n_cgroups;

	for (unsigned d = 0; d < s->with.facts.n_domains; d++)
		domains += s->audited[d];
	if (cgroups * domains <= AUDIT_LINES_MAX)
		return 0;
	return err_set(
		err, -EINVAL,
		"audit: --cgroup: %u cgroups in %u domains are %u lines, and a result has %d; name at most %u at a time",
		cgroups, domains, cgroups * domains, AUDIT_LINES_MAX, AUDIT_LINES_MAX / domains);
}

int audit_by_freezing(struct audit_session *s, struct audit *ret, struct err *err)
{
	const struct audit_plan *p = s->plan;
	uint64_t slot_ns = audit_slot_ns(p->freeze_ns + READ_NS, p->duty);
	int dirs[FREEZER_MAX], rc = check_lines(s, err);
	struct experiment *e = rc ? NULL : calloc(1, sizeof(*e));

	if (rc)
		return rc;
	if (!e)
		return err_set(err, -ENOMEM, "audit: out of memory; free some");
	e->s = s;
	for (unsigned i = 0; i < FREEZER_MAX; i++)
		e->of[i].dir = -1;
	rc = open_all(e, dirs, err);
	if (!rc)
		rc = freezer_start(dirs, p->n_cgroups, p->freeze_ns + LATE_NS, &e->freezer, err);
	s->begin_ns = clock_mono_ns();
	while (!rc && audit_goes_on(s, slot_ns))
		rc = run_slot(e, slot_ns, err);
	audit_progress_end(s);
	freezer_stop(e->freezer);
	if (!rc)
		rc = report(e, ret, err);
	for (unsigned i = 0; i < p->n_cgroups; i++) {
		if (e->of[i].dir >= 0)
			close(e->of[i].dir);
		free(e->of[i].pair);
	}
	free(e);
	return rc;
}
