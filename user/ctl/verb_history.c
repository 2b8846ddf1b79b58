/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl history: energy over time from the agent's store, as a table with a line per step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "base/instant.h"
#include "base/log.h"
#include "base/text.h"
#include "model/schema.h"
#include "ctl/core/agent_client.h"
#include "ctl/core/ask.h"
#include "ctl/core/verb.h"

#define COLUMNS 6 /* columns of the table */
#define NAME_WIDTH 16
#define LINES 30 /* of a table, at most, where --step is not given */
#define DEFAULT_NS (3600 * (int64_t)NS_PER_S)

enum { OPTION_SINCE, OPTION_UNTIL, OPTION_STEP, OPTION_JSON, OPTION_SOCKET };

static const struct verb_option options[] = {
	[OPTION_SINCE] = { "since", 's', "TIME", "-1h (default), 2026-01-31T12:00:00Z or Unix seconds" },
	[OPTION_UNTIL] = { "until", 'u', "TIME", "the same; default now" },
	[OPTION_STEP] = { "step", 't', "DURATION", "length of a line's time; default so that there are at most 30" },
	[OPTION_JSON] = { "json", 'j', NULL, "as the agent tells it" },
	[OPTION_SOCKET] = { "socket", 0, "PATH", "of the agent; JOULED_SOCKET, or /run/jouled/jouled.sock" },
	{ NULL, 0, NULL, NULL },
};

static const char *const about[] = {
	"Prints joules per step: of CGROUP one column per domain, or, without it, energy of the cgroups that used "
	"most and of the whole machine, domains that hold none of each other added up. Seconds are kept for an hour, minutes for history.keep, hours for a year. Where "
	"nothing is known it says why.",
	"Marks: ~ estimated or scaled, ? partly lost.",
	NULL,
};

/* Returns the shortest step with which the table has at most LINES lines. NULL where a time cannot be parsed: the
 * agent then says why. */
static const char *step_of(const char *since, const char *until)
{
	static const struct {
		const char *word;
		int64_t s;
	} steps[] = {
		{ "1s", 1 },         { "2s", 2 },      { "5s", 5 },      { "10s", 10 },     { "20s", 20 },
		{ "30s", 30 },       { "1m", 60 },     { "2m", 120 },    { "5m", 300 },     { "10m", 600 },
		{ "20m", 1200 },     { "30m", 1800 },  { "1h", 3600 },   { "2h", 7200 },    { "3h", 10800 },
		{ "6h", 21600 },     { "12h", 43200 }, { "24h", 86400 }, { "48h", 172800 }, { "168h", 604800 },
		{ "720h", 2592000 },
	};
	const unsigned n = sizeof(steps) / sizeof(steps[0]);
	int64_t now_ns = clock_real_ns(), until_ns = now_ns, since_ns;
	unsigned i = 0;

	if (until && instant_parse(until, now_ns, &until_ns) != 0)
		return NULL;
	since_ns = until_ns - DEFAULT_NS;
	if (since && instant_parse(since, now_ns, &since_ns) != 0)
		return NULL;
	while (i + 1 < n && (until_ns - since_ns) / (int64_t)NS_PER_S > LINES * steps[i].s)
		i++;
	return steps[i].word;
}

static void add_query(struct buf *path, const struct verb_call *call)
{
	static const struct {
		const char *name;
		int option;
	} known[] = {
		{ "since", OPTION_SINCE },
		{ "until", OPTION_UNTIL },
		{ "step", OPTION_STEP },
	};
	const char *step;

	buf_add_str(path, "/v1/history?limit=");
	buf_add_u64(path, call->option[OPTION_JSON] ? 20 : COLUMNS - 1);
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (call->option[known[i].option]) {
			buf_printf(path, "&%s=", known[i].name);
			agent_escape(path, call->option[known[i].option]);
		}
	step = call->option[OPTION_STEP] || call->option[OPTION_JSON] ?
		       NULL :
		       step_of(call->option[OPTION_SINCE], call->option[OPTION_UNTIL]);
	if (step)
		buf_printf(path, "&step=%s", step);
	if (call->n) {
		buf_add_str(path, "&cgroup=");
		agent_escape(path, call->args[0]);
	}
	buf_add_char(path, '\0');
}

