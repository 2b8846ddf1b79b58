/* SPDX-License-Identifier: Apache-2.0 */
/* Styled text up to a width, one line after the other; a screen or a stream takes it. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "top.h"

void top_put_text(struct top_paint *p, enum top_style style, const char *text)
{
	unsigned columns = top_columns(text);
	char *cut = NULL;

	if (p->width && p->column + columns > p->width) {
		columns = p->width - p->column;
		cut = strndup(text, top_head(text, columns));
		if (!cut)
			return;
		columns = top_columns(cut);
	}
	if (columns)
		p->put(p->arg, p->row != TOP_PLAIN ? p->row : style, cut ? cut : text);
	p->column += columns;
	free(cut);
}

void top_put(struct top_paint *p, enum top_style style, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	top_put_text(p, style, text);
}

void top_pad(struct top_paint *p, unsigned column)
{
	if (column > p->column)
		top_put(p, TOP_PLAIN, "%*s", (int)(column - p->column), "");
}

void top_end(struct top_paint *p)
{
	if (p->row != TOP_PLAIN && p->width)
		top_pad(p, p->width);
	p->end_line(p->arg);
	p->column = 0;
	p->row = TOP_PLAIN;
}
