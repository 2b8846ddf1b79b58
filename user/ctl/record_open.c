/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a repetition or a baseline, and their first rows. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "../base/clock.h"
#include "record.h"

static int open_one(struct record_session *s, struct record_out *out, bool baseline, struct err *err)
{
	struct recorder_place place = { .root = s->o->root,
					.experiment = s->o->experiment,
					.benchmark = out->benchmark };
	char name[32] = "_baseline";
	int code;

	place.run = s->setting ? s->setting->name : s->o->run;
	if (baseline) {
		if (s->n_out > 1)
			snprintf(name, sizeof(name), "_baseline-gpu%u", s->devices.gpu[out->gpu].gpu);
		place.benchmark = NULL;
		place.run = name;
	}
	code = recorder_open(&place, &out->rec, err);
	if (code)
		return code;
	out->limit_mw = -1;
	memset(out->polled, 0, sizeof(out->polled));
	memset(out->last_sample_us, 0, sizeof(out->last_sample_us));
	out->last_row_ns = 0;
	out->n_held = 0;
	out->silent = false;
	if (out->gpu >= 0)
		recorder_gpu(out->rec, &s->devices.gpu[out->gpu]);
	if (s->devices.n_channels)
		recorder_meters(out->rec, s->devices.channel, s->devices.n_channels, s->o->external_uw);
	return 0;
}

int record_open(struct record_session *s, bool baseline, struct err *err)
{
	int code = record_devices_ask(s->with.agent, s->o->gpu_every_ns, &s->devices, err);

	if (!code)
		code = record_gpus_still_there(s, err);
	s->last_meter_ns = 0;
	for (unsigned i = 0; i < s->n_out && !code; i++)
		code = open_one(s, &s->out[i], baseline, err);
	return code;
}

/* Not as long as a slow pace: nobody could interrupt it. */
static void wait_for_reading(const struct record_session *s)
{
	uint64_t ns = s->o->reading_every_ns < RECORD_READING_EVERY_NS ? s->o->reading_every_ns :
									 RECORD_READING_EVERY_NS;

	nanosleep(&(struct timespec){ .tv_nsec = (long)ns }, NULL);
}

int record_begin_measuring(struct record_session *s, const char *path, struct err *err)
{
	int code;

	record_measure_begin(&s->measure, s->with.agent, &s->with.facts, path, s->o->samples_from);
	code = record_measure_take(&s->measure, s->out, s->n_out, err);
	if (!code) {
		wait_for_reading(s);
		code = record_measure_take(&s->measure, s->out, s->n_out, err);
	}
	if (!code)
		code = record_devices_take_new(s, err);
	return code;
}
