/* SPDX-License-Identifier: Apache-2.0 */
#include "run_reading.h"
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../base/clock.h"
#include "../base/text.h"
#include "../model/snapshot.h"

#define ROWS_MAX 1000000u
#define TRIES 20 /* of a reading that is refused for the moment */
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

/* A word that is not known is no reason to trust the value. */
static unsigned quality_of(const json_t *o, const char *key)
{
	for (unsigned i = 0; i < 7; i++)
		if (strcmp(quality_name(qualities[i]), text_of(o, key)) == 0)
			return qualities[i];
	return QUALITY_PARTIAL;
}

static enum domain_kind kind_of(const char *word)
{
	enum domain_kind k = 0;

	while (k < DOMAIN_EXTERNAL && strcmp(domain_kind_name(k), word) != 0)
		k++;
	return k;
}

static int malformed(struct err *err, const char *what)
{
	return err_set(err, -EBADMSG, "agent: its answer has no %s; is it of the same version as joulectl?", what);
}

static void read_domain(const json_t *o, unsigned i, struct run_facts *f, struct run_machine *m)
{
	struct run_domain *d = &f->domain[i];
	const json_t *intervals = json_object_get(o, "intervals");

	text_escape(d->name, sizeof(d->name), text_of(o, "name"));
	d->kind = kind_of(text_of(o, "kind"));
	d->idle_power_uw = number(o, "idle_power_uw");
	d->idle_quality = quality_of(o, "idle_quality");
	m->energy_uj[i] = number(o, "energy_uj");
	m->idle_uj[i] = number(o, "idle_uj");
	m->rows_quality[i] = quality_of(o, "rows_quality");
	for (unsigned q = 0; q < 7; q++)
		m->intervals[i][q] = number(intervals, quality_name(qualities[q]));
}

static int read_machine(const json_t *doc, struct run_facts *f, struct run_machine *m, struct err *err)
{
	const json_t *domains = json_object_get(doc, "domains"), *losses = json_object_get(doc, "losses");
	size_t n = json_array_size(domains);

	if (!json_is_array(domains) || n > SCHEMA_MAX_DOMAINS)
		return malformed(err, "list of domains");
	text_escape(f->formula, sizeof(f->formula), text_of(doc, "formula"));
	text_escape(f->idle, sizeof(f->idle), text_of(doc, "idle"));
	f->split = *f->formula && strcmp(f->formula, "none") != 0;
	f->n_domains = (unsigned)n;
	for (unsigned i = 0; i < n; i++)
		read_domain(json_array_get(domains, i), i, f, m);
	m->mono_ns = number(doc, "monotonic_ns");
	m->real_ns = (int64_t)number(doc, "time_ns");
	m->lost = number(losses, "folded") + number(losses, "counter_reads") + number(losses, "lifecycle_events");
	return 0;
}

/* Which counters there are is known from any row: all have the same. */
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
	static const char *const fixed[RUN_FIXED] = { "cpu_ns",     "switches", "rx_bytes",
						      "rx_packets", "tx_bytes", "tx_packets" };
	const json_t *energy = json_object_get(o, "energy_uj"), *counters = json_object_get(o, "counters");

	for (unsigned i = 0; i < f->n_domains; i++)
		v[i] = number(energy, f->domain[i].name);
	for (unsigned i = 0; i < RUN_FIXED; i++)
		v[f->n_domains + i] = number(o, fixed[i]);
	for (unsigned i = 0; i < f->n_counters; i++)
		v[f->n_domains + RUN_FIXED + i] = number(counters, f->counter[i]);
}

static struct run_row *row_named(struct run_rows *rows, const char *name)
{
	struct run_row *grown;

	for (unsigned i = 0; i < rows->n; i++)
		if (strcmp(rows->row[i].name, name) == 0)
			return &rows->row[i];
	if (rows->n == rows->cap) {
		unsigned cap = rows->cap ? rows->cap * 2 : 8;

		grown = cap <= ROWS_MAX ? realloc(rows->row, cap * sizeof(*grown)) : NULL;
		if (!grown)
			return NULL;
		rows->row = grown;
		rows->cap = cap;
	}
	rows->row[rows->n] = (struct run_row){ .name = strdup(name) };
	return rows->row[rows->n].name ? &rows->row[rows->n++] : NULL;
}

static int add_row(const json_t *o, const struct run_facts *f, struct run_rows *rows)
{
	struct run_row *r = row_named(rows, text_of(o, "name"));
	uint64_t v[RUN_VALUES_MAX] = { 0 };

	if (!r)
		return -ENOMEM;
	read_values(o, f, v);
	rows->quality |= quality_of(o, "worst_quality");
	/* forgotten after its end, and made again */
	if (v[f->n_domains + RUN_CPU] < r->v[f->n_domains + RUN_CPU])
		for (unsigned i = 0; i < RUN_VALUES_MAX; i++)
			rows->gone[i] += r->v[i];
	memcpy(r->v, v, sizeof(v));
	return 0;
}

