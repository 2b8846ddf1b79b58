/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs and meters of the machine, as the query server hands them to recorders. */
#include <string.h>
#include "serving_internal.h"

static unsigned gpus(void *arg)
{
	const struct machine *m = arg;

	return gpus_count(m->gpus);
}

static void gpu(void *arg, unsigned i, struct gpu_desc *ret)
{
	const struct machine *m = arg;

	gpus_desc(m->gpus, i, ret);
}

static unsigned channels(void *arg)
{
	const struct machine *m = arg;

	return meters_channels(m->meters);
}

static void channel(void *arg, unsigned i, struct meter_desc *ret)
{
	const struct machine *m = arg;

	meters_desc(m->meters, i, ret);
}

static void record(void *arg, uint64_t row_ns)
{
	const struct machine *m = arg;

	if (m->gpus)
		gpus_record(m->gpus, row_ns);
}

static void now(void *arg, struct serve_devices_at *ret)
{
	const struct machine *m = arg;
	struct gpu_cursor g = { 0 };
	struct meter_cursor c = { 0 };

	if (m->gpus)
		gpus_cursor(m->gpus, &g);
	if (m->meters)
		meters_cursor(m->meters, &c);
	*ret = (struct serve_devices_at){ .at = { g.rows, g.samples, c.next } };
}

static bool next_row(void *arg, struct serve_devices_at *at, struct gpu_row *ret)
{
	const struct machine *m = arg;
	struct gpu_cursor c = { .rows = at->at[DEVICES_ROWS] };
	bool got = m->gpus && gpus_next_row(m->gpus, &c, ret);

	at->at[DEVICES_ROWS] = c.rows;
	at->missed += c.missed;
	return got;
}

static bool next_sample(void *arg, struct serve_devices_at *at, struct gpu_sample *ret)
{
	const struct machine *m = arg;
	struct gpu_cursor c = { .samples = at->at[DEVICES_SAMPLES] };
	bool got = m->gpus && gpus_next_sample(m->gpus, &c, ret);

	at->at[DEVICES_SAMPLES] = c.samples;
	at->missed += c.missed;
	return got;
}

static bool next_meter(void *arg, struct serve_devices_at *at, struct meter_sample *ret)
{
	const struct machine *m = arg;
	struct meter_cursor c = { .next = at->at[DEVICES_METERS] };
	bool got = m->meters && meters_next(m->meters, &c, ret);

	at->at[DEVICES_METERS] = c.next;
	at->missed += c.missed;
	return got;
}

const struct serve_devices *serving_devices(struct serving *sv, const struct machine *m, const char *gpu_library)
{
	sv->gpu_library = gpu_library ? strdup(gpu_library) : NULL;
	sv->devices = (struct serve_devices){
		(void *)m, gpus,     gpu,         channels,   channel,         record,
		now,       next_row, next_sample, next_meter, sv->gpu_library,
	};
	return m->gpus || m->meters ? &sv->devices : NULL;
}
