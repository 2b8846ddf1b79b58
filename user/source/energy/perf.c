/* SPDX-License-Identifier: Apache-2.0 */
/* The `power` PMU (arch/x86/events/rapl.c) and, on newer AMD kernels, `power_core`: one event per
 * domain on the CPUs of the PMU's cpumask, counted from 0 at open in 64 bits. The kernel has applied
 * the unit quirks: the scale is 2^-32 J for all. Codes, scales and CPUs are read from sysfs. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/parse.h"
#include "domain.h"

#define PMU_DIR "/sys/bus/event_source/devices/"
#define MAX_CPUS 8192

struct perf_part {
	int fd, cpu;
	uint16_t package, die, core;
	uint64_t base, last; /* counts of earlier descriptors; last value given out */
};

struct perf_event {
	const struct pmu_event *what;
	uint32_t type;
	uint64_t config;
	struct perf_part *parts;
};

struct perf {
	struct energy_source base;
	const struct fsroot *root;
	const struct perf_seam *seam;
	const struct schema *schema;
	struct cpu_model cpu;
	bool mirrored; /* it was noted that dies repeat their socket */
	struct perf_event events[SCHEMA_MAX_DOMAINS];
};

static const struct pmu_event {
	const char *pmu, *event;
	enum domain_kind kind;
	bool per_core;
} pmu_events[] = {
	{ "power", "energy-pkg", DOMAIN_PACKAGE, false }, { "power", "energy-cores", DOMAIN_CORE, false },
	{ "power", "energy-gpu", DOMAIN_UNCORE, false },  { "power", "energy-ram", DOMAIN_DRAM, false },
	{ "power", "energy-psys", DOMAIN_PSYS, false },   { "power_core", "energy-core", DOMAIN_CORE, true },
};

/* "event=0x02": the PMU's format is config:0-7 and nothing else. */
static int event_code(const struct fsroot *root, const struct pmu_event *ev, uint64_t *ret)
{
	char text[64];
	int n = fsroot_readf(root, text, sizeof(text), PMU_DIR "%s/events/%s", ev->pmu, ev->event);

	if (n < 0)
		return n;
	return strncmp(text, "event=", 6) ? -EINVAL : parse_u64(text + 6, ret);
}

/* Joules per count as a power of two: 2^-32 on every kernel so far. */
static int event_scale(const struct fsroot *root, const struct pmu_event *ev, struct energy_probe *p)
{
	char text[64];
	double scale;
	int n, exponent;

	n = fsroot_readf(root, text, sizeof(text), PMU_DIR "%s/events/%s.unit", ev->pmu, ev->event);
	if (n >= 0 && strcmp(text, "Joules"))
		return -EINVAL;
	n = fsroot_readf(root, text, sizeof(text), PMU_DIR "%s/events/%s.scale", ev->pmu, ev->event);
	if (n < 0)
		return n;
	if (parse_double(text, &scale) || frexp(scale, &exponent) != 0.5 || exponent > 1 || exponent < -43)
		return -EINVAL;
	p->uj_num = 1000000;
	p->uj_den = 1ull << (1 - exponent);
	return 0;
}

static int open_part(const struct perf *pf, const struct perf_event *ev, struct perf_part *part, int cpu)
{
	const struct event_variant v = { .type = ev->type, .config = ev->config };
	int fd = pf->seam->open(pf->seam->ctx, &v, cpu, false);

	if (fd < 0)
		return fd;
	part->fd = fd;
	part->cpu = cpu;
	return 0;
}

static void say_open_error(const struct perf *pf, struct energy_probe *p, int rc)
{
	char text[32];

	if (rc == -EACCES || rc == -EPERM) {
		if (fsroot_read(pf->root, "/proc/sys/kernel/perf_event_paranoid", text, sizeof(text)) < 0)
			snprintf(text, sizeof(text), "?");
		energy_probe_set(p, ENERGY_DENIED,
				 "perf_event_open is refused (perf_event_paranoid %s); "
				 "run as root or with CAP_PERFMON",
				 text);
	} else if (rc == -EINVAL || rc == -ENOENT || rc == -EOPNOTSUPP || rc == -ENODEV) {
		energy_probe_set(p, ENERGY_ABSENT,
				 "the kernel names the event but this CPU has none; take another interface");
	} else {
		energy_probe_set(p, ENERGY_BROKEN, "perf_event_open: %s; see the kernel log", strerror(-rc));
	}
}

/* The CPUs of one domain: the first of the mask in that package and die, or one of every core. */
static unsigned take_cpus(const struct perf *pf, const uint8_t *mask, const struct cpu_desc *of, bool per_core,
			  struct perf_part *parts)
{
	const struct schema *s = pf->schema;
	int die = energy_die_of(s, &pf->cpu, of);
	unsigned n = 0;

