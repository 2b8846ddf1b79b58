/* SPDX-License-Identifier: Apache-2.0 */
/* PMUs in sysfs: Documentation/ABI/testing/sysfs-bus-event_source-devices*. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/parse.h"
#include "base/text.h"
#include "resolution.h"

#define PMU_DIR "/sys/bus/event_source/devices"

static int read_cpus(const struct fsroot *root, const char *pmu, const char *file, uint8_t *bits)
{
	char text[4096];
	int rc = fsroot_readf(root, text, sizeof(text), PMU_DIR "/%s/%s", pmu, file);

	return rc < 0 ? rc : parse_cpulist(text, bits, 1024);
}

int pmu_load(const struct fsroot *root, const char *pmu, struct encoding *e)
{
	char path[256];
	uint64_t type;
	int rc;

	if (strlen(pmu) >= sizeof(e->pmu))
		return -ENAMETOOLONG;
	snprintf(path, sizeof(path), PMU_DIR "/%s/type", pmu);
	rc = fsroot_read_u64(root, path, &type);
	if (rc < 0)
		return rc;
	if (type > UINT32_MAX)
		return -ERANGE;
	e->type = (uint32_t)type;
	snprintf(e->pmu, sizeof(e->pmu), "%s", pmu);
	/* `cpus`: the CPUs that have this PMU; `cpumask`: those that count for their whole package. */
	e->cpus_known = read_cpus(root, pmu, "cpus", e->cpus) > 0;
	if (!e->cpus_known)
		e->cpus_known = e->whole_package = read_cpus(root, pmu, "cpumask", e->cpus) > 0;
	return 0;
}

/* Calls fn with each PMU's name until it returns true. */
static bool each_pmu(const struct fsroot *root, bool (*fn)(const char *name, void *ctx), void *ctx)
{
	DIR *d = fsroot_opendir(root, PMU_DIR);
	const struct dirent *entry;
	bool found = false;

	if (!d)
		return false;
	while (!found && (entry = readdir(d)))
		found = entry->d_name[0] != '.' && strlen(entry->d_name) < PMU_NAME_MAX && fn(entry->d_name, ctx);
	closedir(d);
	return found;
}

struct by_type {
	const struct fsroot *root;
	uint32_t type;
	struct encoding e;
};

static bool type_matches(const char *name, void *ctx)
{
	struct by_type *b = ctx;

	memset(&b->e, 0, sizeof(b->e));
	return pmu_load(b->root, name, &b->e) == 0 && b->e.type == b->type;
}

int pmu_load_by_type(const struct fsroot *root, uint32_t type, struct encoding *e)
{
	struct by_type b = { .root = root, .type = type };

	if (!each_pmu(root, type_matches, &b))
		return -ENOENT;
	memcpy(b.e.config, e->config, sizeof(b.e.config));
	*e = b.e;
	return 0;
}

struct hybrid {
	const struct fsroot *root;
	char (*names)[PMU_NAME_MAX];
	unsigned n;
};

static bool take_hybrid(const char *name, void *ctx)
{
	struct hybrid *h = ctx;
	struct encoding e = { 0 };

	if (strncmp(name, "cpu_", 4) == 0 && pmu_load(h->root, name, &e) == 0 && e.cpus_known && !e.whole_package)
		snprintf(h->names[h->n++], PMU_NAME_MAX, "%s", name);
	return h->n == EVENT_MAX_ENCODINGS;
}

static int core_first(const void *a, const void *b)
{
	bool core_a = strcmp(a, "cpu_core") == 0, core_b = strcmp(b, "cpu_core") == 0;

	return core_a != core_b ? (int)core_b - (int)core_a : strcmp(a, b);
}

unsigned pmu_hybrid(const struct fsroot *root, char ret_names[EVENT_MAX_ENCODINGS][PMU_NAME_MAX])
{
	struct hybrid h = { .root = root, .names = ret_names };

	each_pmu(root, take_hybrid, &h);
	qsort(ret_names, h.n, PMU_NAME_MAX, core_first);
	return h.n;
}

struct coming {
	unsigned cpu;
	const struct fsroot *root;
	struct event_set *set;
	struct event_variants *variants;
};

/* The PMU that counts: a generic event of a machine with several has its type in the upper half. */
static uint32_t counting_pmu(uint32_t type, uint64_t config)
{
	const bool generic = type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE;

	return generic && config >> 32 ? (uint32_t)(config >> 32) : type;
}