struct column {
	const json_t *points;
	size_t at; /* next point */
	char name[NAME_WIDTH + 1];
};

struct table {
	const json_t *doc, *domains;
	bool summed[SCHEMA_MAX_DOMAINS]; /* by domain: it is in the sum of the machine */
	size_t n_domains;
	struct column columns[COLUMNS];
	unsigned n;
};

/* Cuts a long name at its beginning, because the end tells more. */
static void set_name(struct column *c, const char *name)
{
	char safe[512];
	size_t len;

	text_escape(safe, sizeof(safe), name);
	len = strlen(safe);
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
		if (strcmp(ask_text(e, "row"), "cgroup") != 0 || t->n == COLUMNS - 1)
			continue;
		t->columns[t->n].points = json_object_get(e, "points");
		set_name(&t->columns[t->n++], ask_text(e, "cgroup"));
	}
}

/* Returns the energy of a point, in joules, over the domains in `summed`. */
static double joules(const struct table *t, const json_t *point)
{
	const json_t *values = json_array_get(point, 3);
	double sum = 0;

	for (size_t d = 0; d < t->n_domains && d < json_array_size(values); d++)
		sum += t->summed[d] ? (double)json_integer_value(json_array_get(values, d)) : 0;
	return sum / 1e6;
}

static char mark_of(const json_t *point)
{
	const char *q = json_string_value(json_array_get(point, 2));

	if (!q || strcmp(q, "measured") == 0 || strcmp(q, "wrapped") == 0)
		return ' ';
	return strcmp(q, "estimated") == 0 || strcmp(q, "multiplexed") == 0 ? '~' : '?';
}

static long long end_of(const json_t *point)
{
	return (long long)json_integer_value(json_array_get(point, 0));
}

static void print_time(long long unix_ns)
{
	time_t t = (time_t)(unix_ns / 1000000000);
	struct tm tm;
	char text[32];

	localtime_r(&t, &tm);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	printf("%s", text);
}

static void print_cell(double j, char mark)
{
	printf(" %*.3f%c", NAME_WIDTH - 1, j, mark);
}

/* Prints the gaps that begin in [after_ns, until_ns), between two lines of the table. */
static void print_lost(const struct table *t, long long after_ns, long long until_ns)
{
	const json_t *lost = json_object_get(t->doc, "lost"), *e;
	size_t i;

	json_array_foreach(lost, i, e) {
		long long from = ask_number(e, "from_unix_ns");

		if (from < after_ns || from >= until_ns)
			continue;
		print_time(from);
		printf("  nothing is known for %.1f s: %s\n", (double)(ask_number(e, "until_unix_ns") - from) / 1e9,
		       ask_text(e, "reason"));
	}
}

/* Returns the energy of the machine, in joules: the sum over all rows that end at end_ns. Moves `at` behind them. */
static double machine_at(const struct table *t, size_t *at, long long end_ns)
{
	const json_t *series = json_object_get(t->doc, "series"), *e;
	double sum = 0;
	size_t i;

	json_array_foreach(series, i, e) {
		const json_t *points = json_object_get(e, "points");

		if (at[i] < json_array_size(points) && end_of(json_array_get(points, at[i])) == end_ns)
			sum += joules(t, json_array_get(points, at[i]++));
	}
	return sum;
}

