/* SPDX-License-Identifier: Apache-2.0 */
/* Use of GPUs by processes, from drivers that tell it per open file in /proc/PID/fdinfo
 * (Documentation/gpu/drm-usage-stats.rst of Linux): amdgpu, i915 and xe. */
#ifndef JD_GPU_DRM_H
#define JD_GPU_DRM_H
#include "gpu_ops.h"

#define DRM_ENGINES 10 /* classes of engines: render, copy, video ... */

struct drm_engine {
	char name[16];
	bool by_ns, by_cycles; /* which of the counters it has */
	uint64_t ns; /* busy for this client since it was opened */
	uint64_t cycles, total; /* the same in clock cycles, and those that went by */
	uint32_t capacity; /* engines of the class */
};

struct drm_use {
	char pci[32];
	uint64_t client; /* the same in every file that shares it */
	unsigned n;
	struct drm_engine engines[DRM_ENGINES];
};

/* drm.c, pure. False: no file of a GPU, or one that says nothing of its use. */
bool drm_parse(const char *text, struct drm_use *ret);
/* Share of time between two looks ns apart at the same client, in millionths, added up over the classes. */
uint32_t drm_share(const struct drm_use *old, const struct drm_use *now, uint64_t ns);

/* drm.c: processes that use u, as struct gpu_ops wants it. Thread gpu-slow. */
int gpu_drm_processes(struct gpu_unit *u, struct gpu_process *ret, unsigned max);

#endif
