/* SPDX-License-Identifier: Apache-2.0 */
/* Each kind of part is entered by its bytes, with the numbers in it turned into those of the sum, so that equal parts of
 * two messages are one. */
#include "pprof_sum.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "pprof_sum_parts.h"

#define PARTS_MAX (4u << 20) /* of one kind in a message */
#define LABELS_MAX 64
#define LINES_MAX 256
#define COMMENTS_MAX 16 /* of a message */

static size_t used(const struct pprof_sum *s)
{
	return s->text.bytes.len + s->function.bytes.len + s->location.bytes.len + s->sample.bytes.len +
	       (s->text.n + s->function.n + s->location.n + s->sample.n) * (sizeof(struct place) + 32) +
	       s->sample.n * s->stride * sizeof(uint64_t);
}

static uint32_t find(const struct interned *t, const void *p, size_t n, uint64_t key)
{
	for (struct hash_walk w = hash_walk(&t->by_bytes, key); hash_step(&w);)
		if (t->v[w.at].len == n && (!n || memcmp(t->bytes.data + t->v[w.at].at, p, n) == 0))
			return w.at;
	return HASH_NONE;
}

uint32_t pprof_intern(struct pprof_sum *s, struct interned *t, const void *bytes, size_t n)
{
	const void *p = n ? bytes : ""; /* a part that is empty may have no place */
	const uint64_t key = hash_bytes(p, n);
	const uint32_t at = find(t, p, n, key);

	if (at != HASH_NONE)
		return at;
	if (ARRAY_ROOM(t->v, t->cap, t->n + 1) || hash_reserve(&t->by_bytes, t->n + 1)) {
		s->failed = true;
		return 0;
	}
	t->v[t->n] = (struct place){ t->bytes.len, n };
	buf_add(&t->bytes, p, n);
	buf_add_char(&t->bytes, '\0');
	s->failed |= t->bytes.failed;
	hash_add(&t->by_bytes, key, t->n);
	return t->n++;
}

uint32_t pprof_intern_text(struct pprof_sum *s, const char *text)
{
	return pprof_intern(s, &s->text, text, strlen(text));
}

/* The parts of one kind in a message, by their ids there, and their numbers in the sum. */
struct part {
	const uint8_t *bytes;
	size_t len;
	uint64_t id;
	uint32_t to; /* HASH_NONE = not entered yet */
};
struct parts {
	struct part *v;
	uint32_t n, cap;
	struct hash by_id;
};

/* A message while it is read. */
struct message {
	struct parts of[STRING_TABLE + 1]; /* by field; strings have no ids */
	uint32_t column[LABELS_MAX + 8]; /* in the sum, by value type */
	unsigned n_columns;
	uint64_t time_ns, duration_ns, period, first_type;
	uint64_t comment[COMMENTS_MAX];
	unsigned n_comments;
};

static int add_part(struct parts *p, const struct field *f, bool has_id)
{
	struct varint_reader r = inside(f);
	struct part part = { .bytes = f->bytes, .len = f->value, .to = HASH_NONE };
	struct field in;

	while (has_id && next_field(&r, &in))
		if (in.number == 1 && !in.is_bytes)
			part.id = in.value;
	if (r.bad || p->n >= PARTS_MAX || (has_id && !part.id))
		return -EBADMSG;
	if (ARRAY_ROOM(p->v, p->cap, p->n + 1) || (has_id && hash_reserve(&p->by_id, p->n + 1)))
		return -ENOMEM;
	if (has_id)
		hash_add(&p->by_id, part.id, p->n);
	p->v[p->n++] = part;
	return 0;
}

static int read_parts(struct message *m, const void *data, size_t n)
{
	struct varint_reader r = { data, (const uint8_t *)data + n, false };
	struct field f;
	int rc = 0;

	while (!rc && next_field(&r, &f)) {
		if (f.number >= SAMPLE_TYPE && f.number <= STRING_TABLE && f.is_bytes)
			rc = add_part(&m->of[f.number], &f, f.number >= MAPPING && f.number <= FUNCTION);
		else if (f.number == TIME_NANOS)
			m->time_ns = f.value;
		else if (f.number == DURATION_NANOS)
			m->duration_ns = f.value;
		else if (f.number == PERIOD)
			m->period = f.value;
		else if (f.number == DEFAULT_SAMPLE_TYPE)
			m->first_type = f.value;
		else if (f.number == COMMENT && !f.is_bytes && m->n_comments < COMMENTS_MAX)
			m->comment[m->n_comments++] = f.value;
	}
	if (!rc && (r.bad || !m->of[STRING_TABLE].n || m->of[STRING_TABLE].v[0].len ||
		    m->of[SAMPLE_TYPE].n > LABELS_MAX || !m->of[SAMPLE_TYPE].n))
		rc = -EBADMSG;
	return rc;
}

