/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an experiment tree (docs/formats/experiment.md): DATA-ROOT/EXPERIMENT/BENCHMARK/RUN/REPETITION.
 * All of it is hostile input: only plain files are opened, and names and lines are bounded before they are kept. An
 * error in a file becomes a finding with file and line. Bounds: TREE_*_MAX below, lines of 64 KiB.
 *
 * Links are followed, because a tree can be checked in as links to data that is elsewhere. */
#ifndef JD_CTL_TREE_H
#define JD_CTL_TREE_H
#include "model/schema.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/format/csv.h"
#include "base/err.h"

#define TREE_PLACES_MAX 65536 /* repetitions */
#define TREE_ENTRIES_MAX 65536 /* names in one directory */
#define TREE_COLUMNS_MAX CSV_CELLS_MAX
#define TREE_CELLS_MAX (64u << 20) /* numbers of one file */
#define TREE_EVENTS_MAX (1u << 20)
#define TREE_INFO_MAX (4u << 20) /* bytes of system_info.json */
#define TREE_FINDINGS_MAX 4096

/* Effect of a finding on the original analysis code. */
enum tree_effect { TREE_NOTE, TREE_WRONG, TREE_SKIPPED, TREE_ABORTS };

struct tree_finding {
	enum tree_effect effect;
	const char *trap; /* a literal: "index-missing" */
	char *file; /* path below the directory that was asked for */
	unsigned long line; /* 0 = the whole file */
	unsigned long more; /* number of further findings of this trap in the file */
	char *text;
};

struct tree_findings {
	struct tree_finding *list;
	unsigned n, cap;
	unsigned long left_out; /* number of findings beyond TREE_FINDINGS_MAX */
};

struct tree_where {
	const char *file; /* below the directory that was asked for */
	unsigned long line; /* 0 = the whole file */
};

static inline struct tree_where tree_at(const char *file, unsigned long line)
{
	return (struct tree_where){ file, line };
}

/* tree_check.c: adds a finding. It copies the file's name and the text; trap is a literal. A second finding of the same
 * trap in the same file is only counted, at the first one. */
void tree_find(struct tree_findings *f, enum tree_effect effect, const char *trap, struct tree_where where,
	       const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void tree_findings_free(struct tree_findings *f);
const char *tree_effect_name(enum tree_effect e);

enum tree_level { TREE_ROOT, TREE_EXPERIMENT, TREE_BENCHMARK, TREE_RUN, TREE_REPETITION };

struct tree_place {
	char *name[5]; /* by level; [TREE_ROOT] is unused */
	char *path; /* of the repetition */
	char *shown; /* path below the directory that was asked for: "150W/0" */
};

struct tree {
	struct tree_place *places; /* in natural order by run and repetition */
	unsigned n, cap;
	enum tree_level level; /* of the directory that was asked for */
};

/* tree_walk.c: finds the repetitions below dir, which may be a directory of any level. 0; -ENODATA: there is none; or
 * another negative errno. */
int tree_walk(const char *dir, struct tree *ret, struct tree_findings *f, struct err *err);
void tree_free(struct tree *t);

/* A CSV file as numbers. */
struct tree_table {
	bool absent, present; /* neither is set: it cannot be read */
	unsigned n_columns; /* without index, timestamp and the column quality of jouled */
	char *column[TREE_COLUMNS_MAX];
	size_t n, cap;
	int64_t *t_ns; /* Unix time of each row, in the order of the file */
	uint32_t *line;
	double *cells; /* n x n_columns; NAN = empty */
	size_t doubtful; /* rows whose quality is not measured or wrapped */
	unsigned quality; /* quality of all rows together */
};

enum { TREE_GPU, TREE_SAMPLES, TREE_EXTERNAL, TREE_RAPL, TREE_CGROUP, TREE_UTIL_GPU, TREE_UTIL_MEM, TREE_TABLES };
extern const char *const tree_table_file[TREE_TABLES];

struct tree_event {
	int64_t t_ns, data;
	unsigned long line;
	bool has_data;
	char name[32];
};

struct tree_quality {
	char domain[64];
	unsigned cgroup, machine;
};

struct tree_repetition {
	struct tree_table table[TREE_TABLES];
	bool has_events;
	struct tree_event *events; /* in the order of the file */
	size_t n_events;
	uint32_t cap_events;
	bool has_info, info_broken;
	unsigned external_mw; /* mW of a count; 0 = not said */
	char samples_from[32], device[128];
	struct tree_quality
		quality[SCHEMA_MAX_DOMAINS]; /* quality of energy in files of jouled, as system_info.json says */
	unsigned n_quality;
};

/* tree_table.c: fills t from the file of table `which`. 0 or -ENOMEM. A broken file is a finding and no error, an
 * absent one is neither. */
int tree_table_read(int dir, unsigned which, const char *shown, struct tree_table *t, struct tree_findings *f);
void tree_table_free(struct tree_table *t);
int tree_column(const struct tree_table *t, const char *name); /* -1 = none */
static inline double tree_cell(const struct tree_table *t, size_t row, unsigned column)
{
	return t->cells[row * t->n_columns + column];
}

/* tree_files.c: reads timestamps.csv. 0 or -ENOMEM. */
int tree_events_read(int dir, const char *shown, struct tree_repetition *r, struct tree_findings *f);

/* tree_walk.c: reads the files of a repetition. 0; or negative errno: the directory cannot be read. */
int tree_repetition_read(const struct tree_place *p, struct tree_repetition *ret, struct tree_findings *f,
			 struct err *err);
void tree_repetition_free(struct tree_repetition *r);
/* Returns the quality of a domain's energy in rapl-power.csv (machine) or cgroup-power.csv; QUALITY_MEASURED where
 * system_info.json does not name it. */
unsigned tree_quality_of(const struct tree_repetition *r, const char *domain, bool machine);

/* tree_walk.c: the part of a repetition that counts, by the rules of the original reader. */
struct tree_window {
	int64_t start_ns, end_ns;
	unsigned epochs;
	bool by_epochs;
};
int tree_window_of(const struct tree_repetition *r, struct tree_window *ret, struct err *err);

/* tree_check.c: finds the values on which the original reader stops or goes wrong. */
void tree_check(const struct tree_place *p, const struct tree_repetition *r, struct tree_findings *f);

#endif
