/* SPDX-License-Identifier: Apache-2.0 */
/* Writing: libcbor encodes the heads; no tree is built. */
#include <cbor.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/text.h"
#include "cbor.h"

#define HEAD_MAX 9 /* RFC 8949 section 3: initial byte and eight bytes of argument */

static uint8_t *room(struct buf *b)
{
	return b->cap - b->len >= HEAD_MAX ? b->data + b->len : buf_reserve(b, HEAD_MAX);
}

void cbw_uint(struct buf *b, uint64_t v)
{
	uint8_t *p = room(b);

	if (p)
		b->len += cbor_encode_uint(v, p, HEAD_MAX);
}

void cbw_int(struct buf *b, int64_t v)
{
	uint8_t *p = room(b);

	if (p)
		b->len += v < 0 ? cbor_encode_negint(~(uint64_t)v, p, HEAD_MAX) :
				  cbor_encode_uint((uint64_t)v, p, HEAD_MAX);
}

void cbw_bool(struct buf *b, bool v)
{
	uint8_t *p = room(b);

	if (p)
		b->len += cbor_encode_bool(v, p, HEAD_MAX);
}

void cbw_double(struct buf *b, double v)
{
	uint8_t *p = room(b);

	if (p)
		b->len += cbor_encode_double(v, p, HEAD_MAX);
}

void cbw_array(struct buf *b, uint64_t n)
{
	uint8_t *p = room(b);

	if (p)
		b->len += cbor_encode_array_start(n, p, HEAD_MAX);
}

void cbw_open_array(struct buf *b)
{
	uint8_t *p = room(b);

	if (p)
		b->len += cbor_encode_indef_array_start(p, HEAD_MAX);
}

void cbw_break(struct buf *b)
{
	uint8_t *p = room(b);

	if (p)
		b->len += cbor_encode_break(p, HEAD_MAX);
}

void cbw_map(struct buf *b, uint64_t pairs)
{
	uint8_t *p = room(b);

	if (p)
		b->len += cbor_encode_map_start(pairs, p, HEAD_MAX);
}

void cbw_tag(struct buf *b, uint64_t tag)
{
	uint8_t *p = room(b);

	if (p)
		b->len += cbor_encode_tag(tag, p, HEAD_MAX);
}

void cbw_bytes(struct buf *b, const void *data, size_t n)
{
	uint8_t *p = room(b);

	if (p)
		b->len += cbor_encode_bytestring_start(n, p, HEAD_MAX);
	buf_add(b, data, n);
}

static bool is_utf8(const char *s, size_t n)
{
	while (n) {
		size_t k = text_utf8_len((const unsigned char *)s, n);

		if (!k)
			return false;
		s += k;
		n -= k;
	}
	return true;
}

void cbw_str(struct buf *b, const char *s)
{
	size_t n = strlen(s);
	uint8_t *p;

	if (!is_utf8(s, n)) {
		cbw_bytes(b, s, n);
		return;
	}
	p = room(b);
	if (p)
		b->len += cbor_encode_string_start(n, p, HEAD_MAX);
	buf_add(b, s, n);
}

/* Reading: items by the heads that begin them (RFC 8949 section 3). */

#define CBR_DEPTH 16 /* levels of an item that is skipped */

enum cbr_major { M_UINT, M_NEGINT, M_BYTES, M_TEXT, M_ARRAY, M_MAP, M_TAG, M_SIMPLE };
enum { INFO_FALSE = 20, INFO_TRUE = 21, INFO_HALF = 25, INFO_SINGLE = 26, INFO_DOUBLE = 27, INFO_OPEN = 31 };

struct cbr_head {
	enum cbr_major major;
	unsigned info;
	uint64_t arg;
};

struct cbr {
	cbr_read_fn read;
	void *arg;
	bool eof;
	int code; /* the first failure; every later call returns it */
	struct err *err;
	uint64_t base; /* offset of buf[0] in the input */
	uint64_t item; /* offset of the head that is being read */
	size_t pos, len;
	char subject[200];
	uint8_t buf[65536];
};