	for (unsigned i = 0; i < s->n_cpus && i < MAX_CPUS; i++) {
		const struct cpu_desc *c = &s->cpus[i];
		bool twice = false;

		if (!(mask[i / 8] >> (i % 8) & 1) || c->package != of->package ||
		    (die != ENERGY_NO_DIE && c->die != of->die))
			continue;
		for (unsigned j = 0; j < n && !twice; j++)
			twice = parts[j].core == c->core && parts[j].die == c->die;
		if (twice)
			continue;
		parts[n++] = (struct perf_part){
			.fd = -1, .cpu = c->cpu, .package = c->package, .die = c->die, .core = c->core
		};
		if (!per_core)
			break;
	}
	return n;
}

static void open_parts(struct perf *pf, struct perf_event *ev, struct energy_probe *p)
{
	for (unsigned i = 0; i < p->parts && p->state == ENERGY_OK; i++) {
		int rc = open_part(pf, ev, &ev->parts[i], ev->parts[i].cpu);

		if (rc)
			say_open_error(pf, p, rc);
	}
	for (unsigned i = 0; i < p->parts && p->state != ENERGY_OK; i++) {
		if (ev->parts[i].fd >= 0)
			close(ev->parts[i].fd);
		ev->parts[i].fd = -1;
	}
}

static int add_domain(struct perf *pf, const struct pmu_event *what, uint32_t type, const uint8_t *mask,
		      const struct cpu_desc *of)
{
	struct perf_event *ev = &pf->events[pf->base.n];
	struct energy_probe *p;
	unsigned n;
	int rc;

	p = energy_source_add(&pf->base, what->kind, of->package, energy_die_of(pf->schema, &pf->cpu, of));
	if (!p)
		return 0;
	ev->what = what;
	ev->type = type;
	ev->parts = calloc(what->per_core ? pf->schema->n_cpus : 1, sizeof(*ev->parts));
	if (!ev->parts)
		return -ENOMEM;
	n = take_cpus(pf, mask, of, what->per_core, ev->parts);
	p->parts = n;
	p->cpu = ev->parts[0].cpu;
	snprintf(p->subject, sizeof(p->subject), "%s/%s/ on CPU %d%s", what->pmu, what->event, p->cpu,
		 n > 1 ? " and others" : "");
	rc = event_code(pf->root, what, &ev->config);
	if (!rc)
		rc = event_scale(pf->root, what, p);
	if (rc)
		energy_probe_set(p, ENERGY_BROKEN, "its code, scale or unit in sysfs is not known here (%s)",
				 strerror(-rc));
	else
		open_parts(pf, ev, p);
	return 0;
}

/* True when `of` is the first CPU of the mask in its domain; each such CPU makes one domain. */
static bool first_of_domain(const struct perf *pf, const uint8_t *mask, unsigned cpu)
{
	const struct cpu_desc *of = &pf->schema->cpus[cpu];
	int die = energy_die_of(pf->schema, &pf->cpu, of);

	for (unsigned i = 0; i < cpu; i++) {
		const struct cpu_desc *c = &pf->schema->cpus[i];

		if ((mask[i / 8] >> (i % 8) & 1) && c->package == of->package &&
		    (die == ENERGY_NO_DIE || c->die == of->die))
			return false;
	}
	return true;
}

static int read_mask(const struct perf *pf, const char *pmu, uint8_t mask[MAX_CPUS / 8])
{
	char text[4096];
	int n = fsroot_readf(pf->root, text, sizeof(text), PMU_DIR "%s/cpumask", pmu);

	return n < 0 ? n : parse_cpulist(text, mask, MAX_CPUS);
}

static int add_event(struct perf *pf, const struct pmu_event *what)
{
	uint8_t mask[MAX_CPUS / 8] = { 0 };
	uint64_t type, code;
	char path[128];
	int n;

	if (event_code(pf->root, what, &code) == -ENOENT)
		return 0;
	snprintf(path, sizeof(path), PMU_DIR "%s/type", what->pmu);
	n = read_mask(pf, what->pmu, mask);
	if (n <= 0 || fsroot_read_u64(pf->root, path, &type) || type > UINT32_MAX) {
		energy_source_add_note(&pf->base, "%s/%s/: type or cpumask in sysfs cannot be read; not used",
				       what->pmu, what->event);
		return 0;
	}
	for (unsigned i = 0; i < pf->schema->n_cpus && i < MAX_CPUS; i++) {
		if (!(mask[i / 8] >> (i % 8) & 1))
			continue;
		if (first_of_domain(pf, mask, i)) {
			int rc = add_domain(pf, what, (uint32_t)type, mask, &pf->schema->cpus[i]);

			if (rc)
				return rc;
		} else if (!what->per_core && !pf->mirrored) {
			energy_source_add_note(
				&pf->base,
				"%s/%s/ on CPU %u shows its socket's counter again, as dies do on AMD; counted once",
				what->pmu, what->event, i);
			pf->mirrored = true;
		}
	}
	return 0;
}

