/* SPDX-License-Identifier: Apache-2.0 */
#include "outs.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"

#define SILENT_US 5000000 /* after this time without a sample a ring counts as empty for good */
#define DRAIN_NS (2500 * NS_PER_MS) /* longer than 1.5 s, the pace at which the agent reads the driver's rings */

/* The choice of GPUs. Each one is recorded into a directory of its own, named after the benchmark. */

/* Finds a GPU by UUID, PCI address or gpu-N. Returns its index; -1 = there is none. */
static int find_gpu(const struct record_devices *d, const char *name)
{
	char number[16];

	for (unsigned i = 0; i < d->n_gpus; i++) {
		snprintf(number, sizeof(number), "gpu-%u", d->gpu[i].gpu);
		if (strcasecmp(name, d->gpu[i].uuid) == 0 || strcasecmp(name, d->gpu[i].pci) == 0 ||
		    strcmp(name, number) == 0)
			return (int)i;
	}
	return -1;
}

static const char *id_of(const struct gpu_desc *d)
{
	return d->uuid[0] ? d->uuid : d->pci;
}

static int no_such_gpu(const struct record_devices *d, const char *name, struct err *err)
{
	char list[300] = "";
	size_t n = 0;

	for (unsigned i = 0; i < d->n_gpus && n < sizeof(list); i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "", id_of(&d->gpu[i]));
	return err_set(err, -ENODEV, "--gpu %.60s: %s%s", name,
		       d->n_gpus ? "no such GPU; there is " : "the agent knows no GPU; see jouled doctor", list);
}

static int add(struct record_outs *o, int gpu, struct err *err)
{
	struct record_out *out = &o->out[o->n];

	for (unsigned i = 0; i < o->n; i++)
		if (o->out[i].gpu == gpu)
			return err_set(err, -EINVAL, "--gpu: the same GPU twice; name it once");
	*out = (struct record_out){ .gpu = gpu };
	if (gpu >= 0) {
		snprintf(out->id, sizeof(out->id), "%s", id_of(&o->devices.gpu[gpu]));
		snprintf(out->domain, sizeof(out->domain), "gpu-%u", o->devices.gpu[gpu].gpu);
	}
	o->n++;
	return 0;
}

static int choose_named(struct record_outs *o, const char *text, struct err *err)
{
	char copy[GPU_MAX * 100], *save = NULL;
	int rc = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *word = strtok_r(copy, ", ", &save); word && !rc; word = strtok_r(NULL, ", ", &save)) {
		int gpu = find_gpu(&o->devices, word);

		rc = gpu < 0 ? no_such_gpu(&o->devices, word, err) : add(o, gpu, err);
	}
	return rc || o->n ? rc : err_set(err, -EINVAL, "--gpu: names nothing; write a UUID, or none");
}

/* Returns the GPU that CUDA_VISIBLE_DEVICES names: a job that was given one GPU of several records that one. NULL where it
 * names none, or more than one. */
static const char *visible(const struct record_devices *d)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");

	return list && *list && !strchr(list, ',') && find_gpu(d, list) >= 0 ? list : NULL;
}

int record_outs_choose(struct record_outs *o, const struct record_plan *plan, struct err *err)
{
	const char *text = plan->gpus ? plan->gpus : o->devices.n_gpus > 1 ? visible(&o->devices) : NULL;
	int rc = 0;

	o->n = 0;
	if (text && strcmp(text, "none") != 0)
		rc = choose_named(o, text, err);
	else if (!text && o->devices.n_gpus > 1)
		rc = err_set(
			err, -EINVAL,
			"%u GPUs: a repetition is of one; name it with --gpu UUID, several with commas, or --gpu none "
			"(joulectl status lists them)",
			o->devices.n_gpus);
	else
		rc = add(o, text || !o->devices.n_gpus ? -1 : 0, err);
	for (unsigned i = 0; i < o->n && !rc; i++)
		if (o->n == 1)
			snprintf(o->out[i].benchmark, sizeof(o->out[i].benchmark), "%s", plan->benchmark);
		else
			snprintf(o->out[i].benchmark, sizeof(o->out[i].benchmark), "%.200s-gpu%u", plan->benchmark,
				 o->devices.gpu[o->out[i].gpu].gpu);
	return rc;
}

