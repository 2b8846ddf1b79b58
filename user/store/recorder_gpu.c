/* SPDX-License-Identifier: Apache-2.0 */
/* gpu-power.csv and power-external.csv: which columns there are, and which rows are whole. */
#include <errno.h>
#include <stdio.h>
#include "recorder_internal.h"

void recorder_gpu(struct recorder *r, const struct gpu_desc *d)
{
	r->gpu_fields = d->fields;
}

static void write_row(struct recorder *r, const struct gpu_row *row)
{
	int64_t v[GPU_FIELDS];
	unsigned n = 0;

	if ((row->present & r->gpu_fields) != r->gpu_fields) {
		r->gpu_dropped++;
		return;
	}
	for (unsigned f = 0; f < GPU_FIELDS; f++)
		if (r->gpu_fields & GPU_BIT(f))
			v[n++] = row->v[f];
	recorder_row(r, RECORDER_GPU, row->real_ns, v);
}

/* fields: what the file will have. */
static void decide(struct recorder *r, uint32_t fields)
{
	const char *names[GPU_FIELDS];
	unsigned n = 0;

	r->gpu_known = true;
	r->gpu_fields = fields;
	for (unsigned f = 0; f < GPU_FIELDS; f++)
		if (fields & GPU_BIT(f))
			names[n++] = gpu_field_column((enum gpu_field)f);
	recorder_columns(r, RECORDER_GPU, names, n);
	for (unsigned i = 0; i < r->n_held; i++)
		write_row(r, &r->held[i]);
	r->n_held = 0;
}

/* No row was whole: a field that no row has is no column after all. */
void recorder_gpu_settle(struct recorder *r)
{
	uint32_t seen = 0;

	if (r->gpu_known || !r->n_held)
		return;
	for (unsigned i = 0; i < r->n_held; i++)
		seen |= r->held[i].present;
	decide(r, r->gpu_fields & seen);
}

/* Without power a row is no row: readers need that column. The slow values come a little later than the first rows. */
void recorder_gpu_row(struct recorder *r, const struct gpu_row *row)
{
	if (!(row->present & GPU_BIT(GPU_POWER))) {
		r->gpu_dropped++;
	} else if (r->gpu_known) {
		write_row(r, row);
	} else if ((row->present & r->gpu_fields) == r->gpu_fields) {
		decide(r, r->gpu_fields);
		write_row(r, row);
	} else {
		r->held[r->n_held++] = *row;
		if (r->n_held == GPU_HELD)
			recorder_gpu_settle(r);
	}
}

uint64_t recorder_gpu_dropped(const struct recorder *r)
{
	return r->gpu_dropped;
}

int recorder_meters(struct recorder *r, const struct meter_desc *d, unsigned n, int64_t unit_uw)
{
	char text[METER_MAX_DEVICES * METER_MAX_CHANNELS][8];
	const char *names[METER_MAX_DEVICES * METER_MAX_CHANNELS];

	if (n > METER_MAX_DEVICES * METER_MAX_CHANNELS)
		return -ENOSPC;
	for (unsigned i = 0; i < n; i++) {
		r->channel[i].device = d[i].device;
		r->channel[i].channel = d[i].channel;
		snprintf(text[i], sizeof(text[i]), "d%uc%u", d[i].device % 10u, d[i].channel % 10u);
		names[i] = text[i];
	}
	r->n_channels = n;
	r->unit_uw = unit_uw;
	recorder_columns(r, RECORDER_EXTERNAL, names, n);
	return 0;
}

static int64_t in_unit(int64_t uw, int64_t unit_uw)
{
	return (uw + (uw < 0 ? -unit_uw : unit_uw) / 2) / unit_uw;
}

/* A channel that comes again before the others have come replaces its value: rows go at the pace of the slowest. */
void recorder_meter_sample(struct recorder *r, const struct meter_sample *s)
{
	int64_t v[METER_MAX_DEVICES * METER_MAX_CHANNELS];
	bool whole = r->n_channels > 0;

	for (unsigned i = 0; i < r->n_channels; i++) {
		if (r->channel[i].device == s->device && r->channel[i].channel == s->channel) {
			r->channel[i].fresh = true;
			r->channel[i].uw = s->power_uw;
			r->meter_ns = s->real_ns > r->meter_ns ? s->real_ns : r->meter_ns;
		}
		whole &= r->channel[i].fresh;
		v[i] = in_unit(r->channel[i].uw, r->unit_uw);
	}
	if (!whole)
		return;
	recorder_row(r, RECORDER_EXTERNAL, r->meter_ns, v);
	for (unsigned i = 0; i < r->n_channels; i++)
		r->channel[i].fresh = false;
	r->meter_ns = 0;
}
