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
	if (a->machine.meters.n != b->machine.meters.n)
		return false;
	for (unsigned i = 0; i < a->machine.meters.n; i++) {
		const struct meter_config *x = &a->machine.meters.v[i], *y = &b->machine.meters.v[i];

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

/* The programs that see processes are loaded at the start, when something asks for spans. */
static bool has_spans(const struct spans_config *c)
{
	return c->processes || c->traces || c->n_functions;
}

/* Sources are opened once. A changed core event set would end a SmartWatts formula. The sensor is the key under
 * which a formula keeps its model (docs/formats/hwpc.md). */
const char *reload_refused(const struct config *a, const struct config *b)
{
	const struct {
		const char *key;
		bool same;
	} fixed[] = {
		{ "state-dir", same_text(a->state_dir, b->state_dir) },
		{ "sensor", strcmp(a->machine.sensor, b->machine.sensor) == 0 },
		{ "events.core", same_list(&a->machine.events.core, &b->machine.events.core) },
		{ "events.msr", same_list(&a->machine.events.msr, &b->machine.events.msr) },
		{ "cgroups.max", a->machine.cgroups.max == b->machine.cgroups.max },
		{ "cgroups.quota", a->machine.cgroups.quota == b->machine.cgroups.quota },
		{ "cgroups.names", a->machine.cgroups.names == b->machine.cgroups.names },
		{ "kubelet", same_text(a->machine.kubelet.url, b->machine.kubelet.url) &&
				     same_text(a->machine.kubelet.token_file, b->machine.kubelet.token_file) &&
				     same_text(a->machine.kubelet.ca_file, b->machine.kubelet.ca_file) &&
				     a->machine.kubelet.insecure == b->machine.kubelet.insecure },
		{ "cgroups.hierarchy", a->machine.cgroups.hierarchy == b->machine.cgroups.hierarchy },
		{ "trigger", a->machine.trigger == b->machine.trigger },
		{ "clock", a->machine.clock == b->machine.clock },
		{ "network", a->machine.network == b->machine.network },
		{ "block", a->machine.block == b->machine.block },
		{ "rapl", a->machine.energy.rapl == b->machine.energy.rapl },
		{ "rapl-poll", a->machine.energy.rapl_poll_ns == b->machine.energy.rapl_poll_ns },
		{ "host", same_text(a->machine.energy.host, b->machine.energy.host) },
		{ "cross-check", a->machine.energy.cross_check == b->machine.energy.cross_check },
		{ "estimate", a->machine.energy.estimate == b->machine.energy.estimate },
		{ "estimate-idle-watts or estimate-max-watts",
		  a->machine.energy.estimate_idle_watts == b->machine.energy.estimate_idle_watts &&
			  a->machine.energy.estimate_max_watts == b->machine.energy.estimate_max_watts },
		{ "calibrate", a->machine.energy.calibrate == b->machine.energy.calibrate },
		{ "socket.path", same_text(a->serving.socket.path, b->serving.socket.path) },
		{ "socket.group", strcmp(a->serving.socket.group, b->serving.socket.group) == 0 },
		{ "socket.access.others", strcmp(a->serving.socket.others, b->serving.socket.others) == 0 },
		{ "web", same_web(&a->serving.web, &b->serving.web) },
		{ "history.path", same_text(a->serving.history.path, b->serving.history.path) },
		{ "price or carbon",
		  same_text(a->serving.price, b->serving.price) && same_text(a->serving.carbon, b->serving.carbon) },
		{ "history.keep or size", same_history(&a->serving.history, &b->serving.history) },
		{ "spans.processes", a->machine.spans.processes == b->machine.spans.processes },
		{ "spans.budget", a->machine.spans.budget == b->machine.spans.budget },
		{ "spans.functions", same_functions(&a->machine.spans, &b->machine.spans) },
		{ "whether an output takes traces", !b->machine.spans.traces || has_spans(&a->machine.spans) },
		{ "spans.max-processes or trace-period", same_sizes(&a->machine.spans, &b->machine.spans) },
		{ "profile", same_profile(&a->machine.profile, &b->machine.profile) },
		{ "gpu", strcmp(a->machine.gpu.mode, b->machine.gpu.mode) == 0 &&
				 a->machine.gpu.wake == b->machine.gpu.wake &&
				 a->machine.gpu.pace_ns == b->machine.gpu.pace_ns &&
				 same_text(a->machine.gpu.library, b->machine.gpu.library) },
		{ "meters", same_meters(a, b) },
		{ "seccomp", a->sandbox.seccomp == b->sandbox.seccomp },
		{ "landlock", a->sandbox.landlock == b->sandbox.landlock },
		{ "spans.keep", a->serving.trace_bytes == b->serving.trace_bytes },
		{ "metrics.keep", a->serving.metrics.keep_ns == b->serving.metrics.keep_ns },
		{ "metrics.top", a->serving.metrics.top == b->serving.metrics.top },
		{ "metrics.by", same_text(a->serving.metrics.by, b->serving.metrics.by) },
		{ "metrics.max-series", a->serving.metrics.max_series == b->serving.metrics.max_series },
	};

	for (unsigned i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (!fixed[i].same)
			return fixed[i].key;
	return NULL;
}
