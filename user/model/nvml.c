// SPDX-License-Identifier: Apache-2.0
#include "nvml.h"
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

/* Newest name first: a symbol with a version has the layout of nvml.h, one without may have another. */
static const struct {
	size_t offset;
	const char *names[2];
} symbols[] = {
	{ offsetof(struct nvml, init), { "nvmlInit_v2" } },
	{ offsetof(struct nvml, shutdown), { "nvmlShutdown" } },
	{ offsetof(struct nvml, count), { "nvmlDeviceGetCount_v2" } },
	{ offsetof(struct nvml, by_index), { "nvmlDeviceGetHandleByIndex_v2" } },
	{ offsetof(struct nvml, by_uuid), { "nvmlDeviceGetHandleByUUID" } },
	{ offsetof(struct nvml, name), { "nvmlDeviceGetName" } },
	{ offsetof(struct nvml, uuid), { "nvmlDeviceGetUUID" } },
	{ offsetof(struct nvml, pci), { "nvmlDeviceGetPciInfo_v3" } },
	{ offsetof(struct nvml, capability), { "nvmlDeviceGetCudaComputeCapability" } },
	{ offsetof(struct nvml, driver_version), { "nvmlSystemGetDriverVersion" } },
	{ offsetof(struct nvml, nvml_version), { "nvmlSystemGetNVMLVersion" } },
	{ offsetof(struct nvml, cuda_version), { "nvmlSystemGetCudaDriverVersion_v2" } },
	{ offsetof(struct nvml, utilization), { "nvmlDeviceGetUtilizationRates" } },
	{ offsetof(struct nvml, clock), { "nvmlDeviceGetClock" } },
	{ offsetof(struct nvml, clock_info), { "nvmlDeviceGetClockInfo" } },
	{ offsetof(struct nvml, app_clock), { "nvmlDeviceGetApplicationsClock" } },
	{ offsetof(struct nvml, set_app_clocks), { "nvmlDeviceSetApplicationsClocks" } },
	{ offsetof(struct nvml, power_limit), { "nvmlDeviceGetEnforcedPowerLimit" } },
	{ offsetof(struct nvml, power_managed), { "nvmlDeviceGetPowerManagementLimit" } },
	{ offsetof(struct nvml, set_power_managed), { "nvmlDeviceSetPowerManagementLimit" } },
	{ offsetof(struct nvml, energy), { "nvmlDeviceGetTotalEnergyConsumption" } },
	{ offsetof(struct nvml, power_state), { "nvmlDeviceGetPerformanceState", "nvmlDeviceGetPowerState" } },
	{ offsetof(struct nvml, power), { "nvmlDeviceGetPowerUsage" } },
	{ offsetof(struct nvml, fields), { "nvmlDeviceGetFieldValues" } },
	{ offsetof(struct nvml, temperature), { "nvmlDeviceGetTemperature" } },
	{ offsetof(struct nvml, temperature_v), { "nvmlDeviceGetTemperatureV" } },
	{ offsetof(struct nvml, pcie), { "nvmlDeviceGetPcieThroughput" } },
	{ offsetof(struct nvml, samples), { "nvmlDeviceGetSamples" } },
	{ offsetof(struct nvml, process_use), { "nvmlDeviceGetProcessUtilization" } },
	{ offsetof(struct nvml, processes_use), { "nvmlDeviceGetProcessesUtilizationInfo" } },
	{ offsetof(struct nvml, compute),
	  { "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2" } },
	{ offsetof(struct nvml, graphics),
	  { "nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2" } },
	{ offsetof(struct nvml, mig), { "nvmlDeviceGetMigMode" } },
};

static void resolve(struct nvml *n)
{
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *at = dlsym(n->library, symbols[i].names[0]);

		if (!at && symbols[i].names[1])
			at = dlsym(n->library, symbols[i].names[1]);
		memcpy((char *)n + symbols[i].offset, &at, sizeof(at));
	}
}

int nvml_load(struct nvml *n, const char *path)
{
	memset(n, 0, sizeof(*n));
	n->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!n->library)
		return -ENOENT;
	resolve(n);
	if (n->init && n->shutdown && n->count && n->by_index)
		return 0;
	nvml_unload(n);
	return -ENOEXEC;
}

void nvml_unload(struct nvml *n)
{
	if (n->library)
		dlclose(n->library);
	memset(n, 0, sizeof(*n));
}

int nvml_errno(int code)
{
	switch (code) {
	case NVML_OK:
		return 0;
	case NVML_NOT_SUPPORTED:
	case NVML_NO_FUNCTION:
	case NVML_VERSION:
	case NVML_DEPRECATED:
	case NVML_ARGUMENT:
		return -EOPNOTSUPP;
	case NVML_NOT_FOUND:
		return -EAGAIN;
	case NVML_UNINITIALIZED:
	case NVML_NO_DRIVER:
	case NVML_LOST:
	case NVML_RESET_REQUIRED:
	case NVML_MISMATCH:
		return -ENODEV;
	case NVML_PERMISSION:
	case NVML_BLOCKED:
		return -EACCES;
	default:
		return -EIO;
	}
}

const char *nvml_text(int code)
{
	switch (code) {
	case NVML_OK:
		return "ok";
	case NVML_UNINITIALIZED:
		return "the library was shut down";
	case NVML_NOT_SUPPORTED:
		return "not supported";
	case NVML_PERMISSION:
		return "no permission; run as root or open /dev/nvidia* to this user";
	case NVML_NO_DRIVER:
		return "the driver is not loaded; load the module nvidia";
	case NVML_LOST:
		return "the GPU has fallen off the bus; see the kernel's log";
	case NVML_RESET_REQUIRED:
		return "the GPU needs a reset";
	case NVML_BLOCKED:
		return "blocked by the device cgroup; give access to /dev/nvidia*";
	case NVML_MISMATCH:
		return "library and driver are of different versions; restart after the update is complete";
	default:
		return "unknown error of the driver";
	}
}

bool nvml_number(uint32_t type, const union nvml_value *v, int64_t *ret)
{
	switch (type) {
	case NVML_VALUE_DOUBLE:
		if (!isfinite(v->d) || fabs(v->d) > 1e15)
			return false;
		*ret = llround(v->d);
		return true;
	case NVML_VALUE_U32:
		*ret = v->u32;
		return true;
	case NVML_VALUE_ULONG:
	case NVML_VALUE_U64:
		*ret = (int64_t)v->u64;
		return v->u64 <= INT64_MAX;
	case NVML_VALUE_S64:
		*ret = v->s64;
		return true;
	case NVML_VALUE_S32:
		*ret = v->s32;
		return true;
	case NVML_VALUE_U16:
		*ret = v->u16;
		return true;
	default:
		return false;
	}
}
