/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of records on disk: append-only segment files in a directory of its own. Each record has a checksum,
 * and records are taken in the order they came. The spool is bounded in bytes and in age; it drops the oldest
 * records first and counts them. When the program is killed, no record whose append has returned is lost, and a
 * record that was taken but not confirmed is delivered once more. A power failure may lose what the kernel had
 * not written yet. One process and two threads (one appends, one takes) use a spool at a time.
 * docs/formats/spool.md has the layout. */
#ifndef JD_SPOOL_H
#define JD_SPOOL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"

#define SPOOL_RECORD_MAX ((size_t)64 << 20)

struct spool_options {
	const char *dir; /* created when it is missing, mode 0700 */
	uint64_t max_bytes; /* 0 = 256 MiB; at least 64 KiB */
	uint64_t max_age_ns; /* 0 = any age */
};

struct spool_stats {
	uint64_t waiting; /* records */
	uint64_t bytes; /* of all files */
	uint64_t dropped_full; /* records dropped: no room in max_bytes, or on the disk */
	uint64_t dropped_old; /* records dropped: older than max_age_ns */
	uint64_t dropped_weight; /* sum of the weights of all records that were dropped, for any reason */
	uint64_t damaged_bytes; /* skipped bytes: torn by a crash, changed on disk, or taken away */
	int error; /* why the last dropped_full happened: negative errno of its write; 0 = max_bytes */
	int sync_error; /* negative errno of the last spool_sync: a power failure would lose records */
};

struct spool;
/* Position of a record, for spool_done. */
struct spool_mark {
	uint64_t segment, end;
	uint32_t weight;
};

/* 0 or negative errno with err. -EBUSY: another process uses the spool. */
int spool_open(const struct spool_options *o, struct spool **ret, struct err *err);
void spool_close(struct spool *s); /* NULL accepted; records that wait stay */
/* Appends a record. 0, or negative errno: then the record was dropped and counted (-EMSGSIZE: larger than the
 * spool takes). */
int spool_append(struct spool *s, int64_t real_ns, const void *data, size_t len);
/* The same for a record with a weight: what is lost with it, in a unit of the caller's. Records without one have 0. */
int spool_append_weighed(struct spool *s, int64_t real_ns, uint32_t weight, const void *data, size_t len);
/* Appends the oldest waiting record to out. The record stays until spool_done. -ENOENT: none waits. now_ns is
 * CLOCK_REALTIME, as real_ns of spool_append; the record's age is their difference. */
int spool_next(struct spool *s, int64_t now_ns, struct buf *out, struct spool_mark *ret);
/* Releases that record and all before it. */
void spool_done(struct spool *s, const struct spool_mark *m);
void spool_sync(struct spool *s); /* fsync; may take long */
void spool_get_stats(struct spool *s, struct spool_stats *ret);

/* Reads what a spool holds without taking it (offline.c). Locks, moves and repairs nothing, so a running agent is
 * not disturbed. Calls each for every whole record, oldest first, until it returns non-zero; that value is returned.
 * path: the spool's directory, or one of its files. 0; -ENODATA: path is neither (*err is not set); or another
 * errno with err. */
int spool_read(const char *path, int (*each)(void *ctx, int64_t real_ns, const void *data, size_t len), void *ctx,
	       struct err *err);

#endif
