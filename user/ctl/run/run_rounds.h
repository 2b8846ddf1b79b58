/* SPDX-License-Identifier: Apache-2.0 */
/* The rounds of joulectl run: in each round every command runs once, in random order. Around them the user's own
 * commands, and a line of progress on a terminal. */
#ifndef JD_CTL_RUN_ROUNDS_H
#define JD_CTL_RUN_ROUNDS_H
#include "run_measure.h"
#include "run_plan.h"

struct run_rounds {
	struct run_measure measure;
	struct run_plan plan;
	const struct cost *cost; /* for the reports */
	struct run_result *results[SERIES_SIDES_MAX]; /* by round */
	unsigned done[SERIES_SIDES_MAX]; /* number of runs of a side */
	unsigned *order; /* as in struct run_comparison */
	unsigned n_rounds; /* that were begun */
	unsigned cap; /* rounds that results and order have room for */
	/* NULL, or called after each round: 1 = the runs are enough, 0 = go on, negative errno with err = give up. */
	int (*enough)(void *arg, const struct run_rounds *r, struct err *err);
	void *arg;
	char input[128]; /* standard input of every run, in words */
	/* private */
	int input_fd; /* kept input that was read once; -1 = none */
	struct random random;
	uint64_t began_ns;
	bool shows; /* progress is shown */
};

/* Runs everything that r->plan says; the caller noted the descriptors and opened r->measure. 0, or negative errno with
 * err; what ran before is in the results in any case. Call run_rounds_free. */
int run_rounds_run(struct run_rounds *r, struct err *err);
void run_rounds_free(struct run_rounds *r);
/* Takes what was done so far, with the series of whole rounds. ret points into r and into *ret_series, which is freed
 * with series_free. 0 or -ENOMEM. */
int run_rounds_compare(const struct run_rounds *r, struct run_comparison *ret, struct series *ret_series);

#endif
