/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a file, a stream or memory, pulled one piece at a time: bounded, counted, and every
 * failure says at which byte what was expected and what was found. A stream is read as it comes: no
 * call waits for more than it was asked for. */
#ifndef JD_CTL_INPUT_H
#define JD_CTL_INPUT_H
#include <stdint.h>
#include <sys/types.h>
#include "../base/buf.h"
#include "../base/err.h"

#define INPUT_PEEK_MAX 4096u

struct input;

/* The descriptor stays the caller's; -1 = the n bytes at p, which stay the caller's too. subject
 * begins every message and is copied. NULL: no memory. */
struct input *input_new(int fd, const void *p, size_t n, const char *subject);
void input_free(struct input *in);
/* Called before it waits for the descriptor: the time to write what is ready. 0 or negative errno. */
void input_before_wait(struct input *in, int (*fn)(void *arg), void *arg);
/* The first failure, of whatever layer; later calls fail the same way. */
const struct err *input_failure(const struct input *in);
const char *input_subject(const struct input *in);
uint64_t input_offset(const struct input *in);

/* All below: negative errno on failure. */
/* What is there, at least n bytes unless the input ends (n <= INPUT_PEEK_MAX), without taking them: how
 * many. *ret is valid until the next call. */
int input_peek(struct input *in, size_t n, const uint8_t **ret);
/* Exactly n bytes; dst NULL: nowhere. */
int input_take(struct input *in, void *dst, size_t n, const char *expected);
/* n bytes appended: memory grows with what comes, not with what was promised. */
int input_append(struct input *in, struct buf *b, size_t n, const char *expected);
/* -EBADMSG, with the byte that is wrong. */
int input_fail(struct input *in, uint64_t offset, const char *expected, const char *found, ...)
	__attribute__((format(printf, 4, 5)));
/* Another failure, already described. */
int input_fail_as(struct input *in, const struct err *err);
/* As read(2), for layers with a buffer of their own. arg is the input; negative errno for an error. */
ssize_t input_read(void *arg, void *dst, size_t n);

#endif
