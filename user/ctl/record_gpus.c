/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPUs are recorded: one directory each, named after the benchmark. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "record.h"

/* By UUID, PCI address or gpu-N; -1 = there is none. */
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

static int add(struct record_session *s, int gpu, struct err *err)
{
	struct record_out *out = &s->out[s->n_out];

	for (unsigned i = 0; i < s->n_out; i++)
		if (s->out[i].gpu == gpu)
			return err_set(err, -EINVAL, "--gpu: the same GPU twice; name it once");
	*out = (struct record_out){ .gpu = gpu };
	if (gpu >= 0) {
		snprintf(out->id, sizeof(out->id), "%s", id_of(&s->devices.gpu[gpu]));
		snprintf(out->domain, sizeof(out->domain), "gpu-%u", s->devices.gpu[gpu].gpu);
	}
	s->n_out++;
	return 0;
}

static int choose_named(struct record_session *s, const char *text, struct err *err)
{
	char copy[GPU_MAX * 100], *save = NULL;
	int code = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *word = strtok_r(copy, ", ", &save); word && !code; word = strtok_r(NULL, ", ", &save)) {
		int gpu = find_gpu(&s->devices, word);

		code = gpu < 0 ? no_such_gpu(&s->devices, word, err) : add(s, gpu, err);
	}
	return code || s->n_out ? code : err_set(err, -EINVAL, "--gpu: names nothing; write a UUID, or none");
}

/* A job that was given one GPU of several means that one. */
static const char *visible(const struct record_devices *d)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");

	return list && *list && !strchr(list, ',') && find_gpu(d, list) >= 0 ? list : NULL;
}

int record_gpus_choose(struct record_session *s, struct err *err)
{
	const char *text = s->o->gpus ? s->o->gpus : s->devices.n_gpus > 1 ? visible(&s->devices) : NULL;
	int code = 0;

	s->n_out = 0;
	if (text && strcmp(text, "none") != 0)
		code = choose_named(s, text, err);
	else if (!text && s->devices.n_gpus > 1)
		code = err_set(
			err, -EINVAL,
			"%u GPUs: a repetition is of one; name it with --gpu UUID, several with commas, or --gpu none "
			"(joulectl status lists them)",
			s->devices.n_gpus);
	else
		code = add(s, text || !s->devices.n_gpus ? -1 : 0, err);
	for (unsigned i = 0; i < s->n_out && !code; i++)
		if (s->n_out == 1)
			snprintf(s->out[i].benchmark, sizeof(s->out[i].benchmark), "%s", s->o->benchmark);
		else
			snprintf(s->out[i].benchmark, sizeof(s->out[i].benchmark), "%.200s-gpu%u", s->o->benchmark,
				 s->devices.gpu[s->out[i].gpu].gpu);
	return code;
}

/* Another agent may have begun, or a GPU gone, between two repetitions. */
int record_gpus_still_there(struct record_session *s, struct err *err)
{
	for (unsigned i = 0; i < s->n_out; i++) {
		struct record_out *out = &s->out[i];

		if (out->gpu < 0)
			continue;
		out->gpu = find_gpu(&s->devices, out->id);
		if (out->gpu < 0) {
			out->gpu = 0;
			return err_set(err, -ENODEV, "GPU %.80s: the agent knows it no more; see joulectl status",
				       out->id);
		}
		snprintf(out->domain, sizeof(out->domain), "gpu-%u", s->devices.gpu[out->gpu].gpu);
	}
	return 0;
}

int record_gpus_limit(struct record_session *s, struct err *err)
{
	const char *library = s->devices.gpu_library, *uuids[RECORD_OUTS];
	unsigned n = 0;

	for (unsigned i = 0; i < s->n_out; i++)
		if (s->out[i].gpu >= 0 && strcmp(s->devices.gpu[s->out[i].gpu].vendor, "nvidia") == 0)
			uuids[n++] = s->devices.gpu[s->out[i].gpu].uuid;
	if (!n)
		return err_set(
			err, -ENODEV,
			"limits: there is no NVIDIA GPU here; leave --power-limit, --app-clocks and --sweep out");
	return record_limits_open(&(struct record_limits_wish){ *library ? library : NULL, s->o->root, uuids, n },
				  &s->limits, err);
}
