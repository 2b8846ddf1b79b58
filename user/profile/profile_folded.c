/* SPDX-License-Identifier: Apache-2.0 */
#include "folded_lines.h"
#include "profile_data.h"

static int fold_stack(const struct profile_report *r, struct folded_lines *f, uint32_t stack)
{
	const char *labels[PROFILE_LABELS_MAX];
	unsigned first;

	folded_begin(f);
	for (unsigned k = 0, n = profile_labels(r, stack, labels, &first); k < n; k++)
		folded_label(f, labels[k], k < 2);
	return folded_end(f, profile_stack_uj(r, stack));
}

int profile_folded(const struct profile_report *r, struct buf *out)
{
	struct folded_lines f = { 0 };
	int rc = 0;

	for (uint32_t i = 0; i < r->s->stacks.n && !rc; i++)
		if (profile_wants_stack(r->s, i))
			rc = fold_stack(r, &f, i);
	for (uint32_t i = 0; i < r->s->shares.n_rows && !r->s->pid && !rc; i++) {
		const struct share_row *row = &r->s->shares.rows[i];

		if (!profile_none_uj(r, row) || !profile_wants_row(r->s, row))
			continue;
		folded_begin(&f);
		folded_label(&f, row->name, true);
		folded_label(&f, PROFILE_NO_SAMPLE, false);
		rc = folded_end(&f, profile_none_uj(r, row));
	}
	return folded_write(&f, rc, out);
}
