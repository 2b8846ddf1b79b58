// SPDX-License-Identifier: GPL-2.0-only
/* Sampling: an event of a period overflows at the instant at which its count reaches the period. Between two changes of
 * a task's mix counts are a straight line of time, so a timer is set for that instant, and set anew when the mix
 * changes. Counts that stand (a switch, perf's own work) set no timer: whoever lets them go on does. */
#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/perf_event.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/vmalloc.h>
#include <asm/irq_regs.h>
#include "simpmu.h"

#define SLOTS 16 /* sampling events of a CPU */
#define LEAST_NS 2000ull /* no timer is set nearer than this */
#define MOST_NS 100000000ull
#define AT_ONCE 4 /* overflows that one late timer makes up for; the rest comes with the next ones */

struct sim_slot {
	struct hrtimer timer;
	struct perf_event *event; /* NULL = free */
	bool runs;
	u64 next; /* the CPU's count at which it overflows */
};

/* perf_event_overflow is for PMUs in the kernel itself, and not exported: a probe tells where it is. */
static int (*take_overflow)(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs);

int sim_sample_find(void)
{
	struct kprobe probe = { .symbol_name = "perf_event_overflow" };
	int err = register_kprobe(&probe);

	if (err)
		return err;
	take_overflow = (void *)probe.addr;
	unregister_kprobe(&probe);
	return 0;
}

static void arm(struct sim_slot *s)
{
	u64 left, ns;

	if (!s->event || !s->runs || sim_held_here())
		return;
	left = s->next - min(s->next, sim_count_here(s->event->hw.config));
	ns = sim_here_ns(s->event->hw.config, left);
	if (ns == U64_MAX) {
		hrtimer_try_to_cancel(&s->timer);
		return;
	}
	ns = clamp(ns, LEAST_NS, MOST_NS);
	hrtimer_start(&s->timer, ns_to_ktime(ns), HRTIMER_MODE_REL_PINNED_HARD);
}

void sim_sample_arm_here(struct sim_cpu *c)
{
	unsigned int i;

	for (i = 0; c->slots && i < SLOTS; i++)
		arm(&c->slots[i]);
}

/* Takes an overflow of an event. False: perf wants it to stop. */
static bool overflow(struct sim_slot *s)
{
	struct perf_event *event = s->event;
	struct pt_regs *regs = get_irq_regs();
	struct perf_sample_data data;

	event->hw.last_period = event->hw.sample_period;
	s->next += event->hw.sample_period;
	if (!regs || (event->attr.exclude_idle && is_idle_task(current)))
		return true;
	perf_sample_data_init(&data, 0, event->hw.last_period);
	return !take_overflow(event, &data, regs);
}

static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
	struct sim_slot *s = container_of(timer, struct sim_slot, timer);
	unsigned int n;

	for (n = 0; n < AT_ONCE && s->event && s->runs; n++) {
		if (sim_count_here(s->event->hw.config) < s->next)
			break;
		if (!overflow(s))
			s->event->pmu->stop(s->event, 0);
	}
	arm(s);
	return HRTIMER_NORESTART; /* or armed above */
}

static struct sim_slot *slot_of(struct perf_event *event)
{
	struct sim_cpu *c = sim_cpu_of(smp_processor_id());
	unsigned int i;

	for (i = 0; i < SLOTS; i++) {
		if (c->slots[i].event == event)
			return &c->slots[i];
	}
	return NULL;
}

int sim_sample_add(struct perf_event *event)
{
	struct sim_slot *s = slot_of(NULL);

	if (!s)
		return -EAGAIN;
	s->runs = false;
	s->event = event;
	return 0;
}

void sim_sample_del(struct perf_event *event)
{
	struct sim_slot *s = slot_of(event);

	if (s)
		s->event = NULL;
}

/* count: where the event's counting begins. perf enables the PMU after it started events, and that arms them. */
void sim_sample_start(struct perf_event *event, u64 count)
{
	struct sim_slot *s = slot_of(event);
	s64 left = local64_read(&event->hw.period_left);

	if (!s)
		return;
	if (left <= 0 || left > (s64)event->hw.sample_period)
		left = event->hw.sample_period;
	s->next = count + left;
	s->runs = true;
	arm(s);
}

void sim_sample_stop(struct perf_event *event, u64 count)
{
	struct sim_slot *s = slot_of(event);

	if (!s || !s->runs)
		return;
	s->runs = false;
	local64_set(&event->hw.period_left, s->next > count ? s->next - count : 1);
	hrtimer_try_to_cancel(&s->timer); /* on its own CPU: it is not running, or it is the one that stops */
}

int sim_sample_alloc(struct sim_cpu *c)
{
	unsigned int i;

	c->slots = vzalloc(array_size(SLOTS, sizeof(*c->slots)));
	for (i = 0; c->slots && i < SLOTS; i++) {
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
		hrtimer_setup(&c->slots[i].timer, on_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
#else
		hrtimer_init(&c->slots[i].timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
		c->slots[i].timer.function = on_timer;
#endif
	}
	return c->slots ? 0 : -ENOMEM;
}

/* When no event is left. */
void sim_sample_free(struct sim_cpu *c)
{
	unsigned int i;

	for (i = 0; c->slots && i < SLOTS; i++)
		hrtimer_cancel(&c->slots[i].timer);
	vfree(c->slots);
}
