/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the sink tests: documents that tell their number and show damage, and a reader that
 * takes a byte stream apart again without knowing the sinks. */
#ifndef TESTS_SINK_HELP_H
#define TESTS_SINK_HELP_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/loop.h"
#include "sink/sink.h"

#define UNUSED_FN __attribute__((unused)) static

/* magic, number, length (all 32 bit, machine order), then bytes that follow from the number. */
#define DOC_MAGIC 0x4b9d10a7u
#define DOC_HEAD 12

UNUSED_FN uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A limit of time is a bound against hanging: a busy machine gets eight times as long. */
#define WAIT_FOR(cond, ms) \
	({ \
		uint64_t end_ = now_ns() + 8 * (uint64_t)(ms)*1000000u; \
		while (!(cond) && now_ns() < end_) \
			usleep(1000); \
		(cond); \
	})

static uint8_t doc_bytes[8u << 20];

UNUSED_FN size_t doc_make(uint32_t number, size_t len)
{
	uint32_t head[3] = { DOC_MAGIC, number, (uint32_t)len };

	memcpy(doc_bytes, head, DOC_HEAD);
	for (size_t i = DOC_HEAD; i < len; i++)
		doc_bytes[i] = (uint8_t)(number * 31 + i * 7);
	return len;
}

/* Both ways in turn: a copy, and the memory itself. */
UNUSED_FN int doc_submit(struct sink *s, uint32_t number, size_t len)
{
	static __thread struct buf b;
	int rc;

	doc_make(number, len);
	if (number % 2)
		return sink_submit(s, doc_bytes, len);
	buf_add(&b, doc_bytes, len);
	rc = sink_submit_buf(s, &b);
	assert_int_equal(b.len, 0);
	return rc;
}

/* Reads a stream: `preamble` first, then whole documents with rising numbers. */
struct stream {
	const char *preamble;
	size_t preamble_seen;
	uint8_t *data;
	size_t len, cap;
	uint32_t docs, last; /* whole documents seen, number of the last */
	bool eof;
	int err; /* errno of a failed read */
};

UNUSED_FN void stream_parse(struct stream *st)
{
	size_t at = 0;

	while (st->preamble && st->preamble_seen < strlen(st->preamble) && at < st->len)
		assert_int_equal(st->data[at++], (uint8_t)st->preamble[st->preamble_seen++]);
	while (st->len - at >= DOC_HEAD) {
		uint32_t head[3];

		memcpy(head, st->data + at, DOC_HEAD);
		assert_int_equal(head[0], DOC_MAGIC);
		if (st->len - at < head[2])
			break;
		if (st->docs)
			assert_true(head[1] > st->last);
		for (size_t i = DOC_HEAD; i < head[2]; i++)
			if (st->data[at + i] != (uint8_t)(head[1] * 31 + i * 7))
				fail_msg("document %u is damaged at byte %zu", head[1], i);
		st->last = head[1];
		st->docs++;
		at += head[2];
	}
	memmove(st->data, st->data + at, st->len - at);
	st->len -= at;
}

/* Reads what is there now, without waiting. */
UNUSED_FN void stream_read(struct stream *st, int fd)
{
	for (;;) {
		if (st->cap - st->len < 65536) {
			st->cap = st->cap * 2 + 131072;
			st->data = realloc(st->data, st->cap);
			assert_non_null(st->data);
		}
		struct pollfd p = { .fd = fd, .events = POLLIN };
		if (poll(&p, 1, 0) <= 0)
			break;
		ssize_t n = read(fd, st->data + st->len, st->cap - st->len);
		if (n < 0 && errno != EAGAIN)
			st->err = errno;
		st->eof = n == 0;
		if (n <= 0)
			break;
		st->len += (size_t)n;
		stream_parse(st);
	}
}

UNUSED_FN void stream_free(struct stream *st)
{
	free(st->data);
	memset(st, 0, sizeof(*st));
}

UNUSED_FN struct sink_stats stats_of(struct sink *s)
{
	struct sink_stats st;

	sink_get_stats(s, &st);
	return st;
}

UNUSED_FN struct sink *open_ok(const char *url, const struct sink_options *o, struct loop *l)
{
	struct err e = { 0 };
	struct sink *s = NULL;

	if (sink_open(url, o, l, &s, &e))
		fail_msg("%s", e.text);
	assert_non_null(s);
	return s;
}

/* Must fail with `code` and one line that holds the subject and, behind a semicolon, a remedy. */
UNUSED_FN void open_fails(const char *url, const struct sink_options *o, struct loop *l, int code, const char *word)
{
	struct err e = { 0 };
	struct sink *s = (struct sink *)1;
	int got = sink_open(url, o, l, &s, &e);

	if (got != code)
		fail_msg("%s: got %d, expected %d (%s)", url, got, code, e.text);
	assert_ptr_equal(s, (struct sink *)1);
	assert_int_equal(e.code, code);
	assert_non_null(strstr(e.text, "; "));
	assert_null(strchr(e.text, '\n'));
	if (!strstr(e.text, word))
		fail_msg("%s: no \"%s\" in: %s", url, word, e.text);
}

#endif
