/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>
#include "reload.h"

static bool same_list(const struct str_list *a, const struct str_list *b)
{
	if (a->n != b->n)
		return false;
	for (unsigned i = 0; i < a->n; i++)
		if (strcmp(a->v[i], b->v[i]) != 0)
			return false;
	return true;
}

static bool same_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool same_meters(const struct config *a, const struct config *b)
{
	if (a->n_meters != b->n_meters)
		return false;
	for (unsigned i = 0; i < a->n_meters; i++) {
		const struct meter_config *x = &a->meters[i], *y = &b->meters[i];

		if (strcmp(x->type, y->type) != 0 || !same_text(x->device, y->device) || !same_text(x->url, y->url) ||
		    !same_list(&x->command, &y->command) || !same_list(&x->channels, &y->channels) ||
		    x->pace_ns != y->pace_ns)
			return false;
	}
	return true;
}

/* Sources are opened once. A core event set that changed would end a SmartWatts formula, and the
 * sensor is the key under which a formula keeps its model (docs/formats/hwpc.md). */
const char *reload_refused(const struct config *a, const struct config *b)
{
	const struct {
		const char *key;
		bool same;
	} fixed[] = {
		{ "sensor", strcmp(a->sensor, b->sensor) == 0 },
		{ "events.core", same_list(&a->events_core, &b->events_core) },
		{ "events.msr", same_list(&a->events_msr, &b->events_msr) },
		{ "cgroups.max", a->max_cgroups == b->max_cgroups },
		{ "cgroups.quota", a->cgroup_quota == b->cgroup_quota },
		{ "cgroups.names", a->cgroups_names == b->cgroups_names },
		{ "kubelet", same_text(a->kubelet, b->kubelet) &&
				     same_text(a->kubelet_token_file, b->kubelet_token_file) &&
				     same_text(a->kubelet_ca_file, b->kubelet_ca_file) &&
				     a->kubelet_insecure == b->kubelet_insecure },
		{ "cgroups.hierarchy", a->hierarchy == b->hierarchy },
		{ "trigger", a->trigger == b->trigger },
		{ "clock", a->clock == b->clock },
		{ "network", a->network == b->network },
		{ "rapl", a->rapl == b->rapl },
		{ "rapl-poll", a->rapl_poll_ns == b->rapl_poll_ns },
		{ "host", same_text(a->host, b->host) },
		{ "cross-check", a->cross_check == b->cross_check },
		{ "estimate", a->estimate == b->estimate },
		{ "estimate-idle-watts", a->estimate_idle_watts == b->estimate_idle_watts },
		{ "estimate-max-watts", a->estimate_max_watts == b->estimate_max_watts },
		{ "socket.path", strcmp(a->socket ? a->socket : "", b->socket ? b->socket : "") == 0 },
		{ "socket.group", strcmp(a->socket_group, b->socket_group) == 0 },
		{ "socket.access.others", strcmp(a->socket_others, b->socket_others) == 0 },
		{ "history.path", strcmp(a->history ? a->history : "", b->history ? b->history : "") == 0 },
		{ "history.keep", a->history_keep_ns == b->history_keep_ns },
		{ "history.size", a->history_size == b->history_size },
		{ "spans.processes", a->spans_processes == b->spans_processes },
		{ "spans.budget", a->spans_budget == b->spans_budget },
		{ "spans.max-processes", a->spans_max == b->spans_max },
		{ "spans.trace-period", a->spans_period_ns == b->spans_period_ns },
		{ "gpu", strcmp(a->gpu, b->gpu) == 0 && a->gpu_wake == b->gpu_wake &&
				 a->gpu_pace_ns == b->gpu_pace_ns && same_text(a->gpu_library, b->gpu_library) },
		{ "meters", same_meters(a, b) },
		{ "seccomp", a->seccomp == b->seccomp },
		{ "landlock", a->landlock == b->landlock },
		{ "spans.keep", a->spans_keep == b->spans_keep },
		{ "metrics.keep", a->metrics_keep_ns == b->metrics_keep_ns },
		{ "metrics.top", a->metrics_top == b->metrics_top },
	};

	for (unsigned i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (!fixed[i].same)
			return fixed[i].key;
	return NULL;
}
