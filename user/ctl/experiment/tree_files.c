/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/array.h"
#include "base/parse.h"
#include "base/text.h"
#include "tree.h"
#include "tree_files.h"

/* O_NONBLOCK is needed because opening a FIFO would wait for its writer. */
int tree_file_open(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

int tree_csv_open(int dir, const char *name, struct csv_reader **ret)
{
	int fd = tree_file_open(dir, name);

	return fd < 0 ? fd : csv_open(fd, ret);
}

bool tree_is_missing(const char *cell)
{
	static const char *const words[] = { "",     "NaN",     "nan",      "N/A",    "n/a",    "NA",   "<NA>",
					     "NULL", "null",    "None",     "-NaN",   "-nan",   "#N/A", "#N/A N/A",
					     "#NA",  "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN" };

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(cell, words[i]) == 0)
			return true;
	return false;
}

/* timestamps.csv has no index column. Its columns timestamp, event and data are found by name. */

enum { TIME, EVENT, DATA, HEADS };

struct events {
	struct tree_repetition *r;
	struct tree_findings *f;
	const char *file;
	int head[HEADS]; /* column in the file, by TIME, EVENT, DATA */
	unsigned n_heads, digits;
};

static bool read_heads(struct events *e, const struct csv_row *row)
{
	static const char *const names[HEADS] = { "timestamp", "event", "data" };

	e->n_heads = row->n;
	for (unsigned k = 0; k < HEADS; k++) {
		e->head[k] = -1;
		for (unsigned i = 0; i < row->n; i++)
			if (strcmp(row->cell[i], names[k]) == 0)
				e->head[k] = (int)i;
		if (e->head[k] < 0)
			tree_find(e->f, TREE_ABORTS, "no-column", tree_at(e->file, row->line), "no column %s",
				  names[k]);
	}
	if (row->n && !*row->cell[0])
		tree_find(e->f, TREE_NOTE, "index-in-events", tree_at(e->file, row->line),
			  "an index column, which this file has not");
	return e->head[TIME] >= 0 && e->head[EVENT] >= 0 && e->head[DATA] >= 0;
}

static const char *cell(const struct csv_row *row, int i)
{
	return (unsigned)i < row->n ? row->cell[i] : "";
}

static struct tree_event *room(struct tree_repetition *r)
{
	if (ARRAY_ROOM(r->events, r->cap_events, r->n_events + 1) != 0)
		return NULL;
	return &r->events[r->n_events];
}

/* Reads a whole number. 3.0 is one too: pandas writes it in a column with an empty cell. */
static bool take_data(const char *s, int64_t *ret)
{
	double v;

	if (parse_i64(s, ret) == 0)
		return true;
	if (parse_double(s, &v) != 0 || v < -9e15 || v > 9e15 || v != (double)(int64_t)v)
		return false;
	*ret = (int64_t)v;
	return true;
}

static void check_time(struct events *e, const struct csv_row *row, unsigned digits, bool zoned)
{
	if (zoned)
		tree_find(e->f, TREE_ABORTS, "time-zone", tree_at(e->file, row->line),
			  "a time with a zone cannot be compared with the others, which have none");
	if (!e->r->n_events)
		e->digits = digits;
	else if (digits != e->digits)
		tree_find(e->f, TREE_ABORTS, "mixed-fractions", tree_at(e->file, row->line),
			  "%u digits of a second after times with %u: pandas 2 and newer takes one form; write six",
			  digits, e->digits);
}

static int take_row(struct events *e, const struct csv_row *row)
{
	struct tree_event *ev;
	unsigned digits;
	char shown[80];
	bool zoned;

	if (row->n > e->n_heads) {
		tree_find(e->f, TREE_ABORTS, "too-many-cells", tree_at(e->file, row->line),
			  "%u cells below %u column names", row->n, e->n_heads);
		return 0;
	}
	if (e->r->n_events == TREE_EVENTS_MAX)
		return -EFBIG;
	ev = room(e->r);
	if (!ev)
		return -ENOMEM;
	*ev = (struct tree_event){ .line = row->line };
	if (tree_parse_time(cell(row, e->head[TIME]), &ev->t_ns, &digits, &zoned)) {
		tree_find(e->f, row->whole ? TREE_ABORTS : TREE_NOTE, "bad-timestamp", tree_at(e->file, row->line),
			  "\"%.40s\" is no time such as 2026-01-31 12:00:00.000000",
			  text_escape(shown, sizeof(shown), cell(row, e->head[TIME])));
		return 0;
	}
	check_time(e, row, digits, zoned);
	snprintf(ev->name, sizeof(ev->name), "%s", cell(row, e->head[EVENT]));
	ev->has_data = take_data(cell(row, e->head[DATA]), &ev->data);
	e->r->n_events++;
	return 0;
}

