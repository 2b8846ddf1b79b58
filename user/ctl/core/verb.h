/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl is a table of verbs: one file defines one `verb_NAME`, one row of verbs.c makes it known.
 * Usage, --help and the manual page come from what stands here. */
#ifndef JD_CTL_VERB_H
#define JD_CTL_VERB_H
#include <stdbool.h>
#include "../base/err.h"

#define VERB_OPTIONS_MAX 16

enum { CTL_OK = 0, CTL_FAILED = 1, CTL_USAGE = 2 }; /* exit statuses */

struct verb_option {
	const char *name; /* "format" = --format; NULL ends the table */
	char letter; /* 'f' = -f, 0 = none */
	const char *arg; /* "FORMAT", NULL = takes no value */
	const char *help; /* one line */
};

struct verb_call {
	const char *option[VERB_OPTIONS_MAX]; /* by row of the table; "" = flag, NULL = not given */
	bool help; /* asked for; what follows it was not read */
	int n;
	char **args; /* what is no option; the last of several options counts */
};

struct verb {
	const char *name; /* "decode" */
	const char *synopsis; /* "[FILE|-|URL]", "" = no arguments */
	const char *help; /* one line */
	const char *const *about; /* paragraphs, up to NULL */
	const struct verb_option *options;
	int max_args;
	bool passes_on; /* options are those of another program: args is all there is */
	bool command; /* the arguments are a command: nothing behind its name is an option */
	/* Says what went wrong itself (log.h); returns the exit status. */
	int (*run)(const struct verb_call *call);
};

extern const struct verb verb_decode, verb_plot, verb_top, verb_list, verb_status, verb_stream, verb_doctor;
extern const struct verb verb_run, verb_history;
extern const struct verb verb_web;
extern const struct verb verb_record, verb_mark;
extern const struct verb verb_report, verb_check;
extern const struct verb verb_spans, verb_flame;

extern const struct verb *const verbs[]; /* up to NULL */
const struct verb *verb_find(const char *name);

/* Splits argv into options and arguments (argv is permuted). 0 or -EINVAL with the nearest option. */
int verb_parse(const struct verb *v, int argc, char **argv, struct verb_call *ret, struct err *err);
/* Runs what argv[1] names. The exit status. */
int verb_main(int argc, char **argv);

void verb_print_help(const struct verb *v);
/* A section of joulectl(1). 0 or -ENOENT. */
int verb_print_man(const char *name);

#endif
