// SPDX-License-Identifier: Apache-2.0
#include "gpu.h"

const char *gpu_field_column(enum gpu_field f)
{
	static const char *const names[GPU_FIELDS] = {
		"clock-mem",    "clock-gpu",   "app-clock-mem", "app-clock-gpu", "enforced-power-limit",
		"total-energy", "power-state", "power",         "tmp",           "pci-tx",
		"pci-rx",       "util-gpu",    "util-mem",
	};

	return (unsigned)f < GPU_FIELDS ? names[f] : "unknown";
}
