/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/text.h"
#include "profile_data.h"

/* A label of a folded stack: ';' parts labels, and the last space parts the value. */
static void put_label(struct buf *out, const char *label)
{
	char shown[4 * 256 + 1], cut[257];

	snprintf(cut, sizeof(cut), "%.256s", label);
	text_escape(shown, sizeof(shown), cut);
	for (char *at = shown; *at; at++)
		*at = *at == ';' ? ':' : *at;
	buf_add_str(out, shown);
}

struct folded {
	struct buf text; /* lines, each ended by a NUL */
	struct line {
		size_t at;
		uint64_t uj;
	} * v;
	uint32_t n, cap;
	struct hash by_text;
};

/* Adds energy to the line that f->text ends with since `at`: equal lines are one. */
static int fold(struct folded *f, size_t at, uint64_t uj)
{
	const char *line;
	uint64_t key;

	buf_add_char(&f->text, '\0');
	if (f->text.failed || ARRAY_ROOM(f->v, f->cap, f->n + 1) || hash_reserve(&f->by_text, f->n + 1))
		return -ENOMEM;
	line = (const char *)f->text.data + at;
	key = hash_text(line);
	for (struct hash_walk w = hash_walk(&f->by_text, key); hash_step(&w);)
		if (strcmp((const char *)f->text.data + f->v[w.at].at, line) == 0) {
			f->v[w.at].uj += uj;
			f->text.len = at;
			return 0;
		}
	hash_add(&f->by_text, key, f->n);
	f->v[f->n++] = (struct line){ at, uj };
	return 0;
}

static int fold_stack(const struct profile_report *r, struct folded *f, uint32_t stack)
{
	const char *labels[PROFILE_LABELS_MAX];
	const size_t at = f->text.len;
	unsigned first;

	for (unsigned k = 0, n = profile_labels(r, stack, labels, &first); k < n; k++) {
		if (k)
			buf_add_char(&f->text, ';');
		if (k < 2)
			put_label(&f->text, labels[k]);
		else
			buf_add_str(&f->text, labels[k]);
	}
	return fold(f, at, profile_stack_uj(r, stack));
}

int profile_folded(const struct profile_report *r, struct buf *out)
{
	struct folded f = { 0 };
	int rc = 0;

	for (uint32_t i = 0; i < r->s->stacks.n && !rc; i++)
		if (profile_wants_stack(r->s, i))
			rc = fold_stack(r, &f, i);
	for (uint32_t i = 0; i < r->s->shares.n_rows && !r->s->pid && !rc; i++) {
		const struct share_row *row = &r->s->shares.rows[i];
		const size_t at = f.text.len;

		if (!profile_none_uj(r, row) || !profile_wants_row(r->s, row))
			continue;
		put_label(&f.text, row->name);
		buf_add_str(&f.text, ";" PROFILE_NO_SAMPLE);
		rc = fold(&f, at, profile_none_uj(r, row));
	}
	for (uint32_t i = 0; i < f.n; i++)
		buf_printf(out, "%s %llu\n", (const char *)f.text.data + f.v[i].at, (unsigned long long)f.v[i].uj);
	buf_free(&f.text);
	free(f.v);
	hash_free(&f.by_text);
	return rc ? rc : out->failed ? -ENOMEM : 0;
}
