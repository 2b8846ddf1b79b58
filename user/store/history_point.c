/* SPDX-License-Identifier: Apache-2.0 */
/* A point in memory and as the bytes of a row (docs/formats/history.md). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "history_internal.h"

void point_reset(struct point *p, int64_t domains, unsigned n_domains)
{
	p->end_ns = p->start_ns = 0;
	p->interval_ns = 0;
	p->domains = domains;
	p->n_domains = n_domains;
	p->n = 0;
}

void point_free(struct point *p)
{
	free(p->rows);
	*p = (struct point){ 0 };
}

/* Rows that are one series become one, so that a second of a hundred readings needs no more room. */
static int make_room(struct point *p)
{
	unsigned cap = p->cap ? p->cap * 2 : 64;
	struct point_row *rows;

	point_sort(p);
	if (p->n < p->cap - p->cap / 4)
		return 0;
	rows = realloc(p->rows, cap * sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	p->rows = rows;
	p->cap = cap;
	return 0;
}

int point_add(struct point *p, uint64_t series, unsigned quality, const uint64_t *energy_uj)
{
	struct point_row *r;

	if (p->n == p->cap && make_room(p) != 0)
		return -ENOMEM;
	r = &p->rows[p->n++];
	r->series = series;
	r->quality = quality;
	memcpy(r->energy_uj, energy_uj, p->n_domains * sizeof(*energy_uj));
	return 0;
}

static int by_series(const void *a, const void *b)
{
	uint64_t x = ((const struct point_row *)a)->series, y = ((const struct point_row *)b)->series;

	return x < y ? -1 : x > y;
}

void point_sort(struct point *p)
{
	unsigned n = 0;

	if (p->n)
		qsort(p->rows, p->n, sizeof(*p->rows), by_series);
	for (unsigned i = 0; i < p->n; i++) {
		struct point_row *to = &p->rows[n];

		if (!n || to[-1].series != p->rows[i].series) {
			p->rows[n++] = p->rows[i];
			continue;
		}
		to[-1].quality |= p->rows[i].quality;
		for (unsigned d = 0; d < p->n_domains; d++)
			to[-1].energy_uj[d] += p->rows[i].energy_uj[d];
	}
	p->n = n;
}

void point_write(const struct point *p, struct buf *out)
{
	uint64_t last = 0;

	varint_add(out, p->n);
	for (unsigned i = 0; i < p->n; i++) {
		const struct point_row *r = &p->rows[i];

		varint_add(out, r->series - last);
		varint_add(out, r->quality);
		for (unsigned d = 0; d < p->n_domains; d++)
			varint_add(out, r->energy_uj[d]);
		last = r->series;
	}
}

int point_read(const void *data, size_t size, unsigned n_domains, int (*take)(void *arg, const struct point_row *r),
	       void *arg)
{
	struct varint_reader in = { .at = data, .end = data ? (const uint8_t *)data + size : NULL };
	uint64_t n = varint_take(&in);
	struct point_row r = { 0 };
	int rc = 0;

	if (in.bad || n > HISTORY_ROWS_MAX || n_domains > SCHEMA_MAX_DOMAINS)
		return -EBADMSG;
	for (uint64_t i = 0; i < n && !rc; i++) {
		r.series += varint_take(&in);
		r.quality = (unsigned)varint_take(&in);
		for (unsigned d = 0; d < n_domains; d++)
			r.energy_uj[d] = varint_take(&in);
		rc = in.bad ? -EBADMSG : take(arg, &r);
	}
	return rc ? rc : in.at == in.end ? 0 : -EBADMSG;
}
