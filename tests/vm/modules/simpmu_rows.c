// SPDX-License-Identifier: GPL-2.0-only
/* Truth per cgroup and CPU: a table per CPU, written under its lock, shown in /proc/simpmu. */
#include <linux/cgroup.h>
#include <linux/hash.h>
#include <linux/kernfs.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/timekeeping.h>
#include <linux/topology.h>
#include <linux/vmalloc.h>
#include "simpmu.h"

#define MAX_DEPTH 16

static u32 marks;
static u64 mark_ns;

int sim_rows_alloc(struct sim_cpu *c)
{
	c->rows = vzalloc(array_size(SIM_ROWS, sizeof(*c->rows)));
	return c->rows ? 0 : -ENOMEM;
}

void sim_rows_free(struct sim_cpu *c)
{
	vfree(c->rows);
}

/* The task keeps its cgroup and that keeps the names above it, so no lock is needed; a rename at
 * this moment may show the old name. */
static void set_path(struct sim_row *row, const struct cgroup *cgrp)
{
	const struct kernfs_node *at[MAX_DEPTH], *kn = cgrp->kn;
	size_t len = 0;
	int depth = 0;

	for (; kn && kn->parent && depth < MAX_DEPTH; kn = kn->parent)
		at[depth++] = kn;
	if (!depth)
		strscpy(row->path, "/", sizeof(row->path));
	while (depth-- > 0 && len < sizeof(row->path))
		len += scnprintf(row->path + len, sizeof(row->path) - len, "/%s", at[depth]->name);
	for (len = 0; row->path[len]; len++) {
		if ((u8)row->path[len] <= ' ' || row->path[len] == 0x7f)
			row->path[len] = '?';
	}
}

static struct sim_row *overflow(struct sim_cpu *c)
{
	struct sim_row *row = &c->rows[SIM_ROWS - 1];

	if (!row->used)
		strscpy(row->path, "overflow", sizeof(row->path));
	row->used = true;
	return row;
}

struct sim_row *sim_row_of(struct sim_cpu *c, struct task_struct *p)
{
	struct cgroup *cgrp = task_dfl_cgroup(p);
	u64 id = cgroup_id(cgrp);
	u32 kind = is_idle_task(p) ? SIM_IDLE : p->flags & PF_KTHREAD && !cgroup_parent(cgrp) ? SIM_KTHREAD : SIM_TASK;
	u32 at = hash_64(id * 4 + kind, ilog2(SIM_ROWS));
	struct sim_row *row;

	if (at == SIM_ROWS - 1)
		at = 0;
	while ((row = &c->rows[at])->used) {
		if (row->id == id && row->kind == kind)
			return row;
		at = (at + 1) % (SIM_ROWS - 1);
	}
	if (c->n_rows >= SIM_ROWS / 2)
		return overflow(c);
	c->n_rows++;
	row->id = id;
	row->kind = kind;
	row->used = true;
	set_path(row, cgrp);
	return row;
}

void simpmu_mark(u64 now)
{
	WRITE_ONCE(mark_ns, 0);
	smp_wmb();
	WRITE_ONCE(marks, marks + 1);
	smp_wmb(); /* who reads an instant finds its rows */
	WRITE_ONCE(mark_ns, now);
}
EXPORT_SYMBOL_GPL(simpmu_mark);

void sim_row_keep(struct sim_row *row)
{
	u32 mark = READ_ONCE(marks);

	if (row->mark == mark)
		return;
	memcpy(row->marked_pj, row->pj, sizeof(row->pj));
	row->mark = mark;
}

static const char *const kinds[] = { [SIM_TASK] = "task", [SIM_KTHREAD] = "kthread", [SIM_IDLE] = "idle" };

static void show_row(struct seq_file *m, int cpu, const struct sim_row *row)
{
	unsigned int i;

	seq_printf(m, "%llu %s %d %d", row->id, kinds[row->kind], cpu, topology_physical_package_id(cpu));
	for (i = 0; i <= SIM_HIDDEN; i++)
		seq_printf(m, " %llu", row->count[i]);
	for (i = 0; i < SIM_ENERGIES; i++)
		seq_printf(m, " %llu", row->pj[i] / 1000);
	seq_printf(m, " %llu %llu %s\n", row->count[SIM_SIBLING], row->count[SIM_EXITS], row->path);
}

