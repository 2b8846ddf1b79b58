/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl plot: power over time as SVG, from the agent's history or from a recording. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/instant.h"
#include "base/log.h"
#include "base/parse.h"
#include "ctl/core/agent_client.h"
#include "ctl/core/ask.h"
#include "plot.h"
#include "ctl/core/put.h"
#include "ctl/core/verb.h"

#define BUSY_TRIES 10
#define LOOKED_AT 200u /* cgroups that a pattern is tried on */

enum { OPTION_CGROUP, OPTION_TOP, OPTION_DOMAIN, OPTION_SINCE, OPTION_UNTIL, OPTION_WIDTH, OPTION_OUT, OPTION_SOCKET };

static const struct verb_option options[] = {
	[OPTION_CGROUP] = { "cgroup", 0, "PATTERN",
			    "only cgroups that match, such as /system.slice/** (* stays within a name)" },
	[OPTION_TOP] = { "top", 0, "N",
			 "areas of cgroups at most, 8 unless given; what the others used is one area, other" },
	[OPTION_DOMAIN] = { "domain", 'd', "NAMES",
			    "domains or kinds, joined by commas, added up even where one holds another; those that hold none of each other unless given: package,dram,gpu where there are" },
	[OPTION_SINCE] = { "since", 0, "TIME",
			   "-90m, 2026-01-31T12:00:00Z or Unix seconds; of the history -1h, of a recording its begin unless given" },
	[OPTION_UNTIL] = { "until", 0, "TIME", "the same; now, or a recording's end unless given" },
	[OPTION_WIDTH] = { "width", 'w', "PIXELS", "320 to 8000; 960 unless given, 360 suits a phone" },
	[OPTION_OUT] = { "out", 'o', "FILE", "where to write; standard output unless given" },
	[OPTION_SOCKET] = { "socket", 0, "PATH", "the agent's; JOULED_SOCKET or /run/jouled/jouled.sock unless given" },
	{ NULL, 0, NULL, NULL },
};

static const char *const about[] = {
	"Draws the power of each cgroup over time as stacked areas: from the history of the running agent, or from a "
	"recording (-o snapshot=file://FILE of jouled; - is standard input). An area is energy: each interval is a step as "
	"high as its mean power. Where there are more intervals than pixels, a step is the mean of several, and a band shows the "
	"lowest and the highest of them; the tooltip of an area names the extremes of its row.",
	"The SVG opens in any browser, follows its dark or light setting, and has no script and nothing from elsewhere in it. "
	"Where nothing was measured it is grey, not zero; what was estimated is hatched. Values are a cgroup's own, "
	"without its children.",
	NULL,
};

static void add_parameter(struct buf *b, const char *name, const char *value)
{
	if (!value)
		return;
	buf_printf(b, "%c%s=", memchr(b->data, '?', b->len) ? '&' : '?', name);
	agent_escape(b, value);
}

/* The agent, and what a question needs. */
struct asking {
	const struct verb_call *call;
	struct plot *p;
	struct agent *agent;
	struct buf request, body;
};

struct question {
	const char *since, *until; /* NULL = as the agent takes them */
	const char *step; /* NULL = the finest step of the history */
	bool machine; /* of the machine alone, for the times of one cgroup */
};

/* Is it a path, of which the agent has an answer of its own? */
static bool is_one(const struct verb_call *call)
{
	const char *cgroup = call->option[OPTION_CGROUP];

	return cgroup && !cgroup[strcspn(cgroup, "*?")];
}

static void make_request(struct asking *k, const struct question *q)
{
	const char *cgroup = k->call->option[OPTION_CGROUP];
	struct buf *b = &k->request;
	char limit[16];

	buf_reset(b);
	buf_add_str(b, "/v1/history");
	add_parameter(b, "since", q->since);
	add_parameter(b, "until", q->until);
	add_parameter(b, "step", q->step);
	snprintf(limit, sizeof(limit), "%u", q->machine ? 0 : cgroup ? LOOKED_AT : k->p->top);
	if (is_one(k->call) && !q->machine)
		add_parameter(b, "cgroup", cgroup);
	else
		add_parameter(b, "limit", limit);
	buf_add_char(b, '\0');
}

/* Asks again when the agent has no room for the answer now, because a coarser step would give another picture. */
static int ask(struct asking *k, const struct question *q, struct err *err)
{
	int rc = -EPROTO;

	make_request(k, q);
	if (k->request.failed)
		return err_set(err, -ENOMEM, "plot: out of memory; free some");
	for (unsigned i = 0; i < BUSY_TRIES && rc == -EPROTO; i++) {
		if (i)
			nanosleep(&(struct timespec){ .tv_nsec = 200 * (long)NS_PER_MS }, NULL);
		rc = agent_get(k->agent, (const char *)k->request.data, NULL, &k->body, err);
		if (rc && agent_status(k->agent) != 503)
			break;
	}
	return rc;
}

/* Unix seconds of an answer's time. */
static void write_time(char dst[32], const json_t *doc, const char *key)
{
	long long ns = ask_number(doc, key);

	ns = ns > 0 ? ns : 0; /* --since may lie before 1970 */
	snprintf(dst, 32, "%lld.%09lld", ns / (long long)NS_PER_S, ns % (long long)NS_PER_S);
}

