/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl history: energy over time from the agent's store: a line per step, or sums by name or by time, with what it
 * cost. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/instant.h"
#include "base/log.h"
#include "ctl/core/agent_client.h"
#include "ctl/core/ask.h"
#include "ctl/core/choice.h"
#include "ctl/core/verb.h"
#include "history_clock.h"
#include "history_text.h"

#define LINES 30 /* of a table, at most, where --step is not given */
#define DEFAULT_NS (3600 * (int64_t)NS_PER_S)

#define LIMIT_OF_SUMS 1000 /* cgroups; the agent adds up the rest */
#define POINTS_MAX 168 /* of a cgroup for sums by name: the carbon intensity may change between them */

enum {
	OPTION_SINCE,
	OPTION_UNTIL,
	OPTION_STEP,
	OPTION_BY,
	OPTION_PRICE,
	OPTION_CARBON,
	OPTION_CSV,
	OPTION_JSON,
	OPTION_SOCKET
};

static const struct verb_option options[] = {
	[OPTION_SINCE] = { "since", 's', "TIME",
			   "-1h (default; -24h by hour, -30d by day), 2026-01-31T12:00:00Z or Unix seconds" },
	[OPTION_UNTIL] = { "until", 'u', "TIME", "the same; default now" },
	[OPTION_STEP] = { "step", 't', "DURATION", "length of a line's time; default so that there are at most 30" },
	[OPTION_BY] = { "by", 'b', "WORD", "sums: unit, namespace, pod, container, slice, job, day or hour" },
	[OPTION_PRICE] = { "price", 0, "N", "of a kWh, for a column of costs; default the configuration's price" },
	[OPTION_CARBON] = { "carbon", 0, "N|FILE",
			    "grams of CO2 per kWh, or a file with lines TIME,GRAMS; default the configuration's carbon" },
	[OPTION_CSV] = { "csv", 0, NULL, "the same lines for programs: microjoules, times in UTC" },
	[OPTION_JSON] = { "json", 'j', NULL, "as the agent tells it" },
	[OPTION_SOCKET] = { "socket", 0, "PATH", "of the agent; JOULED_SOCKET, or /run/jouled/jouled.sock" },
	{ NULL, 0, NULL, NULL },
};

static const char *const about[] = {
	"Prints joules per step: of CGROUP one column per domain, or, without it, energy of the cgroups that used "
	"most and of the whole machine, domains that hold none of each other added up. Seconds are kept for an hour, minutes for history.keep, hours for a year. Where "
	"nothing is known it says why.",
	"The last line is the total. With --by it adds up by a name that cgroups share, or by day or hour, over all energy of the "
	"machine: names are those that the agent still knows; for a cgroup that has gone for longer the unit, the slice and the job are "
	"taken from its path. From 1 kWh on figures are in kWh. A price or a carbon intensity, here or in jouled's configuration, "
	"adds a column. The file of intensities is read at each call; a value holds until the next line's time.",
	"Marks: ~ estimated or scaled, ? partly lost.",
	NULL,
};

struct ask {
	const struct verb_call *call;
	int by; /* of enum sums_by; -1 = a line per step */
	struct cost cost;
};

/* Returns the shortest step with which the table has at most `lines` lines. NULL where a time cannot be parsed: the
 * agent then says why. */
static const char *step_of(const struct verb_call *call, int64_t lines)
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
	const char *since = call->option[OPTION_SINCE], *until = call->option[OPTION_UNTIL];
	int64_t now_ns = clock_real_ns(), until_ns = now_ns, since_ns;
	unsigned i = 0;

	if (until && instant_parse(until, now_ns, &until_ns) != 0)
		return NULL;
	since_ns = until_ns - DEFAULT_NS;
	if (since && instant_parse(since, now_ns, &since_ns) != 0)
		return NULL;
	while (i + 1 < n && (until_ns - since_ns) / (int64_t)NS_PER_S > lines * steps[i].s)
		i++;
	return steps[i].word;
}

static const char *step_wanted(const struct ask *a)
{
	const struct verb_call *call = a->call;

	if (call->option[OPTION_STEP])
		return call->option[OPTION_STEP];
	if (call->option[OPTION_JSON])
		return NULL;
	if (a->by == SUMS_DAY || a->by == SUMS_HOUR)
		return "1h";
	return step_of(call, a->by >= 0 ? POINTS_MAX : LINES);
}

/* Cgroups that the answer is to name. */
static unsigned limit_of(const struct ask *a)
{
	if (a->by >= SUMS_DAY)
		return 0;
	return a->by >= 0 ? LIMIT_OF_SUMS : a->call->option[OPTION_JSON] ? 20 : HISTORY_COLUMNS - 1;
}

