/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a repetition: a whole one is published. Another one is kept, and the error line says where. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "record.h"

#define FEW_ROWS 5 /* so many dropped rows are normal: slow values come later than the first rows */
#define FEW_PART 20

/* Writes the reason why the repetition is not published; "" = it is published. */
static void judge(const struct record_result *r, char *why, size_t size)
{
	int status = run_exit_status(&r->end);

	*why = '\0';
	if (r->failed.code)
		snprintf(why, size, "%s", r->failed.text);
	else if (r->interrupted)
		snprintf(why, size, "interrupted");
	else if (status)
		snprintf(why, size, "the command failed with status %d", status);
}

/* Is the directory still there? A user may have removed it meanwhile. */
static bool is_left(const char *path)
{
	return access(path, F_OK) == 0;
}

/* Publishes and closes the recorder of an out. Returns the number of the repetition, or negative errno after an error
 * line was logged. */
static int publish_one(struct record_out *out)
{
	bool left = is_left(recorder_path(out->rec));
	char around[RECORDER_PATH_MAX];
	struct err err = { 0 };
	unsigned number;
	int rc;

	snprintf(around, sizeof(around), "%s", recorder_around(out->rec));
	rc = recorder_publish(out->rec, &number, &err);
	out->rec = NULL;
	if (rc)
		log_error(left ? "record: %s; what was recorded is kept in %s" :
				 "record: %s; nothing of it is left: somebody has removed it from %s",
			  err.text, around);
	return rc ? rc : (int)number;
}

static void say_published(const struct record_job *job, const struct record_out *out, int number)
{
	char path[RECORDER_PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/%s/%s/%d", job->plan->root, job->plan->experiment, out->benchmark,
		 record_run_name(job), number);
	dprintf(STDERR_FILENO, "joulectl: recorded %s\n", path);
	record_check(path);
}

static void keep_one(struct record_out *out, const char *root, const char *why)
{
	if (is_left(recorder_path(out->rec)))
		log_error(
			"record: %s; not published, kept in %s; joulectl record --root %s --recover publishes it as it is",
			why, recorder_around(out->rec), root);
	else
		log_error("record: %s; nothing of it is left: somebody has removed it from %s", why,
			  recorder_around(out->rec));
	recorder_keep(out->rec);
	out->rec = NULL;
}

/* Warns of values that a GPU did not tell. They are in no file, so no reader can see that they are missing. */
static void say_gaps(const struct record_plan *plan, const struct record_out *out, const struct record_result *r)
{
	uint64_t dropped = recorder_gpu_dropped(out->rec);
	int64_t silent_ns = record_silent_ns(plan, out, r);

	if (out->gpu < 0 || r->failed.code)
		return;
	if (silent_ns)
		log_warn(
			"record: GPU %s told no power in the last %.1f s: it was lost, or its driver hangs or refuses; see the kernel's log",
			out->id, (double)silent_ns / 1e9);
	if (dropped > FEW_ROWS && dropped > recorder_rows(out->rec, RECORDER_GPU) / FEW_PART)
		log_warn("record: GPU %s: %llu rows lacked power or another value and are not in gpu-power.csv",
			 out->id, (unsigned long long)dropped);
}

int record_finish(const struct record_job *job, const struct record_kit *kit, struct record_outs *outs,
		  const struct record_result *r, unsigned *published)
{
	char why[600];
	int rc = 0;

	judge(r, why, sizeof(why));
	for (unsigned i = 0; i < outs->n; i++) {
		struct record_out *out = &outs->out[i];
		int number = -ECANCELED;

		say_gaps(job->plan, out, r);
		record_info_put(job, &kit->with, &outs->devices, out, r);
		if (*why)
			keep_one(out, job->plan->root, why);
		else
			number = publish_one(out);
		if (number < 0) {
			rc = number;
			continue;
		}
		++*published;
		say_published(job, out, number);
	}
	return rc;
}
