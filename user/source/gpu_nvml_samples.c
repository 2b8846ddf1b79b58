// SPDX-License-Identifier: Apache-2.0
/* What NVML keeps in rings: samples of power and utilization. Stamps are the driver's, and come out of order on some
 * cards. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../base/clock.h"
#include "gpu_nvml.h"

#define AHEAD_US 10000000 /* a stamp so far in the future is of a clock that was set back since */

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

		if (raw[i].stamp_us > INT64_MAX || (int64_t)raw[i].stamp_us <= u->ring_us[ring] ||
		    !nvml_number(type, &raw[i].value, &v) || !believable(ring, v))
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

static int ask_samples(const struct nvml *n, struct gpu_unit *u, enum gpu_ring ring, struct nvml_sample **ret,
		       uint32_t *ret_n, uint32_t *ret_type)
{
	static const uint32_t types[GPU_RINGS] = { NVML_SAMPLES_POWER, NVML_SAMPLES_GPU, NVML_SAMPLES_MEM };
	unsigned long long since;
	struct nvml_sample *raw;
	uint32_t count = 0;
	int code;

	if (!n->samples)
		return NVML_NO_FUNCTION;
	if (!nvml_unit_of(u)->handle)
		return NVML_LOST;
	if (u->ring_us[ring] > clock_real_ns() / 1000 + AHEAD_US)
		u->ring_us[ring] = clock_real_ns() / 1000;
	since = (unsigned long long)u->ring_us[ring];
	code = n->samples(nvml_unit_of(u)->handle, types[ring], since, ret_type, &count, NULL);
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
	code = n->samples(nvml_unit_of(u)->handle, types[ring], since, ret_type, ret_n, raw);
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
