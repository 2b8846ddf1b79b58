/* SPDX-License-Identifier: Apache-2.0 */
/* Powercap zones (Documentation/power/powercap/powercap.rst; drivers/powercap/intel_rapl_common.c).
 *
 * A zone's energy_uj is floor(raw * unit_nJ / 1000) of a 32-bit counter and its range the same of
 * 2^32 - 1, so the counter's modulus is the range plus one unit, and one unit is range / (2^32 - 1)
 * rounded: the range itself would lose 15 or 61 uJ at each wrap. Exact to 1 uJ per wrap. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/parse.h"
#include "domain.h"

#define CLASS_DIR "/sys/class/powercap"
#define MAX_ZONES 256
#define ZONE_NAME 32 /* "intel-rapl-mmio:ff:ff" is 21 */

struct zones {
	const char *type;
	unsigned n;
	char name[MAX_ZONES][ZONE_NAME];
};

struct powercap {
	struct energy_source base;
	const struct fsroot *root;
	bool per_socket; /* dies repeat their socket */
	bool mirrored; /* it was noted */
	int fds[SCHEMA_MAX_DOMAINS];
	struct zones zones;
};

/* The contents of a zone's name file. */
struct zone_kind {
	enum domain_kind kind;
	unsigned package;
	int die;
};

