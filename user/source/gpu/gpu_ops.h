/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs and the ways to ask them. The thread "gpu" asks for power, energy and rows. The thread "gpu-slow" makes the
 * calls that block (PCIe, processes). Both publish under `lock`, which the measuring thread only tries. */
#ifndef JD_GPU_OPS_H
#define JD_GPU_OPS_H
#include <pthread.h>
#include "gpus.h"
#include "source/cgroup/hierarchy.h"
#include "source/pacer.h"

#define GPU_MAX_PROCESSES 256
#define GPU_MAX_SHARES 64 /* cgroups that use one GPU at a time; the use of further ones is not charged */
#define GPU_MAX_SAMPLES 1024 /* the driver keeps about 120 of each ring */
#define GPU_KEPT_ROWS 512 /* of all GPUs, for cursors */
#define GPU_KEPT_SAMPLES 8192

/* Energy of one GPU from its counter, its power, or both (work.c). Pure. */
struct gpu_energy {
	bool have_counter, have_power, counting; /* counting: `uj` is made of the counter */
	bool begun; /* a value was seen: energy before it is not known */
	uint64_t counter_mj, counter_ns; /* as last seen to move */
	uint64_t power_mw, power_ns;
	uint64_t uj, time_ns; /* cumulative, and of when */
	uint64_t by_counter_uj, by_power_uj; /* both ways, since the last comparison */
	uint64_t rest; /* of the integral, in mW x ns, below 1 uJ */
	uint64_t compare_ns; /* start of that comparison */
	uint64_t resets, dropped, gaps;
	bool carries; /* the counter is asked now and then, and power carries `uj` from one answer to the next */
	int64_t behind_uj; /* what the counter has counted and `uj` has not; negative: the reverse */
	int64_t mend_uj; /* the part of it that the next looks add to what power carries */
};
void gpu_energy_start(struct gpu_energy *e, uint64_t now_ns);
/* From now on not every look asks the counter. */
void gpu_energy_carry(struct gpu_energy *e);
/* A reading at now: where power carries the energy, it carries it up to there. */
void gpu_energy_reach(struct gpu_energy *e, uint64_t now_ns);
/* The counter says mj at now. */
void gpu_energy_counter(struct gpu_energy *e, uint64_t mj, uint64_t now_ns);
/* The sensor says mw at now. */
void gpu_energy_power(struct gpu_energy *e, uint64_t mw, uint64_t now_ns);
/* The GPU gave no values for a while (asleep, lost): the next value is not joined to the one before. */
void gpu_energy_gap(struct gpu_energy *e);
/* The difference of the two ways relative to the counter, once enough was seen; false = not yet. */
bool gpu_energy_compare(struct gpu_energy *e, uint64_t now_ns, double *ret_gap);

#define GPU_ENERGY_FIELDS (GPU_BIT(GPU_TOTAL_ENERGY) | GPU_BIT(GPU_POWER))

struct gpu_process {
	uint32_t pid, ppm;
}; /* of one GPU: share of time, in millionths */
struct gpu_share {
	uint64_t cgroup; /* 0 = not known any more */
	uint32_t ppm, row;
	uint64_t use_ns; /* added up, not charged yet */
};

enum gpu_state { GPU_OK, GPU_ASLEEP, GPU_LOST };

struct gpu_unit;
/* A way to ask GPUs. Calls return 0 or -errno as nvml_errno says; ret untouched on failure. */
struct gpu_ops {
	enum energy_interface interface;
	/* Values of the wanted fields into row, in the order of the columns. A single one that fails has no bit. */
	int (*row)(struct gpu_unit *u, uint32_t wanted, struct gpu_row *row);
	int (*power_now)(struct gpu_unit *u, int64_t *ret_mw); /* not averaged over time; NULL = never */
	int (*pcie)(struct gpu_unit *u, int64_t *ret_tx, int64_t *ret_rx); /* may block; NULL = never */
	int (*samples)(struct gpu_unit *u, enum gpu_ring ring, struct gpu_sample *ret,
		       unsigned max); /* number; NULL = never */
	/* Use since the call before: number, or -EAGAIN = nothing new yet; NULL = never. */
	int (*processes)(struct gpu_unit *u, struct gpu_process *ret, unsigned max);
	uint64_t processes_ns; /* least time between two of these calls */
	int (*revive)(struct gpu_unit *u); /* after it was lost: asked every few seconds */
};

