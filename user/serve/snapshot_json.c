/* SPDX-License-Identifier: Apache-2.0 */
/* The snapshot as JSON (docs/query.md). There are hundreds of rows, so their keys are written as whole texts. */
#include <math.h>
#include <string.h>
#include "encode/emit.h"
#include "encode/target.h"
#include "model/snapshot_fields.h"
#include "routes.h"

#define ROW_ROOM 900 /* bytes of one row without its name and columns */
#define MILLION 1000000u

static void add_domain(struct json *j, const struct domain_desc *desc, bool in_total, const struct snap_domain *d)
{
	json_object_begin(j);
	fields_json(j, &domain_desc_fields, desc, IN_JSON);
	json_key(j, "in_total");
	json_bool(j, in_total);
	fields_json(j, &domain_desc_fields, desc, IN_JSON_END);
	fields_json(j, &snap_domain_fields, d, IN_JSON);
	json_key(j, "power_w");
	json_double(j, d->end_ns > d->start_ns ? (double)d->energy_uj * 1000 / (double)(d->end_ns - d->start_ns) : NAN);
	fields_json(j, &snap_domain_fields, d, IN_JSON_END);
	json_key_str(j, "split_quality", quality_name(d->share_quality | d->quality));
	if (isfinite(d->uncertainty)) {
		json_key(j, "split_uncertainty");
		json_double(j, d->uncertainty);
	}
	json_object_end(j);
}

static void add_cpus(struct json *j, const struct snapshot *s)
{
	json_key(j, "cpus");
	json_array_begin(j);
	for (unsigned i = 0; i < s->schema->n_cpus; i++) {
		if (!s->schema->cpus[i].present)
			continue;
		json_object_begin(j);
		json_key_u64(j, "cpu", s->schema->cpus[i].cpu);
		json_key_u64(j, "package", s->schema->cpus[i].package);
		if (s->schema->n_core_types > 1)
			json_key_u64(j, "core_type", s->schema->cpus[i].core_type);
		fields_json(j, &snap_cpu_fields, &s->cpus[i], IN_JSON);
		json_key(j, "msr");
		json_object_begin(j);
		for (unsigned k = 0; k < s->schema->msr.n; k++)
			json_key_u64(j, s->schema->msr.ev[k].name, s->cpus[i].msr[k]);
		json_object_end(j);
		json_object_end(j);
	}
	json_array_end(j);
}

/* The keys of a row's columns, ready to copy: `"name":` each. */
struct column_keys {
	struct buf text;
	uint32_t at[SCHEMA_MAX_DOMAINS + SCHEMA_MAX_EVENTS + 1];
	unsigned domains_quality; /* qualities that the domains and their split add to every row's energy */
};

static bool make_keys(struct column_keys *k, const struct schema *c)
{
	struct json j;

	for (unsigned i = 0; i < c->n_domains + c->core.n; i++) {
		k->at[i] = (uint32_t)k->text.len;
		json_init(&j, &k->text);
		json_str(&j, i < c->n_domains ? c->domains[i].name : c->core.ev[i - c->n_domains].name);
		buf_add_char(&k->text, ':');
		k->at[i + 1] = (uint32_t)k->text.len;
	}
	return !k->text.failed;
}

static char *add_numbers(char *p, const struct column_keys *k, unsigned first, const uint64_t *v, unsigned n)
{
	*p++ = '{';
	for (unsigned i = 0; i < n; i++) {
		if (i)
			*p++ = ',';
		p = emit_mem(p, k->text.data + k->at[first + i], k->at[first + i + 1] - k->at[first + i]);
		p = emit_u64(p, v[i]);
	}
	*p++ = '}';
	return p;
}

/* The quality of a row's energy in all domains. domains: the quality they have in common. */
static unsigned energy_quality(const struct snapshot *s, unsigned row, unsigned domains)
{
	return s->rows[row].quality & QUALITY_LOST ? snapshot_row_energy_quality(s, row) :
						     s->rows[row].quality | domains;
}

static char *add_block(char *p, const struct traffic *t)
{
	p = emit_literal(p, ",\"read_bytes\":");
	p = emit_u64(p, t->read_bytes);
	p = emit_literal(p, ",\"read_requests\":");
	p = emit_u64(p, t->read_requests);
	p = emit_literal(p, ",\"write_bytes\":");
	p = emit_u64(p, t->write_bytes);
	p = emit_literal(p, ",\"write_requests\":");
	p = emit_u64(p, t->write_requests);
	p = emit_literal(p, ",\"discard_bytes\":");
	p = emit_u64(p, t->discard_bytes);
	p = emit_literal(p, ",\"discard_requests\":");
	return emit_u64(p, t->discard_requests);
}