static void set_cpu(uint8_t *cpus, unsigned cpu)
{
	cpus[cpu / 8] |= (uint8_t)(1u << (cpu % 8));
}

static bool come_to(const char *name, void *ctx)
{
	struct coming *c = ctx;
	struct encoding e = { 0 };

	if (pmu_load(c->root, name, &e) != 0 || !e.cpus_known || e.whole_package ||
	    !(e.cpus[c->cpu / 8] >> (c->cpu % 8) & 1))
		return false;
	for (unsigned i = 0; i < c->set->n; i++) {
		struct event_desc *d = &c->set->ev[i];
		struct event_variants *v = &c->variants[i];

		if (d->kind != EVENT_PERF || !d->cpus_only_known)
			continue;
		for (unsigned k = 0; k < v->n; k++)
			if (counting_pmu(v->v[k].type, v->v[k].config) == e.type) {
				set_cpu(v->v[k].cpus, c->cpu);
				set_cpu(d->cpus, c->cpu);
			}
		if (!v->n && counting_pmu(d->type, d->config) == e.type)
			set_cpu(d->cpus, c->cpu);
	}
	return false;
}

/* A CPU's kind does not change: one that an event has is known, and an event of all CPUs has it anyway. */
static bool is_missing(const struct event_set *set, unsigned cpu)
{
	bool missing = false;

	for (unsigned i = 0; i < set->n && cpu < 8 * sizeof(set->ev[i].cpus); i++)
		missing |= set->ev[i].kind == EVENT_PERF && set->ev[i].cpus_only_known &&
			   !(set->ev[i].cpus[cpu / 8] >> (cpu % 8) & 1);
	return missing;
}

void events_cpu_came(const struct fsroot *root, struct event_set *set, struct event_variants *variants, unsigned cpu)
{
	struct coming c = { cpu, root, set, variants };

	if (is_missing(set, cpu))
		each_pmu(root, come_to, &c);
}

static bool name_is_arm(const char *name, void *ctx)
{
	return strncmp(name, "armv", 4) == 0;
}

bool pmu_is_arm(const struct fsroot *root)
{
	return each_pmu(root, name_is_arm, NULL);
}

struct offers {
	struct nearest *n;
	const char *wanted;
};

static bool offer_pmu(const char *name, void *ctx)
{
	struct offers *o = ctx;

	nearest_offer(o->n, o->wanted, name);
	return false;
}

/* Offers the names of PMUs, and of the entries of one of a PMU's folders, as corrections. */
static void pmu_nearest(const struct fsroot *root, const char *wanted, struct nearest *n)
{
	each_pmu(root, offer_pmu, &(struct offers){ .n = n, .wanted = wanted });
}

static void pmu_event_nearest(const struct fsroot *root, const char *pmu, const char *folder, const char *wanted,
			      struct nearest *n)
{
	char path[256];
	const struct dirent *entry;
	DIR *d;

	snprintf(path, sizeof(path), PMU_DIR "/%s/%s", pmu, folder);
	d = fsroot_opendir(root, path);
	if (!d)
		return;
	while ((entry = readdir(d)))
		if (entry->d_name[0] != '.' && !strchr(entry->d_name, '.')) /* not NAME.scale, NAME.unit */
			nearest_offer(n, wanted, entry->d_name);
	closedir(d);
}

/* "pmu/event/" and "pmu/term=value,.../": terms by the PMU's format files ("config:0-7,32-35"),
 * events by its events files, which hold terms themselves
 * (Documentation/ABI/testing/sysfs-bus-event_source-devices-{events,format}). */

#define TERMS_MAX 512
#define TERM_NAME_MAX 64

/* PMUs and events that exist on other machines: absent here, not misspelt. The events are those
 * of arch/x86/events/{core,msr,rapl}.c and drivers/perf/arm_pmuv3.c. */