static bool is_whole_text(const struct message *m, uint64_t at)
{
	const struct parts *t = &m->of[STRING_TABLE];

	return at < t->n && (!t->v[at].len || !memchr(t->v[at].bytes, 0, t->v[at].len));
}

/* The number in the sum of the message's string. */
static int text_of(struct pprof_sum *s, struct message *m, uint64_t at, uint32_t *ret)
{
	struct part *p;

	if (!is_whole_text(m, at))
		return -EBADMSG;
	p = &m->of[STRING_TABLE].v[at];
	if (p->to == HASH_NONE)
		p->to = pprof_intern(s, &s->text, p->bytes, p->len);
	*ret = p->to;
	return 0;
}

static struct part *part_of(struct message *m, unsigned kind, uint64_t id)
{
	const uint32_t at = hash_find(&m->of[kind].by_id, id);

	return at == HASH_NONE ? NULL : &m->of[kind].v[at];
}

/* Enters a part that has no parts in it: its id is left out, and `texts` are its fields that are strings. */
static int enter_flat(struct pprof_sum *s, struct message *m, struct interned *to, struct part *p, unsigned texts,
		      unsigned left_out)
{
	struct varint_reader r = { p->bytes, p->bytes + p->len, false };
	struct field f;
	uint32_t text;
	int rc = 0;

	if (p->to != HASH_NONE)
		return 0;
	buf_reset(&s->part);
	while (!rc && next_field(&r, &f)) {
		if (f.is_bytes || f.number == 1 || f.number > 31 || (left_out >> f.number & 1))
			continue;
		if (!(texts >> f.number & 1))
			put_number(&s->part, f.number, f.value);
		else if ((rc = text_of(s, m, f.value, &text)) == 0)
			put_number(&s->part, f.number, text);
	}
	if (r.bad)
		rc = -EBADMSG;
	if (!rc)
		p->to = pprof_intern(s, to, s->part.data, s->part.len);
	return rc;
}

static int enter_mapping(struct pprof_sum *s, struct message *m, struct part *p)
{
	struct varint_reader r = { p->bytes, p->bytes + p->len, false };
	struct field f;
	int rc = enter_flat(s, m, &s->mapping, p, 1u << 5 | 1u << 6, 1u << 3);

	if (!rc && ARRAY_ZEROED(s->limit, s->limit_cap, p->to + 1))
		rc = -ENOMEM;
	while (!rc && next_field(&r, &f))
		if (f.number == 3 && f.value > s->limit[p->to])
			s->limit[p->to] = f.value;
	return rc;
}

/* A Line of a Location. */
static int enter_line(struct pprof_sum *s, struct message *m, const struct field *line)
{
	struct varint_reader r = inside(line);
	struct part *of;
	struct field f;
	int rc;

	buf_reset(&s->list);
	while (next_field(&r, &f)) {
		if (f.is_bytes)
			continue;
		if (f.number != 1) {
			put_number(&s->list, f.number, f.value);
			continue;
		}
		of = part_of(m, FUNCTION, f.value);
		if (!of)
			return -EBADMSG;
		if (of->to == HASH_NONE) { /* its own part is made first: this one goes on behind it */
			struct buf mine = s->part;

			s->part = (struct buf){ 0 };
			rc = enter_flat(s, m, &s->function, of, 1u << 2 | 1u << 3 | 1u << 4, 0);
			buf_free(&s->part);
			s->part = mine;
			if (rc)
				return rc;
		}
		put_number(&s->list, 1, of->to + 1);
	}
	if (r.bad)
		return -EBADMSG;
	put_bytes(&s->part, 4, s->list.data, s->list.len);
	return 0;
}

