// SPDX-License-Identifier: Apache-2.0
/* Idle and busy time per CPU from /proc/stat (Documentation/filesystems/proc.rst 1.7): user, nice,
 * system, idle, iowait, irq, softirq, steal in clock ticks. Steps of a tick, so never exact. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../base/clock.h"
#include "cpustat_internal.h"

#define FIELDS 8
#define FIELD_IDLE 3
#define FIELD_IOWAIT 4

/* The whole file into c->text; grows until it fits, then never again. */
static int read_text(struct cpustat *c)
{
	for (;;) {
		ssize_t n = c->text_size ? pread(c->stat_fd, c->text, c->text_size - 1, 0) : 0;
		char *bigger;

		if (n < 0)
			return -errno;
		if (n > 0 && (size_t)n < c->text_size - 1) {
			c->text[n] = '\0';
			return 0;
		}
		bigger = realloc(c->text, c->text_size ? c->text_size * 2 : 4096);
		if (!bigger)
			return -ENOMEM;
		c->text = bigger;
		c->text_size = c->text_size ? c->text_size * 2 : 4096;
	}
}

static void take_cpu(struct cpustat *c, struct reading *r, unsigned cpu, const uint64_t ticks_ns[FIELDS])
{
	struct cpu_stat *st = &c->cpus[cpu];
	uint64_t idle = ticks_ns[FIELD_IDLE] + ticks_ns[FIELD_IOWAIT], total = 0, idle_add, total_add;
	struct cell_values *v;

	for (unsigned i = 0; i < FIELDS; i++)
		total += ticks_ns[i];
	st->online = true;
	/* iowait may step back (Documentation/filesystems/proc.rst): never below what was seen */
	idle_add = st->seen && idle > st->idle_ns ? idle - st->idle_ns : 0;
	total_add = st->seen && total > st->total_ns ? total - st->total_ns : 0;
	st->idle_ns = st->seen && idle < st->idle_ns ? st->idle_ns : idle;
	st->total_ns = st->seen && total < st->total_ns ? st->total_ns : total;
	st->seen = true;
	r->cpus[cpu].elapsed_ns += total_add;
	r->cpus[cpu].read_mono_ns = r->mono_ns;
	c->packages[c->schema->cpus[cpu].package].busy_ns += total_add > idle_add ? total_add - idle_add : 0;
	v = idle_add ? reading_cell(r, ROW_IDLE, (uint16_t)cpu) : NULL;
	if (v) {
		v->time_ns += idle_add;
		v->switches++;
		v->enabled_ns += idle_add;
		v->running_ns += idle_add;
	}
}

static void parse_line(struct cpustat *c, struct reading *r, char *line)
{
	uint64_t ticks_ns[FIELDS], tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
	unsigned long cpu;
	char *end;

	if (strncmp(line, "cpu", 3) || line[3] < '0' || line[3] > '9')
		return;
	cpu = strtoul(line + 3, &end, 10);
	if (cpu >= c->schema->n_cpus || c->schema->cpus[cpu].package >= c->max_packages)
		return;
	for (unsigned i = 0; i < FIELDS; i++)
		ticks_ns[i] = strtoull(end, &end, 10) * tick_ns;
	take_cpu(c, r, (unsigned)cpu, ticks_ns);
}

/* The first online CPU of each package, packages packed to the front of the array. */
static void share_packages(struct cpustat *c)
{
	uint64_t all = 0;
	unsigned n = 0;

	for (unsigned p = 0; p < c->max_packages; p++) {
		unsigned cpu = 0;

		while (cpu < c->schema->n_cpus && (!c->cpus[cpu].online || c->schema->cpus[cpu].package != p))
			cpu++;
		if (cpu == c->schema->n_cpus)
			continue;
		c->packages[n].busy_ns = c->packages[p].busy_ns;
		c->packages[n].cpu = (uint16_t)cpu;
		all += c->packages[n++].busy_ns;
	}
	for (unsigned i = 0; i < n; i++)
		c->packages[i].busy_part = all ? (double)c->packages[i].busy_ns / (double)all : 1.0 / n;
	c->n_packages = n;
}

int cpustat_read_cpus(struct cpustat *c, struct reading *r)
{
	int err = read_text(c);
	char *save = NULL;

	if (err)
		return err;
	for (unsigned p = 0; p < c->max_packages; p++)
		c->packages[p].busy_ns = 0;
	for (unsigned cpu = 0; cpu < c->schema->n_cpus; cpu++)
		c->cpus[cpu].online = false;
	for (char *line = strtok_r(c->text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		parse_line(c, r, line);
	for (unsigned cpu = 0; cpu < c->schema->n_cpus; cpu++) {
		r->cpus[cpu].online_changes += r->cpus[cpu].online != c->cpus[cpu].online;
		r->cpus[cpu].online = c->cpus[cpu].online;
	}
	share_packages(c);
	return c->n_packages ? 0 : -ENODATA;
}
