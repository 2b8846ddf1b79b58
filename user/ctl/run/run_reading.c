/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/array.h"
#include "base/clock.h"
#include "base/text.h"
#include "model/snapshot_fields.h"
#include "run_beside.h"
#include "run_reading.h"

#define ROWS_MAX 1000000u
#define TRIES 20 /* attempts at a reading that the agent refuses for the moment */
#define TRY_NS (50 * (long)NS_PER_MS)

struct run_row {
	char *name;
	uint64_t v[RUN_VALUES_MAX];
};

static const unsigned qualities[7] = {
	QUALITY_MEASURED, QUALITY_WRAPPED, QUALITY_MULTIPLEXED, QUALITY_ESTIMATED,
	QUALITY_STALE,    QUALITY_PARTIAL, QUALITY_LOST,
};

static uint64_t number(const json_t *o, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static int malformed(struct err *err, const char *what)
{
	return err_set(err, -EBADMSG, "agent: its answer has no %s; is it of the same version as joulectl?", what);
}

static void read_domain(const json_t *o, unsigned i, struct run_facts *f, struct run_machine *m)
{
	struct run_domain *d = &f->domain[i];
	const json_t *intervals = json_object_get(o, "intervals");
	struct total_domain t = { .quality = QUALITY_PARTIAL,
				  .idle_quality = QUALITY_PARTIAL }; /* kept where the answer does not say */

	text_escape(d->name, sizeof(d->name), text_of(o, "name"));
	d->kind = domain_kind_of(text_of(o, "kind"));
	fields_json_read(o, &total_domain_fields, &t, TOTAL_OF_SUM | TOTAL_OF_RATE);
	d->idle_power_uw = t.idle_power_uw;
	d->idle_quality = t.idle_quality;
	m->energy_uj[i] = t.energy_uj;
	m->idle_uj[i] = t.idle_uj;
	m->rows_quality[i] = t.quality;
	for (unsigned q = 0; q < 7; q++)
		m->intervals[i][q] = number(intervals, quality_name(qualities[q]));
}

static void choose_summed(struct run_facts *f)
{
	const char *kinds[SCHEMA_MAX_DOMAINS];
	bool summed[SCHEMA_MAX_DOMAINS];

	for (unsigned i = 0; i < f->n_domains; i++)
		kinds[i] = domain_kind_name(f->domain[i].kind);
	domain_names_summed(kinds, f->n_domains, summed);
	for (unsigned i = 0; i < f->n_domains; i++)
		f->domain[i].summed = summed[i];
}

static int read_machine(const json_t *doc, struct run_facts *f, struct run_machine *m, struct err *err)
{
	const json_t *domains = json_object_get(doc, "domains");
	struct losses lost = { 0 };
	size_t n = json_array_size(domains);

	if (!json_is_array(domains) || n > SCHEMA_MAX_DOMAINS)
		return malformed(err, "list of domains");
	text_escape(f->formula, sizeof(f->formula), text_of(doc, "formula"));
	text_escape(f->idle, sizeof(f->idle), text_of(doc, "idle"));
	f->split = *f->formula && strcmp(f->formula, "none") != 0;
	f->n_domains = (unsigned)n;
	for (unsigned i = 0; i < n; i++)
		read_domain(json_array_get(domains, i), i, f, m);
	choose_summed(f);
	m->mono_ns = number(doc, "monotonic_ns");
	m->busy_ns = number(doc, "busy_ns");
	m->real_ns = (int64_t)number(doc, "time_ns");
	fields_json_read(json_object_get(doc, "losses"), &losses_fields, &lost, IN_JSON);
	m->lost = lost.folded + lost.lost_reads + lost.lost_events;
	return 0;
}

/* Reads the names of counters from a row: all rows have the same ones. */
static void read_counters(const json_t *row, struct run_facts *f)
{
	json_t *counters = json_object_get(row, "counters"), *value;
	const char *name;

	f->n_counters = 0;
	json_object_foreach(counters, name, value)
		if (f->n_counters < SCHEMA_MAX_EVENTS)
			text_escape(f->counter[f->n_counters++], SCHEMA_NAME_MAX, name);
}

static void read_values(const json_t *o, const struct run_facts *f, uint64_t v[RUN_VALUES_MAX])
{
	const json_t *energy = json_object_get(o, "energy_uj"), *counters = json_object_get(o, "counters");

	for (unsigned i = 0; i < f->n_domains; i++)
		v[i] = number(energy, f->domain[i].name);
	fields_json_read(o, &total_columns, v + f->n_domains, ~0u);
	for (unsigned i = 0; i < f->n_counters; i++)
		v[f->n_domains + RUN_FIXED + i] = number(counters, f->counter[i]);
	v[RUN_RANGED] = number(o, "ranged_uj");
	v[RUN_RANGE] = number(o, "range_uj");
}

static struct run_row *row_named(struct run_rows *rows, const char *name)
{
	for (unsigned i = 0; i < rows->n; i++)
		if (strcmp(rows->row[i].name, name) == 0)
			return &rows->row[i];
	if (rows->n == ROWS_MAX || ARRAY_ROOM(rows->row, rows->cap, rows->n + 1))
		return NULL;
	rows->row[rows->n] = (struct run_row){ .name = strdup(name) };
	return rows->row[rows->n].name ? &rows->row[rows->n++] : NULL;
}

static int add_row(const json_t *o, const struct run_facts *f, struct run_rows *rows)
{
	uint64_t v[RUN_VALUES_MAX] = { 0 };
	struct run_row *r;

	if (rows->only && strcmp(rows->only, text_of(o, "name")) != 0)
		return 0;
	r = row_named(rows, text_of(o, "name"));
	if (!r)
		return -ENOMEM;
	read_values(o, f, v);
	rows->quality |= quality_named(text_of(o, "worst_quality"));
	/* The agent forgot the cgroup after its end, and another one has its name now. */
	if (v[f->n_domains + RUN_CPU] < r->v[f->n_domains + RUN_CPU])
		for (unsigned i = 0; i < RUN_VALUES_MAX; i++)
			rows->gone[i] += r->v[i];
	memcpy(r->v, v, sizeof(v));
	return 0;
}

static bool is_below(const char *name, const char *top)
{
	size_t n = strlen(top);

	return strncmp(name, top, n) == 0 && (name[n] == '\0' || name[n] == '/');
}

static int add_beside(const json_t *o, const struct run_facts *f, struct run_beside *b)
{
	uint64_t v[RUN_VALUES_MAX] = { 0 }, uj = 0;

	if (strcmp(text_of(o, "name"), row_kind_name(ROW_IDLE)) == 0)
		return 0;
	read_values(o, f, v);
	for (unsigned d = 0; d < f->n_domains; d++)
		uj += f->domain[d].summed ? v[d] : 0;
	return run_beside_add(b, text_of(o, "name"), uj, v[f->n_domains + RUN_CPU]);
}

/* Puts a row where it belongs. 0 or -ENOMEM. */
static int take_row(const json_t *o, const struct run_reading *ret)
{
	const char *name = text_of(o, "name");

	if (ret->below && !is_below(name, ret->below))
		return ret->beside ? add_beside(o, ret->facts, ret->beside) : 0;
	return ret->rows && name[0] == '/' ? add_row(o, ret->facts, ret->rows) : 0;
}

int run_reading_parse(const char *text, size_t size, const struct run_reading *ret, struct err *err)
{
	struct run_machine m = { 0 };
	json_t *doc = json_loadb(text, size, 0, NULL), *list = json_object_get(doc, "rows"), *row;
	int rc = doc ? read_machine(doc, ret->facts, &m, err) : malformed(err, "JSON");
	size_t i;

	if (!rc && !json_array_size(list))
		rc = malformed(err, "list of rows");
	if (!rc)
		read_counters(json_array_get(list, 0), ret->facts);
	if (!rc)
		json_array_foreach(list, i, row)
			if (!rc && take_row(row, ret))
				rc = err_set(err, -ENOMEM, "reading: out of memory; free some");
	json_decref(doc);
	if (!rc)
		*ret->machine = m;
	return rc;
}

static bool source_is(const json_t *sources, const char *name, const char *state, const char **ret_reason)
{
	const json_t *s;
	size_t i;

	json_array_foreach(sources, i, s)
		if (strcmp(text_of(s, "name"), name) == 0 && strcmp(text_of(s, "state"), state) == 0) {
			*ret_reason = text_of(s, "reason");
			return true;
		}
	return false;
}

static void read_cost(const json_t *cost, struct run_facts *f)
{
	const json_t *price = json_object_get(cost, "price_per_kwh"),
		     *carbon = json_object_get(cost, "carbon_g_per_kwh");

	f->has_price = json_is_number(price);
	f->has_carbon = json_is_number(carbon);
	f->price = json_number_value(price);
	f->carbon_g = json_number_value(carbon);
}

int run_facts_parse_status(const char *text, size_t size, struct run_facts *f, struct err *err)
{
	json_t *doc = json_loadb(text, size, 0, NULL);
	const json_t *sources = json_object_get(doc, "sources");
	const char *reason;
	char name[80];
	int rc = 0;

	if (!json_is_array(sources)) {
		rc = malformed(err, "list of sources");
		goto out;
	}
	read_cost(json_object_get(doc, "cost"), f);
	f->network = source_is(sources, "network", "ok", &reason);
	f->block = source_is(sources, "block", "ok", &reason) || source_is(sources, "block", "estimated", &reason) ||
		   source_is(sources, "block", "partial", &reason);
	f->switches = strcmp(text_of(doc, "trigger"), "none") != 0;
	for (unsigned i = 0; i < f->n_domains; i++) {
		snprintf(name, sizeof(name), "energy %s", f->domain[i].name);
		f->domain[i].reason[0] = '\0';
		if (source_is(sources, name, "estimated", &reason))
			text_escape(f->domain[i].reason, sizeof(f->domain[i].reason), reason);
	}
out:
	json_decref(doc);
	return rc;
}

int run_reading_fetch(struct agent *a, const char *path, struct buf *body, struct err *err)
{
	struct buf target = { 0 };
	int rc = -ENOMEM;

	buf_add_str(&target, "/v1/reading");
	if (path) {
		buf_add_str(&target, "?below=");
		agent_escape(&target, path);
	}
	buf_add_char(&target, '\0');
	for (unsigned i = 0; !target.failed && i < TRIES; i++) {
		rc = agent_post(a, (const char *)target.data, body, err);
		if (rc != -EPROTO)
			break;
		nanosleep(&(struct timespec){ .tv_nsec = TRY_NS }, NULL);
	}
	buf_free(&target);
	return rc;
}

int run_reading_ask(struct agent *a, const char *path, const struct run_reading *ret, struct err *err)
{
	struct buf body = { 0 };
	int rc = run_reading_fetch(a, path, &body, err);

	if (!rc)
		rc = run_reading_parse((const char *)body.data, body.len, ret, err);
	buf_free(&body);
	return rc;
}

/* Asks for a reading and the status, and fills in the facts. ret_mount: RUN_PATH_MAX bytes. */
static int run_facts_ask(struct agent *a, struct run_facts *ret, char *ret_mount, struct err *err)
{
	struct buf body = { 0 };
	struct run_facts f = { 0 };
	struct run_machine m;
	json_t *doc = NULL;
	int rc = run_reading_fetch(a, "/.", &body,
				   err); /* no cgroup has this name: the answer has only the special rows */

	if (!rc)
		rc = run_reading_parse((const char *)body.data, body.len,
				       &(struct run_reading){ .facts = &f, .machine = &m }, err);
	if (!rc) {
		doc = json_loadb((const char *)body.data, body.len, 0, NULL);
		snprintf(ret_mount, RUN_PATH_MAX, "%s", text_of(doc, "mount"));
		json_decref(doc);
		rc = agent_get(a, "/v1/status", NULL, &body, err);
	}
	if (!rc)
		rc = run_facts_parse_status((const char *)body.data, body.len, &f, err);
	buf_free(&body);
	if (!rc)
		*ret = f;
	return rc;
}

void run_rows_free(struct run_rows *rows)
{
	for (unsigned i = 0; i < rows->n; i++)
		free(rows->row[i].name);
	free(rows->row);
	*rows = (struct run_rows){ 0 };
}

static void add_up(const struct run_rows *rows, uint64_t ret[RUN_VALUES_MAX])
{
	memcpy(ret, rows->gone, sizeof(rows->gone));
	for (unsigned i = 0; i < rows->n; i++)
		for (unsigned k = 0; k < RUN_VALUES_MAX; k++)
			ret[k] += rows->row[i].v[k];
}

void run_rows_start(struct run_rows *rows)
{
	add_up(rows, rows->start);
}

void run_result_fill(struct run_result *r, const struct run_facts *f, const struct run_rows *rows,
		     const struct run_machine *before, const struct run_machine *after)
{
	add_up(rows, r->value);
	for (unsigned k = 0; k < RUN_VALUES_MAX; k++)
		r->value[k] -= rows->start[k] < r->value[k] ? rows->start[k] : r->value[k];
	r->quality = rows->quality | (after->lost > before->lost ? QUALITY_PARTIAL : 0);
	r->window_ns = after->mono_ns - before->mono_ns;
	r->real_ns = after->real_ns;
	for (unsigned d = 0; d < f->n_domains; d++) {
		r->machine_uj[d] = after->energy_uj[d] - before->energy_uj[d];
		r->idle_uj[d] = after->idle_uj[d] - before->idle_uj[d];
		r->machine_quality[d] = 0;
		for (unsigned q = 0; q < 7; q++)
			if (after->intervals[d][q] > before->intervals[d][q])
				r->machine_quality[d] |= qualities[q];
		/* A meter that is slower than readings has intervals without a value, and the next one made up for them. */
		if (!(after->rows_quality[d] & QUALITY_STALE))
			r->machine_quality[d] &= ~(unsigned)QUALITY_STALE;
		r->energy_quality[d] = after->rows_quality[d] | r->quality | r->machine_quality[d];
	}
	r->measured = true;
}

#define LEARN_NS (2 * NS_PER_S) /* time that a private agent has to learn idle power */

/* Does the agent still learn the idle power of a domain? */
static bool learns(const struct run_facts *f)
{
	for (unsigned d = 0; d < f->n_domains && f->split; d++)
		if (!f->domain[d].idle_power_uw && f->domain[d].summed)
			return true;
	return false;
}

/* Says which of the events that were asked for this machine does not count. */
static void tell_absent(const struct run_facts *f, const char *events)
{
	size_t len;

	for (; *events; events += len + (events[len] == ',')) {
		char name[SCHEMA_NAME_MAX], shown[SCHEMA_NAME_MAX];
		unsigned i = 0;

		len = private_agent_event(events);
		snprintf(name, sizeof(name), "%.*s", (int)len, events);
		text_escape(shown, sizeof(shown), name);
		while (i < f->n_counters && strcmp(f->counter[i], shown) != 0)
			i++;
		if (i == f->n_counters)
			dprintf(STDERR_FILENO, "joulectl: event %s is not counted on this machine; see jouled doctor\n",
				shown);
	}
}

static int use_private(struct run_agent *a, const struct run_agent_wish *w, const char *why, char *mount,
		       struct err *err)
{
	const struct private_agent_options o = { .idle = w->idle, .events = w->events };
	uint64_t until;
	int rc;

	dprintf(STDERR_FILENO, "joulectl: %s; starting a private agent\n", why);
	rc = private_agent_start(&o, &a->own, err);
	if (!rc)
		rc = agent_open(private_agent_socket(a->own), &a->agent, err);
	if (!rc)
		rc = run_facts_ask(a->agent, &a->facts, mount, err);
	until = clock_mono_ns() + LEARN_NS;
	while (!rc && learns(&a->facts) && clock_mono_ns() < until) {
		nanosleep(&(struct timespec){ .tv_nsec = 250 * (long)NS_PER_MS }, NULL);
		rc = run_facts_ask(a->agent, &a->facts, mount, err);
	}
	a->facts.private_agent = true;
	if (!rc && w->events)
		tell_absent(&a->facts, w->events);
	return rc;
}

int run_agent_find(struct run_agent *ret, const struct run_agent_wish *w, char *ret_mount, struct err *err)
{
	const char *environment = getenv("JOULED_SOCKET");
	bool named = w->socket || (environment && *environment);
	char why[100];
	int rc;

	if (w->events)
		return use_private(ret, w, "--events is given", ret_mount, err);
	if (w->use_private)
		return use_private(ret, w, "--private is given", ret_mount, err);
	rc = agent_open(w->socket, &ret->agent, err);
	if ((rc == -ENOENT || rc == -ECONNREFUSED) && !named)
		return use_private(ret, w, "no agent is running", ret_mount, err);
	if (!rc)
		rc = run_facts_ask(ret->agent, &ret->facts, ret_mount, err);
	if (rc || !w->idle || strcmp(w->idle, ret->facts.idle) == 0)
		return rc;
	agent_close(ret->agent);
	ret->agent = NULL;
	snprintf(why, sizeof(why), "the running agent has idle %s, not %s", ret->facts.idle, w->idle);
	return use_private(ret, w, why, ret_mount, err);
}

void run_agent_close(struct run_agent *a)
{
	agent_close(a->agent);
	private_agent_stop(a->own);
	*a = (struct run_agent){ 0 };
}
