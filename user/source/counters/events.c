/* SPDX-License-Identifier: Apache-2.0 */
/* From configured names to columns: each name is resolved, then tried with the perf seam. */
#include <ctype.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/parse.h"
#include "base/text.h"
#include "resolution.h"
#include "topology.h"

#define FIT_SPIN_NS 50000 /* long enough that a scheduled event shows running time */
#define OTHERS_MOST 16 /* CPUs that share the word of OTHERS_BUSY */
#define MAX_NAMES 16 /* absent_events.ev */

struct resolver {
	const struct fsroot *root;
	const struct perf_seam *seam;
	const char *group; /* "events.core" or "events.msr" */
	enum trigger_mode trigger;
	bool msr_group;
	uint8_t online[1024 / 8];
	struct event_set *set;
	struct event_variants *variants;
	struct absent_events *absent;
	struct err *err;
};

static bool bit_test(const uint8_t *bits, unsigned i)
{
	return bits[i / 8] >> (i % 8) & 1;
}

static int first_cpu(const uint8_t *online, const uint8_t *among)
{
	for (unsigned i = 0; i < 1024; i++)
		if (bit_test(online, i) && (!among || bit_test(among, i)))
			return (int)i;
	return -1;
}

static void read_online(struct resolver *rs)
{
	struct online_cpus *o;

	if (online_open(rs->root, &o) == 0) {
		online_read(o, rs->online, 1024);
		online_close(o);
	}
	if (first_cpu(rs->online, NULL) < 0)
		rs->online[0] = 1;
}

/* Sets the reason for an errno of perf_event_open; false when the errno says nothing about the event. */
static bool explain_errno(const struct resolver *rs, int error, struct resolution *r)
{
	char level[32] = "unknown";
	int64_t paranoid;

	switch (-error) {
	case EACCES:
	case EPERM:
		fsroot_read(rs->root, "/proc/sys/kernel/perf_event_paranoid", level, sizeof(level));
		if (parse_i64(level, &paranoid) == 0 && paranoid <= 2)
			resolution_set(r, RESOLVE_ABSENT, "denied; give CAP_PERFMON or run as root");
		else
			resolution_set(r, RESOLVE_ABSENT,
				       "denied; give CAP_PERFMON and set kernel.perf_event_paranoid to 2 or lower "
				       "(it is %.8s), or run as root",
				       level);
		return true;
	case ENOENT:
	case ENXIO:
		resolution_set(r, RESOLVE_ABSENT, "this machine's PMU does not have it");
		return true;
	case ENODEV:
		resolution_set(r, RESOLVE_ABSENT, "this CPU does not count it");
		return true;
	case EOPNOTSUPP:
		resolution_set(r, RESOLVE_ABSENT, "the PMU cannot count it");
		return true;
	case EINVAL:
		resolution_set(r, RESOLVE_ABSENT, "the PMU refuses it");
		return true;
	case EBUSY:
		resolution_set(r, RESOLVE_ABSENT, "the PMU is held by somebody else");
		return true;
	case ENOSYS:
		resolution_set(r, RESOLVE_ABSENT, "the kernel was built without perf events");
		return true;
	default:
		return false;
	}
}

/* Drops the encodings that do not open; ABSENT when none is left. Unpinned: this is a test, and must not push out
 * events of other programs. */
static int probe(const struct resolver *rs, struct resolution *r)
{
	unsigned kept = 0;
	int first_error = 0;

	for (unsigned i = 0; i < r->n; i++) {
		const struct encoding *e = &r->enc[i];
		int cpu = first_cpu(rs->online, e->cpus_known ? e->cpus : NULL);
		const struct event_variant v = {
			.type = e->type, .config = e->config[0], .config1 = e->config[1], .config2 = e->config[2]
		};
		int fd = cpu < 0 ? -ENODEV : rs->seam->open(rs->seam->ctx, &v, cpu, false);

		if (fd >= 0) {
			close(fd);
			r->enc[kept++] = *e;
		} else if (!first_error) {
			first_error = fd;
		}
	}
	r->n = kept;
	if (kept > 0 || r->kind != EVENT_PERF)
		return 0;
	return explain_errno(rs, first_error, r) ? 0 : first_error;
}

