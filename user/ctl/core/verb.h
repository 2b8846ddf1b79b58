/* SPDX-License-Identifier: Apache-2.0 */
/* A verb of joulectl. One file defines one `verb_NAME`, and one row of ctl/verbs.c registers it. Usage, --help and the
 * manual page are printed from its table of options and its paragraphs. */
#ifndef JD_CTL_VERB_H
#define JD_CTL_VERB_H
#include <stdbool.h>
#include "base/err.h"

#define VERB_OPTIONS_MAX 40
#define VERB_SEVERAL_MAX 16

/* Exit statuses. CTL_LOST: some output could not be written. */
enum { CTL_OK = 0, CTL_FAILED = 1, CTL_USAGE = 2, CTL_LOST = 3 };

struct verb_option {
	const char *name; /* "format" = --format; NULL ends the table */
	char letter; /* 'f' = -f, 0 = none */
	const char *arg; /* "FORMAT", NULL = takes no value; "COMMAND...": it may be given several times;
			  * "A B": it takes two words, which are call.several[0] and [1] */
	const char *help; /* one line */
};

struct verb_call {
	const char *option
		[VERB_OPTIONS_MAX]; /* by row of the table; "" = a flag is given, NULL = not given; of several the last */
	const char *several[VERB_SEVERAL_MAX]; /* values of the option that may be given several times, in order */
	unsigned n_several;
	bool help; /* --help is given; the arguments behind it were not read */
	int n;
	char **args; /* arguments that are no options */
};

struct verb {
	const char *name; /* "decode" */
	const char *synopsis; /* "[FILE|-|URL]", "" = no arguments */
	const char *help; /* one line */
	const char *const *about; /* paragraphs; ends with NULL */
	const struct verb_option *options;
	int max_args;
	bool passes_on; /* all arguments are passed to another program, options too */
	int lost_status; /* exit status instead of CTL_LOST; 0 = CTL_LOST */
	bool command; /* the arguments are a command: options end at its name */
	/* With command: are there options behind argv[0] too, because it is a whole command in itself? NULL = never. Not
	 * asked behind "--". */
	bool (*goes_on)(int argc, char **argv);
	/* Logs its own errors (log.h) and returns the exit status. */
	int (*run)(const struct verb_call *call);
};

/* Splits argv into options and arguments; argv is permuted. 0, or -EINVAL with the nearest option in err. */
int verb_parse(const struct verb *v, int argc, char **argv, struct verb_call *ret, struct err *err);

#endif
