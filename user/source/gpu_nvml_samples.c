// SPDX-License-Identifier: Apache-2.0
/* What NVML keeps in rings: samples of power and utilization, and the use of each process. Stamps are the
 * driver's, and come out of order on some cards; counts and values were seen to be garbage. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../base/clock.h"
#include "gpu_internal.h"
#include "nvml.h"

#define ALL_PROCESSES 1024         /* samples of one answer */

/* Every NVML unit begins with its handle. */
static nvml_device handle_of(const struct gpu_unit *u)
{
	return *(nvml_device *)u->device;
}

static int by_stamp(const void *a, const void *b)
{
	const struct gpu_sample *x = a, *y = b;

	return (x->real_us > y->real_us) - (x->real_us < y->real_us);
}

static bool believable(enum gpu_ring ring, int64_t v)
{
	return v >= 0 && v <= (ring == GPU_RING_POWER ? 10000000 : 100);
}

/* Strictly newer ones in order; a stamp that was there before is not there again. */
static unsigned take(struct gpu_unit *u, enum gpu_ring ring, const struct nvml_sample *raw, uint32_t n, uint32_t type,
		     struct gpu_sample *ret)
{
	unsigned kept = 0, unique = 0;

	for (uint32_t i = 0; i < n; i++) {
		int64_t v;

		if (raw[i].stamp_us > INT64_MAX || (int64_t)raw[i].stamp_us <= u->ring_us[ring] || !nvml_number(type, &raw[i].value, &v) ||
		    !believable(ring, v))
			continue;
		ret[kept++] = (struct gpu_sample){ .gpu = u->desc.gpu, .ring = (uint8_t)ring, .real_us = (int64_t)raw[i].stamp_us,
						   .value = v };
	}
	qsort(ret, kept, sizeof(*ret), by_stamp);
	for (unsigned i = 0; i < kept; i++)
		if (!unique || ret[i].real_us > ret[unique - 1].real_us)
			ret[unique++] = ret[i];
	if (unique)
		u->ring_us[ring] = ret[unique - 1].real_us;
	return unique;
}

static int ask_samples(const struct nvml *n, struct gpu_unit *u, enum gpu_ring ring, struct nvml_sample **ret, uint32_t *ret_n,
		       uint32_t *ret_type)
{
	static const uint32_t types[GPU_RINGS] = { NVML_SAMPLES_POWER, NVML_SAMPLES_GPU, NVML_SAMPLES_MEM };
	unsigned long long since = (unsigned long long)u->ring_us[ring];
	struct nvml_sample *raw;
	uint32_t count = 0;
	int code;

	if (!n->samples)
		return NVML_NO_FUNCTION;
	code = n->samples(handle_of(u), types[ring], since, ret_type, &count, NULL);
	if (code != NVML_OK && code != NVML_TOO_SMALL)
		return code;
	if (!count)
		return NVML_NOT_FOUND;
	if (count > GPU_MAX_SAMPLES)
		count = GPU_MAX_SAMPLES;
	raw = calloc(count, sizeof(*raw));
	if (!raw)
		return NVML_UNKNOWN;
	*ret_n = count;
	code = n->samples(handle_of(u), types[ring], since, ret_type, ret_n, raw);
	if (*ret_n > count)
		*ret_n = count;
	*ret = raw;
	return code;
}

int gpu_nvml_samples(struct gpu_unit *u, enum gpu_ring ring, struct gpu_sample *ret, unsigned max)
{
	struct nvml_sample *raw = NULL;
	uint32_t n = 0, type = NVML_VALUE_U32;
	int code, rc;

	pthread_rwlock_rdlock(&u->g->nvml_use);
	code = ask_samples(u->g->nvml, u, ring, &raw, &n, &type);
	pthread_rwlock_unlock(&u->g->nvml_use);
	rc = nvml_errno(code);
	if (!rc)
		rc = (int)take(u, ring, raw, n < max ? n : max, type, ret);
	free(raw);
	return rc;
}

/* The newest sample of each process. */
static void put_process(struct gpu_process *ret, uint64_t *stamps, unsigned *n, unsigned max, struct gpu_process p, uint64_t stamp_us)
{
	unsigned i = 0;

	if (!p.pid || p.sm > 100)
		return;
	while (i < *n && ret[i].pid != p.pid)
		i++;
	if (i == max || (i < *n && stamps[i] >= stamp_us))
		return;
	ret[i] = p;
	stamps[i] = stamp_us;
	*n += i == *n;
}

static bool is_news(const struct gpu_unit *u, uint64_t stamp_us, uint64_t now_us)
{
	return stamp_us > u->process_us && stamp_us <= now_us + 10 * 1000000;
}