static void resolve_name(const struct resolver *rs, const char *name, struct resolution *r)
{
	if (!resolve_alias(rs->root, name, r) && !resolve_sysfs(rs->root, name, r))
		resolve_libpfm(rs->root, name, r);
	if (r->status != RESOLVE_OK || rs->msr_group)
		return;
	if (event_of_switches(r->kind) && (rs->trigger == TRIGGER_NONE || rs->trigger == TRIGGER_PERF_EVENT))
		resolution_set(r, RESOLVE_ABSENT, "trigger %s does not see a CPU become idle; set trigger: auto",
			       rs->trigger == TRIGGER_NONE ? "none" : "perf_event");
	else if (r->kind == EVENT_SIBLING_BUSY && !topology_smt(rs->root))
		resolution_set(r, RESOLVE_ABSENT, "no core of this machine runs two threads (SMT)");
	else if (r->kind == EVENT_OTHERS_BUSY && !topology_small(rs->root, OTHERS_MOST))
		resolution_set(
			r, RESOLVE_ABSENT,
			"this machine has more than %d CPUs, or several packages: their mean load says nearly as much",
			OTHERS_MOST);
	for (unsigned i = 0; i < r->n; i++)
		if (r->enc[i].whole_package)
			resolution_set(r, RESOLVE_ABSENT,
				       "PMU %s counts for a whole package, not for a cgroup; list it under events.msr",
				       r->enc[i].pmu);
}

static void add_absent(struct resolver *rs, const char *name, const char *reason)
{
	unsigned i = rs->absent->n++;

	snprintf(rs->absent->ev[i].name, sizeof(rs->absent->ev[i].name), "%s", name);
	snprintf(rs->absent->ev[i].reason, sizeof(rs->absent->ev[i].reason), "%s", reason);
}

/* Whoever asks which CPUs have the event means all its encodings. */
static void add_cpus(struct event_desc *d, const struct encoding *e)
{
	d->cpus_only_known = d->cpus_only_known && e->cpus_known;
	for (unsigned i = 0; i < sizeof(d->cpus); i++)
		d->cpus[i] |= e->cpus[i];
}

static void add_event(struct resolver *rs, const char *name, const struct resolution *r)
{
	struct event_desc *d = &rs->set->ev[rs->set->n];
	struct event_variants *v = &rs->variants[rs->set->n++];
	const struct encoding *e = &r->enc[0];

	memset(d, 0, sizeof(*d));
	memset(v, 0, sizeof(*v));
	snprintf(d->name, sizeof(d->name), "%s", name);
	d->kind = r->kind;
	if (d->kind != EVENT_PERF)
		return;
	d->type = e->type;
	d->config = e->config[0];
	d->config1 = e->config[1];
	d->config2 = e->config[2];
	memcpy(d->pmu, e->pmu, sizeof(d->pmu));
	d->cpus_only_known = e->cpus_known;
	memcpy(d->cpus, e->cpus, sizeof(d->cpus));
	for (unsigned i = 0; r->n > 1 && i < r->n; i++) {
		struct event_variant *out = &v->v[v->n++];

		e = &r->enc[i];
		*out = (struct event_variant){
			.type = e->type, .config = e->config[0], .config1 = e->config[1], .config2 = e->config[2]
		};
		memcpy(out->cpus, e->cpus, sizeof(out->cpus));
		add_cpus(d, e);
	}
}

static int unknown(const struct resolver *rs, const char *name, const struct resolution *r)
{
	if (r->near.name[0])
		return err_set(rs->err, -EINVAL, "%s: unknown event %s: %s; did you mean %s?", rs->group, name,
			       r->reason, r->near.name);
	return err_set(rs->err, -EINVAL,
		       "%s: unknown event %s: %s; use a libpfm4 name, pmu/event/ or an alias such as CYCLES", rs->group,
		       name, r->reason);
}

