/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_RECORDER_INTERNAL_H
#define JD_RECORDER_INTERNAL_H
#include <pthread.h>
#include "../base/buf.h"
#include "recorder.h"

#define RECORDER_EXTRA_MAX 4 /* files of others */
#define GPU_HELD 32 /* rows kept until the columns are known */

struct recorder_csv {
	int fd; /* -1 = no row yet */
	uint64_t rows;
	unsigned n; /* columns behind index and timestamp */
	struct buf head, out;
};

struct recorder_syncer {
	pthread_t thread;
	pthread_mutex_t lock; /* the next ones */
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
	int around_fd, dir_fd; /* around_fd is locked as long as this recorder lives */
	struct recorder_csv csv[RECORDER_TABLES];
	struct recorder_syncer sync;
	struct err failed; /* code 0 = nothing */
	/* recorder_gpu.c */
	uint32_t gpu_fields; /* those of the desc, then those of the file */
	bool gpu_known;
	struct gpu_row held[GPU_HELD];
	unsigned n_held;
	uint64_t gpu_dropped;
	/* recorder_meters */
	struct {
		uint8_t device, channel;
		bool fresh;
		int64_t uw;
	} channel[METER_MAX_DEVICES * METER_MAX_CHANNELS];
	unsigned n_channels;
	int64_t unit_uw;
	int64_t meter_ns; /* newest of the row that is being filled */
};

/* recorder.c */
void recorder_fail(struct recorder *r, int code, const char *what);
/* recorder_csv.c */
int recorder_csv_flush(struct recorder *r, enum recorder_table t);
/* recorder_gpu.c: the end of the repetition, columns have to be decided */
void recorder_gpu_settle(struct recorder *r);
/* recorder_sync.c */
int recorder_sync_start(struct recorder_syncer *s);
void recorder_sync_add(struct recorder_syncer *s, int fd);
int recorder_sync_stop(struct recorder_syncer *s); /* everything is on the disk, or negative errno */
/* recorder_place.c */
bool recorder_is_baseline(const char *run);
/* Is it still this directory that the path leads to? */
bool recorder_is_at(int dir_fd, const char *path);
/* Renames around/name to its place. 0 or negative errno, with err. ret_to: RECORDER_PATH_MAX bytes. */
int recorder_rename(const char *parent, const char *around, const char *run, char *ret_to, unsigned *ret_number,
		    struct err *err);
void recorder_remove_tree(const char *path);
/* recorder_recover.c: snapshot.cbor, if there is one, ends with a whole document */
void recorder_trim_snapshots(int dir_fd);

#endif
