/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a file, a stream or memory, taken piece by piece within bounds. Every failure names its byte, what was
 * expected there and what was found. No call waits for more bytes of a stream than it was asked for. */
#ifndef JD_CTL_INPUT_H
#define JD_CTL_INPUT_H
#include <stdint.h>
#include <sys/types.h>
#include "base/buf.h"
#include "base/err.h"

#define INPUT_PEEK_MAX 4096u

struct input;

/* The descriptor stays the caller's; -1 = the n bytes at p, which stay the caller's too. subject
 * begins every message and is copied. NULL: no memory. */
struct input *input_new(int fd, const void *p, size_t n, const char *subject);
void input_free(struct input *in);
/* fn is called before the input waits for the descriptor, so that finished output can be written first. fn returns 0 or
 * negative errno. */
void input_before_wait(struct input *in, int (*fn)(void *arg), void *arg);
/* The first failure of any layer. Later calls fail in the same way. */
const struct err *input_failure(const struct input *in);
const char *input_subject(const struct input *in);
uint64_t input_offset(const struct input *in);

/* The functions below return negative errno on failure. */
/* Looks at the next bytes without taking them: at least n unless the input ends (n <= INPUT_PEEK_MAX). Returns their
 * number; *ret is valid until the next call. */
int input_peek(struct input *in, size_t n, const uint8_t **ret);
/* Takes exactly n bytes; dst NULL = the bytes are dropped. */
int input_take(struct input *in, void *dst, size_t n, const char *expected);
/* Appends n bytes. Memory grows with the bytes that arrive, not with n. */
int input_append(struct input *in, struct buf *b, size_t n, const char *expected);
/* Stores -EBADMSG with the offset of the wrong byte. Returns the first failure that was stored. */
int input_fail(struct input *in, uint64_t offset, const char *expected, const char *found, ...)
	__attribute__((format(printf, 4, 5)));
/* Stores a failure that err describes already. Returns the first failure that was stored. */
int input_fail_as(struct input *in, const struct err *err);
/* As read(2), for layers with a buffer of their own. arg is the input; negative errno for an error. */
ssize_t input_read(void *arg, void *dst, size_t n);

#endif