/* Finds the chosen GPUs again, because the agent may have been restarted, or a GPU removed, since the last repetition. */
static int still_there(struct record_outs *o, struct err *err)
{
	for (unsigned i = 0; i < o->n; i++) {
		struct record_out *out = &o->out[i];

		if (out->gpu < 0)
			continue;
		out->gpu = find_gpu(&o->devices, out->id);
		if (out->gpu < 0) {
			out->gpu = 0;
			return err_set(err, -ENODEV, "GPU %.80s: the agent no longer knows it; see joulectl status",
				       out->id);
		}
		snprintf(out->domain, sizeof(out->domain), "gpu-%u", o->devices.gpu[out->gpu].gpu);
	}
	return 0;
}

void record_outs_say(const struct record_outs *o)
{
	for (unsigned i = 0; i < o->n; i++) {
		const struct record_out *out = &o->out[i];

		if (out->gpu < 0)
			dprintf(STDERR_FILENO,
				"joulectl: no GPU is recorded (%s): there is no gpu-power.csv, and the original reader leaves out what "
				"has none; joulectl report reads it\n",
				o->devices.n_gpus ? "--gpu none" : "the agent knows none; see jouled doctor");
		else if (!(o->devices.gpu[out->gpu].fields & GPU_BIT(GPU_POWER)))
			dprintf(STDERR_FILENO,
				"joulectl: GPU %s refuses to tell its power: there is no gpu-power.csv, and the original reader leaves "
				"out what has none\n",
				out->id);
	}
}

int record_outs_limit(const struct record_outs *o, const char *root, struct record_limits **ret, struct err *err)
{
	const char *library = o->devices.gpu_library, *uuids[RECORD_OUTS];
	unsigned n = 0;

	for (unsigned i = 0; i < o->n; i++)
		if (o->out[i].gpu >= 0 && strcmp(o->devices.gpu[o->out[i].gpu].vendor, "nvidia") == 0)
			uuids[n++] = o->devices.gpu[o->out[i].gpu].uuid;
	if (!n)
		return err_set(
			err, -ENODEV,
			"limits: there is no NVIDIA GPU here; leave --power-limit, --app-clocks and --sweep out");
	return record_limits_open(&(struct record_limits_wish){ *library ? library : NULL, root, uuids, n }, ret, err);
}

/* The directories of a repetition or a baseline. */

static int open_one(const struct record_outs *o, struct record_out *out, const struct record_job *job, bool baseline,
		    struct err *err)
{
	struct recorder_place place = { .root = job->plan->root,
					.experiment = job->plan->experiment,
					.benchmark = out->benchmark };
	char name[32] = "_baseline";
	int rc;

	place.run = record_run_name(job);
	if (baseline) {
		if (o->n > 1)
			snprintf(name, sizeof(name), "_baseline-gpu%u", o->devices.gpu[out->gpu].gpu);
		place.benchmark = NULL;
		place.run = name;
	}
	rc = recorder_open(&place, &out->rec, err);
	if (rc)
		return rc;
	out->limit_mw = -1;
	memset(out->polled, 0, sizeof(out->polled));
	memset(out->last_sample_us, 0, sizeof(out->last_sample_us));
	out->last_row_ns = out->last_power_ns = 0;
	out->n_held = 0;
	out->silent = false;
	if (out->gpu >= 0)
		recorder_gpu(out->rec, &o->devices.gpu[out->gpu]);
	if (o->devices.n_channels)
		recorder_meters(out->rec, o->devices.channel, o->devices.n_channels, job->plan->external_uw);
	return 0;
}

int record_outs_open(struct record_outs *o, const struct record_job *job, struct agent *a, bool baseline,
		     struct err *err)
{
	int rc = record_devices_ask(a, job->plan->gpu_every_ns, &o->devices, err);

	if (!rc)
		rc = still_there(o, err);
	o->last_meter_ns = 0;
	for (unsigned i = 0; i < o->n && !rc; i++)
		rc = open_one(o, &o->out[i], job, baseline, err);
	return rc;
}

void record_outs_discard(struct record_outs *o)
{
	for (unsigned i = 0; i < o->n; i++) {
		recorder_discard(o->out[i].rec);
		o->out[i].rec = NULL;
	}
}

void record_outs_event(struct record_outs *o, int64_t real_ns, const char *name, int64_t data)
{
	for (unsigned i = 0; i < o->n; i++)
		recorder_event(o->out[i].rec, real_ns, name, data);
}

int record_outs_flush(struct record_outs *o, struct err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < o->n && !rc; i++)
		rc = recorder_flush(o->out[i].rec, err);
	return rc;
}

/* Rows and samples of devices go to the outs that they belong to. */

