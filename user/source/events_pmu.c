/* SPDX-License-Identifier: Apache-2.0 */
/* What sysfs says of the PMUs: Documentation/ABI/testing/sysfs-bus-event_source-devices*. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "events_internal.h"
#include "../base/parse.h"

#define PMU_DIR "/sys/bus/event_source/devices"

static int read_cpus(const struct fsroot *root, const char *pmu, const char *file, uint8_t *bits)
{
	char path[256], text[4096];
	int ret;

	snprintf(path, sizeof(path), PMU_DIR "/%s/%s", pmu, file);
	ret = fsroot_read(root, path, text, sizeof(text));
	return ret < 0 ? ret : parse_cpulist(text, bits, 1024);
}

int pmu_load(const struct fsroot *root, const char *pmu, struct encoding *e)
{
	char path[256];
	uint64_t type;
	int ret;

	if (strlen(pmu) >= sizeof(e->pmu))
		return -ENAMETOOLONG;
	snprintf(path, sizeof(path), PMU_DIR "/%s/type", pmu);
	ret = fsroot_read_u64(root, path, &type);
	if (ret < 0)
		return ret;
	if (type > UINT32_MAX)
		return -ERANGE;
	e->type = (uint32_t)type;
	snprintf(e->pmu, sizeof(e->pmu), "%s", pmu);
	/* `cpus`: the CPUs that have this PMU; `cpumask`: those that count for their whole package. */
	e->cpus_known = read_cpus(root, pmu, "cpus", e->cpus) > 0;
	if (!e->cpus_known)
		e->cpus_known = e->whole_package = read_cpus(root, pmu, "cpumask", e->cpus) > 0;
	return 0;
}

/* Calls fn with each PMU's name until it returns true. */
static bool each_pmu(const struct fsroot *root, bool (*fn)(const char *name, void *ctx), void *ctx)
{
	DIR *d = fsroot_opendir(root, PMU_DIR);
	const struct dirent *entry;
	bool found = false;

	if (!d)
		return false;
	while (!found && (entry = readdir(d)))
		found = entry->d_name[0] != '.' && strlen(entry->d_name) < PMU_NAME_MAX && fn(entry->d_name, ctx);
	closedir(d);
	return found;
}

struct by_type {
	const struct fsroot *root;
	uint32_t type;
	struct encoding e;
};

static bool type_matches(const char *name, void *ctx)
{
	struct by_type *b = ctx;

	memset(&b->e, 0, sizeof(b->e));
	return pmu_load(b->root, name, &b->e) == 0 && b->e.type == b->type;
}

int pmu_load_by_type(const struct fsroot *root, uint32_t type, struct encoding *e)
{
	struct by_type b = { .root = root, .type = type };

	if (!each_pmu(root, type_matches, &b))
		return -ENOENT;
	memcpy(b.e.config, e->config, sizeof(b.e.config));
	*e = b.e;
	return 0;
}

struct hybrid {
	const struct fsroot *root;
	char (*names)[PMU_NAME_MAX];
	unsigned n;
};

static bool take_hybrid(const char *name, void *ctx)
{
	struct hybrid *h = ctx;
	struct encoding e = { 0 };

	if (strncmp(name, "cpu_", 4) == 0 && pmu_load(h->root, name, &e) == 0 && e.cpus_known && !e.whole_package)
		snprintf(h->names[h->n++], PMU_NAME_MAX, "%s", name);
	return h->n == EVENT_MAX_ENCODINGS;
}

static int core_first(const void *a, const void *b)
{
	bool core_a = strcmp(a, "cpu_core") == 0, core_b = strcmp(b, "cpu_core") == 0;

	return core_a != core_b ? (int)core_b - (int)core_a : strcmp(a, b);
}

unsigned pmu_hybrid(const struct fsroot *root, char ret_names[EVENT_MAX_ENCODINGS][PMU_NAME_MAX])
{
	struct hybrid h = { .root = root, .names = ret_names };

	each_pmu(root, take_hybrid, &h);
	qsort(ret_names, h.n, PMU_NAME_MAX, core_first);
	return h.n;
}

static bool name_is_arm(const char *name, void *ctx)
{
	return strncmp(name, "armv", 4) == 0;
}

bool pmu_is_arm(const struct fsroot *root)
{
	return each_pmu(root, name_is_arm, NULL);
}

struct offers {
	struct nearest *n;
	const char *wanted;
};

static bool offer_pmu(const char *name, void *ctx)
{
	struct offers *o = ctx;

	nearest_offer(o->n, o->wanted, name);
	return false;
}

void pmu_nearest(const struct fsroot *root, const char *wanted, struct nearest *n)
{
	each_pmu(root, offer_pmu, &(struct offers){ .n = n, .wanted = wanted });
}

void pmu_event_nearest(const struct fsroot *root, const char *pmu, const char *folder, const char *wanted,
		       struct nearest *n)
{
	char path[256];
	const struct dirent *entry;
	DIR *d;

	snprintf(path, sizeof(path), PMU_DIR "/%s/%s", pmu, folder);
	d = fsroot_opendir(root, path);
	if (!d)
		return;
	while ((entry = readdir(d)))
		if (entry->d_name[0] != '.' && !strchr(entry->d_name, '.')) /* not NAME.scale, NAME.unit */
			nearest_offer(n, wanted, entry->d_name);
	closedir(d);
}

int pmu_read(const struct fsroot *root, const char *pmu, const char *folder, const char *file, char *text, size_t size)
{
	char path[256];

	if (snprintf(path, sizeof(path), PMU_DIR "/%s/%s/%s", pmu, folder, file) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return fsroot_read(root, path, text, size);
}
