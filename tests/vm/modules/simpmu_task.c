// SPDX-License-Identifier: GPL-2.0-only
/* Follows the tasks of every CPU. A stretch ends at a switch, at a change of name or cgroup, and when
 * somebody looks. At a switch and at a move this probe runs before those of others (priority), and the
 * counters then stand until these are through, so that whoever reads them there sees exactly what the
 * truth charged to the task or cgroup before. Nothing is lost: the next look makes up for the time. */
#include <linux/cgroup.h>
#include <linux/cpu.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/sched/clock.h>
#include <linux/timekeeping.h>
#include <linux/topology.h>
#include <linux/tracepoint.h>
#include "simpmu.h"

#define MOVE_NS 20000000 /* other probes of a move are through by then, on a slow machine too */

static DEFINE_PER_CPU(struct sim_cpu, sim_cpus);
static sim_charge_fn charge;
static bool neighbours;

struct sim_cpu *sim_cpu_of(int cpu)
{
	return per_cpu_ptr(&sim_cpus, cpu);
}

static u32 others_busy(const struct sim_cpu *c)
{
	u32 n = 0;
	int cpu;

	for_each_online_cpu(cpu) n += cpu != c->cpu && READ_ONCE(sim_cpu_of(cpu)->work.busy);
	return n;
}

static u32 siblings_busy(const struct sim_cpu *c)
{
	u32 n = 0;
	int cpu;

	for_each_cpu(cpu, topology_sibling_cpumask(c->cpu)) n += cpu != c->cpu && READ_ONCE(sim_cpu_of(cpu)->work.busy);
	return n;
}

static void charge_stretch(struct sim_cpu *c, struct sim_stretch *s)
{
	u64 pj[SIM_ENERGIES] = { 0 };
	sim_charge_fn fn = READ_ONCE(charge);
	unsigned int i;

	s->others = others_busy(c);
	s->cpus = num_online_cpus();
	s->siblings = siblings_busy(c);
	s->small = sim_is_small(c->cpu);
	if (c->work.busy)
		s->count[SIM_SIBLING] = s->count[SIM_TIME] * s->siblings;
	if (fn && c->work.busy)
		fn(s, pj);
	for (i = 0; i < SIM_COUNTS; i++) {
		c->total[i] += s->count[i];
		c->row->count[i] += s->count[i];
	}
	sim_row_keep(c->row);
	for (i = 0; i < SIM_ENERGIES; i++) {
		c->pj[i] += pj[i];
		c->row->pj[i] += pj[i];
	}
	sim_names_charge(c, s, pj);
}

/* With the lock held. */
static void settle(struct sim_cpu *c, u64 now)
{
	while (c->row && c->last_ns < now) {
		u64 end = min(now, c->work.busy ? sim_work_end(c->last_ns) : now);
		struct sim_stretch s = { 0 };

		sim_work_do(&c->work, c, c->last_ns, end - c->last_ns, &s);
		charge_stretch(c, &s);
		c->last_ns = end;
	}
}

static void settle_locked(struct sim_cpu *c, u64 now)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&c->lock, flags);
	if (now >= c->hold_ns)
		settle(c, now);
	raw_spin_unlock_irqrestore(&c->lock, flags);
}

/* Up to now, as long as this CPU does what it does, those whose counts or energy depend on it. */
static void settle_dependent(const struct sim_cpu *c, bool all)
{
	u64 now = ktime_get_mono_fast_ns();
	int cpu;

	if (all) {
		simpmu_settle();
		return;
	}
	for_each_cpu(cpu, topology_sibling_cpumask(c->cpu)) if (cpu != c->cpu) settle_locked(sim_cpu_of(cpu), now);
}

u64 simpmu_settle(void)
{
	u64 now = ktime_get_mono_fast_ns();
	int cpu;

	for_each_possible_cpu(cpu) settle_locked(sim_cpu_of(cpu), now);
	return now;
}
EXPORT_SYMBOL_GPL(simpmu_settle);

void simpmu_set_charge(sim_charge_fn fn)
{
	simpmu_settle();
	WRITE_ONCE(charge, fn);
	if (!fn)
		synchronize_rcu(); /* nobody is in it any more: it runs with interrupts off */
}
EXPORT_SYMBOL_GPL(simpmu_set_charge);

void simpmu_set_neighbours(bool on)
{
	WRITE_ONCE(neighbours, on);
}
EXPORT_SYMBOL_GPL(simpmu_set_neighbours);

