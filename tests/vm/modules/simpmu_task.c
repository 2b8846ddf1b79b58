// SPDX-License-Identifier: GPL-2.0-only
/* Follows the tasks of every CPU. A stretch ends at a switch, at a change of name, and when somebody
 * looks. At a switch this probe runs before those of others (priority) and the counters then stand
 * until the old task is gone, so that whoever reads them within the switch sees exactly what the
 * truth charged to the old task. */
#include <linux/cpu.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/sched/clock.h>
#include <linux/timekeeping.h>
#include <linux/tracepoint.h>
#include "simpmu.h"

#define SWITCH_NS 200000   /* no switch takes longer: then the CPU went on without anybody looking */

static DEFINE_PER_CPU(struct sim_cpu, sim_cpus);
static sim_charge_fn charge;
static bool neighbours;
static struct tracepoint *tp_switch, *tp_rename;

struct sim_cpu *sim_cpu_of(int cpu)
{
	return per_cpu_ptr(&sim_cpus, cpu);
}

static u32 others_busy(const struct sim_cpu *c)
{
	u32 n = 0;
	int cpu;

	for_each_online_cpu(cpu)
		n += cpu != c->cpu && READ_ONCE(sim_cpu_of(cpu)->work.busy);
	return n;
}

static void charge_stretch(struct sim_cpu *c, struct sim_stretch *s)
{
	u64 pj[SIM_ENERGIES] = { 0 };
	sim_charge_fn fn = READ_ONCE(charge);
	unsigned int i;

	s->others = others_busy(c);
	s->cpus = num_online_cpus();
	if (fn && c->work.busy)
		fn(s, pj);
	for (i = 0; i < SIM_COUNTS; i++) {
		c->total[i] += s->count[i];
		c->row->count[i] += s->count[i];
	}
	for (i = 0; i < SIM_ENERGIES; i++) {
		c->pj[i] += pj[i];
		c->row->pj[i] += pj[i];
	}
}

/* With the lock held. */
static void settle(struct sim_cpu *c, u64 now)
{
	while (c->row && c->last_ns < now) {
		u64 end = min(now, c->work.busy ? sim_work_end(c->last_ns) : now);
		struct sim_stretch s;

		sim_work_do(&c->work, c, c->last_ns, end - c->last_ns, &s);
		charge_stretch(c, &s);
		c->last_ns = end;
	}
}

static void settle_locked(struct sim_cpu *c, u64 now)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&c->lock, flags);
	if (!c->leaving || now > c->last_ns + SWITCH_NS) {
		c->leaving = NULL;
		settle(c, now);
	}
	raw_spin_unlock_irqrestore(&c->lock, flags);
}

u64 simpmu_settle(void)
{
	u64 now = ktime_get_mono_fast_ns();
	int cpu;

	for_each_possible_cpu(cpu)
		settle_locked(sim_cpu_of(cpu), now);
	return now;
}
EXPORT_SYMBOL_GPL(simpmu_settle);

void simpmu_set_charge(sim_charge_fn fn)
{
	simpmu_settle();
	WRITE_ONCE(charge, fn);
	if (!fn)
		synchronize_rcu();   /* nobody is in it any more: it runs with interrupts off */
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
	u64 n;

	local_irq_save(flags);
	c = this_cpu_ptr(&sim_cpus);
	raw_spin_lock(&c->lock);
	if (c->leaving != current) {
		c->leaving = NULL;
		settle(c, ktime_get_mono_fast_ns());
	}
	n = c->total[which];
	raw_spin_unlock(&c->lock);
	local_irq_restore(flags);
	return n;
}

static void take_work(struct sim_cpu *c, struct task_struct *p, const char *comm)
{
	struct sim_work work = { 0 };

	if (!is_idle_task(p))
		sim_work_parse(comm, &work);
	c->work = work;
}

static void on_switch(void *data, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct sim_cpu *c = this_cpu_ptr(&sim_cpus);
	u64 now;

	if (READ_ONCE(neighbours) && is_idle_task(prev) != is_idle_task(next))
		simpmu_settle();
	raw_spin_lock(&c->lock);
	now = ktime_get_mono_fast_ns();
	settle(c, now);
	c->last_ns = max(c->last_ns, now);
	c->task = next;
	c->leaving = prev;
	take_work(c, next, next->comm);
	c->row = sim_row_of(c, next);
	raw_spin_unlock(&c->lock);
}

static void on_rename(void *data, struct task_struct *p, const char *comm)
{
	struct sim_cpu *c;
	unsigned long flags;

	local_irq_save(flags);
	c = this_cpu_ptr(&sim_cpus);
	raw_spin_lock(&c->lock);
	if (c->task == p && c->row) {
		settle(c, ktime_get_mono_fast_ns());
		take_work(c, p, comm);
	}
	raw_spin_unlock(&c->lock);
	local_irq_restore(flags);
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
	}
	raw_spin_unlock(&c->lock);
}

static void find(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "sched_switch"))
		tp_switch = tp;
	if (!strcmp(tp->name, "task_rename"))
		tp_rename = tp;
}

static int follow(void)
{
	int err;

	for_each_kernel_tracepoint(find, NULL);
	if (!tp_switch || !tp_rename)
		return -ENOENT;
	err = tracepoint_probe_register_prio(tp_switch, on_switch, NULL, INT_MAX);
	if (err)
		return err;
	err = tracepoint_probe_register_prio(tp_rename, on_rename, NULL, INT_MAX);
	if (err)
		tracepoint_probe_unregister(tp_switch, on_switch, NULL);
	return err;
}

static void unfollow(void)
{
	tracepoint_probe_unregister(tp_switch, on_switch, NULL);
	tracepoint_probe_unregister(tp_rename, on_rename, NULL);
	tracepoint_synchronize_unregister();
}

static void free_cpus(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		sim_rows_free(sim_cpu_of(cpu));
}

static int __init simpmu_init(void)
{
	int cpu, err = 0;

	for_each_possible_cpu(cpu) {
		struct sim_cpu *c = sim_cpu_of(cpu);

		raw_spin_lock_init(&c->lock);
		c->cpu = cpu;
		if (sim_rows_alloc(c))
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
	err = sim_event_register();
	if (!err)
		return 0;
	sim_rows_hide();
out_follow:
	unfollow();
out_free:
	free_cpus();
	return err;
}

static void __exit simpmu_exit(void)
{
	sim_event_unregister();
	sim_rows_hide();
	unfollow();
	free_cpus();
}

module_init(simpmu_init);
module_exit(simpmu_exit);
MODULE_DESCRIPTION("Simulated core PMU: counts follow from task names");
MODULE_LICENSE("GPL");
