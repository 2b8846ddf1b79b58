/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/parse.h"
#include "base/text.h"
#include "tree.h"
#include "tree_files.h"

#define SAMPLE_US_MAX 9000000000000000 /* year 2255: differences in ns fit in 64 bits */

const char *const tree_table_file[TREE_TABLES] = {
	[TREE_GPU] = "gpu-power.csv",
	[TREE_SAMPLES] = "total_power_samples.csv",
	[TREE_EXTERNAL] = "power-external.csv",
	[TREE_RAPL] = "rapl-power.csv",
	[TREE_CGROUP] = "cgroup-power.csv",
	[TREE_UTIL_GPU] = "gpu_utilization_samples.csv",
	[TREE_UTIL_MEM] = "memory_utilization_samples.csv",
};

struct reading { /* a file that is being read */
	struct tree_table *t;
	struct tree_findings *f;
	const char *file;
	bool samples; /* times are numbers of microseconds */
	bool original; /* the original has this file too, and its reader stops at an error in it */
	int time_column, quality_column;
	unsigned n_heads;
	int column[TREE_COLUMNS_MAX]; /* column of the table, by column of the file; -1 = none */
	unsigned digits; /* digits of a second in the first time */
};

static enum tree_effect effect(const struct reading *r, enum tree_effect e)
{
	return r->original ? e : TREE_NOTE;
}

int tree_column(const struct tree_table *t, const char *name)
{
	for (unsigned i = 0; i < t->n_columns; i++)
		if (strcmp(t->column[i], name) == 0)
			return (int)i;
	return -1;
}

void tree_table_free(struct tree_table *t)
{
	for (unsigned i = 0; i < t->n_columns; i++)
		free(t->column[i]);
	free(t->t_ns);
	free(t->line);
	free(t->cells);
	*t = (struct tree_table){ 0 };
}

/* Reads the column names. Column 0 is the index, whatever its name is. Without an index the reader takes the times for
 * it. */
static int read_heads(struct reading *r, const struct csv_row *row)
{
	unsigned first = strcmp(row->cell[0], "timestamp") != 0;

	r->time_column = r->quality_column = -1;
	r->n_heads = row->n;
	if (!first)
		tree_find(r->f, effect(r, TREE_ABORTS), "index-missing", tree_at(r->file, row->line),
			  "no index column: the reader takes the first column for it and finds no timestamp");
	for (unsigned i = 0; i < row->n; i++) {
		r->column[i] = -1;
		if (i < first)
			continue;
		if (strcmp(row->cell[i], "timestamp") == 0) {
			r->time_column = (int)i;
			continue;
		}
		if (!r->original && strcmp(row->cell[i], "quality") == 0) {
			r->quality_column = (int)i;
			continue;
		}
		r->t->column[r->t->n_columns] = strdup(row->cell[i]);
		if (!r->t->column[r->t->n_columns])
			return -ENOMEM;
		r->column[i] = (int)r->t->n_columns++;
	}
	return 0;
}

/* Reports a file without a column timestamp, and guesses the cause. */
static void no_times(const struct reading *r, const struct csv_row *row)
{
	if (strchr(row->cell[0], ';'))
		tree_find(r->f, effect(r, TREE_ABORTS), "separator", tree_at(r->file, row->line),
			  "separated by ; where commas are expected");
	else if (*row->cell[0] == '#')
		tree_find(r->f, effect(r, TREE_ABORTS), "comment", tree_at(r->file, row->line),
			  "a comment where the column names are expected");
	else if (row->n == 1 && !*row->cell[0])
		tree_find(r->f, effect(r, TREE_ABORTS), "empty-samples", tree_at(r->file, row->line),
			  "no columns; leave the file out where there is no sample");
	else
		tree_find(r->f, effect(r, TREE_ABORTS), "no-timestamp", tree_at(r->file, row->line),
			  "no column timestamp");
}

static int grow(struct tree_table *t)
{
	size_t cap = t->cap ? 2 * t->cap : 256, width = t->n_columns ? t->n_columns : 1;

	if (cap * width > TREE_CELLS_MAX)
		return -EFBIG;
	if (ARRAY_RESIZE(t->t_ns, cap) || ARRAY_RESIZE(t->line, cap) || ARRAY_RESIZE(t->cells, cap * width))
		return -ENOMEM;
	t->cap = cap;
	return 0;
}

/* Reads the time of a sample. It may be a floating-point number, because a table was dumped that way. */
static bool sample_time(const char *s, int64_t *ret_ns)
{
	double us;
	int64_t v;

	if (parse_i64(s, &v) == 0 && v >= 0 && v <= SAMPLE_US_MAX) {
		*ret_ns = v * 1000;
		return true;
	}
	if (parse_double(s, &us) != 0 || us < 0 || us > SAMPLE_US_MAX)
		return false;
	*ret_ns = (int64_t)us * 1000;
	return true;
}

static bool text_time(struct reading *r, const struct csv_row *row, const char *s, int64_t *ret_ns)
{
	unsigned digits;
	bool zoned;

	if (tree_parse_time(s, ret_ns, &digits, &zoned))
		return false;
	if (zoned)
		tree_find(r->f, effect(r, TREE_ABORTS), "time-zone", tree_at(r->file, row->line),
			  "a time with a zone cannot be compared with the others, which have none");
	if (!r->t->n)
		r->digits = digits;
	else if (digits != r->digits)
		tree_find(r->f, effect(r, TREE_ABORTS), "mixed-fractions", tree_at(r->file, row->line),
			  "%u digits of a second after times with %u: pandas 2 and newer takes one form; write six",
			  digits, r->digits);
	return true;
}

