/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "device_rows.h"

#define NUMBERS_MAX (GPU_FIELDS + 4)

static int malformed(struct err *err, const char *what)
{
	return err_set(err, -EBADMSG, "agent: its answer has no %s; is it of the same version as joulectl?", what);
}

static void copy_text(char *to, size_t size, const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	text_escape(to, size, s ? s : "");
}

static json_int_t number_of(const json_t *o, const char *key, json_int_t max)
{
	json_int_t v = json_integer_value(json_object_get(o, key));

	return v < 0 ? 0 : v > max ? max : v;
}

static void read_gpu(const json_t *o, struct gpu_desc *d)
{
	*d = (struct gpu_desc){ .gpu = (uint16_t)number_of(o, "gpu", UINT16_MAX) };
	copy_text(d->vendor, sizeof(d->vendor), o, "vendor");
	copy_text(d->name, sizeof(d->name), o, "name");
	copy_text(d->uuid, sizeof(d->uuid), o, "uuid");
	copy_text(d->pci, sizeof(d->pci), o, "pci");
	copy_text(d->driver_version, sizeof(d->driver_version), o, "driver_version");
	copy_text(d->nvml_version, sizeof(d->nvml_version), o, "nvml_version");
	d->cuda_version = (int)number_of(o, "cuda_version", 1000000);
	d->cuda_major = (int)number_of(o, "cuda_major", 1000);
	d->cuda_minor = (int)number_of(o, "cuda_minor", 1000);
	d->fields = (uint32_t)number_of(o, "fields", UINT32_MAX) & (GPU_BIT(GPU_FIELDS) - 1);
	d->rings = (uint8_t)number_of(o, "rings", UINT8_MAX);
	d->mig = json_is_true(json_object_get(o, "mig"));
}

static void read_channel(const json_t *o, struct meter_desc *d)
{
	*d = (struct meter_desc){
		.device = (uint8_t)number_of(o, "device", METER_MAX_DEVICES - 1),
		.channel = (uint8_t)number_of(o, "channel", METER_MAX_CHANNELS - 1),
		.pace_ns = (uint64_t)number_of(o, "pace_ns", INT64_MAX),
	};
	copy_text(d->type, sizeof(d->type), o, "type");
	copy_text(d->label, sizeof(d->label), o, "label");
}

static void read_library(const json_t *o, struct record_devices *ret)
{
	const char *s = json_string_value(json_object_get(o, "gpu_library"));

	if (s && *s == '/' && strlen(s) < sizeof(ret->gpu_library))
		snprintf(ret->gpu_library, sizeof(ret->gpu_library), "%s", s);
}

int record_devices_parse(const char *text, size_t size, struct record_devices *ret, struct err *err)
{
	json_t *doc = json_loadb(text, size, 0, NULL), *gpus = json_object_get(doc, "gpus");
	json_t *channels = json_object_get(doc, "channels");
	size_t n = json_array_size(gpus), m = json_array_size(channels);
	int rc = 0;

	if (!json_is_array(gpus) || !json_is_array(channels) || n > GPU_MAX || m > RECORD_CHANNELS_MAX) {
		rc = malformed(err, "list of devices");
		goto out;
	}
	*ret = (struct record_devices){ .n_gpus = (unsigned)n, .n_channels = (unsigned)m };
	for (size_t i = 0; i < n; i++)
		read_gpu(json_array_get(gpus, i), &ret->gpu[i]);
	for (size_t i = 0; i < m; i++)
		read_channel(json_array_get(channels, i), &ret->channel[i]);
	ret->silent_meters = (unsigned)number_of(doc, "silent_meters", METER_MAX_DEVICES);
	read_library(doc, ret);
	ret->rows = (uint64_t)number_of(doc, "rows", INT64_MAX);
	ret->samples = (uint64_t)number_of(doc, "samples", INT64_MAX);
	ret->meters = (uint64_t)number_of(doc, "meters", INT64_MAX);
out:
	json_decref(doc);
	return rc;
}

/* Reads numbers up to `end`, each after one blank. Returns their number; -1 when the text has anything else. */
static int read_numbers(const char *p, const char *end, int64_t v[NUMBERS_MAX])
{
	int n = 0;

	while (p < end) {
		char *after;

		if (*p != ' ' || n == NUMBERS_MAX || !(p[1] == '-' || (p[1] >= '0' && p[1] <= '9')))
			return -1;
		errno = 0;
		v[n++] = strtoll(p + 1, &after, 10);
		if (errno || after == p + 1 || after > end)
			return -1;
		p = after;
	}
	return n;
}

