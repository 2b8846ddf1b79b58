/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include "cgroups.h"

/* A row of the last snapshot in the columns of the totals. */
static void add_last(const struct listing *l, unsigned row, uint64_t *v)
{
	const struct snap_row *r = &l->last->rows[row];
	unsigned n = l->totals->schema->n_domains;

	for (unsigned d = 0; d < n; d++)
		v[d] += *snapshot_energy(l->last, row, d);
	v[n + TOTAL_TIME] += r->time_ns;
	v[n + TOTAL_SWITCHES] += r->switches;
	v[n + TOTAL_RX_BYTES] += r->traffic.rx_bytes;
	v[n + TOTAL_RX_PACKETS] += r->traffic.rx_packets;
	v[n + TOTAL_TX_BYTES] += r->traffic.tx_bytes;
	v[n + TOTAL_TX_PACKETS] += r->traffic.tx_packets;
	for (unsigned i = 0; i < l->totals->schema->core.n; i++)
		v[n + TOTAL_FIXED + i] += r->counters[i];
}

bool listing_begin(struct listing *l)
{
	unsigned width = totals_width(l->totals);
	bool *listed = calloc(l->totals->n_rows, sizeof(*listed));

	l->rest_total = calloc(width, sizeof(uint64_t));
	l->rest_last = calloc(width, sizeof(uint64_t));
	if (!listed || !l->rest_total || !l->rest_last) {
		free(listed);
		return false;
	}
	for (unsigned i = 0; i < l->n; i++) {
		listed[l->list[i].row] = true;
		if (l->list[i].last != LISTING_NONE)
			l->used[l->list[i].last] = true;
	}
	for (unsigned i = TOTAL_UNSELECTED; i < l->totals->n_rows; i++) {
		if (listed[i])
			continue;
		l->n_rest += i >= TOTAL_FIRST_CGROUP;
		for (unsigned k = 0; k < width; k++)
			l->rest_total[k] += totals_row(l->totals, i)[k];
	}
	for (unsigned i = READING_SPECIAL_ROWS; i < l->last->n_rows; i++)
		if (!l->used[i])
			add_last(l, i, l->rest_last);
	free(listed);
	return true;
}

void listing_free(struct listing *l)
{
	free(l->refs);
	free(l->used);
	free(l->list);
	free(l->rest_total);
	free(l->rest_last);
}

static void add_use(const struct listing *l, const uint64_t *v, bool power, struct json *j)
{
	const struct schema *c = l->totals->schema;
	const uint64_t *fixed = v + c->n_domains;

	json_key(j, "energy_uj");
	json_object_begin(j);
	for (unsigned d = 0; d < c->n_domains; d++)
		json_key_u64(j, c->domains[d].name, v[d]);
	json_object_end(j);
	if (power) {
		json_key(j, "power_w");
		json_object_begin(j);
		for (unsigned d = 0; d < c->n_domains; d++) {
			const struct snap_domain *dom = &l->last->domains[d];

			json_key(j, c->domains[d].name);
			json_double(j, dom->end_ns > dom->start_ns && !(dom->quality & QUALITY_LOST) ?
					       (double)v[d] * 1000 / (double)(dom->end_ns - dom->start_ns) :
					       NAN);
		}
		json_object_end(j);
	}
	json_key_u64(j, "cpu_ns", fixed[TOTAL_TIME]);
	json_key_u64(j, "switches", fixed[TOTAL_SWITCHES]);
	json_key(j, "counters");
	serve_counters_json(j, c, fixed + TOTAL_FIXED);
	json_key_u64(j, "rx_bytes", fixed[TOTAL_RX_BYTES]);
	json_key_u64(j, "rx_packets", fixed[TOTAL_RX_PACKETS]);
	json_key_u64(j, "tx_bytes", fixed[TOTAL_TX_BYTES]);
	json_key_u64(j, "tx_packets", fixed[TOTAL_TX_PACKETS]);
}

