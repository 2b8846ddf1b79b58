/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a snapshot: one map, complete in itself, so that a lost document costs that document and
 * a client that comes late understands the next one (docs/formats/snapshot.md). */
#include "recording_internal.h"

static void put_u64s(struct buf *b, const uint64_t *v, unsigned n)
{
	cbw_array(b, n);
	for (unsigned i = 0; i < n; i++)
		cbw_uint(b, v[i]);
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
	cbw_map(b, with_energy ? 13 : 5);
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
	cbw_str(b, "idle_uncertainty");
	cbw_double(b, d->idle_uncertainty);
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
	put_key_uint(b, "missed_switches", s->losses.missed_switches);
}

/* [row, domain, ns] each, in one list; a row that is not known is the number of rows. */
static void put_uses(struct buf *b, const struct snapshot *s)
{
	cbw_str(b, "uses");
	cbw_array(b, 3u * s->n_uses);
	for (unsigned i = 0; i < s->n_uses; i++) {
		cbw_uint(b, s->uses[i].row == USE_NOBODY ? s->n_rows : s->uses[i].row);
		cbw_uint(b, s->uses[i].domain);
		cbw_uint(b, s->uses[i].ns);
	}
}

void recording_encode(const struct snapshot *s, bool with_energy, struct buf *out)
{
	const struct schema *schema = s->schema;
	struct row_writer w = { .s = s, .out = out, .with_energy = with_energy && s->formula[0] };

	cbw_map(out, (w.with_energy ? 14 : 12) + (s->n_uses != 0));
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
		recording_put_row(&w, i);
	if (s->n_uses)
		put_uses(out, s);
}
