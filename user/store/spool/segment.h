/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this folder. A segment NNNNNNNNNNNNNNNN.spool is a head of 16 bytes and records:
 *
 * magic 4 | length 4 | checksum 4 | weight 4 | time ns 8 | length bytes
 *
 * All numbers are little endian. The checksum is CRC-32 (zlib) of length, time, weight unless it is 0, and bytes. The file `cursor` has two
 * slots that are written in turn, so one of them is always whole. */
#ifndef JD_SPOOL_SEGMENT_H
#define JD_SPOOL_SEGMENT_H
#include <pthread.h>
#include "spool.h"

#define SPOOL_MAGIC 0x31646f6aU /* "jod1" */
#define SPOOL_HEAD 24u
#define SPOOL_FILE_HEAD 16u
#define SPOOL_NAME_MAX 32

extern const char spool_file_head[SPOOL_FILE_HEAD];

struct spool_head {
	uint32_t magic, len, crc, weight;
	int64_t real_ns;
};
_Static_assert(sizeof(struct spool_head) == SPOOL_HEAD, "as it stands in the file");

struct spool_segment {
	uint64_t number;
	uint64_t size;
	uint64_t waiting; /* records after the cursor */
	uint64_t weight; /* of these */
	int64_t oldest_ns, newest_ns; /* of the waiting records */
	bool unreadable; /* unreadable in part: lost when its turn comes, and not appended to */
};

static inline void spool_counted(struct spool_segment *g, int64_t real_ns, uint32_t weight)
{
	g->waiting++;
	g->weight += weight;
	g->oldest_ns = real_ns < g->oldest_ns ? real_ns : g->oldest_ns;
	g->newest_ns = real_ns > g->newest_ns ? real_ns : g->newest_ns;
}

struct spool {
	pthread_mutex_t lock;
	int dir, lock_fd, cursor_fd;
	int write_fd, read_fd; /* write_fd: the last segment; read_fd: the first; -1 = closed */
	uint64_t max_bytes, max_age_ns, segment_bytes;
	struct spool_segment *segments; /* in order of number */
	unsigned n_segments, cap_segments;
	uint64_t read_at; /* offset in the first segment */
	uint64_t next_number, cursor_turn;
	struct spool_mark taken; /* the record of the last spool_next, while is_taken */
	bool is_taken, taken_dropped; /* until spool_done; its segment was dropped meanwhile */
	struct spool_stats stats;
};

/* segment.c: the file of one segment. fd or negative errno. */
int spool_file_open(const struct spool *s, uint64_t number, int flags);
void spool_file_remove(const struct spool *s, uint64_t number);
int spool_file_number(const char *name, uint64_t *ret); /* 0, or -EINVAL: another file */
int spool_write_all(int fd, const void *p, size_t n, uint64_t at);
int spool_read_all(int fd, void *p, size_t n, uint64_t at); /* -ENODATA: the file ends before */
uint32_t spool_crc(const struct spool_head *h, const void *data);
/* Finds the next record at or after *at whose bytes fit into size. Counts skipped bytes in *ret_skipped.
 * -ENOENT: none. Does not check the checksum. */
int spool_find(int fd, uint64_t *at, uint64_t size, struct spool_head *ret, uint64_t *ret_skipped);
/* Sets the size of a segment and counts its whole records after `at`. Cuts off a torn end when it is the last
 * file. */
int spool_look_at(struct spool *s, struct spool_segment *g, uint64_t at, bool last);

#endif
