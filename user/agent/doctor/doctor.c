/* SPDX-License-Identifier: Apache-2.0 */
/* jouled doctor: opens every source by itself and prints one line with the result. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "agent/machine/machine.h"
#include "base/text.h"
#include "check.h"
#include "doctor.h"
#include "source/bpf_load.h"
#include "source/names/kubelet.h"

void doctor_line(const char *what, const char *state, const char *fmt, ...)
{
	char text[600], clean[800];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	printf("%-20s %-7s %s\n", what, state, text_clean(clean, sizeof(clean), text));
}

static const char *state_of(int rc)
{
	switch (rc) {
	case 0:
		return "ok";
	case -EPERM:
	case -EACCES:
		return "denied";
	case -ENOENT:
	case -ENODEV:
	case -ENXIO:
	case -EOPNOTSUPP:
	case -ENOSYS:
		return "absent";
	default:
		return "broken";
	}
}

/* Tests the magic, because a container runtime may mask the file with an empty one. */
static bool is_btf(int fd)
{
	const uint16_t magic = 0xeB9F; /* BTF_MAGIC, linux/btf.h; in the machine's own byte order */
	uint16_t found;

	return fd >= 0 && read(fd, &found, sizeof(found)) == (ssize_t)sizeof(found) && found == magic;
}

static void tell_btf(const struct machine *m, const char *given)
{
	const char *btf = "/sys/kernel/btf/vmlinux";
	int fd = fsroot_openat(m->root, btf, O_RDONLY);

	if (given)
		doctor_line("BTF", "ok", "%s, as --btf says", given);
	else if (is_btf(fd))
		doctor_line("BTF", "ok", "%s", btf);
	else if (fd == -ENOENT)
		doctor_line("BTF", "absent",
			    "%s is not there; boot a kernel with CONFIG_DEBUG_INFO_BTF or give --btf FILE", btf);
	else
		doctor_line("BTF", "broken",
			    "%s has no type information or cannot be read; unmask it or give --btf FILE", btf);
	if (fd >= 0)
		close(fd);
}

static void tell_kernel(const struct machine *m, const char *btf)
{
	char text[64];

	tell_btf(m, btf);
	if (fsroot_read(m->root, "/proc/sys/kernel/perf_event_paranoid", text, sizeof(text)) >= 0)
		doctor_line("perf_event_paranoid", "ok", "%s%s", text,
			    strtol(text, NULL, 10) > 2 ?
				    "; above 2 even CAP_PERFMON may not do: sysctl kernel.perf_event_paranoid=2" :
				    "");
	else
		doctor_line("perf_event_paranoid", "absent",
			    "no perf events in this kernel; boot one with CONFIG_PERF_EVENTS");
}

/* Prints nothing when lockdown is absent or securityfs cannot be read. */
static void tell_lockdown(const struct machine *m)
{
	char text[128], *from, *to;

	if (fsroot_read(m->root, "/sys/kernel/security/lockdown", text, sizeof(text)) <= 0)
		return;
	from = strchr(text, '[');
	to = from ? strchr(from, ']') : NULL;
	if (!to)
		return;
	*to = '\0';
	if (bpf_locked_down(m->root))
		doctor_line("lockdown", "denied", "%s: counters, lifecycle: " BPF_LOCKED_DOWN, from + 1);
	else
		doctor_line("lockdown", "ok", "%s", from + 1);
}

static void tell_events(const char *group, const struct event_set *set, const struct absent_events *absent)
{
	char what[24 + SCHEMA_NAME_MAX];

	for (unsigned i = 0; i < set->n; i++) {
		const struct event_desc *e = &set->ev[i];

		snprintf(what, sizeof(what), "%s %s", group, e->name);
		doctor_line(what, "ok", "%s%s%s", *e->pmu ? e->pmu : event_source_word(e->kind), *e->reason ? ": " : "",
			    e->reason);
	}
	for (unsigned i = 0; i < absent->n; i++) {
		snprintf(what, sizeof(what), "%s %s", group, absent->ev[i].name);
		doctor_line(what, strstr(absent->ev[i].reason, "denied") ? "denied" : "absent", "%s",
			    absent->ev[i].reason);
	}
}

