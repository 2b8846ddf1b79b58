/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/status: how the agent itself is. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "../base/clock.h"
#include "serve_internal.h"

static const char *const json_types[] = { "application/json", NULL };

uint64_t serve_own_cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return ((uint64_t)u.ru_utime.tv_sec + (uint64_t)u.ru_stime.tv_sec) * NS_PER_S +
	       ((uint64_t)u.ru_utime.tv_usec + (uint64_t)u.ru_stime.tv_usec) * 1000;
}

uint64_t serve_own_resident(const struct serve *s)
{
	unsigned long long pages = 0;
	char text[128];

	if (fsroot_read(s->root, "/proc/self/statm", text, sizeof(text)) < 0 || sscanf(text, "%*u %llu", &pages) != 1)
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void serve_losses_json(struct json *j, const struct losses *l)
{
	json_object_begin(j);
	json_key_u64(j, "folded", l->folded);
	json_key_u64(j, "counter_reads", l->lost_reads);
	json_key_u64(j, "lifecycle_events", l->lost_events);
	json_key_u64(j, "switches_mended", l->missed_switches);
	json_object_end(j);
}

static void add_sources(const struct serve *s, struct json *j)
{
	json_key(j, "sources");
	json_array_begin(j);
	for (unsigned i = 0; i < s->n_sources; i++) {
		json_object_begin(j);
		json_key_str(j, "name", s->sources[i].name);
		json_key_str(j, "state", s->sources[i].state);
		json_key_str(j, "reason", s->sources[i].reason);
		json_object_end(j);
	}
	json_array_end(j);
}

static void add_output(const struct serve_output *o, struct json *j)
{
	json_object_begin(j);
	json_key_str(j, "format", o->format);
	json_key_str(j, "to", o->to);
	json_key(j, "up");
	json_bool(j, o->up);
	json_key_str(j, "state", o->state);
	json_key_u64(j, "queued_documents", o->queued);
	json_key_u64(j, "spooled_documents", o->spooled);
	json_key_u64(j, "clients", o->clients);
	json_key_u64(j, "documents", o->documents);
	json_key_u64(j, "bytes", o->bytes);
	json_key_u64(j, "dropped_documents", o->dropped_documents);
	json_key_u64(j, "dropped_bytes", o->dropped_bytes);
	json_key_u64(j, "reconnects", o->reconnects);
	json_key_u64(j, "withheld_rows", o->withheld_rows);
	json_key_u64(j, "folded_rows", o->folded_rows);
	json_key(j, "notes");
	json_array_begin(j);
	for (unsigned i = 0; i < o->n_notes; i++)
		json_str(j, o->notes[i]);
	json_array_end(j);
	json_object_end(j);
}

static void add_outputs(struct serve *s, struct json *j)
{
	json_key(j, "outputs");
	json_array_begin(j);
	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < s->n_outputs; i++) {
		serve_page_figures(s, &s->outputs[i]);
		add_output(&s->outputs[i], j);
	}
	pthread_mutex_unlock(&s->lock);
	json_array_end(j);
}

/* What its own processor time costs: the package energy that is not idle, by share of busy time. */
static uint64_t own_energy_uj(const struct totals *t, uint64_t cpu_ns)
{
	uint64_t uj = 0;

	for (unsigned d = 0; d < t->schema->n_domains; d++)
		if (t->schema->domains[d].kind == DOMAIN_PACKAGE)
			uj += t->domains[d].energy_uj - t->domains[d].idle_uj;
	return t->busy_ns ? (uint64_t)((double)uj * (double)cpu_ns / (double)t->busy_ns) : 0;
}

