/* SPDX-License-Identifier: Apache-2.0 */
/* A recording (docs/formats/snapshot.md) as columns: one for each of its snapshots. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "../model/recording.h"
#include "plot.h"

static double sum_row(const struct snapshot *s, unsigned row, const bool *shown, unsigned *ret_quality)
{
	double uj = 0;

	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		uint64_t v = shown[d] ? *snapshot_energy(s, row, d) : 0;

		uj += (double)v;
		if (v)
			*ret_quality |= snapshot_energy_quality(s, row, d);
	}
	if (uj == 0)
		*ret_quality |= s->rows[row].quality;
	return uj;
}

static void add_rows(struct plot *p, const struct snapshot *s, const bool *shown)
{
	for (unsigned i = 0; i < s->n_rows; i++) {
		const struct snap_row *r = &s->rows[i];
		unsigned quality = 0;
		double uj = sum_row(s, i, shown, &quality);
		enum plot_kind kind = r->kind == ROW_IDLE                                             ? PLOT_IDLE :
				      r->kind == ROW_OTHER || (r->kind == ROW_CGROUP && !r->selected) ? PLOT_REST :
													PLOT_ROW;

		if (uj > 0)
			plot_add(p,
				 kind == PLOT_IDLE ? "idle" :
				 kind == PLOT_REST ? "other" :
						     r->path,
				 kind, uj, quality);
	}
	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		const struct snap_domain *dom = &s->domains[d];

		if (shown[d] && dom->idle_uj)
			plot_add(p, "idle", PLOT_IDLE, (double)dom->idle_uj, dom->quality | dom->idle_quality);
		if (shown[d] && dom->residual_uj)
			plot_add(p, "residual", PLOT_RESIDUAL, (double)dom->residual_uj, dom->quality);
	}
}

static void add_snapshot(struct plot *p, const struct snapshot *s, const bool *shown)
{
	int64_t length = (int64_t)(s->end_ns - s->start_ns);
	uint64_t covered = 0;

	if (!plot_begin_column(p, s->end_real_ns - length, s->end_real_ns))
		return;
	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		const struct snap_domain *dom = &s->domains[d];

		if (shown[d] && !(dom->quality & QUALITY_LOST) && dom->end_ns > dom->start_ns + covered)
			covered = dom->end_ns - dom->start_ns;
	}
	if (!covered) {
		plot_lost(p);
		return;
	}
	plot_covered(p, covered); /* counters are read at moments of their own */
	add_rows(p, s, shown);
}

static int choose(struct plot *p, const struct schema *c, bool *shown, struct err *err)
{
	const char *names[SCHEMA_MAX_DOMAINS];

	for (unsigned i = 0; i < c->n_domains; i++)
		names[i] = c->domains[i].name;
	snprintf(p->sensor, sizeof(p->sensor), "%s", c->sensor);
	return plot_choose_domains(p, names, c->n_domains, shown, err);
}

int plot_read_recording(struct plot *p, const char *path, struct err *err)
{
	bool shown[SCHEMA_MAX_DOMAINS] = { 0 };
	struct recording *r;
	struct snapshot *s;
	int rc = recording_open(path, &r, err);

	if (rc)
		return rc;
	rc = choose(p, recording_schema(r), shown, err);
	while (!rc && !p->failed && (rc = recording_next(r, &s, err)) > 0) {
		rc = 0;
		if (!s->formula[0] || strcmp(s->formula, "none") == 0)
			rc = err_set(err, -ENODATA,
				     "%.128s: its energy is not split over cgroups; jouled --replay %.128s "
				     "-o snapshot=file://SPLIT, then plot SPLIT",
				     path, path);
		else
			add_snapshot(p, s, shown);
	}
	recording_close(r);
	return rc;
}
