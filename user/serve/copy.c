/* SPDX-License-Identifier: Apache-2.0 */
#include "copy.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "model/naming.h"

static void put_names(struct snapshot *s)
{
	for (unsigned i = 0; i < s->n_rows; i++)
		names_put(s->rows[i].names);
	s->n_rows = 0;
}

static int copy_paths(struct snapshot_copy *dst, const struct snapshot *src)
{
	size_t at = 0;

	buf_reset(&dst->paths);
	for (unsigned i = 0; i < src->n_rows; i++)
		buf_add(&dst->paths, src->rows[i].path, strlen(src->rows[i].path) + 1);
	if (dst->paths.failed)
		return -ENOMEM;
	for (unsigned i = 0; i < src->n_rows; i++) {
		dst->s.rows[i].path = (char *)dst->paths.data + at;
		at += strlen(dst->s.rows[i].path) + 1;
	}
	return 0;
}

static int copy_khz(struct snapshot_copy *dst, const struct snapshot *src)
{
	size_t size = src->schema->n_cpus * sizeof(*dst->khz);

	dst->s.khz = NULL;
	if (!src->khz)
		return 0;
	if (!dst->khz && !(dst->khz = malloc(size)))
		return -ENOMEM;
	memcpy(dst->khz, src->khz, size);
	dst->s.khz = dst->khz;
	return 0;
}

int snapshot_copy(struct snapshot_copy *dst, const struct snapshot *src)
{
	struct snapshot own;
	size_t energy = (size_t)src->n_rows * src->schema->n_domains;

	put_names(&dst->s);
	own = dst->s;
	own.schema = src->schema;
	if (snapshot_reserve(&own, src->n_rows, src->n_cells) ||
	    (src->n_uses && snapshot_reserve_uses(&own, src->n_uses))) {
		dst->s = own;
		dst->s.n_rows = dst->s.n_cells = dst->s.n_uses = 0;
		return -ENOMEM;
	}
	dst->s = *src;
	dst->s.rows = own.rows;
	dst->s.cells = own.cells;
	dst->s.cpus = own.cpus;
	dst->s.energy_uj = own.energy_uj;
	dst->s.uncertainty_ppm = own.uncertainty_ppm;
	dst->s.uses = own.uses;
	dst->s.cap_uses = own.cap_uses;
	dst->s.cap_rows = own.cap_rows;
	dst->s.cap_cells = own.cap_cells;
	dst->s.cap_energy = own.cap_energy;
	memcpy(own.rows, src->rows, src->n_rows * sizeof(*own.rows));
	for (unsigned i = 0; i < src->n_rows; i++)
		names_get(own.rows[i].names);
	memcpy(own.cells, src->cells, src->n_cells * sizeof(*own.cells));
	memcpy(own.cpus, src->cpus, src->schema->n_cpus * sizeof(*own.cpus));
	memcpy(own.energy_uj, src->energy_uj, energy * sizeof(*own.energy_uj));
	memcpy(own.uncertainty_ppm, src->uncertainty_ppm, energy * sizeof(*own.uncertainty_ppm));
	if (src->n_uses)
		memcpy(own.uses, src->uses, src->n_uses * sizeof(*own.uses));
	return copy_paths(dst, src) ? -ENOMEM : copy_khz(dst, src);
}

void snapshot_copy_free(struct snapshot_copy *c)
{
	if (!c)
		return;
	put_names(&c->s);
	snapshot_free(&c->s);
	buf_free(&c->paths);
	free(c->khz);
	c->khz = NULL;
}
