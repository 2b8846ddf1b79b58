/* SPDX-License-Identifier: Apache-2.0 */
#include "csv_files.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SETS_MAX 9999
#define TAIL_BYTES 4096 /* a row has at most 1023 */

static int refuse(char why[CSV_WHY_MAX], const char *name, const char *what)
{
	snprintf(why, CSV_WHY_MAX, "%s.csv %s", name, what);
	return -EEXIST;
}

/* Reads the time of the last row of a file that ends in a whole row. */
static int last_time(int fd, off_t size, int64_t *ret_ms)
{
	char tail[TAIL_BYTES + 1], *row, *end;
	off_t from = size > TAIL_BYTES ? size - TAIL_BYTES : 0;
	ssize_t n = pread(fd, tail, TAIL_BYTES, from);

	if (n < 2 || n != size - from || tail[n - 1] != '\n')
		return -EINVAL;
	tail[n - 1] = '\0';
	row = strrchr(tail, '\n');
	row = row ? row + 1 : tail;
	*ret_ms = strtoll(row, &end, 10);
	return end > row && *end == ',' ? 0 : -EINVAL;
}

static int look_inside(int fd, const char *name, const struct buf *header, int64_t first_ms, char why[CSV_WHY_MAX])
{
	struct stat st;
	char *head;
	bool same;
	int64_t ms;

	/* nothing to continue: not a regular file, or empty */
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return 0;
	head = malloc(header->len);
	if (!head)
		return -ENOMEM;
	same = pread(fd, head, header->len, 0) == (ssize_t)header->len && !memcmp(head, header->data, header->len);
	free(head);
	if (!same)
		return refuse(why, name, "there has other columns");
	if (st.st_size == (off_t)header->len)
		return 0;
	if (last_time(fd, st.st_size, &ms) != 0)
		return refuse(why, name, "there ends within a row");
	return ms < first_ms ? 0 : refuse(why, name, "there has rows that are not older than these");
}

/* Looks at file i of a set. 0 = rows may be appended, or opening will say why not. -EEXIST with why. */
static int look(struct csv_set *set, int number, unsigned i)
{
	char path[PATH_MAX], suffix[16];
	int fd, rc;

	csv_set_suffix(suffix, number);
	if (snprintf(path, sizeof(path), "%s%s/%s.csv", set->dir, suffix, set->names[i]) >= (int)sizeof(path))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return 0;
	rc = look_inside(fd, set->names[i], set->headers[i], set->first_ms, set->why);
	close(fd);
	return rc;
}

void csv_set_suffix(char dst[16], int number)
{
	snprintf(dst, 16, number > 1 ? "/%d" : "", number);
}

int csv_set_find(struct csv_set *set, struct err *err)
{
	set->why[0] = '\0';
	for (int number = 1; number <= SETS_MAX; number++) {
		int rc = 0;

		for (unsigned i = 0; i < set->n && !rc; i++)
			rc = look(set, number, i);
		if (!rc)
			return number;
		if (rc != -EEXIST)
			return err_set(err, rc, "%s: out of memory; free some", set->dir);
	}
	return err_set(err, -EEXIST, "%s: %d sets of files are there, and %s in the last; choose another directory",
		       set->dir, SETS_MAX, set->why);
}
