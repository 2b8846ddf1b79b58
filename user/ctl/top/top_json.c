/* SPDX-License-Identifier: Apache-2.0 */
/* One interval as JSON. Energies are a row's own, in microjoules. For each domain the machine's energy_uj is exactly
 * the sum of the rows' energy_uj, idle_uj and residual_uj. Rows have no energy when no formula splits it. */
#include <math.h>
#include <string.h>
#include "base/format/json.h"
#include "encode/table.h"
#include "top.h"

static void put_domain(struct json *j, const struct snapshot *s, unsigned d, bool split)
{
	const struct snap_domain *v = &s->domains[d];

	json_object_begin(j);
	json_key_str(j, "name", s->schema->domains[d].name);
	json_key_str(j, "kind", domain_kind_name(s->schema->domains[d].kind));
	json_key(j, "in_total");
	json_bool(j, schema_sums(s->schema, d));
	json_key_str(j, "interface", energy_interface_name(s->schema->domains[d].interface));
	json_key_str(j, "quality", quality_name(v->quality));
	json_key_u64(j, "interval_ns", v->end_ns - v->start_ns);
	json_key_u64(j, "energy_uj", v->energy_uj);
	json_key(j, "power_w");
	json_double(j, table_domain_watts(v, v->energy_uj));
	if (split) {
		json_key_u64(j, "idle_uj", v->idle_uj);
		json_key_u64(j, "residual_uj", v->residual_uj);
		json_key_str(j, "idle_quality", quality_name(v->idle_quality));
		if (isfinite(v->uncertainty)) {
			json_key(j, "split_uncertainty");
			json_double(j, v->uncertainty);
		}
	}
	json_object_end(j);
}

/* How far the energy of each domain may be from the truth; nothing where that is not known. */
static void put_range(struct json *j, const struct snapshot *s, unsigned row)
{
	bool any = false;

	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		uint32_t ppm = *snapshot_uncertainty(s, row, d);

		if (ppm == SNAPSHOT_UNKNOWN || !*snapshot_energy(s, row, d))
			continue;
		if (!any) {
			json_key(j, "energy_uncertainty");
			json_object_begin(j);
		}
		any = true;
		json_key(j, s->schema->domains[d].name);
		json_double(j, ppm / 1e6);
	}
	if (any)
		json_object_end(j);
}

static void put_energy(struct json *j, const struct snapshot *s, unsigned row)
{
	double watts = 0;

	json_key(j, "energy_uj");
	json_object_begin(j);
	for (unsigned d = 0; d < s->schema->n_domains; d++)
		json_key_u64(j, s->schema->domains[d].name, *snapshot_energy(s, row, d));
	json_object_end(j);
	json_key(j, "power_w");
	json_object_begin(j);
	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		watts = table_domain_watts(&s->domains[d], *snapshot_energy(s, row, d));
		json_key(j, s->schema->domains[d].name);
		json_double(j, watts);
	}
	json_object_end(j);
	json_key_str(j, "energy_quality", quality_name(snapshot_row_energy_quality(s, row)));
	put_range(j, s, row);
}

static void put_row(struct json *j, const struct snapshot *s, unsigned row, bool split)
{
	const struct snap_row *r = &s->rows[row];

	json_object_begin(j);
	json_key_str(j, "name", r->path);
	names_json(j, r->names);
	json_key_str(j, "kind", row_kind_name(r->kind));
	if (r->kind == ROW_CGROUP) {
		json_key_u64(j, "id", r->id);
		json_key_u64(j, "level", r->level);
		json_key(j, "ended");
		json_bool(j, r->ended);
	}
	json_key_str(j, "quality", quality_name(r->quality));
	if (split)
		put_energy(j, s, row);
	json_key_u64(j, "cpu_ns", r->time_ns);
	json_key_u64(j, "switches", r->switches);
	json_key(j, "counters");
	json_object_begin(j);
	for (unsigned e = 0; e < s->schema->core.n; e++)
		json_key_u64(j, s->schema->core.ev[e].name, r->counters[e]);
	json_object_end(j);
	json_key_u64(j, "rx_bytes", r->traffic.rx_bytes);
	json_key_u64(j, "tx_bytes", r->traffic.tx_bytes);
	json_key_u64(j, "read_bytes", r->traffic.read_bytes);
	json_key_u64(j, "write_bytes", r->traffic.write_bytes);
	json_object_end(j);
}

void top_json(const struct snapshot *s, struct buf *out)
{
	bool split = s->schema->n_domains && s->formula[0] && strcmp(s->formula, "none") != 0;
	struct json j;

	json_init(&j, out);
	json_object_begin(&j);
	json_key_str(&j, "sensor", s->schema->sensor);
	json_key_u64(&j, "number", s->number);
	json_key(&j, "time_ns");
	json_i64(&j, s->end_real_ns);
	json_key_u64(&j, "interval_ns", s->end_ns - s->start_ns);
	json_key_str(&j, "formula", s->formula);
	json_key(&j, "domains");
	json_array_begin(&j);
	for (unsigned d = 0; d < s->schema->n_domains; d++)
		put_domain(&j, s, d, split);
	json_array_end(&j);
	json_key(&j, "rows");
	json_array_begin(&j);
	for (unsigned i = 0; i < s->n_rows; i++)
		put_row(&j, s, i, split);
	json_array_end(&j);
	json_object_end(&j);
	buf_add_char(out, '\n');
}
