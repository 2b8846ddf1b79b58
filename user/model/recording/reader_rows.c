/* SPDX-License-Identifier: Apache-2.0 */
/* One row of a recorded snapshot: its map, its cells, its path. */
#include <errno.h>
#include <string.h>

#include "recording_internal.h"

struct row_reader {
	struct recording *r;
	struct snap_row row;
	uint32_t given; /* bit per field that the map had */
	uint64_t shared;
	size_t suffix_len;
	char suffix[RECORDING_PATH_MAX];
};

static int read_u64s(struct cbr *in, uint64_t *v, unsigned n, const char *what)
{
	struct cbr_iter list;
	unsigned i = 0;
	int err = cbr_array(in, &list, what);

	while (!err && (err = cbr_more(in, &list)) > 0) {
		if (i == n)
			return cbr_fail(in, what, "more than %u columns", n);
		err = cbr_uint(in, &v[i++], what);
	}
	return err || i == n ? err : cbr_fail(in, what, "%u columns instead of %u", i, n);
}

static int read_uncertainty(struct recording *r)
{
	uint64_t ppm[SCHEMA_MAX_DOMAINS] = { 0 };
	int err = read_u64s(r->in, ppm, r->schema.n_domains, "a row's uncertainty");

	for (unsigned i = 0; !err && i < r->schema.n_domains; i++)
		*snapshot_uncertainty(&r->snap, r->snap.n_rows, i) = ppm[i] < SNAPSHOT_UNKNOWN ? (uint32_t)ppm[i] :
												 SNAPSHOT_UNKNOWN;
	return err;
}

static int check_memory(struct recording *r)
{
	const struct snapshot *s = &r->snap;
	uint64_t per_row = sizeof(*s->rows) +
			   r->schema.n_domains * (sizeof(*s->energy_uj) + sizeof(*s->uncertainty_ppm));

	if ((s->n_rows + 1) * per_row + (s->n_cells + 1) * (uint64_t)sizeof(*s->cells) + r->names_bytes > r->max_bytes)
		return cbr_fail(r->in,
				r->max_bytes < RECORDING_MAX_BYTES ? "a snapshot that fits the memory given to it" :
								     "a snapshot of at most 256 MiB",
				"more rows and cells");
	return snapshot_reserve(&r->snap, s->n_rows + 1, s->n_cells + 1);
}

/* [cpu, quality, time_ns, switches, [counters], enabled_ns, running_ns] */
static int read_cell(struct recording *r, struct snap_cell *c)
{
	struct cbr *in = r->in;
	uint64_t cpu = 0, quality = 0;
	struct cbr_iter list;
	unsigned i = 0;
	int err = cbr_array(in, &list, "a cell");

	for (; !err && (err = cbr_more(in, &list)) > 0; i++) {
		switch (i) {
		case 0:
			err = cbr_uint_max(in, r->schema.n_cpus - 1, &cpu, "a CPU of the schema");
			break;
		case 1:
			err = cbr_uint_max(in, UINT16_MAX, &quality, "a quality");
			break;
		case 2:
			err = cbr_uint(in, &c->time_ns, "a time");
			break;
		case 3:
			err = cbr_uint(in, &c->switches, "a number of switches");
			break;
		case 4:
			err = read_u64s(in, c->counters, r->schema.core.n, "a cell's counters");
			break;
		case 5:
			err = cbr_uint(in, &c->enabled_ns, "a time enabled");
			break;
		case 6:
			err = cbr_uint(in, &c->running_ns, "a time running");
			break;
		default:
			err = cbr_skip(in);
		}
	}
	c->cpu = (uint16_t)cpu;
	c->quality = (uint16_t)quality;
	if (!err && i != 5 && i < 7)
		err = cbr_fail(in, "a cell of 5 or 7 values", "%u", i);
	if (!err && i == 5)
		c->enabled_ns = c->running_ns = c->time_ns;
	return err;
}

