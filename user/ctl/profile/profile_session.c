/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_session.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/parse.h"
#include "ctl/core/janitor.h"
#include "profile/moments.h"

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

/* What all rows counted so far, by the columns of the events. */
struct counted {
	uint64_t event[SCHEMA_MAX_EVENTS], cpu_ns;
};

static int take_row(struct profile_session *s, const json_t *o, struct counted *all)
{
	const json_t *counters = json_object_get(o, "counters"), *energy = json_object_get(o, "energy_uj");
	const char *name = text_of(o, "name");
	struct share_row *row;

	if (!*name || strlen(name) >= PROFILE_NAME_MAX)
		return 0;
	for (unsigned i = 0; i < s->p.priced.events.n; i++)
		all->event[i] += number(counters, s->p.priced.events.ev[i].name);
	if (name[0] == '/')
		all->cpu_ns += number(o, "cpu_ns");
	row = row_shares_row(&s->p.shares, name, number(o, "id"));
	if (!row)
		return -ENOMEM;
	row->quality |= quality_named(text_of(o, "energy_quality"));
	for (unsigned d = 0; d < s->p.shares.n_domains; d++)
		row_shares_total(row, d, number(energy, s->p.domain[d].name), s->begun);
	return 0;
}

static double price_of(const json_t *price, const char *domain)
{
	const json_t *joules = json_object_get(price, "joules_per_second");

	return json_number_value(json_object_get(joules ? joules : json_object_get(price, "joules_per_count"), domain));
}

/* The prices of a reading; an agent that tells none lets energy follow time. The first is that of time, then come those
 * of the events as priced_open got them. */
static int take_prices(struct profile_session *s, const json_t *prices, const struct counted *all)
{
	static struct snap_price price[SCHEMA_MAX_DOMAINS];

	for (unsigned d = 0; d < s->p.n_domains; d++) {
		price[d].per_second = price_of(json_array_get(prices, 0), s->p.domain[d].name);
		for (unsigned i = 0; i < s->p.priced.events.n; i++)
			price[d].per_count[i] = price_of(json_array_get(prices, i + 1), s->p.domain[d].name);
	}
	return priced_take(&s->p.priced, s->p.sampler, &s->p.shares, price, all->event, all->cpu_ns);
}

static int take_reading(struct profile_session *s, const struct buf *body, struct err *err)
{
	json_t *doc = json_loadb((const char *)body->data, body->len, 0, NULL);
	const json_t *rows = json_object_get(doc, "rows"), *row;
	int rc = json_is_array(rows) ? 0 : -EBADMSG;
	struct counted all = { 0 };
	size_t i;

	if (rc)
		err_set(err, rc,
			"profile: the agent's answer has no list of rows; is it of the same version as joulectl?");
	json_array_foreach(rows, i, row)
		if (!rc && (rc = take_row(s, row, &all)) != 0)
			err_set(err, rc, "profile: no room for the rows of all cgroups; give --cgroup");
	if (!rc && (rc = take_prices(s, json_object_get(doc, "prices"), &all)) != 0)
		err_set(err, rc, "profile: out of memory; profile a cgroup, or for a shorter time");
	if (!rc && !s->begun)
		s->p.began_ns = number(doc, "monotonic_ns");
	if (!rc)
		s->p.ended_ns = number(doc, "monotonic_ns");
	json_decref(doc);
	return rc;
}

static void take_encoding(const json_t *o, struct event_variant *ret)
{
	*ret = (struct event_variant){ .type = (uint32_t)number(o, "type"),
				       .config = (uint64_t)json_integer_value(json_object_get(o, "config")),
				       .config1 = (uint64_t)json_integer_value(json_object_get(o, "config1")),
				       .config2 = (uint64_t)json_integer_value(json_object_get(o, "config2")) };
	parse_cpulist(text_of(o, "cpus"), ret->cpus, 8 * sizeof(ret->cpus));
}

/* An event as the agent counts it: with one encoding, or with several on a hybrid machine. */
static void take_event(const json_t *price, struct event_desc *e, struct event_variants *v)
{
	const json_t *perf = json_object_get(price, "perf");

	snprintf(e->name, sizeof(e->name), "%s", text_of(price, "event"));
	e->kind = json_array_size(perf) ? EVENT_PERF : EVENT_ABSENT;
	for (size_t i = 0; i < json_array_size(perf) && v->n < sizeof(v->v) / sizeof(v->v[0]); i++)
		take_encoding(json_array_get(perf, i), &v->v[v->n++]);
	e->type = v->v[0].type;
	e->config = v->v[0].config;
	e->config1 = v->v[0].config1;
	e->config2 = v->v[0].config2;
	e->cpus_only_known = json_object_get(json_array_get(perf, 0), "cpus") != NULL;
	memcpy(e->cpus, v->v[0].cpus, sizeof(e->cpus));
}

/* Opens the counters that may have prices, from the agent's first answer. */
static void take_events(struct profile_session *s, const struct buf *body)
{
	static struct event_variants variants[SCHEMA_MAX_EVENTS];
	json_t *doc = json_loadb((const char *)body->data, body->len, 0, NULL);
	const json_t *prices = json_object_get(doc, "prices");
	struct event_set events = { 0 };

	memset(variants, 0, sizeof(variants));
	for (; events.n + 1 < json_array_size(prices) && events.n < SCHEMA_MAX_EVENTS; events.n++)
		take_event(json_array_get(prices, events.n + 1), &events.ev[events.n], &variants[events.n]);
	priced_open(&s->p.priced, s->p.sampler, &events, variants);
	json_decref(doc);
}

/* Asks for a reading, and asks again where the agent refuses because it was asked too often. */
static int ask_reading(struct profile_session *s, struct err *err)
{
	struct buf body = { 0 }, target = { 0 };
	int rc = -ENOMEM;

	buf_add_str(&target, "/v1/reading");
	if (s->p.cgroup &&
	    s->begun) { /* the first is of all rows: the rates of counters follow from what they counted */
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
	if (!rc && !s->begun)
		take_events(s, &body);
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
	if (!rc && s->p.moments && moments_take(s->p.moments) != 0)
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
		p->priced.beside[d] = !f->domain[d].summed;
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

/* A cgroup is sampled alone: what else runs would cost time and room. */
static int narrow(struct profile_session *s, struct err *err)
{
	char dir[2 * RUN_PATH_MAX];
	int fd, rc;

	if (!s->p.cgroup)
		return 0;
	snprintf(dir, sizeof(dir), "%s%s", s->mount, s->p.cgroup);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && s->mount[0] && (errno == ENOENT || errno == ENOTDIR))
		return err_set(err, -ENOENT,
			       "profile: --cgroup %.200s: there is no such cgroup; joulectl list shows them",
			       s->p.cgroup);
	if (fd < 0)
		return 0;
	rc = sampler_narrow(s->p.sampler, fd, err);
	close(fd);
	return rc;
}

static int begin(void *arg, struct err *err)
{
	struct profile_session *s = arg;
	int rc = narrow(s, err);

	if (!rc)
		rc = ask_reading(s, err);

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

static bool wants(const void *arg, uint32_t stack)
{
	return profile_wants_stack(arg, stack);
}

static int finish(struct profile_session *s, struct err *err)
{
	int rc = s->failed.code;

	s->names.wants = wants;
	s->names.arg = &s->p;
	s->p.names.wish = &s->names;
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
		snprintf(s->path, sizeof(s->path), "%s", cgroup.path); /* its own goes with the cgroup */
		s->p.cgroup = s->path;
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
