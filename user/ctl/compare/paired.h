/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of several commands side by side: a value per command, figure and round. Round i of every command ran close
 * together in time, so that what changed on the machine changed for all of them. */
#ifndef JD_COMPARE_PAIRED_H
#define JD_COMPARE_PAIRED_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "bootstrap.h"

#define SERIES_SIDES_MAX 8
#define SERIES_METRICS_MAX 96
#define SERIES_NAME_MAX 128

enum series_unit {
	SERIES_MICROJOULES,
	SERIES_NANOSECONDS,
	SERIES_WATTS,
	SERIES_JOULE_SECONDS,
	SERIES_BYTES,
	SERIES_COUNT,
};

struct series_metric {
	char name[SERIES_NAME_MAX]; /* key in JSON and CSV: "energy_total_uj" */
	const char *title; /* for people: "energy" */
	enum series_unit unit;
	bool shown; /* also in text, not in JSON alone */
	unsigned quality; /* the worst of all runs */
};

struct series_side {
	const char *command; /* as it was typed; belongs to the caller */
	unsigned runs, failed;
};

struct series {
	unsigned n_sides, n_metrics, n_rounds;
	uint64_t seed;
	const char *judge; /* name of the metric that a verdict is about; NULL = energy, else CPU time */
	struct series_side side[SERIES_SIDES_MAX];
	struct series_metric metric[SERIES_METRICS_MAX];
	double *v; /* n_sides x n_metrics x n_rounds; NaN = not known */
	int *exit_status; /* n_sides x n_rounds: of the first `runs` of a side */
};

struct series_ratio {
	unsigned n; /* number of rounds in which both are known; 0 = there is no ratio */
	double ratio; /* mean of a side divided by that of the first, over these rounds */
	struct interval interval; /* 95 % */
};

/* Makes room for n_rounds of the sides and metrics that are filled in. 0 or -ENOMEM. */
int series_make_room(struct series *s, unsigned n_rounds);
void series_free(struct series *s); /* zeroed accepted */
double *series_values(const struct series *s, unsigned side, unsigned metric); /* n_rounds values */
int *series_exit_status(const struct series *s, unsigned side); /* n_rounds values */
struct summary series_summary(const struct series *s, unsigned side, unsigned metric);
/* Compares a side with the first. */
struct series_ratio series_ratio(const struct series *s, unsigned side, unsigned metric);
/* Returns the metric that a verdict is about: s->judge, or the energy where there is some, else the CPU time. */
unsigned series_judged(const struct series *s);
/* Half the interval of the mean divided by the mean, of the judged metric and the side where it is widest. Infinite
 * with fewer than two rounds. By Student's t. */
double series_width(const struct series *s);

static inline char series_letter(unsigned side)
{
	return (char)('A' + side);
}

/* A unit in which a value has one to three digits before the point. */
struct series_scale {
	double factor;
	const char *unit;
};
struct series_scale series_scale_of(double value, enum series_unit unit);

/* "B uses 1.42 x (1.38 to 1.46) the energy of A." and a table per figure. */
void series_write_text(const struct series *s, struct buf *b);
/* The table alone, of one command's runs. */
void series_write_spread(const struct series *s, struct buf *b);
void series_write_markdown(const struct series *s, struct buf *b);
/* A picture (SVG): the judged figure of each run over the rounds, a colour and a shape per command, lines at the means. */
void series_write_plot(const struct series *s, struct buf *b);
/* Writes the sentence about a side, escaped, without a line break. */
void series_sentence(const struct series *s, unsigned side, struct buf *b);

#endif
