/* SPDX-License-Identifier: Apache-2.0 */
/* Energy per run and repetition of an experiment tree, by the rules of the original (docs/formats/experiment.md): the
 * window is that of tree_window_of, energy is a sum of trapezoids without interpolation of power, and means are over
 * rows, then over repetitions. */
#ifndef JD_CTL_REPORT_H
#define JD_CTL_REPORT_H
#include <math.h>
#include "base/buf.h"
#include "base/statistics.h"
#include "ctl/experiment/tree.h"
#include "model/cost.h"

#define REPORT_COMPAT_UNIT 10 /* mW of a count, in the original reader */
#define REPORT_COMPAT_IDLE_W 632.625 /* idle power that the original reader subtracts: 7/8 of 723 W */

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
enum report_value {
	REPORT_ENERGY,
	REPORT_TIME,
	REPORT_POWER,
	REPORT_EDP,
	REPORT_ED2P,
	REPORT_COST,
	REPORT_CO2,
	REPORT_VALUES
};

extern const char *const report_source_name[REPORT_SOURCES];
extern const char *const report_mean_name[REPORT_MEANS]; /* with its unit: "util_gpu_percent" */
extern const char *const report_value_name[REPORT_VALUES]; /* "energy_j" */

struct report_options {
	bool compat;
	double external_idle_w;
	unsigned external_mw; /* mW of a count; 0 = as system_info.json says, 1 where it does not */
	unsigned sources; /* bit per source */
	const struct cost *cost; /* NULL = not asked for */
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
	unsigned quality; /* of its power and energy; without WRAPPED */
	size_t rows;
	int64_t first_ns, last_ns; /* times of the first and last row that count */
	double value[REPORT_VALUES]; /* NAN = not known */
};

struct report_repetition {
	const struct tree_place *place;
	bool usable;
	struct tree_window window;
	struct report_result source[REPORT_SOURCES];
	double mean[REPORT_MEANS]; /* of gpu-power.csv; NAN = not known */
	double counter_j; /* energy by the GPU's counter, over the rows of sd that count; NAN = not known */
	char domains[2][512]; /* names of the domains that rapl and cgroup add up */
	char samples_from[32]; /* source of hd as system_info.json says: "nvml", "rapl", "cgroup" ... */
	unsigned external_mw; /* mW of a count of external, as it was used */
};

struct report_run {
	unsigned first, n;
}; /* index of its first repetition, and their number */

struct report {
	struct report_options o;
	struct tree tree;
	struct report_repetition *list;
	unsigned n;
	struct report_run *runs;
	unsigned n_runs;
	struct tree_findings found; /* traps of the original reader */
	struct tree_findings warnings; /* warnings about the figures of this report */
};

/* report.c: reads the tree. 0; or negative errno: there is nothing to report. Call report_free in both cases. */
int report_read(struct report *r, const char *dir, struct err *err);
void report_free(struct report *r);
/* Computes the statistics over the repetitions of a run that know the value. Returns their number. */
unsigned report_stats(const struct report *r, const struct report_run *run, enum report_source s, enum report_value v,
		      struct statistics *ret);
/* Costs and CO2 are values where they were asked for. */
bool report_shows(const struct report *r, enum report_value v);
/* Returns the quality over the repetitions that know the source's energy. */
unsigned report_quality(const struct report *r, const struct report_run *run, enum report_source s);
unsigned report_mean_stats(const struct report *r, const struct report_run *run, enum report_mean m,
			   struct statistics *ret);

/* report_energy.c: reads the power of a source. 0 or negative errno. An absent source has no points and is no error. */
int report_points_of(const struct report_options *o, const struct tree_repetition *t, enum report_source s,
		     struct report_points *ret);
/* Returns in *ret the increase of a cumulative column between *from and *to, with straight lines between its rows.
 * *from and *to are narrowed to the time that the rows cover. false: fewer than two rows, no time in common, or the
 * column decreases. */
bool report_counter(const struct tree_table *t, unsigned column, int64_t *from, int64_t *to, double *ret);
/* Fills the sources, domains and the fields behind them of a repetition, and adds warnings. 0 or negative errno. */
int report_measure(const struct report_options *o, const struct tree_repetition *t, struct report_repetition *ret,
		   struct tree_findings *warnings);

/* Describes the power of a source: "power of the machine (package-0 + dram-0), estimated". Writes it to `what` and
 * returns that. */
#define REPORT_WHAT_MAX 640
const char *report_what(const struct report_repetition *t, enum report_source s, unsigned quality,
			char what[REPORT_WHAT_MAX]);

/* report.c: chooses the columns of rapl-power.csv or cgroup-power.csv that are added up. ret is by column. Returns
 * their number. */
unsigned report_domains(const struct tree_table *t, bool *ret, char *names, size_t size);

/* report_text.c: text for people, CSV for tables, JSON for programs. */
void report_write_text(const struct report *r, struct buf *b);
void report_write_csv(const struct report *r, struct buf *b);
void report_write_json(const struct report *r, struct buf *b);

/* report_plot.c, sweep.c: draw a picture as SVG. 0 or negative errno. */
int report_plot_power(const struct report *r, enum report_source s, unsigned width, struct buf *out, struct err *err);
int report_plot_sweep(const struct report *r, enum report_source s, unsigned width, struct buf *out, struct err *err);

#endif