static int take_name(struct resolver *rs, const char *name)
{
	struct resolution r = { 0 };
	int rc;

	if (*name == '\0' || strlen(name) >= SCHEMA_NAME_MAX)
		return err_set(rs->err, -EINVAL, "%s: name of %zu bytes; use 1 to %d", rs->group, strlen(name),
			       SCHEMA_NAME_MAX - 1);
	resolve_name(rs, name, &r);
	if (r.status == RESOLVE_OK) {
		if (r.kind != EVENT_PERF && rs->msr_group)
			return err_set(rs->err, -EINVAL, "%s: %s is counted for a cgroup; list it under events.core",
				       rs->group, name);
		rc = probe(rs, &r);
		if (rc < 0)
			return err_set(rs->err, rc, "%s: perf_event_open of %s: %s; raise LimitNOFILE or free memory",
				       rs->group, name, strerror(-rc));
	}
	switch (r.status) {
	case RESOLVE_UNKNOWN:
		return unknown(rs, name, &r);
	case RESOLVE_INVALID:
		return err_set(rs->err, -EINVAL, "%s: event %s: %s", rs->group, name, r.reason);
	case RESOLVE_ABSENT:
		add_absent(rs, name, r.reason);
		return 0;
	case RESOLVE_OK:
		break;
	}
	if (rs->set->n == SCHEMA_MAX_EVENTS)
		return err_set(rs->err, -E2BIG, "%s: more than %d events; remove some", rs->group, SCHEMA_MAX_EVENTS);
	add_event(rs, name, &r);
	return 0;
}

/* A weight must exist: TASK_CLOCK, the rows' own time, with the reason. */
static void stand_in(struct resolver *rs)
{
	const struct resolution clock = { .kind = EVENT_TASK_CLOCK };
	struct event_desc *d = &rs->set->ev[0];

	add_event(rs, "TASK_CLOCK", &clock);
	if (rs->absent->n)
		snprintf(d->reason, sizeof(d->reason), "stand-in for core events: %.24s: %.107s",
			 rs->absent->ev[0].name, rs->absent->ev[0].reason);
	else
		snprintf(d->reason, sizeof(d->reason), "stand-in: no core event is configured");
}

static struct resolver resolver_of(const struct event_group *group, struct err *err)
{
	return (struct resolver){ .root = group->root,
				  .seam = group->seam,
				  .group = group->msr ? "events.msr" : "events.core",
				  .trigger = group->trigger,
				  .msr_group = group->msr,
				  .set = group->set,
				  .variants = group->variants,
				  .absent = group->absent,
				  .err = err };
}

/* Puts the place in the configuration before a message about a name. */
static int at_line(const char *file, unsigned line, struct err *err)
{
	const struct err why = *err;

	return err_set(err, why.code, "%s:%u: %s", file, line, why.text);
}

int events_resolve(const struct str_list *names, const struct event_group *group, struct err *err)
{
	struct resolver rs = resolver_of(group, err);
	int rc;

	if (names->n > MAX_NAMES)
		return err_set(err, -E2BIG, "%s: %u names; at most %d", rs.group, names->n, MAX_NAMES);
	rs.set->n = 0;
	rs.absent->n = 0;
	read_online(&rs);
	for (unsigned i = 0; i < names->n; i++) {
		rc = 0;
		for (unsigned j = 0; j < i && !rc; j++)
			if (strcmp(names->v[i], names->v[j]) == 0)
				rc = err_set(err, -EINVAL, "%s: %s is named twice; remove one", rs.group, names->v[i]);
		if (!rc)
			rc = take_name(&rs, names->v[i]);
		if (rc < 0)
			return err && group->file && names->line && names->line[i] ?
				       at_line(group->file, names->line[i], err) :
				       rc;
	}
	if (rs.set->n == 0 && !group->msr)
		stand_in(&rs);
	return 0;
}

void events_add(const char *name, const struct event_group *group)
{
	const struct resolver rs = resolver_of(group, NULL);
	struct resolver to = rs;
	struct resolution r = { 0 };

	for (unsigned i = 0; i < rs.set->n; i++)
		if (!strcmp(rs.set->ev[i].name, name))
			return;
	resolve_name(&rs, name, &r);
	if (r.status != RESOLVE_OK || !event_of_switches(r.kind) || rs.set->n == SCHEMA_MAX_EVENTS)
		return;
	add_event(&to, name, &r);
	rs.set->ev[rs.set->n - 1].added = true;
}

