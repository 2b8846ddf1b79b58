/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of joulectl record, as the command line gives it. It is constant afterwards. */
#ifndef JD_CTL_RECORD_PLAN_H
#define JD_CTL_RECORD_PLAN_H
#include <stdbool.h>
#include <stdint.h>
#include "limits.h"

enum record_samples { SAMPLES_GPU, SAMPLES_RAPL, SAMPLES_CGROUP };

struct record_plan {
	const char *root, *experiment, *benchmark;
	const char *run; /* NULL = each run has the name of its setting */
	unsigned repeats; /* of each setting */
	uint64_t gpu_every_ns, reading_every_ns;
	uint64_t baseline_ns; /* 0 = none */
	const char *gpus; /* NULL = the only one */
	enum record_samples samples_from;
	int64_t external_uw; /* power of a count in power-external.csv */
	struct record_setting settings[RECORD_SETTINGS_MAX];
	unsigned n_settings; /* 0 = limits stay as they are */
	const char *socket;
	bool use_private;
	char **command; /* NULL with --recover */
};

/* One repetition of the plan. */
struct record_job {
	const struct record_plan *plan;
	const struct record_setting *setting; /* NULL = limits stay as they are */
	unsigned number, of; /* "3 of 10" */
};

/* Returns the name of its run directory. */
static inline const char *record_run_name(const struct record_job *job)
{
	return job->setting ? job->setting->name : job->plan->run;
}

#endif