static const struct {
	const char *pmu, *events;
} known[] = {
	{ "cpu",
	  "cpu-cycles instructions cache-references cache-misses branch-instructions branch-misses bus-cycles "
	  "stalled-cycles-frontend stalled-cycles-backend ref-cycles mem-loads mem-stores slots topdown-retiring "
	  "topdown-bad-spec topdown-fe-bound topdown-be-bound" },
	{ "cpu_*",
	  "cpu-cycles instructions cache-references cache-misses branch-instructions branch-misses bus-cycles "
	  "ref-cycles mem-loads mem-stores slots topdown-retiring topdown-bad-spec topdown-fe-bound topdown-be-bound" },
	{ "msr", "tsc aperf mperf pperf smi ptsc irperf cpu_thermal_margin" },
	{ "power", "energy-cores energy-pkg energy-ram energy-gpu energy-psys" },
	{ "power_core", "energy-core" },
	{ "armv*",
	  "cpu_cycles inst_retired ll_cache_miss_rd ll_cache_rd l1d_cache_refill br_mis_pred stall_frontend stall_backend" },
	{ "uncore_*", "" },
	{ "cstate_*", "" },
	{ "amd_*", "" },
	{ "ibs_*", "" },
	{ "intel_*", "" },
	{ "arm_*", "" },
};

/* True when a PMU of that name has the event on some machine; otherwise its known events are offered as corrections. */
static bool known_event(const char *pmu, const char *event, struct nearest *near)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!text_glob(known[i].pmu, pmu))
			continue;
		for (const char *p = known[i].events; *p; p += strcspn(p, " "), p += *p == ' ') {
			char name[64];

			snprintf(name, sizeof(name), "%.*s", (int)strcspn(p, " "), p);
			if (strcmp(name, event) == 0)
				return true;
			nearest_offer(near, event, name);
		}
	}
	return false;
}

static bool known_pmu(const char *pmu)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (text_glob(known[i].pmu, pmu))
			return true;
	return false;
}

/* "config:0-7,32-35", "config1:0-63". 0 or -EINVAL for a text we do not know. */
static int parse_format(const char *format, unsigned *ret_word, uint64_t *ret_mask)
{
	uint8_t bits[64 / 8];
	unsigned word = 0;
	uint64_t mask = 0;

	if (strncmp(format, "config", 6) != 0)
		return -EINVAL;
	format += 6;
	if (*format == '1' || *format == '2')
		word = (unsigned)(*format++ - '0');
	if (*format++ != ':' || parse_cpulist(format, bits, 64) <= 0)
		return -EINVAL;
	for (unsigned i = 0; i < 64; i++)
		mask |= (uint64_t)(bits[i / 8] >> (i % 8) & 1) << i;
	*ret_word = word;
	*ret_mask = mask;
	return 0;
}

/* Puts the value's bits into those of the mask, lowest first. False when bits are left over. */
static bool deposit(uint64_t *config, uint64_t mask, uint64_t value)
{
	*config &= ~mask;
	for (; mask; mask &= mask - 1, value >>= 1)
		if (value & 1)
			*config |= mask & -mask;
	return value == 0;
}

struct terms {
	const struct fsroot *root;
	struct encoding *e;
	struct resolution *r;
	bool nested; /* inside an events file: its terms are formats only */
};

/* A small file of the PMU, folder "events" or "format". Length or -errno. */
static int pmu_read(const struct terms *t, const char *folder, const char *file, char *text, size_t size)
{
	return fsroot_readf(t->root, text, size, PMU_DIR "/%s/%s/%s", t->e->pmu, folder, file);
}

static int parse_terms(struct terms *t, char *text);

static int set_term(struct terms *t, const char *term, uint64_t value)
{
	static const char *const words[] = { "config", "config1", "config2" };
	char format[128];
	uint64_t mask = UINT64_MAX;
	unsigned word;

	for (word = 0; word < 3; word++)
		if (strcmp(term, words[word]) == 0)
			break;
	if (word == 3) {
		int len = pmu_read(t, "format", term, format, sizeof(format));

		if (len == -ENOENT) {
			resolution_set(t->r, RESOLVE_UNKNOWN, "PMU %s has no term %s", t->e->pmu, term);
			pmu_event_nearest(t->root, t->e->pmu, "format", term, &t->r->near);
			return -EINVAL;
		}
		if (len < 0 || parse_format(format, &word, &mask) < 0) {
			resolution_set(t->r, RESOLVE_INVALID, "format of term %s of PMU %s is not readable", term,
				       t->e->pmu);
			return -EINVAL;
		}
	}
	if (deposit(&t->e->config[word], mask, value))
		return 0;
	resolution_set(t->r, RESOLVE_INVALID, "value 0x%llx does not fit term %s", (unsigned long long)value, term);
	return -EINVAL;
}

