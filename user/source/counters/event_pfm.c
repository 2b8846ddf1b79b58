/* SPDX-License-Identifier: Apache-2.0 */
/* Names of libpfm4. It encodes for the CPU that it runs on, which is the wrong one for a captured machine (--root).
 * There it only tells known names from misspelt ones, and events are resolved by aliases and "pmu/event/". */
#include <errno.h>
#include <linux/perf_event.h>
#include <perfmon/pfmlib_perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "resolution.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int init_result;

static void init_pfm(void)
{
	init_result = pfm_initialize();
}

static int encode(const char *name, struct perf_event_attr *ret)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	pfm_perf_encode_arg_t arg = { .attr = &attr, .size = sizeof(arg) };
	int rc = pfm_get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT, &arg);

	if (rc == PFM_SUCCESS)
		*ret = attr;
	return rc;
}

/* Appends the encoding unless it is there. libpfm's exclude_guest does not get through: the seam
 * opens without it, so that a host counts what its guests use. */
static void append(const struct fsroot *root, const struct perf_event_attr *attr, struct resolution *r)
{
	struct encoding e = { .type = attr->type, .config = { attr->config, attr->config1, attr->config2 } };

	if (attr->type >= PERF_TYPE_MAX || attr->type == PERF_TYPE_RAW)
		pmu_load_by_type(root, attr->type, &e);
	/* Only one kind of core PMU: every CPU has it. */
	if (e.type == PERF_TYPE_RAW && !e.cpus_known)
		e.pmu[0] = '\0';
	for (unsigned i = 0; i < r->n; i++)
		if (r->enc[i].type == e.type)
			return;
	if (r->n < EVENT_MAX_ENCODINGS)
		r->enc[r->n++] = e;
	r->status = RESOLVE_OK;
}

/* The same event of every core PMU that libpfm found, for hybrid machines. */
static void encode_each_core(const struct fsroot *root, const char *name, struct resolution *r)
{
	pfm_pmu_t pmu;

	pfm_for_all_pmus(pmu)
	{
		pfm_pmu_info_t info = { .size = sizeof(info) };
		struct perf_event_attr attr;
		char full[SCHEMA_NAME_MAX + 64];

		if (pfm_get_pmu_info(pmu, &info) != PFM_SUCCESS || !info.is_present || info.type != PFM_PMU_TYPE_CORE)
			continue;
		snprintf(full, sizeof(full), "%s::%s", info.name, name);
		if (encode(full, &attr) == PFM_SUCCESS)
			append(root, &attr, r);
	}
}

struct wanted {
	char pmu[SCHEMA_NAME_MAX]; /* "" = any */
	char event[SCHEMA_NAME_MAX];
};

/* "pmu::event:umask:modifier=1" or with dots, as libpfm takes them. */
static struct wanted split_name(const char *name)
{
	const char *event = strstr(name, "::");
	struct wanted w = { 0 };

	if (event)
		snprintf(w.pmu, sizeof(w.pmu), "%.*s", (int)(event - name), name);
	event = event ? event + 2 : name;
	snprintf(w.event, sizeof(w.event), "%.*s", (int)strcspn(event, ":."), event);
	return w;
}

/* Walks one PMU's table, also of CPUs that are not this one. */
static bool table_has(const pfm_pmu_info_t *info, const struct wanted *w, struct nearest *near)
{
	for (int i = info->first_event; i != -1; i = pfm_get_event_next(i)) {
		pfm_event_info_t event = { .size = sizeof(event) };

		if (pfm_get_event_info(i, PFM_OS_NONE, &event) != PFM_SUCCESS)
			continue;
		if (strcasecmp(event.name, w->event) == 0)
			return true;
		nearest_offer(near, w->event, event.name);
	}
	return false;
}

/* Name of a PMU table that knows the event, "" when none does. */
static void find_table(const struct wanted *w, struct nearest *near, char ret_pmu[64])
{
	pfm_pmu_t pmu;

	ret_pmu[0] = '\0';
	pfm_for_all_pmus(pmu)
	{
		pfm_pmu_info_t info = { .size = sizeof(info) };

		if (pfm_get_pmu_info(pmu, &info) != PFM_SUCCESS || (w->pmu[0] && strcasecmp(info.name, w->pmu) != 0))
			continue;
		if (table_has(&info, w, near)) {
			snprintf(ret_pmu, 64, "%s", info.name);
			return;
		}
	}
}

static void not_found(const struct fsroot *root, const char *name, struct resolution *r)
{
	struct wanted w = split_name(name);
	char pmu[64];

	alias_nearest(w.event, &r->near);
	find_table(&w, &r->near, pmu);
	if (!pmu[0])
		resolution_set(r, RESOLVE_UNKNOWN, "no table of events has it");
	else if (!fsroot_is_live(root))
		resolution_set(r, RESOLVE_ABSENT,
			       "libpfm (%s) knows it, but only for the machine it runs on; use pmu/event/ or an alias",
			       pmu);
	else
		resolution_set(r, RESOLVE_ABSENT,
			       "libpfm knows it for %s, not for this CPU; use pmu/event/ or an alias", pmu);
}

void resolve_libpfm(const struct fsroot *root, const char *name, struct resolution *r)
{
	char hybrid[EVENT_MAX_ENCODINGS][PMU_NAME_MAX];
	struct perf_event_attr attr;
	int rc = PFM_ERR_NOTFOUND;

	pthread_once(&once, init_pfm);
	if (init_result != PFM_SUCCESS) {
		resolution_set(r, RESOLVE_ABSENT, "libpfm: %s; use pmu/event/ or an alias", pfm_strerror(init_result));
		return;
	}
	if (fsroot_is_live(root))
		rc = encode(name, &attr);
	if (rc == PFM_ERR_NOTFOUND) {
		not_found(root, name, r);
		return;
	}
	if (rc != PFM_SUCCESS) {
		resolution_set(r, RESOLVE_INVALID, "libpfm: %s", pfm_strerror(rc));
		return;
	}
	if (attr.exclude_user || attr.exclude_kernel) {
		resolution_set(r, RESOLVE_INVALID, "counts both user and kernel mode; remove :u or :k");
		return;
	}
	if (!strstr(name, "::") && pmu_hybrid(root, hybrid) > 0) {
		if (attr.type == PERF_TYPE_HARDWARE || attr.type == PERF_TYPE_HW_CACHE)
			resolve_generic(root, attr.type, attr.config, r);
		else
			encode_each_core(root, name, r);
	}
	if (r->n == 0)
		append(root, &attr, r);
}
