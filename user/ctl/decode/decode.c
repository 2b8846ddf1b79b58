/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the format, and decodes one record after the other. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "decode_zico.h"

static const struct {
	const char *name;
	const struct decoder *decoder;
} formats[] = {
	{ "vjoule", &decoder_vjoule },
	{ "zico", &decoder_zico },
	{ "snapshot", &decoder_snapshot },
};

const char *decode_format_name(unsigned n)
{
	return n < sizeof(formats) / sizeof(formats[0]) ? formats[n].name : NULL;
}

int decode_write_failed(struct decoding *d, int rc)
{
	struct err err = { 0 };

	err_write(&err, rc, "output", NULL);
	return input_fail_as(d->in, &err);
}

int decode_record_end(struct decoding *d, uint64_t offset)
{
	int rc = out_record_end(d->out);

	if (rc == -EFBIG)
		return input_fail(d->in, offset, "a record that takes at most 24 MiB as text", "a larger one");
	return rc ? decode_write_failed(d, rc) : 1;
}

/* Agent data and traces of all profiles begin with a tag on an array (formats: docs/formats). */
static bool is_zico(const uint8_t b[3])
{
	switch (b[0]) {
	case 0xc1: /* string: [id, text, type] or [id, text] */
	case 0xcd:
		return (b[1] == 0x82 || b[1] == 0x83) && b[2] < 0x1b;
	case 0xc2: /* method: four numbers */
	case 0xce:
		return b[1] == 0x84 && b[2] < 0x1b;
	case 0xc3: /* agent attribute, or a record of ZICO 2 */
	case 0xcf:
		return (b[1] == 0x82 && b[2] >> 5 == 3) || (b[0] == 0xc3 && b[1] == 0x9f);
	case 0xc6:
	case 0xc7:
	case 0xc8:
	case 0xca:
	case 0xcb: /* records: an array, mostly open */
		return b[1] == 0x9f || (b[1] > 0x82 && b[1] < 0x98);
	case 0xda: /* an envelope: tag "zico" */
		return b[1] == 'z' && b[2] == 'i';
	case 0xd8: /* the same tags with a longer head */
		return b[1] < 0x10 && b[2] >> 5 == 4;
	}
	return false;
}

static bool zico_is_base64(const uint8_t four[4], uint8_t ret[3]);

static const struct decoder *by_content(const uint8_t b[4])
{
	static const uint8_t recording[] = { 0xd9, 0xd9, 0xf7 }; /* tag 55799 */
	uint8_t three[3];

	if (!memcmp(b, recording, 3))
		return &decoder_snapshot;
	/* A vJoule header shorter than 64 KiB has two zero bytes here. A valid body of ZICO does not. */
	if (!b[2] && !b[3])
		return &decoder_vjoule;
	if (is_zico(b) || (zico_is_base64(b, three) && is_zico(three)))
		return &decoder_zico;
	return b[3] ? NULL : &decoder_vjoule;
}

static const struct decoder *choose(struct decoding *d)
{
	const uint8_t *p;
	uint8_t b[4] = { 0 };
	int n = input_peek(d->in, sizeof(b), &p);

	if (n < 0)
		return NULL;
	n = n < (int)sizeof(b) ? n : (int)sizeof(b);
	memcpy(b, p, (size_t)n);
	for (unsigned i = 0; d->format && i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(d->format, formats[i].name))
			return formats[i].decoder;
	if (n == (int)sizeof(b) && by_content(b))
		return by_content(b);
	if (n && b[0] == '{')
		input_fail(d->in, 0, "a binary format", "JSON, which jq reads");
	else if (n == (int)sizeof(b) && !memcmp(b, "time", 4))
		input_fail(d->in, 0, "a binary format", "CSV, which column reads");
	else if (n < (int)sizeof(b))
		input_fail(d->in, (uint64_t)n, "a report, a trace or a recording", "the end of the input");
	else
		input_fail(d->in, 0, "a report, a trace or a recording (or say --format)", "bytes %02x %02x %02x %02x",
			   b[0], b[1], b[2], b[3]);
	return NULL;
}

static int flush(void *arg)
{
	return out_flush(arg);
}

int decode_all(struct decoding *d)
{
	const struct decoder *decoder;
	void *state = NULL;
	int rc, flushed;

	input_before_wait(d->in, flush, d->out);
	decoder = choose(d);
	if (!decoder)
		return input_failure(d->in)->code;
	rc = decoder->open(d, &state);
	if (rc == -ENOMEM)
		rc = input_fail_as(d->in, &(struct err){ -ENOMEM, "decode: out of memory; free some" });
	while (!rc && (rc = decoder->next(state)) == 1)
		rc = 0;
	decoder->close(state);
	if (rc)
		out_drop(d->out);
	flushed = out_flush(d->out);
	if (!rc && flushed)
		rc = decode_write_failed(d, flushed);
	return rc;
}

/* ZICO 1.90 sends its bodies as base64 text (RFC 4648 section 4, with padding). Bodies follow each other with or
 * without line ends. */

static int digit(uint8_t c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Decodes four digits, of which the last one or two may be padding. Returns the number of bytes, 1 to 3, or 0 when
 * these are no such digits. */
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

static bool zico_is_base64(const uint8_t four[4], uint8_t ret[3])
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