static int enter_location(struct pprof_sum *s, struct message *m, struct part *p)
{
	struct varint_reader r = { p->bytes, p->bytes + p->len, false };
	unsigned lines = 0;
	struct part *of;
	struct field f;
	int rc = 0;

	if (p->to != HASH_NONE)
		return 0;
	buf_reset(&s->part);
	while (!rc && next_field(&r, &f)) {
		if (f.number == 2 && f.value) {
			struct buf mine = s->part;

			of = part_of(m, MAPPING, f.value);
			s->part = (struct buf){ 0 };
			rc = of ? enter_mapping(s, m, of) : -EBADMSG;
			buf_free(&s->part);
			s->part = mine;
			if (!rc)
				put_number(&s->part, 2, of->to + 1);
		} else if (f.number == 4 && f.is_bytes) {
			rc = ++lines > LINES_MAX ? -EBADMSG : enter_line(s, m, &f);
		} else if (f.number != 1 && !f.is_bytes) {
			put_number(&s->part, f.number, f.value);
		}
	}
	if (!rc)
		p->to = pprof_intern(s, &s->location, s->part.data, s->part.len);
	return rc;
}

/* A sample of a message. */
struct sample {
	uint64_t location[STACK_FRAMES_MAX + 2], value[LABELS_MAX];
	unsigned n_locations, n_values;
	struct label {
		uint64_t key, text, unit, number; /* strings of the message */
	} label[LABELS_MAX];
	unsigned n_labels;
};

static int take_list(const struct field *f, uint64_t *to, unsigned *n, unsigned max)
{
	struct varint_reader r = inside(f);

	if (!f->is_bytes) {
		if (*n == max)
			return -EBADMSG;
		to[(*n)++] = f->value;
		return 0;
	}
	while (r.at < r.end && !r.bad) {
		if (*n == max)
			return -EBADMSG;
		to[(*n)++] = varint_take(&r);
	}
	return r.bad ? -EBADMSG : 0;
}

static int take_label(const struct field *of, struct sample *sample)
{
	struct varint_reader r = inside(of);
	struct label *l = &sample->label[sample->n_labels];
	struct field f;

	if (!of->is_bytes || sample->n_labels == LABELS_MAX)
		return -EBADMSG;
	*l = (struct label){ 0 };
	while (next_field(&r, &f)) {
		uint64_t *const to[] = { NULL, &l->key, &l->text, &l->number, &l->unit };

		if (f.number >= 1 && f.number <= 4 && !f.is_bytes)
			*to[f.number] = f.value;
	}
	sample->n_labels++;
	return r.bad ? -EBADMSG : 0;
}

static int read_sample(const struct message *m, const struct part *p, struct sample *ret)
{
	struct varint_reader r = { p->bytes, p->bytes + p->len, false };
	struct field f;
	int rc = 0;

	ret->n_locations = ret->n_values = ret->n_labels = 0;
	while (!rc && next_field(&r, &f)) {
		if (f.number == 1)
			rc = take_list(&f, ret->location, &ret->n_locations, STACK_FRAMES_MAX + 2);
		else if (f.number == 2)
			rc = take_list(&f, ret->value, &ret->n_values, LABELS_MAX);
		else if (f.number == 3)
			rc = take_label(&f, ret);
	}
	return rc ? rc : r.bad || ret->n_values != m->n_columns ? -EBADMSG : 0;
}

static bool is_text(const struct message *m, uint64_t at, const char *text)
{
	const struct part *p = at < m->of[STRING_TABLE].n ? &m->of[STRING_TABLE].v[at] : NULL;

	return p && p->len == strlen(text) && memcmp(p->bytes, text, p->len) == 0;
}

/* Judged before anything of the sample is entered: of what is left out no name may stay. */
static bool wanted(struct pprof_sum *s, const struct message *m, const struct sample *sample,
		   const struct pprof_filter *f)
{
	const size_t n = f->cgroup ? strlen(f->cgroup) : 0;
	const char *cgroup;

	buf_reset(&s->list);
	for (unsigned i = 0; i < sample->n_labels; i++)
		if (is_text(m, sample->label[i].key, "cgroup") && sample->label[i].text < m->of[STRING_TABLE].n) {
			const struct part *p = &m->of[STRING_TABLE].v[sample->label[i].text];

			buf_reset(&s->list);
			buf_add(&s->list, p->bytes, p->len);
		}
	buf_add_char(&s->list, '\0');
	if (s->list.failed)
		return false;
	cgroup = (const char *)s->list.data;
	if (f->admits && cgroup[0] == '/' && !f->admits(f->arg, cgroup))
		return false;
	return !f->cgroup || (cgroup[0] == '/' &&
			      (n == 1 || (strncmp(cgroup, f->cgroup, n) == 0 && (!cgroup[n] || cgroup[n] == '/'))));
}

