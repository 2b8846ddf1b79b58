/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/status: the state of the agent itself. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/own.h"
#include "base/clock.h"
#include "base/format/fields.h"
#include "model/snapshot_fields.h"
#include "routes.h"
#include "status.h"
#include "store/history/history.h"

static const char *const json_types[] = { "application/json", NULL };

static const struct field source_rows[] = {
	FIELD(serve_source, name),
	FIELD(serve_source, state),
	FIELD(serve_source, reason),
};
static const struct fields source_fields = FIELDS(source_rows);

static const struct field output_rows[] = {
	FIELD(serve_output, format),
	FIELD(serve_output, to),
	FIELD(serve_output, up),
	FIELD(serve_output, state),
	FIELD_AS("queued_documents", serve_output, queued),
	FIELD_AS("spooled_documents", serve_output, spooled),
	FIELD(serve_output, dropped_series),
	FIELD(serve_output, dropped_energy_uj),
	FIELD(serve_output, clients),
	FIELD(serve_output, documents),
	FIELD(serve_output, bytes),
	FIELD(serve_output, dropped_documents),
	FIELD(serve_output, dropped_bytes),
	FIELD(serve_output, reconnects),
	FIELD(serve_output, withheld_rows),
	FIELD(serve_output, folded_rows),
};
static const struct fields output_fields = FIELDS(output_rows);

/* Held spans are not handed over yet. */
static const struct field traces_rows[] = {
	FIELD_AS("handed_over", traces_stats, traces),
	FIELD_AS("parts", traces_stats, cut),
	FIELD(traces_stats, spans),
	FIELD_AS("held_spans", traces_stats, held),
	FIELD_AS("open_trees", traces_stats, trees),
	FIELD(traces_stats, lost_spans),
};
static const struct fields traces_fields = FIELDS(traces_rows);

/* Totals continue from resumed_unix_ns on. After a kill at most the last second is missing. */
static const struct field history_rows[] = {
	FIELD(history_figures, state),
	FIELD(history_figures, reason),
	FIELD(history_figures, path),
	FIELD(history_figures, bytes),
	FIELD_AS("intervals", history_figures, written),
	FIELD(history_figures, lost_intervals),
	FIELD_AS("queued_intervals", history_figures, queued),
	FIELD_AS("resumed_unix_ns", history_figures, resumed_ns),
	FIELD_AS("killed_before", history_figures, killed),
};
static const struct fields history_fields = FIELDS(history_rows);

static const struct field profile_rows[] = {
	FIELD(serve_profile_figures, samples),         FIELD(serve_profile_figures, lost_samples),
	FIELD(serve_profile_figures, dropped_samples), FIELD(serve_profile_figures, rowless_samples),
	FIELD(serve_profile_figures, chunks),          FIELD(serve_profile_figures, chunk_bytes),
	FIELD(serve_profile_figures, lost_chunks),     FIELD(serve_profile_figures, lost_intervals),
};
static const struct fields profile_fields = FIELDS(profile_rows);

void serve_losses_json(struct json *j, const struct losses *l)
{
	json_key_fields(j, "losses", &losses_fields, l, IN_JSON);
}

static void add_sources(const struct serve *s, struct json *j)
{
	json_key(j, "sources");
	json_array_begin(j);
	for (unsigned i = 0; i < s->n_sources; i++) {
		json_object_begin(j);
		fields_json(j, &source_fields, &s->sources[i], 0);
		json_object_end(j);
	}
	json_array_end(j);
}

