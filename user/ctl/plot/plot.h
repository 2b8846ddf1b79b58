/* SPDX-License-Identifier: Apache-2.0 */
/* Power over time per cgroup as a picture: what was measured, in columns of time, and how it is drawn.
 * Memory is bounded whatever the input: at most PLOT_COLUMNS_MAX columns (neighbours are merged, their
 * energy added, gaps kept), PLOT_SERIES_MAX series (more are counted for the rest). */
#ifndef JD_CTL_PLOT_H
#define JD_CTL_PLOT_H
#include <stdbool.h>
#include <stdint.h>
#include "../base/buf.h"
#include "../base/err.h"
#include "../model/schema.h"

#define PLOT_COLUMNS_MAX 1024
#define PLOT_SERIES_MAX 16384
#define PLOT_TOP_MAX 64

struct plot_cell {
	double uj;
	unsigned quality;
};

enum plot_kind { PLOT_IDLE, PLOT_RESIDUAL, PLOT_ROW, PLOT_REST }; /* from the bottom up */

struct plot_series {
	char *name; /* a cgroup's path, "kernel" ... */
	enum plot_kind kind;
	struct plot_cell *cells; /* by column; behind n: nothing */
	unsigned n, cap;
	double uj; /* sums, by plot_finish */
	unsigned quality;
	bool all_estimated; /* not one cell was measured */
};

struct plot_column {
	int64_t start_ns, end_ns; /* Unix time */
	uint64_t covered_ns; /* of it, measured: the power is energy over this */
	bool known; /* false: its energy is lost, shown as a gap */
};

struct plot {
	/* what is asked for, set by the owner before anything is read */
	const char *domains; /* names or kinds, joined by commas; NULL = what does not overlap */
	const char *cgroup; /* pattern; NULL = all, and the special rows */
	int64_t since_ns, until_ns; /* INT64_MIN, INT64_MAX = open */
	unsigned top;
	/* what was read */
	char sensor[256];
	char unit_of[512]; /* the domains that are shown, for the text */
	unsigned n_columns;
	struct plot_column columns[PLOT_COLUMNS_MAX];
	struct plot_series *series;
	unsigned n_series, cap_series;
	uint32_t *table; /* series by name: index + 1 */
	unsigned cap_table;
	unsigned n_rest; /* cgroups in the rest, by plot_finish */
	bool failed; /* no memory */
};

/* plot.c */
void plot_init(struct plot *p);
void plot_free(struct plot *p);
/* A column behind the last one; false: outside of what is asked for. */
bool plot_begin_column(struct plot *p, int64_t start_ns, int64_t end_ns);
/* Adds to the column that was begun last. */
void plot_add(struct plot *p, const char *name, enum plot_kind kind, double uj, unsigned quality);
void plot_lost(struct plot *p); /* the column's energy is not known */
void plot_covered(struct plot *p, uint64_t ns); /* its energy was measured over ns, not over its length */
/* Ranks the series, folds all but the top ones into the rest and orders them as they are stacked. 0 or
 * negative errno: nothing to show. */
int plot_finish(struct plot *p, struct err *err);
double plot_watts(const struct plot *p, const struct plot_series *s, unsigned column);
/* Whether nothing was measured between this column and the one before it. */
bool plot_gap_before(const struct plot *p, unsigned column);
/* Which of n names are shown, into ret, and their text into p->unit_of. 0 or -EINVAL. */
int plot_choose_domains(struct plot *p, const char *const *names, unsigned n, bool *ret, struct err *err);

/* plot_recording.c, plot_history.c: fill it. 0 or negative errno. */
int plot_read_recording(struct plot *p, const char *path, struct err *err);
int plot_read_history(struct plot *p, const char *json, size_t size, struct err *err);

/* plot_axis.c */
struct plot_axis {
	double first, step;
	unsigned n;
};
struct plot_axis plot_value_axis(double top, unsigned ticks); /* 0 ... at least top */
struct plot_axis plot_time_axis(int64_t start_ns, int64_t end_ns, unsigned ticks); /* seconds, local time */
void plot_time_label(char *dst, size_t size, double unix_s, double step_s);
/* "mW", "W" or "kW" for values up to watts, and what they are divided by. */
const char *plot_unit(double watts, double *ret_divisor);
void plot_number(char *dst, size_t size, double v); /* three digits that count */
void plot_joules(char *dst, size_t size, double uj);
/* "2026-11-22 10:00:00" and "10:20:00 UTC", local; the end has a date where that is another one. */
void plot_dates(const struct plot *p, char *from, char *to, size_t size);

/* plot_draw.c, plot_legend.c */
#define PLOT_WIDTH_MIN 320
#define PLOT_WIDTH_MAX 8000
void plot_draw(const struct plot *p, unsigned width, struct buf *out);

#endif
