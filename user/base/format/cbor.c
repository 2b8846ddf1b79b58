/* SPDX-License-Identifier: Apache-2.0 */
/* What the heads mean: numbers, strings, containers, and what is read over. */
#include <math.h>
#include <string.h>

#include "cbor_internal.h"

/* A head of one of two majors, with a definite argument. */
static int head_of(struct cbr *r, enum cbr_major a, enum cbr_major b, const char *what, struct cbr_head *ret)
{
	int err = cbr_head(r, what, ret);

	if (err)
		return err;
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
	int err = head_of(r, M_TAG, M_TAG, what, &h);

	if (err)
		return err;
	return h.arg == expected ? 0 : cbr_wrong(r, &h, what);
}

int cbr_any_tag(struct cbr *r, uint64_t *ret, const char *what)
{
	struct cbr_head h;
	int err = head_of(r, M_TAG, M_TAG, what, &h);

	if (!err)
		*ret = h.arg;
	return err;
}

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
	int err = head_of(r, M_UINT, M_UINT, what, &h);

	if (err)
		return err;
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
	int err = head_of(r, M_UINT, M_NEGINT, what, &h);

	if (err)
		return err;
	if (h.arg > INT64_MAX)
		return cbr_wrong(r, &h, what);
	*ret = h.major == M_NEGINT ? -1 - (int64_t)h.arg : (int64_t)h.arg;
	return 0;
}

int cbr_bool(struct cbr *r, bool *ret, const char *what)
{
	struct cbr_head h;
	int err = head_of(r, M_SIMPLE, M_SIMPLE, what, &h);

	if (err)
		return err;
	if (h.info != INFO_FALSE && h.info != INFO_TRUE)
		return cbr_wrong(r, &h, what);
	*ret = h.info == INFO_TRUE;
	return 0;
}

int cbr_simple(struct cbr *r, unsigned *ret, const char *what)
{
	struct cbr_head h;
	int err = head_of(r, M_SIMPLE, M_SIMPLE, what, &h);

	if (err)
		return err;
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
	int err = head_of(r, M_SIMPLE, M_UINT, what, &h);

	if (err)
		return err;
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

int cbr_bytes(struct cbr *r, void *dst, size_t size, size_t *ret_len, const char *what)
{
	struct cbr_head h;
	int err = head_of(r, M_BYTES, M_BYTES, what, &h);

	if (!err && h.arg > size)
		err = cbr_fail(r, what, "%llu bytes, more than %zu", (unsigned long long)h.arg, size);
	if (!err)
		err = cbr_take(r, dst, h.arg, what);
	if (!err)
		*ret_len = h.arg;
	return err;
}

int cbr_text(struct cbr *r, struct buf *b, size_t max, const char *what)
{
	struct cbr_head h;
	size_t start = b->len;
	int err = head_of(r, M_TEXT, M_TEXT, what, &h);

	if (!err && h.arg > max)
		err = cbr_fail(r, what, "%llu bytes, more than %zu", (unsigned long long)h.arg, max);
	while (!err && h.arg) {
		size_t n = h.arg < 4096 ? h.arg : 4096;
		uint8_t *to = buf_reserve(b, n);

		if (!to)
			return cbr_fail(r, what, "more than there is memory for");
		err = cbr_take(r, to, n, what);
		b->len += err ? 0 : n;
		h.arg -= n;
	}
	if (!err && b->len > start && memchr(b->data + start, 0, b->len - start))
		err = cbr_fail(r, what, "a string with a NUL in it");
	buf_add_char(b, 0);
	if (!err && b->failed)
		err = cbr_fail(r, what, "more than there is memory for");
	return err;
}

int cbr_str(struct cbr *r, char *dst, size_t size, size_t *ret_len, const char *what)
{
	struct cbr_head h;
	int err = head_of(r, M_TEXT, M_BYTES, what, &h);

	if (!err && h.arg >= size)
		err = cbr_fail(r, what, "%llu bytes, more than %zu", (unsigned long long)h.arg, size - 1);
	if (!err)
		err = cbr_take(r, (uint8_t *)dst, h.arg, what);
	if (err)
		return err;
	dst[h.arg] = 0;
	if (strlen(dst) != h.arg)
		return cbr_fail(r, what, "a string with a NUL in it");
	if (ret_len)
		*ret_len = h.arg;
	return 0;
}

/* The rest of an item whose head was read: the whole of a string, the children of a container. */
static int skip_rest(struct cbr *r, struct cbr_head h)
{
	struct cbr_iter level[CBR_DEPTH];
	int depth = 0, err = 0;

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
			err = cbr_take(r, NULL, h.arg, "the rest of a string");
		while (!err && depth && (err = cbr_more(r, &level[depth - 1])) == 0)
			depth--;
		if (err < 0 || !depth)
			return err < 0 ? err : 0;
		err = cbr_head(r, "an item", &h);
		if (err)
			return err;
	}
}

int cbr_skip(struct cbr *r)
{
	struct cbr_head h;
	int err = cbr_head(r, "an item", &h);

	return err ? err : skip_rest(r, h);
}

int cbr_key(struct cbr *r, char *dst, size_t size)
{
	struct cbr_head h;
	int err = cbr_head(r, "a key", &h);

	if (err)
		return err;
	if (h.major != M_TEXT || h.info == INFO_OPEN || h.arg >= size) {
		dst[0] = 0;
		return skip_rest(r, h);
	}
	err = cbr_take(r, (uint8_t *)dst, h.arg, "a key");
	dst[err ? 0 : h.arg] = 0;
	return err;
}

int cbr_int_key(struct cbr *r, uint64_t *ret)
{
	struct cbr_head h;
	int err = cbr_head(r, "a key", &h);

	if (err)
		return err;
	*ret = h.major == M_UINT && h.info != INFO_OPEN ? h.arg : UINT64_MAX;
	return h.major == M_UINT && h.info != INFO_OPEN ? 0 : skip_rest(r, h);
}

static int container(struct cbr *r, enum cbr_major major, struct cbr_iter *it, const char *what)
{
	struct cbr_head h;
	int err = cbr_head(r, what, &h);

	if (err)
		return err;
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