static int cbr_head(struct cbr *r, const char *expected, struct cbr_head *ret);

static int cbr_wrong(struct cbr *r, const struct cbr_head *h, const char *expected);

/* Reads a head, which must be of one of two majors and have a definite argument. */
static int head_of(struct cbr *r, enum cbr_major a, enum cbr_major b, const char *what, struct cbr_head *ret)
{
	int rc = cbr_head(r, what, ret);

	if (rc)
		return rc;
	return (ret->major == a || ret->major == b) && ret->info != INFO_OPEN ? 0 : cbr_wrong(r, ret, what);
}

int cbr_is_tag(struct cbr *r)
{
	int end = cbr_at_end(r);

	return end ? (end < 0 ? end : 0) : r->buf[r->pos] >> 5 == M_TAG;
}

int cbr_tag(struct cbr *r, uint64_t expected, const char *what)
{
	struct cbr_head h;
	int rc = head_of(r, M_TAG, M_TAG, what, &h);

	if (rc)
		return rc;
	return h.arg == expected ? 0 : cbr_wrong(r, &h, what);
}

int cbr_any_tag(struct cbr *r, uint64_t *ret, const char *what)
{
	struct cbr_head h;
	int rc = head_of(r, M_TAG, M_TAG, what, &h);

	if (!rc)
		*ret = h.arg;
	return rc;
}

static int cbr_cut_off(struct cbr *r, const char *expected);

int cbr_peek(struct cbr *r, uint8_t *ret, const char *what)
{
	int end;

	r->item = cbr_offset(r);
	end = cbr_at_end(r);
	if (end)
		return end < 0 ? end : cbr_cut_off(r, what);
	*ret = r->buf[r->pos];
	return 0;
}

int cbr_uint_max(struct cbr *r, uint64_t max, uint64_t *ret, const char *what)
{
	struct cbr_head h;
	int rc = head_of(r, M_UINT, M_UINT, what, &h);

	if (rc)
		return rc;
	if (h.arg > max)
		return cbr_fail(r, what, "%llu, more than %llu", (unsigned long long)h.arg, (unsigned long long)max);
	*ret = h.arg;
	return 0;
}

int cbr_uint(struct cbr *r, uint64_t *ret, const char *what)
{
	return cbr_uint_max(r, UINT64_MAX, ret, what);
}

int cbr_int(struct cbr *r, int64_t *ret, const char *what)
{
	struct cbr_head h;
	int rc = head_of(r, M_UINT, M_NEGINT, what, &h);

	if (rc)
		return rc;
	if (h.arg > INT64_MAX)
		return cbr_wrong(r, &h, what);
	*ret = h.major == M_NEGINT ? -1 - (int64_t)h.arg : (int64_t)h.arg;
	return 0;
}

int cbr_bool(struct cbr *r, bool *ret, const char *what)
{
	struct cbr_head h;
	int rc = head_of(r, M_SIMPLE, M_SIMPLE, what, &h);

	if (rc)
		return rc;
	if (h.info != INFO_FALSE && h.info != INFO_TRUE)
		return cbr_wrong(r, &h, what);
	*ret = h.info == INFO_TRUE;
	return 0;
}

int cbr_simple(struct cbr *r, unsigned *ret, const char *what)
{
	struct cbr_head h;
	int rc = head_of(r, M_SIMPLE, M_SIMPLE, what, &h);

	if (rc)
		return rc;
	if (h.info >= INFO_HALF)
		return cbr_wrong(r, &h, what);
	*ret = (unsigned)h.arg;
	return 0;
}

/* RFC 8949 appendix D. */
static double half_to_double(uint64_t half)
{
	unsigned exponent = half >> 10 & 31, mantissa = half & 1023;
	double v = exponent == 0  ? ldexp(mantissa, -24) :
		   exponent != 31 ? ldexp(mantissa + 1024, (int)exponent - 25) :
		   mantissa       ? (double)NAN :
				    INFINITY;

	return half & 0x8000 ? -v : v;
}

