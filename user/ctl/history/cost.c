/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/clock.h"
#include "base/format/csv.h"
#include "base/instant.h"
#include "base/parse.h"
#include "cost.h"

#define COST_LINES 1000000 /* of a file: a century by the hour */

void cost_init(struct cost *c)
{
	*c = (struct cost){ .price = NAN, .g_per_kwh = NAN };
}

void cost_free(struct cost *c)
{
	free(c->v);
	cost_init(c);
}

int cost_set_price(struct cost *c, const char *text, struct err *err)
{
	if (parse_double(text, &c->price) == 0 && c->price >= 0)
		return 0;
	c->price = NAN;
	return err_set(err, -EINVAL, "price %.40s: no number of at least 0; write what a kWh costs, such as 0.32",
		       text);
}

/* Reads one line. 1 = it holds nothing. */
static int take_line(const struct csv_row *row, struct intensity *ret)
{
	double g;

	if (row->cell[0][0] == '#' || (row->n == 1 && !row->cell[0][0]))
		return 1;
	if (row->n < 2 || parse_double(row->cell[1], &g) != 0)
		return row->line == 1 ? 1 : -EINVAL; /* names of the columns */
	if (g < 0 || row->cell[0][0] == '-' || instant_parse(row->cell[0], 0, &ret->from_ns) != 0)
		return -EINVAL;
	ret->g_per_kwh = g;
	return 0;
}

static int add_line(struct cost *c, const struct csv_row *row, uint32_t *room, const char *path, struct err *err)
{
	struct intensity i;
	int rc = take_line(row, &i);

	if (rc > 0)
		return 0;
	if (rc)
		return err_set(err, rc, "%.200s:%lu: no line TIME,GRAMS; such as 2026-01-31T12:00:00Z,350", path,
			       row->line);
	if (c->n && i.from_ns <= c->v[c->n - 1].from_ns)
		return err_set(err, -EINVAL, "%.200s:%lu: not later than the line before; put them in order of time",
			       path, row->line);
	if (c->n == COST_LINES)
		return err_set(err, -E2BIG, "%.200s: more than %d lines; shorten it", path, COST_LINES);
	if (ARRAY_ROOM(c->v, *room, c->n + 1))
		return err_set(err, -ENOMEM, "%.200s: out of memory; shorten it", path);
	c->v[c->n++] = i;
	return 0;
}

static int read_file(struct cost *c, const char *path, struct err *err)
{
	struct csv_reader *in = NULL;
	struct csv_row row;
	uint32_t room = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), rc = fd < 0 ? -errno : csv_open(fd, &in), more = 1;

	if (rc)
		return err_set(err, rc, "carbon %.200s: %s; write grams per kWh, or name a file with lines TIME,GRAMS",
			       path, strerror(-rc));
	while (!rc && (more = csv_next(in, &row)) == 1)
		rc = add_line(c, &row, &room, path, err);
	if (!rc && more < 0)
		rc = err_set(err, more, "%.200s:%lu: no CSV; write lines TIME,GRAMS", path, csv_line(in));
	if (!rc && !c->n)
		rc = err_set(err, -EINVAL, "%.200s: no line TIME,GRAMS in it; such as 2026-01-31T12:00:00Z,350", path);
	csv_close(in);
	return rc;
}

int cost_set_carbon(struct cost *c, const char *text, struct err *err)
{
	double g;
	int rc;

	if (parse_double(text, &g) == 0) {
		if (g < 0)
			return err_set(err, -EINVAL, "carbon %.40s: below 0; write grams of CO2 per kWh, such as 350",
				       text);
		c->g_per_kwh = g;
		return 0;
	}
	rc = read_file(c, text, err);
	if (rc) {
		free(c->v);
		c->v = NULL;
		c->n = 0;
	}
	return rc;
}

double cost_money(const struct cost *c, double uj)
{
	return uj / UJ_PER_KWH * c->price;
}

/* The last entry that holds at that instant; n = none does. */
static size_t entry_at(const struct cost *c, int64_t at_ns)
{
	size_t low = 0, high = c->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (c->v[mid].from_ns <= at_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? low - 1 : c->n;
}

double cost_grams(const struct cost *c, double uj, int64_t from_ns, int64_t until_ns)
{
	double sum = 0;
	size_t i;

	if (!c->n)
		return uj / UJ_PER_KWH * c->g_per_kwh;
	i = entry_at(c, from_ns);
	if (i == c->n)
		return NAN;
	if (until_ns <= from_ns)
		return uj / UJ_PER_KWH * c->v[i].g_per_kwh;
	for (int64_t at = from_ns; at < until_ns; i++) {
		int64_t end = i + 1 < c->n && c->v[i + 1].from_ns < until_ns ? c->v[i + 1].from_ns : until_ns;

		sum += c->v[i].g_per_kwh * ((double)end - (double)at);
		at = end;
	}
	return uj / UJ_PER_KWH * sum / ((double)until_ns - (double)from_ns);
}
