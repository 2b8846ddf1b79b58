/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte buffer that is reused: reset keeps the memory, so steady state allocates
 * nothing. A failed growth sets `failed` and drops later appends; check once at the end. */
#ifndef JD_BUF_H
#define JD_BUF_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	uint8_t *data;
	size_t len, cap;
	size_t limit; /* never grow beyond; 0 = 1 GiB */
	bool failed;
};

void buf_reset(struct buf *b); /* len = 0, failed = false */
void buf_free(struct buf *b); /* NULL and zeroed accepted */
uint8_t *buf_reserve(struct buf *b, size_t n); /* room for n more bytes or NULL; len unchanged */
void buf_add(struct buf *b, const void *p, size_t n);
void buf_add_str(struct buf *b, const char *s);
void buf_add_u64(struct buf *b, uint64_t v); /* decimal text */
void buf_add_i64(struct buf *b, int64_t v);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline void buf_add_char(struct buf *b, char c)
{
	if (b->len < b->cap)
		b->data[b->len++] = (uint8_t)c;
	else
		buf_add(b, &c, 1);
}

#endif
