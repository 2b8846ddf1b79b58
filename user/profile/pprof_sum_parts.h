/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a sum of profiles, for those who add to it and who write it. */
#ifndef JD_PPROF_SUM_PARTS_H
#define JD_PPROF_SUM_PARTS_H
#include "base/format/varint.h"
#include "base/hash.h"
#include "pprof_fields.h"
#include "pprof_sum.h"

/* Things known by their bytes. */
struct interned {
	struct buf bytes;
	struct place {
		size_t at, len;
	} * v;
	uint32_t n, cap;
	struct hash by_bytes;
};

struct pprof_sum {
	size_t bytes_max;
	struct interned text, function, mapping, location, sample, type, comment;
	uint64_t *limit; /* of each mapping: it grows with what was sampled */
	uint32_t limit_cap;
	uint64_t *value; /* [sample * stride + type] */
	size_t value_cap;
	uint32_t stride;
	uint64_t period, duration_ns;
	int64_t time_ns;
	uint32_t first_type; /* default_sample_type, a text */
	uint32_t period_type[2];
	struct buf part, list; /* while a part is made */
	bool failed;
};

/* The number of these bytes, entered where they are new. */
uint32_t pprof_intern(struct pprof_sum *s, struct interned *t, const void *p, size_t n);
uint32_t pprof_intern_text(struct pprof_sum *s, const char *text);

static inline const char *text_at(const struct pprof_sum *s, uint32_t at)
{
	return (const char *)s->text.bytes.data + s->text.v[at].at;
}

static inline struct varint_reader bytes_of(const struct interned *t, uint32_t at)
{
	const uint8_t *p = t->bytes.data + t->v[at].at;

	return (struct varint_reader){ p, p + t->v[at].len, false };
}

static inline void put_number(struct buf *b, unsigned field, uint64_t v)
{
	if (!v)
		return;
	varint_add(b, field << 3);
	varint_add(b, v);
}

static inline void put_bytes(struct buf *b, unsigned field, const void *p, size_t n)
{
	varint_add(b, field << 3 | 2);
	varint_add(b, n);
	buf_add(b, p, n);
}

/* A field of a message: a number, or bytes. */
struct field {
	unsigned number;
	bool is_bytes;
	uint64_t value; /* of bytes: how many */
	const uint8_t *bytes;
};

static inline bool next_field(struct varint_reader *r, struct field *f)
{
	uint64_t tag;

	if (r->at >= r->end || r->bad)
		return false;
	tag = varint_take(r);
	f->number = tag >> 3 < 64 ? (unsigned)(tag >> 3) : 64;
	f->is_bytes = (tag & 7) == 2;
	f->bytes = NULL;
	if ((tag & 7) == 1 || (tag & 7) == 5) {
		f->value = 0;
		varint_bytes(r, (tag & 7) == 1 ? 8 : 4);
	} else if ((tag & 7) == 0 || f->is_bytes) {
		f->value = varint_take(r);
	} else {
		r->bad = true;
	}
	if (f->is_bytes && !r->bad)
		f->bytes = varint_bytes(r, f->value);
	return !r->bad;
}

static inline struct varint_reader inside(const struct field *f)
{
	return f->is_bytes ? (struct varint_reader){ f->bytes, f->bytes + f->value, false } :
			     (struct varint_reader){ 0 };
}

#endif
