/* SPDX-License-Identifier: Apache-2.0 */
/* A process without rights that reads one file and tells what it found. Files of code are hostile input: whoever runs a
 * program wrote it. The reader has the file, a pipe for its answers, little time, little memory, and no other
 * right. */
#ifndef JD_CODE_READER_H
#define JD_CODE_READER_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define READER_FILE 3 /* descriptors of the reader */
#define READER_ANSWERS 4
#define READER_DEBUG 5 /* a file with its symbols, if one was given */
#define READER_ALT 6 /* one with debug information that both refer to, if it was given */

struct reader {
	pid_t child;
	int answers; /* of the caller: it reads to the end, and closes it */
};

/* Descriptors of files to read; debug and alt may be -1. */
struct reader_files {
	int file, debug, alt;
	unsigned longest_s; /* after which the reader is ended; 0 = 120 */
};
/* Starts a process that calls work(arg) with the files as READER_* and then ends. 0 or -errno. */
int reader_start(struct reader *r, const struct reader_files *files, void (*work)(void *arg), void *arg);
/* For work: writes all of it to READER_ANSWERS, or ends the process. */
void reader_tell(const void *p, size_t n);
/* Waits for the end; call it after answers was closed. True: the reader has done its work. */
bool reader_end(struct reader *r);

#endif
