// SPDX-License-Identifier: GPL-2.0-only
/* Door 2: the PMU "power", as arch/x86/events/rapl.c has it: counters of 32 bits whose differences are
 * scaled to 2^-32 J, one CPU of each unit in the cpumask, events that move when it goes offline. A
 * counter that goes back looks like one that went round. */
#include <linux/cpuhotplug.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include "simrapl.h"

static cpumask_t mask;
static int hotplug_state;
static struct pmu power_pmu;

static struct rapl_domain *domain_of(const struct perf_event *event)
{
	return event->pmu_private;
}

static int event_init(struct perf_event *event)
{
	u64 code = event->attr.config;
	struct rapl_unit *u;

	if (event->attr.type != power_pmu.type)
		return -ENOENT;
	if (event->cpu < 0 || is_sampling_event(event) || code < 1 || code > RAPL_KINDS)
		return -EINVAL;
	if (settings.err)
		return -EIO;
	u = model_unit_of(event->cpu);
	if (!u || !u->domain[code - 1].exists)
		return -EINVAL;
	event->cpu = cpumask_any_and(&mask, &u->cpus);
	if (event->cpu >= nr_cpu_ids)
		return -ENODEV;
	event->pmu_private = &u->domain[code - 1];
	return 0;
}

static void event_read(struct perf_event *event)
{
	u64 now = model_raw(model_counter_pj(domain_of(event), DOOR_PERF));
	u64 before = local64_xchg(&event->hw.prev_count, now);
	u64 units = now >= before ? now - before : (u32)(now - before);

	local64_add(units << (32 - settings.esu), &event->count);
}

static void event_start(struct perf_event *event, int flags)
{
	event->hw.state = 0;
	local64_set(&event->hw.prev_count, model_raw(model_counter_pj(domain_of(event), DOOR_PERF)));
}

static void event_stop(struct perf_event *event, int flags)
{
	if (!(event->hw.state & PERF_HES_STOPPED))
		event_read(event);
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

static int event_add(struct perf_event *event, int flags)
{
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START)
		event_start(event, flags);
	return 0;
}

static void event_del(struct perf_event *event, int flags)
{
	event_stop(event, PERF_EF_UPDATE);
}

static ssize_t cpumask_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return cpumap_print_to_pagebuf(true, buf, &mask);
}
static DEVICE_ATTR_RO(cpumask);
static struct attribute *mask_attrs[] = { &dev_attr_cpumask.attr, NULL };
static const struct attribute_group mask_group = { .attrs = mask_attrs };

PMU_FORMAT_ATTR(event, "config:0-7");
static struct attribute *format_attrs[] = { &format_attr_event.attr, NULL };
static const struct attribute_group format_group = { .name = "format", .attrs = format_attrs };

#define EVENT(name, id, code) \
	PMU_EVENT_ATTR_STRING(name, id, code); \
	PMU_EVENT_ATTR_STRING(name.unit, id##_unit, "Joules"); \
	PMU_EVENT_ATTR_STRING(name.scale, id##_scale, "2.3283064365386962890625e-10")
/* The names become text: a formatter may put no space into them. */
/* clang-format off */
EVENT(energy-cores, ev_cores, "event=0x01");
EVENT(energy-pkg, ev_pkg, "event=0x02");
EVENT(energy-ram, ev_ram, "event=0x03");
EVENT(energy-gpu, ev_gpu, "event=0x04");
EVENT(energy-psys, ev_psys, "event=0x05");
/* clang-format on */

#define ATTRS(id) \
	{ \
		&id.attr.attr, &id##_unit.attr.attr, &id##_scale.attr.attr \
	}
static struct attribute *kind_attrs[RAPL_KINDS][3] = {
	[RAPL_CORE] = ATTRS(ev_cores), [RAPL_PACKAGE] = ATTRS(ev_pkg), [RAPL_DRAM] = ATTRS(ev_ram),
	[RAPL_UNCORE] = ATTRS(ev_gpu), [RAPL_PSYS] = ATTRS(ev_psys),
};
static struct attribute *event_attrs[3 * RAPL_KINDS + 1];
static const struct attribute_group event_group = { .name = "events", .attrs = event_attrs };
static const struct attribute_group *groups[] = { &format_group, &event_group, &mask_group, NULL };

static struct pmu power_pmu = {
	.task_ctx_nr = perf_invalid_context,
	.capabilities = PERF_PMU_CAP_NO_EXCLUDE | PERF_PMU_CAP_NO_INTERRUPT,
	.attr_groups = groups,
	.event_init = event_init,
	.add = event_add,
	.del = event_del,
	.start = event_start,
	.stop = event_stop,
	.read = event_read,
	.module = THIS_MODULE,
};

static int on_online(unsigned int cpu)
{
	struct rapl_unit *u = model_unit_of(cpu);

	if (u && cpumask_any_and(&mask, &u->cpus) >= nr_cpu_ids)
		cpumask_set_cpu(cpu, &mask);
	return 0;
}

static int on_offline(unsigned int cpu)
{
	struct rapl_unit *u = model_unit_of(cpu);
	unsigned int other;

	if (!u || !cpumask_test_and_clear_cpu(cpu, &mask))
		return 0;
	for_each_cpu_and(other, &u->cpus, cpu_online_mask)
	{
		if (other == cpu)
			continue;
		cpumask_set_cpu(other, &mask);
		perf_pmu_migrate_context(&power_pmu, cpu, other);
		break;
	}
	return 0;
}

int power_pmu_register(void)
{
	int i, n = 0, state;

	for (i = 0; i < RAPL_KINDS; i++) {
		if (!rapl_units[0].domain[i].exists)
			continue;
		memcpy(&event_attrs[n], kind_attrs[i], sizeof(kind_attrs[i]));
		n += ARRAY_SIZE(kind_attrs[i]);
	}
	state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "simrapl:online", on_online, on_offline);
	if (state < 0)
		return state;
	hotplug_state = state;
	i = perf_pmu_register(&power_pmu, "power", -1);
	if (i)
		cpuhp_remove_state_nocalls(hotplug_state);
	return i;
}

void power_pmu_unregister(void)
{
	cpuhp_remove_state_nocalls(hotplug_state);
	perf_pmu_unregister(&power_pmu);
}
