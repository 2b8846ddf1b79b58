/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text of one object, byte by byte as it comes (RFC 8259, UTF-8): where it ends, and the first byte
 * that is wrong, without waiting for what follows. Builds nothing. At most 64 levels. */
#ifndef JD_CTL_JSON_SCAN_H
#define JD_CTL_JSON_SCAN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_scan_state {
	JSON_SCAN_START,
	JSON_SCAN_VALUE,
	JSON_SCAN_VALUE_OR_END,
	JSON_SCAN_KEY,
	JSON_SCAN_KEY_OR_END,
	JSON_SCAN_COLON,
	JSON_SCAN_NEXT,
	JSON_SCAN_STRING,
	JSON_SCAN_ESCAPE,
	JSON_SCAN_HEX,
	JSON_SCAN_WORD,
	JSON_SCAN_MINUS,
	JSON_SCAN_ZERO,
	JSON_SCAN_INT,
	JSON_SCAN_DOT,
	JSON_SCAN_FRACTION,
	JSON_SCAN_E,
	JSON_SCAN_SIGN,
	JSON_SCAN_EXPONENT,
	JSON_SCAN_DONE,
};

struct json_scan { /* all zero = nothing yet */
	enum json_scan_state state;
	unsigned depth;
	uint64_t objects; /* bit per level: an object, not an array */
	bool key; /* the string is a key */
	const char *word; /* what is left of true, false or null */
	unsigned hex; /* digits left of \uXXXX */
	unsigned utf8; /* bytes left of a character, the next one from low to high */
	uint8_t low, high;
	const char *expected; /* set when a byte was wrong */
};

/* How many of the n bytes are right; fewer than n: the object ended there (DONE), or the next one is wrong. */
size_t json_scan(struct json_scan *s, const uint8_t *p, size_t n);

#endif
