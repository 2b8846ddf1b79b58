/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this folder: the open files of an experiment tree. */
#ifndef JD_RECORDER_FILES_H
#define JD_RECORDER_FILES_H
#include <pthread.h>
#include "base/buf.h"
#include "recorder.h"

#define RECORDER_EXTRA_MAX 4 /* files that callers write */
#define RECORDER_TIME 80 /* bytes of a time as text; times written here have 26 */
#define GPU_HELD 32 /* rows kept until the columns are known */

struct recorder_csv {
	int fd; /* -1 = no row yet */
	uint64_t rows;
	unsigned n; /* columns after index and timestamp */
	struct buf head, out;
};

struct recorder_syncer {
	pthread_t thread;
	pthread_mutex_t lock; /* protects the next members */
	pthread_cond_t wake;
	int fds[RECORDER_TABLES + RECORDER_EXTRA_MAX];
	unsigned n;
	bool stop;
	int failed; /* negative errno of the first failure */
	bool running;
};

struct recorder {
	struct recorder_place place; /* copied strings */
	char around[RECORDER_PATH_MAX], path[RECORDER_PATH_MAX];
	int around_fd, dir_fd; /* around_fd is locked while this recorder lives */
	struct recorder_csv csv[RECORDER_TABLES];
	struct recorder_syncer sync;
	struct err failed; /* code 0 = nothing */
	/* rows of the GPU */
	uint32_t gpu_fields; /* first the fields of the desc, later those of the file */
	bool gpu_known;
	struct gpu_row held[GPU_HELD];
	unsigned n_held;
	uint64_t gpu_dropped;
	/* rows of meters */
	struct {
		uint8_t device, channel;
		bool fresh;
		int64_t uw;
	} channel[METER_MAX_DEVICES * METER_MAX_CHANNELS];
	unsigned n_channels;
	int64_t unit_uw;
	int64_t meter_ns; /* latest time in the row being filled */
};

/* recorder.c */
void recorder_fail(struct recorder *r, int rc, const char *what);
/* rows_csv.c */
int recorder_csv_flush(struct recorder *r, enum recorder_table t);
void recorder_time(char ret[RECORDER_TIME], int64_t real_ns);
/* recorder.c */
void recorder_sync_add(struct recorder_syncer *s, int fd);
/* place.c */
bool recorder_is_baseline(const char *run);
/* True when path still leads to this directory. */
bool recorder_is_at(int dir_fd, const char *path);
/* The place that a run was published at. The number is 0 for a baseline. */
struct recorder_published {
	char path[RECORDER_PATH_MAX];
	unsigned number;
};
/* Renames around/run to its place below parent. 0 or negative errno, with err; *ret is set on success only. */
int recorder_rename(const char *parent, const char *around, const char *run, struct recorder_published *ret,
		    struct err *err);
void recorder_remove_tree(const char *path);
/* recover.c: cuts snapshot.cbor, if there is one, after its last whole document */
void recorder_trim_snapshots(int dir_fd);

#endif