static int put_label(struct pprof_sum *s, struct message *m, const struct label *l)
{
	uint32_t key, text, unit;
	int rc = text_of(s, m, l->key, &key);

	if (!rc)
		rc = text_of(s, m, l->text, &text);
	if (!rc)
		rc = text_of(s, m, l->unit, &unit);
	if (rc)
		return rc;
	buf_reset(&s->list);
	put_number(&s->list, 1, key);
	put_number(&s->list, 2, text);
	put_number(&s->list, 3, l->number);
	put_number(&s->list, 4, unit);
	put_bytes(&s->part, 3, s->list.data, s->list.len);
	return 0;
}

/* all: else only those that say whose row it is. */
static int put_labels(struct pprof_sum *s, struct message *m, const struct sample *sample, bool all)
{
	int rc = 0;

	for (unsigned i = 0; i < sample->n_labels && !rc; i++)
		if (all || is_text(m, sample->label[i].key, "cgroup") || is_text(m, sample->label[i].key, "quality"))
			rc = put_label(s, m, &sample->label[i]);
	return rc;
}

/* The location of a frame that is no code. */
static uint32_t location_named(struct pprof_sum *s, const char *name)
{
	const uint32_t text = pprof_intern_text(s, name);
	uint32_t of;

	buf_reset(&s->part);
	put_number(&s->part, 2, text);
	put_number(&s->part, 3, text);
	of = pprof_intern(s, &s->function, s->part.data, s->part.len);
	buf_reset(&s->part);
	buf_reset(&s->list);
	put_number(&s->list, 1, of + 1);
	put_bytes(&s->part, 4, s->list.data, s->list.len);
	return pprof_intern(s, &s->location, s->part.data, s->part.len);
}

static int enter_stack(struct pprof_sum *s, struct message *m, struct sample *sample)
{
	const bool room = used(s) < s->bytes_max;
	int rc = 0;

	for (unsigned i = 0; i < sample->n_locations && room && !rc; i++) {
		struct part *p = part_of(m, LOCATION, sample->location[i]);

		rc = p ? enter_location(s, m, p) : -EBADMSG;
		sample->location[i] = rc ? 0 : p->to + 1;
	}
	if (!room) {
		sample->location[0] = location_named(s, PPROF_NO_ROOM) + 1;
		sample->n_locations = 1;
	}
	buf_reset(&s->part);
	buf_reset(&s->list);
	for (unsigned i = 0; i < sample->n_locations; i++)
		varint_add(&s->list, sample->location[i]);
	put_bytes(&s->part, 1, s->list.data, s->list.len);
	return rc ? rc : put_labels(s, m, sample, room);
}

static int add_values(struct pprof_sum *s, const struct message *m, uint32_t at, const struct sample *sample)
{
	const size_t need = ((size_t)at + 1) * s->stride;

	if (need > s->value_cap) {
		const size_t had = s->value_cap, cap = need + need / 2 + 1024;

		if (ARRAY_RESIZE(s->value, cap))
			return -ENOMEM;
		memset(s->value + had, 0, (cap - had) * sizeof(*s->value));
		s->value_cap = cap;
	}
	for (unsigned i = 0; i < sample->n_values; i++)
		s->value[(size_t)at * s->stride + m->column[i]] += sample->value[i];
	return 0;
}

/* A new value type gets a column: rows are laid out anew. */
static int widen(struct pprof_sum *s)
{
	const uint32_t stride = s->type.n;
	uint64_t *v;

	if (stride <= s->stride)
		return 0;
	v = calloc((size_t)(s->sample.n + 1) * stride, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->sample.n; i++)
		memcpy(v + (size_t)i * stride, s->value + (size_t)i * s->stride, s->stride * sizeof(*v));
	free(s->value);
	s->value = v;
	s->value_cap = (size_t)(s->sample.n + 1) * stride;
	s->stride = stride;
	return 0;
}

