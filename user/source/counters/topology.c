/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "topology.h"
#include "base/parse.h"
#include "resolution.h"

#define CPU_DIR "/sys/devices/system/cpu"
#define MAX_CPUS 8192 /* CONFIG_NR_CPUS_RANGE_END of x86_64, the largest of our architectures */
#define MAX_PACKAGE_ID 1023 /* arrays are indexed by package id */
#define CPULIST_MAX 8192 /* sysfs gives at most a page; a page is at most 64 KiB, lists never that long */

struct online_cpus {
	const struct fsroot *root;
	int fd;
	unsigned n_watched;
	struct pollfd *watched; /* by CPU: a file of its own, fd -1 = not open */
};

static bool bit_test(const uint8_t *bits, unsigned i)
{
	return bits[i / 8] >> (i % 8) & 1;
}

static int read_cpulist(const struct fsroot *root, const char *path, uint8_t *bits, size_t n)
{
	char text[CPULIST_MAX];
	int rc = fsroot_read(root, path, text, sizeof(text));

	if (rc < 0)
		return rc;
	return parse_cpulist(text, bits, n);
}

/* A number of a CPU. The fallback where the file is missing (offline CPU, no topology), is -1 (the architecture does not
 * know it, cputopology.rst) or does not fit. */
static uint16_t read_number(const struct fsroot *root, unsigned cpu, const char *file, uint32_t max, uint16_t fallback)
{
	char text[32];
	int64_t id;

	if (fsroot_readf(root, text, sizeof(text), CPU_DIR "/cpu%u/%s", cpu, file) < 0 || parse_i64(text, &id) < 0)
		return fallback;
	return id < 0 || id > max ? fallback : (uint16_t)id;
}

static void read_cpu(const struct fsroot *root, struct cpu_desc *c)
{
	c->package = read_number(root, c->cpu, "topology/physical_package_id", MAX_PACKAGE_ID, 0);
	c->die = read_number(root, c->cpu, "topology/die_id", UINT16_MAX, 0);
	/* Without a core id every CPU counts as a core of its own. */
	c->core = read_number(root, c->cpu, "topology/core_id", UINT16_MAX, c->cpu);
}

static unsigned count_packages(const struct cpu_desc *cpus, unsigned n)
{
	unsigned max = 0;

	for (unsigned i = 0; i < n; i++)
		if (cpus[i].present && cpus[i].package > max)
			max = cpus[i].package;
	return max + 1;
}

static unsigned highest_bit(const uint8_t *bits, unsigned n)
{
	while (n > 0 && !bit_test(bits, n - 1))
		n--;
	return n;
}

/* Intel's hybrid machines have a PMU for each type of core, and its CPUs are known (cpu_core, cpu_atom: pmu_hybrid
 * sorts cpu_core first). */
static bool types_by_pmus(const struct fsroot *root, struct cpu_desc *cpus, unsigned n)
{
	char names[EVENT_MAX_ENCODINGS][PMU_NAME_MAX];
	unsigned n_types = pmu_hybrid(root, names);

	for (unsigned t = 1; t < n_types; t++) {
		struct encoding e = { 0 };

		if (pmu_load(root, names[t], &e) < 0)
			continue;
		for (unsigned i = 0; i < n && i < sizeof(e.cpus) * 8; i++)
			if (bit_test(e.cpus, i))
				cpus[i].core_type = (uint8_t)t;
	}
	return n_types > 0;
}

/* Elsewhere by the scheduler's capacity, 1024 for the fastest cores
 * (Documentation/ABI/testing/sysfs-devices-system-cpu): the number of higher capacities is the type. */
static void types_by_capacity(const struct fsroot *root, struct cpu_desc *cpus, unsigned n)
{
	uint16_t *capacity = calloc(n, sizeof(*capacity)), seen[SCHEMA_CORE_TYPES] = { 0 };
	unsigned n_seen = 0;

	for (unsigned i = 0; capacity && i < n; i++)
		capacity[i] = read_number(root, i, "cpu_capacity", UINT16_MAX, 0);
	for (unsigned below = UINT16_MAX + 1; capacity && n_seen < SCHEMA_CORE_TYPES;) {
		unsigned next = 0;

		for (unsigned i = 0; i < n; i++)
			if (capacity[i] < below && capacity[i] > next)
				next = capacity[i];
		if (!next)
			break;
		seen[n_seen++] = (uint16_t)next;
		below = next;
	}
	for (unsigned i = 0; i < n && n_seen; i++)
		while (cpus[i].core_type + 1u < n_seen && capacity[i] && capacity[i] < seen[cpus[i].core_type])
			cpus[i].core_type++;
	free(capacity);
}

