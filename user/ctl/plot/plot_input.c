/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of GET /v1/history (docs/query.md) as columns: series by series there, time by time here. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "plot.h"

#define POINTS_MAX 4000000u /* more than any answer has */

struct point {
	int64_t end_ns, length_ns;
	const json_t *series, *values;
	unsigned quality;
};

static int odd(struct err *err, const char *what)
{
	return err_set(err, -EPROTO, "history: %s is not as docs/query.md says; is the agent of another version?",
		       what);
}

static unsigned quality_of(const char *word)
{
	for (unsigned bit = 0; bit < 6; bit++)
		if (word && strcmp(word, quality_name(1u << bit)) == 0)
			return 1u << bit;
	return QUALITY_MEASURED;
}

static int read_point(const json_t *series, const json_t *v, size_t domains, struct point *ret)
{
	const json_t *end = json_array_get(v, 0), *length = json_array_get(v, 1), *values = json_array_get(v, 3);

	if (!json_is_integer(end) || !json_is_integer(length) || !json_is_array(values) ||
	    json_array_size(values) != domains || json_integer_value(length) <= 0 ||
	    json_integer_value(end) < json_integer_value(length))
		return -EPROTO;
	*ret = (struct point){ json_integer_value(end), json_integer_value(length), series, values,
			       quality_of(json_string_value(json_array_get(v, 2))) };
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

/* A column is lost when every point of it is. */
static void add_points(struct plot *p, const struct point *list, size_t n, const bool *shown)
{
	for (size_t i = 0, next; i < n && !p->failed; i = next) {
		bool wanted = plot_begin_column(p, list[i].end_ns - list[i].length_ns, list[i].end_ns), any = false;

		for (next = i; next < n && list[next].end_ns == list[i].end_ns; next++) {
			any |= !(list[next].quality & QUALITY_LOST);
			if (wanted)
				add_point(p, &list[next], shown);
		}
		if (wanted && !any)
			plot_lost(p);
	}
}

static int read_document(struct plot *p, const json_t *doc, struct err *err)
{
	const json_t *domains = json_object_get(doc, "domains"), *series = json_object_get(doc, "series");
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
	list = collect(series, n, &n_points, err);
	if (!list)
		return -EPROTO;
	add_points(p, list, n_points, shown);
	free(list);
	return 0;
}

int plot_read_history(struct plot *p, const char *json, size_t size, struct err *err)
{
	json_error_t where;
	json_t *doc = json_loadb(json, size, JSON_REJECT_DUPLICATES, &where);
	int rc = doc ? read_document(p, doc, err) : odd(err, "the answer");

	json_decref(doc);
	return rc;
}
