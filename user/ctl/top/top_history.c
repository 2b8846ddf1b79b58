/* SPDX-License-Identifier: Apache-2.0 */
/* An answer of GET /v1/history as snapshots: series by series there, time by time here. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "ctl/core/agent_client.h"
#include "top_history.h"

#define POINTS_MAX 4000000u /* more than any answer has */
#define SERIES_MAX 100000u
#define SERIES_ASKED 40 /* so that an hour of seconds stays below the limit of points */

enum part { PART_ROW, PART_IDLE_POWER, PART_RESIDUAL };

struct series {
	enum part part;
	enum row_kind kind;
	bool ended;
	const char *path; /* in doc */
	struct names *names;
};

struct point {
	int64_t end_ns, length_ns;
	const json_t *values;
	unsigned quality, series;
};

struct top_history {
	json_t *doc;
	struct series *series;
	struct point *points;
	size_t n_series, n_points, at;
	uint64_t number;
	struct schema schema;
	struct snapshot snap;
};

static int odd(struct err *err, const char *what)
{
	return err_set(err, -EPROTO, "history: %s is not as docs/query.md says; is the agent of another version?",
		       what);
}

static int read_domains(struct top_history *h, struct err *err)
{
	const json_t *domains = json_object_get(h->doc, "domains");

	if (!json_is_array(domains) || json_array_size(domains) > SCHEMA_MAX_DOMAINS)
		return odd(err, "the list of domains");
	for (size_t i = 0; i < json_array_size(domains); i++) {
		const char *name = json_string_value(json_array_get(domains, i));
		struct domain_desc *d = &h->schema.domains[i];

		if (!name || strlen(name) >= sizeof(d->name) || domain_kind_of(name) == DOMAIN_KINDS)
			return odd(err, "a domain");
		snprintf(d->name, sizeof(d->name), "%s", name);
		d->kind = domain_kind_of(name);
	}
	h->schema.n_domains = (unsigned)json_array_size(domains);
	return 0;
}

static int read_series(const json_t *v, struct series *ret)
{
	const char *row = json_string_value(json_object_get(v, "row"));
	const json_t *names = json_object_get(v, "names");
	struct names_draft draft = { 0 };

	*ret = (struct series){ .kind = ROW_CGROUP,
				.path = json_string_value(json_object_get(v, "cgroup")),
				.ended = json_is_true(json_object_get(v, "ended")) };
	if (!row || !ret->path)
		return -EPROTO;
	if (strcmp(row, "idle-power") == 0)
		ret->part = PART_IDLE_POWER;
	else if (strcmp(row, "residual") == 0)
		ret->part = PART_RESIDUAL;
	for (enum row_kind k = ROW_IDLE; k < ROW_KINDS; k++)
		if (k != ROW_CGROUP && strcmp(row, row_kind_name(k)) == 0)
			ret->kind = k;
	for (enum name_field f = 0; f < NAME_FIELDS; f++)
		draft.field[f] = json_string_value(json_object_get(names, name_field_key(f)));
	ret->names = json_is_object(names) ? names_new(&draft) : NULL;
	return 0;
}

static int read_point(const struct top_history *h, const json_t *v, unsigned series, struct point *ret)
{
	const json_t *end = json_array_get(v, 0), *length = json_array_get(v, 1), *values = json_array_get(v, 3);

	if (!json_is_integer(end) || !json_is_integer(length) || !json_is_array(values) ||
	    json_array_size(values) != h->schema.n_domains || json_integer_value(length) <= 0 ||
	    json_integer_value(end) < json_integer_value(length))
		return -EPROTO;
	for (size_t d = 0; d < h->schema.n_domains; d++)
		if (!json_is_integer(json_array_get(values, d)) || json_integer_value(json_array_get(values, d)) < 0)
			return -EPROTO;
	*ret = (struct point){ json_integer_value(end), json_integer_value(length), values,
			       quality_named(json_string_value(json_array_get(v, 2))), series };
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	return x->series < y->series ? -1 : x->series > y->series;
}

static int read_all(struct top_history *h, struct err *err)
{
	const json_t *all = json_object_get(h->doc, "series");
	size_t most = 0, n = json_array_size(all);

	for (size_t i = 0; i < n; i++)
		most += json_array_size(json_object_get(json_array_get(all, i), "points"));
	if (!json_is_array(all) || n > SERIES_MAX || most > POINTS_MAX)
		return odd(err, "the list of series");
	h->series = calloc(n + 1, sizeof(*h->series));
	h->points = calloc(most + 1, sizeof(*h->points));
	if (!h->series || !h->points || snapshot_reserve(&h->snap, (unsigned)n + 1, 1) != 0)
		return err_set(err, -ENOMEM, "history: out of memory; ask for less with --since and --until");
	for (size_t i = 0; i < n; i++) {
		const json_t *points = json_object_get(json_array_get(all, i), "points");

		if (read_series(json_array_get(all, i), &h->series[h->n_series++]) != 0)
			return odd(err, "a series");
		for (size_t k = 0; k < json_array_size(points); k++)
			if (read_point(h, json_array_get(points, k), (unsigned)i, &h->points[h->n_points++]) != 0)
				return odd(err, "a point");
	}
	qsort(h->points, h->n_points, sizeof(*h->points), by_time);
	return 0;
}