static void add_output(const struct serve_output *o, struct json *j)
{
	json_object_begin(j);
	fields_json(j, &output_fields, o, 0);
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

/* The energy of the agent's own processor time: its share of busy time, of the energy that is neither idle nor
 * of GPUs. */
static uint64_t own_energy_uj(const struct totals *t, uint64_t cpu_ns)
{
	unsigned summed = schema_kinds_summed(t->schema) & ~DOMAIN_BIT(DOMAIN_GPU);
	uint64_t uj = 0;

	for (unsigned d = 0; d < t->schema->n_domains; d++)
		if (summed & DOMAIN_BIT(t->schema->domains[d].kind))
			uj += t->domains[d].energy_uj - t->domains[d].idle_uj;
	return t->busy_ns ? (uint64_t)((double)uj * (double)cpu_ns / (double)t->busy_ns) : 0;
}

static void add_self(struct serve *s, const struct totals *t, struct json *j)
{
	uint64_t cpu_ns = own_cpu_ns();
	struct serve_facts f;

	pthread_mutex_lock(&s->lock);
	f = s->facts;
	pthread_mutex_unlock(&s->lock);
	json_key(j, "self");
	json_object_begin(j);
	json_key_u64(j, "map_bytes", f.map_bytes);
	json_key_u64(j, "reading_gap_ns", f.reading_gap_ns);
	json_key_u64(j, "reading_spread_ns", f.reading_spread_ns);
	json_key_u64(j, "kernel_samples", f.switch_samples);
	if (f.switch_samples)
		json_key_u64(j, "kernel_ns_per_switch", f.switch_ns);
	json_key_u64(j, "rapl_polls", f.rapl_looks);
	json_key_u64(j, "rapl_polls_late", f.rapl_late);
	json_key_u64(j, "cpu_ns", cpu_ns);
	json_key_u64(j, "resident_bytes", own_resident_bytes(s->root));
	if (t && t->busy_ns) {
		json_key_u64(j, "energy_uj", own_energy_uj(t, cpu_ns));
		json_key_str(j, "energy_quality", "estimated");
	}
	json_object_end(j);
}

static void key_known(struct json *j, const char *key, double v)
{
	if (isnan(v))
		return;
	json_key(j, key);
	json_double(j, v);
}

static const struct field wall_rows[] = {
	FIELD(wall_figures, state), FIELD(wall_figures, reason),     FIELD(wall_figures, points),
	FIELD(wall_figures, error), FIELD(wall_figures, half_width), FIELD_AS("base_power_w", wall_figures, base_w),
	FIELD(wall_figures, gain),  FIELD(wall_figures, bend),
};
static const struct fields wall_fields = FIELDS(wall_rows);

static void add_prices(struct json *j, const char *key, const struct wall_price *p, unsigned n)
{
	json_key(j, key);
	json_array_begin(j);
	for (unsigned i = 0; i < n; i++) {
		json_object_begin(j);
		json_key_str(j, "input", p[i].name);
		key_known(j, "price_w", p[i].watts);
		key_known(j, "low", p[i].low);
		key_known(j, "high", p[i].high);
		json_object_end(j);
	}
	json_array_end(j);
}

/* Adds what the calibration of the wall has learned. */
static void add_wall(struct serve *s, struct json *j)
{
	struct wall_figures f;

	pthread_mutex_lock(&s->lock);
	f = s->facts.wall;
	pthread_mutex_unlock(&s->lock);
	if (!f.state)
		return;
	json_key(j, "wall");
	json_object_begin(j);
	fields_json(j, &wall_fields, &f, 0);
	add_prices(j, "prices", f.prices, f.n_prices);
	if (f.psys)
		add_prices(j, "psys_prices", f.psys_prices, f.n_psys_prices);
	json_object_end(j);
}

/* Adds the progress of handing over traces. */
static void add_traces(struct serve *s, struct json *j)
{
	struct traces_stats f;

	if (!s->o.spans)
		return;
	pthread_mutex_lock(&s->lock);
	f = s->facts.traces;
	pthread_mutex_unlock(&s->lock);
	json_key_fields(j, "traces", &traces_fields, &f, 0);
}

static void add_profile(const struct serve *s, struct json *j)
{
	struct serve_profile_figures f;

	if (!s->o.profiling.figures)
		return;
	s->o.profiling.figures(s->o.profiling.arg, &f);
	json_key_fields(j, "profile", &profile_fields, &f, 0);
}

static void add_socket(struct serve *s, struct json *j)
{
	struct http_stats h = http_figures(s->http);
	uint64_t lost = board_lost(&s->totals_board);

	for (unsigned i = 0; i < SERVE_FEEDS; i++)
		lost += board_lost(&s->feeds[i].board);
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
		serve_losses_json(j, &t->losses);
	}
}

/* The data that the history keeps, and the data that it lost. */
static void add_history(struct serve *s, struct json *j)
{
	struct history_figures f;

	if (!s->o.history) {
		json_key(j, "history");
		json_object_begin(j);
		json_key_str(j, "state", "off");
		json_key_str(j, "reason", s->o.no_history);
		json_object_end(j);
		return;
	}
	history_figures(s->o.history, &f);
	json_key_fields(j, "history", &history_fields, &f, 0);
}

static bool is_auto(struct serve *s)
{
	bool has_reason;

	pthread_mutex_lock(&s->lock);
	has_reason = s->facts.formula_why[0];
	pthread_mutex_unlock(&s->lock);
	return has_reason;
}

