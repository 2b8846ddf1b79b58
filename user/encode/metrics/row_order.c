/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include "row_order.h"

struct run {
	uint32_t place; /* 0 = of the machine; else its group + 1 */
	uint32_t len;
};

void row_order_begin(struct row_order *o, uint32_t rows)
{
	buf_reset(&o->samples);
	buf_reset(&o->runs);
	o->noted = 0;
	o->rows = rows;
}

static void note(struct row_order *o, uint32_t place, size_t end)
{
	const struct run r = { place, (uint32_t)(end - o->noted) };

	if (r.len)
		buf_add(&o->runs, &r, sizeof(r));
	o->noted = end;
}

void row_order_row(struct row_order *o, uint32_t row, size_t at)
{
	note(o, 0, at);
	note(o, row / o->rows + 1, o->samples.len);
}

int row_order_write(struct row_order *o, uint32_t n_rows, struct buf *out)
{
	const struct run *run;
	const size_t room = (n_rows / o->rows + 2) * sizeof(size_t);
	const uint8_t *from = o->samples.data;
	size_t *places, at = 0, n;
	uint8_t *to;

	note(o, 0, o->samples.len);
	run = (const struct run *)(const void *)o->runs.data;
	n = o->runs.len / sizeof(*run);
	buf_reset(&o->places);
	places = (size_t *)buf_reserve(&o->places, room);
	to = (uint8_t *)buf_reserve(out, o->samples.len);
	if (!places || !to || o->samples.failed || o->runs.failed)
		return -ENOMEM;
	memset(places, 0, room);
	for (size_t i = 0; i < n; i++)
		places[run[i].place] += run[i].len;
	for (uint32_t r = 0; r < n_rows / o->rows + 2; r++) {
		size_t len = places[r];

		places[r] = at;
		at += len;
	}
	for (size_t i = 0; i < n; i++) {
		memcpy(to + places[run[i].place], from, run[i].len);
		places[run[i].place] += run[i].len;
		from += run[i].len;
	}
	out->len += at;
	return 0;
}

void row_order_free(struct row_order *o)
{
	buf_free(&o->samples);
	buf_free(&o->runs);
	buf_free(&o->places);
}