void events_lose_switches(const struct event_group *group)
{
	struct resolver rs = resolver_of(group, NULL);
	unsigned n = rs.set->n;

	rs.set->n = 0;
	for (unsigned i = 0; i < n; i++) {
		const struct event_desc *e = &rs.set->ev[i];

		if (!event_of_switches(e->kind)) {
			rs.variants[rs.set->n] = rs.variants[i];
			rs.set->ev[rs.set->n++] = *e;
		} else if (!e->added && rs.absent->n < MAX_NAMES) {
			add_absent(&rs, e->name, "no switch program runs, and nothing else counts it");
		}
	}
	if (rs.set->n == 0)
		stand_in(&rs);
}

/* Opened pinned, an event that finds no counter goes into error state and reads 0 bytes. */
static bool counts(int fd)
{
	uint64_t words[3], start = clock_mono_ns();

	do {
		if (perf_seam_read(fd, words) < 0)
			return false;
	} while (words[2] == 0 && clock_mono_ns() - start < FIT_SPIN_NS);
	return words[2] > 0 && words[1] == words[2];
}

int events_fit_variants(const struct perf_seam *seam, const struct event_set *set,
			const struct event_variants *variants, int cpu)
{
	int fds[SCHEMA_MAX_EVENTS], error = 0, ret = 1;
	unsigned n = 0, wanted = 0;

	for (unsigned i = 0; i < set->n; i++) {
		struct event_variant v;
		int fd;

		if (set->ev[i].kind != EVENT_PERF ||
		    event_on_cpu(&set->ev[i], variants ? &variants[i] : NULL, (unsigned)cpu, &v) < 0)
			continue;
		wanted++;
		fd = seam->open(seam->ctx, &v, cpu, true);
		if (fd >= 0)
			fds[n++] = fd;
		else if (!error)
			error = fd;
	}
	for (unsigned i = 0; i < n; i++)
		if (!counts(fds[i]))
			ret = 0;
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
	if (wanted > 0 && n == 0)
		return error;
	return n < wanted ? 0 : ret;
}

int events_fit(const struct perf_seam *seam, const struct event_set *set, int cpu)
{
	return events_fit_variants(seam, set, NULL, cpu);
}

/* Our own names come first in the search. They are the same on every machine, also where libpfm lacks the tables. */

/* PERF_TYPE_HW_CACHE: cache | operation << 8 | result << 16 (perf_event_open(2)). */
#define LLC_READ_ACCESS \
	(PERF_COUNT_HW_CACHE_LL | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_ACCESS << 16)
#define LLC_READ_MISS \
	(PERF_COUNT_HW_CACHE_LL | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16)

enum alias_kind { ALIAS_HARDWARE, ALIAS_LLC, ALIAS_MSR, ALIAS_KIND };

/* LLC_*: the generic cache events are the last level on Intel and what leaves the L2 on AMD; Arm
 * drivers map them to the L1 data cache (arch/arm64 armv8_pmuv3_perf_map), so there the
 * last-level entry of the cache events is taken and absent stays absent. */
static const struct alias {
	const char *name;
	enum alias_kind kind;
	uint64_t config; /* KIND: enum event_kind */
	uint64_t arm_config; /* LLC: PERF_TYPE_HW_CACHE */
	const char *msr; /* MSR: sysfs name */
} aliases[] = {
	{ "CYCLES", ALIAS_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, NULL },
	{ "CPU_CYCLES", ALIAS_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, NULL },
	{ "INSTRUCTIONS", ALIAS_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 0, NULL },
	{ "CACHE_REFERENCES", ALIAS_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, 0, NULL },
	{ "CACHE_MISSES", ALIAS_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 0, NULL },
	{ "LLC_REFERENCES", ALIAS_LLC, PERF_COUNT_HW_CACHE_REFERENCES, LLC_READ_ACCESS, NULL },
	{ "LLC_MISSES", ALIAS_LLC, PERF_COUNT_HW_CACHE_MISSES, LLC_READ_MISS, NULL },
	{ "BRANCHES", ALIAS_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 0, NULL },
	{ "BRANCH_INSTRUCTIONS", ALIAS_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 0, NULL },
	{ "BRANCH_MISSES", ALIAS_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, 0, NULL },
	{ "BUS_CYCLES", ALIAS_HARDWARE, PERF_COUNT_HW_BUS_CYCLES, 0, NULL },
	{ "REF_CYCLES", ALIAS_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES, 0, NULL },
	{ "STALLED_CYCLES_FRONTEND", ALIAS_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, 0, NULL },
	{ "STALLED_CYCLES_BACKEND", ALIAS_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND, 0, NULL },
	{ "TSC", ALIAS_MSR, 0, 0, "msr/tsc/" },
	{ "APERF", ALIAS_MSR, 0, 0, "msr/aperf/" },
	{ "MPERF", ALIAS_MSR, 0, 0, "msr/mperf/" },
	{ "TASK_CLOCK", ALIAS_KIND, EVENT_TASK_CLOCK, 0, NULL },
	{ "SIBLING_BUSY", ALIAS_KIND, EVENT_SIBLING_BUSY, 0, NULL },
	{ "IDLE_EXITS", ALIAS_KIND, EVENT_IDLE_EXITS, 0, NULL },
	{ "OTHERS_BUSY", ALIAS_KIND, EVENT_OTHERS_BUSY, 0, NULL },
};