static bool take_time(struct reading *r, const struct csv_row *row, int64_t *ret_ns)
{
	const char *s = row->n > (unsigned)r->time_column ? row->cell[r->time_column] : "";
	char shown[80];

	if (r->samples ? sample_time(s, ret_ns) : text_time(r, row, s, ret_ns))
		return true;
	text_escape(shown, sizeof(shown), s);
	tree_find(r->f, effect(r, row->whole ? TREE_ABORTS : TREE_NOTE), "bad-timestamp", tree_at(r->file, row->line),
		  "\"%.40s\" is no time such as %s", shown,
		  r->samples ? "1700000000000000" : "2026-01-31 12:00:00.000000");
	return false;
}

static double take_cell(struct reading *r, const struct csv_row *row, unsigned i)
{
	char shown[80];
	double v;

	if (parse_double(row->cell[i], &v) == 0)
		return v;
	if (tree_is_missing(row->cell[i]))
		return NAN;
	text_escape(shown, sizeof(shown), row->cell[i]);
	tree_find(r->f, effect(r, TREE_ABORTS), "not-a-number", tree_at(r->file, row->line),
		  "%s: \"%.40s\" is no number; leave the cell empty", r->t->column[r->column[i]], shown);
	return NAN;
}

static void take_quality(struct reading *r, const struct csv_row *row)
{
	const char *word = r->quality_column >= 0 && (unsigned)r->quality_column < row->n ?
				   row->cell[r->quality_column] :
				   "measured";

	r->t->quality |= quality_named(word) & ~(unsigned)QUALITY_WRAPPED;
	r->t->doubtful += (quality_named(word) & ~(unsigned)QUALITY_WRAPPED) != 0;
}

static int take_row(struct reading *r, const struct csv_row *row)
{
	struct tree_table *t = r->t;
	double *cells;
	int64_t ns;
	int rc;

	if (row->n > r->n_heads) {
		tree_find(r->f, effect(r, TREE_ABORTS), "too-many-cells", tree_at(r->file, row->line),
			  "%u cells below %u column names", row->n, r->n_heads);
		return 0;
	}
	if (!row->whole)
		tree_find(r->f, TREE_NOTE, "cut-off", tree_at(r->file, row->line), "the last line is cut off%s",
			  row->n < r->n_heads ? "; it is passed over" : ", its last number perhaps too");
	if ((!row->whole && row->n < r->n_heads) || !take_time(r, row, &ns))
		return 0;
	rc = t->n == t->cap ? grow(t) : 0;
	if (rc)
		return rc;
	cells = t->cells + t->n * t->n_columns;
	for (unsigned i = 0; i < t->n_columns; i++)
		cells[i] = NAN;
	for (unsigned i = 0; i < row->n; i++)
		if (r->column[i] >= 0)
			cells[r->column[i]] = take_cell(r, row, i);
	take_quality(r, row);
	t->line[t->n] = (uint32_t)row->line;
	t->t_ns[t->n++] = ns;
	return 0;
}

static void unreadable(struct reading *r, unsigned long line, int rc)
{
	tree_find(r->f, effect(r, TREE_ABORTS), "unreadable", tree_at(r->file, line), "%s; what follows is not read",
		  rc == -EBADMSG ? "a NUL byte, or a quote that does not end" :
		  rc == -EFBIG   ? "more cells, or a longer line, than can be" :
				   strerrordesc_np(-rc));
}

static int read_rows(struct reading *r, struct csv_reader *c)
{
	struct csv_row row;
	int rc = csv_next(c, &row);

	if (rc == 0)
		tree_find(r->f, effect(r, TREE_ABORTS), "empty-file", tree_at(r->file, 0),
			  "an empty file; leave it out");
	if (rc == 1) {
		if (read_heads(r, &row))
			return -ENOMEM;
		r->t->present = r->time_column >= 0;
		if (!r->t->present) {
			no_times(r, &row);
			return 0;
		}
	}
	while (rc > 0 && (rc = csv_next(c, &row)) > 0) {
		rc = take_row(r, &row);
		rc = rc ? rc : 1;
	}
	if (rc < 0 && rc != -ENOMEM)
		unreadable(r, csv_line(c), rc);
	return rc == -ENOMEM ? rc : 0;
}

int tree_table_read(int dir, unsigned which, const char *shown, struct tree_table *t, struct tree_findings *f)
{
	char file[1024];
	struct reading r = {
		.t = t,
		.f = f,
		.file = file,
		.samples = which == TREE_SAMPLES || which == TREE_UTIL_GPU || which == TREE_UTIL_MEM,
		.original = which != TREE_RAPL && which != TREE_CGROUP,
	};
	struct csv_reader *c;
	int rc;

	*t = (struct tree_table){ 0 };
	snprintf(file, sizeof(file), "%s/%s", shown, tree_table_file[which]);
	rc = tree_csv_open(dir, tree_table_file[which], &c);
	t->absent = rc == -ENOENT;
	if (rc == -ENOENT || rc == -ENOMEM)
		return rc == -ENOMEM ? rc : 0;
	if (rc) {
		unreadable(&r, 0, rc);
		return 0;
	}
	rc = read_rows(&r, c);
	csv_close(c);
	return rc;
}
