/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs: NVIDIA through NVML, AMD and Intel through hwmon and DRM in sysfs (docs/gpu.md). Drivers are asked by
 * threads of their own: the measuring thread takes the newest finished values with their own time and never
 * waits. Each GPU is a domain gpu-N of the schema. */
#ifndef JD_GPU_H
#define JD_GPU_H
#include "base/err.h"
#include "base/fsroot.h"
#include "model/cgroup.h"
#include "model/gpu.h"
#include "model/reading.h"

#define GPU_ROW_NS 150000000ull /* pace of gpu-power.csv (formats of the experiment tree) */

struct gpu_options {
	const char *library; /* path of libnvidia-ml.so.1; NULL = the system's */
	bool wake; /* also ask GPUs that sleep (runtime power management) */
	uint64_t pace_ns; /* between two looks at power and energy; 0 = default */
	const struct hierarchy *hierarchy; /* use is charged to its cgroups; NULL = use is not charged */
};

struct gpus;

/* Adds a domain per GPU to s. No GPU at all is no error: 0, and *ret is NULL or has
 * nothing but warnings. Asks each GPU once, except those
 * that sleep. No thread yet, because capabilities are given up after opening. */
int gpus_open(const struct fsroot *root, const struct gpu_options *o, struct schema *s, struct gpus **ret,
	      struct err *err);
/* True when any GPU (AMD, Intel) needs a look at the descriptors of processes, which takes CAP_SYS_PTRACE and no
 * Landlock. */
bool gpus_look_into_processes(const struct gpus *g);
int gpus_start(struct gpus *g); /* 0 or -errno; NULL accepted */
/* Measuring thread: newest energy into r->domains, use of rows since the last call into r. Never waits. */
void gpus_read(struct gpus *g, struct reading *r, const struct cgroup_table *t);
/* One line about a change since the last call: lost, back, reset, counter and power that disagree. */
bool gpus_next_warning(struct gpus *g, char *ret_text, size_t size);
void gpus_close(struct gpus *g); /* NULL accepted; waits for the call in progress */

unsigned gpus_count(const struct gpus *g); /* NULL: 0 */
/* A copy of the present description of GPU i. */
void gpus_desc(struct gpus *g, unsigned i, struct gpu_desc *ret);

/* For the recorder. Rows and samples are kept in rings of bounded length; each reader has its own cursor and
 * may be on any thread (not the measuring one: it takes a lock). */
struct gpu_cursor {
	uint64_t rows, samples; /* numbers of the next ones; 0 = from the oldest kept */
	uint64_t missed; /* overwritten before this reader came */
};
/* Full rows every row_ns and the driver's rings every 1.5 s, until called with 0. Counted: each caller with
 * row_ns takes it back with 0; the shortest pace holds. */
void gpus_record(struct gpus *g, uint64_t row_ns);
/* A cursor that sees only rows and samples from now on. */
void gpus_cursor(struct gpus *g, struct gpu_cursor *ret);
bool gpus_next_row(struct gpus *g, struct gpu_cursor *c, struct gpu_row *ret); /* false = none now */
bool gpus_next_sample(struct gpus *g, struct gpu_cursor *c, struct gpu_sample *ret); /* stamps of a ring ascend */

#endif
