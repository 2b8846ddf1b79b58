/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a CSV file, split into cells: what pandas takes (quoted cells, CRLF, a byte order mark). Not
 * supported: line breaks in quotes. At most TREE_COLUMNS_MAX cells and 64 KiB a line. */
#ifndef JD_CTL_TREE_CSV_H
#define JD_CTL_TREE_CSV_H
#include <stdbool.h>
#include <stdint.h>

struct tree_csv;

struct tree_row {
	unsigned long line; /* from 1 */
	unsigned n;
	char **cell; /* valid until the next call */
	bool whole; /* the line has its end */
};

/* name in the directory dir; plain files only. 0, -ENOENT, -EINVAL: no plain file, or another negative errno. */
int tree_file_open(int dir, const char *name);
int tree_csv_open(int dir, const char *name, struct tree_csv **ret);
void tree_csv_close(struct tree_csv *c);
/* 1 = a row, 0 = the end, -EFBIG: a line too long or with too many cells, -EBADMSG: a NUL byte or a quote that
 * does not end, or a read error. Empty lines are passed over. */
int tree_csv_next(struct tree_csv *c, struct tree_row *ret);
unsigned long tree_csv_line(const struct tree_csv *c);

/* pandas' words for a value that is missing. */
bool tree_is_missing(const char *cell);
/* "2026-01-31 12:00:00[.digits]", also with T. 0; -EINVAL; *ret_zoned: it ends with Z or an offset. */
int tree_parse_time(const char *s, int64_t *ret_ns, unsigned *ret_digits, bool *ret_zoned);

#endif