/* Argument of the callbacks. */
struct taking {
	struct record_outs *outs;
	enum record_samples from;
};

static struct record_out *out_of(struct record_outs *o, unsigned gpu)
{
	for (unsigned i = 0; i < o->n; i++)
		if (o->out[i].gpu >= 0 && o->devices.gpu[o->out[i].gpu].gpu == gpu)
			return &o->out[i];
	return NULL;
}

/* Makes the samples of power from the rows that are held, because the ring of the driver stays empty. Readers leave
 * out a repetition without these samples. */
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
	const struct taking *t = arg;
	struct record_out *o = out_of(t->outs, row->gpu);

	if (!o)
		return;
	recorder_gpu_row(o->rec, row);
	o->last_row_ns = row->real_ns;
	if (row->present & GPU_BIT(GPU_POWER)) {
		o->power_mw = row->v[GPU_POWER];
		o->last_power_ns = row->real_ns;
		if (t->from == SAMPLES_GPU && !o->last_sample_us[GPU_RING_POWER])
			hold(o, row->real_ns / 1000, row->v[GPU_POWER]);
	}
	if (o->limit_mw < 0 && (row->present & GPU_BIT(GPU_POWER_LIMIT)))
		o->limit_mw = row->v[GPU_POWER_LIMIT];
}

static void take_sample(void *arg, const struct gpu_sample *sample)
{
	const struct taking *t = arg;
	struct record_out *o = out_of(t->outs, sample->gpu);

	if (!o || (sample->ring == GPU_RING_POWER && (t->from != SAMPLES_GPU || o->silent)))
		return;
	recorder_sample(o->rec, (enum gpu_ring)sample->ring, sample->real_us, sample->value);
	o->polled[sample->ring] |= sample->polled;
	o->last_sample_us[sample->ring] = sample->real_us;
}

static void take_meter(void *arg, const struct meter_sample *sample)
{
	struct record_outs *o = ((const struct taking *)arg)->outs;

	o->last_meter_ns = sample->real_ns;
	for (unsigned i = 0; i < o->n; i++)
		recorder_meter_sample(o->out[i].rec, sample);
}

int record_outs_take(struct record_outs *o, const struct record_plan *plan, struct agent *a, struct err *err)
{
	struct taking taking = { o, plan->samples_from };
	const struct record_devices_take take = { take_row, take_sample, take_meter, &taking };
	int rc = 0;

	if (o->devices.n_gpus || o->devices.n_channels)
		rc = record_devices_poll(a, plan->gpu_every_ns, &o->devices, &take, err);
	if (rc && rc != -EPROTO)
		return rc;
	return record_outs_flush(o, err);
}

/* Is the first sample of power still to come? A command may end before the driver's ring is read for the first time. */
static bool power_awaited(const struct record_out *out, enum record_samples from)
{
	return from == SAMPLES_GPU && !out->silent && !out->last_sample_us[GPU_RING_POWER];
}

/* Has every series passed the end? Other rings without a sample are not waited for: they may never have one. */
static bool all_here(const struct record_outs *o, enum record_samples from, int64_t end_ns)
{
	if (o->last_meter_ns && o->last_meter_ns < end_ns)
		return false;
	for (unsigned i = 0; i < o->n; i++) {
		const struct record_out *out = &o->out[i];

		if (out->gpu < 0)
			continue;
		if (out->last_row_ns < end_ns || power_awaited(out, from))
			return false;
		for (unsigned r = 0; r < GPU_RINGS; r++)
			if (out->last_sample_us[r] && out->last_sample_us[r] < end_ns / 1000)
				return false;
	}
	return true;
}

int record_outs_drain(struct record_outs *o, const struct record_plan *plan, struct agent *a, int64_t end_ns,
		      struct err *err)
{
	uint64_t until = clock_mono_ns() + DRAIN_NS;
	int rc = 0;

	while (!rc && !all_here(o, plan->samples_from, end_ns) && clock_mono_ns() < until) {
		nanosleep(&(struct timespec){ .tv_nsec = 100 * (long)NS_PER_MS }, NULL);
		rc = record_outs_take(o, plan, a, err);
	}
	return rc;
}

void record_outs_complete(struct record_outs *o, const struct record_plan *plan)
{
	for (unsigned i = 0; i < o->n; i++)
		if (o->out[i].gpu >= 0 && power_awaited(&o->out[i], plan->samples_from))
			make_samples(&o->out[i]);
}