void simpmu_cpu_energy(int cpu, u64 ret_pj[SIM_ENERGIES])
{
	struct sim_cpu *c = sim_cpu_of(cpu);
	unsigned long flags;

	raw_spin_lock_irqsave(&c->lock, flags);
	memcpy(ret_pj, c->pj, sizeof(c->pj));
	raw_spin_unlock_irqrestore(&c->lock, flags);
}
EXPORT_SYMBOL_GPL(simpmu_cpu_energy);

u64 sim_count_here(enum sim_count which)
{
	struct sim_cpu *c;
	unsigned long flags;
	u64 n, now;

	local_irq_save(flags);
	c = this_cpu_ptr(&sim_cpus);
	raw_spin_lock(&c->lock);
	now = ktime_get_mono_fast_ns();
	if (now >= c->hold_ns)
		settle(c, now);
	n = c->total[which];
	raw_spin_unlock(&c->lock);
	local_irq_restore(flags);
	return n;
}

u64 sim_count_before(enum sim_count which, u64 ago_ns)
{
	struct sim_cpu *c;
	unsigned long flags;
	u64 n;

	local_irq_save(flags);
	c = this_cpu_ptr(&sim_cpus);
	raw_spin_lock(&c->lock);
	settle(c, ktime_get_mono_fast_ns() - ago_ns);
	n = c->total[which];
	raw_spin_unlock(&c->lock);
	local_irq_restore(flags);
	return n;
}

void sim_hold_here(bool on)
{
	struct sim_cpu *c;
	unsigned long flags;

	local_irq_save(flags);
	c = this_cpu_ptr(&sim_cpus);
	raw_spin_lock(&c->lock);
	if (on)
		settle(c, ktime_get_mono_fast_ns());
	c->hold_ns = on ? U64_MAX : 0;
	raw_spin_unlock(&c->lock);
	if (!on)
		sim_sample_arm_here(c);
	local_irq_restore(flags);
}

bool sim_held_here(void)
{
	return READ_ONCE(this_cpu_ptr(&sim_cpus)->hold_ns) == U64_MAX;
}

u64 sim_here_ns(enum sim_count which, u64 count)
{
	struct sim_cpu *c;
	unsigned long flags;
	u64 now, ns;

	local_irq_save(flags);
	c = this_cpu_ptr(&sim_cpus);
	raw_spin_lock(&c->lock);
	now = ktime_get_mono_fast_ns();
	ns = sim_work_ns(&c->work, c->cpu, now, which, count);
	if (ns != U64_MAX && c->hold_ns > now)
		ns += c->hold_ns - now;
	raw_spin_unlock(&c->lock);
	local_irq_restore(flags);
	return ns;
}

static void take_work(struct sim_cpu *c, struct task_struct *p, const char *comm)
{
	struct sim_work work = { 0 };

	if (!is_idle_task(p))
		sim_work_parse(comm, &work);
	c->work = work;
	sim_names_take(c, comm);
}

/* The CPU was idle until now. What waking up costs is charged at once: the task may be gone before it has run for long. */
static void charge_exit(struct sim_cpu *c, bool package_woke)
{
	struct sim_stretch s = { .frequency_permille = 1000, .package_woke = package_woke };

	s.count[SIM_EXITS] = 1;
	charge_stretch(c, &s);
}

static void on_switch(void *data, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct sim_cpu *c = this_cpu_ptr(&sim_cpus);
	bool change = is_idle_task(prev) != is_idle_task(next), woke = false;
	u64 now;

	if (change || sim_work_shared())
		settle_dependent(c, READ_ONCE(neighbours) || sim_work_shared());
	raw_spin_lock(&c->lock);
	now = ktime_get_mono_fast_ns();
	settle(c, now);
	c->last_ns = max(c->last_ns, now);
	c->task = next;
	c->hold_ns = U64_MAX;
	if (change)
		woke = sim_sleep_set(c, !is_idle_task(next), now);
	take_work(c, next, next->comm);
	c->row = sim_row_of(c, next);
	if (change && c->work.busy)
		charge_exit(c, woke);
	raw_spin_unlock(&c->lock);
	irq_work_queue(&c->release); /* an interrupt to this CPU: it comes when the switch is over */
}

static void on_release(struct irq_work *work)
{
	struct sim_cpu *c = container_of(work, struct sim_cpu, release);

	raw_spin_lock(&c->lock);
	c->hold_ns = 0;
	raw_spin_unlock(&c->lock);
	sim_sample_arm_here(c);
}

