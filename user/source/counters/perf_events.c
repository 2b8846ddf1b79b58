// SPDX-License-Identifier: Apache-2.0
/* Trigger perf_event: the kernel's event of cgroup switches on every CPU, sampled at each, with the
 * program as its handler. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "counters.skel.h"
#include "rows.h"

#define CGROUP_SWITCHES 11 /* PERF_COUNT_SW_CGROUP_SWITCHES, linux/perf_event.h since 5.13 */

static int open_switches(int cpu)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = CGROUP_SWITCHES,
					.sample_period = 1,
					.disabled = 1 };
	long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

/* On v2 the perf_event controller is on by itself, but the kernel only passes it down when the root's
 * controllers change (cgroup_propagate_control, kernel/cgroup/cgroup.c): until one was enabled there, all
 * cgroups are one to this event, and it never fires. */
static bool controllers_reach_down(const struct counters *c)
{
	char text[256];

	if (!c->o->hierarchy->v2 || c->o->hierarchy->private_namespace)
		return true;
	return fsroot_readf(c->root, text, sizeof(text), "%s/cgroup.subtree_control", c->o->hierarchy->mount) != 0;
}

int counters_attach_perf_cpu(struct counters *c, unsigned cpu)
{
	int fd, err;

	bpf_link__destroy(c->perf_links[cpu]);
	c->perf_links[cpu] = NULL;
	fd = open_switches((int)cpu);
	if (fd < 0)
		return fd;
	c->perf_links[cpu] = bpf_program__attach_perf_event(c->skel->progs.switch_perf, fd);
	if (c->perf_links[cpu])
		return 0;
	err = -errno;
	close(fd);
	return err;
}

int counters_attach_perf(struct counters *c)
{
	c->perf_links = calloc(c->n_cpus, sizeof(struct bpf_link *));
	if (!c->perf_links)
		return -ENOMEM;
	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++) {
		int rc = c->cpus[cpu].online ? counters_attach_perf_cpu(c, cpu) : 0;

		if (rc)
			return rc;
	}
	if (!controllers_reach_down(c))
		return -ENODEV;
	c->visit_idle = true; /* this trigger does not see idle, so the programs cannot tell which CPU is idle */
	return 0;
}

/* Perf events of the counters program: one descriptor per event and CPU, whatever the number of
 * cgroups. Pinned while all fit, so that a plain read is right or an error; scaled otherwise. */

#define SLOTS_CORE JD_MAX_EVENTS

static bool has_cpu(const uint8_t *bits, unsigned cpu)
{
	return cpu < 1024 && bits[cpu / 8] & (1u << (cpu % 8));
}

static int open_event(struct counters *c, const struct event_desc *ev, const struct event_variants *v, unsigned cpu)
{
	struct event_variant at;

	if (event_on_cpu(ev, v, cpu, &at) < 0)
		return -ENOENT;
	return c->seam.open(c->seam.ctx, &at, (int)cpu, !c->schema->multiplexed);
}

static int *event_fd(struct counters *c, unsigned event, unsigned cpu)
{
	return &c->event_fds[(size_t)event * c->n_cpus + cpu];
}

static unsigned open_set(struct counters *c, const struct event_set *set, const struct event_variants *variants,
			 unsigned first, unsigned cpu)
{
	unsigned failed = 0;

	for (unsigned i = 0; i < set->n; i++) {
		__u32 at = (first + i) * c->n_cpus + cpu;
		int fd;

		if (set->ev[i].kind != EVENT_PERF)
			continue;
		fd = open_event(c, &set->ev[i], &variants[i], cpu);
		if (fd < 0) {
			failed += fd != -ENOENT;
			continue;
		}
		*event_fd(c, first + i, cpu) = fd;
		if (bpf_map_update_elem(c->events_fd, &at, &fd, BPF_ANY))
			failed++;
	}
	return failed;
}

unsigned counters_open_events(struct counters *c, unsigned cpu)
{
	counters_close_events(c, cpu);
	return open_set(c, &c->schema->core, c->core_variants, 0, cpu) +
	       open_set(c, &c->schema->msr, c->msr_variants, SLOTS_CORE, cpu);
}

void counters_close_events(struct counters *c, unsigned cpu)
{
	for (unsigned e = 0; e < JD_MAX_EVENTS + JD_MAX_MSR_EVENTS; e++) {
		__u32 at = e * c->n_cpus + cpu;
		int *fd = event_fd(c, e, cpu);

		if (*fd < 0)
			continue;
		bpf_map_delete_elem(c->events_fd, &at);
		close(*fd);
		*fd = -1;
	}
}

/* True when the events do not fit on the PMU at once. Tried on one CPU of every kind: the first online one of each
 * variant of each event. */
bool counters_must_multiplex(struct counters *c)
{
	uint8_t tried[SCHEMA_MAX_EVENTS] = { 0 }; /* by event: its variants, a bit each */
	bool first = true;

	for (unsigned cpu = 0; cpu < c->n_cpus && cpu < 1024; cpu++) {
		bool fresh = first;

		if (!has_cpu(c->online_bits, cpu))
			continue;
		first = false;
		for (unsigned i = 0; i < c->schema->core.n; i++) {
			const struct event_variants *v = &c->core_variants[i];

			for (unsigned k = 0; k < v->n; k++)
				if (has_cpu(v->v[k].cpus, cpu) && !(tried[i] & (1u << k))) {
					tried[i] |= (uint8_t)(1u << k);
					fresh = true;
				}
		}
		if (fresh && events_fit_variants(&c->seam, &c->schema->core, c->core_variants, (int)cpu) == 0)
			return true;
	}
	return false;
}
