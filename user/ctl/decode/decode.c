/* SPDX-License-Identifier: Apache-2.0 */
/* Which format it is, and its records one after the other. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "decode_zico.h"

static const struct {
	const char *name;
	const struct decoder *binary; /* NULL: by the first byte, JSON or CSV */
} formats[] = {
	{ "vjoule", &decoder_vjoule },     { "hwpc", NULL }, { "power", NULL }, { "zico", &decoder_zico },
	{ "snapshot", &decoder_snapshot },
};

const char *decode_format_name(unsigned n)
{
	return n < sizeof(formats) / sizeof(formats[0]) ? formats[n].name : NULL;
}

int decode_write_failed(struct decoding *d, int code)
{
	struct err err = { 0 };

	err_set(&err, code, "output: %s; make room, or mend its reader", strerrordesc_np(-code));
	return input_fail_as(d->in, &err);
}

int decode_record_end(struct decoding *d, uint64_t offset)
{
	int err = out_record_end(d->out);

	if (err == -EFBIG)
		return input_fail(d->in, offset, "a record that takes at most 24 MiB as text", "a larger one");
	return err ? decode_write_failed(d, err) : 1;
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

static const struct decoder *by_content(const uint8_t b[4])
{
	static const uint8_t recording[] = { 0xd9, 0xd9, 0xf7 }; /* tag 55799 */
	uint8_t three[3];

	if (!memcmp(b, recording, 3))
		return &decoder_snapshot;
	if (!memcmp(b, "time", 4))
		return &decoder_csv;
	if (b[0] == '{' || (strchr(" \t\r\n", b[0]) && b[0] && strchr(" \t\r\n{", b[1]) && b[1]))
		return &decoder_json;
	/* A header below 64 KiB; no body of ZICO has zeros there that make sense. */
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
			return formats[i].binary ? formats[i].binary : b[0] == 't' ? &decoder_csv : &decoder_json;
	if (n == (int)sizeof(b) && by_content(b))
		return by_content(b);
	if (n < (int)sizeof(b))
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
	int err, code;

	input_before_wait(d->in, flush, d->out);
	decoder = choose(d);
	if (!decoder)
		return input_failure(d->in)->code;
	err = decoder->open(d, &state);
	if (err == -ENOMEM)
		err = input_fail_as(d->in, &(struct err){ -ENOMEM, "decode: out of memory; free some" });
	while (!err && (err = decoder->next(state)) == 1)
		err = 0;
	decoder->close(state);
	if (err)
		out_drop(d->out);
	code = out_flush(d->out);
	if (!err && code)
		err = decode_write_failed(d, code);
	return err;
}