static void on_rename(void *data, struct task_struct *p, const char *comm)
{
	struct sim_cpu *c;
	unsigned long flags;
	bool changed = false;

	if (sim_work_shared())
		simpmu_settle();
	local_irq_save(flags);
	c = this_cpu_ptr(&sim_cpus);
	raw_spin_lock(&c->lock);
	if (c->task == p && c->row) {
		settle(c, ktime_get_mono_fast_ns());
		take_work(c, p, comm);
		changed = true;
	}
	raw_spin_unlock(&c->lock);
	if (changed)
		sim_sample_arm_here(c);
	local_irq_restore(flags);
}

/* The tracepoint comes after the move: whoever runs may be in another cgroup now. */
static void on_attach(void *data, struct cgroup *dst, const char *path, struct task_struct *leader, bool group)
{
	unsigned long flags;
	int cpu;

	for_each_online_cpu(cpu)
	{
		struct sim_cpu *c = sim_cpu_of(cpu);

		raw_spin_lock_irqsave(&c->lock, flags);
		if (c->row && c->task->tgid == leader->tgid && !is_idle_task(c->task)) {
			u64 now = ktime_get_mono_fast_ns();

			settle(c, now);
			c->row = sim_row_of(c, c->task);
			c->hold_ns = now + MOVE_NS;
		}
		raw_spin_unlock_irqrestore(&c->lock, flags);
	}
}

static void begin_here(void *unused)
{
	struct sim_cpu *c = this_cpu_ptr(&sim_cpus);

	raw_spin_lock(&c->lock);
	if (!c->row) {
		c->task = current;
		c->last_ns = ktime_get_mono_fast_ns();
		take_work(c, current, current->comm);
		c->row = sim_row_of(c, current);
		sim_sleep_set(c, !is_idle_task(current), c->last_ns);
	}
	raw_spin_unlock(&c->lock);
}

static struct {
	const char *name;
	void *probe;
	struct tracepoint *tp;
} probes[] = {
	{ "sched_switch", on_switch },
	{ "task_rename", on_rename },
	{ "cgroup_attach_task", on_attach },
};

static void find(struct tracepoint *tp, void *unused)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		if (!strcmp(tp->name, probes[i].name))
			probes[i].tp = tp;
	}
}

static void unfollow(void)
{
	unsigned int i;
	int cpu;

	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		if (probes[i].tp)
			tracepoint_probe_unregister(probes[i].tp, probes[i].probe, NULL);
	}
	tracepoint_synchronize_unregister();
	for_each_possible_cpu(cpu) irq_work_sync(&sim_cpu_of(cpu)->release);
}

static int follow(void)
{
	unsigned int i;
	int err = 0;

	for_each_kernel_tracepoint(find, NULL);
	for (i = 0; i < ARRAY_SIZE(probes) && !err; i++)
		err = probes[i].tp ? tracepoint_probe_register_prio(probes[i].tp, probes[i].probe, NULL, INT_MAX) :
				     -ENOENT;
	if (err)
		unfollow();
	return err;
}

static void free_cpus(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
	{
		sim_rows_free(sim_cpu_of(cpu));
		sim_names_free(sim_cpu_of(cpu));
		sim_sample_free(sim_cpu_of(cpu));
	}
}

static int __init simpmu_init(void)
{
	int cpu, err = 0;

	sim_machine_begin(ktime_get_mono_fast_ns());
	for_each_possible_cpu(cpu)
	{
		struct sim_cpu *c = sim_cpu_of(cpu);

		raw_spin_lock_init(&c->lock);
		init_irq_work(&c->release, on_release);
		c->cpu = cpu;
		if (sim_rows_alloc(c) || sim_names_alloc(c) || sim_sample_alloc(c))
			err = -ENOMEM;
	}
	if (!err)
		err = follow();
	if (err)
		goto out_free;
	on_each_cpu(begin_here, NULL, 1);
	err = sim_rows_publish();
	if (err)
		goto out_follow;
	err = sim_names_publish();
	if (err)
		goto out_rows;
	err = sim_event_register();
	if (!err)
		return 0;
	sim_names_hide();
out_rows:
	sim_rows_hide();
out_follow:
	unfollow();
out_free:
	sim_machine_end();
	free_cpus();
	return err;
}

static void __exit simpmu_exit(void)
{
	sim_event_unregister();
	sim_names_hide();
	sim_rows_hide();
	sim_machine_end();
	unfollow();
	free_cpus();
}

module_init(simpmu_init);
module_exit(simpmu_exit);
MODULE_DESCRIPTION("Simulated core PMU: counts follow from task names");
MODULE_LICENSE("GPL");
