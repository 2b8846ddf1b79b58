/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the experiment tree (docs/formats/experiment.md; documents/data-model.rst), one repetition at a time.
 * Files grow in a staged directory beside the runs, which readers skip. The directory is renamed into its place
 * when it is whole. A file appears with its first row. After a failure all later writes fail too;
 * recorder_flush reports the error. A recorder is used by one thread. */
#ifndef JD_RECORDER_H
#define JD_RECORDER_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "model/gpu.h"
#include "model/meter.h"

#define RECORDER_COLUMNS_MAX 128
#define RECORDER_PATH_MAX 4096

struct recorder;

struct recorder_place {
	const char *root, *experiment;
	const char *benchmark; /* NULL: the place is experiment/run, and run is _baseline or _baseline-gpuN */
	const char *run;
};

enum recorder_table {
	RECORDER_EVENTS, /* timestamps.csv */
	RECORDER_GPU, /* gpu-power.csv */
	RECORDER_EXTERNAL, /* power-external.csv */
	RECORDER_POWER_SAMPLES,
	RECORDER_GPU_SAMPLES,
	RECORDER_MEM_SAMPLES, /* in the order of enum gpu_ring */
	RECORDER_CGROUP,
	RECORDER_RAPL,
	RECORDER_COUNTERS,
	RECORDER_TABLES
};
const char *recorder_table_file(enum recorder_table t);

/* Checks that text can be the name of an experiment, benchmark or run. 0 or -EINVAL. subject begins the
 * message. */
int recorder_name_check(const char *subject, const char *text, struct err *err);

/* Makes path and its parents where they are missing. */
int recorder_make_dirs(const char *path, struct err *err);

/* Makes the directories. Several recorders of one run do not disturb each other. 0 or negative errno. */
int recorder_open(const struct recorder_place *p, struct recorder **ret, struct err *err);
/* The staged directory, and the directory around it. Files in the latter are not published. */
const char *recorder_path(const struct recorder *r);
const char *recorder_around(const struct recorder *r);

/* Sets the columns after index and timestamp. Call before the first row of a table only. */
void recorder_columns(struct recorder *r, enum recorder_table t, const char *const *names, unsigned n);
#define RECORDER_EMPTY INT64_MIN /* was not measured: an empty cell, for files that we add */
void recorder_row(struct recorder *r, enum recorder_table t, int64_t real_ns, const int64_t *v); /* v: all columns */
void recorder_sample(struct recorder *r, enum gpu_ring ring, int64_t real_us, int64_t value);
void recorder_event(struct recorder *r, int64_t real_ns, const char *event, int64_t data);
uint64_t recorder_rows(const struct recorder *r, enum recorder_table t);

/* gpu-power.csv has the columns that d names and the first rows contain. A later row that lacks one of them is
 * dropped, because an empty cell makes other readers take the column for fractions. */
void recorder_gpu(struct recorder *r, const struct gpu_desc *d);
void recorder_gpu_row(struct recorder *r, const struct gpu_row *row);
uint64_t recorder_gpu_dropped(const struct recorder *r);
/* power-external.csv gets a row each time every channel has a new value, at the time of the latest value.
 * unit_uw: 1000 writes milliwatt, 10000 counts of 10 mW. -ENOSPC: more channels than one file has. */
int recorder_meters(struct recorder *r, const struct meter_desc *d, unsigned n, int64_t unit_uw);
void recorder_meter_sample(struct recorder *r, const struct meter_sample *s);

/* Writes a whole file and replaces an older one (system_info.json). */
void recorder_put(struct recorder *r, const char *name, const char *text, size_t size);
/* Returns a descriptor for a file that the caller writes and the recorder synchronises; -1 = it could not be
 * made. */
int recorder_file(struct recorder *r, const char *name);

/* Writes the buffered rows to the kernel. A thread puts them on the disk at most a second later. 0, or the first
 * failure. */
int recorder_flush(struct recorder *r, struct err *err);
/* Publishes the repetition; *ret_number is its number. On failure it stays staged. Frees r in both cases. */
int recorder_publish(struct recorder *r, unsigned *ret_number, struct err *err);
void recorder_keep(struct recorder *r); /* leaves it staged, for recorder_recover; frees r; NULL accepted */
void recorder_discard(struct recorder *r); /* removes it; NULL accepted */

/* Publishes repetitions that were cut off below root: staged directories that no recorder holds any more. mend
 * may change a repetition before it is published and returns 0 or negative errno; NULL = no change. said is
 * called for each. to = NULL: it could not be published, and err says why; -ENODATA = it was empty and was
 * removed. Returns the number published, or negative errno. */
struct recorder_recovery {
	int (*mend)(void *arg, int dir_fd, struct err *err);
	void (*said)(void *arg, const char *from, const char *to, const struct err *err);
	void *arg;
};
int recorder_recover(const char *root, const struct recorder_recovery *how, struct err *err);

#endif
