// SPDX-License-Identifier: GPL-2.0-only
/* The PMU "cpu". PERF_TYPE_RAW is free on a guest without a PMU, and its owner is also given the
 * generic hardware and cache events (kernel/events/core.c, perf_init_event). */
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/sched/clock.h>
#include "simpmu.h"

static bool pmu = true;
module_param(pmu, bool, 0444);
static uint counters = 4;
module_param(counters, uint, 0644);
static bool sampling;
module_param(sampling, bool, 0444);

static const s8 generic[PERF_COUNT_HW_MAX] = {
	[PERF_COUNT_HW_CPU_CYCLES] = SIM_CYCLES,
	[PERF_COUNT_HW_INSTRUCTIONS] = SIM_INSTRUCTIONS,
	[PERF_COUNT_HW_CACHE_REFERENCES] = SIM_REFERENCES,
	[PERF_COUNT_HW_CACHE_MISSES] = SIM_MISSES,
	[PERF_COUNT_HW_BRANCH_INSTRUCTIONS] = SIM_BRANCHES,
	[PERF_COUNT_HW_BRANCH_MISSES] = SIM_BRANCH_MISSES,
	[PERF_COUNT_HW_BUS_CYCLES] = SIM_REF_CYCLES,
	[PERF_COUNT_HW_REF_CPU_CYCLES] = SIM_REF_CYCLES,
};

/* Intel's architectural events (SDM 3B, table 20-1): umask << 8 | event. */
static const struct {
	u16 code;
	u8 count;
} raw[] = {
	{ 0x003c, SIM_CYCLES },   { 0x00c0, SIM_INSTRUCTIONS },  { 0x4f2e, SIM_REFERENCES }, { 0x412e, SIM_MISSES },
	{ 0x00c4, SIM_BRANCHES }, { 0x00c5, SIM_BRANCH_MISSES }, { 0x013c, SIM_REF_CYCLES }, { 0x0300, SIM_REF_CYCLES },
};

static int count_of_raw(u64 config)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(raw); i++) {
		if (raw[i].code == config)
			return raw[i].count;
	}
	return -EINVAL;
}

static int count_of_cache(u64 config)
{
	u64 ll_read = PERF_COUNT_HW_CACHE_LL | PERF_COUNT_HW_CACHE_OP_READ << 8;

	if (config == (ll_read | PERF_COUNT_HW_CACHE_RESULT_ACCESS << 16))
		return SIM_REFERENCES;
	return config == (ll_read | PERF_COUNT_HW_CACHE_RESULT_MISS << 16) ? SIM_MISSES : -ENOENT;
}

static int count_of(const struct perf_event_attr *attr)
{
	switch (attr->type) {
	case PERF_TYPE_RAW:
		return count_of_raw(attr->config);
	case PERF_TYPE_HARDWARE:
		if (attr->config >= PERF_COUNT_HW_MAX || !generic[attr->config])
			return -ENOENT;
		return generic[attr->config];
	case PERF_TYPE_HW_CACHE:
		return count_of_cache(attr->config);
	}
	return -ENOENT;
}

static int event_init(struct perf_event *event)
{
	int count = count_of(&event->attr);

	if (count < 0)
		return count;
	if (is_sampling_event(event) && !sampling)
		return -EOPNOTSUPP;
	event->hw.config = count;
	return 0;
}

static void event_take(struct perf_event *event, u64 now)
{
	u64 before;

	if (event->hw.state & PERF_HES_STOPPED)
		return;
	before = local64_xchg(&event->hw.prev_count, now);
	local64_add(now - before, &event->count);
}

static void event_read(struct perf_event *event)
{
	event_take(event, sim_count_here(event->hw.config));
}

/* How long ago perf looked at its clock, which is when it books this event as coming or going. A host may take
 * the CPU away in between; a real counter would stand then, and ours is made of time. */
static u64 behind(struct perf_event *event)
{
	u64 now = local_clock(), booked = READ_ONCE(event->ctx->timestamp);

	return now > booked && now - booked < NSEC_PER_SEC ? now - booked : 0;
}

