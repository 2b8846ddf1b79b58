/* SPDX-License-Identifier: Apache-2.0 */
/* CSV. The reader accepts quoted cells, CRLF and a byte order mark, as pandas does. Line breaks in quotes are not
 * supported. */
#ifndef JD_BASE_CSV_H
#define JD_BASE_CSV_H
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"

#define CSV_CELLS_MAX 256
#define CSV_LINE_MAX 65536 /* bytes */

struct csv_reader;

struct csv_row {
	unsigned long line; /* from 1 */
	unsigned n;
	char **cell; /* valid until the next call */
	bool whole; /* the line has its end */
	uint64_t end; /* bytes of the file up to the end of the line */
};

/* Reads from the place where fd stands; fd is closed with the reader, or here on -ENOMEM. */
int csv_open(int fd, struct csv_reader **ret);
void csv_close(struct csv_reader *c); /* NULL accepted */
/* 1 = a row, 0 = the end, -EFBIG: a line too long or with too many cells, -EBADMSG: a NUL byte or a quote that
 * does not end, or a read error. Empty lines are passed over. */
int csv_next(struct csv_reader *c, struct csv_row *ret);
unsigned long csv_line(const struct csv_reader *c); /* number of the last line that was read, even if it was refused */

/* Appends text as a cell, in quotes where it has a comma or a quote (RFC 4180). */
void csv_add_cell(struct buf *b, const char *text);

#endif