/* The times of the machine are asked for first, and the cgroup then between the same two instants: what comes to the disk
 * between the two answers is in the cgroup's, so no time is taken for one in which it used nothing. */
static int ask_one(struct asking *k, const char *step, json_t **ret_machine, struct err *err)
{
	struct question q = { k->call->option[OPTION_SINCE], k->call->option[OPTION_UNTIL], step, true };
	char since[32], until[32];
	int rc = ask(k, &q, err);

	json_decref(*ret_machine);
	*ret_machine = rc ? NULL : ask_parse(&k->body, err);
	if (rc || !*ret_machine)
		return rc ? rc : err->code;
	write_time(since, *ret_machine, "since_unix_ns");
	write_time(until, *ret_machine, "until_unix_ns");
	q = (struct question){ since, until, step, false };
	return ask(k, &q, err);
}

/* Asks for longer steps while the answer is too large. The step depends only on the request and the history. */
static int read_agent(const struct verb_call *call, struct plot *p, struct err *err)
{
	static const char *const steps[] = { NULL, "10s", "1m", "10m", "1h", "6h", "1d" };
	struct asking k = { .call = call, .p = p };
	json_t *machine = NULL;
	int rc = agent_open(call->option[OPTION_SOCKET], &k.agent, err);

	if (rc)
		return rc;
	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const struct question q = { call->option[OPTION_SINCE], call->option[OPTION_UNTIL], steps[i], false };

		rc = is_one(call) ? ask_one(&k, steps[i], &machine, err) : ask(&k, &q, err);
		if (rc != -EPROTO || agent_status(k.agent) != 400)
			break;
	}
	if (!rc)
		rc = plot_read_history_of(p, (const char *)k.body.data, k.body.len, machine, err);
	json_decref(machine);
	buf_free(&k.request);
	buf_free(&k.body);
	agent_close(k.agent);
	return rc;
}

static int number(const char *option, const char *text, unsigned min, unsigned max, unsigned *ret)
{
	uint64_t v;

	if (!text)
		return 0;
	if (parse_u64(text, &v) != 0 || v < min || v > max) {
		log_error("plot: --%s %.40s: no number from %u to %u; write one", option, text, min, max);
		return -EINVAL;
	}
	*ret = (unsigned)v;
	return 0;
}

/* Reads --since and --until for a recording. The agent reads them for the history. */
static int take_times(const struct verb_call *call, struct plot *p)
{
	const struct {
		const char *name, *text;
		int64_t *to;
	} all[] = {
		{ "since", call->option[OPTION_SINCE], &p->since_ns },
		{ "until", call->option[OPTION_UNTIL], &p->until_ns },
	};
	int64_t now_ns = clock_real_ns();

	for (unsigned i = 0; i < 2; i++)
		if (all[i].text && instant_parse(all[i].text, now_ns, all[i].to) != 0) {
			log_error("plot: --%s %.40s: no time; write Unix seconds, 2026-01-31T12:00:00Z or -1h",
				  all[i].name, all[i].text);
			return -EINVAL;
		}
	return 0;
}

static int draw(const struct verb_call *call, struct plot *p, unsigned width, struct err *err)
{
	struct buf out = { 0 };
	int rc = plot_finish(p, err);

	if (rc)
		return rc;
	plot_draw(p, width, &out);
	rc = out.failed ? err_set(err, -ENOMEM, "plot: out of memory; ask for less") :
			  put_file(call->option[OPTION_OUT], &out, err);
	buf_free(&out);
	return rc;
}

static int run(const struct verb_call *call)
{
	struct plot *p = calloc(1, sizeof(*p));
	struct err err = { 0 };
	unsigned width = 960;
	int rc;

	if (!p)
		return CTL_FAILED;
	plot_init(p);
	p->cgroup = call->option[OPTION_CGROUP];
	p->domains = call->option[OPTION_DOMAIN];
	if (number("top", call->option[OPTION_TOP], 1, PLOT_TOP_MAX, &p->top) ||
	    number("width", call->option[OPTION_WIDTH], PLOT_WIDTH_MIN, PLOT_WIDTH_MAX, &width) ||
	    (call->n && take_times(call, p))) {
		free(p);
		return CTL_USAGE;
	}
	rc = call->n ? plot_read_recording(p, call->args[0], &err) : read_agent(call, p, &err);
	if (rc && call->n && p->n_columns && rc != -ENODATA) {
		log_warn("%s", err.text); /* the agent was killed while it wrote; the data before that is good */
		rc = 0;
	}
	if (!rc && p->n_unseen)
		log_warn(
			"plot: --cgroup %.128s: looked for among the %u cgroups that used most; %u others are left out, name a path for one of them",
			p->cgroup, LOOKED_AT, p->n_unseen);
	if (!rc)
		rc = draw(call, p, width, &err);
	if (rc)
		log_error("%s", err.text);
	plot_free(p);
	free(p);
	return !rc ? CTL_OK : rc == -EINVAL ? CTL_USAGE : CTL_FAILED;
}

const struct verb verb_plot = {
	.name = "plot",
	.synopsis = "[FILE|-]",
	.help = "Draws power over time per cgroup as SVG, from the history or a recording",
	.about = about,
	.options = options,
	.max_args = 1,
	.run = run,
};