struct gpu_unit {
	struct gpus *g;
	const struct gpu_ops *ops;
	struct gpu_desc desc;
	void *device; /* the backend's */
	char sysfs[160]; /* of the PCI device, "" = unknown */
	/* thread gpu */
	enum gpu_state state;
	uint64_t retry_ns, pause_ns, row_due_ns, samples_due_ns, counter_due_ns;
	uint64_t counter_cost_ns; /* CPU time that an answer of the counter takes */
	unsigned mute; /* looks in a row that told neither energy nor power */
	const char *why; /* meaning of the last call that failed; NULL = not known */
	bool denied; /* that call failed for want of rights */
	bool gap_told;
	int64_t ring_us[GPU_RINGS]; /* newest stamp seen */
	uint8_t ring_refused[GPU_RINGS];
	/* thread gpu-slow */
	uint64_t processes_due_ns, processes_cost_ns;
	uint64_t process_us; /* newest stamp of process use */
	bool no_process_use;
	/* published, under lock */
	struct gpu_energy energy;
	enum gpu_state seen_state;
	int64_t pci_tx, pci_rx;
	uint64_t pci_ns;
	unsigned n_shares;
	struct gpu_share shares[GPU_MAX_SHARES];
	uint64_t shares_ns; /* when they were asked; 0 = never */
	uint64_t used_ns; /* use is added up to here */
};

struct pid_entry {
	uint32_t pid;
	uint64_t cgroup, seen_ns;
};

struct gpus {
	const struct fsroot *root;
	struct hierarchy *hierarchy; /* NULL: use is not charged */
	bool wake;
	uint64_t pace_ns;
	unsigned n;
	struct gpu_unit *units;
	struct nvml *nvml; /* NULL: none */
	struct gpu_drm *drm; /* thread gpu-slow (drm.c); NULL: not looked for yet */
	pthread_rwlock_t nvml_use; /* written while the library is initialized anew */
	struct pacer *fast, *slow;
	struct pid_entry pids[GPU_MAX_PROCESSES]; /* thread gpu-slow: processes seen last time */
	unsigned n_pids;
	pthread_mutex_t lock; /* the rest, and what units publish */
	unsigned recording;
	uint64_t row_ns; /* pace of full rows, 0 = not wanted */
	struct gpu_row *rows; /* rings; NULL until somebody recorded */
	struct gpu_sample *samples;
	uint64_t n_rows, n_samples; /* ever put */
	char warning[8][200];
	unsigned n_warnings;
};

/* nvidia.c, cards.c: append their GPUs (g->units has room for GPU_MAX). Absence is no error. */
int gpu_nvml_open(struct gpus *g, const char *library, struct err *err);
void gpu_nvml_close(struct gpus *g);
int gpu_sysfs_open(struct gpus *g);
/* A new unit, -1 index when there is no room. */
struct gpu_unit *gpu_add(struct gpus *g, const struct gpu_ops *ops, const char *vendor);
void gpu_sysfs_close_unit(struct gpu_unit *u);
/* poll.c: the steps of both threads. */
uint64_t gpu_step(void *gpus);
/* The first look, before there is a thread: energy is counted from here on. Without it the first interval would lack
 * the energy before the thread's first look. */
void gpu_first_look(struct gpu_unit *u);
uint64_t gpu_slow_step(void *gpus);

/* gpus.c; lock held. */
void gpu_put_row(struct gpus *g, const struct gpu_row *row);
void gpu_put_sample(struct gpus *g, const struct gpu_sample *s);
/* users.c: puts the cgroups that use u into u->shares. Thread gpu-slow. */
void gpu_ask_processes(struct gpu_unit *u, uint64_t now_ns);
/* Measuring thread, lock held: use of rows up to the newest energy. */
void gpu_charge_use(struct gpu_unit *u, struct reading *r);
void gpu_warn(struct gpus *g, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* lock held */

#endif
