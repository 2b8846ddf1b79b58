// SPDX-License-Identifier: GPL-2.0-only
/* /proc/simrapl: the truth per domain. */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/timekeeping.h>
#include "simrapl.h"

static u64 uj(u64 pj)
{
	return pj / PJ_PER_UJ;
}

static int show(struct seq_file *m, void *unused)
{
	u64 mono = model_settle();
	int i, k;

	seq_printf(m, "mono %llu boot %llu\n", mono, mono + ktime_get_boottime_ns() - ktime_get_ns());
	seq_puts(
		m,
		"name unit package die energy_uj static_uj dynamic_uj injected_uj counter_uj powercap_reads perf_reads msr_reads\n");
	for (i = 0; i < rapl_n_units; i++) {
		for (k = 0; k < RAPL_KINDS; k++) {
			const struct rapl_domain *d = &rapl_units[i].domain[k];

			if (!d->exists)
				continue;
			seq_printf(m, "%s %d %d %d %llu %llu %llu %llu %llu %llu %llu %llu\n", model_kind_name(k), i,
				   rapl_units[i].package, rapl_units[i].die,
				   uj(d->static_pj + d->dynamic_pj + d->injected_pj), uj(d->static_pj),
				   uj(d->dynamic_pj), uj(d->injected_pj), uj(d->counter_pj), d->reads[DOOR_POWERCAP],
				   d->reads[DOOR_PERF], d->reads[DOOR_MSR]);
		}
	}
	return 0;
}

int proc_publish(void)
{
	return proc_create_single("simrapl", 0444, NULL, show) ? 0 : -ENOMEM;
}

void proc_hide(void)
{
	remove_proc_entry("simrapl", NULL);
}
