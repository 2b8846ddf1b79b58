/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings: the header once, then a record per snapshot, all of it. The reader is the one that
 * replays them; a snapshot is whole before anything of it is written. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../model/recording.h"
#include "decode.h"

#define SNAPSHOT_BYTES_MAX (20u << 20) /* arrays may be twice as large while they grow */

struct snapshots {
	struct decoding *d;
	struct recording *r; /* NULL before the header */
};

/* "measured", or all that it is: "wrapped+estimated". */
static void put_quality(struct out *o, const char *key, unsigned quality)
{
	char words[96] = "";
	size_t at = 0;

	for (unsigned bit = QUALITY_WRAPPED; bit <= QUALITY_LOST; bit <<= 1)
		if (quality & bit)
			at += (size_t)snprintf(words + at, sizeof(words) - at, "%s%s", at ? "+" : "",
					       quality_name(bit));
	out_str(o, key, *words ? words : quality_name(QUALITY_MEASURED));
}

static void put_u64s(struct out *o, const char *key, const uint64_t *v, unsigned n)
{
	out_list(o, key);
	for (unsigned i = 0; i < n; i++)
		out_u64(o, NULL, v[i]);
	out_list_end(o);
}

static void put_events(struct out *o, const char *key, const struct event_set *set)
{
	static const char *const kinds[] = { "perf", "task-clock", "absent" };

	out_list(o, key);
	for (unsigned i = 0; i < set->n; i++) {
		const struct event_desc *e = &set->ev[i];

		out_map(o, NULL);
		out_str(o, "name", e->name);
		out_str(o, "kind", kinds[e->kind <= EVENT_ABSENT ? e->kind : EVENT_ABSENT]);
		if (e->kind == EVENT_PERF) {
			out_str(o, "pmu", e->pmu);
			out_u64(o, "type", e->type);
			out_u64(o, "config", e->config);
			out_u64(o, "config1", e->config1);
			out_u64(o, "config2", e->config2);
		}
		out_str(o, "reason", e->reason);
		out_map_end(o);
	}
	out_list_end(o);
}

static void put_domains(struct out *o, const struct schema *s)
{
	out_list(o, "domains");
	for (unsigned i = 0; i < s->n_domains; i++) {
		const struct domain_desc *d = &s->domains[i];

		out_map(o, NULL);
		out_str(o, "name", d->name);
		out_str(o, "kind", domain_kind_name(d->kind));
		out_u64(o, "package", d->package);
		if (d->has_die)
			out_u64(o, "die", d->die);
		out_str(o, "interface", energy_interface_name(d->interface));
		out_str(o, "reason", d->reason);
		if (*d->id)
			out_str(o, "id", d->id);
		out_map_end(o);
	}
	out_list_end(o);
}

static int put_header(struct snapshots *w, uint64_t offset)
{
	const struct schema *s = recording_schema(w->r);
	struct out *o = w->d->out;

	out_record(o, "snapshot", "header", offset);
	out_str(o, "sensor", s->sensor);
	out_str(o, "boot_id", s->boot_id);
	out_str(o, "trigger", s->trigger);
	out_str(o, "clock", s->clock);
	out_bool(o, "multiplexed", s->multiplexed);
	out_bool(o, "irq_separate", s->irq_separate);
	out_bool(o, "idle_merged", s->idle_merged);
	out_u64(o, "packages", s->n_packages);
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
		out_map_end(o);
	}
	out_list_end(o);
	return decode_record_end(w->d, offset);
}

static void put_interval(struct out *o, const struct snapshot *s)
{
	out_u64(o, "number", s->number);
	out_u64(o, "start_ns", s->start_ns);
	out_u64(o, "end_ns", s->end_ns);
	out_i64(o, "end_real_ns", s->end_real_ns);
	out_u64(o, "suspended_ns", s->suspended_ns);
	out_u64(o, "nominal_ns", s->nominal_ns);
	out_u64(o, "missed", s->missed);
	out_str(o, "formula", s->formula);
	out_str(o, "idle_policy", idle_policy_name(s->idle_policy));
	out_map(o, "losses");
	out_u64(o, "folded", s->losses.folded);
	out_u64(o, "lost_reads", s->losses.lost_reads);
	out_u64(o, "lost_events", s->losses.lost_events);
	out_u64(o, "missed_switches", s->losses.missed_switches);
	out_map_end(o);
}

