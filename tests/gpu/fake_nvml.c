/* SPDX-License-Identifier: Apache-2.0 */
/* A libnvidia-ml.so.1 whose GPUs are scripted. FAKE_NVML names a file of lines "KEY VALUE...", read anew at every call, so
 * that a test can change the machine while it is measured:
 *   gpus N                   how many there are (default 2)
 *   power G BASE AMPLITUDE PERIOD_MS     mW: BASE plus a square wave of AMPLITUDE, half of the period each
 *   start S                  CLOCK_REALTIME second from which energy is counted (default: the first call)
 *   refuse NAME [G]          answers 3, not supported
 *   slow NAME MS             takes so long
 *   spin NAME MS             the same, of CPU time
 *   sampled MS               use of processes is sampled so often; asked again before, there is none (6)
 *   lost G                   everything of that GPU answers 15
 *   mismatch                 init answers 18
 *   counter_offset G MJ      added to the energy counter (negative: a reset)
 *   scale G FACTOR           the counter against the curve
 *   disorder                 samples are out of order, some twice
 *   silent                   the rings are empty for ever (6)
 *   garbage                  use of processes: nonsense beside the true ones
 *   process G PID SM         a process and its use in percent
 *   mig G
 *   log FILE                 a line per call
 * The curves are functions of time alone, so that a test that knows the script can integrate them. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "fake_limits.h"
#include "model/nvml.h"

#define MAX_GPUS 4
#define MAX_PROCESSES 16
#define EXPORT __attribute__((visibility("default")))

struct script {
	int gpus, lost[MAX_GPUS], mig[MAX_GPUS], disorder, garbage, mismatch, silent;
	double base[MAX_GPUS], amplitude[MAX_GPUS], period_ms[MAX_GPUS], offset_mj[MAX_GPUS], scale[MAX_GPUS];
	int64_t start_us;
	int n_processes;
	struct {
		int gpu;
		unsigned pid, sm;
	} process[MAX_PROCESSES];
	char refuse[256], slow_name[64], spin_name[64], log[256];
	int slow_ms, spin_ms, sampled_ms;
};

static int64_t first_us;

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Words of which the GPU's number is all, and flags (step 0). */
static const struct {
	const char *word;
	size_t at, step;
} marks[] = {
	{ "lost", offsetof(struct script, lost), sizeof(int) }, { "mig", offsetof(struct script, mig), sizeof(int) },
	{ "disorder", offsetof(struct script, disorder), 0 },   { "garbage", offsetof(struct script, garbage), 0 },
	{ "mismatch", offsetof(struct script, mismatch), 0 },   { "silent", offsetof(struct script, silent), 0 },
};

static void parse_line(struct script *s, const char *line)
{
	char word[64] = "", name[64] = "";
	double a = 0, b = 0, c = 0, d = 0;

	sscanf(line, "%63s", word);
	sscanf(line, "%*s %63s", name);
	sscanf(line, "%*s %lf %lf %lf %lf", &a, &b, &c, &d);
	int g = a >= 0 && a < MAX_GPUS ? (int)a : 0;

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (!strcmp(word, marks[i].word))
			*(int *)((char *)s + marks[i].at + (size_t)g * marks[i].step) = 1;
	if (!strcmp(word, "gpus"))
		s->gpus = (int)a;
	else if (!strcmp(word, "power"))
		s->base[g] = b, s->amplitude[g] = c, s->period_ms[g] = d;
	else if (!strcmp(word, "start"))
		s->start_us = (int64_t)(a * 1e6);
	else if (!strcmp(word, "refuse"))
		snprintf(s->refuse + strlen(s->refuse), sizeof(s->refuse) - strlen(s->refuse), " %s ", name);
	else if (!strcmp(word, "slow"))
		snprintf(s->slow_name, sizeof(s->slow_name), "%s", name), sscanf(line, "%*s %*s %d", &s->slow_ms);
	else if (!strcmp(word, "spin"))
		snprintf(s->spin_name, sizeof(s->spin_name), "%s", name), sscanf(line, "%*s %*s %d", &s->spin_ms);
	else if (!strcmp(word, "sampled"))
		s->sampled_ms = (int)a;
	else if (!strcmp(word, "counter_offset"))
		s->offset_mj[g] = b;
	else if (!strcmp(word, "scale"))
		s->scale[g] = b;
	else if (!strcmp(word, "log"))
		sscanf(line, "%*s %255s", s->log);
	else if (!strcmp(word, "process") && s->n_processes < MAX_PROCESSES) {
		s->process[s->n_processes].gpu = g;
		s->process[s->n_processes].pid = (unsigned)b;
		s->process[s->n_processes++].sm = (unsigned)c;
	}
}

static struct script load(void)
{
	struct script s = { .gpus = 2,
			    .base = { 100000, 60000, 50000, 50000 },
			    .scale = { 1, 1, 1, 1 },
			    .period_ms = { 1000, 1000, 1000, 1000 } };
	const char *path = getenv("FAKE_NVML");
	FILE *f = path ? fopen(path, "re") : NULL;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		parse_line(&s, line);
	if (f)
		fclose(f);
	if (!first_us)
		first_us = now_us();
	if (!s.start_us)
		s.start_us = first_us;
	return s;
}