static unsigned read_core_types(const struct fsroot *root, struct cpu_desc *cpus, unsigned n)
{
	unsigned max = 0;

	if (!types_by_pmus(root, cpus, n))
		types_by_capacity(root, cpus, n);
	for (unsigned i = 0; i < n; i++)
		max = cpus[i].core_type > max ? cpus[i].core_type : max;
	return max + 1;
}

unsigned topology_siblings(const struct fsroot *root, unsigned cpu, uint32_t *ret, unsigned most)
{
	uint8_t bits[MAX_CPUS / 8];
	char path[96];
	unsigned n = 0;

	snprintf(path, sizeof(path), CPU_DIR "/cpu%u/topology/thread_siblings_list", cpu);
	if (read_cpulist(root, path, bits, MAX_CPUS) < 0)
		return 0;
	for (unsigned i = 0; i < MAX_CPUS && n < most; i++)
		if (bit_test(bits, i) && i != cpu)
			ret[n++] = i;
	return n;
}

bool topology_smt(const struct fsroot *root)
{
	uint8_t online[MAX_CPUS / 8];
	uint32_t sibling;

	if (read_cpulist(root, CPU_DIR "/online", online, MAX_CPUS) < 0)
		return false;
	for (unsigned i = 0; i < MAX_CPUS; i++)
		if (bit_test(online, i) && topology_siblings(root, i, &sibling, 1))
			return true;
	return false;
}

bool topology_small(const struct fsroot *root, unsigned most)
{
	uint8_t online[MAX_CPUS / 8];
	unsigned n = 0;
	uint16_t package, first = 0;

	if (read_cpulist(root, CPU_DIR "/online", online, MAX_CPUS) < 0)
		return false;
	for (unsigned i = 0; i < MAX_CPUS; i++) {
		if (!bit_test(online, i))
			continue;
		package = read_number(root, i, "topology/physical_package_id", UINT16_MAX, 0);
		first = n++ ? first : package;
		if (n > most || package != first)
			return false;
	}
	return n > 0;
}

int topology_read(const struct fsroot *root, struct schema *s, struct err *err)
{
	uint8_t possible[MAX_CPUS / 8], present[MAX_CPUS / 8];
	struct cpu_desc *cpus;
	unsigned n;
	int rc;

	rc = read_cpulist(root, CPU_DIR "/possible", possible, MAX_CPUS);
	if (rc == -ENOENT)
		rc = read_cpulist(root, CPU_DIR "/online", possible, MAX_CPUS);
	if (rc < 0)
		return err_set(err, rc, "%s/possible: %s; mount sysfs at /sys", CPU_DIR, strerror(-rc));
	n = highest_bit(possible, MAX_CPUS);
	if (n == 0)
		return err_set(err, -ENODATA, "%s/possible: names no CPU; mount sysfs at /sys", CPU_DIR);
	if (read_cpulist(root, CPU_DIR "/present", present, MAX_CPUS) < 0)
		memcpy(present, possible, sizeof(present));
	cpus = calloc(n, sizeof(*cpus));
	if (!cpus)
		return err_set(err, -ENOMEM, "topology: %u CPUs: out of memory; free some", n);
	for (unsigned i = 0; i < n; i++) {
		cpus[i].cpu = (uint16_t)i;
		cpus[i].present = bit_test(possible, i) && bit_test(present, i);
		read_cpu(root, &cpus[i]);
	}
	s->n_cpus = n;
	s->cpus = cpus;
	s->n_packages = count_packages(cpus, n);
	s->n_core_types = read_core_types(root, cpus, n);
	return 0;
}

void topology_refresh(const struct fsroot *root, struct schema *s, unsigned cpu)
{
	struct cpu_desc c;

	if (cpu >= s->n_cpus)
		return;
	c = s->cpus[cpu];
	read_cpu(root, &c);
	/* Columns are fixed by now: a package that was not known at the start has none. */
	if (c.package >= s->n_packages)
		return;
	s->cpus[cpu].present = true; /* it was plugged in, perhaps */
	s->cpus[cpu].package = c.package;
	s->cpus[cpu].die = c.die;
	s->cpus[cpu].core = c.core;
}

int online_open(const struct fsroot *root, struct online_cpus **ret)
{
	struct online_cpus *o;
	int fd = fsroot_openat(root, CPU_DIR "/online", 0);

	if (fd < 0)
		return fd;
	o = calloc(1, sizeof(*o));
	if (!o) {
		close(fd);
		return -ENOMEM;
	}
	o->root = root;
	o->fd = fd;
	*ret = o;
	return 0;
}

int online_read(struct online_cpus *o, uint8_t *bits, unsigned n)
{
	char text[CPULIST_MAX];
	ssize_t len = pread(o->fd, text, sizeof(text) - 1, 0);

	if (len < 0)
		return -errno;
	if (len == sizeof(text) - 1)
		return -EFBIG;
	while (len > 0 && text[len - 1] == '\n')
		len--;
	text[len] = '\0';
	return parse_cpulist(text, bits, n);
}

