/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of joulectl run: which commands, how often, in which order, with what around them. */
#ifndef JD_CTL_RUN_PLAN_H
#define JD_CTL_RUN_PLAN_H
#include <stdbool.h>
#include <stdint.h>
#include "ctl/compare/paired.h"
#include "ctl/core/verb.h"
#include "base/err.h"

#define RUN_ROUNDS_MAX 1000 /* of a comparison, and of --until without -r */
#define RUN_REPEATS_MAX 100000

/* A command. words is what the user wrote, argv what is executed; both end with NULL. */
struct run_side {
	char **words, **argv;
	char *string[2], *shell[4]; /* for words and argv of a command that is one string */
	char *text; /* all words, escaped nowhere; the plan's */
};

struct run_plan {
	struct run_side side[SERIES_SIDES_MAX];
	unsigned n_sides;
	unsigned rounds; /* at most so many */
	unsigned warmup;
	double until; /* half the interval of the mean, as a part of it; 0 = all rounds */
	const char *prepare, *cleanup, *setup; /* NULL = none */
	const char *input; /* path; "-" = standard input, read once; NULL = not given */
	uint64_t seed;
	const char *figure; /* name of the metric that the answer is about; NULL = the energy */
	/* The gate. With a base command it is side 0, and the judged command side 1. */
	bool gate, base_runs;
	double fail; /* the change that matters, as a part */
	const char *against, *save; /* files; NULL = none */
};

enum {
	RUN_OPTION_REPEAT,
	RUN_OPTION_VS,
	RUN_OPTION_UNTIL,
	RUN_OPTION_WARMUP,
	RUN_OPTION_SETUP,
	RUN_OPTION_PREPARE,
	RUN_OPTION_CLEANUP,
	RUN_OPTION_INPUT,
	RUN_OPTION_SEED,
	RUN_OPTION_FIGURE,
	RUN_OPTION_SAVE,
	RUN_OPTION_AGAINST,
	RUN_OPTION_BASE_CMD,
	RUN_OPTION_FAIL,
	RUN_OPTION_JUNIT,
	RUN_OPTION_BADGE,
	RUN_OPTION_HYPERFINE,
	RUN_OPTION_PLOT,
	RUN_OPTION_JSON,
	RUN_OPTION_CSV,
	RUN_OPTION_MARKDOWN,
	RUN_OPTION_OUTPUT,
	RUN_OPTION_IDLE,
	RUN_OPTION_EVENTS,
	RUN_OPTION_PRIVATE,
	RUN_OPTION_SOCKET,
	RUN_OPTION_PRICE,
	RUN_OPTION_CARBON,
	RUN_OPTION_PID,
	RUN_OPTION_CGROUP,
	RUN_OPTION_DURATION,
	RUN_OPTIONS,
};
extern const struct verb_option run_options[RUN_OPTIONS + 1];

/* Reads the command line, and says on stderr which commands go through the shell. 0, or -EINVAL or -ENOMEM with err.
 * Call run_plan_free in any case. */
int run_plan_read(const struct verb_call *call, struct run_plan *ret, struct err *err);
/* Checks the form of the output, --events and --idle. 0, or -EINVAL with err. */
int run_plan_read_forms(const struct verb_call *call, struct err *err);
void run_plan_free(struct run_plan *p);
/* goes_on of struct verb. */
bool run_plan_goes_on(int argc, char **argv);

#endif
