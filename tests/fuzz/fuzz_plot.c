/* SPDX-License-Identifier: Apache-2.0 */
/* Any answer of /v1/history: refused with one line, or drawn as a picture with nothing that runs in it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "ctl/plot/plot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void draw(struct plot *p)
{
	struct buf b = { 0 };

	plot_draw(p, 360, &b);
	buf_add_char(&b, '\0');
	if (!b.failed && (strstr((char *)b.data, "<script") || !strstr((char *)b.data, "</svg>\n")))
		abort();
	buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plot *p = calloc(1, sizeof(*p));
	struct err err = { 0 };

	if (!p)
		return 0;
	plot_init(p);
	p->top = 2;
	if (plot_read_history(p, (const char *)data, size, &err) == 0 && plot_finish(p, &err) == 0)
		draw(p);
	else if (!err.text[0])
		abort();
	plot_free(p);
	free(p);
	return 0;
}
