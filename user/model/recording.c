/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a snapshot: one map, complete in itself, so that a lost document costs that document and
 * a client that comes late understands the next one (docs/formats/snapshot.md). */
#include <string.h>

#include "recording_internal.h"

void recording_sum(const struct snap_cell *cells, unsigned n, struct row_sums *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (const struct snap_cell *c = cells; c < cells + n; c++) {
		ret->time_ns += c->time_ns;
		ret->switches += c->switches;
		ret->enabled_ns += c->enabled_ns;
		ret->running_ns += c->running_ns;
		for (unsigned i = 0; i < SCHEMA_MAX_EVENTS; i++)
			ret->counters[i] += c->counters[i];
	}
}

static void put_u64s(struct buf *b, const uint64_t *v, unsigned n)
{
	cbw_array(b, n);
	for (unsigned i = 0; i < n; i++)
		cbw_uint(b, v[i]);
}

/* [cpu, quality, time_ns, switches, [counters], enabled_ns, running_ns]; the last two only where
 * they differ from time_ns: without multiplexing they do not. */
static void put_cell(struct buf *b, const struct snap_cell *c, unsigned n_events)
{
	bool mux = c->enabled_ns != c->time_ns || c->running_ns != c->time_ns;

	cbw_array(b, mux ? 7 : 5);
	cbw_uint(b, c->cpu);
	cbw_uint(b, c->quality);
	cbw_uint(b, c->time_ns);
	cbw_uint(b, c->switches);
	put_u64s(b, c->counters, n_events);
	if (mux) {
		cbw_uint(b, c->enabled_ns);
		cbw_uint(b, c->running_ns);
	}
}

static bool any(const uint64_t *v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (v[i])
			return true;
	return false;
}

static void put_traffic(struct buf *b, const struct traffic *t)
{
	const uint64_t v[] = { t->rx_bytes, t->rx_packets, t->tx_bytes, t->tx_packets };

	put_u64s(b, v, 4);
}

struct row_writer {
	const struct snapshot *s;
	struct buf *out;
	bool with_energy;
	const char *last_path;     /* of the cgroup row before */
};

/* Which fields a row's map has: zeros and what follows from the cells are left out. */
static uint32_t row_fields(const struct row_writer *w, unsigned row, const struct row_sums *sum)
{
	const struct snapshot *s = w->s;
	const struct snap_row *r = &s->rows[row];
	const unsigned n = s->schema->core.n;
	const uint64_t present[ROW_FIELDS] = {
		[RF_KIND] = 1,
		[RF_KEY] = r->key,
		[RF_GENERATION] = r->generation,
		[RF_ID] = r->id,
		[RF_PATH] = r->kind == ROW_CGROUP,
		[RF_LEVEL] = r->level,
		[RF_FLAGS] = r->ended || r->selected,
		[RF_QUALITY] = r->quality,
		[RF_TIME_NS] = r->time_ns != sum->time_ns,
		[RF_SWITCHES] = r->switches != sum->switches,
		[RF_COUNTERS] = memcmp(r->counters, sum->counters, n * sizeof(*r->counters)) != 0,
		[RF_ENABLED_NS] = r->enabled_ns != sum->enabled_ns,
		[RF_RUNNING_NS] = r->running_ns != sum->running_ns,
		[RF_TRAFFIC] = r->traffic.rx_bytes || r->traffic.rx_packets || r->traffic.tx_bytes || r->traffic.tx_packets,
		[RF_CELLS] = r->n_cells,
		[RF_ENERGY_UJ] = w->with_energy && any(snapshot_energy(s, row, 0), s->schema->n_domains),
	};
	uint32_t fields = 0;

	for (unsigned i = 0; i < ROW_FIELDS; i++)
		fields |= (uint32_t)!!present[i] << i;
	return fields;
}

static unsigned shared_prefix(const char *a, const char *b)
{
	unsigned n = 0;

	while (a[n] && a[n] == b[n])
		n++;
	return n;
}

static void put_row_field(struct row_writer *w, unsigned row, enum row_field f, unsigned shared)
{
	const struct snap_row *r = &w->s->rows[row];
	struct buf *b = w->out;

	cbw_uint(b, f);
	switch (f) {
	case RF_KIND: cbw_uint(b, r->kind); break;
	case RF_KEY: cbw_uint(b, r->key); break;
	case RF_GENERATION: cbw_uint(b, r->generation); break;
	case RF_ID: cbw_uint(b, r->id); break;
	case RF_PATH_SHARED: cbw_uint(b, shared); break;
	case RF_PATH: cbw_bytes(b, r->path + shared, strlen(r->path + shared)); break;
	case RF_LEVEL: cbw_uint(b, r->level); break;
	case RF_FLAGS: cbw_uint(b, (r->ended ? ROW_ENDED : 0u) | (r->selected ? ROW_SELECTED : 0u)); break;
	case RF_QUALITY: cbw_uint(b, r->quality); break;
	case RF_TIME_NS: cbw_uint(b, r->time_ns); break;
	case RF_SWITCHES: cbw_uint(b, r->switches); break;
	case RF_COUNTERS: put_u64s(b, r->counters, w->s->schema->core.n); break;
	case RF_ENABLED_NS: cbw_uint(b, r->enabled_ns); break;
	case RF_RUNNING_NS: cbw_uint(b, r->running_ns); break;
	case RF_TRAFFIC: put_traffic(b, &r->traffic); break;
	case RF_CELLS:
		cbw_array(b, r->n_cells);
		for (unsigned i = 0; i < r->n_cells; i++)
			put_cell(b, &w->s->cells[r->first_cell + i], w->s->schema->core.n);
		break;
	case RF_ENERGY_UJ: put_u64s(b, snapshot_energy(w->s, row, 0), w->s->schema->n_domains); break;
	case ROW_FIELDS: break;
	}
}