static int by_sample(struct gpu_unit *u, struct gpu_process *ret, unsigned max)
{
	const struct nvml *n = u->g->nvml;
	uint64_t stamps[GPU_MAX_PROCESSES], newest = u->process_us, now_us = (uint64_t)(clock_real_ns() / 1000);
	struct nvml_process_use *list;
	uint32_t count = ALL_PROCESSES;
	unsigned found = 0;
	int code;

	if (!n->process_use)
		return NVML_NO_FUNCTION;
	list = calloc(count, sizeof(*list));
	if (!list)
		return NVML_UNKNOWN;
	code = n->process_use(handle_of(u), list, &count, u->process_us);
	for (uint32_t i = 0; code == NVML_OK && i < count && i < ALL_PROCESSES; i++) {
		if (!is_news(u, list[i].stamp_us, now_us))
			continue;
		put_process(ret, stamps, &found, max, (struct gpu_process){ list[i].pid, list[i].sm }, list[i].stamp_us);
		newest = list[i].stamp_us > newest ? list[i].stamp_us : newest;
	}
	u->process_us = newest;
	free(list);
	return code == NVML_OK ? -(int)found : code;
}

/* Blackwell has this one instead. */
static int by_info(struct gpu_unit *u, struct gpu_process *ret, unsigned max)
{
	const struct nvml *n = u->g->nvml;
	uint64_t stamps[GPU_MAX_PROCESSES], newest = u->process_us, now_us = (uint64_t)(clock_real_ns() / 1000);
	struct nvml_processes_v1 ask = { NVML_PROCESSES_V1, ALL_PROCESSES, u->process_us, NULL };
	unsigned found = 0;
	int code;

	if (!n->processes_use)
		return NVML_NO_FUNCTION;
	ask.list = calloc(ALL_PROCESSES, sizeof(*ask.list));
	if (!ask.list)
		return NVML_UNKNOWN;
	code = n->processes_use(handle_of(u), &ask);
	for (uint32_t i = 0; code == NVML_OK && i < ask.count && i < ALL_PROCESSES; i++) {
		const struct nvml_process_use_v1 *p = &ask.list[i];

		if (!is_news(u, p->stamp_us, now_us))
			continue;
		put_process(ret, stamps, &found, max, (struct gpu_process){ p->pid, p->sm }, p->stamp_us);
		newest = p->stamp_us > newest ? p->stamp_us : newest;
	}
	u->process_us = newest;
	free(ask.list);
	return code == NVML_OK ? -(int)found : code;
}

/* Who runs on it, each alike: what is left where nobody tells how much. */
static int by_list(struct gpu_unit *u, struct gpu_process *ret, unsigned max)
{
	const struct nvml *n = u->g->nvml;
	int (*const calls[])(nvml_device, uint32_t *, struct nvml_process *) = { n->compute, n->graphics };
	uint64_t stamps[GPU_MAX_PROCESSES];
	unsigned found = 0;
	int code = NVML_NO_FUNCTION;

	for (unsigned k = 0; k < 2; k++) {
		struct nvml_process list[GPU_MAX_PROCESSES];
		uint32_t count = GPU_MAX_PROCESSES;
		int one;

		if (!calls[k])
			continue;
		memset(list, 0, sizeof(list));
		one = calls[k](handle_of(u), &count, list);
		if (one != NVML_OK)
			continue;
		code = NVML_OK;
		for (uint32_t i = 0; i < count && i < GPU_MAX_PROCESSES; i++)
			put_process(ret, stamps, &found, max, (struct gpu_process){ list[i].pid, 100 }, 1);
	}
	return code == NVML_OK ? -(int)found : code;
}

/* Number of processes, or -errno. Internally numbers are negative, for codes are not. */
int gpu_nvml_processes(struct gpu_unit *u, struct gpu_process *ret, unsigned max)
{
	int got = NVML_NOT_SUPPORTED;

	if (max > GPU_MAX_PROCESSES)
		max = GPU_MAX_PROCESSES;
	pthread_rwlock_rdlock(&u->g->nvml_use);
	if (!u->no_process_use && !u->desc.mig) {
		got = by_sample(u, ret, max);
		if (got > 0 && nvml_errno(got) == -EOPNOTSUPP)
			got = by_info(u, ret, max);
		u->no_process_use = got > 0 && nvml_errno(got) == -EOPNOTSUPP;
	}
	if (got > 0 && nvml_errno(got) == -EOPNOTSUPP)
		got = by_list(u, ret, max);
	pthread_rwlock_unlock(&u->g->nvml_use);
	return got > 0 ? nvml_errno(got) == -EAGAIN ? 0 : nvml_errno(got) : -got;
}
