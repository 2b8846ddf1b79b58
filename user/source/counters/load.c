// SPDX-License-Identifier: Apache-2.0
/* Loading the counters program: settings and sizes between open and load, maps into memory, and the choice of a
 * trigger. A trigger is taken only after a forced switch was counted. */
#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "counters.skel.h"
#include "rows.h"
#include "source/bpf_load.h"

static const char *const trigger_names[] = {
	[TRIGGER_TP_BTF] = "tp_btf",
	[TRIGGER_RAW_TP] = "raw_tp",
	[TRIGGER_PERF_EVENT] = "perf_event",
};

static unsigned perf_mask(const struct event_set *set)
{
	unsigned mask = 0;

	for (unsigned i = 0; i < set->n; i++)
		if (set->ev[i].kind == EVENT_PERF)
			mask |= 1u << i;
	return mask;
}

/* Banks for every slot take too much on machines with many CPUs, and no CPU runs every cgroup between two flushes. */
#define BANKS_BYTES (32ull << 20)
#define BANK_ROWS_LEAST 1024u

void counters_set_sizes(struct counters *c)
{
	uint64_t fit;

	c->row_bytes = offsetof(struct jd_row, counters) + c->schema->core.n * sizeof(uint64_t);
	fit = BANKS_BYTES / ((uint64_t)c->n_cpus * JD_BANKS * (c->row_bytes + sizeof(uint64_t)));
	if (fit < BANK_ROWS_LEAST)
		fit = BANK_ROWS_LEAST;
	if (c->o->bank_rows)
		fit = c->o->bank_rows;
	if (fit > c->max_slots)
		fit = c->max_slots;
	c->bank_rows = (uint32_t)(fit + JD_ROWS_ALIGN - 1) / JD_ROWS_ALIGN * JD_ROWS_ALIGN;
	c->wake_row = c->bank_rows < c->max_slots ? c->bank_rows / 2 : 0;
}

static void size_maps(struct counters *c)
{
	struct counters_bpf *s = c->skel;
	__u32 rows = c->n_cpus * JD_BANKS * c->bank_rows;

	bpf_map__set_max_entries(s->maps.events, (JD_MAX_EVENTS + JD_MAX_MSR_EVENTS) * c->n_cpus);
	bpf_map__set_max_entries(s->maps.states, c->n_cpus);
	bpf_map__set_value_size(s->maps.rows, (__u32)c->row_bytes);
	bpf_map__set_max_entries(s->maps.rows, rows);
	bpf_map__set_max_entries(s->maps.row_slots, rows);
	bpf_map__set_max_entries(s->maps.mux_rows, c->schema->multiplexed ? rows : 1);
	bpf_map__set_max_entries(s->maps.full, (__u32)sysconf(_SC_PAGESIZE));
	bpf_map__set_max_entries(s->maps.places, c->n_cpus * c->max_slots);
	bpf_map__set_max_entries(s->maps.slots, c->max_slots);
	bpf_map__set_max_entries(s->maps.free_slots, c->max_slots);
	bpf_map__set_max_entries(s->maps.slot_info, c->max_slots);
	bpf_map__set_max_entries(s->maps.subtrees, c->max_slots * JD_QUOTA_LEVELS);
}

static void set_programs(struct counters_bpf *s, enum trigger_mode trigger)
{
	bpf_choose_entries(s->obj, trigger == TRIGGER_TP_BTF);
	if (trigger == TRIGGER_PERF_EVENT)
		bpf_program__set_autoload(s->progs.switch_raw, false);
	bpf_program__set_autoload(s->progs.switch_perf, trigger == TRIGGER_PERF_EVENT);
}

/* Where an event of the switch program stands among the counters. */
static unsigned column_of(const struct event_set *set, enum event_kind kind)
{
	for (unsigned i = 0; i < set->n; i++)
		if (set->ev[i].kind == kind)
			return i;
	return JD_NO_COLUMN;
}

