/* SPDX-License-Identifier: Apache-2.0 */
/* ZICO 1.90 sends its bodies as base64 text (RFC 4648 section 4, with padding): one behind the other,
 * with or without line ends. */
#include <string.h>
#include "decode_zico.h"

static int digit(uint8_t c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Four digits, the last one or two of which may be padding: 1 to 3 bytes, 0 = it is none. */
static int decode_four(const uint8_t four[4], uint8_t ret[3])
{
	int n = four[3] != '=' ? 3 : four[2] != '=' ? 2 : 1;
	uint32_t bits = 0;

	for (int i = 0; i < 4; i++) {
		int v = i > n ? 0 : digit(four[i]);

		if (v < 0)
			return 0;
		bits = bits << 6 | (uint32_t)v;
	}
	ret[0] = (uint8_t)(bits >> 16);
	ret[1] = (uint8_t)(bits >> 8);
	ret[2] = (uint8_t)bits;
	return n;
}

bool zico_is_base64(const uint8_t four[4], uint8_t ret[3])
{
	return decode_four(four, ret) == 3;
}

ssize_t zico_read_base64(void *arg, void *dst, size_t n)
{
	struct zico_base64 *b = arg;
	uint8_t *to = dst;
	const uint8_t *p;
	ssize_t made = 0;

	while (!made) {
		int got = input_peek(b->in, 1, &p), k = 0;

		if (got <= 0)
			return got || !b->n ? got :
					      input_fail(b->in, input_offset(b->in), "four digits of base64",
							 "%u and the end of the input", b->n);
		for (; k < got && (size_t)made + 3 <= n; k++) {
			if (p[k] && strchr(" \t\r\n", p[k]))
				continue;
			b->four[b->n++] = p[k];
			if (b->n < 4)
				continue;
			b->n = (unsigned)decode_four(b->four, to + made);
			if (!b->n)
				return input_fail(b->in, input_offset(b->in) + (uint64_t)k, "four digits of base64",
						  "\"%.4s\"", (const char *)b->four);
			made += b->n;
			b->n = 0;
		}
		got = input_take(b->in, NULL, (size_t)k, "base64");
		if (got)
			return got;
	}
	return made;
}
