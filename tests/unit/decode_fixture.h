/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes through the decoder, from memory, to text that can be compared. */
#ifndef JD_TEST_DECODE_FIXTURE_H
#define JD_TEST_DECODE_FIXTURE_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl/decode/decode.h"

struct decoded {
	int code;
	struct buf text; /* NUL-terminated */
	char error[512];
	uint64_t records;
};

static int decoded_write(void *arg, const void *p, size_t n)
{
	buf_add(arg, p, n);
	return 0;
}

/* options: "" = JSON by content, "format=zico text dialect=v0.2" */
static void decode_bytes(const void *p, size_t n, const char *options, struct decoded *ret)
{
	static char words[3][32];
	char list[128], *word, *rest = list;
	struct decoding d = { 0 };
	struct out out;
	bool text = false;

	memset(ret, 0, sizeof(*ret));
	snprintf(list, sizeof(list), "%s", options);
	while ((word = strsep(&rest, " "))) {
		if (!strncmp(word, "format=", 7))
			d.format = strcpy(words[0], word + 7);
		else if (!strncmp(word, "dialect=", 8))
			d.dialect = strcpy(words[1], word + 8);
		text |= !strcmp(word, "text");
	}
	out_init(&out, !text, decoded_write, &ret->text);
	d.in = input_new(-1, p, n, "bytes");
	d.out = &out;
	ret->code = decode_all(&d);
	ret->records = out.records;
	snprintf(ret->error, sizeof(ret->error), "%s", input_failure(d.in)->text);
	assert_int_equal(ret->code, input_failure(d.in)->code);
	buf_add_char(&ret->text, 0);
	out_free(&out);
	input_free(d.in);
}

static inline const char *decoded_text(const struct decoded *d)
{
	return (const char *)d->text.data;
}

static inline void decodes_to(const void *p, size_t n, const char *options, const char *want)
{
	struct decoded d;

	decode_bytes(p, n, options, &d);
	if (d.code || strcmp(decoded_text(&d), want))
		fail_msg("expected:\n%s\nfound (%d %s):\n%s", want, d.code, d.error, decoded_text(&d));
	buf_free(&d.text);
}

/* The error names the byte, and holds these words. */
static inline void refused_at(const void *p, size_t n, const char *options, uint64_t byte, const char *words)
{
	struct decoded d;
	char at[40];

	snprintf(at, sizeof(at), ": byte %llu: expected ", (unsigned long long)byte);
	decode_bytes(p, n, options, &d);
	if (d.code != -EBADMSG || !strstr(d.error, at) || !strstr(d.error, words) || !strstr(d.error, ", found "))
		fail_msg("no \"byte %llu\" with \"%s\" in: %d %s", (unsigned long long)byte, words, d.code, d.error);
	buf_free(&d.text);
}

/* Cut at every byte: a whole number of the records of the whole, then an error that names where it ends,
 * or none where a record ends. Changed in every byte: an error or a valid decode (sanitizers watch). */
static inline void survives(const uint8_t *p, size_t n, const char *options)
{
	static const uint8_t flips[] = { 0x01, 0x80, 0xff, 0x20 };
	uint8_t *copy = malloc(n + 1);
	struct decoded whole, d;

	decode_bytes(p, n, options, &whole);
	assert_int_equal(whole.code, 0);
	for (size_t cut = 0; cut < n; cut++) {
		/* a copy of its own, so that a read behind it is seen */
		uint8_t *part = malloc(cut ? cut : 1);

		memcpy(part, p, cut);
		decode_bytes(part, cut, options, &d);
		if (strncmp(decoded_text(&d), decoded_text(&whole), d.text.len - 1) != 0)
			fail_msg("cut at %zu: %s", cut, decoded_text(&d));
		assert_true(d.code == 0 || (d.code == -EBADMSG && strstr(d.error, "byte ")));
		if (d.code && !strstr(d.error, "the end of"))
			fail_msg("cut at %zu: %s", cut, d.error);
		buf_free(&d.text);
		free(part);
	}
	for (size_t i = 0; i < n * sizeof(flips); i++) {
		memcpy(copy, p, n);
		copy[i / sizeof(flips)] ^= flips[i % sizeof(flips)];
		decode_bytes(copy, n, options, &d);
		assert_true(d.code == 0 || (d.code == -EBADMSG && strstr(d.error, "byte ")));
		buf_free(&d.text);
	}
	buf_free(&whole.text);
	free(copy);
}

#endif