static void put_row(struct row_writer *w, unsigned row)
{
	const struct snap_row *r = &w->s->rows[row];
	unsigned shared = 0;
	struct row_sums sum;
	uint32_t fields;

	recording_sum(w->s->cells + r->first_cell, r->n_cells, &sum);
	fields = row_fields(w, row, &sum);
	if (r->kind == ROW_CGROUP) {
		shared = shared_prefix(r->path, w->last_path);
		fields |= (uint32_t)!!shared << RF_PATH_SHARED;
		w->last_path = r->path;
	}
	cbw_map(w->out, (unsigned)__builtin_popcount(fields));
	for (unsigned f = 0; f < ROW_FIELDS; f++)
		if (fields & 1u << f)
			put_row_field(w, row, (enum row_field)f, shared);
}

/* [cpu, flags, quality, elapsed_ns, idle_ns, irq_steal_ns, offline_ns, busy_ns, [msr], enabled, running] */
static void put_cpu(struct buf *b, unsigned cpu, const struct snap_cpu *c, unsigned n_msr)
{
	cbw_array(b, 11);
	cbw_uint(b, cpu);
	cbw_uint(b, c->online ? CPU_ONLINE : 0);
	cbw_uint(b, c->quality);
	cbw_uint(b, c->elapsed_ns);
	cbw_uint(b, c->idle_ns);
	cbw_uint(b, c->irq_steal_ns);
	cbw_uint(b, c->offline_ns);
	cbw_uint(b, c->busy_ns);
	put_u64s(b, c->msr, n_msr);
	cbw_uint(b, c->msr_enabled_ns);
	cbw_uint(b, c->msr_running_ns);
}

static void put_key_uint(struct buf *b, const char *key, uint64_t v)
{
	cbw_str(b, key);
	cbw_uint(b, v);
}

static void put_domain(struct buf *b, const struct snap_domain *d, bool with_energy)
{
	cbw_map(b, with_energy ? 12 : 5);
	put_key_uint(b, "start_ns", d->start_ns);
	put_key_uint(b, "end_ns", d->end_ns);
	put_key_uint(b, "quality", d->quality);
	put_key_uint(b, "energy_uj", d->energy_uj);
	put_key_uint(b, "energy_q32", d->energy_q32);
	if (!with_energy)
		return;
	put_key_uint(b, "idle_uj", d->idle_uj);
	put_key_uint(b, "residual_uj", d->residual_uj);
	put_key_uint(b, "idle_power_uw", d->idle_power_uw);
	put_key_uint(b, "idle_quality", d->idle_quality);
	put_key_uint(b, "share_quality", d->share_quality);
	cbw_str(b, "scale");
	cbw_double(b, d->scale);
	cbw_str(b, "uncertainty");
	cbw_double(b, d->uncertainty);
}

static void put_times(struct buf *b, const struct snapshot *s)
{
	put_key_uint(b, "number", s->number);
	put_key_uint(b, "start_ns", s->start_ns);
	put_key_uint(b, "end_ns", s->end_ns);
	put_key_uint(b, "suspended_ns", s->suspended_ns);
	cbw_str(b, "end_real_ns");
	cbw_int(b, s->end_real_ns);
	put_key_uint(b, "nominal_ns", s->nominal_ns);
	put_key_uint(b, "missed", s->missed);
	cbw_str(b, "losses");
	cbw_map(b, 4);
	put_key_uint(b, "folded", s->losses.folded);
	put_key_uint(b, "lost_reads", s->losses.lost_reads);
	put_key_uint(b, "lost_events", s->losses.lost_events);
	put_key_uint(b, "clamped_ns", s->losses.clamped_ns);
}

void recording_encode(const struct snapshot *s, bool with_energy, struct buf *out)
{
	const struct schema *schema = s->schema;
	struct row_writer w = { .s = s, .out = out, .last_path = "", .with_energy = with_energy && s->formula[0] };

	cbw_map(out, w.with_energy ? 14 : 12);
	put_key_uint(out, "schema", recording_schema_id(schema));
	put_times(out, s);
	if (w.with_energy) {
		cbw_str(out, "formula");
		cbw_str(out, s->formula);
		cbw_str(out, "idle_policy");
		cbw_str(out, idle_policy_name(s->idle_policy));
	}
	cbw_str(out, "cpus");
	cbw_array(out, schema->n_cpus);
	for (unsigned i = 0; i < schema->n_cpus; i++)
		put_cpu(out, i, &s->cpus[i], schema->msr.n);
	cbw_str(out, "domains");
	cbw_array(out, schema->n_domains);
	for (unsigned i = 0; i < schema->n_domains; i++)
		put_domain(out, &s->domains[i], w.with_energy);
	cbw_str(out, "rows");
	cbw_array(out, s->n_rows);
	for (unsigned i = 0; i < s->n_rows; i++)
		put_row(&w, i);
}