static int read_cells(struct row_reader *w)
{
	struct recording *r = w->r;
	struct snapshot *s = &r->snap;
	struct cbr_iter list;
	int err = cbr_array(r->in, &list, "a list of cells");

	s->n_cells = w->row.first_cell;
	w->row.n_cells = 0;
	while (!err && (err = cbr_more(r->in, &list)) > 0) {
		struct snap_cell *c;

		err = check_memory(r);
		if (err)
			break;
		c = &s->cells[s->n_cells];
		memset(c, 0, sizeof(*c));
		c->row = s->n_rows;
		err = read_cell(r, c);
		if (!err && w->row.n_cells && c->cpu <= c[-1].cpu)
			err = cbr_fail(r->in, "cells by rising CPU", "CPU %u after %u", c->cpu, c[-1].cpu);
		s->n_cells++;
		w->row.n_cells++;
	}
	return err;
}

/* What may not stand as a name is left out, as it would be here. */
static int read_names(struct row_reader *w)
{
	char text[NAME_FIELDS][NAMING_TEXT_MAX + 1];
	struct names_draft d = { 0 };
	struct recording *r = w->r;
	struct cbr_iter map;
	uint64_t f = 0;
	int err = cbr_map(r->in, &map, "a row's names");

	while (!err && (err = cbr_more(r->in, &map)) > 0) {
		err = cbr_int_key(r->in, &f);
		if (!err && f >= NAME_FIELDS) {
			err = cbr_skip(r->in);
		} else if (!err) {
			err = cbr_str(r->in, text[f], sizeof(text[f]), NULL, "a name");
			d.field[f] = text[f];
		}
	}
	if (err)
		return err;
	names_put(w->row.names);
	w->row.names = names_new(&d);
	r->names_bytes += sizeof(struct names) + sizeof(text);
	return w->row.names ? 0 : -ENOMEM;
}

static int read_field(struct row_reader *w, uint64_t field)
{
	struct cbr *in = w->r->in;
	struct snap_row *row = &w->row;
	uint64_t v = 0, traffic[4] = { 0 };
	int err;

	switch (field) {
	case RF_KIND:
		err = cbr_uint_max(in, ROW_CGROUP, &v, "a kind of row");
		row->kind = (enum row_kind)v;
		return err;
	case RF_KEY:
		err = cbr_uint_max(in, RECORDING_MAX_KEY - 1, &v, "a row's key");
		row->key = (uint32_t)v;
		return err;
	case RF_GENERATION:
		err = cbr_uint_max(in, UINT32_MAX, &v, "a generation");
		row->generation = (uint32_t)v;
		return err;
	case RF_ID:
		return cbr_uint(in, &row->id, "a cgroup's id");
	case RF_PATH_SHARED:
		return cbr_uint(in, &w->shared, "a length of path");
	case RF_PATH:
		return cbr_str(in, w->suffix, sizeof(w->suffix), &w->suffix_len, "a path");
	case RF_LEVEL:
		err = cbr_uint_max(in, UINT16_MAX, &v, "a level");
		row->level = (uint16_t)v;
		return err;
	case RF_FLAGS:
		err = cbr_uint(in, &v, "a row's flags");
		row->ended = v & ROW_ENDED;
		row->selected = v & ROW_SELECTED;
		return err;
	case RF_QUALITY:
		err = cbr_uint_max(in, UINT32_MAX, &v, "a quality");
		row->quality = (unsigned)v;
		return err;
	case RF_TIME_NS:
		return cbr_uint(in, &row->time_ns, "a time");
	case RF_SWITCHES:
		return cbr_uint(in, &row->switches, "a number of switches");
	case RF_COUNTERS:
		return read_u64s(in, row->counters, w->r->schema.core.n, "a row's counters");
	case RF_ENABLED_NS:
		return cbr_uint(in, &row->enabled_ns, "a time enabled");
	case RF_RUNNING_NS:
		return cbr_uint(in, &row->running_ns, "a time running");
	case RF_TRAFFIC:
		err = read_u64s(in, traffic, 4, "a row's traffic");
		row->traffic = (struct traffic){ traffic[0], traffic[1], traffic[2], traffic[3] };
		return err;
	case RF_CELLS:
		return read_cells(w);
	case RF_ENERGY_UJ:
		return read_u64s(in, snapshot_energy(&w->r->snap, w->r->snap.n_rows, 0), w->r->schema.n_domains,
				 "a row's energy");
	case RF_UNCERTAINTY_PPM:
		return read_uncertainty(w->r);
	case RF_NAMES:
		return read_names(w);
	default:
		return cbr_skip(in);
	}
}

