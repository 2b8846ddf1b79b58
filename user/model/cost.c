/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* Reads one line. heads: names of columns may come. 1 = it holds nothing. */
static int take_line(const struct csv_row *row, bool *heads, struct intensity *ret)
{
	bool first = *heads;
	double g;

	if (row->cell[0][0] == '#' || (row->n == 1 && !row->cell[0][0]))
		return 1;
	*heads = false;
	if (row->n < 2 || parse_double(row->cell[1], &g) != 0)
		return first ? 1 : -EINVAL;
	if (g < 0 || row->cell[0][0] == '-' || instant_parse(row->cell[0], 0, &ret->from_ns) != 0)
		return -EINVAL;
	ret->g_per_kwh = g;
	return 0;
}

/* A file that is read. */
struct reading_file {
	const char *path;
	uint32_t room;
	bool heads;
};

static int add_line(struct cost *c, const struct csv_row *row, struct reading_file *f, struct err *err)
{
	const char *path = f->path;
	struct intensity i;
	int rc = take_line(row, &f->heads, &i);

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
	if (ARRAY_ROOM(c->v, f->room, c->n + 1))
		return err_set(err, -ENOMEM, "%.200s: out of memory; shorten it", path);
	c->v[c->n++] = i;
	return 0;
}

static int read_file(struct cost *c, const char *path, struct err *err)
{
	struct csv_reader *in = NULL;
	struct csv_row row;
	struct reading_file f = { .path = path, .heads = true };
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), rc = fd < 0 ? -errno : csv_open(fd, &in), more = 1;

	if (rc)
		return err_set(err, rc, "carbon %.200s: %s; write grams per kWh, or name a file with lines TIME,GRAMS",
			       path, strerror(-rc));
	while (!rc && (more = csv_next(in, &row)) == 1)
		rc = add_line(c, &row, &f, err);
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

double cost_intensity(const struct cost *c, int64_t at_ns)
{
	size_t i = entry_at(c, at_ns);

	if (!c->n)
		return c->g_per_kwh;
	return i == c->n ? NAN : c->v[i].g_per_kwh;
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

void cost_watch_start(struct cost_watch *w, const char *price, const char *carbon)
{
	struct err err = { 0 };

	*w = (struct cost_watch){ .carbon = carbon };
	cost_init(&w->cost);
	if (price && cost_set_price(&w->cost, price, &err))
		snprintf(w->error, sizeof(w->error), "%s", err.text);
}

/* Reads the file into *ret. */
static int read_again(const struct cost_watch *w, struct cost *ret, struct err *err)
{
	int rc;

	cost_init(ret);
	ret->price = w->cost.price;
	rc = cost_set_carbon(ret, w->carbon, err);
	if (rc)
		cost_free(ret);
	return rc;
}

bool cost_watch_look(struct cost_watch *w)
{
	struct stat st = { 0 };
	struct err err = { 0 };
	struct cost read;
	int64_t changed_ns;
	bool same;

	if (!w->carbon)
		return false;
	if (stat(w->carbon, &st) != 0) /* a number; or no file any more: reading says so */
		st = (struct stat){ .st_size = -1 };
	changed_ns = st.st_ctim.tv_sec * (int64_t)NS_PER_S + st.st_ctim.tv_nsec;
	same = cost_has_carbon(&w->cost) || *w->error;
	if (same && changed_ns == w->changed_ns && st.st_ino == w->inode && (uint64_t)st.st_size == w->size)
		return false;
	w->changed_ns = changed_ns;
	w->inode = st.st_ino;
	w->size = (uint64_t)st.st_size;
	if (read_again(w, &read, &err) != 0) {
		bool told = strcmp(w->error, err.text) == 0;

		snprintf(w->error, sizeof(w->error), "%s", err.text);
		return !told;
	}
	cost_free(&w->cost);
	w->cost = read;
	*w->error = '\0';
	return false;
}

void cost_watch_stop(struct cost_watch *w)
{
	free(w->cost.v);
	*w = (struct cost_watch){ 0 };
}