int cbr_double(struct cbr *r, double *ret, const char *what)
{
	struct cbr_head h;
	uint32_t bits;
	float single;
	int rc = head_of(r, M_SIMPLE, M_UINT, what, &h);

	if (rc)
		return rc;
	if (h.major == M_UINT) {
		*ret = (double)h.arg;
	} else if (h.info == INFO_DOUBLE) {
		memcpy(ret, &h.arg, sizeof(*ret));
	} else if (h.info == INFO_SINGLE) {
		bits = (uint32_t)h.arg;
		memcpy(&single, &bits, sizeof(single));
		*ret = (double)single;
	} else if (h.info == INFO_HALF) {
		*ret = half_to_double(h.arg);
	} else {
		return cbr_wrong(r, &h, what);
	}
	return 0;
}

static int cbr_take(struct cbr *r, uint8_t *dst, uint64_t n, const char *what);

int cbr_bytes(struct cbr *r, void *dst, size_t size, size_t *ret_len, const char *what)
{
	struct cbr_head h;
	int rc = head_of(r, M_BYTES, M_BYTES, what, &h);

	if (!rc && h.arg > size)
		rc = cbr_fail(r, what, "%llu bytes, more than %zu", (unsigned long long)h.arg, size);
	if (!rc)
		rc = cbr_take(r, dst, h.arg, what);
	if (!rc)
		*ret_len = h.arg;
	return rc;
}

int cbr_text(struct cbr *r, struct buf *b, size_t max, const char *what)
{
	struct cbr_head h;
	size_t start = b->len;
	int rc = head_of(r, M_TEXT, M_TEXT, what, &h);

	if (!rc && h.arg > max)
		rc = cbr_fail(r, what, "%llu bytes, more than %zu", (unsigned long long)h.arg, max);
	while (!rc && h.arg) {
		size_t n = h.arg < 4096 ? h.arg : 4096;
		uint8_t *to = buf_reserve(b, n);

		if (!to)
			return cbr_fail(r, what, "more than there is memory for");
		rc = cbr_take(r, to, n, what);
		b->len += rc ? 0 : n;
		h.arg -= n;
	}
	if (!rc && b->len > start && memchr(b->data + start, 0, b->len - start))
		rc = cbr_fail(r, what, "a string with a NUL in it");
	buf_add_char(b, 0);
	if (!rc && b->failed)
		rc = cbr_fail(r, what, "more than there is memory for");
	return rc;
}

int cbr_str(struct cbr *r, char *dst, size_t size, size_t *ret_len, const char *what)
{
	struct cbr_head h;
	int rc = head_of(r, M_TEXT, M_BYTES, what, &h);

	if (!rc && h.arg >= size)
		rc = cbr_fail(r, what, "%llu bytes, more than %zu", (unsigned long long)h.arg, size - 1);
	if (!rc)
		rc = cbr_take(r, (uint8_t *)dst, h.arg, what);
	if (rc)
		return rc;
	dst[h.arg] = 0;
	if (strlen(dst) != h.arg)
		return cbr_fail(r, what, "a string with a NUL in it");
	if (ret_len)
		*ret_len = h.arg;
	return 0;
}

/* Skips the rest of an item whose head was read: the bytes of a string, the children of a container. */
static int skip_rest(struct cbr *r, struct cbr_head h)
{
	struct cbr_iter level[CBR_DEPTH];
	int depth = 0, rc = 0;

	for (;;) {
		bool container = h.major == M_ARRAY || h.major == M_MAP || h.major == M_TAG ||
				 (h.info == INFO_OPEN && (h.major == M_BYTES || h.major == M_TEXT));

		if (h.info == INFO_OPEN && (h.major < M_BYTES || h.major > M_MAP))
			return cbr_wrong(r, &h, "an item");
		if (container && depth == CBR_DEPTH)
			return cbr_fail(r, "at most 16 levels", "one more");
		if (h.major == M_MAP && h.info != INFO_OPEN && h.arg > UINT64_MAX / 2)
			return cbr_wrong(r, &h, "a map of a possible size");
		if (container)
			level[depth++] = (struct cbr_iter){
				.open = h.info == INFO_OPEN,
				.left = h.major == M_TAG ? 1 :
					h.major == M_MAP ? h.arg * 2 :
							   h.arg,
			};
		else if (h.major == M_BYTES || h.major == M_TEXT)
			rc = cbr_take(r, NULL, h.arg, "the rest of a string");
		while (!rc && depth && (rc = cbr_more(r, &level[depth - 1])) == 0)
			depth--;
		if (rc < 0 || !depth)
			return rc < 0 ? rc : 0;
		rc = cbr_head(r, "an item", &h);
		if (rc)
			return rc;
	}
}

