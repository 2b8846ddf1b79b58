/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the directory in which a set of CSV files, one per group, can be continued: the configured one, else
 * DIR/2, DIR/3 and so on. A file holds rows of one header, ordered by time, because readers support neither a
 * second header nor a step back. */
#ifndef JD_CSV_FILES_H
#define JD_CSV_FILES_H
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"

#define CSV_WHY_MAX 160

#define CSV_SET_FILES 3

struct csv_set {
	const char *dir;
	const char *const *names; /* of the n files, without .csv */
	const struct buf *headers[CSV_SET_FILES];
	unsigned n;
	int64_t first_ms; /* time of the first row to come */
	char why[CSV_WHY_MAX]; /* why the set before the one found cannot be continued; "" = the first set was found */
};

/* Returns the number of the first set that can be used; 1 = the directory itself. All files of the set are new,
 * or have these headers, whole rows, and times before first_ms. -EEXIST when no set can be used. */
int csv_set_find(struct csv_set *set, struct err *err);
/* The suffix of the directory's name: "/2" and so on; "" for 1. */
void csv_set_suffix(char dst[16], int number);

#endif