static void add_self(struct serve *s, const struct totals *t, struct json *j)
{
	uint64_t cpu_ns = serve_own_cpu_ns();
	struct serve_facts f;

	pthread_mutex_lock(&s->lock);
	f = s->facts;
	pthread_mutex_unlock(&s->lock);
	json_key(j, "self");
	json_object_begin(j);
	json_key_u64(j, "map_bytes", f.map_bytes);
	json_key_u64(j, "kernel_samples", f.switch_samples);
	if (f.switch_samples)
		json_key_u64(j, "kernel_ns_per_switch", f.switch_ns);
	json_key_u64(j, "rapl_polls", f.rapl_looks);
	json_key_u64(j, "rapl_polls_late", f.rapl_late);
	json_key_u64(j, "cpu_ns", cpu_ns);
	json_key_u64(j, "resident_bytes", serve_own_resident(s));
	if (t && t->busy_ns) {
		json_key_u64(j, "energy_uj", own_energy_uj(t, cpu_ns));
		json_key_str(j, "energy_quality", "estimated");
	}
	json_object_end(j);
}

/* How far handing over is: what is held is not told anybody yet. */
static void add_traces(struct serve *s, struct json *j)
{
	struct traces_stats f;

	if (!s->o.spans)
		return;
	pthread_mutex_lock(&s->lock);
	f = s->facts.traces;
	pthread_mutex_unlock(&s->lock);
	json_key(j, "traces");
	json_object_begin(j);
	json_key_u64(j, "handed_over", f.traces);
	json_key_u64(j, "parts", f.cut);
	json_key_u64(j, "spans", f.spans);
	json_key_u64(j, "held_spans", f.held);
	json_key_u64(j, "open_trees", f.trees);
	json_key_u64(j, "lost_spans", f.lost_spans);
	json_object_end(j);
}

static void add_socket(struct serve *s, struct json *j)
{
	struct http_stats h = http_figures(s->http);
	uint64_t lost = s->totals_board.lost;

	for (unsigned i = 0; i < SERVE_FEEDS; i++)
		lost += s->feeds[i].board.lost;
	json_key(j, "socket");
	json_object_begin(j);
	json_key_u64(j, "clients", h.clients);
	json_key_u64(j, "clients_max", SERVE_CLIENTS);
	json_key_u64(j, "requests", h.requests);
	json_key_u64(j, "refused_clients", h.refused);
	json_key_u64(j, "missed_snapshots", lost);
	json_object_end(j);
}

static void add_machine(const struct serve *s, const struct totals *t, struct json *j)
{
	const struct schema *c = s->o.schema;

	json_key_str(j, "sensor", c->sensor);
	json_key_str(j, "boot_id", c->boot_id);
	json_key_str(j, "trigger", c->trigger);
	json_key_str(j, "clock", c->clock);
	json_key_u64(j, "cpus", c->n_online ? c->n_online : c->n_cpus);
	if (t) {
		json_key_u64(j, "cgroups", t->n_rows - TOTAL_FIRST_CGROUP - t->n_ended);
		json_key_u64(j, "cgroups_ended", t->n_ended);
		json_key(j, "losses");
		serve_losses_json(j, &t->losses);
	}
}

void serve_get_status(struct serve *s, struct http_request *r, const char *rest)
{
	const struct totals *t = serve_totals(s);
	struct query q;
	struct json j;

	if (!serve_query(r, "", &q) || serve_negotiate(r, json_types) < 0)
		return;
	buf_reset(&s->out);
	json_init(&j, &s->out);
	json_object_begin(&j);
	json_key_str(&j, "version", JOULED_VERSION);
	json_key_u64(&j, "uptime_ns", clock_mono_ns() - s->start_ns);
	json_key_u64(&j, "interval_ns", s->feeds[0].interval_ns);
	add_machine(s, t, &j);
	add_sources(s, &j);
	add_outputs(s, &j);
	add_traces(s, &j);
	add_socket(s, &j);
	serve_history_status(s, &j);
	add_self(s, t, &j);
	json_object_end(&j);
	buf_add_char(&s->out, '\n');
	http_reply(r, 200, "application/json", NULL, &s->out);
}