static void perf_close(struct energy_source *e)
{
	struct perf *pf = (struct perf *)e;

	for (unsigned i = 0; pf && i < SCHEMA_MAX_DOMAINS; i++) {
		for (unsigned j = 0; pf->events[i].parts && j < e->probes[i].parts; j++) {
			if (pf->events[i].parts[j].fd >= 0)
				close(pf->events[i].parts[j].fd);
		}
		free(pf->events[i].parts);
	}
	free(pf);
}

static int perf_open(const struct fsroot *root, const struct perf_seam *seam, const struct schema *s,
		     struct energy_source **ret, struct err *err)
{
	struct perf *pf = calloc(1, sizeof(*pf));
	int rc = pf ? 0 : -ENOMEM;

	if (!pf)
		return err_set(err, -ENOMEM, "perf energy: out of memory; free some");
	pf->root = root;
	pf->seam = seam;
	pf->schema = s;
	cpu_model_read(root, &pf->cpu);
	if (!seam || !seam->open)
		energy_source_set(&pf->base, ENERGY_ABSENT, "this captured machine has no perf-seam file");
	else if (!fsroot_exists(root, PMU_DIR "power") && !fsroot_exists(root, PMU_DIR "power_core"))
		energy_source_set(&pf->base, ENERGY_ABSENT,
				  "no power PMU; on x86 load the rapl module, or the kernel does not know this CPU");
	else
		energy_source_set(&pf->base, ENERGY_ABSENT,
				  "the power PMU has no energy events (virtual machine); nothing to do");
	for (unsigned i = 0; i < sizeof(pmu_events) / sizeof(pmu_events[0]) && seam && seam->open && !rc; i++)
		rc = add_event(pf, &pmu_events[i]);
	if (rc) {
		perf_close(&pf->base);
		return err_set(err, rc, "perf energy: out of memory; free some");
	}
	energy_source_settle(&pf->base);
	*ret = &pf->base;
	return 0;
}

static int perf_read(struct energy_source *e, unsigned i, unsigned part, uint64_t *ret_units)
{
	struct perf *pf = (struct perf *)e;
	struct perf_part *p;
	uint64_t words[3];
	int rc;

	if (i >= e->n || e->probes[i].state != ENERGY_OK || part >= e->probes[i].parts)
		return -ENODEV;
	p = &pf->events[i].parts[part];
	rc = p->fd < 0 ? -ENXIO : perf_seam_read(p->fd, words);
	if (rc)
		return rc;
	p->last = p->base + words[0];
	*ret_units = p->last;
	return 0;
}

/* An event whose CPU went away may be dead, frozen, or moved by the kernel. It is read once more. Then another CPU
 * of its core, die or package takes over, or the same CPU when it is back. Energy after the event died is lost. */
static void move_part(struct perf *pf, unsigned i, struct perf_part *p, const uint8_t *online, unsigned n)
{
	const struct schema *s = pf->schema;
	int die = energy_die_of(s, &pf->cpu, &s->cpus[p->cpu]);
	uint64_t words[3];
	int old = p->fd;

	if (old >= 0 && perf_seam_read(old, words) == 0)
		p->last = p->base + words[0];
	p->fd = -1;
	for (unsigned c = 0; c < n && c < s->n_cpus && p->fd < 0; c++) {
		const struct cpu_desc *d = &s->cpus[c];

		if (!(online[c / 8] >> (c % 8) & 1) || d->package != p->package ||
		    (die != ENERGY_NO_DIE && d->die != p->die))
			continue;
		if (pf->events[i].what->per_core && (d->core != p->core || d->die != p->die))
			continue;
		open_part(pf, &pf->events[i], p, d->cpu);
	}
	if (old >= 0)
		close(old);
	if (old >= 0 || p->fd >= 0)
		pf->base.probes[i].restarts++;
	p->base = p->last;
}

static void perf_hotplug(struct energy_source *e, const uint8_t *online, unsigned n)
{
	struct perf *pf = (struct perf *)e;

	for (unsigned i = 0; i < e->n; i++) {
		for (unsigned j = 0; e->probes[i].state == ENERGY_OK && j < e->probes[i].parts; j++) {
			struct perf_part *p = &pf->events[i].parts[j];
			unsigned cpu = (unsigned)p->cpu;

			if (p->fd < 0 || cpu >= n || !(online[cpu / 8] >> (cpu % 8) & 1))
				move_part(pf, i, p, online, n);
		}
	}
}

const struct energy_source_ops energy_perf = {
	.interface = ENERGY_PERF,
	.open = perf_open,
	.probes = energy_source_probes,
	.state = energy_source_state,
	.note = energy_source_note,
	.read = perf_read,
	.hotplug = perf_hotplug,
	.close = perf_close,
};
