/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of joulectl record: a repetition of the plan, and its result (docs/formats/experiment.md). */
#ifndef JD_CTL_RECORD_H
#define JD_CTL_RECORD_H
#include "ctl/run/child.h"
#include "marks.h"
#include "measure.h"

/* The things that stay open from the first repetition to the last. */
struct record_kit {
	struct run_agent with;
	struct run_place place;
	struct run_descriptors descriptors;
	struct run_signals signals;
	bool terminal; /* stderr is a terminal: a progress line is shown */
};

/* The result of a repetition. */
struct record_result {
	struct run_end end;
	struct err failed; /* the failure that ended the recording; the command went on */
	bool interrupted;
	int64_t begin_ns, end_ns; /* CLOCK_REALTIME of experiment_begin and experiment_end */
	struct record_figures figures;
	uint64_t marks_refused;
	uint64_t samples_missed; /* rows and samples that the agent overwrote before they were asked for */
	int64_t epoch_closed; /* number of the epoch whose end was missing and added; -1 = none */
};

/* repetition.c */

/* Runs the command and records it into outs, which stay open for record_finish. 0 = it ran, or exec failed
 * (ret->end.not_started, and outs are discarded). Negative errno with err: no command was started, and outs are
 * discarded. */
int record_repetition(const struct record_job *job, struct record_kit *kit, struct record_outs *outs,
		      struct record_result *ret, struct err *err);
/* Records the machine at rest, without a command, and publishes the result. 0 or negative errno with err: outs are
 * discarded. */
int record_baseline(const struct record_plan *plan, struct record_kit *kit, struct record_outs *outs, struct err *err);

/* publish.c */

/* Publishes whole repetitions; says where others are kept and why. 0 or negative errno, which is logged. Adds the
 * number of published directories to *published. */
int record_finish(const struct record_job *job, const struct record_kit *kit, struct record_outs *outs,
		  const struct record_result *r, unsigned *published);

/* info.c: writes system_info.json of an out. r NULL: the repetition is not over. */
void record_info_put(const struct record_job *job, const struct run_agent *with, const struct record_devices *devices,
		     struct record_out *out, const struct record_result *r);
/* Returns the time from the last power that the GPU of an out told to the end, in ns; 0 = it told power up to the end,
 * or there is no GPU. */
int64_t record_silent_ns(const struct record_plan *plan, const struct record_out *out, const struct record_result *r);

/* mend.c */

/* Warns where the original reader fails on a published repetition, or misreads it. */
void record_check(const char *path);
/* joulectl record --recover. Returns the exit status. */
int record_recover(const struct record_plan *plan);

#endif
