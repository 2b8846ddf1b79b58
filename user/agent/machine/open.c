/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the sources. Some must be present. Others are replaced or left out, with a note. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "source/bpf_load.h"
#include "machine.h"

#define HOST_WAIT_NS (10 * NS_PER_S)

static void task_moved(void *ctx, unsigned cpu)
{
	struct machine *m = ctx;

	if (m->counters)
		counters_close_cpu(m->counters, cpu);
}

static int open_lifecycle(struct machine *m, const char *btf, bool bpf, struct err *err)
{
	const struct lifecycle_options o = { .hierarchy = &m->hierarchy,
					     .table = m->table,
					     .bpf = bpf,
					     .btf = btf,
					     .hooks = { .task_moved = task_moved, .ctx = m } };

	return lifecycle_open(&o, &m->lifecycle, err);
}

struct counters_options machine_counters_options(struct machine *m, const struct machine_config *c)
{
	return (struct counters_options){
		.trigger = c->trigger,
		.clock = c->clock,
		.max_cgroups = c->cgroups.max,
		.quota = c->cgroups.quota,
		.root = m->root,
		.hierarchy = &m->hierarchy,
		.seam = &m->seam,
		.core_variants = m->core_variants,
		.msr_variants = m->msr_variants,
		.btf = c->btf,
	};
}

static int open_switch_program(struct machine *m, const struct machine_config *c, struct err *err)
{
	const struct counters_options o = machine_counters_options(m, c);
	int rc = open_lifecycle(m, c->btf, true, err);

	if (!rc)
		rc = counters_open(&o, &m->schema, &m->counters, err);
	if (rc) {
		lifecycle_close(m->lifecycle);
		m->lifecycle = NULL;
	}
	return rc;
}

static int open_cpustat(struct machine *m, struct err *err)
{
	int rc = open_lifecycle(m, NULL, false, err);

	return rc ? rc : cpustat_open(&m->hierarchy, m->root, &m->schema, &m->cpustat, err);
}

/* Opens the source of rows. A configured trigger or type information must work, or this is an error. With
 * trigger auto it falls back to cpu.stat and notes why. */
static int open_rows(struct machine *m, const struct machine_config *c, struct err *err)
{
	bool live = fsroot_is_live(m->root);
	struct err why = { 0 };
	int rc;

	if (!m->have_hierarchy)
		return 0;
	if (c->trigger == TRIGGER_NONE || !live)
		return open_cpustat(m, err);
	rc = open_switch_program(m, c, &why);
	if (!rc || c->trigger != TRIGGER_AUTO || c->btf || rc == -ENOMEM) {
		if (rc && err)
			*err = why;
		return rc;
	}
	machine_note(m, "%s", why.text);
	machine_note(m,
		     "trigger: no switch program; CPU time comes from cpu.stat, without counters (see jouled doctor)");
	const struct event_group core = machine_core_events(m, c);

	events_lose_switches(&core);
	/* the table keeps the cgroups of the failed attempt; the next walk finds them there */
	return open_cpustat(m, err);
}

/* For a captured machine: the mount point lies below its directory. */
static int move_below_root(struct machine *m, struct err *err)
{
	size_t len = strlen(fsroot_dir(m->root)), mount = strlen(m->hierarchy.mount);

	if (len + mount >= sizeof(m->hierarchy.mount))
		return err_set(err, -ENAMETOOLONG, "--root: the path of the captured cgroups is too long; move it up");
	memmove(m->hierarchy.mount + len, m->hierarchy.mount, mount + 1);
	memcpy(m->hierarchy.mount, fsroot_dir(m->root), len);
	return 0;
}

