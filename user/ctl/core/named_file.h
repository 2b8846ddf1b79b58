/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file that a user named. */
#ifndef JD_CTL_NAMED_FILE_H
#define JD_CTL_NAMED_FILE_H
#include <stddef.h>
#include "base/buf.h"
#include "base/err.h"

/* Appends a whole regular file of at most `most` bytes. remedy: what to name instead. 0 or negative errno with err. */
int named_file_read(const char *path, size_t most, const char *remedy, struct buf *out, struct err *err);

#endif
