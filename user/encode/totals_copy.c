/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "totals.h"

/* A table's names are one by one its own, a copy's lie together in `names`. */
void totals_free(struct totals *t)
{
	if (!t)
		return;
	for (uint32_t i = TOTAL_FIRST_CGROUP; i < t->n_rows; i++) {
		if (t->keys && t->rows[i].used)
			free((char *)t->rows[i].name);
		names_put(t->rows[i].names);
	}
	free(t->rows);
	free(t->values);
	free(t->hidden);
	free(t->retired);
	free(t->buckets);
	free(t->keys);
	buf_free(&t->names);
	fair_free(&t->fair);
	*t = (struct totals){ 0 };
}

static int reserve(struct totals *t, unsigned rows, size_t width, bool hidden)
{
	unsigned cap = rows + rows / 2 + 16;
	void *p;

	if (rows <= t->cap_rows && (!hidden || t->hidden))
		return 0;
	if (!(p = realloc(t->rows, cap * sizeof(*t->rows))))
		return -ENOMEM;
	t->rows = p;
	if (!(p = realloc(t->values, cap * width * sizeof(uint64_t))))
		return -ENOMEM;
	t->values = p;
	if (hidden && !(p = realloc(t->hidden, cap * width * sizeof(uint64_t))))
		return -ENOMEM;
	if (hidden)
		t->hidden = p;
	if (!t->retired && !(t->retired = calloc(width, sizeof(uint64_t))))
		return -ENOMEM;
	t->cap_rows = cap;
	return 0;
}

/* Names may move while the buffer grows: offsets first. */
static int copy_names(struct totals *dst)
{
	size_t at = 0;

	buf_reset(&dst->names);
	for (unsigned i = 0; i < dst->n_rows; i++)
		buf_add(&dst->names, dst->rows[i].name, strlen(dst->rows[i].name) + 1);
	if (dst->names.failed)
		return -ENOMEM;
	for (unsigned i = 0; i < dst->n_rows; i++) {
		dst->rows[i].name = (char *)dst->names.data + at;
		at += strlen(dst->rows[i].name) + 1;
	}
	return 0;
}

static void copy_rest(struct totals *dst, const struct totals *src)
{
	dst->adds = src->adds;
	dst->start_ns = src->start_ns;
	dst->mono_ns = src->mono_ns;
	dst->real_ns = src->real_ns;
	memcpy(dst->formula, src->formula, sizeof(dst->formula));
	dst->idle_policy = src->idle_policy;
	dst->n_shown = src->n_shown;
	dst->n_ended = src->n_ended;
	memcpy(dst->domains, src->domains, src->schema->n_domains * sizeof(src->domains[0]));
	memcpy(dst->retired, src->retired, totals_width(src) * sizeof(uint64_t));
	dst->busy_ns = src->busy_ns;
	dst->idle_ns = src->idle_ns;
	dst->irq_steal_ns = src->irq_steal_ns;
	dst->offline_ns = src->offline_ns;
	memcpy(dst->msr, src->msr, sizeof(dst->msr));
	dst->losses = src->losses;
}

int totals_copy(struct totals *dst, const struct totals *src)
{
	size_t width;

	dst->schema = src->schema;
	dst->options = src->options;
	width = totals_width(src);
	for (unsigned i = 0; i < dst->n_rows; i++)
		names_put(dst->rows[i].names);
	dst->n_rows = 0;
	if (reserve(dst, src->n_rows, width, src->hidden))
		return -ENOMEM;
	for (unsigned i = 0; i < src->n_rows; i++) {
		if (!src->rows[i].used)
			continue;
		dst->rows[dst->n_rows] = src->rows[i];
		names_get(src->rows[i].names);
		memcpy(&dst->values[dst->n_rows * width], &src->values[i * width], width * sizeof(uint64_t));
		if (src->hidden)
			memcpy(&dst->hidden[dst->n_rows * width], &src->hidden[i * width], width * sizeof(uint64_t));
		dst->n_rows++;
	}
	copy_rest(dst, src);
	return copy_names(dst);
}