static int read_rows(struct events *e, struct csv_reader *c)
{
	struct csv_row row;
	int rc = csv_next(c, &row);

	if (rc == 0)
		tree_find(e->f, TREE_ABORTS, "empty-file", tree_at(e->file, 0), "an empty file; leave it out");
	if (rc > 0 && !read_heads(e, &row))
		return 0;
	while (rc > 0 && (rc = csv_next(c, &row)) > 0) {
		e->r->has_events = true;
		rc = take_row(e, &row);
		rc = rc ? rc : 1;
	}
	if (rc < 0 && rc != -ENOMEM)
		tree_find(e->f, TREE_ABORTS, "unreadable", tree_at(e->file, csv_line(c)),
			  "%s; what follows is not read",
			  rc == -EFBIG ? "more cells, lines or bytes in a line than can be" : strerrordesc_np(-rc));
	return rc == -ENOMEM ? rc : 0;
}

int tree_events_read(int dir, const char *shown, struct tree_repetition *r, struct tree_findings *f)
{
	char file[1024];
	struct events e = { .r = r, .f = f, .file = file };
	struct csv_reader *c;
	int rc;

	snprintf(file, sizeof(file), "%s/timestamps.csv", shown);
	rc = tree_csv_open(dir, "timestamps.csv", &c);
	if (rc == -ENOENT || rc == -ENOMEM)
		return rc == -ENOMEM ? rc : 0;
	if (rc) {
		tree_find(f, TREE_ABORTS, "unreadable", tree_at(file, 0), "%s", strerrordesc_np(-rc));
		return 0;
	}
	rc = read_rows(&e, c);
	csv_close(c);
	return rc;
}

/* Reads exactly n digits; -1 = there are fewer. */
static int digits(const char **s, unsigned n)
{
	int v = 0;

	for (; n; n--, (*s)++) {
		if (!isdigit((unsigned char)**s))
			return -1;
		v = v * 10 + (**s - '0');
	}
	return v;
}

static int field(const char **s, char before, unsigned n, int min, int max)
{
	int v;

	if (before && *(*s)++ != before)
		return -1;
	v = digits(s, n);
	return v < min || v > max ? -1 : v;
}

/* Reads a time zone: Z, +hh:mm, -hh:mm or none. *ret_ahead_s is the time ahead of UTC in seconds. */
static int zone(const char *s, bool *ret_zoned, int *ret_ahead_s)
{
	int sign = *s == '-' ? -1 : 1, hours, minutes;

	*ret_zoned = *s != '\0';
	*ret_ahead_s = 0;
	if (!*s || strcmp(s, "Z") == 0)
		return 0;
	if (*s != '+' && *s != '-')
		return -EINVAL;
	s++;
	hours = field(&s, '\0', 2, 0, 23);
	minutes = hours < 0 ? -1 : field(&s, ':', 2, 0, 59);
	if (minutes < 0 || *s)
		return -EINVAL;
	*ret_ahead_s = sign * (hours * 3600 + minutes * 60);
	return 0;
}

static int clock_time(const char **s, struct tm *tm)
{
	tm->tm_hour = field(s, '\0', 2, 0, 23);
	tm->tm_min = tm->tm_hour < 0 ? -1 : field(s, ':', 2, 0, 59);
	tm->tm_sec = tm->tm_min < 0 ? -1 : field(s, ':', 2, 0, 59);
	return tm->tm_sec < 0 ? -EINVAL : 0;
}

static int date(const char **s, struct tm *tm)
{
	static const int days[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	/* 64 bits of nanoseconds overflow in 2262 */
	tm->tm_year = field(s, '\0', 4, 1970, 2261) - 1900;
	tm->tm_mon = tm->tm_year < 0 ? -1 : field(s, '-', 2, 1, 12) - 1;
	tm->tm_mday = tm->tm_mon < 0 ? -1 : field(s, '-', 2, 1, 31);
	return tm->tm_mday < 0 || tm->tm_mday > days[tm->tm_mon] ? -EINVAL : 0;
}

int tree_parse_time(const char *s, int64_t *ret_ns, unsigned *ret_digits, bool *ret_zoned)
{
	struct tm tm = { 0 };
	int64_t fraction = 0;
	unsigned n = 0;
	int ahead_s;
	bool zoned;

	if (date(&s, &tm) || (*s != ' ' && *s != 'T'))
		return -EINVAL;
	s++;
	if (clock_time(&s, &tm))
		return -EINVAL;
	if (*s == '.')
		for (s++; isdigit((unsigned char)*s); s++, n++)
			if (n < 9)
				fraction = fraction * 10 + (*s - '0');
	for (unsigned i = n; i < 9; i++)
		fraction *= 10;
	if (zone(s, &zoned, &ahead_s))
		return -EINVAL;
	*ret_ns = ((int64_t)timegm(&tm) - ahead_s) * 1000000000 + fraction;
	*ret_digits = n;
	*ret_zoned = zoned;
	return 0;
}
