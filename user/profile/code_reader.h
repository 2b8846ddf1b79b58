/* SPDX-License-Identifier: Apache-2.0 */
/* A process without rights that reads one file and tells what it found. Files of code are hostile input: whoever runs a
 * program wrote it. The reader has the file, a pipe for its answers, little time and little memory, and no other right. */
#ifndef JD_CODE_READER_H
#define JD_CODE_READER_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define READER_FILE 3 /* descriptors of the reader */
#define READER_ANSWERS 4
#define READER_DEBUG 5 /* a second file, if one was given */

struct reader {
	pid_t child;
	int answers; /* of the caller: it reads to the end, and closes it */
};

/* Starts a process that calls work(arg) with the file as READER_FILE and then ends. debug: READER_DEBUG, or -1. 0 or
 * -errno. */
int reader_start(struct reader *r, int file, int debug, void (*work)(void *arg), void *arg);
/* For work: writes all of it to READER_ANSWERS, or ends the process. */
void reader_tell(const void *p, size_t n);
/* Waits for the end; call it after answers was closed. True: the reader has done its work. */
bool reader_end(struct reader *r);

#endif
