/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <time.h>
#include "../base/clock.h"
#include "record.h"

#define SILENT_US 5000000 /* then a ring counts as empty for ever */
#define DRAIN_NS (2500 * NS_PER_MS) /* the driver's rings are looked at every 1.5 s */

static struct record_out *out_of(struct record_session *s, unsigned gpu)
{
	for (unsigned i = 0; i < s->n_out; i++)
		if (s->out[i].gpu >= 0 && s->devices.gpu[s->out[i].gpu].gpu == gpu)
			return &s->out[i];
	return NULL;
}

/* A ring that the driver has and that stays empty: readers pass over a repetition without these samples. */
static void make_samples(struct record_out *o)
{
	o->silent = o->polled[GPU_RING_POWER] = true;
	for (unsigned i = 0; i < o->n_held; i++)
		recorder_sample(o->rec, GPU_RING_POWER, o->held[i].real_us, o->held[i].mw);
	o->n_held = 0;
}

static void hold(struct record_out *o, int64_t real_us, int64_t mw)
{
	if (o->silent) {
		recorder_sample(o->rec, GPU_RING_POWER, real_us, mw);
		return;
	}
	o->held[o->n_held].real_us = real_us;
	o->held[o->n_held++].mw = mw;
	if (o->n_held == RECORD_HELD || real_us - o->held[0].real_us > SILENT_US)
		make_samples(o);
}

static void take_row(void *arg, const struct gpu_row *row)
{
	const struct record_session *s = arg;
	struct record_out *o = out_of(arg, row->gpu);

	if (!o)
		return;
	recorder_gpu_row(o->rec, row);
	o->last_row_ns = row->real_ns;
	if (row->present & GPU_BIT(GPU_POWER)) {
		o->power_mw = row->v[GPU_POWER];
		if (s->o->samples_from == SAMPLES_GPU && !o->last_sample_us[GPU_RING_POWER])
			hold(o, row->real_ns / 1000, row->v[GPU_POWER]);
	}
	if (o->limit_mw < 0 && (row->present & GPU_BIT(GPU_POWER_LIMIT)))
		o->limit_mw = row->v[GPU_POWER_LIMIT];
}

static void take_sample(void *arg, const struct gpu_sample *sample)
{
	const struct record_session *s = arg;
	struct record_out *o = out_of(arg, sample->gpu);

	if (!o || (sample->ring == GPU_RING_POWER && (s->o->samples_from != SAMPLES_GPU || o->silent)))
		return;
	recorder_sample(o->rec, (enum gpu_ring)sample->ring, sample->real_us, sample->value);
	o->polled[sample->ring] |= sample->polled;
	o->last_sample_us[sample->ring] = sample->real_us;
}

static void take_meter(void *arg, const struct meter_sample *sample)
{
	struct record_session *s = arg;

	s->last_meter_ns = sample->real_ns;
	for (unsigned i = 0; i < s->n_out; i++)
		recorder_meter_sample(s->out[i].rec, sample);
}

int record_devices_take_new(struct record_session *s, struct err *err)
{
	const struct record_devices_take take = { take_row, take_sample, take_meter, s };
	int code = 0;

	if (s->devices.n_gpus || s->devices.n_channels)
		code = record_devices_poll(s->with.agent, s->o->gpu_every_ns, &s->devices, &take, err);
	for (unsigned i = 0; i < s->n_out && (!code || code == -EPROTO); i++)
		code = recorder_flush(s->out[i].rec, err);
	return code == -EPROTO ? 0 : code;
}

/* A command may be over before the driver's ring is looked at for the first time. */
static bool power_awaited(const struct record_session *s, const struct record_out *o)
{
	return s->o->samples_from == SAMPLES_GPU && !o->silent && !o->last_sample_us[GPU_RING_POWER];
}

/* Has every series passed the end? Other rings that have brought nothing yet may never do. */
static bool all_here(const struct record_session *s)
{
	if (s->last_meter_ns && s->last_meter_ns < s->end_ns)
		return false;
	for (unsigned i = 0; i < s->n_out; i++) {
		const struct record_out *o = &s->out[i];

		if (o->gpu < 0)
			continue;
		if (o->last_row_ns < s->end_ns || power_awaited(s, o))
			return false;
		for (unsigned r = 0; r < GPU_RINGS; r++)
			if (o->last_sample_us[r] && o->last_sample_us[r] < s->end_ns / 1000)
				return false;
	}
	return true;
}

void record_devices_drain(struct record_session *s)
{
	uint64_t until = clock_mono_ns() + DRAIN_NS;
	struct err err = { 0 };

	while (!s->failed.code && !all_here(s) && clock_mono_ns() < until) {
		nanosleep(&(struct timespec){ .tv_nsec = 100 * (long)NS_PER_MS }, NULL);
		record_fail(s, record_devices_take_new(s, &err), &err);
	}
	for (unsigned i = 0; i < s->n_out; i++)
		if (s->out[i].gpu >= 0 && power_awaited(s, &s->out[i]))
			make_samples(&s->out[i]);
}
