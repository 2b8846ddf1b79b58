/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/text.h"
#include "selection.h"

static int reserve(struct selection *sel, const struct snapshot *s)
{
	unsigned keys = 0, rows = s->n_rows;
	void *p;

	for (unsigned i = 0; i < s->n_rows; i++)
		if (s->rows[i].key >= keys)
			keys = s->rows[i].key + 1;
	if (keys > sel->cap_memo) {
		keys += keys / 2;
		p = realloc(sel->memo, keys * sizeof(*sel->memo));
		if (!p)
			return -ENOMEM;
		sel->memo = p;
		memset(sel->memo + sel->cap_memo, 0, (keys - sel->cap_memo) * sizeof(*sel->memo));
		sel->cap_memo = keys;
	}
	if (rows > sel->cap_rows) {
		rows += rows / 2;
		p = realloc(sel->was, rows * sizeof(*sel->was));
		if (!p)
			return -ENOMEM;
		sel->was = p;
		sel->cap_rows = rows;
	}
	return 0;
}

static bool any_match(const struct snap_row *row, char *const *globs, unsigned n)
{
	char special[32];
	const char *name = row->path;

	if (row->kind != ROW_CGROUP) {
		snprintf(special, sizeof(special), "/%s", row_kind_name(row->kind));
		name = special;
	}
	for (unsigned i = 0; i < n; i++)
		if (text_glob(globs[i], name))
			return true;
	return false;
}

static bool matches(struct selection *sel, const struct snap_row *row, char *const *globs, unsigned n)
{
	struct selection_row *m = &sel->memo[row->key];

	if (!m->known || m->generation != row->generation || m->renamed != row->renamed)
		*m = (struct selection_row){ row->generation, row->renamed, true, any_match(row, globs, n) };
	return m->match;
}

int selection_put(struct selection *sel, struct snapshot *s, char *const *globs, unsigned n)
{
	int err = reserve(sel, s);

	if (err)
		return err;
	for (unsigned i = 0; i < s->n_rows; i++) {
		struct snap_row *row = &s->rows[i];

		sel->was[i] = row->selected;
		if (row->selected && row->kind != ROW_IDLE)
			row->selected = matches(sel, row, globs, n);
	}
	return 0;
}

void selection_take_off(const struct selection *sel, struct snapshot *s)
{
	for (unsigned i = 0; i < s->n_rows; i++)
		s->rows[i].selected = sel->was[i];
}

void selection_free(struct selection *sel)
{
	free(sel->memo);
	free(sel->was);
	*sel = (struct selection){ 0 };
}
