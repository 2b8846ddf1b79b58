/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by cpustat.c (cgroups) and cpustat_cpu.c (idle and busy time per CPU). */
#ifndef JD_CPUSTAT_INTERNAL_H
#define JD_CPUSTAT_INTERNAL_H
#include "../model/cgroup.h"
#include "../model/reading.h"

struct stat_entry {
	uint64_t id;
	struct cgroup *cgroup;
	int fd;
	uint32_t parent, row; /* UINT32_MAX = none */
	bool seen, fresh; /* fresh: born while we run, so its first value is all new */
	uint64_t usage_ns;
	int64_t delta_ns, own_ns, owed_ns;
};

struct cpu_stat {
	bool seen, online;
	uint64_t idle_ns, total_ns;
};

/* Where a package's part of a cgroup's time is put. */
struct package_stat {
	uint16_t cpu;
	bool online;
	uint64_t busy_ns;
	double busy_part;
};

struct cpustat {
	struct schema *schema;
	int mount_fd, stat_fd;
	struct stat_entry *entries;
	uint32_t n, cap;
	struct cpu_stat *cpus; /* schema->n_cpus */
	struct package_stat *packages; /* max_packages; the first n_packages are in use */
	unsigned max_packages; /* of the schema as it was opened: energy domains may raise that number */
	unsigned n_packages;
	char *text;
	size_t text_size;
};

/* Idle and elapsed time of every CPU since the last call, from /proc/stat; how busy each package was. */
int cpustat_read_cpus(struct cpustat *c, struct reading *r);

#endif
