/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
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

const char *err_write_remedy(int rc)
{
	switch (rc) {
	case 0: /* the errno of a stream is gone; a full disk is by far the most likely */
	case -ENOSPC:
	case -EDQUOT:
		return "make room there, or write elsewhere";
	case -EFBIG:
		return "raise the limit of the size of files (ulimit -f), or write elsewhere";
	case -EROFS:
		return "mount it writable, or write elsewhere";
	case -EACCES:
	case -EPERM:
		return "give write permission there, or write elsewhere";
	case -ENOENT:
	case -ENOTDIR:
		return "create the directory first";
	case -EISDIR:
		return "name a file in it";
	case -EPIPE:
		return "mend its reader";
	case -EMFILE:
	case -ENFILE:
		return "raise the limit of open files";
	case -ENOMEM:
		return "free some memory";
	case -EIO:
		return "look for that disk in the kernel's log, or write elsewhere";
	default:
		return "write elsewhere";
	}
}

int err_write(struct err *err, int rc, const char *subject, const char *what)
{
	return err_set(err, rc, "%.300s: %s%s%s; %s", subject, rc ? strerrordesc_np(-rc) : "a write failed",
		       what ? ": " : "", what ? what : "", err_write_remedy(rc));
}