static void show_mark_of_row(struct seq_file *m, int cpu, const struct sim_row *row)
{
	const u64 *pj = row->mark == READ_ONCE(marks) ? row->marked_pj : row->pj;

	seq_printf(m, "%llu %s %d %llu %llu %llu\n", row->id, kinds[row->kind], cpu, pj[SIM_CORE] / 1000,
		   pj[SIM_UNCORE] / 1000, pj[SIM_DRAM] / 1000);
}

static void show_cpu(struct seq_file *m, struct sim_cpu *c,
		     void (*show_one)(struct seq_file *m, int cpu, const struct sim_row *row))
{
	unsigned int i;

	for (i = 0; i < SIM_ROWS; i++) {
		struct sim_row row;
		unsigned long flags;

		raw_spin_lock_irqsave(&c->lock, flags);
		row = c->rows[i];
		raw_spin_unlock_irqrestore(&c->lock, flags);
		if (row.used)
			show_one(m, c->cpu, &row);
	}
}

static int show(struct seq_file *m, void *unused)
{
	u64 mono = simpmu_settle();
	int cpu;

	seq_printf(m, "mono %llu boot %llu mark %llu\n", mono, mono + ktime_get_boottime_ns() - ktime_get_ns(),
		   READ_ONCE(mark_ns));
	seq_puts(
		m,
		"id kind cpu package time_ns cycles instructions references misses branches branch_misses ref_cycles hidden core_nj uncore_nj dram_nj sibling_ns idle_exits path\n");
	for_each_possible_cpu(cpu) show_cpu(m, sim_cpu_of(cpu), show_row);
	return 0;
}

/* The first line again at the end: the rows are of one mark when both say the same instant. */
static int show_mark(struct seq_file *m, void *unused)
{
	int cpu;

	seq_printf(m, "mark %llu\n", READ_ONCE(mark_ns));
	for_each_possible_cpu(cpu) show_cpu(m, sim_cpu_of(cpu), show_mark_of_row);
	seq_printf(m, "mark %llu\n", READ_ONCE(mark_ns));
	return 0;
}

static int open(struct inode *inode, struct file *file)
{
	return single_open_size(file, show, NULL, 256 * 1024);
}

/* Keeps the rows: tasks that run point to theirs. */
static void reset_cpu(struct sim_cpu *c)
{
	unsigned long flags;
	unsigned int i;

	raw_spin_lock_irqsave(&c->lock, flags);
	for (i = 0; i < SIM_ROWS; i++) {
		memset(c->rows[i].count, 0, sizeof(c->rows[i].count));
		memset(c->rows[i].pj, 0, sizeof(c->rows[i].pj));
		memset(c->rows[i].marked_pj, 0, sizeof(c->rows[i].marked_pj));
	}
	raw_spin_unlock_irqrestore(&c->lock, flags);
}

static ssize_t write(struct file *file, const char __user *buf, size_t size, loff_t *pos)
{
	char word[8] = "";
	int cpu;

	if (copy_from_user(word, buf, min(size, sizeof(word) - 1)))
		return -EFAULT;
	if (strncmp(word, "reset", 5))
		return -EINVAL;
	simpmu_settle();
	for_each_possible_cpu(cpu) reset_cpu(sim_cpu_of(cpu));
	return size;
}

static const struct proc_ops rows_ops = {
	.proc_open = open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
	.proc_write = write,
};

int sim_rows_publish(void)
{
	if (!proc_create("simpmu", 0644, NULL, &rows_ops))
		return -ENOMEM;
	if (proc_create_single("simpmu_mark", 0444, NULL, show_mark))
		return 0;
	remove_proc_entry("simpmu", NULL);
	return -ENOMEM;
}

void sim_rows_hide(void)
{
	remove_proc_entry("simpmu_mark", NULL);
	remove_proc_entry("simpmu", NULL);
}