static int enter_types(struct pprof_sum *s, struct message *m)
{
	uint32_t text;
	int rc = 0;

	for (uint32_t i = 0; i < m->of[SAMPLE_TYPE].n && !rc; i++) {
		struct part *p = &m->of[SAMPLE_TYPE].v[i];
		struct varint_reader r = { p->bytes, p->bytes + p->len, false };
		uint32_t type[2] = { 0, 0 };
		struct field f;

		while (!rc && next_field(&r, &f))
			if (!f.is_bytes && (f.number == 1 || f.number == 2))
				rc = text_of(s, m, f.value, &type[f.number - 1]);
		m->column[m->n_columns++] = pprof_intern(s, &s->type, type, sizeof(type));
	}
	if (!rc && m->first_type)
		rc = text_of(s, m, m->first_type, &s->first_type);
	for (unsigned i = 0; i < m->n_comments && !rc; i++)
		if ((rc = text_of(s, m, m->comment[i], &text)) == 0)
			pprof_intern(s, &s->comment, &text, sizeof(text));
	return rc ? rc : widen(s);
}

/* Reads every sample once before one is taken: a message is taken whole, or not at all. */
static int check_samples(struct pprof_sum *s, struct message *m, const struct pprof_filter *f, struct sample *sample)
{
	int rc = 0;

	for (uint32_t i = 0; i < m->of[SAMPLE].n && !rc; i++) {
		rc = read_sample(m, &m->of[SAMPLE].v[i], sample);
		for (unsigned k = 0; k < sample->n_labels && !rc; k++)
			if (!is_whole_text(m, sample->label[k].key) || !is_whole_text(m, sample->label[k].text) ||
			    !is_whole_text(m, sample->label[k].unit))
				rc = -EBADMSG;
		if (rc || !wanted(s, m, sample, f))
			continue;
		for (unsigned k = 0; k < sample->n_locations && !rc; k++) {
			struct part *p = part_of(m, LOCATION, sample->location[k]);

			rc = p ? used(s) < s->bytes_max ? enter_location(s, m, p) : 0 : -EBADMSG;
		}
	}
	return rc;
}

static int add_samples(struct pprof_sum *s, struct message *m, const struct pprof_filter *f)
{
	struct sample *sample = malloc(sizeof(*sample));
	int rc = sample ? check_samples(s, m, f, sample) : -ENOMEM;

	for (uint32_t i = 0; i < m->of[SAMPLE].n && !rc; i++) {
		rc = read_sample(m, &m->of[SAMPLE].v[i], sample);
		if (rc || !wanted(s, m, sample, f))
			continue;
		rc = enter_stack(s, m, sample);
		if (!rc)
			rc = add_values(s, m, pprof_intern(s, &s->sample, s->part.data, s->part.len), sample);
	}
	free(sample);
	return rc;
}

int pprof_sum_add(struct pprof_sum *s, const void *message, size_t n, const struct pprof_filter *f)
{
	struct message *m = calloc(1, sizeof(*m));
	int rc = m ? read_parts(m, message, n) : -ENOMEM;

	if (!rc)
		rc = enter_types(s, m);
	if (!rc)
		rc = add_samples(s, m, f);
	if (!rc) {
		if (!s->time_ns || (int64_t)m->time_ns < s->time_ns)
			s->time_ns = (int64_t)m->time_ns;
		s->duration_ns += m->duration_ns;
		s->period = m->period ? m->period : s->period;
	}
	for (unsigned i = 0; m && i <= STRING_TABLE; i++) {
		free(m->of[i].v);
		hash_free(&m->of[i].by_id);
	}
	free(m);
	return s->failed ? -ENOMEM : rc;
}

struct pprof_sum *pprof_sum_new(size_t bytes_max)
{
	struct pprof_sum *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->bytes_max = bytes_max;
	pprof_intern_text(s, "");
	s->period_type[0] = pprof_intern_text(s, "cpu");
	s->period_type[1] = pprof_intern_text(s, "nanoseconds");
	if (!s->failed)
		return s;
	pprof_sum_free(s);
	return NULL;
}

static void interned_free(struct interned *t)
{
	buf_free(&t->bytes);
	free(t->v);
	hash_free(&t->by_bytes);
}

void pprof_sum_free(struct pprof_sum *s)
{
	if (!s)
		return;
	interned_free(&s->text);
	interned_free(&s->function);
	interned_free(&s->mapping);
	interned_free(&s->location);
	interned_free(&s->sample);
	interned_free(&s->type);
	interned_free(&s->comment);
	free(s->limit);
	free(s->value);
	buf_free(&s->part);
	buf_free(&s->list);
	free(s);
}
