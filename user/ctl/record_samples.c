/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <time.h>
#include "../base/clock.h"
#include "record.h"

#define DRAIN_NS (2500 * NS_PER_MS)   /* the driver's rings are looked at every 1.5 s */

static struct record_out *out_of(struct record_session *s, unsigned gpu)
{
	for (unsigned i = 0; i < s->n_out; i++)
		if (s->out[i].gpu >= 0 && s->devices.gpu[s->out[i].gpu].gpu == gpu)
			return &s->out[i];
	return NULL;
}

static void take_row(void *arg, const struct gpu_row *row)
{
	struct record_out *o = out_of(arg, row->gpu);

	if (!o)
		return;
	recorder_gpu_row(o->rec, row);
	o->last_row_ns = row->real_ns;
	if (row->present & GPU_BIT(GPU_POWER))
		o->power_mw = row->v[GPU_POWER];
	if (o->limit_mw < 0 && (row->present & GPU_BIT(GPU_POWER_LIMIT)))
		o->limit_mw = row->v[GPU_POWER_LIMIT];
}

static void take_sample(void *arg, const struct gpu_sample *sample)
{
	const struct record_session *s = arg;
	struct record_out *o = out_of(arg, sample->gpu);

	if (!o || (sample->ring == GPU_RING_POWER && s->o->samples_from != SAMPLES_GPU))
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

/* Has every series passed the end? A ring that has brought nothing yet may never do. */
static bool all_here(const struct record_session *s)
{
	if (s->last_meter_ns && s->last_meter_ns < s->end_ns)
		return false;
	for (unsigned i = 0; i < s->n_out; i++) {
		const struct record_out *o = &s->out[i];

		if (o->gpu < 0)
			continue;
		if (o->last_row_ns < s->end_ns)
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

	while (!s->failed.code && !all_here(s) && clock_mono_ns() < until) {
		nanosleep(&(struct timespec){ .tv_nsec = 100 * (long)NS_PER_MS }, NULL);
		record_devices_take_new(s, &s->failed);
	}
}