static bool take_row(const int64_t *v, int n, const struct record_devices_take *take)
{
	struct gpu_row row = { 0 };
	int at = 3;

	if (n < 3 || v[0] < 0 || v[0] > UINT16_MAX || v[2] < 0 || v[2] >= GPU_BIT(GPU_FIELDS))
		return false;
	row.gpu = (uint16_t)v[0];
	row.real_ns = v[1];
	row.present = (uint32_t)v[2];
	if (n != 3 + __builtin_popcount(row.present))
		return false;
	for (unsigned f = 0; f < GPU_FIELDS; f++)
		if (row.present & GPU_BIT(f))
			row.v[f] = v[at++];
	take->row(take->arg, &row);
	return true;
}

static bool take_sample(const int64_t *v, int n, const struct record_devices_take *take)
{
	struct gpu_sample s;

	if (n != 5 || v[0] < 0 || v[0] > UINT16_MAX || v[1] < 0 || v[1] >= GPU_RINGS)
		return false;
	s = (struct gpu_sample){
		.gpu = (uint16_t)v[0], .ring = (uint8_t)v[1], .real_us = v[2], .value = v[3], .polled = v[4] != 0
	};
	take->sample(take->arg, &s);
	return true;
}

static bool take_meter(const int64_t *v, int n, const struct record_devices_take *take)
{
	struct meter_sample s;

	if (n != 4 || v[0] < 0 || v[0] >= METER_MAX_DEVICES || v[1] < 0 || v[1] >= METER_MAX_CHANNELS)
		return false;
	s = (struct meter_sample){
		.device = (uint8_t)v[0], .channel = (uint8_t)v[1], .real_ns = v[2], .power_uw = v[3]
	};
	take->meter(take->arg, &s);
	return true;
}

static bool take_next(const int64_t *v, int n, struct record_devices *d)
{
	if (n != 4)
		return false;
	d->rows = (uint64_t)v[0];
	d->samples = (uint64_t)v[1];
	d->meters = (uint64_t)v[2];
	d->missed += (uint64_t)v[3];
	return true;
}

static bool take_line(const char *p, const char *end, struct record_devices *d, const struct record_devices_take *take)
{
	size_t word = 0, len = (size_t)(end - p);
	int64_t v[NUMBERS_MAX];
	int n;

	while (word < len && p[word] != ' ')
		word++;
	n = read_numbers(p + word, end, v);
	if (word == 3 && memcmp(p, "row", 3) == 0)
		return take_row(v, n, take);
	if (word == 6 && memcmp(p, "sample", 6) == 0)
		return take_sample(v, n, take);
	if (word == 5 && memcmp(p, "meter", 5) == 0)
		return take_meter(v, n, take);
	return word == 4 && memcmp(p, "next", 4) == 0 && take_next(v, n, d);
}

/* Every line ends with LF. strtoll(3) stops there, because a number begins with a digit or a sign: nothing behind the
 * text is read. */
int record_devices_parse_samples(const char *text, size_t size, struct record_devices *d,
				 const struct record_devices_take *take, struct err *err)
{
	const char *p = text, *stop = text + size;

	while (p < stop) {
		const char *end = memchr(p, '\n', (size_t)(stop - p));

		if (!end || !take_line(p, end, d, take))
			return malformed(err, "line of samples that can be read");
		p = end + 1;
	}
	return 0;
}

int record_devices_ask(struct agent *a, uint64_t every_ns, struct record_devices *ret, struct err *err)
{
	struct buf body = { 0 };
	char path[64];
	int rc;

	snprintf(path, sizeof(path), every_ns ? "/v1/devices?every=%" PRIu64 "us" : "/v1/devices", every_ns / 1000);
	rc = agent_get(a, path, NULL, &body, err);
	if (!rc)
		rc = record_devices_parse((const char *)body.data, body.len, ret, err);
	if (!rc && !agent_is_trusted(a))
		ret->gpu_library[0] = '\0';
	buf_free(&body);
	if (rc != -EPROTO)
		return rc;
	*ret = (struct record_devices){ 0 };
	return 0;
}

int record_devices_poll(struct agent *a, uint64_t every_ns, struct record_devices *d,
			const struct record_devices_take *take, struct err *err)
{
	struct buf body = { 0 };
	char path[200];
	int rc;

	snprintf(path, sizeof(path),
		 "/v1/devices/samples?rows=%" PRIu64 "&samples=%" PRIu64 "&meters=%" PRIu64 "&every=%" PRIu64 "us",
		 d->rows, d->samples, d->meters, every_ns / 1000);
	rc = agent_get(a, path, "text/plain", &body, err);
	if (!rc)
		rc = record_devices_parse_samples((const char *)body.data, body.len, d, take, err);
	buf_free(&body);
	return rc;
}