static int fold(char c)
{
	return c == '-' ? '_' : toupper((unsigned char)c);
}

/* Equal but for case and "-" against "_". */
static bool event_name_equal(const char *a, const char *b)
{
	while (*a && fold(*a) == fold(*b))
		a++, b++;
	return !*a && !*b;
}

void nearest_offer(struct nearest *n, const char *wanted, const char *candidate)
{
	unsigned distance = text_distance(wanted, candidate);
	size_t a = strlen(wanted), b = strlen(candidate), longer = a > b ? a : b;

	/* A name with less than a third in common would be a guess, not a correction. */
	if (b >= sizeof(n->name) || distance * 3 > longer * 2 || (n->name[0] && distance >= n->distance))
		return;
	n->distance = distance;
	memcpy(n->name, candidate, b + 1);
}

void alias_nearest(const char *wanted, struct nearest *n)
{
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		nearest_offer(n, wanted, aliases[i].name);
}

void resolution_set(struct resolution *r, enum resolve_status status, const char *fmt, ...)
{
	va_list ap;

	r->status = status;
	va_start(ap, fmt);
	vsnprintf(r->reason, sizeof(r->reason), fmt, ap);
	va_end(ap);
}

/* On hybrid machines bits 63:32 of a generic event's config choose the PMU by its type
 * (perf_event.h, PERF_HW_EVENT_MASK). */
void resolve_generic(const struct fsroot *root, uint32_t type, uint64_t config, struct resolution *r)
{
	char names[EVENT_MAX_ENCODINGS][PMU_NAME_MAX];
	unsigned n = pmu_hybrid(root, names);

	r->status = RESOLVE_OK;
	r->n = 0;
	for (unsigned i = 0; i < n; i++) {
		struct encoding *e = &r->enc[r->n];

		memset(e, 0, sizeof(*e));
		if (pmu_load(root, names[i], e) < 0)
			continue;
		e->config[0] = config | (uint64_t)e->type << PERF_PMU_TYPE_SHIFT;
		e->type = type;
		r->n++;
	}
	if (r->n == 0) {
		memset(&r->enc[0], 0, sizeof(r->enc[0]));
		r->enc[0].type = type;
		r->enc[0].config[0] = config;
		r->n = 1;
	}
}

bool resolve_alias(const struct fsroot *root, const char *name, struct resolution *r)
{
	const struct alias *a = NULL;

	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]) && !a; i++)
		if (event_name_equal(aliases[i].name, name))
			a = &aliases[i];
	if (!a)
		return false;
	switch (a->kind) {
	case ALIAS_KIND:
		r->status = RESOLVE_OK;
		r->kind = (enum event_kind)a->config;
		break;
	case ALIAS_MSR:
		resolve_sysfs(root, a->msr, r);
		break;
	case ALIAS_LLC:
		if (pmu_is_arm(root)) {
			resolve_generic(root, PERF_TYPE_HW_CACHE, a->arm_config, r);
			break;
		}
		resolve_generic(root, PERF_TYPE_HARDWARE, a->config, r);
		break;
	case ALIAS_HARDWARE:
		resolve_generic(root, PERF_TYPE_HARDWARE, a->config, r);
		break;
	}
	return true;
}