static double power_at(const struct script *s, int g, double us)
{
	double period = s->period_ms[g] * 1000, at = fmod(us, period);

	return s->base[g] + (at < period / 2 ? s->amplitude[g] : 0);
}

/* mJ from 0 to us, in closed form: whole periods and what is left of one. */
static double energy_until(const struct script *s, int g, double us)
{
	double period = s->period_ms[g] * 1000, whole = floor(us / period), rest = us - whole * period;
	double high = whole * period / 2 + (rest < period / 2 ? rest : period / 2);

	return (s->base[g] * us + s->amplitude[g] * high) / 1e6;
}

static void spin(int ms)
{
	struct timespec from, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
}

/* Every call: the script, the log, what it refuses, what is slow. Number of the GPU + 1 in the handle. */
static int begin(struct script *s, const char *name, const void *device)
{
	char word[80];
	int g = (int)(intptr_t)device - 1;
	FILE *f;

	*s = load();
	if (*s->log && (f = fopen(s->log, "ae"))) {
		fprintf(f, "%lld %s %d\n", (long long)now_us(), name, g);
		fclose(f);
	}
	if (!strcmp(s->slow_name, name))
		nanosleep(&(struct timespec){ s->slow_ms / 1000, s->slow_ms % 1000 * 1000000l }, NULL);
	if (!strcmp(s->spin_name, name))
		spin(s->spin_ms);
	if (device && (g >= s->gpus || s->lost[g]))
		return NVML_LOST;
	snprintf(word, sizeof(word), " %s ", name);
	return strstr(s->refuse, word) || strstr(s->refuse, " all ") ? NVML_NOT_SUPPORTED : NVML_OK;
}

#define BEGIN(name) \
	struct script s; \
	int rc = begin(&s, name, device), g = (int)(intptr_t)device - 1; \
	(void)g; \
	if (rc) \
	return rc

EXPORT int nvmlInit_v2(void)
{
	struct script s;

	begin(&s, "init", NULL);
	return s.mismatch ? NVML_MISMATCH : NVML_OK;
}

EXPORT int nvmlShutdown(void)
{
	return 0;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *n)
{
	struct script s = load();

	*n = (unsigned)s.gpus;
	return 0;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned i, nvml_device *ret)
{
	struct script s = load();

	if ((int)i >= s.gpus)
		return NVML_ARGUMENT;
	*ret = (nvml_device)(intptr_t)(i + 1);
	return 0;
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, nvml_device *ret)
{
	struct script s = load();
	int g;

	if (sscanf(uuid, "GPU-fake%d", &g) != 1 || g >= s.gpus || s.lost[g])
		return NVML_NOT_FOUND;
	*ret = (nvml_device)(intptr_t)(g + 1);
	return 0;
}

EXPORT int nvmlDeviceGetName(nvml_device device, char *ret, unsigned size)
{
	BEGIN("name");
	snprintf(ret, size, "Scripted GPU %d", g);
	return 0;
}

EXPORT int nvmlDeviceGetUUID(nvml_device device, char *ret, unsigned size)
{
	BEGIN("uuid");
	snprintf(ret, size, "GPU-fake%d-0000-1111-2222-333344445555", g);
	return 0;
}

EXPORT int nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci *ret)
{
	BEGIN("pci");
	*ret = (struct nvml_pci){ .bus = (uint32_t)(0x17 + g) };
	return 0;
}

EXPORT int nvmlDeviceGetCudaComputeCapability(nvml_device device, int *major, int *minor)
{
	BEGIN("capability");
	*major = 8;
	*minor = 6;
	return 0;
}

static unsigned sum_sm(const struct script *s, int g)
{
	unsigned sum = 0;

	for (int i = 0; i < s->n_processes; i++)
		sum += s->process[i].gpu == g ? s->process[i].sm : 0;
	return sum > 100 ? 100 : sum;
}

EXPORT int nvmlDeviceGetUtilizationRates(nvml_device device, struct nvml_utilization *ret)
{
	BEGIN("utilization");
	*ret = (struct nvml_utilization){ .gpu = sum_sm(&s, g), .memory = 7 };
	return s.mig[g] ? NVML_NOT_SUPPORTED : NVML_OK;
}

EXPORT int nvmlDeviceGetClock(nvml_device device, unsigned type, unsigned which, unsigned *ret)
{
	BEGIN("clock");
	*ret = type == NVML_CLOCK_MEM ? 1215 : 1410;
	return which ? NVML_ARGUMENT : NVML_OK;
}

EXPORT int nvmlDeviceGetApplicationsClock(nvml_device device, unsigned type, unsigned *ret)
{
	BEGIN("app_clock");
	*ret = type == NVML_CLOCK_MEM ? fake_limits_of(g).mem_mhz : fake_limits_of(g).gpu_mhz;
	return 0;
}

