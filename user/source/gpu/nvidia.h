/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of nvidia.c (energy, power, rows) and nvidia_users.c (processes, samples) that both need. */
#ifndef JD_NVIDIA_H
#define JD_NVIDIA_H
#include "gpu_ops.h"
#include "model/nvml.h"

/* Bytes over PCIe since the driver was loaded, of fields 197 and 198. */
struct nvml_bytes {
	uint64_t tx, rx, mono_ns;
};

struct nvml_unit {
	nvml_device handle;
	uint32_t power_field, power_scope; /* 0: nvmlDeviceGetPowerUsage */
	bool no_instant; /* thread gpu: there is no power of this instant */
	/* thread gpu-slow */
	bool counts_bytes;
	struct nvml_bytes bytes; /* of the last look; mono_ns 0 = none */
};

static inline struct nvml_unit *nvml_unit_of(const struct gpu_unit *u)
{
	return u->device;
}

/* nvidia_users.c: calls of struct gpu_ops. */
int gpu_nvml_samples(struct gpu_unit *u, enum gpu_ring ring, struct gpu_sample *ret, unsigned max);
int gpu_nvml_processes(struct gpu_unit *u, struct gpu_process *ret, unsigned max);

#endif