static char *add_fields(char *p, const struct snap_row *r, unsigned of_energy)
{
	const char *quality = quality_name(r->quality), *energy = quality_name(of_energy),
		   *kind = row_kind_name(r->kind);

	p = emit_literal(p, ",\"kind\":\"");
	p = emit_mem(p, kind, strlen(kind));
	p = emit_literal(p, "\",\"id\":");
	p = emit_u64(p, r->id);
	p = emit_literal(p, ",\"level\":");
	p = emit_u64(p, r->level);
	if (r->ended)
		p = emit_literal(p, ",\"ended\":true");
	p = emit_literal(p, ",\"quality\":\"");
	p = emit_mem(p, quality, strlen(quality));
	p = emit_literal(p, "\",\"energy_quality\":\"");
	p = emit_mem(p, energy, strlen(energy));
	p = emit_literal(p, "\",\"cpu_ns\":");
	p = emit_u64(p, r->time_ns);
	p = emit_literal(p, ",\"switches\":");
	p = emit_u64(p, r->switches);
	p = emit_literal(p, ",\"rx_bytes\":");
	p = emit_u64(p, r->traffic.rx_bytes);
	p = emit_literal(p, ",\"rx_packets\":");
	p = emit_u64(p, r->traffic.rx_packets);
	p = emit_literal(p, ",\"tx_bytes\":");
	p = emit_u64(p, r->traffic.tx_bytes);
	p = emit_literal(p, ",\"tx_packets\":");
	p = emit_u64(p, r->traffic.tx_packets);
	return traffic_any(&r->traffic, TRAFFIC_NETWORK, TRAFFIC_BLOCK) ? add_block(p, &r->traffic) : p;
}

/* Adds how far the energy of each domain may be from the truth; nothing where that is not known. */
static char *add_uncertainty(char *p, const struct snapshot *s, const struct column_keys *k, unsigned row)
{
	bool any = false;

	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		uint32_t ppm = *snapshot_uncertainty(s, row, d);

		if (ppm == SNAPSHOT_UNKNOWN || !*snapshot_energy(s, row, d))
			continue;
		p = any ? emit_literal(p, ",") : emit_literal(p, ",\"energy_uncertainty\":{");
		any = true;
		p = emit_mem(p, k->text.data + k->at[d], k->at[d + 1] - k->at[d]);
		p = emit_u64(p, ppm / MILLION);
		p = emit_fraction(p, ppm % MILLION, 6);
	}
	return any ? emit_literal(p, "}") : p;
}

static void add_row(struct json *j, const struct snapshot *s, const struct column_keys *k, unsigned row)
{
	const struct snap_row *r = &s->rows[row];
	unsigned n = s->schema->n_domains, columns = n + s->schema->core.n;
	char name[TARGET_NAME_MAX], *p;
	bool changed = r->kind == ROW_CGROUP && target_name(r, false, name);

	buf_add_str(j->out, "{\"name\":");
	j->comma &= ~(1u << j->depth);
	json_str(j, changed ? name : r->path);
	names_json(j, r->names);
	p = (char *)buf_reserve(j->out, ROW_ROOM + 2 * k->text.len + (columns + n) * (EMIT_U64_MAX + 1));
	if (!p)
		return;
	p = add_fields(p, r, energy_quality(s, row, k->domains_quality));
	p = emit_literal(p, ",\"energy_uj\":");
	p = add_numbers(p, k, 0, snapshot_energy(s, row, 0), n);
	p = add_uncertainty(p, s, k, row);
	p = emit_literal(p, ",\"counters\":");
	p = add_numbers(p, k, n, r->counters, s->schema->core.n);
	*p++ = '}';
	j->out->len = (size_t)((uint8_t *)p - j->out->data);
}

static void add_head(struct json *j, const struct snapshot *s)
{
	json_key_str(j, "sensor", s->schema->sensor);
	json_key_str(j, "boot_id", s->schema->boot_id);
	fields_json(j, &snapshot_fields, s, IN_JSON);
	serve_losses_json(j, &s->losses);
}

void serve_snapshot_json(const struct snapshot *s, struct buf *out)
{
	struct column_keys keys = { 0 };
	struct json j;

	json_init(&j, out);
	json_object_begin(&j);
	add_head(&j, s);
	json_key(&j, "domains");
	json_array_begin(&j);
	for (unsigned d = 0; d < s->schema->n_domains; d++)
		add_domain(&j, &s->schema->domains[d], schema_sums(s->schema, d), &s->domains[d]);
	json_array_end(&j);
	add_cpus(&j, s);
	if (!make_keys(&keys, s->schema))
		out->failed = true;
	for (unsigned d = 0; d < s->schema->n_domains; d++)
		keys.domains_quality |= s->domains[d].quality | s->domains[d].share_quality;
	json_key(&j, "rows");
	json_array_begin(&j);
	for (unsigned i = 0; i < s->n_rows; i++) {
		if (i)
			buf_add_char(out, ',');
		add_row(&j, s, &keys, i);
	}
	json_array_end(&j);
	json_object_end(&j);
	buf_add_char(out, '\n');
	buf_free(&keys.text);
}
