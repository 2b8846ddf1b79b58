/* SPDX-License-Identifier: Apache-2.0 */
/* RAPL registers (Intel SDM 3B 15.10; AMD PPR, MSRC001_0299; events/rapl.c for gaps of the manuals). The registers
 * themselves tell which domains exist: EIO and a counter at 0 both mean that there is none (a hypervisor answers 0
 * for registers it does not know). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "domain.h"
#include "msr_port.h"

#define MAX_CPUS 8192
#define PACKAGE_CTLS 0xbc /* IA32_MISC_PACKAGE_CTLS, bit 0: energy filtering */
#define AMD_FIRST_FAMILY 0x17 /* Zen; Hygon begins at 0x18 */

struct msr_registers {
	uint32_t unit;
	unsigned n;
	struct {
		uint32_t reg;
		enum domain_kind kind;
		bool per_core;
	} counter[5];
};

static const struct msr_registers intel_registers = {
	0x606,
	5,
	{ { 0x611, DOMAIN_PACKAGE, false },
	  { 0x639, DOMAIN_CORE, false },
	  { 0x641, DOMAIN_UNCORE, false },
	  { 0x619, DOMAIN_DRAM, false },
	  { 0x64d, DOMAIN_PSYS, false } },
};
static const struct msr_registers amd_registers = {
	0xc0010299,
	2,
	{ { 0xc001029b, DOMAIN_PACKAGE, false }, { 0xc001029a, DOMAIN_CORE, true } },
};

struct msr_domain {
	uint32_t reg;
	bool per_core;
	struct msr_port *parts;
};

struct msr {
	struct energy_source base;
	const struct fsroot *root;
	const struct schema *schema;
	struct cpu_model cpu;
	const struct msr_registers *registers;
	struct msr_domain domains[SCHEMA_MAX_DOMAINS];
	uint8_t online[MAX_CPUS / 8];
};

static bool one_of(unsigned model, const uint8_t *models, unsigned n)
{
	return memchr(models, (int)model, n) && model < 256;
}

/* Server DRAM counts in 2^-16 J whatever the unit register says: HSX BDX BDX-DE SKX/CLX ICX ICX-D
 * KNL KNM; SPR and EMR do not (Linux 80275ca9e525). Their psys counts whole joules. */
static void set_unit(const struct msr *m, struct energy_probe *p, unsigned esu)
{
	static const uint8_t fixed_dram[] = { 63, 79, 86, 85, 106, 108, 87, 133 }, joule_psys[] = { 143, 207 };
	bool family6 = m->registers == &intel_registers && m->cpu.family == 6;

	if (family6 && p->kind == DOMAIN_DRAM && one_of(m->cpu.model, fixed_dram, sizeof(fixed_dram)))
		esu = 16;
	if (family6 && p->kind == DOMAIN_PSYS && one_of(m->cpu.model, joule_psys, sizeof(joule_psys)))
		esu = 0;
	p->uj_num = 1000000;
	p->uj_den = 1ull << esu;
	p->wrap_units = 1ull << 32;
}

/* The registers of this CPU; NULL with the state set when they are not known. */
static const struct msr_registers *registers_of(struct msr *m)
{
	/* Silvermont and Airmont: the manual says 2^ESU uJ, at least 0x4D counts 2^-ESU J */
	static const uint8_t unclear[] = { 0x37, 0x4a, 0x4c, 0x4d, 0x5a, 0x5d };

	if (strcmp(m->cpu.vendor, "GenuineIntel") == 0) {
		if (m->cpu.family != 6 || !one_of(m->cpu.model, unclear, sizeof(unclear)))
			return &intel_registers;
		energy_source_set(&m->base, ENERGY_ABSENT,
				  "the energy unit of this Atom is not certain; take powercap");
	} else if (energy_per_socket(&m->cpu) && m->cpu.family >= AMD_FIRST_FAMILY) {
		return &amd_registers;
	} else {
		energy_source_set(&m->base, ENERGY_ABSENT, "this CPU has no energy registers that are known here");
	}
	return NULL;
}

static bool is_online(const struct msr *m, unsigned cpu)
{
	return cpu < MAX_CPUS && (m->online[cpu / 8] >> (cpu % 8) & 1);
}

static bool same_domain(const struct msr *m, const struct cpu_desc *a, const struct cpu_desc *b, bool per_core)
{
	if (!a->present || !b->present || a->package != b->package)
		return false;
	if (per_core)
		return a->core == b->core && a->die == b->die;
	return energy_per_socket(&m->cpu) || a->die == b->die;
}

