/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl history: what was used when, from the agent's store, as a table of steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../base/log.h"
#include "../base/text.h"
#include "agent.h"
#include "ask.h"
#include "verb.h"

#define COLUMNS 6 /* rows of the answer that stand beside each other */
#define NAME_WIDTH 16

enum { OPTION_SINCE, OPTION_UNTIL, OPTION_STEP, OPTION_JSON, OPTION_SOCKET };

static const struct verb_option options[] = {
	[OPTION_SINCE] = { "since", 's', "TIME", "-1h (default), 2026-01-31T12:00:00Z or Unix seconds" },
	[OPTION_UNTIL] = { "until", 'u', "TIME", "the same; default now" },
	[OPTION_STEP] = { "step", 't', "DURATION", "length of a line's time; default so that they fit a screen" },
	[OPTION_JSON] = { "json", 'j', NULL, "as the agent tells it" },
	[OPTION_SOCKET] = { "socket", 0, "PATH", "of the agent; JOULED_SOCKET, or /run/jouled/jouled.sock" },
	{ NULL, 0, NULL, NULL },
};

static const char *const about[] = {
	"Prints joules per step: of CGROUP one column per domain, or, without it, package energy of the cgroups that used "
	"most and of the whole machine. Seconds are kept for an hour, minutes for history.keep, hours for a year. Where "
	"nothing is known it says why.",
	"Marks: ~ estimated or scaled, ? partly lost.",
	NULL,
};

/* An hour in 30 lines; of another time the agent chooses the step. */
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

	buf_add_str(path, "/v1/history?limit=");
	buf_add_u64(path, call->option[OPTION_JSON] ? 20 : COLUMNS - 1);
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (call->option[known[i].option]) {
			buf_printf(path, "&%s=", known[i].name);
			agent_escape(path, call->option[known[i].option]);
		}
	if (!call->option[OPTION_STEP] && !call->option[OPTION_JSON])
		buf_add_str(path, call->option[OPTION_SINCE] ? "" : "&step=2m");
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
	struct column columns[COLUMNS];
	unsigned n;
};

/* The end of a name tells more than its beginning. */
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

static bool is_package(const char *name)
{
	return name && strncmp(name, "package", 7) == 0;
}

/* Package energy, all where there is none. */
static double joules(const struct table *t, const json_t *point)
{
	const json_t *values = json_array_get(point, 3);
	double package = 0, all = 0;
	bool any = false;

	for (size_t d = 0; d < json_array_size(values); d++) {
		double uj = (double)json_integer_value(json_array_get(values, d));

		all += uj;
		if (is_package(json_string_value(json_array_get(t->domains, d)))) {
			package += uj;
			any = true;
		}
	}
	return (any ? package : all) / 1e6;
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

/* What was lost between two lines. */
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

/* All rows of one instant; the machine is their sum. */
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

	/* residual has a point in every step */
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

	if (!json_array_size(json_object_get(doc, "series"))) {
		printf("nothing was kept in this time\n");
		return;
	}
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
	int code;

	add_query(&path, call);
	code = path.failed ? err_set(&err, -1, "out of memory") :
			     ask_agent(call->option[OPTION_SOCKET], (const char *)path.data, &body, &err);
	if (!code && call->option[OPTION_JSON]) {
		code = ask_print(&body, &err);
	} else if (!code) {
		doc = ask_parse(&body, &err);
		code = doc ? 0 : err.code;
	}
	if (doc)
		print_table(doc, call->n > 0);
	if (code)
		log_error("history: %s", err.text);
	json_decref(doc);
	buf_free(&body);
	buf_free(&path);
	return code ? CTL_FAILED : CTL_OK;
}

const struct verb verb_history = {
	.name = "history",
	.synopsis = "[CGROUP]",
	.help = "Says who used how much when",
	.about = about,
	.options = options,
	.max_args = 1,
	.run = run,
};
