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

static bool same_meters(const struct meters_config *a, const struct meters_config *b)
{
	if (a->n != b->n)
		return false;
	for (unsigned i = 0; i < a->n; i++) {
		const struct meter_config *x = &a->v[i], *y = &b->v[i];

		if (strcmp(x->type, y->type) != 0 || !same_text(x->device, y->device) || !same_text(x->url, y->url) ||
		    !same_text(x->user, y->user) || !same_text(x->password_file, y->password_file) ||
		    !same_text(x->ca_file, y->ca_file) || !same_list(&x->command, &y->command) ||
		    !same_list(&x->channels, &y->channels) || x->pace_ns != y->pace_ns)
			return false;
	}
	return true;
}

static bool same_history(const struct history_config *a, const struct history_config *b)
{
	return a->keep_ns == b->keep_ns && a->size == b->size;
}

static bool same_sizes(const struct spans_config *a, const struct spans_config *b)
{
	return a->max_processes == b->max_processes && a->period_ns == b->period_ns;
}

static bool same_profile(const struct profile_config *a, const struct profile_config *b)
{
	return a->frequency_hz == b->frequency_hz && a->size == b->size && same_list(&a->cgroups, &b->cgroups);
}

static bool same_web(const struct web_config *a, const struct web_config *b)
{
	return same_text(a->listen, b->listen) && same_text(a->token_file, b->token_file) && a->open == b->open;
}

static bool same_functions(const struct spans_config *a, const struct spans_config *b)
{
	if (a->n_functions != b->n_functions)
		return false;
	for (unsigned i = 0; i < a->n_functions; i++)
		if (strcmp(a->functions[i].binary, b->functions[i].binary) != 0 ||
		    strcmp(a->functions[i].symbol, b->functions[i].symbol) != 0)
			return false;
	return true;
}

void reload_inherit(const struct config *a, struct config *b)
{
	b->machine.spans.traces |= a->machine.spans.traces;
}

/* The programs that see processes are loaded at the start, when something asks for spans. */
static bool has_spans(const struct spans_config *c)
{
	return c->processes || c->traces || c->n_functions;
}

struct fixed {
	const char *key;
	bool same;
};

static const char *first_changed(const struct fixed *list, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!list[i].same)
			return list[i].key;
	return NULL;
}

static const char *changed_energy(const struct energy_config *a, const struct energy_config *b)
{
	const struct fixed all[] = {
		{ "rapl", a->rapl == b->rapl },
		{ "rapl-poll", a->rapl_poll_ns == b->rapl_poll_ns },
		{ "host", same_text(a->host, b->host) },
		{ "cross-check", a->cross_check == b->cross_check },
		{ "estimate", a->estimate == b->estimate },
		{ "estimate-idle-watts or estimate-max-watts",
		  a->estimate_idle_watts == b->estimate_idle_watts && a->estimate_max_watts == b->estimate_max_watts },
		{ "calibrate", a->calibrate == b->calibrate },
	};

	return first_changed(all, sizeof(all) / sizeof(all[0]));
}

static const char *changed_machine(const struct machine_config *a, const struct machine_config *b)
{
	const struct fixed all[] = {
		{ "sensor", strcmp(a->sensor, b->sensor) == 0 },
		{ "events.core", same_list(&a->events.core, &b->events.core) },
		{ "events.msr", same_list(&a->events.msr, &b->events.msr) },
		{ "cgroups.max", a->cgroups.max == b->cgroups.max },
		{ "cgroups.quota", a->cgroups.quota == b->cgroups.quota },
		{ "cgroups.names", a->cgroups.names == b->cgroups.names },
		{ "kubelet", same_text(a->kubelet.url, b->kubelet.url) &&
				     same_text(a->kubelet.token_file, b->kubelet.token_file) &&
				     same_text(a->kubelet.ca_file, b->kubelet.ca_file) &&
				     a->kubelet.insecure == b->kubelet.insecure },
		{ "cgroups.hierarchy", a->cgroups.hierarchy == b->cgroups.hierarchy },
		{ "trigger", a->trigger == b->trigger },
		{ "clock", a->clock == b->clock },
		{ "network", a->network == b->network },
		{ "block", a->block == b->block },
		{ "spans.processes", a->spans.processes == b->spans.processes },
		{ "spans.budget", a->spans.budget == b->spans.budget },
		{ "spans.functions", same_functions(&a->spans, &b->spans) },
		{ "spans.max-processes or trace-period", same_sizes(&a->spans, &b->spans) },
		{ "whether an output takes traces", !b->spans.traces || has_spans(&a->spans) },
		{ "profile", same_profile(&a->profile, &b->profile) },
		{ "gpu", strcmp(a->gpu.mode, b->gpu.mode) == 0 && a->gpu.wake == b->gpu.wake &&
				 a->gpu.pace_ns == b->gpu.pace_ns && same_text(a->gpu.library, b->gpu.library) },
		{ "meters", same_meters(&a->meters, &b->meters) },
	};

	return first_changed(all, sizeof(all) / sizeof(all[0]));
}

static const char *changed_serving(const struct serving_config *a, const struct serving_config *b)
{
	const struct fixed all[] = {
		{ "socket.path", same_text(a->socket.path, b->socket.path) },
		{ "socket.group", strcmp(a->socket.group, b->socket.group) == 0 },
		{ "socket.access.others", strcmp(a->socket.others, b->socket.others) == 0 },
		{ "web", same_web(&a->web, &b->web) },
		{ "history.path", same_text(a->history.path, b->history.path) },
		{ "history.keep or size", same_history(&a->history, &b->history) },
		{ "price or carbon", same_text(a->price, b->price) && same_text(a->carbon, b->carbon) },
		{ "spans.keep", a->trace_bytes == b->trace_bytes },
		{ "metrics.keep", a->metrics.keep_ns == b->metrics.keep_ns },
		{ "metrics.top", a->metrics.top == b->metrics.top },
		{ "metrics.by", same_text(a->metrics.by, b->metrics.by) },
		{ "metrics.max-series", a->metrics.max_series == b->metrics.max_series },
	};

	return first_changed(all, sizeof(all) / sizeof(all[0]));
}

/* Sources are opened once. A changed core event set would end a SmartWatts formula. The sensor is the key under
 * which a formula keeps its model (docs/formats/hwpc.md). */
const char *reload_refused(const struct config *a, const struct config *b)
{
	const struct fixed others[] = {
		/* state-dir first: other paths follow from it */
		{ "state-dir", same_text(a->state_dir, b->state_dir) },
		{ "seccomp", a->sandbox.seccomp == b->sandbox.seccomp },
		{ "landlock", a->sandbox.landlock == b->sandbox.landlock },
	};
	const char *key = first_changed(others, sizeof(others) / sizeof(others[0]));

	if (!key)
		key = changed_machine(&a->machine, &b->machine);
	if (!key)
		key = changed_energy(&a->machine.energy, &b->machine.energy);
	return key ? key : changed_serving(&a->serving, &b->serving);
}
