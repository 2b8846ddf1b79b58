/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of the scripted GPUs: what is set is kept in FAKE_NVML_LIMITS/GPU, "POWER_MW MEM_MHZ GPU_MHZ", as a driver
 * keeps it beyond the process that set it; each change is a line of FAKE_NVML_LIMITS/log. Powers from 100 to 300 W are taken. A file
 * FAKE_NVML_LIMITS/refuse makes every change fail with "permission denied". */
#include "fake_limits.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "model/nvml.h"

#define EXPORT __attribute__((visibility("default")))

static void path_of(char *path, size_t size, const char *name)
{
	const char *dir = getenv("FAKE_NVML_LIMITS");

	snprintf(path, size, "%s/%s", dir ? dir : "/nonexistent", name);
}

static FILE *open_in(const char *name, const char *mode)
{
	char path[512];

	path_of(path, sizeof(path), name);
	return fopen(path, mode);
}

struct fake_limits fake_limits_of(int gpu)
{
	struct fake_limits l = { 250000, 1215, 1095 };
	char name[16];
	FILE *f;

	snprintf(name, sizeof(name), "%d", gpu);
	f = open_in(name, "re");
	if (f && fscanf(f, "%u %u %u", &l.power_mw, &l.mem_mhz, &l.gpu_mhz) != 3)
		l = (struct fake_limits){ 250000, 1215, 1095 };
	if (f)
		fclose(f);
	return l;
}

static int keep(int gpu, const struct fake_limits *l)
{
	char name[16], path[512];
	FILE *f;

	path_of(path, sizeof(path), "refuse");
	if (access(path, F_OK) == 0)
		return NVML_PERMISSION;
	snprintf(name, sizeof(name), "%d", gpu);
	f = open_in(name, "we");
	if (!f)
		return NVML_NOT_SUPPORTED;
	fprintf(f, "%u %u %u\n", l->power_mw, l->mem_mhz, l->gpu_mhz);
	fclose(f);
	f = open_in("log", "ae");
	if (!f)
		return NVML_UNKNOWN;
	fprintf(f, "%d %u %u %u\n", gpu, l->power_mw, l->mem_mhz, l->gpu_mhz);
	fclose(f);
	return 0;
}

EXPORT int nvmlDeviceGetPowerManagementLimit(nvml_device device, unsigned *ret)
{
	*ret = fake_limits_of((int)(intptr_t)device - 1).power_mw;
	return 0;
}

EXPORT int nvmlDeviceSetPowerManagementLimit(nvml_device device, unsigned mw)
{
	int gpu = (int)(intptr_t)device - 1;
	struct fake_limits l = fake_limits_of(gpu);

	if (mw < 100000 || mw > 300000)
		return NVML_ARGUMENT;
	l.power_mw = mw;
	return keep(gpu, &l);
}

EXPORT int nvmlDeviceSetApplicationsClocks(nvml_device device, unsigned mem, unsigned sm)
{
	int gpu = (int)(intptr_t)device - 1;
	struct fake_limits l = fake_limits_of(gpu);

	l.mem_mhz = mem;
	l.gpu_mhz = sm;
	return keep(gpu, &l);
}
