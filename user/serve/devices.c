/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/devices: GPUs and meter channels, and the present positions in their rings.
 * GET /v1/devices/samples: the entries since a position, one per line:
 *
 *   row GPU REAL_NS PRESENT VALUE...    values of the fields whose bit (enum gpu_field) is set, in that order
 *   sample GPU RING REAL_US VALUE POLLED
 *   meter DEVICE CHANNEL REAL_NS MICROWATT
 *   next ROWS SAMPLES METERS MISSED     the last line: where to continue
 *
 * Full rows are made only while recorders ask for them. They end LEASE_S seconds after the last request, so a
 * killed recorder costs nothing. */
#include <inttypes.h>
#include <string.h>
#include "base/clock.h"
#include "base/parse.h"
#include "routes.h"

#define LEASE_S 5
#define ANSWER_BYTES ((size_t)1 << 20) /* limit of one answer; the next request continues */
#define EVERY_MIN_NS (10 * NS_PER_MS)
#define EVERY_MAX_NS (60 * NS_PER_S)

static void lease_over(evutil_socket_t fd, short what, void *arg)
{
	struct serve *s = arg;

	s->o.devices->record(s->o.devices->arg, 0);
	s->recording_ns = 0;
}

void serve_devices_end(struct serve *s)
{
	if (s->recording_ns)
		lease_over(-1, 0, s);
	if (s->recording)
		event_free(s->recording);
	s->recording = NULL;
}

/* With several recorders the pace of the fastest holds for all. */
static void lease(struct serve *s, uint64_t every_ns)
{
	const struct timeval until = { .tv_sec = LEASE_S };

	if (!s->recording)
		s->recording = evtimer_new(loop_base(s->loop), lease_over, s);
	if (!s->recording)
		return;
	if (!s->recording_ns || every_ns < s->recording_ns) {
		if (s->recording_ns)
			s->o.devices->record(s->o.devices->arg, 0);
		s->recording_ns = every_ns;
		s->o.devices->record(s->o.devices->arg, every_ns);
	}
	event_add(s->recording, &until);
}

static void add_gpu(struct json *j, const struct gpu_desc *d)
{
	json_object_begin(j);
	json_key_u64(j, "gpu", d->gpu);
	json_key_str(j, "vendor", d->vendor);
	json_key_str(j, "name", d->name);
	json_key_str(j, "uuid", d->uuid);
	json_key_str(j, "pci", d->pci);
	json_key_str(j, "driver_version", d->driver_version);
	json_key_str(j, "nvml_version", d->nvml_version);
	json_key_u64(j, "cuda_version", (uint64_t)(d->cuda_version > 0 ? d->cuda_version : 0));
	json_key_u64(j, "cuda_major", (uint64_t)(d->cuda_major > 0 ? d->cuda_major : 0));
	json_key_u64(j, "cuda_minor", (uint64_t)(d->cuda_minor > 0 ? d->cuda_minor : 0));
	json_key_u64(j, "fields", d->fields);
	json_key_u64(j, "rings", d->rings);
	json_key(j, "mig");
	json_bool(j, d->mig);
	json_object_end(j);
}

static void add_channel(struct json *j, const struct meter_desc *d)
{
	json_object_begin(j);
	json_key_u64(j, "device", d->device);
	json_key_u64(j, "channel", d->channel);
	json_key_str(j, "type", d->type);
	json_key_str(j, "label", d->label);
	json_key_u64(j, "pace_ns", d->pace_ns);
	json_object_end(j);
}

