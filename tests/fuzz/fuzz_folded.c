// SPDX-License-Identifier: Apache-2.0
/* A file of folded stacks: labels lie within it, hold no byte that is no text, and a file that is taken has a number in
 * each line. */
#include <stdlib.h>
#include <string.h>
#include "ctl/profile/folded.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	const char *text;
	size_t n, lines;
};

static int each(void *ctx, const char *const *label, unsigned n, uint64_t uj)
{
	struct seen *s = ctx;

	s->lines++;
	if (!n || n > FOLDED_LABELS_MAX)
		abort();
	for (unsigned i = 0; i < n; i++)
		if (label[i] < s->text || label[i] + strlen(label[i]) >= s->text + s->n || strchr(label[i], '\n') ||
		    strchr(label[i], 0x1b) || strchr(label[i], ';'))
			abort();
	return uj == 4711 ? 1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct seen s = { text, size, 0 };
	struct err err = { 0 };
	size_t lines = 0;

	if (!text)
		return 0;
	memcpy(text, data, size);
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	if (folded_parse(text, size, "x", each, &s, &err) == 0 && s.lines != lines)
		abort();
	free(text);
	return 0;
}
