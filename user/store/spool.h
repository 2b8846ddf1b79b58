/* SPDX-License-Identifier: Apache-2.0 */
/* Records that wait on disk for whoever takes them: append-only segment files in a directory of its
 * own, each record with a checksum, taken in the order they came. Bounded in bytes and in age; the
 * oldest go first and are counted. A program killed at any point loses no record whose append has
 * returned, and gets one that was taken but not yet confirmed once more. A power failure may cost
 * what the kernel had not written yet. One process and two threads (one appends, one takes) at a time.
 * docs/formats/spool.md has the layout. */
#ifndef JD_SPOOL_H
#define JD_SPOOL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../base/buf.h"
#include "../base/err.h"

#define SPOOL_RECORD_MAX ((size_t)64 << 20)

struct spool_options {
	const char *dir; /* made when it is not there, mode 0700 */
	uint64_t max_bytes; /* 0 = 256 MiB; at least 64 KiB */
	uint64_t max_age_ns; /* 0 = any age */
};

struct spool_stats {
	uint64_t waiting; /* records */
	uint64_t bytes; /* of all files */
	uint64_t dropped_full; /* records: no room in max_bytes, or on the disk */
	uint64_t dropped_old; /* records: older than max_age_ns */
	uint64_t damaged_bytes; /* read over: torn by a crash, changed on disk, or taken away by somebody */
	int error; /* why the last one was dropped_full: negative errno of its write; 0 = for max_bytes */
};

struct spool;
/* Where a record stands: for spool_done. */
struct spool_mark {
	uint64_t segment, end;
};

/* -EBUSY: another process has it. */
int spool_open(const struct spool_options *o, struct spool **ret, struct err *err);
void spool_close(struct spool *s); /* NULL accepted; what waits stays */
/* 0, or negative errno: then it was dropped and counted (-EMSGSIZE: larger than the spool takes). */
int spool_append(struct spool *s, int64_t real_ns, const void *data, size_t len);
/* The oldest record that waits, appended to out; it stays until it is done. -ENOENT: none. now_ns: CLOCK_REALTIME
 * as in spool_append, for its age. */
int spool_next(struct spool *s, int64_t now_ns, struct buf *out, struct spool_mark *ret);
/* That record, and all before it, need not be kept. */
void spool_done(struct spool *s, const struct spool_mark *m);
void spool_sync(struct spool *s); /* to the disk itself; may take long */
void spool_get_stats(struct spool *s, struct spool_stats *ret);

#endif
