/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of GET /v1/history (docs/query.md) as columns: series by series there, time by time here. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl/history/history_clock.h"
#include "model/recording/recording.h"
#include "plot.h"

#define POINTS_MAX 4000000u /* more than any answer has */

struct point {
	int64_t end_ns, length_ns;
	const json_t *series, *values;
	unsigned quality;
	bool clock; /* it tells a time that was measured, and no energy (history_clock.h) */
};

static int odd(struct err *err, const char *what)
{
	return err_set(err, -EPROTO, "history: %s is not as docs/query.md says; is the agent of another version?",
		       what);
}

static int read_point(const json_t *series, const json_t *v, size_t domains, struct point *ret)
{
	const json_t *end = json_array_get(v, 0), *length = json_array_get(v, 1), *values = json_array_get(v, 3);

	if (!json_is_integer(end) || !json_is_integer(length) || !json_is_array(values) ||
	    json_array_size(values) != domains || json_integer_value(length) <= 0 ||
	    json_integer_value(end) < json_integer_value(length))
		return -EPROTO;
	*ret = (struct point){ json_integer_value(end),
			       json_integer_value(length),
			       series,
			       values,
			       quality_named(json_string_value(json_array_get(v, 2))),
			       json_is_true(json_object_get(series, "clock")) };
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	return (x->length_ns < y->length_ns) - (x->length_ns > y->length_ns);
}

static size_t count(const json_t *all)
{
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(all); i++)
		n += json_array_size(json_object_get(json_array_get(all, i), "points"));
	return n;
}

/* All points in the order of time. NULL with err set. */
static struct point *collect(const json_t *all, size_t domains, size_t *ret_n, struct err *err)
{
	size_t most = count(all), n = 0;
	struct point *list = most <= POINTS_MAX ? calloc(most + 1, sizeof(*list)) : NULL;

	if (!list) {
		err_set(err, -ENOMEM, "history: out of memory; ask for less with --since and --until");
		return NULL;
	}
	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *series = json_array_get(all, i), *points = json_object_get(series, "points");

		for (size_t k = 0; k < json_array_size(points); k++)
			if (read_point(series, json_array_get(points, k), domains, &list[n++]) != 0) {
				odd(err, "a point");
				free(list);
				return NULL;
			}
	}
	qsort(list, n, sizeof(*list), compare);
	*ret_n = n;
	return list;
}

static void add_point(struct plot *p, const struct point *pt, const bool *shown)
{
	const char *row = json_string_value(json_object_get(pt->series, "row"));
	const char *name = json_string_value(json_object_get(pt->series, "cgroup"));
	double uj = 0;

	for (size_t d = 0; d < json_array_size(pt->values); d++) {
		double v = shown[d] ? json_number_value(json_array_get(pt->values, d)) : 0;

		uj += v > 0 ? v : 0;
	}
	if (!row || !name || !(uj > 0))
		return;
	if (strcmp(row, "idle") == 0 || strcmp(row, "idle-power") == 0)
		plot_add(p, "idle", PLOT_IDLE, uj, pt->quality);
	else if (strcmp(row, "residual") == 0)
		plot_add(p, "residual", PLOT_RESIDUAL, uj, pt->quality);
	else if (strcmp(row, "other") == 0)
		plot_add(p, "other", PLOT_REST, uj, pt->quality);
	else
		plot_add(p, name, PLOT_ROW, uj, pt->quality);
}

/* A column is lost when every point of it is. A time without energy counts where there is no other point. */
static void add_points(struct plot *p, const struct point *list, size_t n, const bool *shown)
{
	for (size_t i = 0, next; i < n && !p->failed; i = next) {
		bool wanted = plot_begin_column(p, list[i].end_ns - list[i].length_ns, list[i].end_ns);
		bool good[2] = { false, false }, energy = false;

		for (next = i; next < n && list[next].end_ns == list[i].end_ns; next++) {
			energy |= !list[next].clock;
			good[list[next].clock] |= !(list[next].quality & QUALITY_LOST);
			if (wanted)
				add_point(p, &list[next], shown);
		}
		if (wanted && !good[!energy])
			plot_lost(p);
	}
}

static int read_document(struct plot *p, const json_t *doc, struct err *err)
{
	const json_t *domains = json_object_get(doc, "domains"), *series = json_object_get(doc, "series");
	const json_t *other = json_object_get(doc, "other");
	const char *names[SCHEMA_MAX_DOMAINS] = { 0 };
	bool shown[SCHEMA_MAX_DOMAINS] = { 0 };
	size_t n = json_array_size(domains), n_points = 0;
	struct point *list;
	int rc;

	if (!json_is_array(domains) || !json_is_array(series) || n > SCHEMA_MAX_DOMAINS)
		return odd(err, "the answer");
	for (size_t i = 0; i < n; i++) {
		names[i] = json_string_value(json_array_get(domains, i));
		if (!names[i])
			return odd(err, "a domain");
	}
	rc = plot_choose_domains(p, names, (unsigned)n, shown, err);
	if (rc)
		return rc;
	*(p->cgroup ? &p->n_unseen : &p->n_rest) = (unsigned)json_integer_value(json_object_get(other, "cgroups"));
	p->more_rest = json_is_true(json_object_get(other, "and_more"));
	list = collect(series, n, &n_points, err);
	if (!list)
		return -EPROTO;
	add_points(p, list, n_points, shown);
	free(list);
	return 0;
}

