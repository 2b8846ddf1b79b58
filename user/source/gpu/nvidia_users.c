// SPDX-License-Identifier: Apache-2.0
/* The use of each process as NVML tells it. Counts and values were seen to be garbage. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "nvidia.h"

#define ALL_PROCESSES 1024 /* samples of one answer */
#define LONG_ENTRY 32 /* of a list of processes by some drivers */
#define IDLE_US 1200000ull /* a GPU without a newer sample for so long is idle */
#define AHEAD_US 10000000ull /* a stamp so far in the future is wrong, or of a clock that was set back */

static struct gpu_process of_percent(uint32_t pid, uint32_t percent)
{
	return (struct gpu_process){ pid, percent <= 100 ? percent * 10000 : UINT32_MAX };
}

/* Processes found so far, each with its newest sample. */
struct users {
	struct gpu_process *list; /* room for max */
	uint64_t stamp_us[GPU_MAX_PROCESSES];
	unsigned n, max;
};

static void put_process(struct users *found, struct gpu_process p, uint64_t stamp_us)
{
	unsigned i = 0;

	if (!p.pid || p.ppm > 1000000)
		return;
	while (i < found->n && found->list[i].pid != p.pid)
		i++;
	if (i == found->max || (i < found->n && found->stamp_us[i] >= stamp_us))
		return;
	found->list[i] = p;
	found->stamp_us[i] = stamp_us;
	found->n += i == found->n;
}

static bool is_news(const struct gpu_unit *u, uint64_t stamp_us, uint64_t now_us)
{
	return stamp_us > u->process_us && stamp_us <= now_us + AHEAD_US;
}

static int by_sample(struct gpu_unit *u, struct users *found)
{
	const struct nvml *n = u->g->nvml;
	uint64_t newest = u->process_us, now_us = (uint64_t)(clock_real_ns() / 1000);
	struct nvml_process_use *list;
	uint32_t count = ALL_PROCESSES;
	int code;

	if (!n->process_use)
		return NVML_NO_FUNCTION;
	list = calloc(count, sizeof(*list));
	if (!list)
		return NVML_UNKNOWN;
	code = n->process_use(nvml_unit_of(u)->handle, list, &count, u->process_us);
	for (uint32_t i = 0; code == NVML_OK && i < count && i < ALL_PROCESSES; i++) {
		if (!is_news(u, list[i].stamp_us, now_us))
			continue;
		put_process(found, of_percent(list[i].pid, list[i].sm), list[i].stamp_us);
		newest = list[i].stamp_us > newest ? list[i].stamp_us : newest;
	}
	u->process_us = newest;
	free(list);
	return code == NVML_OK ? -(int)found->n : code;
}

/* Blackwell has this one instead. */
static int by_info(struct gpu_unit *u, struct users *found)
{
	const struct nvml *n = u->g->nvml;
	uint64_t newest = u->process_us, now_us = (uint64_t)(clock_real_ns() / 1000);
	struct nvml_processes_v1 ask = { NVML_PROCESSES_V1, ALL_PROCESSES, u->process_us, NULL };
	int code;

	if (!n->processes_use)
		return NVML_NO_FUNCTION;
	ask.list = calloc(ALL_PROCESSES, sizeof(*ask.list));
	if (!ask.list)
		return NVML_UNKNOWN;
	code = n->processes_use(nvml_unit_of(u)->handle, &ask);
	for (uint32_t i = 0; code == NVML_OK && i < ask.count && i < ALL_PROCESSES; i++) {
		const struct nvml_process_use_v1 *p = &ask.list[i];

		if (!is_news(u, p->stamp_us, now_us))
			continue;
		put_process(found, of_percent(p->pid, p->sm), p->stamp_us);
		newest = p->stamp_us > newest ? p->stamp_us : newest;
	}
	u->process_us = newest;
	free(ask.list);
	return code == NVML_OK ? -(int)found->n : code;
}

/* Some drivers (535.43 to 535.86) write entries of 32 bytes where the same symbol of all others writes 24. The bytes
 * behind n short entries are 0 unless the entries are long, because the instance numbers of processes outside of
 * instances are -1. */
static size_t entry_bytes(const uint8_t *list, uint32_t n)
{
	for (size_t i = n * sizeof(struct nvml_process); i < n * LONG_ENTRY; i++)
		if (list[i])
			return LONG_ENTRY;
	return sizeof(struct nvml_process);
}

/* The processes on the GPU, each with the same share: the fallback where the driver does not tell their use. */
static int by_list(struct gpu_unit *u, struct users *found)
{
	const struct nvml *n = u->g->nvml;
	int (*const calls[])(nvml_device, uint32_t *, struct nvml_process *) = { n->compute, n->graphics };
	int code = NVML_NO_FUNCTION;

	for (unsigned k = 0; k < 2; k++) {
		_Alignas(struct nvml_process) uint8_t list[GPU_MAX_PROCESSES * LONG_ENTRY] = { 0 };
		uint32_t count = GPU_MAX_PROCESSES;
		size_t size;

		if (!calls[k] || calls[k](nvml_unit_of(u)->handle, &count, (struct nvml_process *)list) != NVML_OK)
			continue;
		code = NVML_OK;
		count = count < GPU_MAX_PROCESSES ? count : GPU_MAX_PROCESSES;
		size = entry_bytes(list, count);
		for (uint32_t i = 0; i < count; i++) {
			struct nvml_process p;

			memcpy(&p, list + i * size, sizeof(p));
			put_process(found, of_percent(p.pid, 100), 1);
		}
	}
	return code == NVML_OK ? -(int)found->n : code;
}

