/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/text.h"
#include "tree.h"

const char *tree_effect_name(enum tree_effect e)
{
	static const char *const names[] = { "note", "wrong", "skipped", "aborts" };

	return names[e];
}

/* Those of one file stand together, so it is among the last ones. */
static struct tree_finding *known(const struct tree_findings *f, const char *trap, const char *file)
{
	for (unsigned i = f->n, looked = 0; i-- > 0 && looked < 64; looked++)
		if (strcmp(f->list[i].trap, trap) == 0 && strcmp(f->list[i].file, file) == 0)
			return &f->list[i];
	return NULL;
}

bool tree_found(const struct tree_findings *f, const char *trap, const char *file)
{
	return known(f, trap, file) != NULL;
}

static struct tree_finding *room(struct tree_findings *f)
{
	if (f->n == TREE_FINDINGS_MAX)
		return NULL;
	if (f->n == f->cap) {
		unsigned cap = f->cap ? 2 * f->cap : 16;
		struct tree_finding *list = realloc(f->list, cap * sizeof(*list));

		if (!list)
			return NULL;
		f->list = list;
		f->cap = cap;
	}
	return &f->list[f->n];
}

void tree_find(struct tree_findings *f, enum tree_effect effect, const char *trap, const char *file, unsigned long line,
	       const char *fmt, ...)
{
	struct tree_finding *one = known(f, trap, file);
	char text[512], clean[1024];
	va_list args;

	if (one) {
		one->more++;
		return;
	}
	one = room(f);
	if (!one) {
		f->left_out++;
		return;
	}
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	*one = (struct tree_finding){ .effect = effect, .trap = trap, .line = line };
	one->text = strdup(text_clean(clean, sizeof(clean), text));
	one->file = strdup(file);
	if (one->text && one->file) {
		f->n++;
		return;
	}
	free(one->text);
	free(one->file);
	f->left_out++;
}

void tree_findings_free(struct tree_findings *f)
{
	for (unsigned i = 0; i < f->n; i++) {
		free(f->list[i].file);
		free(f->list[i].text);
	}
	free(f->list);
	*f = (struct tree_findings){ 0 };
}
