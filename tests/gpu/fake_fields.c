/* SPDX-License-Identifier: Apache-2.0 */
/* The scripted library's field values and its list of graphics processes. Lines of FAKE_NVML:
 *   bytes TX RX              bytes a second over PCIe, counted since 1970 (fields 197 and 198)
 *   instant MW               power of the instant (field 186)
 *   bytes_wrap               they begin again every second
 *   long PID PID PID         processes on every GPU, in entries of 32 bytes as drivers 535.43 to 535.86 write them */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "model/nvml.h"

#define EXPORT __attribute__((visibility("default")))

struct fields {
	double tx, rx, instant_mw;
	int wrap;
	unsigned pids[3];
};

static struct fields load(void)
{
	const char *path = getenv("FAKE_NVML");
	FILE *f = path ? fopen(path, "re") : NULL;
	struct fields s = { 0 };
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "bytes %lf %lf", &s.tx, &s.rx);
		sscanf(line, "instant %lf", &s.instant_mw);
		sscanf(line, "long %u %u %u", &s.pids[0], &s.pids[1], &s.pids[2]);
		s.wrap |= strncmp(line, "bytes_wrap", 10) == 0;
	}
	if (f)
		fclose(f);
	return s;
}

static double seconds(const struct fields *s)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (s->wrap ? 1 : (double)t.tv_sec) + (double)t.tv_nsec / 1e9;
}

EXPORT int nvmlDeviceGetFieldValues(nvml_device device, int n, struct nvml_field *v)
{
	struct fields s = load();
	double now = seconds(&s);

	(void)device;
	for (int i = 0; i < n; i++) {
		double rate = v[i].id == NVML_FIELD_PCIE_TX_BYTES ? s.tx :
			      v[i].id == NVML_FIELD_PCIE_RX_BYTES ? s.rx :
								    0;

		v[i].type = NVML_VALUE_U64;
		v[i].code = rate > 0 ? NVML_OK : NVML_NOT_SUPPORTED;
		v[i].value.u64 = (uint64_t)(now * rate);
		if (v[i].id == NVML_FIELD_POWER_INSTANT && s.instant_mw > 0) {
			v[i].code = NVML_OK;
			v[i].value.u64 = (uint64_t)s.instant_mw;
		}
	}
	return 0;
}

EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(nvml_device device, unsigned *count, void *ret)
{
	struct {
		uint32_t pid, pad;
		uint64_t mem;
		uint32_t gi, ci;
		uint64_t secret;
	} *out = ret;
	struct fields s = load();
	unsigned n = 0;

	(void)device;
	for (; n < 3 && n < *count && s.pids[n]; n++) {
		memset(&out[n], 0, sizeof(out[n]));
		out[n].pid = s.pids[n];
		out[n].mem = 1 << 20;
		out[n].gi = out[n].ci = UINT32_MAX;
	}
	*count = n;
	return 0;
}