static void answer_list(struct serve *s, struct http_request *r)
{
	const struct serve_devices *d = s->o.devices;
	struct serve_devices_at at = { 0 };
	struct meter_desc channel;
	struct gpu_desc gpu;
	struct json j;

	buf_reset(&s->out);
	json_init(&j, &s->out);
	json_object_begin(&j);
	json_key(&j, "gpus");
	json_array_begin(&j);
	for (unsigned i = 0, n = d ? d->gpus(d->arg) : 0; i < n; i++) {
		d->gpu(d->arg, i, &gpu);
		add_gpu(&j, &gpu);
	}
	json_array_end(&j);
	json_key(&j, "channels");
	json_array_begin(&j);
	for (unsigned i = 0, n = d ? d->channels(d->arg) : 0; i < n; i++) {
		d->channel(d->arg, i, &channel);
		add_channel(&j, &channel);
	}
	json_array_end(&j);
	json_key_u64(&j, "silent_meters", d ? d->silent_meters(d->arg) : 0);
	if (d)
		d->now(d->arg, &at);
	if (d && d->gpu_library)
		json_key_str(&j, "gpu_library", d->gpu_library);
	json_key_u64(&j, "rows", at.at[DEVICES_ROWS]);
	json_key_u64(&j, "samples", at.at[DEVICES_SAMPLES]);
	json_key_u64(&j, "meters", at.at[DEVICES_METERS]);
	json_object_end(&j);
	buf_add_char(&s->out, '\n');
	http_reply(r, 200, "application/json", NULL, &s->out);
}

static void add_rows(const struct serve_devices *d, struct serve_devices_at *at, struct buf *out)
{
	struct gpu_row row;

	while (out->len < ANSWER_BYTES && d->next_row(d->arg, at, &row)) {
		buf_printf(out, "row %u %" PRId64 " %" PRIu32, row.gpu, row.real_ns, row.present);
		for (unsigned f = 0; f < GPU_FIELDS; f++)
			if (row.present & GPU_BIT(f))
				buf_printf(out, " %" PRId64, row.v[f]);
		buf_add_char(out, '\n');
	}
}

static void answer_samples(struct serve *s, struct http_request *r, struct serve_devices_at *at)
{
	const struct serve_devices *d = s->o.devices;
	struct gpu_sample sample;
	struct meter_sample meter;

	buf_reset(&s->out);
	if (d) {
		add_rows(d, at, &s->out);
		while (s->out.len < ANSWER_BYTES && d->next_sample(d->arg, at, &sample))
			buf_printf(&s->out, "sample %u %u %" PRId64 " %" PRId64 " %d\n", sample.gpu, sample.ring,
				   sample.real_us, sample.value, sample.polled);
		while (s->out.len < ANSWER_BYTES && d->next_meter(d->arg, at, &meter))
			buf_printf(&s->out, "meter %u %u %" PRId64 " %" PRId64 "\n", meter.device, meter.channel,
				   meter.real_ns, meter.power_uw);
	}
	buf_printf(&s->out, "next %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", at->at[DEVICES_ROWS],
		   at->at[DEVICES_SAMPLES], at->at[DEVICES_METERS], at->missed);
	http_reply(r, 200, "text/plain; charset=utf-8", NULL, &s->out);
}

/* False: the request is already answered. */
static bool read_query(struct http_request *r, struct serve_devices_at *at, uint64_t *every_ns)
{
	static const char *const names[DEVICES_RINGS] = { "rows", "samples", "meters" };

	for (unsigned i = 0; i < r->n_args; i++) {
		const char *value = r->values[i] ? r->values[i] : "";
		unsigned k = 0;

		while (k < DEVICES_RINGS && strcmp(r->names[i], names[k]) != 0)
			k++;
		if (k < DEVICES_RINGS && parse_u64(value, &at->at[k]) == 0)
			continue;
		if (strcmp(r->names[i], "every") == 0 && parse_duration_ns(value, every_ns) == 0 &&
		    *every_ns >= EVERY_MIN_NS && *every_ns <= EVERY_MAX_NS)
			continue;
		http_error(
			r, 400, NULL,
			"query: this request knows rows, samples and meters, which are numbers, and every, from 10ms to 60s");
		return false;
	}
	return true;
}

void serve_get_devices(struct serve *s, struct http_request *r, const char *rest)
{
	struct serve_devices_at at = { 0 };
	uint64_t every_ns = 0;

	if (*rest && strcmp(rest, "/samples") != 0) {
		http_error(r, 404, NULL, "path: there is nothing; try /v1/devices or /v1/devices/samples");
		return;
	}
	if (!read_query(r, &at, &every_ns))
		return;
	if (every_ns && s->o.devices)
		lease(s, every_ns);
	if (*rest)
		answer_samples(s, r, &at);
	else
		answer_list(s, r);
}
