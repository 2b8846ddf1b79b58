/* SPDX-License-Identifier: Apache-2.0 */
/* A machine with energy counters that a test turns by hand: files of a temporary root. */
#ifndef JD_TEST_RAPL_MACHINE_H
#define JD_TEST_RAPL_MACHINE_H
#include "source/energy/energy.h"
#include "source/counters/topology.h"
#include "temp_root.h"

#define ZONE "/sys/class/powercap/"
#define S 1000000000ull
#define RANGE14 262143328850ull /* (2^32 - 1) x 61035 nJ */
#define RANGE16 65532610987ull /* (2^32 - 1) x 15258 nJ */
#define ENERGY "intel-rapl:0/energy_uj"

struct machine {
	struct temp_root t;
	struct schema s;
	struct reading r;
	struct perf_seam seam;
	struct rapl *rp;
	uint64_t asleep_ns; /* CLOCK_BOOTTIME ahead of CLOCK_MONOTONIC */
	char msr[8192];
};

static inline void put_u64(struct machine *m, const char *path, uint64_t v)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)v);
	temp_root_put(&m->t, path, text);
}

/* CPU i: package and core by the text "p:c p:c ..." */
static inline void machine_init(struct machine *m, const char *vendor, unsigned family, unsigned model,
				const char *topology)
{
	char path[128], text[256];
	unsigned n = 0, package, core;
	int len;

	memset(m, 0, sizeof(*m));
	m->t = temp_root_new();
	for (; sscanf(topology, "%u:%u%n", &package, &core, &len) == 2; topology += len, n++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/physical_package_id", n);
		put_u64(m, path, package);
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/core_id", n);
		put_u64(m, path, core);
	}
	snprintf(text, sizeof(text), "0-%u\n", n - 1);
	temp_root_put(&m->t, "/sys/devices/system/cpu/possible", text);
	temp_root_put(&m->t, "/sys/devices/system/cpu/online", text);
	snprintf(text, sizeof(text), "vendor_id\t: %s\ncpu family\t: %u\nmodel\t\t: %u\nmodel name\t: test\n\n", vendor,
		 family, model);
	temp_root_put(&m->t, "/proc/cpuinfo", text);
}

static inline void machine_zone(struct machine *m, const char *zone, const char *name, uint64_t energy, uint64_t range)
{
	char path[128];

	snprintf(path, sizeof(path), ZONE "%s/name", zone);
	temp_root_put(&m->t, path, name);
	snprintf(path, sizeof(path), ZONE "%s/max_energy_range_uj", zone);
	put_u64(m, path, range);
	snprintf(path, sizeof(path), ZONE "%s/energy_uj", zone);
	put_u64(m, path, energy);
}

/* The msr-registers file, printed anew. */
static inline void __attribute__((format(printf, 2, 3))) machine_msr(struct machine *m, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(m->msr, sizeof(m->msr), fmt, ap);
	va_end(ap);
	temp_root_put(&m->t, "/msr-registers", m->msr);
}

static inline void machine_open(struct machine *m, enum rapl_mode mode, bool cross_check, uint64_t poll_ns)
{
	struct rapl_options o = { m->t.root, &m->seam, mode, cross_check, poll_ns, 0 };
	struct err err = { 0 };

	if (!m->s.cpus)
		assert_int_equal(topology_read(m->t.root, &m->s, &err), 0);
	m->r.schema = &m->s;
	assert_int_equal(rapl_open(&o, &m->s, &m->rp, &err), 0);
}

static inline void machine_close(struct machine *m)
{
	rapl_close(m->rp);
	m->rp = NULL;
	m->s.n_domains = 0;
}

static inline void machine_free(struct machine *m)
{
	rapl_close(m->rp);
	free(m->s.cpus);
	temp_root_free(&m->t);
}

/* A reading at now; the domain of that name. */
static inline const struct reading_domain *machine_read(struct machine *m, uint64_t now_ns, const char *name)
{
	rapl_read(m->rp, &m->r, now_ns, now_ns + m->asleep_ns);
	for (unsigned i = 0; i < m->s.n_domains; i++) {
		if (strcmp(m->s.domains[i].name, name) == 0)
			return &m->r.domains[i];
	}
	fail_msg("no domain %s", name);
	return NULL;
}

/* The next warning holds this text; NULL = there is none. */
static inline void expect_warning(struct machine *m, const char *part)
{
	char text[400] = "";
	bool any = rapl_next_warning(m->rp, text, sizeof(text));

	if (part ? !any || !strstr(text, part) : any)
		fail_msg("warning \"%s\", expected \"%s\"", text, part ? part : "");
}

/* Skylake laptop, one package with powercap, perf (pkg 2) and msr (package 0x611), all at one value. */
static inline void make_laptop(struct machine *m)
{
	machine_init(m, "GenuineIntel", 6, 94, "0:0 0:1");
	machine_zone(m, "intel-rapl:0", "package-0\n", 1000000, RANGE14);
	machine_msr(m, "* 0x606 0xa0e03\n* 0x611 0x1000\n");
	temp_root_put(&m->t, "/sys/bus/event_source/devices/power/type", "23\n");
	temp_root_put(&m->t, "/sys/bus/event_source/devices/power/cpumask", "0\n");
	temp_root_put(&m->t, "/sys/bus/event_source/devices/power/events/energy-pkg", "event=0x02\n");
	temp_root_put(&m->t, "/sys/bus/event_source/devices/power/events/energy-pkg.unit", "Joules\n");
	temp_root_put(&m->t, "/sys/bus/event_source/devices/power/events/energy-pkg.scale",
		      "2.3283064365386962890625e-10\n");
	temp_root_put(&m->t, "/perf-seam", "23 2 0 ok\n");
	assert_int_equal(perf_seam_recorded(m->t.root, &m->seam), 0);
}

static inline void free_laptop(struct machine *m)
{
	machine_free(m);
	perf_seam_free(&m->seam);
}

#endif
