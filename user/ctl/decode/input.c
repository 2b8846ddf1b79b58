/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "input.h"

struct input {
	int fd; /* -1 = the input is the memory given to input_new */
	const uint8_t *data; /* buf, or that memory */
	size_t pos, len;
	uint64_t base; /* offset of data[0] in the input */
	bool eof;
	int (*before_wait)(void *arg);
	void *before_wait_arg;
	struct err failed; /* sticky */
	char subject[200];
	uint8_t buf[65536];
};

struct input *input_new(int fd, const void *p, size_t n, const char *subject)
{
	struct input *in = malloc(sizeof(*in));

	if (!in)
		return NULL;
	memset(in, 0, offsetof(struct input, buf));
	in->fd = fd;
	in->eof = fd < 0;
	in->data = fd < 0 ? p : in->buf;
	in->len = fd < 0 ? n : 0;
	snprintf(in->subject, sizeof(in->subject), "%s", subject);
	return in;
}

void input_free(struct input *in)
{
	free(in);
}

void input_before_wait(struct input *in, int (*fn)(void *arg), void *arg)
{
	in->before_wait = fn;
	in->before_wait_arg = arg;
}

const struct err *input_failure(const struct input *in)
{
	return &in->failed;
}

const char *input_subject(const struct input *in)
{
	return in->subject;
}

uint64_t input_offset(const struct input *in)
{
	return in->base + in->pos;
}

int input_fail(struct input *in, uint64_t offset, const char *expected, const char *found, ...)
{
	char text[160];
	va_list ap;

	if (in->failed.code)
		return in->failed.code;
	va_start(ap, found);
	vsnprintf(text, sizeof(text), found, ap);
	va_end(ap);
	return err_set(&in->failed, -EBADMSG,
		       "%s: byte %llu: expected %s, found %s; use what came before, or get it again", in->subject,
		       (unsigned long long)offset, expected, text);
}

int input_fail_as(struct input *in, const struct err *err)
{
	if (!in->failed.code)
		in->failed = *err;
	return in->failed.code;
}

static int cut_off(struct input *in, const char *expected)
{
	return input_fail(in, input_offset(in), expected, "the end of the input at byte %llu",
			  (unsigned long long)(in->base + in->len));
}

/* Reads once. Returns the number of bytes, 0 at the end, or negative errno. */
static ssize_t read_some(struct input *in, void *dst, size_t n)
{
	int rc = in->before_wait ? in->before_wait(in->before_wait_arg) : 0;
	ssize_t got;

	if (rc)
		return err_write(&in->failed, rc, "output", NULL);
	do {
		got = read(in->fd, dst, n);
	} while (got < 0 && errno == EINTR);
	if (got < 0) {
		rc = -errno;
		return err_set(&in->failed, rc, "%s: byte %llu: %s; check the medium or the peer", in->subject,
			       (unsigned long long)(in->base + in->len), strerrordesc_np(-rc));
	}
	in->eof = got == 0;
	return got;
}

/* Reads at least one byte behind the len bytes in buf. The caller has made room for it. */
static ssize_t fill(struct input *in)
{
	ssize_t got;

	if (in->failed.code)
		return in->failed.code;
	if (in->eof)
		return 0;
	got = read_some(in, in->buf + in->len, sizeof(in->buf) - in->len);
	if (got > 0)
		in->len += (size_t)got;
	return got;
}

static void compact(struct input *in)
{
	if (in->fd < 0 || !in->pos)
		return;
	memmove(in->buf, in->buf + in->pos, in->len - in->pos);
	in->base += in->pos;
	in->len -= in->pos;
	in->pos = 0;
}

int input_peek(struct input *in, size_t n, const uint8_t **ret)
{
	ssize_t got = 1;

	if (in->failed.code)
		return in->failed.code;
	if (in->len - in->pos < n)
		compact(in);
	while (in->len - in->pos < n && (got = fill(in)) > 0)
		;
	if (got < 0)
		return (int)got;
	*ret = in->data + in->pos;
	return (int)(in->len - in->pos < INT_MAX ? in->len - in->pos : INT_MAX);
}

/* 1 = there is a byte at data + pos, 0 = the end. */
static int ready(struct input *in)
{
	if (in->failed.code)
		return in->failed.code;
	if (in->pos == in->len) {
		ssize_t got;

		compact(in);
		got = fill(in);
		if (got <= 0)
			return (int)got;
	}
	return 1;
}

int input_take(struct input *in, void *dst, size_t n, const char *expected)
{
	uint8_t *to = dst;

	while (n) {
		int got = ready(in);
		size_t k;

		if (got <= 0)
			return got ? got : cut_off(in, expected);
		k = in->len - in->pos < n ? in->len - in->pos : n;
		if (to) {
			memcpy(to, in->data + in->pos, k);
			to += k;
		}
		in->pos += k;
		n -= k;
	}
	return in->failed.code;
}

int input_append(struct input *in, struct buf *b, size_t n, const char *expected)
{
	while (n) {
		int got = ready(in);
		size_t k;

		if (got <= 0)
			return got ? got : cut_off(in, expected);
		k = in->len - in->pos < n ? in->len - in->pos : n;
		buf_add(b, in->data + in->pos, k);
		if (b->failed)
			return err_set(&in->failed, -ENOMEM, "%s: byte %llu: %s: out of memory; free some", in->subject,
				       (unsigned long long)input_offset(in), expected);
		in->pos += k;
		n -= k;
	}
	return in->failed.code;
}

ssize_t input_read(void *arg, void *dst, size_t n)
{
	struct input *in = arg;
	size_t k = in->len - in->pos;
	ssize_t got;

	if (in->failed.code)
		return in->failed.code;
	if (!k && in->eof)
		return 0;
	if (!k) {
		in->base += in->len;
		in->pos = in->len = 0;
		got = read_some(in, dst, n);
		in->base += got > 0 ? (uint64_t)got : 0;
		return got;
	}
	k = k < n ? k : n;
	memcpy(dst, in->data + in->pos, k);
	in->pos += k;
	return (ssize_t)k;
}