EXPORT int nvmlDeviceGetEnforcedPowerLimit(nvml_device device, unsigned *ret)
{
	BEGIN("power_limit");
	*ret = fake_limits_of(g).power_mw;
	return 0;
}

/* In steps of 20 ms, like a real one. */
EXPORT int nvmlDeviceGetTotalEnergyConsumption(nvml_device device, unsigned long long *ret)
{
	BEGIN("energy");
	double until = floor((double)now_us() / 20000) * 20000;
	double mj = s.scale[g] * (energy_until(&s, g, until) - energy_until(&s, g, (double)s.start_us)) + 5e6 +
		    s.offset_mj[g];

	*ret = mj > 0 ? (unsigned long long)mj : 0;
	return 0;
}

EXPORT int nvmlDeviceGetPerformanceState(nvml_device device, unsigned *ret)
{
	BEGIN("power_state");
	*ret = 2;
	return 0;
}

EXPORT int nvmlDeviceGetPowerUsage(nvml_device device, unsigned *ret)
{
	BEGIN("power");
	*ret = (unsigned)power_at(&s, g, (double)now_us());
	return 0;
}

EXPORT int nvmlDeviceGetTemperature(nvml_device device, unsigned sensor, unsigned *ret)
{
	BEGIN("temperature");
	*ret = 61;
	return sensor ? NVML_ARGUMENT : NVML_OK;
}

EXPORT int nvmlDeviceGetPcieThroughput(nvml_device device, unsigned counter, unsigned *ret)
{
	BEGIN("pcie");
	nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
	*ret = counter ? 2222 : 1111;
	return 0;
}

/* 20 ms apart, the last two seconds of them. */
EXPORT int nvmlDeviceGetSamples(nvml_device device, unsigned type, unsigned long long since, unsigned *value_type,
				unsigned *count, struct nvml_sample *out)
{
	BEGIN("samples");
	int64_t now = now_us() / 20000 * 20000, from = now - 2000000;
	unsigned n = 0;

	*value_type = NVML_VALUE_U32;
	if (s.silent)
		return NVML_NOT_FOUND;
	if ((int64_t)since >= from)
		from = (int64_t)since / 20000 * 20000 + 20000;
	if (from > now)
		return NVML_NOT_FOUND;
	if (!out) {
		*count = (unsigned)((now - from) / 20000 + 1);
		return 0;
	}
	for (int64_t t = from; t <= now && n < *count; t += 20000, n++) {
		out[n].value.u64 = 0;
		out[n].stamp_us = (uint64_t)t;
		out[n].value.u32 = type == NVML_SAMPLES_POWER ? (uint32_t)power_at(&s, g, (double)t) :
				   type == NVML_SAMPLES_GPU   ? sum_sm(&s, g) :
								7;
	}
	for (unsigned i = 0; s.disorder && i + 1 < n; i += 3) {
		struct nvml_sample swap = out[i];

		out[i] = out[i + 1];
		out[i + 1] = swap;
		if (i + 2 < n)
			out[i + 2] = out[i];
	}
	*count = n;
	return 0;
}

EXPORT int nvmlDeviceGetProcessUtilization(nvml_device device, struct nvml_process_use *out, unsigned *count,
					   unsigned long long since)
{
	BEGIN("process_use");
	unsigned n = 0, room = *count;
	uint64_t step_us = (uint64_t)s.sampled_ms * 1000, stamp_us = (uint64_t)now_us();

	if (s.mig[g])
		return NVML_NOT_SUPPORTED;
	if (step_us)
		stamp_us -= stamp_us % step_us;
	if (step_us && stamp_us <= since)
		return NVML_NOT_FOUND;
	for (int i = 0; i < s.n_processes && n < room; i++) {
		if (s.process[i].gpu != g)
			continue;
		memset(&out[n], 0, sizeof(out[n]));
		out[n].pid = s.process[i].pid;
		out[n].stamp_us = stamp_us;
		out[n++].sm = s.process[i].sm;
	}
	if (s.garbage && n + 3 < room) {
		memset(&out[n], 0xee, 3 * sizeof(*out)); /* stamps of the far future, 4 billion percent */
		out[n + 1].stamp_us = since ? since - 1 : 0; /* old */
		out[n + 1].sm = 50;
		out[n + 2].stamp_us = (uint64_t)now_us();
		out[n + 2].sm = 4000000;
		n += 3;
	}
	*count = s.garbage ? 0xfffffff0u : n;
	if (s.garbage)
		memset(&out[n], 0, (room - n) * sizeof(*out));
	return n ? NVML_OK : NVML_NOT_FOUND;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *count, struct nvml_process *out)
{
	BEGIN("compute");
	unsigned n = 0;

	for (int i = 0; i < s.n_processes && n < *count; i++) {
		if (s.process[i].gpu != g)
			continue;
		memset(&out[n], 0, sizeof(out[n]));
		out[n++].pid = s.process[i].pid;
	}
	*count = n;
	return 0;
}

EXPORT int nvmlDeviceGetMigMode(nvml_device device, unsigned *now, unsigned *later)
{
	BEGIN("mig");
	*now = *later = (unsigned)s.mig[g];
	return 0;
}
