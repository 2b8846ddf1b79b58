/* SPDX-License-Identifier: Apache-2.0 */
/* The table of steps: of the machine and the cgroups that used most, or of one cgroup by domain. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/format/csv.h"
#include "base/text.h"
#include "ctl/core/ask.h"
#include "history_text.h"

#define NAME_WIDTH 16
#define TIME_WIDTH 25 /* a local time with its zone: CEST, or +0530 where it has no name */

struct column {
	const json_t *points;
	size_t at; /* next point */
	const char *whole; /* its name as it came */
	char name[NAME_WIDTH + 1];
	double uj; /* of all steps */
	unsigned quality;
};

struct table {
	const struct history_text *t;
	const json_t *doc, *domains;
	bool summed[SCHEMA_MAX_DOMAINS]; /* by domain: it is in the sum of the machine */
	size_t n_domains;
	struct column columns[SCHEMA_MAX_DOMAINS];
	unsigned n;
	const struct history_unit *unit;
	double uj, g, unknown_uj; /* of the machine, or of the one cgroup */
	unsigned quality;
};

/* Cuts a long name at its beginning, because the end tells more. */
static void set_name(struct column *c, const char *name)
{
	char safe[512];
	size_t len;

	text_escape(safe, sizeof(safe), name);
	len = strlen(safe);
	c->whole = name;
	if (len <= NAME_WIDTH)
		snprintf(c->name, sizeof(c->name), "%.*s", NAME_WIDTH, safe);
	else
		snprintf(c->name, sizeof(c->name), "..%.*s", NAME_WIDTH - 2, safe + len - (NAME_WIDTH - 2));
}

static void choose_columns(struct table *t)
{
	const json_t *series = json_object_get(t->doc, "series"), *e;
	size_t i;

	json_array_foreach(series, i, e) {
		const char *path = json_string_value(json_object_get(e, "cgroup"));

		if (strcmp(ask_text(e, "row"), "cgroup") != 0 || t->n == HISTORY_COLUMNS - 1)
			continue;
		t->columns[t->n].points = json_object_get(e, "points");
		set_name(&t->columns[t->n++], path ? path : "?");
	}
}

static double point_uj(const struct table *t, const json_t *point)
{
	return sums_point_uj(point, t->summed, t->n_domains);
}

static unsigned quality_of(const json_t *point)
{
	return quality_named(json_string_value(json_array_get(point, 2)));
}

static long long end_of(const json_t *point)
{
	return (long long)json_integer_value(json_array_get(point, 0));
}

static void put_time(const struct table *t, long long unix_ns)
{
	char text[CLOCK_LOCAL_BYTES];

	history_time(text, unix_ns, t->t->csv);
	printf("%-*s", t->t->csv ? 0 : TIME_WIDTH, text);
}

static void put_cell(const struct table *t, double uj, unsigned quality)
{
	if (t->t->csv)
		printf(",%.0f", uj);
	else
		printf(" %*.*f%c", NAME_WIDTH - 1, t->unit->decimals, uj / t->unit->uj, history_mark(quality));
}

/* Prints the gaps that begin in [after_ns, until_ns), between two lines of the table. */
static void put_lost(const struct table *t, long long after_ns, long long until_ns)
{
	const json_t *lost = json_object_get(t->doc, "lost"), *e;
	size_t i;

	json_array_foreach(lost, i, e) {
		long long from = ask_number(e, "from_unix_ns");

		if (from < after_ns || from >= until_ns || t->t->csv)
			continue;
		put_time(t, from);
		printf("  nothing is known for %.1f s: %s\n", (double)(ask_number(e, "until_unix_ns") - from) / 1e9,
		       ask_text(e, "reason"));
	}
}

/* Adds the point of a step to the total, and prints the columns of costs and the line's end. */
static void end_line(struct table *t, const json_t *point, double uj)
{
	long long end_ns = end_of(point), ns = (long long)json_integer_value(json_array_get(point, 1));
	double g = cost_has_carbon(t->t->cost) ?
			   cost_grams(t->t->cost, uj, (int64_t)((uint64_t)end_ns - (uint64_t)ns), end_ns) :
			   0;

	t->uj += uj;
	t->quality |= quality_of(point);
	t->g += isnan(g) ? 0 : g;
	t->unknown_uj += isnan(g) ? uj : 0;
	history_costs(t->t, uj, g, false);
	putchar('\n');
}

/* Returns the energy of the machine: the sum over all rows that end at end_ns. Moves `at` behind them. */
static double machine_at(const struct table *t, size_t *at, long long end_ns)
{
	const json_t *series = json_object_get(t->doc, "series"), *e;
	double sum = 0;
	size_t i;

	json_array_foreach(series, i, e) {
		const json_t *points = json_object_get(e, "points");

		if (at[i] < json_array_size(points) && end_of(json_array_get(points, at[i])) == end_ns)
			sum += point_uj(t, json_array_get(points, at[i]++));
	}
	return sum;
}