/* A CPU's topology directory is taken away when it goes offline and made anew before it is back (drivers/base/
 * topology.c), so a file that was opened before is dead for good, and poll says so (kernfs_fop_poll, fs/kernfs/
 * file.c) of all CPUs in one call. poll also reports files that were never read, hence the read. */
static void watch(struct online_cpus *o, unsigned cpu)
{
	char path[96], text[32];
	int fd;

	snprintf(path, sizeof(path), CPU_DIR "/cpu%u/topology/physical_package_id", cpu);
	fd = fsroot_openat(o->root, path, 0);
	if (fd >= 0 && pread(fd, text, sizeof(text), 0) < 0) {
		close(fd);
		fd = -1;
	}
	o->watched[cpu].fd = fd < 0 ? -1 : fd;
}

static void unwatch(struct online_cpus *o, unsigned cpu)
{
	if (o->watched[cpu].fd >= 0)
		close(o->watched[cpu].fd);
	o->watched[cpu].fd = -1;
}

int online_watch(struct online_cpus *o, unsigned n)
{
	o->watched = calloc(n, sizeof(*o->watched));
	if (!o->watched)
		return -ENOMEM;
	o->n_watched = n;
	for (unsigned cpu = 0; cpu < n; cpu++)
		o->watched[cpu].fd = -1;
	return 0;
}

/* True when every possible CPU is watched: each is online until poll says that it went, and no other can come. The list
 * of the kernel need not be read then, which is half of a look. */
static bool watches_all(const struct online_cpus *o)
{
	unsigned n = 0;

	while (n < o->n_watched && o->watched[n].fd >= 0)
		n++;
	return n == o->n_watched && fsroot_is_live(o->root);
}

int online_look(struct online_cpus *o, uint8_t *bits, uint8_t *gone)
{
	unsigned n = o->n_watched;
	int rc = poll(o->watched, n, 0);

	memset(gone, 0, (n + 7) / 8);
	for (unsigned cpu = 0; rc > 0 && cpu < n; cpu++) {
		if (o->watched[cpu].fd < 0 || !o->watched[cpu].revents)
			continue;
		gone[cpu / 8] |= (uint8_t)(1 << cpu % 8);
		unwatch(o, cpu);
	}
	if (rc < 0)
		return -errno;
	if (watches_all(o)) {
		memset(bits, 0xff, (n + 7) / 8);
		return (int)n;
	}
	rc = online_read(o, bits, n);
	for (unsigned cpu = 0; rc >= 0 && cpu < n; cpu++) {
		if (!bit_test(bits, cpu))
			unwatch(o, cpu);
		else if (o->watched[cpu].fd < 0)
			watch(o, cpu);
	}
	return rc;
}

void online_close(struct online_cpus *o)
{
	if (!o)
		return;
	for (unsigned cpu = 0; cpu < o->n_watched; cpu++)
		unwatch(o, cpu);
	free(o->watched);
	close(o->fd);
	free(o);
}

/* "key\t: value" of /proc/cpuinfo; NULL when the line has another key. */
static const char *cpuinfo_value(const char *line, const char *key)
{
	size_t len = strlen(key);

	if (strncmp(line, key, len) != 0)
		return NULL;
	line += len + strspn(line + len, " \t");
	if (*line != ':')
		return NULL;
	return line + 1 + strspn(line + 1, " \t");
}

static void cpuinfo_line(const char *line, struct cpu_model *m)
{
	const char *v;
	uint64_t number;

	if ((v = cpuinfo_value(line, "vendor_id")))
		snprintf(m->vendor, sizeof(m->vendor), "%s", v);
	else if ((v = cpuinfo_value(line, "model name")))
		snprintf(m->name, sizeof(m->name), "%s", v);
	else if ((v = cpuinfo_value(line, "cpu family")) && parse_u64(v, &number) == 0 && number <= UINT32_MAX)
		m->family = (unsigned)number;
	else if ((v = cpuinfo_value(line, "model")) && parse_u64(v, &number) == 0 && number <= UINT32_MAX)
		m->model = (unsigned)number;
}

void cpu_model_read(const struct fsroot *root, struct cpu_model *ret)
{
	char text[4096], *line, *save = NULL;
	ssize_t len;
	int fd = fsroot_openat(root, "/proc/cpuinfo", 0);

	memset(ret, 0, sizeof(*ret));
	if (fd < 0)
		return;
	/* The first CPU's lines are enough, and the whole file is long on large machines. */
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return;
	text[len] = '\0';
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		cpuinfo_line(line, ret);
		if (ret->vendor[0] && ret->family && ret->model && ret->name[0])
			break;
	}
}