static void print_all(struct table *t)
{
	const json_t *series = json_object_get(t->doc, "series"), *e, *clock = NULL;
	size_t i, *at = calloc(json_array_size(series) + 1, sizeof(*at));
	long long before = 0;

	/* The row `residual` has a point in every step. */
	json_array_foreach(series, i, e)
		if (strcmp(ask_text(e, "row"), "residual") == 0)
			clock = json_object_get(e, "points");
	printf("%-19s %*s", "until", NAME_WIDTH, "machine J");
	for (unsigned c = 0; c < t->n; c++)
		printf(" %*s", NAME_WIDTH, t->columns[c].name);
	putchar('\n');
	for (size_t k = 0; at && k < json_array_size(clock); k++) {
		const json_t *point = json_array_get(clock, k);
		long long end_ns = end_of(point);

		print_lost(t, before, end_ns);
		print_time(end_ns);
		print_cell(machine_at(t, at, end_ns), mark_of(point));
		for (unsigned c = 0; c < t->n; c++) {
			const json_t *p = json_array_get(t->columns[c].points, t->columns[c].at);
			bool here = p && end_of(p) == end_ns;

			t->columns[c].at += here;
			print_cell(here ? joules(t, p) : 0, here ? mark_of(p) : ' ');
		}
		putchar('\n');
		before = end_ns;
	}
	free(at);
}

static void print_one(struct table *t)
{
	const json_t *points = json_object_get(json_array_get(json_object_get(t->doc, "series"), 0), "points");
	long long before = 0;

	printf("%-19s %10s", "until", "s");
	for (size_t d = 0; d < json_array_size(t->domains); d++) {
		struct column c;

		set_name(&c, json_string_value(json_array_get(t->domains, d)));
		printf(" %*s", NAME_WIDTH, c.name);
	}
	putchar('\n');
	for (size_t k = 0; k < json_array_size(points); k++) {
		const json_t *p = json_array_get(points, k), *values = json_array_get(p, 3);

		print_lost(t, before, end_of(p));
		print_time(end_of(p));
		printf(" %10.3f", (double)json_integer_value(json_array_get(p, 1)) / 1e9);
		for (size_t d = 0; d < json_array_size(values); d++)
			print_cell((double)json_integer_value(json_array_get(values, d)) / 1e6, mark_of(p));
		putchar('\n');
		before = end_of(p);
	}
}

static void print_table(const json_t *doc, bool one)
{
	struct table t = { .doc = doc, .domains = json_object_get(doc, "domains") };
	const char *names[SCHEMA_MAX_DOMAINS];

	if (!json_array_size(json_object_get(doc, "series"))) {
		printf("nothing was kept in this time\n");
		return;
	}
	for (; t.n_domains < json_array_size(t.domains) && t.n_domains < SCHEMA_MAX_DOMAINS; t.n_domains++) {
		const char *name = json_string_value(json_array_get(t.domains, t.n_domains));

		names[t.n_domains] = name ? name : "";
	}
	domain_names_summed(names, (unsigned)t.n_domains, t.summed);
	choose_columns(&t);
	if (one)
		print_one(&t);
	else
		print_all(&t);
}

static int run(const struct verb_call *call)
{
	struct buf body = { 0 }, path = { 0 };
	struct err err = { 0 };
	json_t *doc = NULL;
	int rc;

	add_query(&path, call);
	rc = path.failed ? err_set(&err, -1, "out of memory") :
			   ask_agent(call->option[OPTION_SOCKET], (const char *)path.data, &body, &err);
	if (!rc && call->option[OPTION_JSON]) {
		ask_print(&body);
	} else if (!rc) {
		doc = ask_parse(&body, &err);
		rc = doc ? 0 : err.code;
	}
	if (doc)
		print_table(doc, call->n > 0);
	if (rc)
		log_error("history: %s", err.text);
	json_decref(doc);
	buf_free(&body);
	buf_free(&path);
	return rc ? CTL_FAILED : CTL_OK;
}

const struct verb verb_history = {
	.name = "history",
	.synopsis = "[CGROUP]",
	.help = "Shows the energy of cgroups over time",
	.about = about,
	.options = options,
	.max_args = 1,
	.run = run,
};