/* No sample is newer than the last one. The GPU may be idle, or asked before its next sample, which some take once a
 * second. What is asked next reaches back that far at most: the driver answers with means since the time it is given. */
static int no_news(struct gpu_unit *u, uint64_t now_us)
{
	if (now_us < u->process_us + IDLE_US)
		return -EAGAIN;
	u->process_us = now_us - IDLE_US;
	return 0;
}

/* Number of processes, or -errno. Internally numbers are negative, because codes are positive. */
int gpu_nvml_processes(struct gpu_unit *u, struct gpu_process *ret, unsigned max)
{
	uint64_t now_us = (uint64_t)(clock_real_ns() / 1000);
	struct users found = { .list = ret, .max = max < GPU_MAX_PROCESSES ? max : GPU_MAX_PROCESSES };
	int got = NVML_NOT_SUPPORTED;

	if (u->process_us > now_us + AHEAD_US)
		u->process_us = now_us - 1000000; /* the clock was set back */
	pthread_rwlock_rdlock(&u->g->nvml_use);
	if (!nvml_unit_of(u)->handle)
		got = NVML_LOST;
	else if (!u->no_process_use && !u->desc.mig) {
		got = by_sample(u, &found);
		if (got > 0 && nvml_errno(got) == -EOPNOTSUPP)
			got = by_info(u, &found);
		u->no_process_use = got > 0 && nvml_errno(got) == -EOPNOTSUPP;
	}
	if (got > 0 && nvml_errno(got) == -EOPNOTSUPP)
		got = by_list(u, &found);
	pthread_rwlock_unlock(&u->g->nvml_use);
	if (!found.n && (!got || nvml_errno(got) == -EAGAIN))
		return u->no_process_use || u->desc.mig ? 0 : no_news(u, now_us);
	return got > 0 ? nvml_errno(got) : -got;
}

/* Samples of power and utilization that NVML keeps in rings. Stamps are the driver's, and come out of order on some
 * cards. */

#define SAMPLES_AHEAD_US 10000000 /* a stamp so far in the future is of a clock that was set back since */

static int by_stamp(const void *a, const void *b)
{
	const struct gpu_sample *x = a, *y = b;

	return (x->real_us > y->real_us) - (x->real_us < y->real_us);
}

static bool believable(enum gpu_ring ring, int64_t v)
{
	return v >= 0 && v <= (ring == GPU_RING_POWER ? 10000000 : 100);
}

/* An answer of the driver. */
struct samples {
	struct nvml_sample *raw; /* allocated; NULL = none */
	uint32_t n, type;
};

/* Keeps samples newer than the last one taken, in order and each stamp once. Their number, at most max. */
static unsigned take(struct gpu_unit *u, enum gpu_ring ring, const struct samples *s, struct gpu_sample *ret,
		     unsigned max)
{
	const struct nvml_sample *raw = s->raw;
	unsigned kept = 0, unique = 0;

	for (uint32_t i = 0; i < s->n && i < max; i++) {
		int64_t v;

		if (raw[i].stamp_us > INT64_MAX || (int64_t)raw[i].stamp_us <= u->ring_us[ring] ||
		    !nvml_number(s->type, &raw[i].value, &v) || !believable(ring, v))
			continue;
		ret[kept++] = (struct gpu_sample){
			.gpu = u->desc.gpu, .ring = (uint8_t)ring, .real_us = (int64_t)raw[i].stamp_us, .value = v
		};
	}
	qsort(ret, kept, sizeof(*ret), by_stamp);
	for (unsigned i = 0; i < kept; i++)
		if (!unique || ret[i].real_us > ret[unique - 1].real_us)
			ret[unique++] = ret[i];
	if (unique)
		u->ring_us[ring] = ret[unique - 1].real_us;
	return unique;
}

static int ask_samples(const struct nvml *n, struct gpu_unit *u, enum gpu_ring ring, struct samples *ret)
{
	static const uint32_t types[GPU_RINGS] = { NVML_SAMPLES_POWER, NVML_SAMPLES_GPU, NVML_SAMPLES_MEM };
	unsigned long long since;
	uint32_t count = 0;
	int code;

	if (!n->samples)
		return NVML_NO_FUNCTION;
	if (!nvml_unit_of(u)->handle)
		return NVML_LOST;
	if (u->ring_us[ring] > clock_real_ns() / 1000 + SAMPLES_AHEAD_US)
		u->ring_us[ring] = clock_real_ns() / 1000;
	since = (unsigned long long)u->ring_us[ring];
	code = n->samples(nvml_unit_of(u)->handle, types[ring], since, &ret->type, &count, NULL);
	if (code != NVML_OK && code != NVML_TOO_SMALL)
		return code;
	if (!count)
		return NVML_NOT_FOUND;
	if (count > GPU_MAX_SAMPLES)
		count = GPU_MAX_SAMPLES;
	ret->raw = calloc(count, sizeof(*ret->raw));
	if (!ret->raw)
		return NVML_UNKNOWN;
	ret->n = count;
	code = n->samples(nvml_unit_of(u)->handle, types[ring], since, &ret->type, &ret->n, ret->raw);
	if (ret->n > count)
		ret->n = count;
	return code;
}

int gpu_nvml_samples(struct gpu_unit *u, enum gpu_ring ring, struct gpu_sample *ret, unsigned max)
{
	struct samples s = { .type = NVML_VALUE_U32 };
	int code, rc;

	pthread_rwlock_rdlock(&u->g->nvml_use);
	code = ask_samples(u->g->nvml, u, ring, &s);
	pthread_rwlock_unlock(&u->g->nvml_use);
	rc = nvml_errno(code);
	if (!rc)
		rc = (int)take(u, ring, &s, ret, max);
	free(s.raw);
	return rc;
}
