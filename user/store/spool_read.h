/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at what a spool holds without taking it: nothing is locked, moved or mended, so a running agent is not
 * disturbed. */
#ifndef JD_SPOOL_READ_H
#define JD_SPOOL_READ_H
#include "spool.h"

/* Calls each with every record that is whole, oldest first, until it returns non-zero, which is returned. path: the spool's
 * directory, or one of its files. 0, -ENODATA: neither (*err is not set), or another errno with err. */
int spool_read(const char *path, int (*each)(void *ctx, int64_t real_ns, const void *data, size_t len), void *ctx,
	       struct err *err);

#endif
