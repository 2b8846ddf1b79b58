/* SPDX-License-Identifier: Apache-2.0 */
/* One row of a recorded snapshot: its map, its cells, its path. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "recording.h"

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
	int rc = cbr_array(in, &list, what);

	while (!rc && (rc = cbr_more(in, &list)) > 0) {
		if (i == n)
			return cbr_fail(in, what, "more than %u columns", n);
		rc = cbr_uint(in, &v[i++], what);
	}
	return rc || i == n ? rc : cbr_fail(in, what, "%u columns instead of %u", i, n);
}

static int read_uncertainty(struct recording *r)
{
	uint64_t ppm[SCHEMA_MAX_DOMAINS] = { 0 };
	int rc = read_u64s(r->in, ppm, r->schema.n_domains, "a row's uncertainty");

	for (unsigned i = 0; !rc && i < r->schema.n_domains; i++)
		*snapshot_uncertainty(&r->snap, r->snap.n_rows, i) = ppm[i] < SNAPSHOT_UNKNOWN ? (uint32_t)ppm[i] :
												 SNAPSHOT_UNKNOWN;
	return rc;
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

/* [cpu, quality, time_ns, switches, [counters], enabled_ns, running_ns].
 * It is read by hand, because there is one for each row and CPU. */
static int read_cell(struct recording *r, struct snap_cell *c)
{
	struct cbr *in = r->in;
	uint64_t cpu = 0, quality = 0;
	struct cbr_iter list;
	unsigned i = 0;
	int rc = cbr_array(in, &list, "a cell");

	for (; !rc && (rc = cbr_more(in, &list)) > 0; i++) {
		switch (i) {
		case 0:
			rc = cbr_uint_max(in, r->schema.n_cpus - 1, &cpu, "a CPU of the schema");
			break;
		case 1:
			rc = cbr_uint_max(in, UINT16_MAX, &quality, "a quality");
			break;
		case 2:
			rc = cbr_uint(in, &c->time_ns, "a time");
			break;
		case 3:
			rc = cbr_uint(in, &c->switches, "a number of switches");
			break;
		case 4:
			rc = read_u64s(in, c->counters, r->schema.core.n, "a cell's counters");
			break;
		case 5:
			rc = cbr_uint(in, &c->enabled_ns, "a time enabled");
			break;
		case 6:
			rc = cbr_uint(in, &c->running_ns, "a time running");
			break;
		default:
			rc = cbr_skip(in);
		}
	}
	c->cpu = (uint16_t)cpu;
	c->quality = (uint16_t)quality;
	if (!rc && i != 5 && i < 7)
		rc = cbr_fail(in, "a cell of 5 or 7 values", "%u", i);
	if (!rc && i == 5)
		c->enabled_ns = c->running_ns = c->time_ns;
	return rc;
}

static int read_cells(struct row_reader *w)
{
	struct recording *r = w->r;
	struct snapshot *s = &r->snap;
	struct cbr_iter list;
	int rc = cbr_array(r->in, &list, "a list of cells");

	s->n_cells = w->row.first_cell;
	w->row.n_cells = 0;
	while (!rc && (rc = cbr_more(r->in, &list)) > 0) {
		struct snap_cell *c;

		rc = check_memory(r);
		if (rc)
			break;
		c = &s->cells[s->n_cells];
		memset(c, 0, sizeof(*c));
		c->row = s->n_rows;
		rc = read_cell(r, c);
		if (!rc && w->row.n_cells && c->cpu <= c[-1].cpu)
			rc = cbr_fail(r->in, "cells by rising CPU", "CPU %u after %u", c->cpu, c[-1].cpu);
		s->n_cells++;
		w->row.n_cells++;
	}
	return rc;
}

