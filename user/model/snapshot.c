/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/array.h"
#include "snapshot.h"

const char *idle_policy_name(enum idle_policy p)
{
	static const char *const names[] = {
		[IDLE_OWN] = "own",
		[IDLE_BY_TIME] = "by-time",
		[IDLE_BY_SHARE] = "by-share",
	};

	return (unsigned)p < sizeof(names) / sizeof(names[0]) ? names[p] : "unknown";
}

int snapshot_reserve(struct snapshot *s, unsigned rows, unsigned cells)
{
	const size_t energies = (size_t)rows * s->schema->n_domains + 1; /* one more, so that no pointer is NULL */
	const unsigned had = s->cap_energy;
	unsigned cap_ppm = had; /* energy grows last, so it has at least this capacity */

	if (!s->cpus) {
		s->cpus = calloc(s->schema->n_cpus + 1, sizeof(*s->cpus));
		if (!s->cpus)
			return -ENOMEM;
	}
	if (rows > UINT32_MAX / (SCHEMA_MAX_DOMAINS * 2))
		return -ENOMEM;
	if (ARRAY_ROOM(s->rows, s->cap_rows, (size_t)rows + 1) ||
	    ARRAY_ROOM(s->cells, s->cap_cells, (size_t)cells + 1) ||
	    ARRAY_ROOM(s->uncertainty_ppm, cap_ppm, energies) || ARRAY_ROOM(s->energy_uj, s->cap_energy, energies))
		return -ENOMEM;
	memset(s->uncertainty_ppm + had, 0xff, (cap_ppm - had) * sizeof(*s->uncertainty_ppm)); /* until it is told */
	return 0;
}

int snapshot_reserve_uses(struct snapshot *s, unsigned n)
{
	return ARRAY_ROOM(s->uses, s->cap_uses, n);
}

unsigned snapshot_energy_quality(const struct snapshot *s, unsigned row, unsigned domain)
{
	const struct snap_domain *d = &s->domains[domain];
	unsigned quality = s->rows[row].quality;

	if (quality & QUALITY_LOST && *snapshot_energy(s, row, domain)) {
		quality &= ~(unsigned)QUALITY_LOST;
		if (!(d->share_quality & QUALITY_ESTIMATED))
			quality |= QUALITY_PARTIAL;
	}
	return quality | d->quality | d->share_quality;
}

void snapshot_free(struct snapshot *s)
{
	if (!s)
		return;
	free(s->rows);
	free(s->cells);
	free(s->cpus);
	free(s->energy_uj);
	free(s->uncertainty_ppm);
	free(s->uses);
	s->rows = NULL;
	s->cells = NULL;
	s->cpus = NULL;
	s->energy_uj = NULL;
	s->uncertainty_ppm = NULL;
	s->uses = NULL;
	s->n_rows = s->n_cells = s->n_uses = s->cap_rows = s->cap_cells = s->cap_energy = s->cap_uses = 0;
}

uint32_t snapshot_joined_ppm(uint64_t a_uj, uint32_t a_ppm, uint64_t b_uj, uint32_t b_ppm)
{
	if (!a_uj || !b_uj)
		return b_uj || !a_uj ? b_ppm : a_ppm;
	if (a_ppm == SNAPSHOT_UNKNOWN || b_ppm == SNAPSHOT_UNKNOWN)
		return SNAPSHOT_UNKNOWN;
	return (uint32_t)((a_ppm * (double)a_uj + b_ppm * (double)b_uj) / ((double)a_uj + (double)b_uj));
}

unsigned snapshot_row_energy_quality(const struct snapshot *s, unsigned row)
{
	unsigned quality = s->schema->n_domains ? 0 : s->rows[row].quality;

	for (unsigned d = 0; d < s->schema->n_domains; d++)
		quality |= snapshot_energy_quality(s, row, d);
	return quality;
}

const char *snapshot_trial_name(const struct schema *s, unsigned trial, char *buf, unsigned size)
{
	static const char *const bends[SNAP_BENDS] = { "load", "clock", "sibling", "core-type", "traffic", "queue" };
	static const char *const idle[] = { "heat", "awake", "time" };

	if (trial < SNAP_TRY_EVENT)
		snprintf(buf, size, "%s", idle[trial]);
	else if (trial < SNAP_TRY_BEND)
		snprintf(buf, size, "%s",
			 trial - SNAP_TRY_EVENT < s->core.n ? s->core.ev[trial - SNAP_TRY_EVENT].name : "");
	else if (trial == SNAP_TRY_OWN)
		snprintf(buf, size, "cgroups");
	else if (trial == SNAP_TRY_WAIT)
		snprintf(buf, size, "wait");
	else if (trial < SNAP_TRY_ALL)
		snprintf(buf, size, "%s%s", bends[(trial - SNAP_TRY_BEND) % SNAP_BENDS],
			 trial < SNAP_TRY_FREE ? "" : " of each");
	else
		*buf = '\0';
	return buf;
}