static void put_cpus(struct out *o, const struct snapshot *s)
{
	out_list(o, "cpus");
	for (unsigned i = 0; i < s->schema->n_cpus; i++) {
		const struct snap_cpu *c = &s->cpus[i];

		out_map(o, NULL);
		out_u64(o, "cpu", i);
		out_bool(o, "online", c->online);
		put_quality(o, "quality", c->quality);
		out_u64(o, "elapsed_ns", c->elapsed_ns);
		out_u64(o, "idle_ns", c->idle_ns);
		out_u64(o, "irq_steal_ns", c->irq_steal_ns);
		out_u64(o, "offline_ns", c->offline_ns);
		out_u64(o, "busy_ns", c->busy_ns);
		out_u64(o, "msr_enabled_ns", c->msr_enabled_ns);
		out_u64(o, "msr_running_ns", c->msr_running_ns);
		put_u64s(o, "msr", c->msr, s->schema->msr.n);
		out_map_end(o);
	}
	out_list_end(o);
}

static void put_energies(struct out *o, const struct snapshot *s)
{
	out_list(o, "domains");
	for (unsigned i = 0; i < s->schema->n_domains; i++) {
		const struct snap_domain *d = &s->domains[i];

		out_map(o, NULL);
		out_str(o, "name", s->schema->domains[i].name);
		put_quality(o, "quality", d->quality);
		out_u64(o, "start_ns", d->start_ns);
		out_u64(o, "end_ns", d->end_ns);
		out_u64(o, "energy_uj", d->energy_uj);
		out_u64(o, "energy_q32", d->energy_q32);
		out_u64(o, "idle_uj", d->idle_uj);
		out_u64(o, "residual_uj", d->residual_uj);
		out_u64(o, "idle_power_uw", d->idle_power_uw);
		put_quality(o, "idle_quality", d->idle_quality);
		put_quality(o, "share_quality", d->share_quality);
		out_double(o, "scale", d->scale);
		out_double(o, "uncertainty", d->uncertainty);
		out_double(o, "idle_uncertainty", d->idle_uncertainty);
		out_map_end(o);
	}
	out_list_end(o);
}

/* Of the row's energy, in millionths; null where nobody knows. */
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
		out_u64(o, "cpu", c->cpu);
		put_quality(o, "quality", c->quality);
		out_u64(o, "time_ns", c->time_ns);
		out_u64(o, "switches", c->switches);
		out_u64(o, "enabled_ns", c->enabled_ns);
		out_u64(o, "running_ns", c->running_ns);
		put_u64s(o, "counters", c->counters, s->schema->core.n);
		out_map_end(o);
	}
	out_list_end(o);
}

static void put_row(struct out *o, const struct snapshot *s, unsigned row)
{
	const struct snap_row *r = &s->rows[row];
	const uint64_t traffic[] = { r->traffic.rx_bytes, r->traffic.rx_packets, r->traffic.tx_bytes,
				     r->traffic.tx_packets };

	out_map(o, NULL);
	out_str(o, "kind", row_kind_name(r->kind));
	out_str(o, "path", r->path);
	out_u64(o, "id", r->id);
	out_u64(o, "key", r->key);
	out_u64(o, "generation", r->generation);
	out_u64(o, "level", r->level);
	out_bool(o, "ended", r->ended);
	out_bool(o, "selected", r->selected);
	put_quality(o, "quality", r->quality);
	out_u64(o, "time_ns", r->time_ns);
	out_u64(o, "switches", r->switches);
	out_u64(o, "enabled_ns", r->enabled_ns);
	out_u64(o, "running_ns", r->running_ns);
	put_u64s(o, "counters", r->counters, s->schema->core.n);
	put_u64s(o, "traffic", traffic, 4);
	put_u64s(o, "energy_uj", snapshot_energy(s, row, 0), s->schema->n_domains);
	put_uncertainty(o, s, row);
	put_cells(o, s, r);
	out_map_end(o);
}

static int put_snapshot(struct snapshots *w, const struct snapshot *s, uint64_t offset)
{
	struct out *o = w->d->out;
	int err = 0;

	out_record(o, "snapshot", "snapshot", offset);
	put_interval(o, s);
	put_energies(o, s);
	put_cpus(o, s);
	out_list(o, "rows");
	for (unsigned i = 0; i < s->n_rows && !err; i++) {
		put_row(o, s, i);
		err = out_spill(o);
	}
	out_list_end(o);
	return err ? decode_write_failed(w->d, err) : decode_record_end(w->d, offset);
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
