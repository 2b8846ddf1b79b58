/* SPDX-License-Identifier: Apache-2.0 */
/* What the measuring thread hands over: memory is kept, so that a steady state allocates nothing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "history_internal.h"

/* A domain that could not be read must not look like one that used nothing. */
#define TELLING (QUALITY_STALE | QUALITY_PARTIAL | QUALITY_LOST)

void tick_free(struct tick *t)
{
	free(t->rows);
	free(t->energy_uj);
	buf_free(&t->paths);
	buf_free(&t->totals);
	*t = (struct tick){ 0 };
}

static int reserve(struct tick *t, unsigned rows, unsigned n_domains)
{
	unsigned cap = rows + rows / 4 + 16;
	void *p;

	if (rows <= t->cap && n_domains == t->n_domains)
		return 0;
	if (!(p = realloc(t->rows, cap * sizeof(*t->rows))))
		return -ENOMEM;
	t->rows = p;
	if (!(p = realloc(t->energy_uj, (size_t)cap * (n_domains ? n_domains : 1) * sizeof(uint64_t))))
		return -ENOMEM;
	t->energy_uj = p;
	t->cap = cap;
	t->n_domains = n_domains;
	return 0;
}

/* Of a row's energy, 0 when it has used nothing and that is sure. */
static bool worth(const struct snapshot *s, unsigned row, unsigned *ret_quality)
{
	const struct snap_row *r = &s->rows[row];
	unsigned quality = 0;
	bool any = false;

	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		if (*snapshot_energy(s, row, d)) {
			any = true;
			quality |= snapshot_energy_quality(s, row, d);
		} else if (r->time_ns) {
			quality |= s->domains[d].quality & TELLING;
		}
	}
	*ret_quality = quality |= any ? 0 : r->quality;
	return any || r->ended || (r->time_ns && quality & TELLING);
}

static void add_to(struct tick *t, unsigned at, const struct snapshot *s, unsigned row)
{
	for (unsigned d = 0; d < t->n_domains; d++)
		t->energy_uj[(size_t)at * t->n_domains + d] += *snapshot_energy(s, row, d);
}

static void add_row(struct tick *t, const struct snapshot *s, unsigned row)
{
	const struct snap_row *r = &s->rows[row];
	unsigned quality;

	if (!worth(s, row, &quality))
		return;
	if (r->kind == ROW_CGROUP && (!r->selected || r->path[0] != '/')) {
		t->rows[ROW_OTHER].quality |= quality;
		add_to(t, ROW_OTHER, s, row);
		return;
	}
	t->rows[t->n] = (struct tick_row){
		.kind = ROW_CGROUP, .quality = quality, .id = r->id, .ended = r->ended, .path = (uint32_t)t->paths.len
	};
	buf_add(&t->paths, r->path, strlen(r->path) + 1);
	memset(&t->energy_uj[(size_t)t->n * t->n_domains], 0, t->n_domains * sizeof(uint64_t));
	add_to(t, t->n++, s, row);
}

/* Rows 0 to 3 are the special ones, 4 and 5 what nobody is charged with: always there, so that a time in
 * which nothing ran differs from one of which nothing is known. */
static void add_fixed(struct tick *t, const struct snapshot *s)
{
	unsigned idle = 0, rest = 0;

	for (unsigned i = 0; i < SERIES_RESIDUAL + 1; i++)
		t->rows[i] = (struct tick_row){ .kind = (enum row_kind)i };
	memset(t->energy_uj, 0, (SERIES_RESIDUAL + 1) * (size_t)t->n_domains * sizeof(uint64_t));
	for (unsigned i = 0; i < READING_SPECIAL_ROWS && i < s->n_rows; i++) {
		worth(s, i, &t->rows[i].quality);
		add_to(t, i, s, i);
	}
	for (unsigned d = 0; d < t->n_domains; d++) {
		const struct snap_domain *from = &s->domains[d];

		t->energy_uj[SERIES_IDLE_POWER * t->n_domains + d] = from->idle_uj;
		t->energy_uj[SERIES_RESIDUAL * t->n_domains + d] = from->residual_uj;
		idle |= from->quality | (from->idle_uj ? from->idle_quality : 0);
		rest |= from->quality;
	}
	t->rows[SERIES_IDLE_POWER].quality = idle;
	t->rows[SERIES_RESIDUAL].quality = rest;
	t->n = SERIES_RESIDUAL + 1;
}

int tick_fill(struct tick *t, const struct snapshot *s)
{
	if (reserve(t, s->n_rows + SERIES_RESIDUAL + 1, s->schema->n_domains) != 0)
		return -ENOMEM;
	t->end_real_ns = s->end_real_ns;
	t->interval_ns = s->end_ns - s->start_ns;
	buf_reset(&t->paths);
	add_fixed(t, s);
	for (unsigned i = READING_SPECIAL_ROWS; i < s->n_rows; i++)
		add_row(t, s, i);
	return t->paths.failed ? -ENOMEM : 0;
}
