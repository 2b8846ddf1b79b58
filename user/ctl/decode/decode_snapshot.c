/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings: one record for the header, then one for each snapshot with all of its fields. Replays use the same
 * reader. A snapshot is read whole before any of it is written. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/recording/recording.h"
#include "decode.h"

#define SNAPSHOT_BYTES_MAX (20u << 20) /* arrays may be twice as large while they grow */

struct snapshots {
	struct decoding *d;
	struct recording *r; /* NULL before the header */
};

static void put_u64s(struct out *o, const char *key, const uint64_t *v, unsigned n)
{
	out_list(o, key);
	for (unsigned i = 0; i < n; i++)
		out_u64(o, NULL, v[i]);
	out_list_end(o);
}

static void put_events(struct out *o, const char *key, const struct event_set *set)
{
	out_list(o, key);
	for (unsigned i = 0; i < set->n; i++) {
		out_map(o, NULL);
		out_fields(o, &event_fields, &set->ev[i],
			   set->ev[i].kind == EVENT_PERF ? IN_DECODED | IN_PERF : IN_DECODED);
		out_map_end(o);
	}
	out_list_end(o);
}

static void put_domains(struct out *o, const struct schema *s)
{
	out_list(o, "domains");
	for (unsigned i = 0; i < s->n_domains; i++) {
		out_map(o, NULL);
		out_fields(o, &domain_desc_fields, &s->domains[i],
			   s->domains[i].has_die ? IN_DECODED | IN_DIE : IN_DECODED);
		out_map_end(o);
	}
	out_list_end(o);
}

static int put_header(struct snapshots *w, uint64_t offset)
{
	const struct schema *s = recording_schema(w->r);
	struct out *o = w->d->out;

	out_record(o, "snapshot", "header", offset);
	out_fields(o, &schema_fields, s, IN_DECODED);
	put_events(o, "core", &s->core);
	put_events(o, "msr", &s->msr);
	put_domains(o, s);
	out_list(o, "cpus");
	for (unsigned i = 0; i < s->n_cpus; i++) {
		out_map(o, NULL);
		out_u64(o, "cpu", i);
		out_bool(o, "present", s->cpus[i].present);
		out_u64(o, "package", s->cpus[i].package);
		out_u64(o, "die", s->cpus[i].die);
		out_u64(o, "core", s->cpus[i].core);
		if (s->n_core_types > 1)
			out_u64(o, "core_type", s->cpus[i].core_type);
		out_map_end(o);
	}
	out_list_end(o);
	return decode_record_end(w->d, offset);
}

static void put_interval(struct out *o, const struct snapshot *s)
{
	out_fields(o, &snapshot_fields, s, IN_DECODED);
	out_map(o, "losses");
	out_fields(o, &losses_fields, &s->losses, IN_DECODED);
	out_map_end(o);
}

static void put_cpus(struct out *o, const struct snapshot *s)
{
	out_list(o, "cpus");
	for (unsigned i = 0; i < s->schema->n_cpus; i++) {
		out_map(o, NULL);
		out_u64(o, "cpu", i);
		out_fields(o, &snap_cpu_fields, &s->cpus[i], IN_DECODED);
		put_u64s(o, "msr", s->cpus[i].msr, s->schema->msr.n);
		out_map_end(o);
	}
	out_list_end(o);
}

static void put_energies(struct out *o, const struct snapshot *s)
{
	out_list(o, "domains");
	for (unsigned i = 0; i < s->schema->n_domains; i++) {
		out_map(o, NULL);
		out_str(o, "name", s->schema->domains[i].name);
		out_fields(o, &snap_domain_fields, &s->domains[i], IN_DECODED);
		out_map_end(o);
	}
	out_list_end(o);
}

/* Uncertainty of the row's energy in each domain, in millionths; null where it is unknown. */
static void put_uncertainty(struct out *o, const struct snapshot *s, unsigned row)
{
	out_list(o, "uncertainty_ppm");
	for (unsigned i = 0; i < s->schema->n_domains; i++) {
		uint32_t ppm = *snapshot_uncertainty(s, row, i);

		if (ppm == SNAPSHOT_UNKNOWN)
			out_null(o, NULL);
		else
			out_u64(o, NULL, ppm);
	}
	out_list_end(o);
}

static void put_cells(struct out *o, const struct snapshot *s, const struct snap_row *r)
{
	out_list(o, "cells");
	for (unsigned i = 0; i < r->n_cells; i++) {
		const struct snap_cell *c = &s->cells[r->first_cell + i];

		out_map(o, NULL);
		out_fields(o, &snap_cell_fields, c, IN_DECODED);
		put_u64s(o, "counters", c->counters, s->schema->core.n);
		out_map_end(o);
	}
	out_list_end(o);
}

static void put_row(struct out *o, const struct snapshot *s, unsigned row)
{
	const struct snap_row *r = &s->rows[row];

	out_map(o, NULL);
	out_fields(o, &snap_row_fields, r, IN_DECODED);
	put_u64s(o, "counters", r->counters, s->schema->core.n);
	put_u64s(o, "traffic", traffic_const(&r->traffic), TRAFFIC_NETWORK);
	put_u64s(o, "block", traffic_const(&r->traffic) + TRAFFIC_NETWORK, TRAFFIC_BLOCK);
	put_u64s(o, "energy_uj", snapshot_energy(s, row, 0), s->schema->n_domains);
	if (s->formula[0])
		out_words(o, "energy_quality", &quality_words, snapshot_row_energy_quality(s, row));
	put_uncertainty(o, s, row);
	put_cells(o, s, r);
	out_map_end(o);
}

static int put_snapshot(struct snapshots *w, const struct snapshot *s, uint64_t offset)
{
	struct out *o = w->d->out;
	int rc = 0;

	out_record(o, "snapshot", "snapshot", offset);
	put_interval(o, s);
	put_energies(o, s);
	put_cpus(o, s);
	out_list(o, "rows");
	for (unsigned i = 0; i < s->n_rows && !rc; i++) {
		put_row(o, s, i);
		rc = out_spill(o);
	}
	out_list_end(o);
	return rc ? decode_write_failed(w->d, rc) : decode_record_end(w->d, offset);
}

static int snapshot_next(void *state)
{
	struct snapshots *w = state;
	struct input *in = w->d->in;
	struct snapshot *s = NULL;
	struct err err = { 0 };
	uint64_t offset;
	int got;

	if (!w->r) {
		got = recording_open_from(input_read, in, input_subject(in), &w->r, &err);
		if (got)
			return input_fail_as(in, &err);
		recording_limit(w->r, SNAPSHOT_BYTES_MAX);
		return put_header(w, 0);
	}
	offset = recording_offset(w->r);
	got = recording_next(w->r, &s, &err);
	if (got < 0)
		return input_fail_as(in, &err);
	return got ? put_snapshot(w, s, offset) : 0;
}

static int snapshot_open(struct decoding *d, void **ret_state)
{
	struct snapshots *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->d = d;
	*ret_state = w;
	return 0;
}

static void snapshot_close(void *state)
{
	struct snapshots *w = state;

	if (!w)
		return;
	recording_close(w->r);
	free(w);
}

const struct decoder decoder_snapshot = { snapshot_open, snapshot_next, snapshot_close };
