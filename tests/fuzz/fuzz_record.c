/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of joulectl record: answers about devices, marks, settings, notes of limits. The first byte chooses. */
#include <stdlib.h>
#include <string.h>

#include "ctl/experiment/device_rows.h"
#include "ctl/experiment/limits.h"
#include "ctl/experiment/marks.h"
#include "ctl/experiment/note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take_row(void *arg, const struct gpu_row *row)
{
	if (row->present >= GPU_BIT(GPU_FIELDS))
		abort();
}

static void take_sample(void *arg, const struct gpu_sample *s)
{
	if (s->ring >= GPU_RINGS)
		abort();
}

static void take_meter(void *arg, const struct meter_sample *s)
{
	if (s->device >= METER_MAX_DEVICES || s->channel >= METER_MAX_CHANNELS)
		abort();
}

static void mark(const char *text)
{
	struct record_marks m = { .fd = -1 };
	struct record_mark k;
	struct err err = { 0 };

	record_marks_begin(&m, 1);
	if (record_mark_parse(text, &k, &err) == 0 && record_marks_judge(&m, &k, 1000, &err) == 0 &&
	    (k.data < 0 || k.time_ns < 1 || k.time_ns > 1000))
		abort();
}

static void setting(const char *text)
{
	struct record_setting list[RECORD_SETTINGS_MAX];
	unsigned n = 0;
	struct err err = { 0 };

	if (record_settings_sweep(text, list, &n, &err) == 0)
		for (unsigned i = 0; i < n; i++)
			if (!list[i].name[0] || strchr(list[i].name, '/') || (!list[i].power_mw && !list[i].mem_mhz))
				abort();
}

static void note(const char *text)
{
	struct guard_state s;

	if (record_note_parse(text, &s) == 0 && s.n > RECORD_LIMITED_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct record_devices_take take = { take_row, take_sample, take_meter, NULL };
	static struct record_devices d;
	struct err err = { 0 };
	char *text;

	if (!size)
		return 0;
	text = malloc(size);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	if (data[0] == 'd') {
		if (record_devices_parse(text, size - 1, &d, &err) == 0 &&
		    (d.n_gpus > GPU_MAX || d.n_channels > RECORD_CHANNELS_MAX))
			abort();
	} else if (data[0] == 's') {
		/* without a NUL behind it: nothing is read beyond the end */
		char *exact = malloc(size - 1 ? size - 1 : 1);

		memcpy(exact, text, size - 1);
		record_devices_parse_samples(exact, size - 1, &d, &take, &err);
		free(exact);
	} else if (data[0] == 'm') {
		mark(text);
	} else if (data[0] == 'n') {
		note(text);
	} else {
		setting(text);
	}
	free(text);
	return 0;
}