/* The first bytes of the path before, then the suffix; the offset stands in `path` for now. */
static int add_path(struct row_reader *w)
{
	struct recording *r = w->r;
	size_t at = r->paths.len, len = w->shared + w->suffix_len;

	if (w->shared > r->last_len)
		return cbr_fail(r->in, "a path that shares what is there", "%llu bytes of %zu",
				(unsigned long long)w->shared, r->last_len);
	if (len >= RECORDING_PATH_MAX)
		return cbr_fail(r->in, "a path below 4096 bytes", "%zu", len);
	uint8_t *to = buf_reserve(&r->paths, len + 1);
	if (!to)
		return -ENOMEM;
	memcpy(to, r->paths.data + r->last_path, w->shared);
	memcpy(to + w->shared, w->suffix, w->suffix_len);
	to[len] = 0;
	if (to[0] != '/')
		return cbr_fail(r->in, "a path that begins with a slash", "another");
	r->paths.len += len + 1;
	r->last_path = at;
	r->last_len = len;
	w->row.path = (const char *)(uintptr_t)at;
	return 0;
}

static void complete(struct row_reader *w)
{
	struct snap_row *row = &w->row;
	struct row_sums sum;

	recording_sum(w->r->snap.cells + row->first_cell, row->n_cells, w->r->schema.core.n, &sum);
	if (!(w->given & 1u << RF_TIME_NS))
		row->time_ns = sum.time_ns;
	if (!(w->given & 1u << RF_SWITCHES))
		row->switches = sum.switches;
	if (!(w->given & 1u << RF_COUNTERS))
		memcpy(row->counters, sum.counters, sizeof(sum.counters));
	if (!(w->given & 1u << RF_ENABLED_NS))
		row->enabled_ns = sum.enabled_ns;
	if (!(w->given & 1u << RF_RUNNING_NS))
		row->running_ns = sum.running_ns;
}

/* Everybody relies on the special rows standing first, by kind, and on keys being unique. */
static int check_row(struct row_reader *w)
{
	struct recording *r = w->r;
	unsigned n = r->snap.n_rows, key = w->row.key;

	if (w->row.kind != (n < READING_SPECIAL_ROWS ? (enum row_kind)n : ROW_CGROUP))
		return cbr_fail(r->in, "the four special rows first, in order, then cgroups",
				"a row \"%s\" at place %u", row_kind_name(w->row.kind), n);
	if (r->key_seen[key / 8] & 1u << key % 8)
		return cbr_fail(r->in, "a row with a key of its own", "key %u again", key);
	r->key_seen[key / 8] |= (uint8_t)(1u << key % 8);
	return 0;
}

static int read_map(struct row_reader *w)
{
	struct cbr *in = w->r->in;
	struct cbr_iter map;
	uint64_t field = 0;
	int err = cbr_map(in, &map, "a row's map");

	while (!err && (err = cbr_more(in, &map)) > 0) {
		err = cbr_int_key(in, &field);
		if (err)
			break;
		if (field < ROW_FIELDS)
			w->given |= 1u << field;
		err = read_field(w, field);
	}
	return err ? err : check_row(w);
}

int recording_read_row(struct recording *r)
{
	struct row_reader w = { .r = r, .row.first_cell = r->snap.n_cells };
	int err = check_memory(r);

	if (err)
		return err;
	memset(snapshot_energy(&r->snap, r->snap.n_rows, 0), 0, r->schema.n_domains * sizeof(uint64_t));
	memset(snapshot_uncertainty(&r->snap, r->snap.n_rows, 0), 0xff, r->schema.n_domains * sizeof(uint32_t));
	err = read_map(&w);
	if (!err && w.row.kind == ROW_CGROUP)
		err = add_path(&w);
	if (err) {
		names_put(w.row.names);
		return err;
	}
	complete(&w);
	/* a path may be another in every document; where it stands differs in all of them */
	w.row.renamed = (uint32_t)cbr_offset(r->in);
	if (w.row.kind != ROW_CGROUP)
		w.row.path = row_kind_name(w.row.kind);
	r->snap.rows[r->snap.n_rows++] = w.row;
	return 0;
}
