/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include "err.h"
#include "text.h"

int err_set(struct err *e, int code, const char *fmt, ...)
{
	char line[sizeof(e->text)];
	va_list ap;

	if (!e)
		return code;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	e->code = code;
	text_clean(e->text, sizeof(e->text), line);
	return code;
}
