/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl top: the power and work of every cgroup, live. */
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "base/parse.h"
#include "base/text.h"
#include "ctl/core/choice.h"
#include "top_procs.h"
#include "ctl/core/verb.h"

enum {
	OPTION_SORT,
	OPTION_TREE,
	OPTION_FILTER,
	OPTION_ALL,
	OPTION_ONCE,
	OPTION_COUNT,
	OPTION_JSON,
	OPTION_LIMIT,
	OPTION_INTERVAL,
	OPTION_REPLAY,
	OPTION_PID,
	OPTION_SINCE,
	OPTION_UNTIL,
	OPTION_SOCKET
};

static const struct verb_option options[] = {
	[OPTION_SORT] = { "sort", 's', "COLUMN", "watts (default), joules, cpu, ipc, network, block or name" },
	[OPTION_TREE] = { "tree", 't', NULL, "each cgroup with all that is below it, as a tree" },
	[OPTION_FILTER] = { "filter", 'f', "TEXT", "only cgroups with this in their name" },
	[OPTION_ALL] = { "all", 'a', NULL, "idle cgroups too" },
	[OPTION_ONCE] = { "once", '1', NULL, "the last interval, then end" },
	[OPTION_COUNT] = { "count", 'n', "N", "N tables, then end; no screen" },
	[OPTION_JSON] = { "json", 'j', NULL, "a JSON object per interval, a line each, with every row" },
	[OPTION_LIMIT] = { "limit", 'l', "N", "at most N rows in a table" },
	[OPTION_INTERVAL] = { "interval", 'i', "TIME", "10ms to 1h; the agent's own unless given" },
	[OPTION_REPLAY] = { "replay", 'r', "FILE", "a recording (-o snapshot=...) instead of an agent; - is stdin" },
	[OPTION_PID] = { "pid", 'p', "PID", "begin with the processes of this one's cgroup" },
	[OPTION_SINCE] = { "since", 0, "TIME",
			   "the agent's history from there on: -2h, 2026-01-31T12:00:00Z or Unix seconds" },
	[OPTION_UNTIL] = { "until", 0, "TIME", "the same; now unless given" },
	[OPTION_SOCKET] = { "socket", 0, "PATH", "of the agent; JOULED_SOCKET, or /run/jouled/jouled.sock" },
	{ NULL, 0, NULL, NULL },
};

static const char *const about[] = {
	"Shows what each cgroup uses: watts and joules, CPU time, instructions per cycle (or CPU time so far, where there "
	"are no counters), network, block devices and history, with the machine's domains, their idle and residual energy above. "
	"Press ? for the keys: t is the tree, / filters as you type, c shows the CPUs, m gives the mouse to the terminal, f freezes, q leaves.",
	"Without a terminal it prints a table per interval. Values are a cgroup's own; in the tree they are those of its "
	"subtree, and the heading says so. A mark behind a number says that it is not simply measured: ~ estimated, "
	"% multiplexed, ? partial, = stale, ! lost.",
	"Containers, pods and machines go by their names, with the path behind where there is room; the filter looks at "
	"both, and --json has them as names.",
	"When the agent ends, what was shown stays and it is looked for every second.",
	NULL,
};

/* Reads the options that are numbers. 0, or -EINVAL with a message. */
static int read_numbers(const struct verb_call *call, struct top_source *src, struct top_plain *how)
{
	struct err err = { 0 };
	uint64_t limit = 0;
	int rc = choice_number("top: --count", call->option[OPTION_COUNT], choice_range(1, UINT64_MAX), &how->count,
			       &err);

	if (!rc)
		rc = choice_number("top: --limit", call->option[OPTION_LIMIT], choice_range(1, 1000000), &limit, &err);
	if (!rc)
		rc = choice_interval("top: --interval", call->option[OPTION_INTERVAL], &src->interval_ns, &err);
	how->limit = (unsigned)limit;
	if (!rc && src->since && (src->replay || src->interval_ns || call->option[OPTION_PID]))
		rc = err_set(&err, -EINVAL, "top: --since: not with --replay, --interval or --pid; leave one out");
	if (!rc && src->replay && src->interval_ns)
		rc = err_set(&err, -EINVAL,
			     "top: --interval: a recording has intervals of its own; leave it or --replay out");
	if (!rc && src->until && !src->since)
		rc = err_set(&err, -EINVAL, "top: --until: where it begins is missing; give --since, too");
	if (rc)
		log_error("%s", err.text);
	return rc;
}

