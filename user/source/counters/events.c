/* SPDX-License-Identifier: Apache-2.0 */
/* From configured names to columns: each name is resolved, then tried with the perf seam. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "events_internal.h"
#include "topology.h"
#include "../base/clock.h"

#define FIT_SPIN_NS 50000 /* long enough that a scheduled event shows running time */
#define MAX_NAMES 16 /* absent_events.ev */

struct resolver {
	const struct fsroot *root;
	const struct perf_seam *seam;
	const char *group; /* "events.core" or "events.msr" */
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

/* What an errno of perf_event_open says of the event; false when it says nothing of it. */
static bool explain_errno(const struct resolver *rs, int error, struct resolution *r)
{
	char level[32] = "unknown";

	switch (-error) {
	case EACCES:
	case EPERM:
		fsroot_read(rs->root, "/proc/sys/kernel/perf_event_paranoid", level, sizeof(level));
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

/* Drops the encodings that do not open; ABSENT when none is left. Unpinned: it is asked for, not
 * counted yet, and must not push out anybody. */
static int probe(const struct resolver *rs, struct resolution *r)
{
	unsigned kept = 0;
	int first_error = 0;

	for (unsigned i = 0; i < r->n; i++) {
		const struct encoding *e = &r->enc[i];
		int cpu = first_cpu(rs->online, e->cpus_known ? e->cpus : NULL);
		int fd = cpu < 0 ? -ENODEV :
				   rs->seam->open(rs->seam->ctx, e->type, e->config[0], e->config[1], e->config[2], cpu,
						  false);

		if (fd >= 0) {
			close(fd);
			r->enc[kept++] = *e;
		} else if (!first_error) {
			first_error = fd;
		}
	}
	r->n = kept;
	if (kept > 0 || r->task_clock)
		return 0;
	return explain_errno(rs, first_error, r) ? 0 : first_error;
}

static void resolve_name(const struct resolver *rs, const char *name, struct resolution *r)
{
	if (!resolve_alias(rs->root, name, r) && !resolve_sysfs(rs->root, name, r))
		resolve_libpfm(rs->root, name, r);
	if (r->status != RESOLVE_OK || rs->msr_group)
		return;
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

static void add_event(struct resolver *rs, const char *name, const struct resolution *r)
{
	struct event_desc *d = &rs->set->ev[rs->set->n];
	struct event_variants *v = &rs->variants[rs->set->n++];
	const struct encoding *e = &r->enc[0];

	memset(d, 0, sizeof(*d));
	memset(v, 0, sizeof(*v));
	snprintf(d->name, sizeof(d->name), "%s", name);
	d->kind = r->task_clock ? EVENT_TASK_CLOCK : EVENT_PERF;
	if (r->task_clock)
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
	int ret;

	if (*name == '\0' || strlen(name) >= SCHEMA_NAME_MAX)
		return err_set(rs->err, -EINVAL, "%s: name of %zu bytes; use 1 to %d", rs->group, strlen(name),
			       SCHEMA_NAME_MAX - 1);
	resolve_name(rs, name, &r);
	if (r.status == RESOLVE_OK) {
		if (r.task_clock && rs->msr_group)
			return err_set(rs->err, -EINVAL, "%s: %s is the time of a cgroup; list it under events.core",
				       rs->group, name);
		ret = probe(rs, &r);
		if (ret < 0)
			return err_set(rs->err, ret, "%s: perf_event_open of %s: %s; raise LimitNOFILE or free memory",
				       rs->group, name, strerror(-ret));
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

/* A weight must exist: the rows' own time, named for what it is. */
static void stand_in(struct resolver *rs)
{
	const struct resolution clock = { .task_clock = true };
	struct event_desc *d = &rs->set->ev[0];

	add_event(rs, "TASK_CLOCK", &clock);
	if (rs->absent->n)
		snprintf(d->reason, sizeof(d->reason), "stand-in for core events: %.24s: %.107s",
			 rs->absent->ev[0].name, rs->absent->ev[0].reason);
	else
		snprintf(d->reason, sizeof(d->reason), "stand-in: no core event is configured");
}

int events_resolve(const struct fsroot *root, const struct perf_seam *seam, const struct str_list *names,
		   bool msr_group, struct event_set *set, struct event_variants variants[SCHEMA_MAX_EVENTS],
		   struct absent_events *absent, struct err *err)
{
	struct resolver rs = { .root = root,
			       .seam = seam,
			       .group = msr_group ? "events.msr" : "events.core",
			       .msr_group = msr_group,
			       .set = set,
			       .variants = variants,
			       .absent = absent,
			       .err = err };
	int ret;

	if (names->n > MAX_NAMES)
		return err_set(err, -E2BIG, "%s: %u names; at most %d", rs.group, names->n, MAX_NAMES);
	set->n = 0;
	absent->n = 0;
	read_online(&rs);
	for (unsigned i = 0; i < names->n; i++) {
		for (unsigned j = 0; j < i; j++)
			if (strcmp(names->v[i], names->v[j]) == 0)
				return err_set(err, -EINVAL, "%s: %s is named twice; remove one", rs.group,
					       names->v[i]);
		ret = take_name(&rs, names->v[i]);
		if (ret < 0)
			return ret;
	}
	if (set->n == 0 && !msr_group)
		stand_in(&rs);
	return 0;
}

int event_on_cpu(const struct event_desc *e, const struct event_variants *v, unsigned cpu, struct event_variant *ret)
{
	if (!e->cpus_only_known || (cpu < 1024 && bit_test(e->cpus, cpu))) {
		*ret = (struct event_variant){
			.type = e->type, .config = e->config, .config1 = e->config1, .config2 = e->config2
		};
		memcpy(ret->cpus, e->cpus, sizeof(ret->cpus));
		return 0;
	}
	for (unsigned i = 0; v && i < v->n; i++) {
		if (cpu < 1024 && bit_test(v->v[i].cpus, cpu)) {
			*ret = v->v[i];
			return 0;
		}
	}
	return -ENODEV;
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
		fd = seam->open(seam->ctx, v.type, v.config, v.config1, v.config2, cpu, true);
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
