/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a row: the hot part of a recording, once per cgroup and interval. Zeros, and totals that
 * are the sums of the cells, are left out; a path shares its beginning with the one before. */
#include <string.h>

#include "recording_internal.h"

/* Bytes of a cell: array, four numbers, counters, two times. */
#define CELL_BYTES (1 + (4 + SCHEMA_MAX_EVENTS + 2) * CBW_HEAD + 1)
/* And of everything else but path and cells: heads and keys count as full numbers. */
#define ROW_BYTES ((2 * ROW_FIELDS + SCHEMA_MAX_EVENTS + 4 + 2 * SCHEMA_MAX_DOMAINS + 4) * CBW_HEAD)

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
			break;
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

/* Ids stand in the path. */
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

static void put_totals(struct row_out *o, const struct snap_row *r, const struct row_sums *sum, unsigned n_events)
{
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
	const uint64_t v[] = { t->rx_bytes, t->rx_packets, t->tx_bytes, t->tx_packets };

	if (!(v[0] | v[1] | v[2] | v[3]))
		return;
	put_key(o, RF_TRAFFIC);
	put_list(o, v, 4);
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

/* Left out where nothing is known, which is every row unless the formula is model. */
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

void recording_put_row(struct row_writer *w, unsigned row)
{
	const struct snapshot *s = w->s;
	const struct snap_row *r = &s->rows[row];
	const struct snap_cell *cells = s->cells + r->first_cell;
	size_t len = r->kind == ROW_CGROUP ? strlen(r->path) : 0;
	uint8_t *start = buf_reserve(w->out, ROW_BYTES + len + names_room(r->names) + r->n_cells * (size_t)CELL_BYTES);
	struct row_out o = { 0 };
	struct row_sums sum;

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
	recording_sum(cells, r->n_cells, s->schema->core.n, &sum);
	put_totals(&o, r, &sum, s->schema->core.n);
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
