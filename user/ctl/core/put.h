/* SPDX-License-Identifier: Apache-2.0 */
/* Writes results to standard output or to a file. A failed write is remembered: joulectl then ends with a status of
 * its own, whatever its verb returns. */
#ifndef JD_CTL_PUT_H
#define JD_CTL_PUT_H
#include <stddef.h>
#include "base/buf.h"
#include "base/err.h"

/* Writes all n bytes. 0 or negative errno. -EPIPE (the reader has left) does not count as lost output. */
int put_all(int fd, const void *p, size_t n);
/* Writes all of b to a new or emptied file; path NULL = standard output. 0 or negative errno with err. */
int put_file(const char *path, const struct buf *b, struct err *err);
/* May put_file write there? Nothing is changed. To be asked before what takes long. 0, or negative errno with err. */
int put_check(const char *path, struct err *err);
/* Flushes stdout at the end. Returns `status`, or `if_lost` when output was lost; logs an error line where none was
 * logged before. */
int put_end(int status, int if_lost);

#endif