static void put_head(const struct table *t, const char *second)
{
	if (t->t->csv)
		printf("until,%s", second);
	else
		printf("%-*s %*s", TIME_WIDTH, "until", *second == 's' ? 10 : NAME_WIDTH, second);
	for (unsigned c = 0; c < t->n; c++) {
		struct buf cell = { 0 };
		char safe[600];

		if (!t->t->csv) {
			printf(" %*s", NAME_WIDTH, t->columns[c].name);
			continue;
		}
		snprintf(safe, sizeof(safe), "%.590s_uj", t->columns[c].whole);
		csv_add_cell(&cell, safe);
		printf(",%.*s", (int)cell.len, cell.len ? (const char *)cell.data : "");
		buf_free(&cell);
	}
	history_cost_heads(t->t);
	putchar('\n');
}

/* all: the machine's sum stands first; otherwise the columns alone have one. */
static void put_total(const struct table *t, bool all)
{
	if (t->t->csv)
		return;
	printf("%-*s", TIME_WIDTH, "total");
	if (all)
		put_cell(t, t->uj, t->quality);
	else
		printf(" %10s", "");
	for (unsigned c = 0; c < t->n; c++)
		put_cell(t, t->columns[c].uj, t->columns[c].quality);
	history_costs(t->t, t->uj, t->unknown_uj < t->uj || t->uj <= 0 ? t->g : NAN, t->unknown_uj > 0);
	putchar('\n');
}

static void add_cell(struct table *t, struct column *c, double uj, unsigned quality)
{
	c->uj += uj;
	c->quality |= quality;
	put_cell(t, uj, quality);
}

static void put_all(struct table *t)
{
	const json_t *series = json_object_get(t->doc, "series"), *e, *clock = NULL;
	size_t i, *at = calloc(json_array_size(series) + 1, sizeof(*at));
	char head[32];
	long long before = 0;

	choose_columns(t);
	/* The row `residual` has a point in every step. */
	json_array_foreach(series, i, e)
		if (strcmp(ask_text(e, "row"), "residual") == 0)
			clock = json_object_get(e, "points");
	snprintf(head, sizeof(head), "machine %s", t->unit->word);
	put_head(t, t->t->csv ? "machine_uj" : head);
	for (size_t k = 0; at && k < json_array_size(clock); k++) {
		const json_t *point = json_array_get(clock, k);
		long long end_ns = end_of(point);
		double machine = machine_at(t, at, end_ns);

		put_lost(t, before, end_ns);
		put_time(t, end_ns);
		put_cell(t, machine, quality_of(point));
		for (unsigned c = 0; c < t->n; c++) {
			const json_t *p = json_array_get(t->columns[c].points, t->columns[c].at);
			bool here = p && end_of(p) == end_ns;

			t->columns[c].at += here;
			add_cell(t, &t->columns[c], here ? point_uj(t, p) : 0, here ? quality_of(p) : 0);
		}
		end_line(t, point, machine);
		before = end_ns;
	}
	put_lost(t, before, INT64_MAX);
	put_total(t, true);
	free(at);
}

static void put_one(struct table *t)
{
	const json_t *points = json_object_get(json_array_get(json_object_get(t->doc, "series"), 0), "points");
	long long before = 0;

	for (t->n = 0; t->n < t->n_domains; t->n++) {
		const char *name = json_string_value(json_array_get(t->domains, t->n));

		set_name(&t->columns[t->n], name ? name : "?");
	}
	put_head(t, t->t->csv ? "seconds" : "s");
	for (size_t k = 0; k < json_array_size(points); k++) {
		const json_t *p = json_array_get(points, k), *values = json_array_get(p, 3);
		double seconds = (double)json_integer_value(json_array_get(p, 1)) / 1e9;

		put_lost(t, before, end_of(p));
		put_time(t, end_of(p));
		printf(t->t->csv ? ",%.9f" : " %10.3f", seconds);
		for (unsigned d = 0; d < t->n; d++)
			add_cell(t, &t->columns[d], (double)json_integer_value(json_array_get(values, d)),
				 quality_of(p));
		end_line(t, p, point_uj(t, p));
		before = end_of(p);
	}
	put_lost(t, before, INT64_MAX);
	put_total(t, false);
}

void history_lost(const struct history_text *text)
{
	put_lost(&(struct table){ .t = text, .doc = text->doc }, 0, INT64_MAX);
}

/* Returns the energy of all points, of which the unit depends. */
static double whole_uj(const struct table *t)
{
	const json_t *series, *point;
	double sum = 0;
	size_t i, k;

	json_array_foreach(json_object_get(t->doc, "series"), i, series)
		json_array_foreach(json_object_get(series, "points"), k, point)
			sum += point_uj(t, point);
	return sum;
}

void history_steps(const struct history_text *text, bool one)
{
	struct table t = { .t = text, .doc = text->doc, .domains = json_object_get(text->doc, "domains") };

	t.n_domains = sums_domains(t.doc, t.summed);
	t.unit = history_unit(whole_uj(&t));
	if (one)
		put_one(&t);
	else
		put_all(&t);
}
