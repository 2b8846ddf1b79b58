/* SPDX-License-Identifier: Apache-2.0 */
/* Records, and when they are written. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "out.h"

#define SPILL_BYTES 65536u

void out_init(struct out *o, bool json, int (*write)(void *arg, const void *p, size_t n), void *arg)
{
	*o = (struct out){ .json = json, .write = write, .arg = arg, .buf.limit = OUT_RECORD_MAX };
}

void out_free(struct out *o)
{
	buf_free(&o->buf);
}

/* DEL and the C1 controls (U+0080 to U+009F) may stand in JSON, and terminals obey them. */
static size_t next_control(const uint8_t *p, size_t at, size_t n)
{
	for (; at < n; at++)
		if (p[at] == 0x7f || (p[at] == 0xc2 && at + 1 < n && p[at + 1] >= 0x80 && p[at + 1] < 0xa0))
			break;
	return at;
}

static int write_json(struct out *o, size_t n)
{
	const uint8_t *p = o->buf.data;
	size_t at = 0;
	int err = 0;

	while (!err && at < n) {
		size_t stop = next_control(p, at, n);
		char escape[8];

		if (stop > at)
			err = o->write(o->arg, p + at, stop - at);
		at = stop;
		if (err || at == n)
			break;
		snprintf(escape, sizeof(escape), "\\u00%02x", p[at] == 0x7f ? 0x7f : p[at + 1]);
		at += p[at] == 0x7f ? 1 : 2;
		err = o->write(o->arg, escape, 6);
	}
	return err;
}

static int write_first(struct out *o, size_t n)
{
	int err = !n ? 0 : o->json ? write_json(o, n) : o->write(o->arg, o->buf.data, n);

	if (n && n < o->buf.len)
		memmove(o->buf.data, o->buf.data + n, o->buf.len - n);
	o->buf.len -= n;
	o->whole = 0;
	return err;
}

int out_flush(struct out *o)
{
	return write_first(o, o->whole);
}

int out_spill(struct out *o)
{
	return !o || o->buf.len < SPILL_BYTES ? 0 : write_first(o, o->buf.len);
}

void out_drop(struct out *o)
{
	o->buf.len = o->whole;
	o->buf.failed = false;
}

void out_record(struct out *o, const char *format, const char *kind, uint64_t offset)
{
	o->records++;
	if (o->json) {
		json_init(&o->j, &o->buf);
		json_object_begin(&o->j);
		json_key_str(&o->j, "format", format);
		json_key_str(&o->j, "kind", kind);
		json_key_u64(&o->j, "record", o->records);
		json_key_u64(&o->j, "offset", offset);
		return;
	}
	buf_printf(&o->buf, "%s %s %llu at byte %llu:", format, kind, (unsigned long long)o->records,
		   (unsigned long long)offset);
	o->depth = 0;
	o->closed = o->fresh = false;
}

int out_record_end(struct out *o)
{
	int err;

	if (o->json)
		json_object_end(&o->j);
	buf_add_char(&o->buf, '\n');
	if (o->buf.failed) {
		err = o->buf.cap < OUT_RECORD_MAX / 2 ? -ENOMEM : -EFBIG;
		out_drop(o);
		return err;
	}
	o->whole = o->buf.len;
	return o->whole < SPILL_BYTES ? 0 : out_flush(o);
}
