/* SPDX-License-Identifier: Apache-2.0 */
/* Energy per run and repetition of an experiment tree, by the original's rules (docs/formats/experiment.md):
 * the window of tree_window_of, no interpolation of power, trapezoids, means over rows, then over repetitions. */
#ifndef JD_CTL_REPORT_H
#define JD_CTL_REPORT_H
#include <math.h>
#include "../base/buf.h"
#include "run_stats.h"
#include "tree.h"

#define REPORT_COMPAT_UNIT 10 /* mW of a count, in the original reader */
#define REPORT_COMPAT_IDLE_W 632.625 /* it takes off: 7/8 of 723 W */

enum report_source { REPORT_HD, REPORT_SD, REPORT_EXTERNAL, REPORT_RAPL, REPORT_CGROUP, REPORT_SOURCES };
enum report_mean {
	REPORT_UTIL_GPU,
	REPORT_UTIL_MEM,
	REPORT_CLOCK_GPU,
	REPORT_CLOCK_MEM,
	REPORT_LIMIT,
	REPORT_TEMPERATURE,
	REPORT_MEANS
};
enum report_value { REPORT_ENERGY, REPORT_TIME, REPORT_POWER, REPORT_EDP, REPORT_ED2P, REPORT_VALUES };

extern const char *const report_source_name[REPORT_SOURCES];
extern const char *const report_mean_name[REPORT_MEANS]; /* with its unit: "util_gpu_percent" */
extern const char *const report_value_name[REPORT_VALUES]; /* "energy_j" */

struct report_options {
	bool compat;
	double external_idle_w;
	unsigned external_mw; /* of a count; 0 = as system_info.json says, mW where it does not */
	unsigned sources; /* bit per source */
};

/* Power over time of one source, sorted by time. */
struct report_point {
	int64_t t_ns;
	double watts;
	size_t row;
};
struct report_points {
	struct report_point *list;
	size_t n, missing;
};

struct report_result { /* of a source */
	bool known;
	size_t rows;
	int64_t first_ns, last_ns; /* of what was kept */
	double value[REPORT_VALUES]; /* NAN = not known */
};

struct report_repetition {
	const struct tree_place *place;
	bool usable;
	struct tree_window window;
	struct report_result source[REPORT_SOURCES];
	double mean[REPORT_MEANS]; /* of gpu-power.csv; NAN = not known */
	double counter_j; /* of the GPU, over what sd kept; NAN = not known */
	char domains[2][512]; /* that rapl and cgroup add up */
};

struct report_run {
	unsigned first, n;
}; /* repetitions of it */

struct report {
	struct report_options o;
	struct tree tree;
	struct report_repetition *list;
	unsigned n;
	struct report_run *runs;
	unsigned n_runs;
	struct tree_findings found; /* for the original reader */
	struct tree_findings warnings; /* about our own figures */
};

/* report.c. 0, or negative errno: nothing to report. Half-built ones are freed too. */
int report_read(struct report *r, const char *dir, struct err *err);
void report_free(struct report *r);
/* Over the repetitions of a run that know the value; how many do. */
unsigned report_stats(const struct report *r, const struct report_run *run, enum report_source s, enum report_value v,
		      struct run_stats *ret);
unsigned report_mean_stats(const struct report *r, const struct report_run *run, enum report_mean m,
			   struct run_stats *ret);

/* report_energy.c. 0 or negative errno; an absent source is one without points. */
int report_points_of(const struct report_options *o, const struct tree_repetition *t, enum report_source s,
		     struct report_points *ret);
/* A cumulative column between two instants, straight lines between its rows; *from, *to become what is covered.
 * false: no such column, fewer than two rows, or it went back. */
bool report_counter(const struct tree_table *t, unsigned column, int64_t *from, int64_t *to, double *ret);
/* Fills result and domains of a repetition; warnings about it. */
int report_measure(const struct report_options *o, const struct tree_repetition *t, struct report_repetition *ret,
		   struct tree_findings *warnings);

/* report_domains.c: which columns of rapl-power.csv, cgroup-power.csv are added up: ret by column. How many. */
unsigned report_domains(const struct tree_table *t, bool *ret, char *names, size_t size);

/* report_compare.c: what should agree and does not. */
void report_compare(const struct report_options *o, const struct report_repetition *r, struct tree_findings *warnings);

/* report_text.c, report_csv.c, report_json.c */
void report_write_text(const struct report *r, struct buf *b);
void report_write_csv(const struct report *r, struct buf *b);
void report_write_json(const struct report *r, struct buf *b);

/* report_plot.c, report_plot_sweep.c: 0 or negative errno. */
int report_plot_power(const struct report *r, enum report_source s, unsigned width, struct buf *out, struct err *err);
int report_plot_sweep(const struct report *r, enum report_source s, unsigned width, struct buf *out, struct err *err);

#endif
