/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include "err.h"
#include "text.h"

int err_set(struct err *err, int rc, const char *fmt, ...)
{
	char line[sizeof(err->text)];
	va_list ap;

	if (!err)
		return rc;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	err->code = rc;
	text_clean(err->text, sizeof(err->text), line);
	return rc;
}