static void tell_hierarchy(struct machine *m, enum hierarchy_mode mode)
{
	struct err err = { 0 };
	int rc = hierarchy_detect(m->root, mode, &m->hierarchy, &err);

	m->have_hierarchy = rc == 0;
	if (rc)
		doctor_line("hierarchy", state_of(rc), "%s", err.text);
	else
		doctor_line("hierarchy", "ok", "%s at %s: %s", m->hierarchy.v2 ? "v2" : "v1 perf_event",
			    m->hierarchy.mount, m->hierarchy.reason);
}

static void tell_trigger(struct machine *m, const struct machine_config *c)
{
	const struct counters_options o = machine_counters_options(m, c);
	struct err err = { 0 };
	int rc;

	if (c->trigger == TRIGGER_NONE) {
		doctor_line("trigger", "ok", "none: CPU time from cpu.stat");
		return;
	}
	rc = counters_open(&o, &m->schema, &m->counters, &err);
	if (rc) {
		doctor_line("trigger", state_of(rc), "%s", err.text);
		return;
	}
	doctor_line("trigger", "ok", "%s, clock %s%s%s%s%s; %llu KiB of maps", m->schema.trigger, m->schema.clock,
		    m->schema.multiplexed ? ", events multiplexed" : "",
		    m->schema.idle_merged ? ", root and idle merged" : "", *counters_reason(m->counters) ? "; " : "",
		    counters_reason(m->counters), (unsigned long long)(counters_map_bytes(m->counters) / 1024));
}

#define NO_PROGRAM "counted beside a switch program alone; see trigger"

static void tell_block(struct machine *m, const struct machine_config *c)
{
	struct err err = { 0 };
	char text[400];
	int rc;

	if (!c->block) {
		doctor_line("block", "absent", "block: false");
		return;
	}
	rc = block_open(m->root, &m->hierarchy, c->btf, (unsigned)c->cgroups.max, &m->block, &err);
	if (!rc)
		block_describe(m->block, text, sizeof(text));
	if (!rc && !m->counters)
		doctor_line("block", "absent", NO_PROGRAM);
	else
		doctor_line("block", rc ? state_of(rc) : block_state(m->block), "%s", rc ? err.text : text);
}

static void tell_programs(struct machine *m, const struct machine_config *c)
{
	struct lifecycle_options o = { .hierarchy = &m->hierarchy, .bpf = true, .btf = c->btf };
	struct err err = { 0 };
	int rc;

	if (!m->have_hierarchy || !fsroot_is_live(m->root))
		return;
	o.table = m->table = cgroup_table_new();
	rc = m->table ? lifecycle_open(&o, &m->lifecycle, &err) : -ENOMEM;
	if (rc)
		doctor_line("lifecycle", state_of(rc), "%s", err.text);
	else
		doctor_line("lifecycle", "ok", "%u cgroup%s", cgroup_table_count(m->table),
			    cgroup_table_count(m->table) == 1 ? "" : "s");
	tell_trigger(m, c);
	if (!c->network) {
		doctor_line("network", "absent", "network: false");
	} else if (!m->hierarchy.v2) {
		doctor_line("network", "absent", "counted on v2 only");
	} else {
		rc = network_open(&m->hierarchy, c->btf, (unsigned)c->cgroups.max, &m->network, &err);
		if (!rc && !m->counters)
			doctor_line("network", "absent", NO_PROGRAM);
		else
			doctor_line("network", state_of(rc), "%s", rc ? err.text : "bytes and packets per cgroup");
	}
	tell_block(m, c);
}

static void tell_interface(const struct energy_source_ops *ops, const struct energy_source *e)
{
	const struct energy_probe *probes;
	const char *reason = NULL, *note;
	enum energy_state state = ops->state(e, &reason);
	unsigned n = ops->probes(e, &probes);
	char what[80];

	snprintf(what, sizeof(what), "rapl %s", energy_interface_name(ops->interface));
	doctor_line(what, energy_state_name(state), "%s", reason ? reason : "");
	for (unsigned i = 0; i < n; i++) {
		snprintf(what, sizeof(what), "  %s", probes[i].name);
		doctor_line(what, energy_state_name(probes[i].state), "%s%s%s", probes[i].subject,
			    *probes[i].reason ? ": " : "", probes[i].reason);
	}
	for (unsigned i = 0; ops->note && (note = ops->note(e, i)); i++)
		doctor_line("  note", "", "%s", note);
}

static void tell_sensors(const struct machine *m)
{
	enum energy_state state;
	const char *text;

	for (unsigned i = 0; m->sensors && (text = sensors_finding(m->sensors, i, &state)); i++)
		doctor_line("sensor", energy_state_name(state), "%s", text);
	if (m->sensors && !sensors_finding(m->sensors, 0, &state))
		doctor_line("sensor", "absent", "no energy or power of the CPUs in hwmon or other powercap zones");
}

