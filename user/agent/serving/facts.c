/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include "facts.h"

#define FACTS_MAX (SCHEMA_MAX_DOMAINS + 4 * SCHEMA_MAX_EVENTS + 9)

struct facts {
	struct serve_source *v;
	unsigned n;
};

static void add(struct facts *f, const char *name, const char *state, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void add(struct facts *f, const char *name, const char *state, const char *fmt, ...)
{
	struct serve_source *s = &f->v[f->n];
	va_list ap;

	if (f->n == FACTS_MAX)
		return;
	f->n++;
	snprintf(s->name, sizeof(s->name), "%s", name);
	snprintf(s->state, sizeof(s->state), "%s", state);
	va_start(ap, fmt);
	vsnprintf(s->reason, sizeof(s->reason), fmt, ap);
	va_end(ap);
}

static void add_domains(struct facts *f, const struct schema *s)
{
	char name[80];

	for (unsigned i = 0; i < s->n_domains; i++) {
		const struct domain_desc *d = &s->domains[i];

		snprintf(name, sizeof(name), "energy %s", d->name);
		add(f, name, d->interface == ENERGY_ESTIMATE ? "estimated" : "ok", "%s: %s",
		    energy_interface_name(d->interface), d->reason);
	}
	if (!s->n_domains)
		add(f, "energy", "absent", "no source of energy; see jouled doctor");
}

static void add_events(struct facts *f, const char *group, const struct event_set *set,
		       const struct absent_events *absent)
{
	char name[80];

	for (unsigned i = 0; i < set->n; i++) {
		snprintf(name, sizeof(name), "%s %.60s", group, set->ev[i].name);
		add(f, name, "ok", "%s%s%s", event_source_word(set->ev[i].kind), *set->ev[i].reason ? ": " : "",
		    set->ev[i].reason);
	}
	for (unsigned i = 0; i < absent->n; i++) {
		snprintf(name, sizeof(name), "%s %.60s", group, absent->ev[i].name);
		add(f, name, "absent", "%s", absent->ev[i].reason);
	}
}

static void add_block(struct facts *f, const struct block *b)
{
	char text[400] = "not counted; see jouled doctor";
	uint64_t lost = b ? block_lost(b) : 0;

	if (b)
		block_describe(b, text, sizeof(text));
	if (lost)
		add(f, "block", "partial", "%llu requests lost; %s", (unsigned long long)lost, text);
	else
		add(f, "block", b ? block_state(b) : "absent", "%s", text);
}

struct serve_source *facts_sources(const struct machine *m, unsigned *ret_n)
{
	struct facts f = { .v = calloc(FACTS_MAX, sizeof(*f.v)) };

	if (!f.v || !ret_n) {
		free(f.v);
		return NULL;
	}
	add(&f, "trigger", m->counters || m->cpustat ? "ok" : "absent", "%s, clock %s", m->schema.trigger,
	    m->schema.clock);
	if (m->have_hierarchy)
		add(&f, "hierarchy", "ok", "%s at %.150s", m->hierarchy.v2 ? "v2" : "v1 perf_event",
		    m->hierarchy.mount);
	else
		add(&f, "hierarchy", "absent", "no cgroup hierarchy is accounted");
	add(&f, "lifecycle", m->lifecycle && lifecycle_fd(m->lifecycle) >= 0 ? "ok" : "absent",
	    m->lifecycle && lifecycle_fd(m->lifecycle) >= 0 ? "births and ends as they happen" :
							      "cgroups are looked for at each reading");
	add(&f, "network", m->network ? "ok" : "absent",
	    m->network ? "bytes and packets per cgroup" : "not counted; see jouled doctor");
	add_block(&f, m->block);
	add(&f, "spans", m->spans ? "ok" : "absent",
	    m->spans ? "processes and functions, with energy" :
		       "nobody asked (spans: in the configuration), or the log says why");
	add_events(&f, "core", &m->schema.core, &m->absent_core);
	add_events(&f, "msr", &m->schema.msr, &m->absent_msr);
	add_domains(&f, &m->schema);
	*ret_n = f.n;
	return f.v;
}

void facts_figures(const struct machine *m, struct switch_cost *switch_cost, struct serve_facts *ret)
{
	struct serve_facts f = { .map_bytes = m->counters ? counters_map_bytes(m->counters) : 0,
				 .reading_gap_ns = m->usual_gap_ns,
				 .reading_spread_ns = m->usual_spread_ns };
	struct rapl_looks looks = { 0 };
	struct spans_stats spans;

	if (m->rapl)
		looks = rapl_looks(m->rapl);
	f.rapl_looks = looks.n;
	f.rapl_late = looks.left_out;
	if (m->counters) {
		uint64_t ns = counters_self_ns(m->counters, &f.switch_samples);

		f.switch_ns = switch_cost_follow(switch_cost, ns, f.switch_samples);
	}
	if (m->spans) {
		spans_stats(m->spans, &spans);
		f.lost_records = spans.lost_records;
		f.lost_processes = spans.lost_processes;
		f.lost_ends = spans.open_books;
		f.lost_calls = spans.lost_calls;
	}
	if (m->wall)
		wall_figures(m->wall, &f.wall);
	*ret = f;
}

/* Notes are fixed. The measuring thread owns the encoder's figures and leaves copies. */
static void tell_encoder(struct serve_output *to, const struct output_part *p)
{
	const char *note;

	if (!p->encoder)
		return;
	to->withheld_rows = atomic_load_explicit(&p->withheld_rows, memory_order_relaxed);
	to->folded_rows = atomic_load_explicit(&p->folded_rows, memory_order_relaxed);
	for (; p->ops->note && to->n_notes < SERVE_NOTES && (note = p->ops->note(p->encoder, to->n_notes));
	     to->n_notes++)
		snprintf(to->notes[to->n_notes], sizeof(to->notes[0]), "%s", note);
}

static struct serve_output output_facts(const struct output *o, const struct sink_stats *st)
{
	struct serve_output to = {
		.up = st->up,
		.documents = st->documents,
		.bytes = st->bytes,
		.dropped_bytes = st->dropped_bytes,
		.dropped_documents = st->dropped_documents,
		.dropped_series = st->dropped_series,
		.dropped_energy_uj = st->dropped_energy_uj,
		.reconnects = st->reconnects,
		.queued = st->queued,
		.clients = st->clients,
	};

	snprintf(to.format, sizeof(to.format), "%s", o->config.format);
	snprintf(to.to, sizeof(to.to), "%s", o->config.to);
	snprintf(to.state, sizeof(to.state), "%s", st->state);
	return to;
}

unsigned facts_outputs(const struct plan *p, struct serve_output *list, unsigned room)
{
	struct sink_stats st;
	unsigned n = 0;

	for (const struct output *o = p->outputs; o; o = o->next) {
		if (o->zico && n < room) {
			uint64_t spooled;

			zico_output_stats(o->zico, &st, &spooled);
			list[n] = output_facts(o, &st);
			list[n++].spooled = spooled;
		}
		if (o->push && n < room) {
			uint64_t spooled;

			push_output_stats(o->push, &st, &spooled);
			list[n] = output_facts(o, &st);
			tell_encoder(&list[n], &o->parts[0]);
			list[n++].spooled = spooled;
		}
		if (o->page && n < room) {
			uint64_t number;

			page_stats(o->page, &st, &number);
			list[n] = output_facts(o, &st);
			list[n++].page = number;
		}
		for (unsigned i = 0; i < o->n_parts && n < room; i++) {
			if (!o->parts[i].sink)
				continue;
			sink_get_stats(o->parts[i].sink, &st);
			list[n] = output_facts(o, &st);
			tell_encoder(&list[n++], &o->parts[i]);
		}
	}
	return n;
}

/* GPUs and meters of the machine, as the query server offers them to recorders. */

static unsigned gpus(void *arg)
{
	const struct machine *m = arg;

	return gpus_count(m->gpus);
}

static void gpu(void *arg, unsigned i, struct gpu_desc *ret)
{
	const struct machine *m = arg;

	gpus_desc(m->gpus, i, ret);
}

static unsigned channels(void *arg)
{
	const struct machine *m = arg;

	return meters_channels(m->meters);
}

static void channel(void *arg, unsigned i, struct meter_desc *ret)
{
	const struct machine *m = arg;

	meters_desc(m->meters, i, ret);
}

static unsigned silent_meters(void *arg)
{
	const struct machine *m = arg;

	return meters_silent(m->meters);
}

static void record(void *arg, uint64_t row_ns)
{
	const struct machine *m = arg;

	if (m->gpus)
		gpus_record(m->gpus, row_ns);
}

static void now(void *arg, struct serve_devices_at *ret)
{
	const struct machine *m = arg;
	struct gpu_cursor g = { 0 };
	struct meter_cursor c = { 0 };

	if (m->gpus)
		gpus_cursor(m->gpus, &g);
	if (m->meters)
		meters_cursor(m->meters, &c);
	*ret = (struct serve_devices_at){ .at = { g.rows, g.samples, c.next } };
}

static bool next_row(void *arg, struct serve_devices_at *at, struct gpu_row *ret)
{
	const struct machine *m = arg;
	struct gpu_cursor c = { .rows = at->at[DEVICES_ROWS] };
	bool got = m->gpus && gpus_next_row(m->gpus, &c, ret);

	at->at[DEVICES_ROWS] = c.rows;
	at->missed += c.missed;
	return got;
}

static bool next_sample(void *arg, struct serve_devices_at *at, struct gpu_sample *ret)
{
	const struct machine *m = arg;
	struct gpu_cursor c = { .samples = at->at[DEVICES_SAMPLES] };
	bool got = m->gpus && gpus_next_sample(m->gpus, &c, ret);

	at->at[DEVICES_SAMPLES] = c.samples;
	at->missed += c.missed;
	return got;
}

static bool next_meter(void *arg, struct serve_devices_at *at, struct meter_sample *ret)
{
	const struct machine *m = arg;
	struct meter_cursor c = { .next = at->at[DEVICES_METERS] };
	bool got = m->meters && meters_next(m->meters, &c, ret);

	at->at[DEVICES_METERS] = c.next;
	at->missed += c.missed;
	return got;
}

struct serve_devices facts_devices(const struct machine *m, const char *gpu_library)
{
	return (struct serve_devices){
		(void *)m, gpus, gpu,      channels,    channel,    silent_meters,
		record,    now,  next_row, next_sample, next_meter, gpu_library,
	};
}
