/* SPDX-License-Identifier: Apache-2.0 */
/* Power over time per cgroup as a picture: the data in columns of time, and the drawing. Memory is bounded for every
 * input: at most PLOT_COLUMNS_MAX columns (neighbours are merged, their energy added, gaps kept) and PLOT_SERIES_MAX
 * series (further ones are added to the rest). */
#ifndef JD_CTL_PLOT_H
#define JD_CTL_PLOT_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "model/schema.h"

#define PLOT_COLUMNS_MAX 1024
#define PLOT_SERIES_MAX 16384
#define PLOT_TOP_MAX 64

struct plot_cell {
	double uj;
	unsigned quality;
};

/* From the bottom up; PLOT_HIDDEN is a cgroup that is shown as part of the rest alone. */
enum plot_kind { PLOT_IDLE, PLOT_RESIDUAL, PLOT_ROW, PLOT_HIDDEN, PLOT_REST };

struct plot_series {
	char *name; /* a cgroup's path, "kernel" ... */
	enum plot_kind kind;
	struct plot_cell *cells; /* by column; columns from n on are zero */
	unsigned n, cap;
	double low_w, high_w; /* of the readings; low_w > high_w: not known, as for a sum of several rows */
	double uj; /* uj, quality and all_estimated are sums over the columns, set by plot_finish */
	unsigned quality;
	bool all_estimated; /* not one cell was measured */
};

struct plot_column {
	int64_t start_ns, end_ns; /* Unix time */
	uint64_t covered_ns; /* measured part of the time; the power is the energy divided by this */
	bool known; /* false: its energy is lost, shown as a gap */
	bool noted; /* low_w and high_w are set */
	unsigned readings; /* known ones that were merged into this column */
	double low_w, high_w; /* all series together, in the lowest and in the highest of those readings */
};

struct plot {
	/* the request, set by the owner before anything is read */
	const char *domains; /* names or kinds, joined by commas; NULL = domains that do not overlap */
	const char *cgroup; /* pattern; NULL = all, and the special rows */
	int64_t since_ns, until_ns; /* INT64_MIN, INT64_MAX = open */
	unsigned top;
	/* the data */
	char sensor[256];
	char unit_of[512]; /* the domains that are shown, for the text */
	unsigned n_columns;
	struct plot_column columns[PLOT_COLUMNS_MAX];
	struct plot_series *series;
	unsigned n_series, cap_series;
	struct hash by_name; /* only while data is read */
	bool any_noted;
	unsigned n_rest; /* cgroups in the rest: those of the answer, and those that plot_finish adds */
	bool more_rest; /* the rest has more cgroups; their number is unknown */
	unsigned n_unseen; /* cgroups that may match but were not in the answer */
	bool failed; /* memory ran out */
};

/* plot.c */
void plot_init(struct plot *p);
void plot_free(struct plot *p);
/* Begins a column behind the last one. false = its time was not asked for, or has a column already. */
bool plot_begin_column(struct plot *p, int64_t start_ns, int64_t end_ns);
/* Adds to the column that was begun last. */
void plot_add(struct plot *p, const char *name, enum plot_kind kind, double uj, unsigned quality);
void plot_lost(struct plot *p); /* the column's energy is not known */
void plot_covered(struct plot *p, uint64_t ns); /* its energy was measured over ns, not over its length */
/* Ranks the series, folds all but the top ones into the rest and puts them in the order of stacking. 0, -ENODATA when
 * there is nothing to show, or -ENOMEM. */
int plot_finish(struct plot *p, struct err *err);
/* Merges columns until at most n are left: each is the mean of its readings, and keeps the lowest and the highest. n > 0,
 * after plot_finish. */
void plot_reduce(struct plot *p, unsigned n);
double plot_watts(const struct plot *p, const struct plot_series *s, unsigned column);
/* true = there is a gap in time between this column and the one before it. */
bool plot_gap_before(const struct plot *p, unsigned column);
/* Sets ret for each of n names to whether it is shown, and p->unit_of to the text of those. 0, -EINVAL for an unknown
 * name, or -ENODATA without a domain. */
int plot_choose_domains(struct plot *p, const char *const *names, unsigned n, bool *ret, struct err *err);

/* plot_input.c: fill it. 0 or negative errno. */
int plot_read_recording(struct plot *p, const char *path, struct err *err);
int plot_read_history(struct plot *p, const char *json, size_t size, struct err *err);
/* The same of one cgroup. machine: the answer without a cgroup, whose times are columns too; NULL = there is none. */
int plot_read_history_of(struct plot *p, const char *json, size_t size, const json_t *machine, struct err *err);

/* picture.c */
struct plot_axis {
	double first, step;
	unsigned n;
};
struct plot_axis plot_value_axis(double top, unsigned ticks); /* 0 ... at least top */
struct plot_axis plot_time_axis(int64_t start_ns, int64_t end_ns, unsigned ticks); /* seconds, local time */
void plot_time_label(char *dst, size_t size, double unix_s, double step_s);
void plot_number(char *dst, size_t size, double v); /* three significant digits */
void plot_joules(char *dst, size_t size, double uj);

/* The picture as SVG. */
#define PLOT_WIDTH_MIN 320
#define PLOT_WIDTH_MAX 8000
void plot_draw(struct plot *p, unsigned width, struct buf *out); /* reduces p to the columns that the width can show */

#endif