static int read_counter(int fd, uint64_t *ret)
{
	char text[32];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return -errno;
	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	return parse_u64(text, ret) ? -EIO : 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Keeps zones of control type `type` ("intel-rapl", on AMD too); the class lists all types side by side. */
static void list_zones(DIR *d, const char *type, struct zones *z)
{
	size_t len = strlen(type);
	const struct dirent *e;

	z->type = type;
	z->n = 0;
	rewinddir(d);
	while ((e = readdir(d)) && z->n < MAX_ZONES) {
		if (strncmp(e->d_name, type, len) || e->d_name[len] != ':' || strlen(e->d_name) >= ZONE_NAME)
			continue;
		snprintf(z->name[z->n++], ZONE_NAME, "%.*s", ZONE_NAME - 1, e->d_name);
	}
	qsort(z->name, z->n, ZONE_NAME, by_name);
}

/* "package-N", "package-N-die-M", "psys", "psys-N": numbers by strtoul, nothing may follow. */
static int parse_top_name(const char *name, struct zone_kind *ret)
{
	unsigned package = 0, die = 0;
	int end = -1;

	ret->die = ENERGY_NO_DIE;
	ret->kind = name[1] == 's' ? DOMAIN_PSYS : DOMAIN_PACKAGE;
	if (strcmp(name, "psys") == 0) {
		ret->package = 0;
		return 0;
	}
	if (sscanf(name, "package-%4u-die-%4u%n", &package, &die, &end) == 2 && end > 0 && !name[end]) {
		ret->die = (int)die;
	} else {
		end = -1;
		if (sscanf(name, ret->kind == DOMAIN_PSYS ? "psys-%4u%n" : "package-%4u%n", &package, &end) != 1 ||
		    end < 0 || name[end])
			return -EINVAL;
	}
	ret->package = package;
	return package <= ENERGY_MAX_PACKAGE && die <= ENERGY_MAX_PACKAGE ? 0 : -EINVAL;
}

static int parse_sub_name(const char *name, struct zone_kind *ret)
{
	static const struct {
		const char *name;
		enum domain_kind kind;
	} subs[] = {
		{ "core", DOMAIN_CORE },
		{ "uncore", DOMAIN_UNCORE },
		{ "dram", DOMAIN_DRAM },
	};

	for (unsigned i = 0; i < sizeof(subs) / sizeof(subs[0]); i++) {
		if (strcmp(name, subs[i].name) == 0) {
			ret->kind = subs[i].kind;
			return 0;
		}
	}
	return -EINVAL;
}

static int read_name(const struct fsroot *root, const char *zone, char name[64])
{
	int n = fsroot_readf(root, name, 64, CLASS_DIR "/%s/name", zone);

	if (n < 0)
		name[0] = '\0'; /* a file too long leaves no string */
	return n < 0 ? n : 0;
}

/* A zone's number tells its parent only: intel-rapl:0:2 belongs to intel-rapl:0. */
static int zone_kind(const struct fsroot *root, const char *zone, char name[64], struct zone_kind *ret)
{
	const char *colon = strrchr(zone, ':');
	char parent[ZONE_NAME], parent_name[64];
	int rc = read_name(root, zone, name);

	if (rc)
		return rc;
	if (strchr(zone, ':') == colon)
		return parse_top_name(name, ret);
	snprintf(parent, sizeof(parent), "%.*s", (int)(colon - zone), zone);
	rc = read_name(root, parent, parent_name);
	if (!rc)
		rc = parse_top_name(parent_name, ret);
	return rc ? rc : parse_sub_name(name, ret);
}

/* The counter's modulus; 0 = the zone does not tell its range. */
static uint64_t read_modulus(const struct fsroot *root, const char *zone)
{
	uint64_t range, unit;
	char path[128];

	snprintf(path, sizeof(path), CLASS_DIR "/%s/max_energy_range_uj", zone);
	if (fsroot_read_u64(root, path, &range) || range == 0)
		return 0;
	unit = range / UINT32_MAX + (range % UINT32_MAX > UINT32_MAX / 2);
	return range + (unit ? unit : 1);
}

static void open_zone(const struct fsroot *root, const char *zone, struct powercap *pc, struct energy_probe *p)
{
	char path[128];
	uint64_t value;
	int fd, err;

	snprintf(path, sizeof(path), CLASS_DIR "/%s/energy_uj", zone);
	fd = fsroot_openat(root, path, O_RDONLY);
	err = fd < 0 ? fd : read_counter(fd, &value);
	if (err == -EACCES || err == -EPERM)
		energy_probe_set(
			p, ENERGY_DENIED,
			"energy_uj may be read by root only (CVE-2020-8694); run as root or with CAP_DAC_READ_SEARCH");
	else if (err == -ENOENT)
		energy_probe_set(p, ENERGY_ABSENT,
				 "the zone limits power but counts no energy; take another interface");
	else if (err)
		energy_probe_set(p, ENERGY_BROKEN, "energy_uj cannot be read (%s); see the kernel log", strerror(-err));
	if (p->state != ENERGY_OK) {
		if (fd >= 0)
			close(fd);
		return;
	}
	pc->fds[p - pc->base.probes] = fd;
	p->wrap_units = read_modulus(root, zone);
	if (!p->wrap_units)
		energy_source_add_note(&pc->base,
				       "%s: max_energy_range_uj cannot be read; intervals with a wrap are dropped",
				       p->subject);
}

/* On AMD every die's zone shows the socket's counter, on kernels that make one for each die. */
static bool is_mirror(struct powercap *pc, const struct zone_kind *k, const char *zone, const char *name)
{
	for (unsigned i = 0; i < pc->base.n; i++) {
		if (pc->base.probes[i].kind != k->kind || pc->base.probes[i].package != k->package)
			continue;
		if (!pc->mirrored)
			energy_source_add_note(
				&pc->base, "%s (%s) shows its socket's counter again, as dies do on AMD; counted once",
				zone, name);
		pc->mirrored = true;
		return true;
	}
	return false;
}

static void add_zone(struct powercap *pc, const char *zone)
{
	const struct fsroot *root = pc->root;
	struct energy_source *e = &pc->base;
	struct energy_probe *p;
	struct zone_kind k;
	char name[64] = "";
	int rc = zone_kind(root, zone, name, &k);

	if (rc) {
		energy_source_add_note(e, "%s: zone \"%s\" is of no kind known here%s%s; skipped", zone, name,
				       rc == -EINVAL ? "" : ": ", rc == -EINVAL ? "" : strerror(-rc));
		return;
	}
	if (pc->per_socket && k.die != ENERGY_NO_DIE) {
		if (is_mirror(pc, &k, zone, name))
			return;
		k.die = ENERGY_NO_DIE;
	}
	p = energy_source_add(e, k.kind, k.package, k.die);
	if (!p)
		return;
	snprintf(p->subject, sizeof(p->subject), "%s (%s)", zone, name);
	/* MSR 0xC001029A counts one physical core, and powercap reads it on one CPU */
	if (pc->per_socket && k.kind == DOMAIN_CORE)
		energy_probe_set(p, ENERGY_ABSENT,
				 "shows one core, not the package's cores; perf (power_core) or msr add them up");
	else
		open_zone(root, zone, pc, p);
}

static void probe(struct powercap *pc)
{
	struct energy_source *e = &pc->base;
	struct zones *z = &pc->zones;
	DIR *d = fsroot_opendir(pc->root, CLASS_DIR);
	struct cpu_model cpu;

	if (!d) {
		if (errno == EACCES || errno == EPERM)
			energy_source_set(e, ENERGY_DENIED, CLASS_DIR " may not be read; run as root");
		else
			energy_source_set(e, ENERGY_ABSENT,
					  "the kernel has no powercap (" CLASS_DIR "); on x86 load intel_rapl_msr");
		return;
	}
	cpu_model_read(pc->root, &cpu);
	pc->per_socket = energy_per_socket(&cpu);
	list_zones(d, "intel-rapl", z);
	if (!z->n) {
		/* the same counters through another door (processor_thermal_rapl.c) */
		list_zones(d, "intel-rapl-mmio", z);
		if (z->n)
			energy_source_add_note(e, "intel-rapl has no zones; intel-rapl-mmio stands in");
	}
	closedir(d);
	energy_source_set(e, ENERGY_ABSENT, "no intel-rapl zone; load intel_rapl_msr, or the container hides it");
	for (unsigned i = 0; i < z->n; i++)
		add_zone(pc, z->name[i]);
	energy_source_settle(e);
}

static void powercap_close(struct energy_source *e)
{
	struct powercap *pc = (struct powercap *)e;

	if (!pc)
		return;
	for (unsigned i = 0; i < SCHEMA_MAX_DOMAINS; i++) {
		if (pc->fds[i] >= 0)
			close(pc->fds[i]);
	}
	free(pc);
}

static int powercap_open(const struct fsroot *root, const struct perf_seam *seam, const struct schema *s,
			 struct energy_source **ret, struct err *err)
{
	struct powercap *pc = calloc(1, sizeof(*pc));

	if (!pc)
		return err_set(err, -ENOMEM, "powercap: out of memory; free some");
	pc->root = root;
	for (unsigned i = 0; i < SCHEMA_MAX_DOMAINS; i++)
		pc->fds[i] = -1;
	probe(pc);
	*ret = &pc->base;
	return 0;
}

static int powercap_read(struct energy_source *e, unsigned i, unsigned part, uint64_t *ret_units)
{
	const struct powercap *pc = (const struct powercap *)e;

	if (i >= e->n || part || pc->fds[i] < 0)
		return -ENODEV;
	return read_counter(pc->fds[i], ret_units);
}

/* A zone that was removed is not the one that comes in its place: its number, its range and its unit may differ. */
static void powercap_reopen(struct energy_source *e, unsigned i)
{
	struct powercap *pc = (struct powercap *)e;
	DIR *d = fsroot_opendir(pc->root, CLASS_DIR);
	char name[64], path[128];
	struct zone_kind k;
	int fd;

	if (!d)
		return;
	list_zones(d, pc->zones.type, &pc->zones);
	closedir(d);
	for (unsigned z = 0; z < pc->zones.n; z++) {
		if (zone_kind(pc->root, pc->zones.name[z], name, &k) || k.kind != e->probes[i].kind ||
		    k.package != e->probes[i].package || (e->probes[i].has_die && k.die != (int)e->probes[i].die))
			continue;
		snprintf(path, sizeof(path), CLASS_DIR "/%s/energy_uj", pc->zones.name[z]);
		fd = fsroot_openat(pc->root, path, O_RDONLY);
		if (fd < 0)
			return;
		if (pc->fds[i] >= 0)
			close(pc->fds[i]);
		pc->fds[i] = fd;
		e->probes[i].wrap_units = read_modulus(pc->root, pc->zones.name[z]);
		return;
	}
}

/* The driver reads on any CPU of the package itself; a package that went away answers with an error. */
static void powercap_hotplug(struct energy_source *e, const uint8_t *online, unsigned n)
{
}

const struct energy_source_ops energy_powercap = {
	.interface = ENERGY_POWERCAP,
	.open = powercap_open,
	.probes = energy_source_probes,
	.state = energy_source_state,
	.note = energy_source_note,
	.read = powercap_read,
	.reopen = powercap_reopen,
	.hotplug = powercap_hotplug,
	.close = powercap_close,
};