static int read_choices(const struct verb_call *call, struct top_view *v)
{
	const char *filter = call->option[OPTION_FILTER];
	struct err err = { 0 };
	int sort = choice_word("top: --sort", call->option[OPTION_SORT], top_sort_names, TOP_BY_WATTS, &err);

	if (sort < 0 || (filter && strlen(filter) >= sizeof(v->filter))) {
		log_error("%s", sort < 0 ? err.text : "top: --filter: too long; at most 63 bytes");
		return -EINVAL;
	}
	v->sort = (enum top_sort)sort;
	v->tree = call->option[OPTION_TREE];
	v->all = call->option[OPTION_ALL];
	v->domain = -1;
	snprintf(v->filter, sizeof(v->filter), "%s", filter ? filter : "");
	return 0;
}

/* Finds the cgroup of --pid. 0, CTL_USAGE or CTL_FAILED with a message. */
static int read_pid(const struct verb_call *call, struct top_source *src, char path[PATH_MAX])
{
	struct err err = { 0 };
	uint64_t pid = 0;
	int status = CTL_OK;

	if (!call->option[OPTION_PID])
		return CTL_OK;
	if (choice_number("top: --pid", call->option[OPTION_PID], choice_range(1, 1 << 22), &pid, &err) ||
	    (src->replay && err_set(&err, -EINVAL, "top: --pid: a recording has no processes; leave --replay out")))
		status = CTL_USAGE;
	else if (top_pid_cgroup(src->socket, (long)pid, path, PATH_MAX, &err) != 0)
		status = CTL_FAILED;
	if (status != CTL_OK)
		log_error("%s%s", status == CTL_FAILED ? "top: " : "", err.text);
	src->pid = (unsigned)pid;
	src->pid_cgroup = path;
	return status;
}

static bool wants_screen(const struct verb_call *call)
{
	return !call->option[OPTION_ONCE] && !call->option[OPTION_COUNT] && !call->option[OPTION_JSON] &&
	       isatty(STDOUT_FILENO);
}

static int run(const struct verb_call *call)
{
	struct top_source src = { .socket = call->option[OPTION_SOCKET],
				  .replay = call->option[OPTION_REPLAY],
				  .since = call->option[OPTION_SINCE],
				  .until = call->option[OPTION_UNTIL],
				  .key_fd = -1 };
	struct top_plain how = { .json = call->option[OPTION_JSON], .replay = src.replay || src.since };
	struct top_view *v = calloc(1, sizeof(*v));
	const char *term = getenv("TERM");
	char shown[64], pid_path[PATH_MAX] = "/";
	int status = -ENOTTY;

	setlocale(LC_CTYPE, "");
	top_text_init();
	if (!v || read_choices(call, v) || read_numbers(call, &src, &how)) {
		free(v);
		return v ? CTL_USAGE : CTL_FAILED;
	}
	if (call->option[OPTION_ONCE])
		how.count = 1;
	if (call->option[OPTION_PID] && !wants_screen(call)) {
		log_error("top: --pid: it needs a screen; joulectl run --pid measures a process without one");
		free(v);
		return CTL_USAGE;
	}
	status = read_pid(call, &src, pid_path);
	if (status != CTL_OK) {
		free(v);
		return status;
	}
	status = -ENOTTY;
	if (wants_screen(call)) {
		status = top_screen_run(v, &src);
		if (status == -ENOTTY)
			log_warn("top: TERM=%s: no screen on this terminal; plain tables",
				 text_escape(shown, sizeof(shown), term ? term : ""));
	}
	if (status == -ENOTTY)
		status = top_plain_run(v, &src, &how);
	top_view_free(v);
	free(v);
	return status;
}

const struct verb verb_top = {
	.name = "top",
	.synopsis = "",
	.help = "Shows live what every cgroup uses",
	.about = about,
	.options = options,
	.max_args = 0,
	.run = run,
};
