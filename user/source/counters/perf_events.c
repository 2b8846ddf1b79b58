// SPDX-License-Identifier: Apache-2.0
/* Perf events of the counters program: one descriptor per event and CPU, whatever the number of
 * cgroups. Pinned while all fit, so that a plain read is right or an error; scaled otherwise. */
#include <bpf/bpf.h>
#include <errno.h>
#include <unistd.h>
#include "counters_internal.h"

#define SLOTS_CORE JD_MAX_EVENTS

static bool has_cpu(const uint8_t *bits, unsigned cpu)
{
	return cpu < 1024 && bits[cpu / 8] & (1u << (cpu % 8));
}

/* The encoding of an event on a CPU; NULL where that CPU's PMU has none. */
static const struct event_variant *variant_for(const struct event_variants *v, unsigned cpu)
{
	for (unsigned i = 0; i < v->n; i++)
		if (has_cpu(v->v[i].cpus, cpu))
			return &v->v[i];
	return NULL;
}

static int open_event(struct counters *c, const struct event_desc *ev, const struct event_variants *v, unsigned cpu)
{
	const struct event_variant *at = variant_for(v, cpu);
	bool pinned = !c->schema->multiplexed;

	if (at)
		return c->seam.open(c->seam.ctx, at->type, at->config, at->config1, at->config2, (int)cpu, pinned);
	if (v->n || (ev->cpus_only_known && !has_cpu(ev->cpus, cpu)))
		return -ENOENT;
	return c->seam.open(c->seam.ctx, ev->type, ev->config, ev->config1, ev->config2, (int)cpu, pinned);
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

/* Tried on one CPU of every kind: the first online one of each variant of each event. */
bool counters_must_multiplex(struct counters *c)
{
	uint8_t tried[1024 / 8] = { 0 };

	for (unsigned cpu = 0; cpu < c->n_cpus && cpu < 1024; cpu++) {
		bool fresh = cpu == 0;

		for (unsigned i = 0; i < c->schema->core.n; i++) {
			const struct event_variants *v = &c->core_variants[i];

			for (unsigned k = 0; k < v->n; k++)
				if (has_cpu(v->v[k].cpus, cpu) && !(tried[i] & (1u << k))) {
					tried[i] |= (uint8_t)(1u << k);
					fresh = true;
				}
		}
		if (fresh && has_cpu(c->online_bits, cpu) &&
		    events_fit_variants(&c->seam, &c->schema->core, c->core_variants, (int)cpu) == 0)
			return true;
	}
	return false;
}
