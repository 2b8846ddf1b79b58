// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "wall_points.h"

#define BINS 16 /* of power, between the least and the most */
#define FORMAT "jouled-wall-1"
#define LINE 512
#define MOST 1e12 /* of any figure */

static unsigned bin_of(const struct wall_point *p, double low, double high)
{
	double at = high > low ? (p->watts - low) / (high - low) * BINS : 0;

	return at < BINS - 1 ? (unsigned)at : BINS - 1;
}

static unsigned oldest_of_the_fullest(const struct wall_points *p)
{
	double low = p->v[0].watts, high = low;
	unsigned count[BINS] = { 0 }, fullest = 0, i;

	for (i = 1; i < p->n; i++) {
		low = fmin(low, p->v[i].watts);
		high = fmax(high, p->v[i].watts);
	}
	for (i = 0; i < p->n; i++)
		count[bin_of(&p->v[i], low, high)]++;
	for (i = 1; i < BINS; i++)
		fullest = count[i] > count[fullest] ? i : fullest;
	for (i = 0; bin_of(&p->v[i], low, high) != fullest; i++)
		;
	return i;
}

void wall_points_add(struct wall_points *p, const struct wall_point *point)
{
	if (p->n == WALL_POINTS) {
		unsigned out = oldest_of_the_fullest(p);

		memmove(&p->v[out], &p->v[out + 1], (p->n - out - 1) * sizeof(p->v[0]));
		p->n--;
	}
	p->v[p->n] = *point;
	p->v[p->n].when = p->n ? p->v[p->n - 1].when + 1 : 0;
	p->n++;
}

void wall_points_write(const struct wall_points *p, const char *inside, struct buf *out)
{
	buf_printf(out, FORMAT " %s\nwatts", inside);
	for (unsigned k = 0; k < WALL_INPUTS; k++)
		buf_printf(out, ",%s", wall_input_name((enum wall_input)k));
	buf_add_str(out, "\n");
	for (unsigned i = 0; i < p->n; i++) {
		buf_printf(out, "%.6g", p->v[i].watts);
		for (unsigned k = 0; k < WALL_INPUTS; k++)
			buf_printf(out, ",%.6g", p->v[i].x[k]);
		buf_add_str(out, "\n");
	}
}

/* Takes the next line, without its end, into a text. False: there is none, or it is too long. */
static bool next_line(const char **at, const char *end, char ret[LINE])
{
	const char *stop = *at < end ? memchr(*at, '\n', (size_t)(end - *at)) : NULL;
	size_t n = stop ? (size_t)(stop - *at) : LINE;

	if (n >= LINE)
		return false;
	memcpy(ret, *at, n);
	ret[n] = '\0';
	*at = stop + 1;
	return strlen(ret) == n;
}

static bool take_number(char **at, char before, double *ret)
{
	char *stop;

	if (before && *(*at)++ != before)
		return false;
	if (!strspn(*at, "0123456789") || (*at)[strspn(*at, "0123456789.e+-")] == 'x')
		return false;
	*ret = strtod(*at, &stop);
	*at = stop;
	return isfinite(*ret) && *ret >= 0 && *ret < MOST;
}

static bool read_point(char *line, struct wall_point *ret)
{
	bool ok = take_number(&line, 0, &ret->watts);

	for (unsigned k = 0; k < WALL_INPUTS && ok; k++)
		ok = take_number(&line, ',', &ret->x[k]);
	return ok && !*line;
}

int wall_points_read(const char *text, size_t size, const char *inside, struct wall_points *ret, struct err *err)
{
	const char *end = text + size;
	char line[LINE], columns[LINE];
	struct buf head = { 0 };
	struct wall_point p;
	unsigned number = 2;
	bool same;

	memset(ret, 0, sizeof(*ret));
	wall_points_write(ret, "", &head);
	if (head.failed)
		return -ENOMEM;
	if (!next_line(&text, end, line) || strncmp(line, FORMAT " ", strlen(FORMAT " ")) != 0 ||
	    !next_line(&text, end, columns)) {
		buf_free(&head);
		return err_set(err, -EBADMSG,
			       "line 1: no calibration of this version; remove the file, it is made anew");
	}
	same = strlen(columns) == head.len - strlen(FORMAT " \n\n") &&
	       memcmp(head.data + strlen(FORMAT " \n"), columns, strlen(columns)) == 0;
	buf_free(&head);
	if (!same)
		return err_set(err, -EBADMSG,
			       "line 2: other columns than this version has; remove the file, it is made anew");
	if (strcmp(line + strlen(FORMAT " "), inside) != 0)
		return err_set(err, -ESTALE, "it was made with %.100s, and there is %.100s now",
			       line + strlen(FORMAT " "), inside);
	while (text < end) {
		number++;
		if (!next_line(&text, end, line) || !read_point(line, &p)) {
			memset(ret, 0, sizeof(*ret));
			return err_set(err, -EBADMSG, "line %u: no point; remove the file, it is made anew", number);
		}
		wall_points_add(ret, &p);
	}
	return 0;
}