static void set_settings(struct counters *c, enum trigger_mode trigger)
{
	const struct counters_options *o = c->o;
	struct counters_bpf *s = c->skel;

	c->clock_ktime = o->clock == CLOCKMODE_KTIME || trigger == TRIGGER_PERF_EVENT;
	s->rodata->n_cpus = c->n_cpus;
	s->rodata->max_slots = c->max_slots;
	s->rodata->bank_rows = c->bank_rows;
	s->rodata->wake_row = c->wake_row;
	s->rodata->core_mask = perf_mask(&c->schema->core);
	s->rodata->msr_mask = perf_mask(&c->schema->msr);
	s->rodata->sibling_column = column_of(&c->schema->core, EVENT_SIBLING_BUSY);
	s->rodata->wakeup_column = column_of(&c->schema->core, EVENT_IDLE_EXITS);
	s->rodata->others_column = column_of(&c->schema->core, EVENT_OTHERS_BUSY);
	s->rodata->quota = (__u32)(o->quota ? o->quota : o->max_cgroups / 4);
	s->rodata->multiplexed = c->schema->multiplexed;
	s->rodata->hierarchy_v1 = !o->hierarchy->v2;
	s->rodata->clock_ktime = c->clock_ktime;
	s->rodata->charge_current = trigger == TRIGGER_PERF_EVENT;
}

static int map_all(struct counters *c)
{
	struct counters_bpf *s = c->skel;
	int rc = 0;

	c->states = bpf_map_memory(s->maps.states, true, &rc);
	c->rows = bpf_map_memory(s->maps.rows, true, &rc);
	c->row_slots = bpf_map_memory(s->maps.row_slots, false, &rc);
	c->info = bpf_map_memory(s->maps.slot_info, false, &rc);
	if (c->schema->multiplexed)
		c->mux_rows = bpf_map_memory(s->maps.mux_rows, true, &rc);
	return rc;
}

/* Which CPUs they are shows in their states. */
static int hear_of_full(void *arg, void *record, size_t n)
{
	return 0;
}

static int fill_tables(struct counters *c)
{
	int fd = bpf_map__fd(c->skel->maps.free_slots);

	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++) {
		struct jd_cpu_state *st = &c->states[cpu];

		st->key = JD_KEY_NONE;
		st->row = JD_NO_ROW;
		st->n_rows[0] = st->n_rows[1] = JD_FIRST_SLOT;
		st->epoch = 1;
		st->calibrate = JD_CALIBRATIONS;
		counters_set_siblings(c, cpu);
	}
	for (__u32 slot = JD_FIRST_SLOT; slot < c->max_slots; slot++)
		if (bpf_map_update_elem(fd, NULL, &slot, BPF_ANY))
			return -errno;
	return 0;
}

static int attach(struct counters *c, enum trigger_mode trigger)
{
	struct counters_bpf *s = c->skel;

	if (trigger == TRIGGER_PERF_EVENT) {
		int rc = counters_attach_perf(c);

		if (rc)
			return rc;
	} else {
		c->links[0] = bpf_program__attach(trigger == TRIGGER_TP_BTF ? s->progs.switch_btf :
									      s->progs.switch_raw);
		if (!c->links[0])
			return -errno;
	}
	c->links[1] = bpf_program__attach(trigger == TRIGGER_TP_BTF ? s->progs.attach_btf : s->progs.attach_raw);
	return c->links[1] ? 0 : -errno;
}

/* Sleeping gives the CPU away and takes it back. Every state was empty before the program was attached, and the
 * first switch on a CPU fills its state, whatever the tasks. On a virtual CPU that is kept waiting itself a nap may
 * be over before the CPU was given away, so several naps are taken. */
static bool switch_is_counted(struct counters *c)
{
	struct timespec nap = { .tv_nsec = 2000000 };
	bool counted = false;

	for (int i = 0; i < 8 && !counted; i++) {
		nanosleep(&nap, NULL);
		for (unsigned cpu = 0; cpu < c->n_cpus; cpu++)
			counted |= c->states[cpu].key != JD_KEY_NONE;
	}
	return counted;
}

static int load_trigger(struct counters *c, enum trigger_mode trigger)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = c->o->btf);
	int rc;

	c->skel = counters_bpf__open_opts(&opts);
	if (!c->skel)
		return -errno;
	size_maps(c);
	set_programs(c->skel, trigger);
	set_settings(c, trigger);
	rc = counters_bpf__load(c->skel);
	if (rc)
		return rc;
	rc = map_all(c);
	if (!rc)
		rc = fill_tables(c);
	if (!rc && c->wake_row) {
		c->full = ring_buffer__new(bpf_map__fd(c->skel->maps.full), hear_of_full, NULL, NULL);
		rc = c->full ? 0 : -errno;
	}
	if (rc)
		return rc;
	c->flush_fd = bpf_program__fd(c->skel->progs.flush);
	c->retire_fd = bpf_program__fd(c->skel->progs.retire);
	c->events_fd = bpf_map__fd(c->skel->maps.events);
	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++)
		if (c->cpus[cpu].online)
			c->cpus[cpu].broken = counters_open_events(c, cpu) != 0;
	rc = attach(c, trigger);
	/* perf_event fires only between cgroups; the status says so (schema.idle_merged) */
	if (rc || trigger == TRIGGER_PERF_EVENT)
		return rc;
	return switch_is_counted(c) ? 0 : -ENODATA;
}

