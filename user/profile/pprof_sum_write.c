/* SPDX-License-Identifier: Apache-2.0 */
/* A sum of profiles in its forms. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "folded_lines.h"
#include "pprof_sum_parts.h"

int64_t pprof_sum_time_ns(const struct pprof_sum *s)
{
	return s->time_ns;
}

uint64_t pprof_sum_duration_ns(const struct pprof_sum *s)
{
	return s->duration_ns;
}

static void write_parts(const struct interned *t, unsigned field, const uint64_t *limit, struct buf *out,
			struct buf *part)
{
	for (uint32_t i = 0; i < t->n; i++) {
		buf_reset(part);
		put_number(part, 1, (uint64_t)i + 1);
		if (limit)
			put_number(part, 3, limit[i]);
		buf_add(part, t->bytes.data + t->v[i].at, t->v[i].len);
		put_bytes(out, field, part->data, part->len);
	}
}

static void write_type(const uint32_t type[2], unsigned field, struct buf *out, struct buf *part)
{
	buf_reset(part);
	put_number(part, 1, type[0]);
	put_number(part, 2, type[1]);
	put_bytes(out, field, part->data, part->len);
}

static void write_samples(const struct pprof_sum *s, struct buf *out, struct buf *part, struct buf *list)
{
	for (uint32_t i = 0; i < s->sample.n; i++) {
		buf_reset(part);
		buf_reset(list);
		buf_add(part, s->sample.bytes.data + s->sample.v[i].at, s->sample.v[i].len);
		for (uint32_t k = 0; k < s->stride; k++)
			varint_add(list, s->value[(size_t)i * s->stride + k]);
		put_bytes(part, 2, list->data, list->len);
		put_bytes(out, SAMPLE, part->data, part->len);
	}
}

int pprof_sum_write(const struct pprof_sum *s, struct buf *out)
{
	struct buf part = { 0 }, list = { 0 };
	uint32_t type[2], text;
	bool failed;

	for (uint32_t i = 0; i < s->type.n; i++) {
		memcpy(type, s->type.bytes.data + s->type.v[i].at, sizeof(type));
		write_type(type, SAMPLE_TYPE, out, &part);
	}
	write_samples(s, out, &part, &list);
	write_parts(&s->mapping, MAPPING, s->limit, out, &part);
	write_parts(&s->location, LOCATION, NULL, out, &part);
	write_parts(&s->function, FUNCTION, NULL, out, &part);
	for (uint32_t i = 0; i < s->text.n; i++)
		put_bytes(out, STRING_TABLE, s->text.bytes.data + s->text.v[i].at, s->text.v[i].len);
	put_number(out, TIME_NANOS, (uint64_t)s->time_ns);
	put_number(out, DURATION_NANOS, s->duration_ns);
	write_type(s->period_type, PERIOD_TYPE, out, &part);
	put_number(out, PERIOD, s->period);
	for (uint32_t i = 0; i < s->comment.n; i++) {
		memcpy(&text, s->comment.bytes.data + s->comment.v[i].at, sizeof(text));
		put_number(out, COMMENT, text);
	}
	put_number(out, DEFAULT_SAMPLE_TYPE, s->first_type);
	failed = part.failed || list.failed || out->failed;
	buf_free(&part);
	buf_free(&list);
	return failed ? -ENOMEM : 0;
}

/* The name of a function, or of a location's n-th line. */
static const char *function_name(const struct pprof_sum *s, uint64_t id)
{
	struct varint_reader r = bytes_of(&s->function, (uint32_t)(id - 1));
	struct field f;

	while (next_field(&r, &f))
		if (f.number == 2)
			return text_at(s, (uint32_t)f.value);
	return "";
}

/* Lines of a location: the innermost first. */
static void add_frames(const struct pprof_sum *s, uint64_t location, struct pprof_sample *ret)
{
	struct varint_reader r = bytes_of(&s->location, (uint32_t)(location - 1));
	struct field f, in;

	while (next_field(&r, &f)) {
		struct varint_reader line = f.is_bytes ? inside(&f) : (struct varint_reader){ 0 };

		while (f.number == 4 && next_field(&line, &in))
			if (in.number == 1 && ret->n <= STACK_FRAMES_MAX)
				ret->frame[ret->n++] = function_name(s, in.value);
	}
}

static void look_at_label(const struct pprof_sum *s, const struct field *label, struct pprof_sample *ret)
{
	struct varint_reader r = inside(label);
	const char *key = "", *text = "";
	struct field f;

	while (next_field(&r, &f))
		if (f.number == 1)
			key = text_at(s, (uint32_t)f.value);
		else if (f.number == 2)
			text = text_at(s, (uint32_t)f.value);
	if (strcmp(key, "cgroup") == 0)
		ret->cgroup = text;
	else if (strcmp(key, "process") == 0)
		ret->process = text;
	else if (strcmp(key, "quality") == 0)
		ret->quality = text;
}

static uint64_t value_of(const struct pprof_sum *s, uint32_t sample, const char *type)
{
	uint32_t name;

	for (uint32_t k = 0; k < s->stride; k++) {
		memcpy(&name, s->type.bytes.data + s->type.v[k].at, sizeof(name));
		if (strcmp(text_at(s, name), type) == 0)
			return s->value[(size_t)sample * s->stride + k];
	}
	return 0;
}

int pprof_sum_each(const struct pprof_sum *s, int (*each)(void *arg, const struct pprof_sample *sample), void *arg)
{
	struct pprof_sample *ret = malloc(sizeof(*ret));
	int rc = ret ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < s->sample.n && !rc; i++) {
		struct varint_reader r = bytes_of(&s->sample, i);
		struct field f;

		ret->cgroup = ret->process = ret->quality = "";
		ret->n = 0;
		while (next_field(&r, &f)) {
			struct varint_reader list = inside(&f);

			while (f.number == 1 && list.at < list.end && !list.bad)
				add_frames(s, varint_take(&list), ret);
			if (f.number == 3)
				look_at_label(s, &f, ret);
		}
		ret->samples = value_of(s, i, "samples");
		ret->energy_uj = value_of(s, i, "energy");
		rc = each(arg, ret);
	}
	free(ret);
	return rc;
}

static int fold_sample(void *arg, const struct pprof_sample *p)
{
	struct folded_lines *f = arg;

	folded_begin(f);
	folded_label(f, p->cgroup, false);
	if (*p->process)
		folded_label(f, p->process, false);
	for (unsigned i = p->n; i-- > 0;)
		folded_label(f, p->frame[i], false);
	return folded_end(f, p->energy_uj);
}

int pprof_sum_folded(const struct pprof_sum *s, struct buf *out)
{
	struct folded_lines f = { 0 };
	int rc = pprof_sum_each(s, fold_sample, &f);

	return folded_write(&f, rc, out);
}