/* The formula that auto has chosen. */
static void add_formula(struct serve *s, struct json *j)
{
	char name[sizeof(s->facts.formula)], why[sizeof(s->facts.formula_why)];

	pthread_mutex_lock(&s->lock);
	memcpy(name, s->facts.formula, sizeof(name));
	memcpy(why, s->facts.formula_why, sizeof(why));
	pthread_mutex_unlock(&s->lock);
	if (!why[0])
		return;
	json_key_str(j, "formula", name);
	json_key_str(j, "formula_reason", why);
}

/* What a kWh costs, and how much CO2 it is now. */
static void add_cost(struct serve *s, struct json *j)
{
	struct series_cost c = serve_cost_now(s);

	if (!s->o.price && !s->o.carbon)
		return;
	json_key(j, "cost");
	json_object_begin(j);
	key_known(j, "price_per_kwh", c.price);
	key_known(j, "carbon_g_per_kwh", c.carbon_g);
	if (s->cost.cost.n)
		json_key_str(j, "carbon_file", s->o.carbon);
	if (*s->cost.error)
		json_key_str(j, "error", s->cost.error);
	json_object_end(j);
}

/* The trials of a domain, with what each did to the held-out error. */
static void add_terms(const struct schema *s, const struct snap_learned *l, struct json *j)
{
	char name[SCHEMA_NAME_MAX + 16];

	json_key(j, "terms");
	json_array_begin(j);
	for (unsigned i = 0; i < SNAP_TRIALS; i++) {
		bool in_use = l->in_use >> i & 1;

		if ((!in_use && !(l->error_ratio[i] > 0)) || !*snapshot_trial_name(s, i, name, sizeof(name)))
			continue;
		json_object_begin(j);
		json_key_str(j, "name", name);
		json_key(j, "in_use");
		json_bool(j, in_use);
		if (l->error_ratio[i] > 0) {
			json_key(j, "error_ratio");
			json_double(j, (double)l->error_ratio[i]);
		}
		json_object_end(j);
	}
	json_array_end(j);
}

/* What formula model has learned, by domain: nothing before the first snapshot, or where it does not learn. Under auto it
 * learns while share splits, too. */
static void add_learned(struct serve *s, struct json *j)
{
	const struct snapshot *last = serve_last(s);
	bool by_model = last && strcmp(last->formula, "model") == 0;

	if (!last || (!by_model && !is_auto(s)))
		return;
	json_key(j, "learned");
	json_array_begin(j);
	for (unsigned i = 0; i < last->schema->n_domains; i++) {
		const struct snap_domain *d = &last->domains[i];

		json_object_begin(j);
		json_key_str(j, "domain", last->schema->domains[i].name);
		json_key_str(j, "split_by", by_model && d->learned.ready ? "model" : "share");
		json_key(j, "scale");
		json_double(j, d->scale);
		json_key_u64(j, "held_out_points", d->learned.points);
		if (d->learned.points) {
			json_key(j, "held_out_error");
			json_double(j, d->learned.held_out);
			json_key(j, "held_out_error_share");
			json_double(j, d->learned.held_out_share);
		}
		add_terms(last->schema, &d->learned, j);
		json_object_end(j);
	}
	json_array_end(j);
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
	add_learned(s, &j);
	add_traces(s, &j);
	add_wall(s, &j);
	add_profile(s, &j);
	add_socket(s, &j);
	add_history(s, &j);
	serve_audit_json(s, &j);
	add_formula(s, &j);
	add_cost(s, &j);
	add_self(s, t, &j);
	json_object_end(&j);
	buf_add_char(&s->out, '\n');
	http_reply(r, 200, "application/json", NULL, &s->out);
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

uint64_t switch_cost_follow(struct switch_cost *c, uint64_t ns, uint64_t samples)
{
	uint32_t sorted[COST_INTERVALS];

	if (samples - c->samples >= COST_SAMPLES) {
		c->mean[c->next] = (uint32_t)((ns - c->ns) / (samples - c->samples));
		c->next = (c->next + 1) % COST_INTERVALS;
		c->n += c->n < COST_INTERVALS;
		c->ns = ns;
		c->samples = samples;
	}
	if (!c->n)
		return samples ? ns / samples : 0;
	memcpy(sorted, c->mean, c->n * sizeof(sorted[0]));
	qsort(sorted, c->n, sizeof(sorted[0]), by_size);
	return sorted[c->n / 2];
}