static const char *cause_of(enum trigger_mode trigger, int rc)
{
	if (rc == -ENODATA)
		return "attached, but a forced switch was not counted";
	if (trigger == TRIGGER_PERF_EVENT && rc == -ENOENT)
		return "this kernel has no event of cgroup switches, 5.13 was the first";
	if (trigger == TRIGGER_PERF_EVENT && rc == -ENODEV)
		return "its event counts nothing while no controller is enabled in the root's cgroup.subtree_control";
	if (trigger != TRIGGER_PERF_EVENT && rc == -EACCES)
		return "refused by the kernel's verifier or a security module";
	return strerror(-rc);
}

/* Adds one line on why a trigger was passed over. */
static void note_failure(struct counters *c, enum trigger_mode trigger, int rc)
{
	size_t n = strlen(c->reason);
	const char *detail = bpf_log_last();

	snprintf(c->reason + n, sizeof(c->reason) - n, "%s%s: %s%s%.160s", n ? "; " : "", trigger_names[trigger],
		 cause_of(trigger, rc), detail[0] ? ": " : "", detail);
}

static int tell_failure(struct counters *c, enum trigger_mode want, int rc, struct err *err)
{
	if (rc == -EINVAL && bpf_locked_down(c->root))
		return err_set(err, -EPERM, "counters: " BPF_LOCKED_DOWN ", or set trigger: none");
	if (rc == -EPERM || (rc == -EACCES && want == TRIGGER_PERF_EVENT))
		return err_set(
			err, rc,
			"counters: not permitted to load eBPF programs (%s); run as root or give "
			"CAP_BPF and CAP_PERFMON (a container also a seccomp profile that allows bpf), or set trigger: none",
			c->reason);
	if (want == TRIGGER_PERF_EVENT)
		return err_set(err, rc, "counters: no trigger works (%s); %s", c->reason,
			       rc == -ENODEV ?
				       "enable one (echo +pids >cgroup.subtree_control there) or set trigger: auto" :
				       "set trigger: auto");
	return err_set(err, rc,
		       "counters: no trigger works (%s); give kernel BTF with --btf FILE, or set trigger: none",
		       c->reason);
}

/* auto never takes perf_event: it merges root and idle and counts nothing on some hybrid hosts. */
int counters_load(struct counters *c, const struct counters_options *o, struct err *err)
{
	enum trigger_mode want = o->trigger;
	enum trigger_mode first = want == TRIGGER_AUTO ? TRIGGER_TP_BTF : want;
	enum trigger_mode last = want == TRIGGER_AUTO ? TRIGGER_RAW_TP : want;
	int rc = -EINVAL;

	for (enum trigger_mode t = first; t <= last; t++) {
		bpf_log_begin();
		rc = load_trigger(c, t);
		if (!rc) {
			snprintf(c->schema->trigger, sizeof(c->schema->trigger), "%s", trigger_names[t]);
			c->schema->idle_merged = t == TRIGGER_PERF_EVENT;
			return 0;
		}
		note_failure(c, t, rc);
		counters_unload(c);
	}
	return tell_failure(c, want, rc, err);
}

void counters_unload(struct counters *c)
{
	for (unsigned i = 0; i < 2; i++) {
		bpf_link__destroy(c->links[i]);
		c->links[i] = NULL;
	}
	for (unsigned cpu = 0; c->perf_links && cpu < c->n_cpus; cpu++)
		bpf_link__destroy(c->perf_links[cpu]);
	free(c->perf_links);
	c->perf_links = NULL;
	ring_buffer__free(c->full);
	c->full = NULL;
	if (!c->skel)
		return;
	for (unsigned cpu = 0; c->event_fds && cpu < c->n_cpus; cpu++)
		counters_close_events(c, cpu);
	bpf_map_release(c->states, c->skel->maps.states);
	bpf_map_release(c->rows, c->skel->maps.rows);
	bpf_map_release(c->row_slots, c->skel->maps.row_slots);
	bpf_map_release(c->info, c->skel->maps.slot_info);
	bpf_map_release(c->mux_rows, c->skel->maps.mux_rows);
	c->states = NULL;
	c->rows = NULL;
	c->row_slots = NULL;
	c->info = NULL;
	c->mux_rows = NULL;
	counters_bpf__destroy(c->skel);
	c->skel = NULL;
}