/* Opens the first online CPU that sees the counter of `of`. -ENXIO when none is online. */
static int open_port(const struct msr *m, const struct cpu_desc *of, bool per_core, struct msr_port *ret)
{
	int rc = -ENXIO;

	for (unsigned i = 0; i < m->schema->n_cpus && rc == -ENXIO; i++) {
		if (is_online(m, i) && same_domain(m, of, &m->schema->cpus[i], per_core))
			rc = msr_port_open(m->root, i, ret);
	}
	return rc;
}

/* Opens the first CPU of every core (per_core) or of the whole domain, one part each. Returns their number. */
static unsigned open_parts(const struct msr *m, const struct cpu_desc *of, bool per_core, struct msr_port *parts)
{
	unsigned n = 0;

	for (unsigned i = 0; i < m->schema->n_cpus; i++) {
		const struct cpu_desc *c = &m->schema->cpus[i];
		bool seen = false;

		if (!same_domain(m, of, c, false))
			continue;
		for (unsigned j = 0; j < i && !seen; j++)
			seen = same_domain(m, c, &m->schema->cpus[j], per_core);
		if (seen)
			continue;
		parts[n] = (struct msr_port){ .fd = -1, .cpu = i };
		open_port(m, c, per_core, &parts[n]);
		n++;
	}
	return n;
}

/* 0 when some part answers with a number that is not 0. */
static int try_counter(const struct msr_domain *d, unsigned parts, uint64_t *ret)
{
	uint64_t any = 0, value;
	int rc = -ENXIO;

	for (unsigned i = 0; i < parts; i++) {
		int one = msr_port_read(&d->parts[i], d->reg, &value);

		if (one == 0)
			any |= value & UINT32_MAX;
		if (rc)
			rc = one;
	}
	*ret = any;
	return rc;
}

static int add_counter(struct msr *m, const struct cpu_desc *of, unsigned which, unsigned esu)
{
	struct msr_domain *d = &m->domains[m->base.n];
	struct energy_probe *p;
	uint64_t value;
	int rc;

	p = energy_source_add(&m->base, m->registers->counter[which].kind, of->package,
			      energy_die_of(m->schema, &m->cpu, of));
	if (!p)
		return 0;
	d->reg = m->registers->counter[which].reg;
	d->per_core = m->registers->counter[which].per_core;
	d->parts = calloc(d->per_core ? m->schema->n_cpus : 1, sizeof(*d->parts));
	if (!d->parts)
		return -ENOMEM;
	p->parts = open_parts(m, of, d->per_core, d->parts);
	p->cpu = (int)d->parts[0].cpu;
	snprintf(p->subject, sizeof(p->subject), "register 0x%x on CPU %d%s", d->reg, p->cpu,
		 p->parts > 1 ? " and others" : "");
	set_unit(m, p, esu);
	rc = try_counter(d, p->parts, &value);
	if (rc == -EIO)
		energy_probe_set(p, ENERGY_ABSENT, "this CPU has no such register (EIO)");
	else if (rc == -EACCES || rc == -EPERM)
		energy_probe_set(p, ENERGY_DENIED, "the register may not be read; give CAP_SYS_RAWIO");
	else if (rc)
		energy_probe_set(p, ENERGY_BROKEN, "the register cannot be read (%s); see the kernel log",
				 strerror(-rc));
	else if (!value)
		energy_probe_set(p, ENERGY_ABSENT, "the counter reads 0: not there, or a virtual machine");
	return 0;
}

static void say_access(struct energy_source *e, int rc)
{
	if (rc == -ENOENT)
		energy_source_set(e, ENERGY_ABSENT, "no /dev/cpu/N/msr; load the msr module (modprobe msr)");
	else if (rc == -EACCES || rc == -EPERM)
		energy_source_set(e, ENERGY_DENIED,
				  "/dev/cpu/N/msr may not be read; run as root or with CAP_SYS_RAWIO");
	else if (rc == -EIO)
		energy_source_set(e, ENERGY_ABSENT, "this CPU has no RAPL unit register (EIO)");
	else
		energy_source_set(e, ENERGY_BROKEN, "/dev/cpu/N/msr: %s; see the kernel log", strerror(-rc));
}