int run_reading_parse(const char *text, size_t size, struct run_facts *f, struct run_machine *ret,
		      struct run_rows *rows, struct err *err)
{
	struct run_machine m = { 0 };
	json_t *doc = json_loadb(text, size, 0, NULL), *list = json_object_get(doc, "rows"), *row;
	int code = doc ? read_machine(doc, f, &m, err) : malformed(err, "JSON");
	size_t i;

	if (!code && !json_array_size(list))
		code = malformed(err, "list of rows");
	if (!code)
		read_counters(json_array_get(list, 0), f);
	if (!code && rows)
		json_array_foreach(list, i, row)
			if (!code && text_of(row, "name")[0] == '/' && add_row(row, f, rows))
				code = err_set(err, -ENOMEM, "reading: out of memory; free some");
	json_decref(doc);
	if (!code)
		*ret = m;
	return code;
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

int run_facts_parse_status(const char *text, size_t size, struct run_facts *f, struct err *err)
{
	json_t *doc = json_loadb(text, size, 0, NULL);
	const json_t *sources = json_object_get(doc, "sources");
	const char *reason;
	char name[80];

	if (!json_is_array(sources)) {
		json_decref(doc);
		return malformed(err, "list of sources");
	}
	f->network = source_is(sources, "network", "ok", &reason);
	f->switches = strcmp(text_of(doc, "trigger"), "none") != 0;
	for (unsigned i = 0; i < f->n_domains; i++) {
		snprintf(name, sizeof(name), "energy %s", f->domain[i].name);
		f->domain[i].reason[0] = '\0';
		if (source_is(sources, name, "estimated", &reason))
			text_escape(f->domain[i].reason, sizeof(f->domain[i].reason), reason);
	}
	json_decref(doc);
	return 0;
}

/* An agent that has just been asked too often is asked again. */
static int ask(struct agent *a, const char *path, struct buf *body, struct err *err)
{
	struct buf target = { 0 };
	int code = -ENOMEM;

	buf_add_str(&target, "/v1/reading");
	if (path) {
		buf_add_str(&target, "?below=");
		agent_escape(&target, path);
	}
	buf_add_char(&target, '\0');
	for (unsigned i = 0; !target.failed && i < TRIES; i++) {
		code = agent_post(a, (const char *)target.data, body, err);
		if (code != -EPROTO)
			break;
		nanosleep(&(struct timespec){ .tv_nsec = TRY_NS }, NULL);
	}
	buf_free(&target);
	return code;
}

int run_reading_ask(struct agent *a, struct run_facts *f, const char *path, struct run_machine *ret,
		    struct run_rows *rows, struct err *err)
{
	struct buf body = { 0 };
	int code = ask(a, path, &body, err);

	if (!code)
		code = run_reading_parse((const char *)body.data, body.len, f, ret, rows, err);
	buf_free(&body);
	return code;
}

int run_facts_ask(struct agent *a, struct run_facts *ret, char *ret_mount, struct err *err)
{
	struct buf body = { 0 };
	struct run_facts f = { 0 };
	struct run_machine m;
	json_t *doc = NULL;
	int code = ask(a, "/.", &body, err); /* nobody is called so: the special rows alone */

	if (!code)
		code = run_reading_parse((const char *)body.data, body.len, &f, &m, NULL, err);
	if (!code) {
		doc = json_loadb((const char *)body.data, body.len, 0, NULL);
		snprintf(ret_mount, RUN_PATH_MAX, "%s", text_of(doc, "mount"));
		json_decref(doc);
		code = agent_get(a, "/v1/status", NULL, &body, err);
	}
	if (!code)
		code = run_facts_parse_status((const char *)body.data, body.len, &f, err);
	buf_free(&body);
	if (!code)
		*ret = f;
	return code;
}

void run_rows_free(struct run_rows *rows)
{
	for (unsigned i = 0; i < rows->n; i++)
		free(rows->row[i].name);
	free(rows->row);
	*rows = (struct run_rows){ 0 };
}

void run_result_fill(struct run_result *r, const struct run_facts *f, const struct run_rows *rows,
		     const struct run_machine *before, const struct run_machine *after)
{
	memcpy(r->value, rows->gone, sizeof(r->value));
	for (unsigned i = 0; i < rows->n; i++)
		for (unsigned k = 0; k < RUN_VALUES_MAX; k++)
			r->value[k] += rows->row[i].v[k];
	r->quality = rows->quality | (after->lost > before->lost ? QUALITY_PARTIAL : 0);
	r->window_ns = after->mono_ns - before->mono_ns;
	for (unsigned d = 0; d < f->n_domains; d++) {
		r->machine_uj[d] = after->energy_uj[d] - before->energy_uj[d];
		r->idle_uj[d] = after->idle_uj[d] - before->idle_uj[d];
		r->energy_quality[d] = after->rows_quality[d] | r->quality;
		for (unsigned q = 0; q < 7; q++)
			if (after->intervals[d][q] > before->intervals[d][q])
				r->energy_quality[d] |= qualities[q];
	}
	r->measured = true;
}
