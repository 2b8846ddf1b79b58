// SPDX-License-Identifier: GPL-2.0-only
/* Truth per task name: a program that takes another name in each of its functions is a program whose energy per
 * function is known. A table per CPU, written under its lock, shown in /proc/simpmu_names. */
#include <linux/hash.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include "simpmu.h"

#define NAMES 128 /* per CPU; the first is for names that say no mix, and for those beyond */

struct sim_name {
	char name[TASK_COMM_LEN];
	u64 time_ns;
	u64 pj[SIM_ENERGIES];
};

int sim_names_alloc(struct sim_cpu *c)
{
	c->names = vzalloc(array_size(NAMES, sizeof(*c->names)));
	if (!c->names)
		return -ENOMEM;
	strscpy(c->names[0].name, "other", TASK_COMM_LEN);
	c->name = c->names;
	return 0;
}

void sim_names_free(struct sim_cpu *c)
{
	vfree(c->names);
}

void sim_names_take(struct sim_cpu *c, const char *comm)
{
	unsigned int i;

	c->name = c->names;
	if (strncmp(comm, "ipc", 3))
		return;
	for (i = 1; i < NAMES; i++) {
		struct sim_name *n = &c->names[i];

		if (!n->name[0])
			strscpy(n->name, comm, TASK_COMM_LEN);
		if (!strncmp(n->name, comm, TASK_COMM_LEN)) {
			c->name = n;
			return;
		}
	}
}

void sim_names_charge(struct sim_cpu *c, const struct sim_stretch *s, const u64 pj[SIM_ENERGIES])
{
	unsigned int i;

	c->name->time_ns += s->count[SIM_TIME];
	for (i = 0; i < SIM_ENERGIES; i++)
		c->name->pj[i] += pj[i];
}

static void show_cpu(struct seq_file *m, struct sim_cpu *c)
{
	unsigned int i, k;

	for (i = 1; i < NAMES; i++) {
		struct sim_name n;
		unsigned long flags;

		raw_spin_lock_irqsave(&c->lock, flags);
		n = c->names[i];
		raw_spin_unlock_irqrestore(&c->lock, flags);
		if (!n.name[0])
			return;
		seq_printf(m, "%d %llu", c->cpu, n.time_ns);
		for (k = 0; k < SIM_ENERGIES; k++)
			seq_printf(m, " %llu", n.pj[k] / 1000);
		seq_printf(m, " %s\n", n.name);
	}
}

static int show(struct seq_file *m, void *unused)
{
	u64 mono = simpmu_settle();
	int cpu;

	seq_printf(m, "mono %llu\n", mono);
	seq_puts(m, "cpu time_ns core_nj uncore_nj dram_nj name\n");
	for_each_possible_cpu(cpu) show_cpu(m, sim_cpu_of(cpu));
	return 0;
}

static int open(struct inode *inode, struct file *file)
{
	return single_open(file, show, NULL);
}

static const struct proc_ops names_ops = {
	.proc_open = open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
};

int sim_names_publish(void)
{
	return proc_create("simpmu_names", 0444, NULL, &names_ops) ? 0 : -ENOMEM;
}

void sim_names_hide(void)
{
	remove_proc_entry("simpmu_names", NULL);
}