static int add_package(struct msr *m, const struct cpu_desc *of)
{
	struct msr_port port = { .fd = -1 };
	int rc = open_port(m, of, false, &port);
	uint64_t unit = 0, ctls;

	if (!rc)
		rc = msr_port_read(&port, m->registers->unit, &unit);
	if (!rc && unit && m->registers == &intel_registers && msr_port_read(&port, PACKAGE_CTLS, &ctls) == 0 &&
	    (ctls & 1))
		energy_source_add_note(
			&m->base,
			"package-%u: energy filtering is on (register 0xbc): values of short intervals carry noise",
			of->package);
	msr_port_close(&port);
	if (rc)
		say_access(&m->base, rc);
	else if (!unit)
		energy_source_set(&m->base, ENERGY_ABSENT, "the unit register reads 0: no RAPL (virtual machine)");
	if (rc == -ENXIO)
		energy_source_add_note(&m->base, "package-%u: all its CPUs are offline; not measured", of->package);
	if (rc || !unit)
		return 0;
	for (unsigned i = 0; i < m->registers->n; i++) {
		rc = add_counter(m, of, i, (unsigned)(unit >> 8 & 0x1f));
		if (rc)
			return rc;
	}
	return 0;
}

static int probe(struct msr *m)
{
	struct online_cpus *online;
	int rc = 0;

	m->registers = registers_of(m);
	if (!m->registers)
		return 0;
	memset(m->online, 0xff, sizeof(m->online));
	if (online_open(m->root, &online) == 0) {
		memset(m->online, 0, sizeof(m->online));
		online_read(online, m->online, MAX_CPUS);
		online_close(online);
	}
	for (unsigned i = 0; i < m->schema->n_cpus && !rc; i++) {
		const struct cpu_desc *c = &m->schema->cpus[i];
		bool seen = !c->present;

		for (unsigned j = 0; j < i && !seen; j++)
			seen = same_domain(m, c, &m->schema->cpus[j], false);
		if (!seen)
			rc = add_package(m, c);
	}
	energy_source_settle(&m->base);
	return rc;
}

static void msr_close(struct energy_source *e)
{
	struct msr *m = (struct msr *)e;

	for (unsigned i = 0; m && i < SCHEMA_MAX_DOMAINS; i++) {
		for (unsigned j = 0; m->domains[i].parts && j < e->probes[i].parts; j++)
			msr_port_close(&m->domains[i].parts[j]);
		free(m->domains[i].parts);
	}
	free(m);
}

static int msr_open(const struct fsroot *root, const struct perf_seam *seam, const struct schema *s,
		    struct energy_source **ret, struct err *err)
{
	struct msr *m = calloc(1, sizeof(*m));

	if (!m)
		return err_set(err, -ENOMEM, "msr: out of memory; free some");
	m->root = root;
	m->schema = s;
	cpu_model_read(root, &m->cpu);
	if (probe(m)) {
		msr_close(&m->base);
		return err_set(err, -ENOMEM, "msr: out of memory; free some");
	}
	*ret = &m->base;
	return 0;
}

/* The upper half is reserved on Intel; where AMD counts in 64 bits the low half wraps the same. */
static int msr_read(struct energy_source *e, unsigned i, unsigned part, uint64_t *ret_units)
{
	const struct msr *m = (const struct msr *)e;
	uint64_t value;
	int rc;

	if (i >= e->n || part >= e->probes[i].parts || e->probes[i].state != ENERGY_OK)
		return -ENODEV;
	rc = msr_port_read(&m->domains[i].parts[part], m->domains[i].reg, &value);
	if (!rc)
		*ret_units = value & UINT32_MAX;
	return rc;
}

/* The register belongs to the package or core, so another CPU of it continues the count. */
static void msr_hotplug(struct energy_source *e, const uint8_t *online, unsigned n)
{
	struct msr *m = (struct msr *)e;

	memset(m->online, 0, sizeof(m->online));
	memcpy(m->online, online, n < MAX_CPUS ? (n + 7) / 8 : sizeof(m->online));
	for (unsigned i = 0; i < e->n; i++) {
		for (unsigned j = 0; e->probes[i].state == ENERGY_OK && j < e->probes[i].parts; j++) {
			struct msr_port *p = &m->domains[i].parts[j];

			if (p->fd >= 0 && is_online(m, p->cpu))
				continue;
			msr_port_close(p);
			open_port(m, &m->schema->cpus[p->cpu], m->domains[i].per_core, p);
		}
	}
}

const struct energy_source_ops energy_msr = {
	.interface = ENERGY_MSR,
	.open = msr_open,
	.probes = energy_source_probes,
	.state = energy_source_state,
	.note = energy_source_note,
	.read = msr_read,
	.hotplug = msr_hotplug,
	.close = msr_close,
};
