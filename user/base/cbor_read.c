/* SPDX-License-Identifier: Apache-2.0 */
/* Reading. One head at a time: initial byte with major type and additional information, argument of
 * 0, 1, 2, 4 or 8 bytes, big-endian (RFC 8949 section 3). */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cbor_internal.h"

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

/* At least one more byte in the buffer. 1, 0 = end of the input, or -errno. */
int cbr_refill(struct cbr *r)
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

int cbr_cut_off(struct cbr *r, const char *expected)
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

int cbr_head(struct cbr *r, const char *expected, struct cbr_head *ret)
{
	uint8_t b = 0;
	int err;

	r->item = cbr_offset(r);
	err = next_byte(r, expected, &b);
	if (err)
		return err;
	ret->major = b >> 5;
	ret->info = b & 31;
	ret->arg = ret->info;
	if (ret->info < 24 || ret->info == INFO_OPEN)
		return 0;
	if (ret->info > 27)
		return cbr_fail(r, expected, "byte 0x%02x, which begins nothing in CBOR", b);
	ret->arg = 0;
	for (unsigned n = 1u << (ret->info - 24); n; n--) {
		err = next_byte(r, expected, &b);
		if (err)
			return err;
		ret->arg = ret->arg << 8 | b;
	}
	return 0;
}

int cbr_wrong(struct cbr *r, const struct cbr_head *h, const char *expected)
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

/* n bytes of the input to dst, or nowhere. */
int cbr_take(struct cbr *r, uint8_t *dst, uint64_t n, const char *what)
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