static void event_start(struct perf_event *event, int flags)
{
	event->hw.state = 0;
	local64_set(&event->hw.prev_count, sim_count_before(event->hw.config, behind(event)));
	if (is_sampling_event(event))
		sim_sample_start(event, local64_read(&event->hw.prev_count));
}

static void event_stop(struct perf_event *event, int flags)
{
	event_take(event, sim_count_before(event->hw.config, behind(event)));
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (is_sampling_event(event))
		sim_sample_stop(event, local64_read(&event->hw.prev_count));
}

static int event_add(struct perf_event *event, int flags)
{
	struct sim_cpu *c = sim_cpu_of(smp_processor_id());

	if (c->n_events >= READ_ONCE(counters))
		return -EAGAIN;
	if (is_sampling_event(event) && sim_sample_add(event))
		return -EAGAIN;
	c->n_events++;
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START)
		event_start(event, flags);
	return 0;
}

static void event_del(struct perf_event *event, int flags)
{
	event_stop(event, PERF_EF_UPDATE);
	if (is_sampling_event(event))
		sim_sample_del(event);
	sim_cpu_of(smp_processor_id())->n_events--;
}

/* As hardware does, so that what perf books as running time is what was counted in it. */
static void event_disable_all(struct pmu *all)
{
	sim_hold_here(true);
}

static void event_enable_all(struct pmu *all)
{
	sim_hold_here(false);
}

PMU_FORMAT_ATTR(event, "config:0-7");
PMU_FORMAT_ATTR(umask, "config:8-15");
static struct attribute *format_attrs[] = { &format_attr_event.attr, &format_attr_umask.attr, NULL };
static const struct attribute_group format_group = { .name = "format", .attrs = format_attrs };

/* The names become text: a formatter may put no space into them. */
/* clang-format off */
PMU_EVENT_ATTR_STRING(cycles, ev_cycles, "event=0x3c");
PMU_EVENT_ATTR_STRING(instructions, ev_instructions, "event=0xc0");
PMU_EVENT_ATTR_STRING(cache-references, ev_references, "event=0x2e,umask=0x4f");
PMU_EVENT_ATTR_STRING(cache-misses, ev_misses, "event=0x2e,umask=0x41");
PMU_EVENT_ATTR_STRING(branches, ev_branches, "event=0xc4");
PMU_EVENT_ATTR_STRING(branch-misses, ev_branch_misses, "event=0xc5");
PMU_EVENT_ATTR_STRING(ref-cycles, ev_ref_cycles, "event=0x00,umask=0x03");
/* clang-format on */
static struct attribute *event_attrs[] = { &ev_cycles.attr.attr,     &ev_instructions.attr.attr,
					   &ev_references.attr.attr, &ev_misses.attr.attr,
					   &ev_branches.attr.attr,   &ev_branch_misses.attr.attr,
					   &ev_ref_cycles.attr.attr, NULL };
static const struct attribute_group event_group = { .name = "events", .attrs = event_attrs };
static const struct attribute_group *groups[] = { &format_group, &event_group, NULL };

static struct pmu sim_pmu = {
	.task_ctx_nr = perf_hw_context,
	.capabilities = PERF_PMU_CAP_NO_INTERRUPT,
	.attr_groups = groups,
	.pmu_enable = event_enable_all,
	.pmu_disable = event_disable_all,
	.event_init = event_init,
	.add = event_add,
	.del = event_del,
	.start = event_start,
	.stop = event_stop,
	.read = event_read,
	.module = THIS_MODULE,
};

int sim_event_register(void)
{
	if (sampling) {
		int err = sim_sample_find();

		if (err)
			return err;
		sim_pmu.capabilities &= ~PERF_PMU_CAP_NO_INTERRUPT;
	}
	return pmu ? perf_pmu_register(&sim_pmu, "cpu", PERF_TYPE_RAW) : 0;
}

void sim_event_unregister(void)
{
	if (pmu)
		perf_pmu_unregister(&sim_pmu);
}
