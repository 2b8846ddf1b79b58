/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of a profile on disk: a file for each minute, in pprof's form packed by gzip, in one directory. Those of the last
 * hour are kept, and no more bytes than were allowed. A file is written beside and then renamed, so that one that has its
 * name is whole. */
#ifndef JD_CHUNK_FILES_H
#define JD_CHUNK_FILES_H
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"

struct chunk_file {
	int64_t from_ns, until_ns; /* CLOCK_REALTIME */
	uint64_t bytes;
};

struct chunk_files {
	char *dir;
	int fd; /* of the directory */
	uint64_t keep_ns, bytes_max;
	struct chunk_file *v; /* in the order of time */
	uint32_t n, cap;
	uint64_t bytes;
};

/* Makes the directory, and the one it is in, where they are missing, looks for the files of an earlier run, and removes what one left half written.
 * keep_ns and bytes_max are set by the caller. 0 or negative errno with err. Call chunk_files_close in any case. */
int chunk_files_open(struct chunk_files *f, const char *dir, struct err *err);
/* Writes a file. Old ones go where the time or the room is over. 0, or negative errno with err: it is not there. */
int chunk_files_add(struct chunk_files *f, const struct chunk_file *c, const void *data, struct err *err);
/* Reads the i-th file and unpacks it. 0, -EBADMSG, -ENOMEM, or the errno of the file. */
int chunk_files_read(const struct chunk_files *f, uint32_t i, struct buf *out);
void chunk_files_close(struct chunk_files *f);
/* Writes bytes to dir/name, beside it first. 0 or negative errno. */
int chunk_file_write(int dir, const char *name, const void *data, size_t n);
#define CHUNK_NAME_MAX 64
/* Its name: "FROM-UNTIL.pb.gz", in nanoseconds since 1970. */
void chunk_file_name(const struct chunk_file *c, char ret[CHUNK_NAME_MAX]);

#endif
