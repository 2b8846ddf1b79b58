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

/* Writes the request. step NULL = the finest step of the history. */
static void make_request(const struct verb_call *call, const struct plot *p, const char *step, struct buf *b)
{
	const char *cgroup = call->option[OPTION_CGROUP];
	bool one = cgroup && !cgroup[strcspn(cgroup, "*?")];
	char limit[16];

	buf_reset(b);
	buf_add_str(b, "/v1/history");
	add_parameter(b, "since", call->option[OPTION_SINCE]);
	add_parameter(b, "until", call->option[OPTION_UNTIL]);
	add_parameter(b, "step", step);
	if (one)
		add_parameter(b, "cgroup", cgroup);
	snprintf(limit, sizeof(limit), "%u", cgroup ? LOOKED_AT : p->top);
	if (!one)
		add_parameter(b, "limit", limit);
	buf_add_char(b, '\0');
}

/* Asks again when the agent has no memory for the answer now, because a coarser step would give another picture. */
static int ask(struct agent *a, const char *request, struct buf *body, struct err *err)
{
	int rc = -EPROTO;

	for (unsigned i = 0; i < BUSY_TRIES && rc == -EPROTO; i++) {
		if (i)
			nanosleep(&(struct timespec){ .tv_nsec = 200 * (long)NS_PER_MS }, NULL);
		rc = agent_get(a, request, NULL, body, err);
		if (rc && agent_status(a) != 503)
			break;
	}
	return rc;
}

/* Asks for longer steps while the answer is too large. The step depends only on the request and the history. */
static int read_agent(const struct verb_call *call, struct plot *p, struct err *err)
{
	static const char *const steps[] = { NULL, "10s", "1m", "10m", "1h", "6h", "1d" };
	struct buf request = { 0 }, body = { 0 };
	struct agent *a;
	int rc = agent_open(call->option[OPTION_SOCKET], &a, err);

	if (rc)
		return rc;
	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		make_request(call, p, steps[i], &request);
		rc = request.failed ? err_set(err, -ENOMEM, "plot: out of memory; free some") :
				      ask(a, (const char *)request.data, &body, err);
		if (rc != -EPROTO || agent_status(a) != 400)
			break;
	}
	if (!rc)
		rc = plot_read_history(p, (const char *)body.data, body.len, err);
	buf_free(&request);
	buf_free(&body);
	agent_close(a);
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
