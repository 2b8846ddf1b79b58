/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the sources: what must be there, what is degraded, and how that is said. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../base/clock.h"
#include "../base/log.h"
#include "../source/bpf_log.h"
#include "machine.h"

#define HOST_WAIT_NS (10 * NS_PER_S)

static void task_moved(void *ctx, unsigned cpu)
{
	struct machine *m = ctx;

	if (m->counters)
		counters_close_cpu(m->counters, cpu);
}

static void note_absent(struct machine *m, const struct absent_events *absent)
{
	for (unsigned i = 0; i < absent->n; i++)
		machine_note(m, "event %s is left out: %s", absent->ev[i].name, absent->ev[i].reason);
}

static void note_events(struct machine *m)
{
	const struct event_set *core = &m->schema.core;

	note_absent(m, &m->absent_core);
	note_absent(m, &m->absent_msr);
	for (unsigned i = 0; i < core->n; i++)
		if (core->ev[i].kind == EVENT_TASK_CLOCK && *core->ev[i].reason)
			machine_note(m, "event %s: %s", core->ev[i].name, core->ev[i].reason);
}

static int open_lifecycle(struct machine *m, const struct config *c, bool bpf, struct err *err)
{
	const struct lifecycle_hooks hooks = { .task_moved = task_moved, .ctx = m };

	return lifecycle_open(&m->hierarchy, bpf, c->btf, m->table, &hooks, &m->lifecycle, err);
}

static int open_switch_program(struct machine *m, const struct config *c, struct err *err)
{
	const struct counters_options o = {
		.config = c,
		.root = m->root,
		.hierarchy = &m->hierarchy,
		.seam = &m->seam,
		.core_variants = m->core_variants,
		.msr_variants = m->msr_variants,
		.btf = c->btf,
	};
	int rc = open_lifecycle(m, c, true, err);

	if (!rc)
		rc = counters_open(&o, &m->schema, &m->counters, err);
	if (rc) {
		lifecycle_close(m->lifecycle);
		m->lifecycle = NULL;
	}
	return rc;
}

static int open_cpustat(struct machine *m, const struct config *c, struct err *err)
{
	int rc = open_lifecycle(m, c, false, err);

	return rc ? rc : cpustat_open(&m->hierarchy, m->root, &m->schema, &m->cpustat, err);
}

/* Who asked for a trigger or gave type information gets it or an error; auto goes down to cpu.stat,
 * and says why. */
static int open_rows(struct machine *m, const struct config *c, struct err *err)
{
	bool live = fsroot_is_live(m->root);
	struct err why = { 0 };
	int rc;

	if (!m->have_hierarchy)
		return 0;
	if (c->trigger == TRIGGER_NONE || !live)
		return open_cpustat(m, c, err);
	rc = open_switch_program(m, c, &why);
	if (!rc || c->trigger != TRIGGER_AUTO || c->btf || rc == -ENOMEM) {
		if (rc && err)
			*err = why;
		return rc;
	}
	machine_note(m, "%s", why.text);
	machine_note(m,
		     "trigger: no switch program; CPU time comes from cpu.stat, without counters (see jouled doctor)");
	/* the table holds what the failed attempt walked; the walk of the other one finds it known */
	return open_cpustat(m, c, err);
}

/* In a captured machine the mount lies below its directory. */
static int move_below_root(struct machine *m, struct err *err)
{
	size_t len = strlen(fsroot_dir(m->root)), mount = strlen(m->hierarchy.mount);

	if (len + mount >= sizeof(m->hierarchy.mount))
		return err_set(err, -ENAMETOOLONG, "--root: the path of the captured cgroups is too long; move it up");
	memmove(m->hierarchy.mount + len, m->hierarchy.mount, mount + 1);
	memcpy(m->hierarchy.mount, fsroot_dir(m->root), len);
	return 0;
}

static int open_hierarchy(struct machine *m, const struct config *c, struct err *err)
{
	struct err why = { 0 };
	int rc = hierarchy_detect(m->root, c->hierarchy, &m->hierarchy, &why);

	m->have_hierarchy = rc == 0;
	if (!rc)
		return fsroot_is_live(m->root) ? 0 : move_below_root(m, err);
	if (!fsroot_is_live(m->root)) {
		machine_note(m, "%s", why.text);
		return 0;
	}
	if (err)
		*err = why;
	return rc;
}

