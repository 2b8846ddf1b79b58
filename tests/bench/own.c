// SPDX-License-Identifier: Apache-2.0
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "own.h"
#include "source/counters/rows.h"

static void own_detach(struct program *p)
{
	struct own *o = (struct own *)p;

	for (unsigned i = 0; i < o->n_progs; i++)
		close(o->prog_fds[i]);
	counters_close(o->counters);
	if (o->table) {
		lifecycle_close(o->lifecycle);
		reading_free(&o->reading);
		cgroup_table_free(o->table);
	}
	perf_seam_free(&o->seam);
	free(o->schema.cpus);
	fsroot_close(o->root);
	free(o->hierarchy);
	free(o);
}

static void own_stats(const struct program *p, uint64_t *ret_run_ns, uint64_t *ret_runs)
{
	const struct own *o = (const struct own *)p;

	*ret_run_ns = *ret_runs = 0;
	for (unsigned i = 0; i < o->n_progs; i++) {
		uint64_t ns, runs;

		prog_stats_fd(o->prog_fds[i], &ns, &runs);
		*ret_run_ns += ns;
		*ret_runs += runs;
	}
}

static const struct program_ops own_ops = { own_detach, own_stats };

static __u32 last_program_id(void)
{
	__u32 id = 0, next;

	while (!bpf_prog_get_next_id(id, &next))
		id = next;
	return id;
}

/* Its switch program by id: those loaded since, whose name says what they do. */
static void find_programs(struct own *o, __u32 since)
{
	__u32 id = since;

	while (o->n_progs < OWN_MAX_PROGS && !bpf_prog_get_next_id(id, &id)) {
		int fd = bpf_prog_get_fd_by_id(id);
		struct bpf_prog_info info = { 0 };
		__u32 len = sizeof(info);

		if (fd < 0)
			continue;
		if (!bpf_obj_get_info_by_fd(fd, &info, &len) && !strncmp(info.name, "switch_", 7))
			o->prog_fds[o->n_progs++] = fd;
		else
			close(fd);
	}
}

static void die(const struct err *err)
{
	fprintf(stderr, "bench: %s\n", err->text);
	exit(1);
}

/* The same event several times: a configuration may not, a comparison of equal counters must. */
static void make_events(struct own *o, unsigned n_events)
{
	char *name = bench_cycles() ? (char *)"CYCLES" : (char *)"msr/tsc/";
	struct str_list list = { .v = &name, .n = 1 }, none = { 0 };
	struct event_set *set = &o->schema.core;
	struct absent_events absent = { 0 };
	const struct event_group core = { o->root, &o->seam, false, set, o->core, &absent, NULL, TRIGGER_AUTO };
	const struct event_group msr = { o->root, &o->seam, true, &o->schema.msr, o->msr, &absent, NULL, TRIGGER_AUTO };
	struct err err = { 0 };

	o->seam = perf_seam_live();
	if (events_resolve(&list, &core, &err) || events_resolve(&none, &msr, &err))
		die(&err);
	if (absent.n)
		bench_die(name, ENOENT);
	set->n = n_events;
	for (unsigned i = 1; i < n_events; i++) {
		set->ev[i] = set->ev[0];
		o->core[i] = o->core[0];
	}
}

static const uint16_t one_core[2] = { 1, 0 };

/* What the formula adds beside six counters: no third column fits. */
static void add_columns(struct event_set *set)
{
	static const struct event_desc columns[] = { { .name = "SIBLING_BUSY", .kind = EVENT_SIBLING_BUSY },
						     { .name = "IDLE_EXITS", .kind = EVENT_IDLE_EXITS } };

	for (unsigned i = 0; i < sizeof(columns) / sizeof(*columns) && set->n < SCHEMA_MAX_EVENTS; i++)
		set->ev[set->n++] = columns[i];
}

static struct own *open_own(unsigned n_events, uint64_t max_cgroups, bool columns)
{
	struct own *o = calloc(1, sizeof(*o));
	struct err err = { 0 };
	__u32 before = last_program_id();
	uint64_t t0;
	struct counters_options options;

	if (!o || !(o->hierarchy = calloc(1, sizeof(*o->hierarchy))))
		bench_die("counters", ENOMEM);
	o->p.ops = &own_ops;
	if (fsroot_open("/", &o->root))
		bench_die("/", errno);
	if (hierarchy_detect(o->root, HIERARCHY_AUTO, o->hierarchy, &err) || topology_read(o->root, &o->schema, &err))
		die(&err);
	make_events(o, n_events);
	if (columns)
		add_columns(&o->schema.core);
	if (columns && o->schema.n_cpus != 2)
		bench_die("two CPUs as siblings", EINVAL);
	options = (struct counters_options){ .max_cgroups = max_cgroups,
					     .quota = max_cgroups,
					     .root = o->root,
					     .hierarchy = o->hierarchy,
					     .seam = &o->seam,
					     .core_variants = o->core,
					     .msr_variants = o->msr,
					     .siblings = columns ? one_core : NULL };
	t0 = bench_now_ns();
	if (counters_open(&options, &o->schema, &o->counters, &err))
		die(&err);
	o->open_ns = bench_now_ns() - t0;
	find_programs(o, before);
	return o;
}

struct own *own_open(unsigned n_events, uint64_t max_cgroups)
{
	return open_own(n_events, max_cgroups, false);
}

void own_prepare_reading(struct own *o, bool bpf_lifecycle)
{
	struct err err = { 0 };

	o->table = cgroup_table_new();
	if (!o->table || reading_init(&o->reading, &o->schema))
		bench_die("reading", ENOMEM);
	const struct lifecycle_options lo = { .hierarchy = o->hierarchy, .table = o->table, .bpf = bpf_lifecycle };

	if (lifecycle_open(&lo, &o->lifecycle, &err))
		die(&err);
}

void own_read(struct own *o)
{
	lifecycle_poll(o->lifecycle);
	o->reading.number++;
	o->reading.mono_ns = bench_now_ns();
	if (counters_read(o->counters, &o->reading, o->table, o->lifecycle))
		bench_die("counters_read", EIO);
}

size_t own_add_bank(const struct own *o, unsigned cpu, unsigned bank, uint64_t *to)
{
	const struct counters *c = o->counters;
	const size_t words = c->row_bytes / sizeof(uint64_t);
	const unsigned n = c->states[cpu].n_rows[bank] < c->bank_rows ? c->states[cpu].n_rows[bank] : c->bank_rows;
	const uint64_t *row = (const uint64_t *)row_at(c, row_index(c, cpu, bank, 0));

	for (size_t i = 0; i < n * words; i++)
		to[i] += row[i];
	return n * words;
}

struct program *counters_attach(unsigned n_events, uint64_t max_cgroups)
{
	return &own_open(n_events, max_cgroups)->p;
}

struct program *counters_attach_columns(unsigned n_events, uint64_t max_cgroups)
{
	return &open_own(n_events, max_cgroups, true)->p;
}
