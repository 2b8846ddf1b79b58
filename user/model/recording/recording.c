/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a snapshot: one map, complete in itself. So a lost document costs only that document, and a client that comes
 * late understands the next one (docs/formats/snapshot.md). */
#include <string.h>
#include "base/counts.h"
#include "base/hash.h"
#include "base/prefetch.h"
#include "recording.h"

struct row_writer {
	const struct snapshot *s;
	struct buf *out;
	bool with_energy;
	const char *last_path; /* of the cgroup row before */
	size_t last_len;
};

static void put_u64s(struct buf *b, const uint64_t *v, unsigned n)
{
	cbw_array(b, n);
	for (unsigned i = 0; i < n; i++)
		cbw_uint(b, v[i]);
}

/* [cpu, flags, quality, elapsed_ns, idle_ns, irq_steal_ns, offline_ns, busy_ns, [msr], enabled, running] */
static void put_cpus(struct buf *b, const struct snapshot *s)
{
	const struct field *order[CPU_KEYS] = { 0 };

	fields_by_key(&snap_cpu_fields, IN_RECORDING, order, CPU_KEYS);
	cbw_str(b, "cpus");
	cbw_array(b, s->schema->n_cpus);
	for (unsigned i = 0; i < s->schema->n_cpus; i++) {
		const struct snap_cpu *c = &s->cpus[i];

		cbw_array(b, CPU_KEYS);
		cbw_uint(b, i);
		cbw_uint(b, c->online ? CPU_ONLINE : 0);
		for (unsigned k = CPU_KEY_FLAGS + 1; k < CPU_KEYS; k++)
			if (k == CPU_KEY_MSR)
				put_u64s(b, c->msr, s->schema->msr.n);
			else
				field_cbor(b, order[k], c);
	}
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

static void put_rows(const struct snapshot *s, bool with_energy, struct buf *out);

void recording_encode(const struct snapshot *s, bool with_energy, struct buf *out)
{
	const struct schema *schema = s->schema;
	const bool split = with_energy && s->formula[0];
	const unsigned form = split ? IN_RECORDING | IN_SPLIT : IN_RECORDING;

	cbw_map(out, 5 + (s->n_uses != 0) + fields_count(&snapshot_fields, s, form));
	cbw_str(out, "schema");
	cbw_uint(out, recording_schema_id(schema));
	fields_cbor(out, &snapshot_fields, s, IN_RECORDING);
	cbw_str(out, "losses");
	cbw_map(out, fields_count(&losses_fields, &s->losses, IN_RECORDING));
	fields_cbor(out, &losses_fields, &s->losses, IN_RECORDING);
	if (split)
		fields_cbor(out, &snapshot_fields, s, IN_SPLIT);
	put_cpus(out, s);
	cbw_str(out, "domains");
	cbw_array(out, schema->n_domains);
	for (unsigned i = 0; i < schema->n_domains; i++) {
		cbw_map(out, fields_count(&snap_domain_fields, &s->domains[i], form));
		fields_cbor(out, &snap_domain_fields, &s->domains[i], form);
	}
	put_rows(s, split, out);
	if (s->n_uses)
		put_uses(out, s);
}

/* The header of a recording: the meaning of the columns of the documents that follow. */

/* Mixes a text into the schema's number. Different schemas must not get one number by chance; there is no protection
 * against intent, which would gain nothing. */
static uint64_t mix_str(uint64_t h, const char *s)
{
	return hash_fnv(h, s, strlen(s) + 1);
}

static uint64_t mix_events(uint64_t h, const struct event_set *set)
{
	h = hash_fnv(h, &set->n, sizeof(set->n));
	for (unsigned i = 0; i < set->n; i++) {
		h = mix_str(mix_str(h, set->ev[i].name), set->ev[i].pmu);
		h = hash_fnv(h, &set->ev[i].config, sizeof(set->ev[i].config));
	}
	return h;
}

uint64_t recording_schema_id(const struct schema *s)
{
	uint64_t h = mix_str(mix_str(HASH_FNV, s->sensor), s->boot_id);

	h = mix_events(mix_events(h, &s->core), &s->msr);
	h = hash_fnv(h, &s->n_cpus, sizeof(s->n_cpus));
	for (unsigned i = 0; i < s->n_domains; i++)
		h = hash_fnv(mix_str(h, s->domains[i].name), &s->domains[i].interface, sizeof(s->domains[i].interface));
	return h;
}

static void put_event(struct buf *b, const struct event_desc *e)
{
	size_t n = sizeof(e->cpus);

	while (n && !e->cpus[n - 1])
		n--;
	cbw_map(b, fields_count(&event_fields, e, IN_RECORDING) + e->cpus_only_known);
	fields_cbor(b, &event_fields, e, IN_RECORDING);
	if (e->cpus_only_known) {
		cbw_str(b, "cpus");
		cbw_bytes(b, e->cpus, n);
	}
}

static void put_events(struct buf *b, const char *key, const struct event_set *set)
{
	cbw_str(b, key);
	cbw_array(b, set->n);
	for (unsigned i = 0; i < set->n; i++)
		put_event(b, &set->ev[i]);
}

static void put_topology(struct buf *b, const struct schema *s)
{
	cbw_str(b, "cpus");
	cbw_array(b, s->n_cpus);
	for (unsigned i = 0; i < s->n_cpus; i++) {
		cbw_array(b, s->cpus[i].core_type ? 5 : 4);
		cbw_bool(b, s->cpus[i].present);
		cbw_uint(b, s->cpus[i].package);
		cbw_uint(b, s->cpus[i].die);
		cbw_uint(b, s->cpus[i].core);
		if (s->cpus[i].core_type)
			cbw_uint(b, s->cpus[i].core_type);
	}
	cbw_str(b, "domains");
	cbw_array(b, s->n_domains);
	for (unsigned i = 0; i < s->n_domains; i++) {
		const struct domain_desc *d = &s->domains[i];
		unsigned form = IN_RECORDING | (d->has_die ? IN_DIE : 0u) | (d->idle_known ? IN_IDLE : 0u);

		cbw_map(b, fields_count(&domain_desc_fields, d, form));
		fields_cbor(b, &domain_desc_fields, d, form);
	}
}

void recording_encode_header(const struct schema *s, struct buf *out)
{
	cbw_tag(out, RECORDING_TAG);
	cbw_map(out, 7 + fields_count(&schema_fields, s, IN_RECORDING | IN_PLACES));
	cbw_str(out, "format");
	cbw_str(out, RECORDING_FORMAT);
	cbw_str(out, "version");
	cbw_uint(out, RECORDING_VERSION);
	cbw_str(out, "schema");
	cbw_uint(out, recording_schema_id(s));
	fields_cbor(out, &schema_fields, s, IN_RECORDING);
	put_events(out, "core", &s->core);
	put_events(out, "msr", &s->msr);
	fields_cbor(out, &schema_fields, s, IN_PLACES);
	put_topology(out, s);
}

/* Writing a row: the hot part of a recording, once per cgroup and interval. Zeros, and totals that
 * are the sums of the cells, are left out; a path shares its beginning with the one before. */

/* Bytes of a cell: array, four numbers, counters, two times. */
#define AHEAD_PATHS 6 /* rows: other programs ran since the paths were used last, and they lie apart */
#define CELL_BYTES (1 + (4 + SCHEMA_MAX_EVENTS + 2) * CBW_HEAD + 1)
/* Bytes of a row without path and cells: heads and keys count as full numbers. */
#define ROW_BYTES ((2 * ROW_FIELDS + SCHEMA_MAX_EVENTS + TRAFFIC_VALUES + 2 * SCHEMA_MAX_DOMAINS + 5) * CBW_HEAD)

struct row_out {
	uint8_t *p;
	unsigned fields;
};

void recording_sum(const struct snap_cell *cells, unsigned n, unsigned n_events, struct row_sums *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (const struct snap_cell *c = cells; c < cells + n; c++) {
		ret->time_ns += c->time_ns;
		ret->switches += c->switches;
		ret->enabled_ns += c->enabled_ns;
		ret->running_ns += c->running_ns;
		for (unsigned i = 0; i < n_events; i++)
			ret->counters[i] += c->counters[i];
	}
}

static inline void put_key(struct row_out *o, enum row_field f)
{
	*o->p++ = (uint8_t)f; /* all keys are below 24: one byte each */
	o->fields++;
}

static inline void put_number(struct row_out *o, enum row_field f, uint64_t v, bool wanted)
{
	if (!wanted)
		return;
	put_key(o, f);
	o->p = cbw_put(o->p, CBW_UINT, v);
}

static inline void put_list(struct row_out *o, const uint64_t *v, unsigned n)
{
	o->p = cbw_put(o->p, CBW_ARRAY, n);
	for (unsigned i = 0; i < n; i++)
		o->p = cbw_put(o->p, CBW_UINT, v[i]);
}

/* [cpu, quality, time_ns, switches, [counters], enabled_ns, running_ns]; the last two only where
 * they differ from time_ns: without multiplexing they do not. */
static inline void put_cell(struct row_out *o, const struct snap_cell *c, unsigned n_events)
{
	bool mux = c->enabled_ns != c->time_ns || c->running_ns != c->time_ns;

	*o->p++ = (uint8_t)(CBW_ARRAY << 5 | (mux ? 7 : 5));
	o->p = cbw_put(o->p, CBW_UINT, c->cpu);
	o->p = cbw_put(o->p, CBW_UINT, c->quality);
	o->p = cbw_put(o->p, CBW_UINT, c->time_ns);
	o->p = cbw_put(o->p, CBW_UINT, c->switches);
	put_list(o, c->counters, n_events);
	if (mux) {
		o->p = cbw_put(o->p, CBW_UINT, c->enabled_ns);
		o->p = cbw_put(o->p, CBW_UINT, c->running_ns);
	}
}

static size_t shared_prefix(const char *a, const char *b, size_t max)
{
	size_t n = 0;
	uint64_t x, y;

	for (; n + sizeof(x) <= max; n += sizeof(x)) {
		memcpy(&x, a + n, sizeof(x));
		memcpy(&y, b + n, sizeof(y));
		if (x != y)
			return n + (unsigned)__builtin_ctzll(x ^ y) / 8;
	}
	while (n < max && a[n] == b[n])
		n++;
	return n;
}

static void put_path(struct row_writer *w, struct row_out *o, const char *path, size_t len)
{
	size_t shared = shared_prefix(path, w->last_path, len < w->last_len ? len : w->last_len);

	put_number(o, RF_PATH_SHARED, shared, shared);
	put_key(o, RF_PATH);
	o->p = cbw_put(o->p, CBW_BYTES, len - shared);
	memcpy(o->p, path + shared, len - shared);
	o->p += len - shared;
	w->last_path = path;
	w->last_len = len;
}

/* True when a name is written. Ids are not, because the path has them. */
static bool is_kept(const struct names *n, enum name_field f)
{
	return f != NAME_POD_UID && f != NAME_CONTAINER_ID && *names_text(n, f);
}

static size_t names_room(const struct names *n)
{
	size_t room = 0;

	for (enum name_field f = 0; n && f < NAME_FIELDS; f++)
		room += is_kept(n, f) ? strlen(names_text(n, f)) + 2 * CBW_HEAD : 0;
	return room;
}

static void put_names(struct row_out *o, const struct names *n)
{
	unsigned fields = 0;

	for (enum name_field f = 0; n && f < NAME_FIELDS; f++)
		fields += is_kept(n, f);
	if (!fields)
		return;
	put_key(o, RF_NAMES);
	*o->p++ = (uint8_t)(0xa0 | fields);
	for (enum name_field f = 0; f < NAME_FIELDS; f++) {
		size_t len = strlen(names_text(n, f));

		if (!is_kept(n, f))
			continue;
		o->p = cbw_put(o->p, CBW_UINT, f);
		o->p = cbw_put(o->p, CBW_TEXT, len);
		memcpy(o->p, names_text(n, f), len);
		o->p += len;
	}
}

/* True when the row counts what its cells do, which is so unless it was made by another hand. */
static inline bool is_sum(const struct snap_row *r, const struct snap_cell *cells)
{
	uint64_t sum[SNAP_COUNTS] = { 0 }, more[SNAP_COUNTS];

	for (unsigned i = 0; i < r->n_cells; i++)
		counts_add(sum, &cells[i].time_ns, SNAP_COUNTS);
	return !counts_difference(more, &r->time_ns, sum, SNAP_COUNTS);
}

static void put_totals(struct row_out *o, const struct snap_row *r, const struct snap_cell *cells, unsigned n_events)
{
	struct row_sums sums, *sum = &sums;

	if (is_sum(r, cells))
		return;
	recording_sum(cells, r->n_cells, n_events, sum);
	put_number(o, RF_TIME_NS, r->time_ns, r->time_ns != sum->time_ns);
	put_number(o, RF_SWITCHES, r->switches, r->switches != sum->switches);
	put_number(o, RF_ENABLED_NS, r->enabled_ns, r->enabled_ns != sum->enabled_ns);
	put_number(o, RF_RUNNING_NS, r->running_ns, r->running_ns != sum->running_ns);
	if (memcmp(r->counters, sum->counters, n_events * sizeof(*r->counters)) != 0) {
		put_key(o, RF_COUNTERS);
		put_list(o, r->counters, n_events);
	}
}

static void put_traffic(struct row_out *o, const struct traffic *t)
{
	if (traffic_any(t, 0, TRAFFIC_NETWORK)) {
		put_key(o, RF_TRAFFIC);
		put_list(o, traffic_const(t), TRAFFIC_NETWORK);
	}
	if (traffic_any(t, TRAFFIC_NETWORK, TRAFFIC_BLOCK)) {
		put_key(o, RF_BLOCK);
		put_list(o, traffic_const(t) + TRAFFIC_NETWORK, TRAFFIC_BLOCK);
	}
}

static void put_energy(struct row_out *o, const uint64_t *uj, unsigned n)
{
	uint64_t any = 0;

	for (unsigned i = 0; i < n; i++)
		any |= uj[i];
	if (!any)
		return;
	put_key(o, RF_ENERGY_UJ);
	put_list(o, uj, n);
}

/* Writes the uncertainties. They are left out where none is known, as of every row of formula share before an audit. */
static void put_uncertainty(struct row_out *o, const uint32_t *ppm, unsigned n)
{
	uint32_t all = SNAPSHOT_UNKNOWN;

	for (unsigned i = 0; i < n; i++)
		all &= ppm[i];
	if (all == SNAPSHOT_UNKNOWN)
		return;
	put_key(o, RF_UNCERTAINTY_PPM);
	o->p = cbw_put(o->p, CBW_ARRAY, n);
	for (unsigned i = 0; i < n; i++)
		o->p = cbw_put(o->p, CBW_UINT, ppm[i]);
}

static void put_row(struct row_writer *w, unsigned row)
{
	const struct snapshot *s = w->s;
	const struct snap_row *r = &s->rows[row];
	const struct snap_cell *cells = s->cells + r->first_cell;
	size_t len = r->kind == ROW_CGROUP ? strlen(r->path) : 0;
	uint8_t *start = buf_reserve(w->out, ROW_BYTES + len + names_room(r->names) + r->n_cells * (size_t)CELL_BYTES);
	struct row_out o = { 0 };

	if (!start)
		return;
	o.p = start + 1;
	put_number(&o, RF_KIND, r->kind, true);
	put_number(&o, RF_KEY, r->key, r->key);
	put_number(&o, RF_GENERATION, r->generation, r->generation);
	put_number(&o, RF_ID, r->id, r->id);
	if (r->kind == ROW_CGROUP)
		put_path(w, &o, r->path, len);
	put_number(&o, RF_LEVEL, r->level, r->level);
	put_number(&o, RF_FLAGS, (r->ended ? ROW_ENDED : 0u) | (r->selected ? ROW_SELECTED : 0u),
		   r->ended || r->selected);
	put_number(&o, RF_QUALITY, r->quality, r->quality);
	put_totals(&o, r, cells, s->schema->core.n);
	put_traffic(&o, &r->traffic);
	if (r->n_cells) {
		put_key(&o, RF_CELLS);
		o.p = cbw_put(o.p, CBW_ARRAY, r->n_cells);
		for (unsigned i = 0; i < r->n_cells; i++)
			put_cell(&o, &cells[i], s->schema->core.n);
	}
	if (w->with_energy) {
		put_energy(&o, snapshot_energy(s, row, 0), s->schema->n_domains);
		put_uncertainty(&o, snapshot_uncertainty(s, row, 0), s->schema->n_domains);
	}
	put_names(&o, r->names);
	/* Fewer than 24 fields: the map's head is the one byte left free. */
	*start = (uint8_t)(0xa0 | o.fields);
	w->out->len += (size_t)(o.p - start);
}

static PREFETCHING void prefetch_path(const char *path)
{
	__builtin_prefetch(path);
	__builtin_prefetch(path + 64);
}

/* The hot loop is a function of its own: inlined beside the rest, a row takes 3 % longer. */
static __attribute__((noinline)) void put_rows(const struct snapshot *s, bool with_energy, struct buf *out)
{
	struct row_writer w = { .s = s, .out = out, .with_energy = with_energy };

	cbw_str(out, "rows");
	cbw_array(out, s->n_rows);
	for (unsigned i = 0; i < s->n_rows; i++) {
		if (i + AHEAD_PATHS < s->n_rows) {
			__builtin_prefetch(s->rows[i + AHEAD_PATHS].path);
			__builtin_prefetch(s->rows[i + AHEAD_PATHS].path + 64);
		}
		put_row(&w, i);
	}
}
