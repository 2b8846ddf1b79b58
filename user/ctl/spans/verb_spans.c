/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl spans: what ran, for how long, at what energy. */
#include <sys/ioctl.h>
#include <unistd.h>
#include <errno.h>
#include <stdio.h>
#include "base/log.h"
#include "ctl_spans.h"

enum { OPTION_JSON = SPANS_OPTIONS, OPTION_CHROME };

static const struct verb_option options[] = {
	SPANS_OPTION_ROWS("1000"),
	[OPTION_JSON] = { "json", 'j', NULL, "whole traces, which FILE reads back" },
	[OPTION_CHROME] = { "chrome", 0, "FILE", "writes trace events for trace viewers (Perfetto, chrome://tracing)" },
	{ NULL, 0, NULL, NULL },
};

static const char *const about[] = {
	"Prints the trees of processes that have ended in the running agent (spans: { processes: true } in its configuration), "
	"one trace for each run of a command, container or service, with the calls of probed functions below their process. FILE "
	"is the spool of a zico output (a directory STATE-DIR/zico-*.spool, or one file of it), or what --json wrote; - is "
	"standard input.",
	"A span pays for its CPU time at the rate of its cgroup, energy per CPU second, in the intervals it overlaps. own J "
	"is without children, and without the functions that have a line; subtree J is with all below it. A tree that lives long is "
	"shown in parts of spans.trace-period.",
	"Marks: ~ estimated or scaled, ? partly lost.",
	NULL,
};

/* 0 where standard output is no terminal. */
static unsigned terminal_width(void)
{
	struct winsize w;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}

static int show(const struct verb_call *call, const struct spans_list *l, struct err *err)
{
	const char *command = call->option[SPANS_COMMAND], *chrome = call->option[OPTION_CHROME];
	struct buf out = { 0 };
	int rc = 0;

	if (chrome)
		rc = spans_print_chrome(l, command, &out);
	else if (call->option[OPTION_JSON])
		spans_print_json(l, &out);
	else
		rc = spans_print(l, command, terminal_width(), &out);
	if (rc)
		err_set(err, rc, "spans: out of memory; ask for less");
	else
		rc = spans_write(chrome, &out, err);
	if (!rc && (chrome || call->option[OPTION_JSON]))
		/* the file has these sentences too, but the user may not read it */
		spans_warn_missing("spans", &l->missing);
	buf_free(&out);
	return rc;
}

static void say_none(const struct spans_missing *m)
{
	char text[SPANS_SENTENCES][200];
	unsigned n = spans_say_missing(m, text);

	printf("no matching trace has ended\n");
	for (unsigned i = 0; i < n; i++)
		printf("not shown: %s\n", text[i]);
}

static int run(const struct verb_call *call)
{
	const struct spans_query query = { .call = call, .limit = 1000 };
	struct spans_list list = { 0 };
	struct err err = { 0 };
	int rc;

	if (call->option[OPTION_JSON] && call->option[OPTION_CHROME]) {
		log_error("spans: --json and --chrome: one of them; leave the other out");
		return CTL_USAGE;
	}
	rc = spans_load(&query, &list, &err);
	if (!rc && !list.n && !list.missing.left_out && !call->option[OPTION_JSON] && !call->option[OPTION_CHROME])
		say_none(&list.missing);
	else if (!rc)
		rc = show(call, &list, &err);
	if (rc)
		log_error("%s", err.text);
	spans_list_free(&list);
	return !rc ? CTL_OK : rc == -EINVAL ? CTL_USAGE : CTL_FAILED;
}

const struct verb verb_spans = {
	.name = "spans",
	.synopsis = "[FILE|-]",
	.help = "Shows what ran: trees of processes and functions with durations, joules and watts",
	.about = about,
	.options = options,
	.max_args = 1,
	.run = run,
};