static void add_both(const struct listing *l, const uint64_t *total, const uint64_t *last, struct json *j)
{
	json_key(j, "total");
	json_object_begin(j);
	add_use(l, total, false, j);
	json_object_end(j);
	json_key(j, "last");
	json_object_begin(j);
	add_use(l, last, true, j);
	json_object_end(j);
}

static void add_row(const struct listing *l, uint32_t row, uint32_t last, struct json *j)
{
	uint64_t v[SCHEMA_MAX_DOMAINS + TOTAL_FIXED + SCHEMA_MAX_EVENTS] = { 0 };
	unsigned quality = l->totals->rows[row].quality;

	if (last != LISTING_NONE) {
		add_last(l, last, v);
		quality = l->last->rows[last].quality;
	}
	json_key_str(j, "quality", quality_name(quality));
	json_key_str(j, "worst_quality", quality_name(l->totals->rows[row].ever));
	if (last != LISTING_NONE && l->totals->schema->n_domains)
		quality = 0;
	for (unsigned d = 0; d < l->totals->schema->n_domains; d++)
		quality |= last != LISTING_NONE ? snapshot_energy_quality(l->last, last, d) :
						  l->last->domains[d].quality | l->last->domains[d].share_quality;
	json_key_str(j, "energy_quality", quality_name(quality));
	add_both(l, totals_row(l->totals, row), v, j);
}

void listing_cgroup(const struct listing *l, const struct listed *e, struct json *j)
{
	const struct total_row *r = &l->totals->rows[e->row];

	json_object_begin(j);
	json_key_str(j, "path", r->name);
	names_json(j, r->names);
	json_key_u64(j, "id", r->id);
	json_key_u64(j, "level", r->level);
	json_key_u64(j, "seen_ns", l->totals->mono_ns - r->first_ns);
	json_key(j, "ended");
	json_bool(j, r->ended);
	add_row(l, e->row, e->last, j);
	json_object_end(j);
}

void listing_special(const struct listing *l, struct json *j)
{
	json_key(j, "special");
	json_array_begin(j);
	for (unsigned i = ROW_KERNEL; i < READING_SPECIAL_ROWS; i++) {
		json_object_begin(j);
		json_key_str(j, "name", row_kind_name((enum row_kind)i));
		add_row(l, i, i, j);
		json_object_end(j);
	}
	json_array_end(j);
}

void listing_other(const struct listing *l, struct json *j)
{
	json_key(j, "other");
	json_object_begin(j);
	json_key_u64(j, "cgroups", l->n_rest);
	add_both(l, l->rest_total, l->rest_last, j);
	json_object_end(j);
}

void listing_domains(const struct listing *l, struct json *j)
{
	json_key(j, "domains");
	json_array_begin(j);
	for (unsigned d = 0; d < l->totals->schema->n_domains; d++) {
		const struct total_domain *t = &l->totals->domains[d];
		const struct snap_domain *s = &l->last->domains[d];

		json_object_begin(j);
		json_key_str(j, "name", l->totals->schema->domains[d].name);
		json_key_str(j, "quality", quality_name(s->quality));
		json_key(j, "total");
		json_object_begin(j);
		json_key_u64(j, "energy_uj", t->energy_uj);
		json_key_u64(j, "idle_uj", t->idle_uj);
		json_key_u64(j, "residual_uj", t->residual_uj);
		json_key_u64(j, "retired_uj", l->totals->retired[d]);
		json_object_end(j);
		json_key(j, "last");
		json_object_begin(j);
		json_key_u64(j, "energy_uj", s->energy_uj);
		json_key_u64(j, "idle_uj", s->idle_uj + *snapshot_energy(l->last, ROW_IDLE, d));
		json_key_u64(j, "residual_uj", s->residual_uj);
		json_object_end(j);
		json_object_end(j);
	}
	json_array_end(j);
}