int cbr_skip(struct cbr *r)
{
	struct cbr_head h;
	int rc = cbr_head(r, "an item", &h);

	return rc ? rc : skip_rest(r, h);
}

int cbr_key(struct cbr *r, char *dst, size_t size)
{
	struct cbr_head h;
	int rc = cbr_head(r, "a key", &h);

	if (rc)
		return rc;
	if (h.major != M_TEXT || h.info == INFO_OPEN || h.arg >= size) {
		dst[0] = 0;
		return skip_rest(r, h);
	}
	rc = cbr_take(r, (uint8_t *)dst, h.arg, "a key");
	dst[rc ? 0 : h.arg] = 0;
	return rc;
}

int cbr_int_key(struct cbr *r, uint64_t *ret)
{
	struct cbr_head h;
	int rc = cbr_head(r, "a key", &h);

	if (rc)
		return rc;
	*ret = h.major == M_UINT && h.info != INFO_OPEN ? h.arg : UINT64_MAX;
	return h.major == M_UINT && h.info != INFO_OPEN ? 0 : skip_rest(r, h);
}

static int container(struct cbr *r, enum cbr_major major, struct cbr_iter *it, const char *what)
{
	struct cbr_head h;
	int rc = cbr_head(r, what, &h);

	if (rc)
		return rc;
	if (h.major != major)
		return cbr_wrong(r, &h, what);
	it->open = h.info == INFO_OPEN;
	it->left = h.arg;
	return 0;
}

int cbr_array(struct cbr *r, struct cbr_iter *it, const char *what)
{
	return container(r, M_ARRAY, it, what);
}

int cbr_map(struct cbr *r, struct cbr_iter *it, const char *what)
{
	return container(r, M_MAP, it, what);
}

int cbr_more(struct cbr *r, struct cbr_iter *it)
{
	int got;

	if (r->code)
		return r->code;
	if (!it->open)
		return it->left && it->left--;
	r->item = cbr_offset(r);
	got = cbr_at_end(r);
	if (got)
		return got < 0 ? got : cbr_cut_off(r, "an element or a break");
	if (r->buf[r->pos] != 0xff)
		return 1;
	r->pos++;
	return 0;
}

/* The input: one head at a time. A head is an initial byte with major type and additional information, and an argument
 * of 0, 1, 2, 4 or 8 bytes, big-endian (RFC 8949 section 3). */