static int open_hierarchy(struct machine *m, enum hierarchy_mode mode, struct err *err)
{
	struct err why = { 0 };
	int rc = hierarchy_detect(m->root, mode, &m->hierarchy, &why);

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

/* Notes a remedy for every interface that is present but may not be read or does not work. */
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

int machine_find_sensors(struct machine *m, const struct energy_config *c, struct err *err)
{
	m->rapl_domains = m->schema.n_domains;
	return c->host || c->rapl != RAPL_AUTO ? 0 : sensors_open(m->root, &m->schema, &m->sensors, err);
}

bool machine_needs_estimate(const struct machine *m)
{
	return !m->rapl_domains && !sensors_cover_cpus(&m->schema);
}

static int open_energy(struct machine *m, const struct energy_config *c, struct err *err)
{
	const struct rapl_options o = { .root = m->root,
					.seam = &m->seam,
					.mode = c->host ? RAPL_NONE : c->rapl,
					.cross_check = c->cross_check,
					.poll_ns = c->rapl_poll_ns };
	const struct host_options host = { .root = m->root, .place = c->host, .wait_ns = HOST_WAIT_NS };
	int rc = rapl_open(&o, &m->schema, &m->rapl, err);

	if (!rc && c->host)
		rc = host_open(&host, &m->schema, &m->host, err);
	if (rc)
		return rc;
	if (machine_find_sensors(m, c, err) != 0)
		return -ENOMEM;
	if (!machine_needs_estimate(m))
		return 0;
	if (c->rapl == RAPL_AUTO)
		note_interfaces(m);
	if (c->estimate == ESTIMATE_OFF)
		return 0;
	rc = estimate_open(&m->schema, c->estimate_idle_watts, c->estimate_max_watts, &m->estimate);
	if (rc)
		return err_set(err, rc, "estimate: %s; free memory or set estimate: off", strerror(-rc));
	m->estimate_idle_watts = c->estimate_idle_watts;
	m->estimate_max_watts = c->estimate_max_watts;
	return 0;
}

static void open_network(struct machine *m, const struct machine_config *c)
{
	struct err err = { 0 };

	if (!c->network || !m->counters)
		return;
	if (!m->hierarchy.v2) {
		log_info("network: not counted on a v1 hierarchy");
		return;
	}
	if (network_open(&m->hierarchy, c->btf, (unsigned)c->cgroups.max, &m->network, &err) != 0)
		machine_note(m, "%s", err.text);
}

static void open_block(struct machine *m, const struct machine_config *c)
{
	struct err err = { 0 };

	if (c->block && m->counters &&
	    block_open(m->root, &m->hierarchy, c->btf, (unsigned)c->cgroups.max, &m->block, &err) != 0)
		machine_note(m, "%s", err.text);
}

static int open_names(struct machine *m, const struct machine_config *c)
{
	const struct kubelet_options o = { m->root, c->kubelet.url, c->kubelet.token_file, c->kubelet.ca_file,
					   c->kubelet.insecure };
	struct kubelet *k;

	if (!m->have_hierarchy || c->cgroups.names == NAMES_OFF)
		return 0;
	if (naming_open(m->root, m->hierarchy.mount, &m->naming) != 0)
		return -ENOMEM;
	if (m->lifecycle)
		lifecycle_watch_births(m->lifecycle); /* files of a short container are read while they are there */
	if (!c->kubelet.url || !fsroot_is_live(m->root))
		return 0;
	if (kubelet_open(&o, &k) != 0)
		return -ENOMEM;
	naming_use_kubelet(m->naming, k);
	return 0;
}

int machine_open(struct machine *m, const struct machine_config *c, struct err *err)
{
	int rc;

	m->max_cgroups = c->cgroups.max;
	bpf_log_begin();
	if (c->btf && access(c->btf, R_OK) != 0)
		return err_set(err, -errno, "--btf %s: %s; name a file with the kernel's BTF", c->btf, strerror(errno));
	m->table = cgroup_table_new();
	m->online = calloc(1, m->schema.n_cpus / 8 + 1);
	m->online_changes = calloc(m->schema.n_cpus + 1, sizeof(*m->online_changes));
	if (!m->table || !m->online || !m->online_changes)
		return err_set(err, -ENOMEM, "jouled: out of memory; free some");
	machine_select(m, &c->cgroups);
	rc = open_hierarchy(m, c->cgroups.hierarchy, err);
	if (!rc)
		rc = open_rows(m, c, err);
	if (!rc)
		rc = open_energy(m, &c->energy, err);
	if (!rc)
		rc = machine_open_devices(m, c, err);
	if (rc)
		return rc;
	open_network(m, c);
	open_block(m, c);
	machine_open_spans(m, &c->spans, c->btf);
	if (open_names(m, c) != 0)
		return err_set(err, -ENOMEM, "jouled: out of memory; free some");
	rc = cpufreq_open(m->root, &m->schema, &m->cpufreq);
	if (!rc)
		rc = reading_init(&m->reading, &m->schema);
	if (rc)
		return err_set(err, rc, "jouled: out of memory; lower cgroups.max");
	m->statm_fd = own_open(m->root);
	if (fsroot_is_live(m->root))
		m->jump_fd = clock_jump_open();
	log_info("trigger %s, clock %s, %u CPUs, %u energy domains", m->schema.trigger, m->schema.clock,
		 m->schema.n_cpus, m->schema.n_domains);
	machine_read(m);
	for (unsigned i = 0; i < m->schema.n_cpus; i++)
		m->schema.n_online += m->reading.cpus[i].online;
	return 0;
}
