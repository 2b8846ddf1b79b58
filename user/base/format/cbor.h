/* SPDX-License-Identifier: Apache-2.0 */
/* CBOR (RFC 8949). cbw_*: a writer that appends items to a buf in their shortest form. cbr_*: a pull reader for hostile
 * input from a descriptor. It allocates nothing after its start, and every error says at which byte what was expected
 * and what was found. It does not support strings in pieces (except where they are skipped) and integers beyond 64
 * bits. */
#ifndef JD_CBOR_H
#define JD_CBOR_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/buf.h"
#include "base/err.h"

void cbw_uint(struct buf *b, uint64_t v);
void cbw_int(struct buf *b, int64_t v);
void cbw_bool(struct buf *b, bool v);
void cbw_double(struct buf *b, double v);
void cbw_array(struct buf *b, uint64_t n);
void cbw_open_array(struct buf *b); /* the length is not known in advance; cbw_break ends it */
void cbw_break(struct buf *b);
void cbw_map(struct buf *b, uint64_t pairs);
void cbw_tag(struct buf *b, uint64_t tag);
void cbw_bytes(struct buf *b, const void *p, size_t n);
void cbw_str(struct buf *b, const char *s); /* text; a byte string when it is not UTF-8 */

/* For hot loops: the caller reserves room for a whole record and writes heads in place. A call and a check of the
 * buffer for each head made rows seven times slower. cbw_put writes at most CBW_HEAD bytes and returns the place of the
 * next item. */
#define CBW_HEAD 9
enum cbw_major { CBW_UINT = 0, CBW_BYTES = 2, CBW_TEXT = 3, CBW_ARRAY = 4 };
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "cbw_put swaps");

static inline uint8_t *cbw_put(uint8_t *p, enum cbw_major major, uint64_t v)
{
	uint8_t top = (uint8_t)(major << 5);
	uint64_t be = __builtin_bswap64(v);
	unsigned info, n;

	if (v < 24) {
		*p = (uint8_t)(top | v);
		return p + 1;
	}
	info = v > UINT32_MAX ? 3 : v > UINT16_MAX ? 2 : v > UINT8_MAX;
	n = 1u << info;
	*p = (uint8_t)(top | (24 + info));
	be >>= 64 - 8 * n;
	__builtin_memcpy(p + 1, &be, 8);
	return p + 1 + n;
}

struct cbr;

/* Makes a reader. subject begins every message and is copied; the descriptor stays the caller's. NULL = no memory. */
struct cbr *cbr_new(int fd, const char *subject);
/* Reads at most n bytes to dst. Returns how many, 0 = the end, or negative errno. cbr_new_from is cbr_new with such a
 * function in place of a descriptor. */
typedef ssize_t (*cbr_read_fn)(void *arg, void *dst, size_t n);
struct cbr *cbr_new_from(cbr_read_fn read, void *arg, const char *subject);
void cbr_free(struct cbr *r);
/* Sets the err that describes the next failure; it may be NULL. */
void cbr_err(struct cbr *r, struct err *err);
uint64_t cbr_offset(const struct cbr *r);

/* The functions below return 0 or a negative errno (-EBADMSG: the input is not what was expected; else the error of the
 * read). After a failure every later call returns the same error. what: the expected item in messages. */
int cbr_fail(struct cbr *r, const char *expected, const char *found, ...) __attribute__((format(printf, 3, 4)));
int cbr_at_end(struct cbr *r); /* 1 = no more items, 0 = there is one */
int cbr_is_tag(struct cbr *r); /* 1 = the next item is a tag, 0 = it is not */
int cbr_tag(struct cbr *r, uint64_t expected, const char *what);
int cbr_any_tag(struct cbr *r, uint64_t *ret, const char *what);
/* Gets the first byte of the next item and leaves it in the input: major type (>> 5) and additional information. 0xff:
 * a break. */
int cbr_peek(struct cbr *r, uint8_t *ret, const char *what);
int cbr_uint(struct cbr *r, uint64_t *ret, const char *what);
int cbr_uint_max(struct cbr *r, uint64_t max, uint64_t *ret, const char *what);
int cbr_int(struct cbr *r, int64_t *ret, const char *what);
int cbr_bool(struct cbr *r, bool *ret, const char *what);
int cbr_simple(struct cbr *r, unsigned *ret, const char *what); /* 20 false, 21 true, 22 null, 23 undefined */
int cbr_double(struct cbr *r, double *ret, const char *what);
/* Reads text or bytes without NUL, shorter than size. ret_len may be NULL. */
int cbr_str(struct cbr *r, char *dst, size_t size, size_t *ret_len, const char *what);
/* Appends text and a NUL to b: at most max bytes, none of them NUL. Memory grows with the bytes that arrive. */
int cbr_text(struct cbr *r, struct buf *b, size_t max, const char *what);
/* Reads at most size bytes. */
int cbr_bytes(struct cbr *r, void *dst, size_t size, size_t *ret_len, const char *what);
/* Reads a text key of a map. A key that is too long or of another type becomes "" and is skipped. */
int cbr_key(struct cbr *r, char *dst, size_t size);
/* Reads an integer key of a map. A key of another type becomes UINT64_MAX and is skipped. */
int cbr_int_key(struct cbr *r, uint64_t *ret);
int cbr_skip(struct cbr *r); /* skips one item with all it contains, at most 16 levels deep */

struct cbr_iter {
	uint64_t left;
	bool open;
};
int cbr_array(struct cbr *r, struct cbr_iter *it, const char *what);
int cbr_map(struct cbr *r, struct cbr_iter *it, const char *what);
int cbr_more(struct cbr *r, struct cbr_iter *it); /* 1 = another element (pair), 0 = that was all */

#endif
