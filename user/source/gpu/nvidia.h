/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of gpu_nvml*.c: what an NVIDIA GPU has beside what every GPU has. */
#ifndef JD_GPU_NVML_H
#define JD_GPU_NVML_H
#include "gpu_internal.h"
#include "nvml.h"

/* Bytes over PCIe since the driver was loaded, of fields 197 and 198. */
struct nvml_bytes {
	uint64_t tx, rx, mono_ns;
};

struct nvml_unit {
	nvml_device handle;
	uint32_t power_field, power_scope; /* 0: nvmlDeviceGetPowerUsage */
	/* thread gpu-slow */
	bool counts_bytes;
	struct nvml_bytes bytes; /* of the last look; mono_ns 0 = none */
};

static inline struct nvml_unit *nvml_unit_of(const struct gpu_unit *u)
{
	return u->device;
}

/* gpu_nvml_row.c. What the unit tells is found out once, into its desc. */
void gpu_nvml_probe(struct gpu_unit *u);
int gpu_nvml_row(struct gpu_unit *u, uint32_t wanted, struct gpu_row *row);
int gpu_nvml_pcie(struct gpu_unit *u, int64_t *ret_tx, int64_t *ret_rx);

/* gpu_nvml_samples.c, gpu_nvml_use.c */
int gpu_nvml_samples(struct gpu_unit *u, enum gpu_ring ring, struct gpu_sample *ret, unsigned max);
int gpu_nvml_processes(struct gpu_unit *u, struct gpu_process *ret, unsigned max);

#endif