static ssize_t read_fd(void *arg, void *dst, size_t n)
{
	ssize_t got;

	do {
		got = read((int)(intptr_t)arg, dst, n);
	} while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

struct cbr *cbr_new(int fd, const char *subject)
{
	return cbr_new_from(read_fd, (void *)(intptr_t)fd, subject);
}

struct cbr *cbr_new_from(cbr_read_fn read, void *arg, const char *subject)
{
	struct cbr *r = malloc(sizeof(*r));

	if (!r)
		return NULL;
	memset(r, 0, offsetof(struct cbr, buf));
	r->read = read;
	r->arg = arg;
	snprintf(r->subject, sizeof(r->subject), "%s", subject);
	return r;
}

void cbr_free(struct cbr *r)
{
	free(r);
}

void cbr_err(struct cbr *r, struct err *err)
{
	r->err = err;
}

uint64_t cbr_offset(const struct cbr *r)
{
	return r->base + r->pos;
}

int cbr_fail(struct cbr *r, const char *expected, const char *found, ...)
{
	char text[128];
	va_list ap;

	if (r->code)
		return r->code;
	va_start(ap, found);
	vsnprintf(text, sizeof(text), found, ap);
	va_end(ap);
	r->code = err_set(r->err, -EBADMSG,
			  "%s: byte %llu: expected %s, found %s; use what came before, or record "
			  "again",
			  r->subject, (unsigned long long)r->item, expected, text);
	return r->code;
}

/* Reads more input into the buffer. 1 = it has at least one more byte, 0 = end of the input, or -errno. */
static int cbr_refill(struct cbr *r)
{
	if (r->code)
		return r->code;
	if (r->pos == r->len) {
		r->base += r->len;
		r->pos = r->len = 0;
	}
	if (!r->eof && r->len < sizeof(r->buf)) {
		ssize_t n = r->read(r->arg, r->buf + r->len, sizeof(r->buf) - r->len);

		if (n < 0) {
			r->code = (int)n;
			return err_set(r->err, r->code, "%s: byte %llu: %s; check the medium", r->subject,
				       (unsigned long long)(r->base + r->len), strerrordesc_np(-r->code));
		}
		r->eof = n == 0;
		r->len += (size_t)n;
		return n > 0;
	}
	return 0;
}

int cbr_at_end(struct cbr *r)
{
	int got;

	if (r->code)
		return r->code;
	if (r->pos < r->len)
		return 0;
	got = cbr_refill(r);
	return got < 0 ? got : !got;
}

static int cbr_cut_off(struct cbr *r, const char *expected)
{
	return cbr_fail(r, expected, "the end of the file at byte %llu", (unsigned long long)(r->base + r->len));
}

static int next_byte(struct cbr *r, const char *expected, uint8_t *ret)
{
	int got = r->code ? r->code : 1;

	if (r->pos == r->len && got > 0)
		got = cbr_refill(r);
	if (got < 0)
		return got;
	if (got == 0)
		return cbr_cut_off(r, expected);
	*ret = r->buf[r->pos++];
	return 0;
}

static int cbr_head(struct cbr *r, const char *expected, struct cbr_head *ret)
{
	uint8_t b = 0;
	int rc;

	r->item = cbr_offset(r);
	rc = next_byte(r, expected, &b);
	if (rc)
		return rc;
	ret->major = b >> 5;
	ret->info = b & 31;
	ret->arg = ret->info;
	if (ret->info < 24 || ret->info == INFO_OPEN)
		return 0;
	if (ret->info > 27)
		return cbr_fail(r, expected, "byte 0x%02x, which begins nothing in CBOR", b);
	ret->arg = 0;
	for (unsigned n = 1u << (ret->info - 24); n; n--) {
		rc = next_byte(r, expected, &b);
		if (rc)
			return rc;
		ret->arg = ret->arg << 8 | b;
	}
	return 0;
}

/* Fails because head h is not the expected item. expected: words of the message. */
static int cbr_wrong(struct cbr *r, const struct cbr_head *h, const char *expected)
{
	static const char *const names[] = {
		"the number",
		"the number -1 -",
		"a byte string of length",
		"text of length",
		"an array of",
		"a map of",
		"tag",
		"simple value or float",
	};

	if (h->info == INFO_OPEN)
		return cbr_fail(r, expected, h->major == M_SIMPLE ? "a break" : "an item of unknown length");
	return cbr_fail(r, expected, "%s %llu", names[h->major], (unsigned long long)h->arg);
}

/* Takes n bytes of the input to dst; NULL = they are skipped. */
static int cbr_take(struct cbr *r, uint8_t *dst, uint64_t n, const char *what)
{
	while (n) {
		size_t k = r->len - r->pos;

		if (!k) {
			int got = cbr_refill(r);

			if (got <= 0)
				return got < 0 ? got : cbr_cut_off(r, what);
			continue;
		}
		if (k > n)
			k = n;
		if (dst) {
			memcpy(dst, r->buf + r->pos, k);
			dst += k;
		}
		r->pos += k;
		n -= k;
	}
	return 0;
}