/* of_cgroup: of the one that was named, if any; else of the machine alone. */
static void add_query(struct buf *path, const struct ask *a, bool of_cgroup)
{
	const struct verb_call *call = a->call;
	static const struct {
		const char *name;
		int option;
	} known[] = {
		{ "since", OPTION_SINCE },
		{ "until", OPTION_UNTIL },
	};
	const char *step, *since = NULL;

	if (!call->option[OPTION_SINCE] && a->by >= SUMS_DAY)
		since = a->by == SUMS_DAY ? "-30d" : "-24h";
	buf_add_str(path, "/v1/history?limit=");
	buf_add_u64(path, of_cgroup ? limit_of(a) : 0);
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (call->option[known[i].option]) {
			buf_printf(path, "&%s=", known[i].name);
			agent_escape(path, call->option[known[i].option]);
		}
	if (since)
		buf_printf(path, "&since=%s", since);
	step = step_wanted(a);
	if (step) {
		buf_add_str(path, "&step=");
		agent_escape(path, step);
	}
	if (call->n && of_cgroup) {
		buf_add_str(path, "&cgroup=");
		agent_escape(path, call->args[0]);
	}
	buf_add_char(path, '\0');
}

/* Takes what the agent's configuration says where the command line says nothing. */
static int take_cost(struct cost *c, const struct verb_call *call, const json_t *doc, struct err *err)
{
	const char *price = call->option[OPTION_PRICE], *carbon = call->option[OPTION_CARBON];
	int rc;

	if (!price)
		price = json_string_value(json_object_get(doc, "price"));
	if (!carbon)
		carbon = json_string_value(json_object_get(doc, "carbon"));
	rc = price ? cost_set_price(c, price, err) : 0;
	if (!rc && carbon)
		rc = cost_set_carbon(c, carbon, err);
	if (rc && carbon && !call->option[OPTION_CARBON]) {
		log_warn("history: the configuration's carbon is left out: %s", err->text);
		rc = 0;
	}
	return rc;
}

static int print(struct ask *a, const json_t *doc, struct err *err)
{
	const struct history_text text = { doc, &a->cost, a->call->option[OPTION_CSV] != NULL };
	int rc = take_cost(&a->cost, a->call, doc, err);

	if (rc)
		return rc;
	if (!json_array_size(json_object_get(doc, "series"))) {
		if (!text.csv)
			printf(a->call->n ? "nothing of it was kept in this time\n" :
					    "nothing was kept in this time\n");
		history_lost(&text);
		return 0;
	}
	if (a->by < 0)
		history_steps(&text, a->call->n > 0);
	else if (history_sums(&text, (enum sums_by)a->by) != 0)
		return err_set(err, -ENOMEM, "out of memory; ask for less");
	return 0;
}

static int fetch(const struct ask *a, bool of_cgroup, struct buf *ret_body, struct err *err)
{
	struct buf path = { 0 };
	int rc;

	add_query(&path, a, of_cgroup);
	rc = path.failed ? err_set(err, -ENOMEM, "out of memory; free some") :
			   ask_agent(a->call->option[OPTION_SOCKET], (const char *)path.data, ret_body, err);
	buf_free(&path);
	return rc;
}

/* Sums of one cgroup need the times in which it used nothing. */
static int add_clock(const struct ask *a, json_t *doc, struct err *err)
{
	struct buf body = { 0 };
	json_t *machine = NULL;
	int rc = fetch(a, false, &body, err);

	if (!rc) {
		machine = ask_parse(&body, err);
		rc = machine ? 0 : err->code;
	}
	if (!rc && history_add_clock(doc, machine) != 0)
		rc = err_set(err, -ENOMEM, "out of memory; ask for less");
	json_decref(machine);
	buf_free(&body);
	return rc;
}

static int answer(struct ask *a, struct err *err)
{
	struct buf body = { 0 };
	json_t *doc = NULL;
	int rc = fetch(a, true, &body, err);

	if (!rc && a->call->option[OPTION_JSON]) {
		ask_print(&body);
	} else if (!rc) {
		doc = ask_parse(&body, err);
		rc = !doc ? err->code : a->call->n && a->by >= 0 ? add_clock(a, doc, err) : 0;
	}
	if (doc && !rc)
		rc = print(a, doc, err);
	json_decref(doc);
	buf_free(&body);
	return rc;
}

/* 0, or -EINVAL with err. */
static int check(struct ask *a, struct err *err)
{
	const struct verb_call *call = a->call;
	struct cost tried;
	int rc;

	a->by = choice_word("--by", call->option[OPTION_BY], sums_words, -1, err);
	if (call->option[OPTION_BY] && a->by < 0)
		return -EINVAL;
	if (call->option[OPTION_JSON] && (call->option[OPTION_CSV] || call->option[OPTION_BY]))
		return err_set(err, -EINVAL, "--json: the agent's own answer; leave --csv and --by out");
	cost_init(&tried);
	rc = take_cost(&tried, call, NULL, err);
	cost_free(&tried);
	return rc;
}

static int run(const struct verb_call *call)
{
	struct ask a = { .call = call, .by = -1 };
	struct err err = { 0 };
	int rc = check(&a, &err), status = rc ? CTL_USAGE : CTL_FAILED;

	cost_init(&a.cost);
	if (!rc)
		rc = answer(&a, &err);
	if (rc)
		log_error("history: %s", err.text);
	cost_free(&a.cost);
	return rc ? status : CTL_OK;
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