/* Says for every interface that is there and may not be read, or does not work, what to do. */
static void note_interfaces(struct machine *m)
{
	const struct energy_source_ops *ops[8];
	struct energy_source *src[8];
	unsigned n = rapl_interfaces(m->rapl, ops, src, 8);
	const char *reason = "";

	for (unsigned i = 0; i < n; i++) {
		enum energy_state state = ops[i]->state(src[i], &reason);

		if (state == ENERGY_DENIED || state == ENERGY_BROKEN)
			machine_note(m, "rapl: %s is %s: %s", energy_interface_name(ops[i]->interface),
				     energy_state_name(state), reason ? reason : "");
	}
}

static int open_energy(struct machine *m, const struct config *c, struct err *err)
{
	const struct rapl_options o = { .mode = c->host ? RAPL_NONE : c->rapl,
					.cross_check = c->cross_check,
					.poll_ns = c->rapl_poll_ns };
	const struct host_options host = { .root = m->root, .place = c->host, .wait_ns = HOST_WAIT_NS };
	int rc = rapl_open(m->root, &m->seam, &o, &m->schema, &m->rapl, err);

	if (!rc && c->host)
		rc = host_open(&host, &m->schema, &m->host, err);
	if (rc)
		return rc;
	if (m->schema.n_domains)
		return 0;
	if (c->rapl == RAPL_AUTO)
		note_interfaces(m);
	if (c->estimate == ESTIMATE_OFF) {
		machine_note(m, "energy: no counter on this machine, and estimate is off; counters only");
		return 0;
	}
	rc = estimate_open(&m->schema, c->estimate_idle_watts, c->estimate_max_watts, &m->estimate);
	if (rc)
		return err_set(err, rc, "estimate: %s; free memory or set estimate: off", strerror(-rc));
	machine_note(
		m,
		"energy: no counter on this machine; estimated from CPU time, %g W idle to %g W per core (estimate-*-watts)",
		c->estimate_idle_watts, c->estimate_max_watts);
	return 0;
}

static void open_network(struct machine *m, const struct config *c)
{
	struct err why = { 0 };

	if (!c->network || !m->counters)
		return;
	if (!m->hierarchy.v2) {
		log_info("network: not counted on a v1 hierarchy");
		return;
	}
	if (network_open(&m->hierarchy, c->btf, (unsigned)c->max_cgroups, &m->network, &why) != 0)
		machine_note(m, "%s", why.text);
}

static int open_names(struct machine *m, const struct config *c)
{
	const struct kubelet_options o = { m->root, c->kubelet, c->kubelet_token_file, c->kubelet_ca_file,
					   c->kubelet_insecure };
	struct kubelet *k;

	if (!m->have_hierarchy || c->cgroups_names == NAMES_OFF)
		return 0;
	if (naming_open(m->root, m->hierarchy.mount, &m->naming) != 0)
		return -ENOMEM;
	if (!c->kubelet || !fsroot_is_live(m->root))
		return 0;
	if (kubelet_open(&o, &k) != 0)
		return -ENOMEM;
	naming_use_kubelet(m->naming, k);
	return 0;
}

int machine_open(struct machine *m, const struct config *c, struct err *err)
{
	int rc;

	m->max_cgroups = c->max_cgroups;
	bpf_log_capture();
	if (c->btf && access(c->btf, R_OK) != 0)
		return err_set(err, -errno, "--btf %s: %s; name a file with the kernel's BTF", c->btf, strerror(errno));
	m->table = cgroup_table_new();
	m->online = calloc(1, m->schema.n_cpus / 8 + 1);
	if (!m->table || !m->online)
		return err_set(err, -ENOMEM, "jouled: out of memory");
	note_events(m);
	machine_select(m, c);
	rc = open_hierarchy(m, c, err);
	if (!rc)
		rc = open_rows(m, c, err);
	if (!rc)
		rc = open_energy(m, c, err);
	if (!rc)
		rc = machine_open_devices(m, c, err);
	if (rc)
		return rc;
	open_network(m, c);
	machine_open_spans(m, c);
	if (open_names(m, c) != 0)
		return err_set(err, -ENOMEM, "jouled: out of memory");
	rc = cpufreq_open(m->root, &m->schema, &m->cpufreq);
	if (!rc)
		rc = reading_init(&m->reading, &m->schema);
	if (rc)
		return err_set(err, rc, "jouled: out of memory; lower cgroups.max");
	if (fsroot_is_live(m->root))
		m->jump_fd = clock_jump_open();
	log_info("trigger %s, clock %s, %u CPUs, %u energy domains", m->schema.trigger, m->schema.clock,
		 m->schema.n_cpus, m->schema.n_domains);
	machine_read(m);
	for (unsigned i = 0; i < m->schema.n_cpus; i++)
		m->schema.n_online += m->reading.cpus[i].online;
	return 0;
}