static void tell_energy(struct machine *m, const struct energy_config *c)
{
	const struct rapl_options o = { .root = m->root,
					.seam = &m->seam,
					.mode = c->host ? RAPL_NONE : c->rapl,
					.cross_check = c->cross_check,
					.poll_ns = c->rapl_poll_ns };
	const struct energy_source_ops *ops[8];
	struct energy_source *src[8];
	struct err err = { 0 };
	unsigned n;
	int rc = rapl_open(&o, &m->schema, &m->rapl, &err);

	if (rc) {
		doctor_line("rapl", state_of(rc), "%s", err.text);
		return;
	}
	n = rapl_interfaces(m->rapl, ops, src, 8);
	for (unsigned i = 0; i < n; i++)
		tell_interface(ops[i], src[i]);
	if (c->host)
		doctor_tell_host(m, c->host);
	if (machine_find_sensors(m, c, &err) == 0)
		tell_sensors(m);
	for (unsigned i = 0; i < m->schema.n_domains; i++)
		doctor_line("domain", "ok", "%s from %s: %s", m->schema.domains[i].name,
			    energy_interface_name(m->schema.domains[i].interface), m->schema.domains[i].reason);
	if (!machine_needs_estimate(m))
		doctor_line("estimate", "ok", "not needed");
	else if (c->estimate == ESTIMATE_OFF)
		doctor_line("estimate", "absent", "estimate: off, so there is no energy on this machine");
	else {
		doctor_line("estimate", "ok",
			    "stands for the missing counters: %g W idle to %g W per core, all values estimated",
			    c->estimate_idle_watts, c->estimate_max_watts);
		/* a calibration of the wall names what it stands on */
		if (estimate_open(&m->schema, c->estimate_idle_watts, c->estimate_max_watts, &m->estimate) != 0)
			doctor_line("estimate", "broken", "out of memory; free some");
	}
}

/* Sends one request to the kubelet, as the naming source does, if the configuration names one. */
static void tell_kubelet(const struct machine *m, const struct machine_config *c)
{
	const struct kubelet_options o = { m->root, c->kubelet.url, c->kubelet.token_file, c->kubelet.ca_file,
					   c->kubelet.insecure };
	struct err err = { 0 };
	struct kubelet *k;
	int n;

	if (!c->kubelet.url)
		return;
	if (c->cgroups.names == NAMES_OFF) {
		doctor_line("kubelet", "absent", "cgroups.names: off");
		return;
	}
	if (kubelet_open(&o, &k) != 0)
		return;
	n = kubelet_ask(k, &err);
	if (n < 0)
		doctor_line("kubelet", n == -EACCES || n == -EKEYREJECTED ? "denied" : "absent", "%s", err.text);
	else
		doctor_line("kubelet", "ok", "%s: %d pods%s", c->kubelet.url, n,
			    c->kubelet.insecure ? ", its certificate not checked" : "");
	kubelet_close(k);
}

static void tell_all(struct machine *m, const struct config *c)
{
	struct err err = { 0 };
	bool live = fsroot_is_live(m->root);
	int rc = machine_look(m, c, &err);

	if (live)
		doctor_tell_rights(m, c);
	else
		doctor_line("machine", "ok", "captured in %s: programs are not tried", fsroot_dir(m->root));
	tell_kernel(m, c->machine.btf);
	tell_lockdown(m);
	if (rc)
		doctor_line("topology", state_of(rc), "%s", err.text);
	tell_events("event", &m->schema.core, &m->absent_core);
	tell_events("event", &m->schema.msr, &m->absent_msr);
	tell_hierarchy(m, c->machine.cgroups.hierarchy);
	if (rc)
		return;
	tell_programs(m, &c->machine);
	tell_energy(m, &c->machine.energy);
	doctor_tell_devices(m, c);
	if (live) {
		tell_kubelet(m, &c->machine);
		doctor_tell_outputs(m, c);
	}
}

int doctor_run(const struct config *c, struct err *err)
{
	struct machine *m = NULL;
	int rc = check_config(c, err);

	bpf_log_begin();
	if (rc != -EINVAL)
		rc = machine_enter(c->machine.root, &m, err);
	if (rc)
		return rc;
	tell_all(m, c);
	machine_close(m);
	return 0;
}
