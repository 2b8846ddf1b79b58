/* SPDX-License-Identifier: Apache-2.0 */
/* An experiment tree as it is read (docs/formats/experiment.md): DATA-ROOT/EXPERIMENT/BENCHMARK/RUN/REPETITION.
 * All of it is hostile input: only plain files are opened, names and lines are bounded before they are kept, and
 * what is wrong becomes a finding with file and line. Bounds: TREE_*_MAX below, lines of 64 KiB.
 *
 * Links are followed: trees that were checked in with their data elsewhere are made of them. */
#ifndef JD_CTL_TREE_H
#define JD_CTL_TREE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../base/err.h"

#define TREE_PLACES_MAX 65536 /* repetitions */
#define TREE_ENTRIES_MAX 65536 /* names in one directory */
#define TREE_COLUMNS_MAX 256
#define TREE_CELLS_MAX (64u << 20) /* numbers of one file */
#define TREE_EVENTS_MAX (1u << 20)
#define TREE_INFO_MAX (4u << 20) /* bytes of system_info.json */
#define TREE_FINDINGS_MAX 4096

/* What the original analysis code makes of it. */
enum tree_effect { TREE_NOTE, TREE_WRONG, TREE_SKIPPED, TREE_ABORTS };

struct tree_finding {
	enum tree_effect effect;
	const char *trap; /* a literal: "index-missing" */
	char *file; /* below what was asked for */
	unsigned long line; /* 0 = the whole file */
	unsigned long more; /* the same in as many lines behind it */
	char *text;
};

struct tree_findings {
	struct tree_finding *list;
	unsigned n, cap;
	unsigned long left_out; /* beyond TREE_FINDINGS_MAX */
};

/* tree_finding.c. Further ones of a file and trap are counted at the first. */
void tree_find(struct tree_findings *f, enum tree_effect effect, const char *trap, const char *file, unsigned long line,
	       const char *fmt, ...) __attribute__((format(printf, 6, 7)));
bool tree_found(const struct tree_findings *f, const char *trap, const char *file);
void tree_findings_free(struct tree_findings *f);
const char *tree_effect_name(enum tree_effect e);

enum tree_level { TREE_ROOT, TREE_EXPERIMENT, TREE_BENCHMARK, TREE_RUN, TREE_REPETITION };

struct tree_place {
	char *name[5]; /* by level; [TREE_ROOT] is unused */
	char *path; /* of the repetition */
	char *shown; /* the same below what was asked for: "150W/0" */
};

struct tree {
	struct tree_place *places; /* runs in natural order, repetitions too */
	unsigned n, cap;
	enum tree_level level; /* of the directory that was asked for */
};

/* tree_walk.c. Which repetitions there are below dir, which may itself be of any level. 0; -ENODATA: none;
 * or another negative errno. */
int tree_walk(const char *dir, struct tree *ret, struct tree_findings *f, struct err *err);
void tree_free(struct tree *t);

/* A CSV file as numbers. */
struct tree_table {
	bool absent, present; /* neither: it cannot be read */
	unsigned n_columns; /* without index, timestamp and our quality */
	char *column[TREE_COLUMNS_MAX];
	size_t n, cap;
	int64_t *t_ns; /* Unix time of each row, as they stand in the file */
	uint32_t *line;
	double *cells; /* n x n_columns; NAN = empty */
	size_t doubtful; /* rows whose quality is not measured or wrapped */
	char quality[32]; /* of the first of them */
};

enum { TREE_GPU, TREE_SAMPLES, TREE_EXTERNAL, TREE_RAPL, TREE_CGROUP, TREE_UTIL_GPU, TREE_UTIL_MEM, TREE_TABLES };
extern const char *const tree_table_file[TREE_TABLES];

struct tree_event {
	int64_t t_ns, data;
	unsigned long line;
	bool has_data;
	char name[32];
};

struct tree_repetition {
	struct tree_table table[TREE_TABLES];
	bool has_events;
	struct tree_event *events; /* in the order of the file */
	size_t n_events, cap_events;
	bool has_info, info_broken;
	unsigned external_mw; /* of a count, 0 = not said */
	char samples_from[32], device[128];
	char quality[64]; /* of energy in our files, the first that is not measured; "" = all are */
};

/* tree_table.c: fills t from the file of table `which`. 0 (also when it is absent or broken: a finding), -ENOMEM. */
int tree_table_read(int dir, unsigned which, const char *shown, struct tree_table *t, struct tree_findings *f);
void tree_table_free(struct tree_table *t);
int tree_column(const struct tree_table *t, const char *name); /* -1 = none */
static inline double tree_cell(const struct tree_table *t, size_t row, unsigned column)
{
	return t->cells[row * t->n_columns + column];
}

/* tree_events.c: timestamps.csv. 0 or -ENOMEM. */
int tree_events_read(int dir, const char *shown, struct tree_repetition *r, struct tree_findings *f);

/* tree_repetition.c. 0 or negative errno: the directory cannot be read. */
int tree_repetition_read(const struct tree_place *p, struct tree_repetition *ret, struct tree_findings *f,
			 struct err *err);
void tree_repetition_free(struct tree_repetition *r);

/* tree_window.c: the part that counts, by the rules of the original reader. */
struct tree_window {
	int64_t start_ns, end_ns;
	unsigned epochs;
	bool by_epochs;
};
int tree_window_of(const struct tree_repetition *r, struct tree_window *ret, struct err *err);

/* tree_check.c: what the values mean for the original reader. */
void tree_check(const struct tree_place *p, const struct tree_repetition *r, struct tree_findings *f);

#endif