int top_history_parse(const char *json, size_t size, struct top_history **ret, struct err *err)
{
	struct top_history *h = calloc(1, sizeof(*h));
	json_error_t where;
	int rc;

	if (!h)
		return err_set(err, -ENOMEM, "history: out of memory; ask for less with --since and --until");
	h->doc = json_loadb(json, size, JSON_REJECT_DUPLICATES, &where);
	h->snap.schema = &h->schema;
	snprintf(h->schema.sensor, sizeof(h->schema.sensor), "history");
	snprintf(h->schema.trigger, sizeof(h->schema.trigger), TOP_HISTORY_TRIGGER);
	snprintf(h->snap.formula, sizeof(h->snap.formula), "share");
	rc = json_is_object(h->doc) ? read_domains(h, err) : odd(err, "the answer");
	if (!rc)
		rc = read_all(h, err);
	if (!rc && !h->n_points)
		rc = err_set(err, -ENODATA,
			     "history: nothing was recorded in that time; joulectl status tells since when");
	if (rc) {
		top_history_close(h);
		return rc;
	}
	*ret = h;
	return 0;
}

/* A time in which the seconds are too many for an answer gets minutes, then hours. */
int top_history_open(const char *socket, const char *since, const char *until, struct top_history **ret,
		     struct err *err)
{
	static const char *const steps[] = { "", "&step=1m", "&step=1h" };
	struct agent *a = NULL;
	struct buf body = { .limit = AGENT_BODY_MAX };
	int rc = agent_open(socket, &a, err);

	for (unsigned i = 0; a && i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct buf path = { 0 };

		buf_printf(&path, "/v1/history?limit=%u%s&since=", SERIES_ASKED, steps[i]);
		agent_escape(&path, since);
		buf_add_str(&path, until ? "&until=" : "");
		agent_escape(&path, until ? until : "");
		buf_add_char(&path, '\0');
		rc = path.failed ? err_set(err, -ENOMEM, "history: out of memory; free some") :
				   agent_get(a, (const char *)path.data, NULL, &body, err);
		buf_free(&path);
		if (!rc || agent_status(a) != 400)
			break;
	}
	if (!rc)
		rc = top_history_parse((const char *)body.data, body.len, ret, err);
	agent_close(a);
	buf_free(&body);
	return rc;
}

static void add_row(struct top_history *h, const struct point *p)
{
	const struct series *from = &h->series[p->series];
	struct snapshot *s = &h->snap;
	unsigned row = s->n_rows++;

	s->rows[row] = (struct snap_row){ .kind = from->kind,
					  .id = p->series + 1,
					  .path = from->path,
					  .names = from->names,
					  .ended = from->ended,
					  .selected = true,
					  .quality = p->quality };
	for (unsigned d = 0; d < h->schema.n_domains; d++) {
		*snapshot_energy(s, row, d) = (uint64_t)json_integer_value(json_array_get(p->values, d));
		*snapshot_uncertainty(s, row, d) = SNAPSHOT_UNKNOWN;
	}
}

static void add_point(struct top_history *h, const struct point *p)
{
	enum part part = h->series[p->series].part;

	for (unsigned d = 0; d < h->schema.n_domains; d++) {
		struct snap_domain *to = &h->snap.domains[d];
		uint64_t uj = (uint64_t)json_integer_value(json_array_get(p->values, d));

		to->energy_uj += uj;
		if (part == PART_IDLE_POWER) {
			to->idle_uj += uj;
			to->idle_quality |= p->quality;
		} else if (part == PART_RESIDUAL) {
			to->residual_uj += uj;
			to->quality |= p->quality;
		}
	}
	if (part == PART_ROW)
		add_row(h, p);
}

int top_history_next(struct top_history *h, struct snapshot **ret)
{
	struct snapshot *s = &h->snap;
	const struct point *first = &h->points[h->at];

	if (h->at == h->n_points)
		return 0;
	memset(s->domains, 0, sizeof(s->domains));
	s->n_rows = 0;
	s->number = ++h->number;
	s->end_real_ns = first->end_ns;
	s->end_ns = (uint64_t)first->end_ns;
	s->start_ns = s->end_ns;
	for (; h->at < h->n_points && h->points[h->at].end_ns == first->end_ns; h->at++) {
		uint64_t start = (uint64_t)(h->points[h->at].end_ns - h->points[h->at].length_ns);

		s->start_ns = start < s->start_ns ? start : s->start_ns;
		if (s->n_rows < h->n_series)
			add_point(h, &h->points[h->at]);
	}
	for (unsigned d = 0; d < h->schema.n_domains; d++) {
		s->domains[d].start_ns = s->start_ns;
		s->domains[d].end_ns = s->end_ns;
	}
	*ret = s;
	return 1;
}

void top_history_rewind(struct top_history *h)
{
	h->at = 0;
	h->number = 0;
}

void top_history_close(struct top_history *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->n_series; i++)
		names_put(h->series[i].names);
	snapshot_free(&h->snap);
	free(h->series);
	free(h->points);
	json_decref(h->doc);
	free(h);
}