/* A term without a value: an event of the PMU, or a flag. */
static int bare_term(struct terms *t, const char *term)
{
	char text[TERMS_MAX];
	int len = t->nested ? -ENOENT : pmu_read(t, "events", term, text, sizeof(text));

	if (len >= 0) {
		struct terms inner = *t;

		inner.nested = true;
		return parse_terms(&inner, text);
	}
	if (pmu_read(t, "format", term, text, sizeof(text)) >= 0)
		return set_term(t, term, 1);
	if (known_event(t->e->pmu, term, &t->r->near)) {
		resolution_set(t->r, RESOLVE_ABSENT,
			       "PMU %s has no event %s here (CPU or hypervisor does not offer it)", t->e->pmu, term);
		return -ENOENT;
	}
	resolution_set(t->r, RESOLVE_UNKNOWN, "PMU %s has no event %s", t->e->pmu, term);
	pmu_event_nearest(t->root, t->e->pmu, "events", term, &t->r->near);
	return -EINVAL;
}

static bool plain_name(const char *s)
{
	if (*s == '\0' || *s == '.' || strlen(s) >= TERM_NAME_MAX)
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("_-.", *s))
			return false;
	return true;
}

static int parse_term(struct terms *t, char *term)
{
	char *value = strchr(term, '=');
	uint64_t number;

	if (value)
		*value++ = '\0';
	if (!plain_name(term)) {
		resolution_set(t->r, RESOLVE_INVALID, "\"%s\" is not a term", term);
		return -EINVAL;
	}
	if (!value)
		return bare_term(t, term);
	if (parse_u64(value, &number) < 0) {
		resolution_set(t->r, RESOLVE_INVALID, "\"%s\" is not a number for term %s", value, term);
		return -EINVAL;
	}
	return set_term(t, term, number);
}

static int parse_terms(struct terms *t, char *text)
{
	char *term = text, *end;
	int rc;

	for (;; term = end + 1) {
		end = strchr(term, ',');
		if (end)
			*end = '\0';
		rc = parse_term(t, term);
		if (rc < 0 || !end)
			return rc;
	}
}

static void resolve_pmu(const struct fsroot *root, const char *pmu, const char *terms, struct resolution *r)
{
	struct encoding *e = &r->enc[r->n];
	struct terms t = { .root = root, .e = e, .r = r };
	char text[TERMS_MAX];
	int rc;

	memset(e, 0, sizeof(*e));
	rc = pmu_load(root, pmu, e);
	if (rc < 0 && known_pmu(pmu)) {
		resolution_set(r, RESOLVE_ABSENT, "no PMU %s here (driver not loaded, or other hardware)", pmu);
		return;
	}
	if (rc < 0) {
		resolution_set(r, RESOLVE_UNKNOWN, "no PMU is called %s", pmu);
		pmu_nearest(root, pmu, &r->near);
		return;
	}
	snprintf(text, sizeof(text), "%s", terms);
	if (parse_terms(&t, text) == 0) {
		r->status = RESOLVE_OK;
		r->n++;
	}
}

/* As perf does, "cpu/.../" on a hybrid machine means each of its core PMUs. */
static void resolve_hybrid(const struct fsroot *root, const char *terms, struct resolution *r,
			   char names[EVENT_MAX_ENCODINGS][PMU_NAME_MAX], unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		resolve_pmu(root, names[i], terms, r);
	if (r->n > 0)
		r->status = RESOLVE_OK;
}

bool resolve_sysfs(const struct fsroot *root, const char *name, struct resolution *r)
{
	char names[EVENT_MAX_ENCODINGS][PMU_NAME_MAX], pmu[TERM_NAME_MAX], terms[SCHEMA_NAME_MAX];
	const char *slash = strchr(name, '/'), *end = slash ? strchr(slash + 1, '/') : NULL;
	unsigned n;

	if (!slash)
		return false;
	snprintf(pmu, sizeof(pmu), "%.*s", (int)(slash - name), name);
	if (!end || end[1] || end == slash + 1 || slash - name >= PMU_NAME_MAX || !plain_name(pmu)) {
		resolution_set(r, RESOLVE_INVALID,
			       "write pmu/event/ or pmu/term=value,.../ with nothing after the last slash");
		return true;
	}
	snprintf(terms, sizeof(terms), "%.*s", (int)(end - slash - 1), slash + 1);
	n = strcmp(pmu, "cpu") == 0 ? pmu_hybrid(root, names) : 0;
	if (n > 0)
		resolve_hybrid(root, terms, r, names, n);
	else
		resolve_pmu(root, pmu, terms, r);
	return true;
}