int plot_read_history_of(struct plot *p, const char *json, size_t size, const json_t *machine, struct err *err)
{
	json_error_t where;
	json_t *doc = json_loadb(json, size, JSON_REJECT_DUPLICATES, &where);
	int rc = doc ? 0 : odd(err, "the answer");

	if (!rc && machine && json_is_array(json_object_get(doc, "series")) && history_add_clock(doc, machine) != 0)
		rc = err_set(err, -ENOMEM, "history: out of memory; ask for less with --since and --until");
	if (!rc)
		rc = read_document(p, doc, err);
	json_decref(doc);
	return rc;
}

int plot_read_history(struct plot *p, const char *json, size_t size, struct err *err)
{
	return plot_read_history_of(p, json, size, NULL, err);
}

/* A recording (docs/formats/snapshot.md) as columns: one for each of its snapshots. */

static double sum_row(const struct snapshot *s, unsigned row, const bool *shown, unsigned *ret_quality)
{
	double uj = 0;

	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		uint64_t v = shown[d] ? *snapshot_energy(s, row, d) : 0;

		uj += (double)v;
		if (v)
			*ret_quality |= snapshot_energy_quality(s, row, d);
	}
	if (uj == 0)
		*ret_quality |= s->rows[row].quality;
	return uj;
}

/* missing: QUALITY_PARTIAL where a domain that is shown is lost, and 0. */
static void add_rows(struct plot *p, const struct snapshot *s, const bool *shown, unsigned missing)
{
	for (unsigned i = 0; i < s->n_rows; i++) {
		const struct snap_row *r = &s->rows[i];
		unsigned quality = missing;
		double uj = sum_row(s, i, shown, &quality);
		enum plot_kind kind = r->kind == ROW_IDLE                   ? PLOT_IDLE :
				      r->kind == ROW_OTHER                  ? PLOT_REST :
				      r->kind == ROW_CGROUP && !r->selected ? PLOT_HIDDEN :
									      PLOT_ROW;

		if (!(uj > 0))
			continue;
		plot_add(p, kind == PLOT_IDLE ? "idle" : kind == PLOT_REST ? "other" : r->path, kind, uj, quality);
		p->more_rest |= kind == PLOT_REST;
	}
	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		const struct snap_domain *dom = &s->domains[d];

		if (shown[d] && dom->idle_uj)
			plot_add(p, "idle", PLOT_IDLE, (double)dom->idle_uj, dom->idle_quality | missing);
		if (shown[d] && dom->residual_uj)
			plot_add(p, "residual", PLOT_RESIDUAL, (double)dom->residual_uj, dom->quality | missing);
	}
}

static void add_snapshot(struct plot *p, const struct snapshot *s, const bool *shown)
{
	int64_t length = (int64_t)(s->end_ns - s->start_ns);
	unsigned missing = 0;
	uint64_t covered = 0;

	if (!plot_begin_column(p, s->end_real_ns - length, s->end_real_ns))
		return;
	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		const struct snap_domain *dom = &s->domains[d];

		if (shown[d] && dom->quality & QUALITY_LOST)
			missing = QUALITY_PARTIAL;
		else if (shown[d] && dom->end_ns > dom->start_ns + covered)
			covered = dom->end_ns - dom->start_ns;
	}
	if (!covered) {
		plot_lost(p);
		return;
	}
	plot_covered(p, covered); /* counters are read a little before or after the ends of the interval */
	add_rows(p, s, shown, missing);
}

static int choose(struct plot *p, const struct schema *c, bool *shown, struct err *err)
{
	const char *names[SCHEMA_MAX_DOMAINS];

	for (unsigned i = 0; i < c->n_domains; i++)
		names[i] = c->domains[i].name;
	snprintf(p->sensor, sizeof(p->sensor), "%s", c->sensor);
	return plot_choose_domains(p, names, c->n_domains, shown, err);
}

int plot_read_recording(struct plot *p, const char *path, struct err *err)
{
	bool shown[SCHEMA_MAX_DOMAINS] = { 0 };
	struct recording *r;
	struct snapshot *s;
	int rc = recording_open(path, &r, err);

	if (rc)
		return rc;
	rc = choose(p, recording_schema(r), shown, err);
	while (!rc && !p->failed && (rc = recording_next(r, &s, err)) > 0) {
		rc = 0;
		if (!s->formula[0] || strcmp(s->formula, "none") == 0)
			rc = err_set(err, -ENODATA,
				     "%.128s: its energy is not split over cgroups; jouled --replay %.128s "
				     "-o snapshot=file://SPLIT, then plot SPLIT",
				     path, path);
		else
			add_snapshot(p, s, shown);
	}
	recording_close(r);
	return rc;
}
