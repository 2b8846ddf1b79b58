/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a GPU: rows of all values at one instant, and the samples of the driver's own ring. Units and names are
 * those of gpu-power.csv (documents/data-model.rst). A value that is missing has no bit in `present`; it is never 0
 * instead. */
#ifndef JD_MODEL_GPU_H
#define JD_MODEL_GPU_H
#include <stdbool.h>
#include <stdint.h>

#define GPU_MAX 16 /* GPUs of one machine; the rest is left out with a warning */

/* The fields of a row of gpu-power.csv, in the order of its columns. */
enum gpu_field {
	GPU_CLOCK_MEM,
	GPU_CLOCK_GPU, /* MHz */
	GPU_APP_CLOCK_MEM,
	GPU_APP_CLOCK_GPU, /* MHz */
	GPU_POWER_LIMIT, /* mW, the one enforced */
	GPU_TOTAL_ENERGY, /* mJ since the driver was loaded */
	GPU_POWER_STATE, /* 0 = fastest .. 15 */
	GPU_POWER, /* mW */
	GPU_TEMPERATURE, /* degrees Celsius */
	GPU_PCI_TX,
	GPU_PCI_RX, /* KB/s */
	GPU_UTIL_GPU,
	GPU_UTIL_MEM, /* percent of time; mem: with memory traffic */
	GPU_FIELDS
};
const char *gpu_field_column(enum gpu_field f); /* "clock-mem" ... "util-mem" */
#define GPU_BIT(field) (1u << (field))

struct gpu_row {
	uint16_t gpu; /* index of the desc */
	int64_t real_ns; /* CLOCK_REALTIME before the first query */
	uint64_t mono_ns; /* CLOCK_MONOTONIC of the same instant */
	uint32_t present; /* GPU_BIT of the values that this row has */
	uint64_t slow_mono_ns; /* when pci-tx and pci-rx were asked, which a thread of their own does */
	int64_t v[GPU_FIELDS];
};

enum gpu_ring { GPU_RING_POWER, GPU_RING_GPU, GPU_RING_MEM, GPU_RINGS };

struct gpu_sample {
	uint16_t gpu;
	uint8_t ring; /* enum gpu_ring */
	bool polled; /* made from our own polling: this GPU has no such ring */
	int64_t real_us; /* UTC, microseconds since 1970, as the driver stamped it */
	int64_t value; /* mW or percent */
};

/* The description of a GPU. It does not change after the GPU has answered for the first time. */
struct gpu_desc {
	uint16_t gpu; /* index among ours: gpu-0 ... */
	uint16_t domain; /* in the schema */
	char vendor[8]; /* nvidia, amd, intel */
	char name[96]; /* product */
	char uuid[96]; /* "" where there is none: AMD and Intel have their PCI address alone */
	char pci[32]; /* 0000:17:00.0 */
	char driver_version[80], nvml_version[80]; /* "" where unknown */
	int cuda_version; /* 12020 = 12.2; 0 = unknown */
	int cuda_major, cuda_minor; /* capability; 0 = unknown */
	uint32_t fields; /* GPU_BIT of the columns this GPU has */
	uint8_t rings; /* bit per enum gpu_ring that the driver keeps; the others are polled */
	bool mig; /* split into instances: no utilisation per process */
};

#endif
