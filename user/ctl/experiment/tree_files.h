/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers to read files of an experiment tree, and words and times in them. */
#ifndef JD_CTL_TREE_FILES_H
#define JD_CTL_TREE_FILES_H
#include <stdbool.h>
#include <stdint.h>
#include "base/format/csv.h"

/* Opens `name` in the directory `dir`. -ENOENT, -EINVAL: it is no plain file, or another negative errno. */
int tree_file_open(int dir, const char *name);
int tree_csv_open(int dir, const char *name, struct csv_reader **ret);

/* Is the cell one of pandas' words for a missing value? */
bool tree_is_missing(const char *cell);
/* Parses "2026-01-31 12:00:00[.digits]", also with T for the blank. 0 or -EINVAL. *ret_zoned: it ends with Z or an
 * offset. */
int tree_parse_time(const char *s, int64_t *ret_ns, unsigned *ret_digits, bool *ret_zoned);

#endif
