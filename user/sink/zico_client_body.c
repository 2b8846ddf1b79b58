/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies as text: base64 (RFC 4648, with padding) and forms. */
#include <errno.h>
#include <lz4frame.h>
#include <zlib.h>
#include "zico_client_internal.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* In a form "+", "/" and "=" mean something else. */
static void put_digit(struct buf *out, char c, bool percent)
{
	if (percent && (c == '+' || c == '/' || c == '='))
		buf_add_str(out, c == '+' ? "%2B" : c == '/' ? "%2F" : "%3D");
	else
		buf_add_char(out, c);
}

static void put_base64(struct buf *out, const uint8_t *p, size_t n, bool percent)
{
	for (size_t i = 0; i < n; i += 3) {
		unsigned left = n - i < 3 ? (unsigned)(n - i) : 3;
		uint32_t v = (uint32_t)p[i] << 16 | (left > 1 ? p[i + 1] << 8 : 0) | (left > 2 ? p[i + 2] : 0);

		for (unsigned d = 0; d < 4; d++)
			put_digit(out, d <= left ? digits[v >> (18 - 6 * d) & 63] : '=', percent);
	}
}

int zico_body_base64(struct zico_client *c, const struct buf *bytes)
{
	buf_reset(&c->body);
	put_base64(&c->body, bytes->data, bytes->len, false);
	return c->body.failed ? -ENOMEM : 0;
}

static int pack(enum zico_form form, const struct buf *in, struct buf *out)
{
	size_t room = form == ZICO_FORM_ZLIB ? compressBound(in->len) : LZ4F_compressFrameBound(in->len, NULL);
	uint8_t *to = buf_reserve(out, room);
	uLongf n = room;
	size_t lz4;

	if (!to)
		return -ENOMEM;
	if (form == ZICO_FORM_ZLIB) {
		if (compress2(to, &n, in->data, in->len, Z_DEFAULT_COMPRESSION) != Z_OK)
			return -ENOMEM;
		out->len += n;
		return 0;
	}
	lz4 = LZ4F_compressFrame(to, room, in->data, in->len, NULL);
	if (LZ4F_isError(lz4))
		return -ENOMEM;
	out->len += lz4;
	return 0;
}

int zico_body_form(struct zico_client *c, const struct buf *bytes)
{
	static const char *const fields[] = { "data", "zdata", "ldata" };
	struct buf packed = { 0 };
	int err = c->form == ZICO_FORM_DATA ? 0 : pack(c->form, bytes, &packed);

	buf_reset(&c->body);
	buf_printf(&c->body, "host=%s&%s=", c->id, fields[c->form]);
	if (c->form == ZICO_FORM_DATA)
		put_base64(&c->body, bytes->data, bytes->len, true);
	else if (!err)
		put_base64(&c->body, packed.data, packed.len, true);
	buf_free(&packed);
	return err ? err : c->body.failed ? -ENOMEM : 0;
}
