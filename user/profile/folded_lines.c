/* SPDX-License-Identifier: Apache-2.0 */
#include "folded_lines.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/text.h"

void folded_begin(struct folded_lines *f)
{
	f->begin = f->text.len;
}

/* ';' parts labels, and the last space parts the value. */
void folded_label(struct folded_lines *f, const char *label, bool raw)
{
	char shown[4 * 256 + 1], cut[257];
	const size_t at = f->text.len + (f->text.len > f->begin);

	if (f->text.len > f->begin)
		buf_add_char(&f->text, ';');
	if (raw) {
		snprintf(cut, sizeof(cut), "%.256s", label);
		label = text_escape(shown, sizeof(shown), cut);
	}
	buf_add_str(&f->text, label);
	for (size_t i = at; i < f->text.len; i++)
		f->text.data[i] = f->text.data[i] == ';' ? ':' : f->text.data[i];
}

int folded_end(struct folded_lines *f, uint64_t uj)
{
	const char *line;
	uint64_t key;

	buf_add_char(&f->text, '\0');
	if (f->text.failed || ARRAY_ROOM(f->v, f->cap, f->n + 1) || hash_reserve(&f->by_text, f->n + 1))
		return -ENOMEM;
	line = (const char *)f->text.data + f->begin;
	key = hash_text(line);
	for (struct hash_walk w = hash_walk(&f->by_text, key); hash_step(&w);)
		if (strcmp((const char *)f->text.data + f->v[w.at].at, line) == 0) {
			f->v[w.at].uj += uj;
			f->text.len = f->begin;
			return 0;
		}
	hash_add(&f->by_text, key, f->n);
	f->v[f->n++] = (struct folded_line){ f->begin, uj };
	return 0;
}

int folded_write(struct folded_lines *f, int rc, struct buf *out)
{
	for (uint32_t i = 0; i < f->n && !rc; i++)
		buf_printf(out, "%s %llu\n", (const char *)f->text.data + f->v[i].at, (unsigned long long)f->v[i].uj);
	buf_free(&f->text);
	free(f->v);
	hash_free(&f->by_text);
	*f = (struct folded_lines){ 0 };
	return rc ? rc : out->failed ? -ENOMEM : 0;
}
