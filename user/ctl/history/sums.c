/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/array.h"
#include "base/clock.h"
#include "model/job_path.h"
#include "sums.h"

const char *const sums_words[] = { "unit", "namespace", "pod", "container", "slice", "job", "day", "hour", NULL };

#define SUMS_NAME_MAX 600

static const char *text_of(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

double sums_point_uj(const json_t *point, const bool *summed, size_t n)
{
	const json_t *values = json_array_get(point, 3);
	double sum = 0;

	for (size_t d = 0; d < n && d < json_array_size(values); d++)
		sum += summed[d] ? (double)json_integer_value(json_array_get(values, d)) : 0;
	return sum;
}

size_t sums_domains(const json_t *doc, bool summed[SCHEMA_MAX_DOMAINS])
{
	const json_t *domains = json_object_get(doc, "domains");
	const char *names[SCHEMA_MAX_DOMAINS];
	size_t n = 0;

	for (; n < json_array_size(domains) && n < SCHEMA_MAX_DOMAINS; n++) {
		const char *name = json_string_value(json_array_get(domains, n));

		names[n] = name ? name : "";
	}
	domain_names_summed(names, (unsigned)n, summed);
	return n;
}

static bool ends(const char *s, size_t n, const char *word)
{
	size_t m = strlen(word);

	return n > m && memcmp(s + n - m, word, m) == 0;
}

/* Takes the unit or the slice from the path, where the agent knows no names of the cgroup any more: the first component
 * that is a unit, or the last slice above it. */
static void name_from_path(const char *path, bool slice, char *dst, size_t size)
{
	for (const char *s = path; *s;) {
		size_t n;

		s += strspn(s, "/");
		n = strcspn(s, "/");
		if (ends(s, n, ".slice")) {
			if (slice)
				snprintf(dst, size, "%.*s", (int)n, s);
		} else if (slice) {
			return;
		} else if (ends(s, n, ".service") || ends(s, n, ".scope") || ends(s, n, ".socket") ||
			   ends(s, n, ".mount") || ends(s, n, ".swap")) {
			snprintf(dst, size, "%.*s", (int)n, s);
			return;
		}
		s += n;
	}
}

/* Writes the name of the line that a series belongs to. */
static void group_of(const json_t *series, enum sums_by by, char *dst, size_t size)
{
	static const char *const none[] = { "(no unit)",      "(no namespace)", "(no pod)",
					    "(no container)", "(no slice)",     "(no job)" };
	const json_t *names = json_object_get(series, "names");
	const char *row = text_of(series, "row");
	struct job_path job;

	*dst = '\0';
	if (strcmp(row, "cgroup") != 0) {
		snprintf(dst, size, "(%s)", strcmp(row, "other") == 0 ? "other cgroups" : row);
		return;
	}
	if (by == SUMS_JOB) {
		snprintf(dst, size, "%s", job_path_parse(text_of(series, "cgroup"), &job) ? job.id : "");
	} else if (by == SUMS_UNIT || by == SUMS_SLICE) {
		snprintf(dst, size, "%s", by == SUMS_UNIT ? text_of(names, "unit") : "");
		if (!*dst)
			name_from_path(text_of(series, "cgroup"), by == SUMS_SLICE, dst, size);
	} else if (by == SUMS_POD && *text_of(names, "pod")) {
		snprintf(dst, size, "%s/%s", text_of(names, "namespace"), text_of(names, "pod"));
	} else if (by == SUMS_CONTAINER && *text_of(names, "container") && *text_of(names, "pod")) {
		snprintf(dst, size, "%s/%s/%s", text_of(names, "namespace"), text_of(names, "pod"),
			 text_of(names, "container"));
	} else {
		snprintf(dst, size, "%s", text_of(names, sums_words[by]));
	}
	if (!*dst)
		snprintf(dst, size, "%s", none[by]);
}

/* Writes the day or the hour of an instant in local time, and when it began. */
static int64_t time_of(int64_t unix_ns, enum sums_by by, char *dst, size_t size)
{
	time_t t = (time_t)(unix_ns / (int64_t)NS_PER_S);
	struct tm tm = { 0 };

	localtime_r(&t, &tm);
	tm.tm_min = tm.tm_sec = 0;
	if (by == SUMS_DAY)
		tm.tm_hour = 0;
	strftime(dst, size, by == SUMS_DAY ? "%Y-%m-%d" : "%Y-%m-%d %H:00 %z", &tm);
	return by == SUMS_DAY ? (int64_t)mktime(&tm) : (int64_t)t / 3600 * 3600;
}

/* Returns the line of that name, which is made where there is none. *at: where the last one was; the same or the next is
 * usually right, because points of a series come in order of time. */
static struct sums_line *line_of(struct sums *s, const char *name, size_t *at)
{
	for (size_t i = 0; i < s->n; i++, *at = (*at + 1) % s->n)
		if (*at < s->n && strcmp(s->v[*at].name, name) == 0)
			return &s->v[*at];
	if (ARRAY_ROOM(s->v, s->room, s->n + 1))
		return NULL;
	s->v[s->n] = (struct sums_line){ .name = strdup(name) };
	*at = s->n;
	return s->v[s->n].name ? &s->v[s->n++] : NULL;
}

static void add(struct sums_line *l, double uj, double g, unsigned quality)
{
	l->uj += uj;
	l->quality |= quality;
	if (isnan(g))
		l->unknown_uj += uj;
	else
		l->g += g;
}

/* What is needed to add a series. */
struct adding {
	enum sums_by by;
	const struct cost *cost;
	bool summed[SCHEMA_MAX_DOMAINS];
	size_t n_domains, at; /* at: the line of the last point */
	struct sums *s;
};

static int add_point(struct adding *a, const json_t *series, const json_t *point, const char *group)
{
	int64_t end_ns = json_integer_value(json_array_get(point, 0));
	uint64_t ns = (uint64_t)json_integer_value(json_array_get(point, 1));
	unsigned quality = quality_named(json_string_value(json_array_get(point, 2)));
	double uj = sums_point_uj(point, a->summed, a->n_domains);
	double g = cost_has_carbon(a->cost) ? cost_grams(a->cost, uj, (int64_t)((uint64_t)end_ns - ns), end_ns) : 0;
	bool clock = strcmp(text_of(series, "row"), "residual") == 0; /* it has a point in every step */
	bool clock_alone = json_is_true(json_object_get(series, "clock")); /* history_clock.h */
	int64_t order = 0;
	char name[SUMS_NAME_MAX];
	struct sums_line *l;

	if (clock_alone && group) {
		a->s->all.ns += ns;
		return 0;
	}
	if (!group)
		order = time_of((int64_t)((uint64_t)end_ns - 1), a->by, name, sizeof(name));
	l = line_of(a->s, group ? group : name, &a->at);
	if (!l)
		return -ENOMEM;
	l->order = order;
	add(l, uj, g, quality);
	add(&a->s->all, uj, g, quality);
	if (clock) {
		a->s->all.ns += ns;
		l->ns += group ? 0 : ns;
	}
	return 0;
}

static int by_energy(const void *a, const void *b)
{
	const struct sums_line *x = a, *y = b;

	return x->uj < y->uj ? 1 : x->uj > y->uj ? -1 : strcmp(x->name, y->name);
}

static int by_time(const void *a, const void *b)
{
	const struct sums_line *x = a, *y = b;

	return x->order < y->order ? -1 : x->order > y->order;
}

int sums_make(const json_t *doc, enum sums_by by, const struct cost *cost, struct sums *ret)
{
	const json_t *series, *point;
	struct adding a = { .by = by, .cost = cost, .s = ret };
	bool timed = by == SUMS_DAY || by == SUMS_HOUR;
	char group[SUMS_NAME_MAX];
	size_t i, k;
	int rc = 0;

	*ret = (struct sums){ 0 };
	a.n_domains = sums_domains(doc, a.summed);
	json_array_foreach(json_object_get(doc, "series"), i, series) {
		if (!timed)
			group_of(series, by, group, sizeof(group));
		json_array_foreach(json_object_get(series, "points"), k, point)
			if (!rc)
				rc = add_point(&a, series, point, timed ? NULL : group);
	}
	if (rc)
		sums_free(ret);
	else if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), timed ? by_time : by_energy);
	return rc;
}

void sums_free(struct sums *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i].name);
	free(s->v);
	*s = (struct sums){ 0 };
}