/* Reads the names of a row. A text that cannot be a name is left out, as names_new does. */
static int read_names(struct row_reader *w)
{
	char text[NAME_FIELDS][NAMING_TEXT_MAX + 1];
	struct names_draft d = { 0 };
	struct recording *r = w->r;
	struct cbr_iter map;
	uint64_t f = 0;
	int rc = cbr_map(r->in, &map, "a row's names");

	while (!rc && (rc = cbr_more(r->in, &map)) > 0) {
		rc = cbr_int_key(r->in, &f);
		if (!rc && f >= NAME_FIELDS) {
			rc = cbr_skip(r->in);
		} else if (!rc) {
			rc = cbr_str(r->in, text[f], sizeof(text[f]), NULL, "a name");
			d.field[f] = text[f];
		}
	}
	if (rc)
		return rc;
	names_put(w->row.names);
	w->row.names = names_new(&d);
	r->names_bytes += sizeof(struct names) + sizeof(text);
	return w->row.names ? 0 : -ENOMEM;
}

static int row_read_field(struct row_reader *w, uint64_t field)
{
	struct cbr *in = w->r->in;
	struct snap_row *row = &w->row;
	uint64_t flags = 0;
	int rc;

	if (field < ROW_FIELDS && w->r->row[field])
		return field_cbor_read(in, w->r->row[field], row);
	switch (field) {
	case RF_PATH_SHARED:
		return cbr_uint(in, &w->shared, "a length of path");
	case RF_PATH:
		return cbr_str(in, w->suffix, sizeof(w->suffix), &w->suffix_len, "a path");
	case RF_FLAGS:
		rc = cbr_uint(in, &flags, "a row's flags");
		row->ended = flags & ROW_ENDED;
		row->selected = flags & ROW_SELECTED;
		return rc;
	case RF_COUNTERS:
		return read_u64s(in, row->counters, w->r->schema.core.n, "a row's counters");
	case RF_TRAFFIC:
		return read_u64s(in, traffic_values(&row->traffic), TRAFFIC_NETWORK, "a row's traffic");
	case RF_BLOCK:
		return read_u64s(in, traffic_values(&row->traffic) + TRAFFIC_NETWORK, TRAFFIC_BLOCK,
				 "a row's block work");
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

/* Adds a path: the first bytes of the path before it, then the suffix. `path` holds its offset for now. */
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

/* Checks that the special rows stand first, by kind, and that keys are unique. All readers of snapshots rely on it. */
static int check_row(struct row_reader *w)
{
	struct recording *r = w->r;
	unsigned n = r->snap.n_rows, key = w->row.key;

	if (n < READING_SPECIAL_ROWS ? w->row.kind != (enum row_kind)n : w->row.kind < ROW_CGROUP)
		return cbr_fail(r->in, "the four special rows first, in order, then cgroups and causes",
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
	int rc = cbr_map(in, &map, "a row's map");

	while (!rc && (rc = cbr_more(in, &map)) > 0) {
		rc = cbr_int_key(in, &field);
		if (rc)
			break;
		if (field < ROW_FIELDS)
			w->given |= 1u << field;
		rc = row_read_field(w, field);
	}
	return rc ? rc : check_row(w);
}

int recording_read_row(struct recording *r)
{
	struct row_reader w = { .r = r, .row.first_cell = r->snap.n_cells };
	int rc = check_memory(r);

	if (rc)
		return rc;
	memset(snapshot_energy(&r->snap, r->snap.n_rows, 0), 0, r->schema.n_domains * sizeof(uint64_t));
	memset(snapshot_uncertainty(&r->snap, r->snap.n_rows, 0), 0xff, r->schema.n_domains * sizeof(uint32_t));
	rc = read_map(&w);
	if (!rc && w.row.kind == ROW_CGROUP)
		rc = add_path(&w);
	if (rc) {
		names_put(w.row.names);
		return rc;
	}
	complete(&w);
	/* a path may change with every document, so its offset in the file counts as the number of renames */
	w.row.renamed = (uint32_t)cbr_offset(r->in);
	if (w.row.kind != ROW_CGROUP)
		w.row.path = row_kind_name(w.row.kind);
	r->snap.rows[r->snap.n_rows++] = w.row;
	return 0;
}
