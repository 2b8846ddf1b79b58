/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_session.h"
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "ctl/core/janitor.h"

#define DRAIN_MS 50
#define INTERVAL_NS NS_PER_S /* between readings: energy is split over the samples of each */
#define TRIES 20
#define TRY_NS (50 * (long)NS_PER_MS)

static uint64_t number(const json_t *o, const char *key)
{
	const json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static int take_row(struct profile_session *s, const json_t *o)
{
	const json_t *energy = json_object_get(o, "energy_uj");
	const char *name = text_of(o, "name");
	struct share_row *row;

	if (!*name || strlen(name) >= PROFILE_NAME_MAX)
		return 0;
	row = row_shares_row(&s->p.shares, name, number(o, "id"));
	if (!row)
		return -ENOMEM;
	row->quality |= quality_named(text_of(o, "energy_quality"));
	for (unsigned d = 0; d < s->p.shares.n_domains; d++)
		row_shares_total(row, d, number(energy, s->p.domain[d].name), s->begun);
	return 0;
}

static int take_reading(struct profile_session *s, const struct buf *body, struct err *err)
{
	json_t *doc = json_loadb((const char *)body->data, body->len, 0, NULL);
	const json_t *rows = json_object_get(doc, "rows"), *row;
	int rc = json_is_array(rows) ? 0 : -EBADMSG;
	size_t i;

	if (rc)
		err_set(err, rc,
			"profile: the agent's answer has no list of rows; is it of the same version as joulectl?");
	json_array_foreach(rows, i, row)
		if (!rc && (rc = take_row(s, row)) != 0)
			err_set(err, rc, "profile: no room for the rows of all cgroups; give --cgroup");
	if (!rc && !s->begun)
		s->p.began_ns = number(doc, "monotonic_ns");
	if (!rc)
		s->p.ended_ns = number(doc, "monotonic_ns");
	json_decref(doc);
	return rc;
}

/* Asks for a reading, and asks again where the agent refuses because it was asked too often. */
static int ask_reading(struct profile_session *s, struct err *err)
{
	struct buf body = { 0 }, target = { 0 };
	int rc = -ENOMEM;

	buf_add_str(&target, "/v1/reading");
	if (s->p.cgroup) {
		buf_add_str(&target, "?below=");
		agent_escape(&target, s->p.cgroup);
	}
	buf_add_char(&target, '\0');
	for (unsigned i = 0; !target.failed && i < TRIES; i++) {
		rc = agent_post(s->with.agent, (const char *)target.data, &body, err);
		if (rc != -EPROTO)
			break;
		nanosleep(&(struct timespec){ .tv_nsec = TRY_NS }, NULL);
	}
	if (!rc)
		rc = take_reading(s, &body, err);
	buf_free(&target);
	buf_free(&body);
	return rc;
}

/* A reading, then the samples up to now: what is left over belongs to the next interval. */
static int end_interval(struct profile_session *s, struct err *err)
{
	int rc = ask_reading(s, err);

	sampler_drain(s->p.sampler, &s->p.code, &s->p.stacks);
	if (!rc && row_shares_split(&s->p.shares, &s->p.stacks) != 0)
		rc = err_set(err, -ENOMEM, "profile: out of memory; profile a cgroup, or for a shorter time");
	s->due_ns = clock_mono_ns() + INTERVAL_NS;
	return rc;
}

static void take_facts(struct profile_session *s)
{
	const struct run_facts *f = &s->with.facts;
	struct profile *p = &s->p;

	p->n_domains = p->shares.n_domains = f->n_domains;
	for (unsigned d = 0; d < f->n_domains; d++) {
		memcpy(p->domain[d].name, f->domain[d].name, sizeof(p->domain[d].name));
		p->domain[d].summed = f->domain[d].summed;
	}
	memcpy(p->formula, f->formula, sizeof(p->formula));
	memcpy(p->idle, f->idle, sizeof(p->idle));
}

int profile_open(struct profile_session *s, const struct run_agent_wish *wish, struct err *err)
{
	int rc = sampler_open(s->p.rate_hz, &s->p.sampler, err);

	if (!rc && code_open(&s->p.code) != 0)
		rc = err_set(err, -ENOMEM, "profile: out of memory; free some");
	if (!rc)
		rc = run_agent_find(&s->with, wish, s->mount, err);
	if (!rc && !s->with.facts.split)
		rc = err_set(
			err, -ENODATA,
			"profile: the agent gives no energy to cgroups (formula none); use --private, or set its formula");
	take_facts(s);
	return rc;
}

static int begin(void *arg, struct err *err)
{
	struct profile_session *s = arg;
	int rc = ask_reading(s, err);

	s->begun = true;
	s->due_ns = clock_mono_ns() + INTERVAL_NS;
	return rc ? rc : sampler_start(s->p.sampler, err);
}

static int tick(void *arg)
{
	struct profile_session *s = arg;

	if (s->failed.code)
		return DRAIN_MS;
	if (clock_mono_ns() >= s->due_ns)
		end_interval(s, &s->failed);
	else
		sampler_drain(s->p.sampler, &s->p.code, &s->p.stacks);
	return DRAIN_MS;
}

static int finish(struct profile_session *s, struct err *err)
{
	int rc = s->failed.code;

	sampler_stop(s->p.sampler);
	if (rc)
		*err = s->failed;
	else
		rc = end_interval(s, err);
	if (!rc && frame_names_fill(&s->p.names, &s->p.code, &s->p.stacks) != 0)
		rc = err_set(err, -ENOMEM, "profile: out of memory; profile a cgroup, or for a shorter time");
	return rc;
}

int profile_for(struct profile_session *s, uint64_t duration_ns, struct run_signals *signals, struct err *err)
{
	struct pollfd fd = { .fd = signals->fd, .events = POLLIN };
	const uint64_t until = clock_mono_ns() + duration_ns;
	int rc = begin(s, err);

	while (!rc && !s->failed.code && clock_mono_ns() < until && !run_signals_look(signals)) {
		poll(&fd, 1, DRAIN_MS);
		tick(s);
	}
	return rc ? rc : finish(s, err);
}

int profile_command(struct profile_session *s, char **argv, struct run_signals *signals, struct run_end *ret,
		    struct err *err)
{
	static struct run_place place;
	static struct run_cgroup cgroup;
	const struct run_watch watch = { .ready = begin, .tick = tick, .arg = s, .first_ms = DRAIN_MS, .fd = -1 };
	const struct run_command what = { .argv = argv, .cgroup = &cgroup, .signals = signals };
	struct janitor *janitor = NULL;
	int rc = run_place_find(s->mount, &place, err);

	if (!rc)
		rc = janitor_start(run_place_sweep, &place, -1, &janitor, err);
	if (!rc)
		rc = run_cgroup_make(&place, &cgroup, err);
	if (!rc) {
		s->p.cgroup = cgroup.path;
		rc = run_child(&what, &watch, ret, err);
		if (!rc && ret->not_started)
			rc = err_set(err, -ret->not_started, "profile: %.200s: %s; give a command that can be executed",
				     argv[0], strerrordesc_np(ret->not_started));
		if (!rc)
			rc = finish(s, err);
		run_cgroup_remove(&cgroup);
	}
	janitor_dismiss(janitor);
	return rc;
}

void profile_close(struct profile_session *s)
{
	run_agent_close(&s->with);
	profile_free(&s->p);
}
