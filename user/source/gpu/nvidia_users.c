// SPDX-License-Identifier: Apache-2.0
/* The use of each process as NVML tells it. Counts and values were seen to be garbage. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../base/clock.h"
#include "gpu_nvml.h"

#define ALL_PROCESSES 1024 /* samples of one answer */
#define LONG_ENTRY 32 /* of a list of processes by some drivers */
#define AHEAD_US 10000000ull /* a stamp so far in the future is nonsense, or of a clock that was set back */

static struct gpu_process of_percent(uint32_t pid, uint32_t percent)
{
	return (struct gpu_process){ pid, percent <= 100 ? percent * 10000 : UINT32_MAX };
}

/* The newest sample of each process. */
static void put_process(struct gpu_process *ret, uint64_t *stamps, unsigned *n, unsigned max, struct gpu_process p,
			uint64_t stamp_us)
{
	unsigned i = 0;

	if (!p.pid || p.ppm > 1000000)
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
	return stamp_us > u->process_us && stamp_us <= now_us + AHEAD_US;
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
	code = n->process_use(nvml_unit_of(u)->handle, list, &count, u->process_us);
	for (uint32_t i = 0; code == NVML_OK && i < count && i < ALL_PROCESSES; i++) {
		if (!is_news(u, list[i].stamp_us, now_us))
			continue;
		put_process(ret, stamps, &found, max, of_percent(list[i].pid, list[i].sm), list[i].stamp_us);
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
	code = n->processes_use(nvml_unit_of(u)->handle, &ask);
	for (uint32_t i = 0; code == NVML_OK && i < ask.count && i < ALL_PROCESSES; i++) {
		const struct nvml_process_use_v1 *p = &ask.list[i];

		if (!is_news(u, p->stamp_us, now_us))
			continue;
		put_process(ret, stamps, &found, max, of_percent(p->pid, p->sm), p->stamp_us);
		newest = p->stamp_us > newest ? p->stamp_us : newest;
	}
	u->process_us = newest;
	free(ask.list);
	return code == NVML_OK ? -(int)found : code;
}

/* Some drivers (535.43 to 535.86) write entries of 32 bytes where the same symbol of all others writes 24. What lies
 * behind n of the short ones is 0 unless they are long: instance numbers of processes that are in none are -1. */
static size_t entry_bytes(const uint8_t *list, uint32_t n)
{
	for (size_t i = n * sizeof(struct nvml_process); i < n * LONG_ENTRY; i++)
		if (list[i])
			return LONG_ENTRY;
	return sizeof(struct nvml_process);
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
			put_process(ret, stamps, &found, max, of_percent(p.pid, 100), 1);
		}
	}
	return code == NVML_OK ? -(int)found : code;
}

/* Number of processes, or -errno. Internally numbers are negative, for codes are not. */
int gpu_nvml_processes(struct gpu_unit *u, struct gpu_process *ret, unsigned max)
{
	uint64_t now_us = (uint64_t)(clock_real_ns() / 1000);
	int got = NVML_NOT_SUPPORTED;

	if (max > GPU_MAX_PROCESSES)
		max = GPU_MAX_PROCESSES;
	if (u->process_us > now_us + AHEAD_US)
		u->process_us = now_us - 1000000; /* the clock was set back */
	pthread_rwlock_rdlock(&u->g->nvml_use);
	if (!nvml_unit_of(u)->handle)
		got = NVML_LOST;
	else if (!u->no_process_use && !u->desc.mig) {
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
