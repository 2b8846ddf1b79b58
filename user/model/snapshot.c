/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot.h"
#include <errno.h>
#include <stdlib.h>

const char *idle_policy_name(enum idle_policy p)
{
	static const char *const names[] = {
		[IDLE_OWN] = "own",
		[IDLE_BY_TIME] = "by-time",
		[IDLE_BY_SHARE] = "by-share",
	};

	return (unsigned)p < sizeof(names) / sizeof(names[0]) ? names[p] : "unknown";
}

/* Half as much again, so that a machine that grows by one cgroup a second does not copy each time. */
static int grow(void **v, unsigned *cap, unsigned want, size_t size)
{
	size_t n = (size_t)want + want / 2 + 16;
	void *p;

	if (*v && want <= *cap)
		return 0;
	if (n > UINT32_MAX || n > SIZE_MAX / size)
		return -ENOMEM;
	p = realloc(*v, n * size);
	if (!p)
		return -ENOMEM;
	*v = p;
	*cap = (unsigned)n;
	return 0;
}

int snapshot_reserve(struct snapshot *s, unsigned rows, unsigned cells)
{
	void *row_v = s->rows, *cell_v = s->cells, *energy_v = s->energy_uj, *ppm_v = s->uncertainty_ppm;
	unsigned cap_ppm = s->cap_energy; /* energy grows last: it has at least as much as that says */
	int err;

	if (!s->cpus) {
		s->cpus = calloc(s->schema->n_cpus + 1, sizeof(*s->cpus));
		if (!s->cpus)
			return -ENOMEM;
	}
	err = grow(&row_v, &s->cap_rows, rows, sizeof(*s->rows));
	s->rows = row_v;
	if (err)
		return err;
	err = grow(&cell_v, &s->cap_cells, cells, sizeof(*s->cells));
	s->cells = cell_v;
	if (err)
		return err;
	if (rows > UINT32_MAX / (SCHEMA_MAX_DOMAINS * 2))
		return -ENOMEM;
	err = grow(&ppm_v, &cap_ppm, rows * s->schema->n_domains, sizeof(*s->uncertainty_ppm));
	s->uncertainty_ppm = ppm_v;
	if (err)
		return err;
	err = grow(&energy_v, &s->cap_energy, rows * s->schema->n_domains, sizeof(*s->energy_uj));
	s->energy_uj = energy_v;
	return err;
}

int snapshot_reserve_uses(struct snapshot *s, unsigned n)
{
	void *v = s->uses;
	int err = grow(&v, &s->cap_uses, n, sizeof(*s->uses));

	s->uses = v;
	return err;
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
