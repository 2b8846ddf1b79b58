/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a repetition: published when it is whole, else kept, and where. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>
#include "../base/log.h"
#include "record.h"

/* Why it is not published; "" = it is. */
static void judge(const struct record_session *s, char *why, size_t size)
{
	int status = run_exit_status(&s->end);

	*why = '\0';
	if (s->failed.code)
		snprintf(why, size, "%s", s->failed.text);
	else if (s->signals.told)
		snprintf(why, size, "interrupted");
	else if (status)
		snprintf(why, size, "the command failed with status %d", status);
}

/* Somebody may have removed it under us. */
static bool is_left(const char *path)
{
	return access(path, F_OK) == 0;
}

static int publish_one(struct record_session *s, struct record_out *out, struct err *err)
{
	char path[RECORDER_PATH_MAX];
	unsigned number;
	bool left = is_left(recorder_path(out->rec));
	int code;

	snprintf(path, sizeof(path), "%s", recorder_around(out->rec));
	record_info_put(s, out, RECORD_DONE);
	code = recorder_publish(out->rec, &number, err);
	out->rec = NULL;
	if (code) {
		log_error(left ? "record: %s; what was recorded is kept in %s" :
				 "record: %s; nothing of it is left: somebody has removed it from %s",
			  err->text, path);
		return code;
	}
	s->published++;
	snprintf(path, sizeof(path), "%s/%s/%s/%s/%u", s->o->root, s->o->experiment, out->benchmark,
		 s->setting ? s->setting->name : s->o->run, number);
	dprintf(STDERR_FILENO, "joulectl: recorded %s\n", path);
	record_check(path);
	return 0;
}

int record_finish(struct record_session *s, struct err *err)
{
	char why[600];
	int code = 0;

	judge(s, why, sizeof(why));
	for (unsigned i = 0; i < s->n_out; i++) {
		if (!*why) {
			int one = publish_one(s, &s->out[i], err);

			if (one)
				code = one;
			continue;
		}
		if (is_left(recorder_path(s->out[i].rec)))
			log_error(
				"record: %s; not published, kept in %s; joulectl record --root %s --recover publishes it as it is",
				why, recorder_around(s->out[i].rec), s->o->root);
		else
			log_error("record: %s; nothing of it is left: somebody has removed it from %s", why,
				  recorder_around(s->out[i].rec));
		record_info_put(s, &s->out[i], RECORD_DONE);
		recorder_keep(s->out[i].rec);
		s->out[i].rec = NULL;
		code = -ECANCELED;
	}
	return code;
}
