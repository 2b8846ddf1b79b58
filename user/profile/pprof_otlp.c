/* SPDX-License-Identifier: Apache-2.0 */
/* A sum of profiles as a request of OpenTelemetry: ExportProfilesServiceRequest of opentelemetry-proto 1.10
 * (collector/profiles/v1development/profiles_service.proto, profiles/v1development/profiles.proto). What profiles share stands
 * once, in the tables of a dictionary, and is known by its place there. Place 0 of each table is empty, so a part's place is
 * its id in pprof's form. A profile has one type of value: there is one for each type, that of energy first. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "encode/otlp_request.h"
#include "pprof_sum_parts.h"

#define REQUEST_DICTIONARY 2
#define FIXED64 1 /* wire type */

/* Fields of ProfilesDictionary. */
enum { MAPPINGS = 1, LOCATIONS, FUNCTIONS, LINKS, STRINGS, ATTRIBUTES, STACKS };
/* Fields of Profile. */
enum { VALUE_TYPE = 1, SAMPLES, TIME, DURATION, PERIOD_KIND, PERIOD_LENGTH, ID };
/* Fields of Sample, and of Mapping. */
enum { SAMPLE_STACK = 1, SAMPLE_ATTRIBUTES, SAMPLE_VALUES = 4, MAPPING_ATTRIBUTES = 5 };

/* Names of attributes for pprof's labels, and for the build id of a mapping. Others keep theirs. */
enum { KEY_BUILD_ID, KEY_CGROUP, KEY_PROCESS, KEY_PID, KEY_QUALITY, KEYS };
static const struct {
	const char *label, *key;
} names[KEYS] = {
	[KEY_BUILD_ID] = { NULL, "process.executable.build_id.gnu" },
	[KEY_CGROUP] = { "cgroup", "process.linux.cgroup" },
	[KEY_PROCESS] = { "process", "process.executable.name" },
	[KEY_PID] = { "pid", "process.pid" },
	[KEY_QUALITY] = { "quality", "jouled.energy_quality" },
};

struct request {
	struct pprof_sum *s;
	struct buf *out;
	struct interned stack, attribute;
	uint32_t key[KEYS]; /* strings */
	struct buf heads; /* of all samples: what a sample is in each profile */
	size_t *head; /* [samples + 1] */
	struct buf dictionary, part, list, item;
};

/* The place of a KeyValueAndUnit. text NULL: the value is a number. */
static uint32_t attribute(struct request *q, uint32_t key, const char *text, uint64_t number)
{
	buf_reset(&q->item);
	put_number(&q->item, 1, key);
	buf_reset(&q->list);
	if (text) {
		otlp_string(&q->list, OTLP_STRING, text);
	} else {
		buf_add_char(&q->list, OTLP_INT);
		varint_add(&q->list, number);
	}
	put_bytes(&q->item, 2, q->list.data, q->list.len);
	return pprof_intern(q->s, &q->attribute, q->item.data, q->item.len) + 1;
}

static uint32_t attribute_of_label(struct request *q, const struct field *label)
{
	struct varint_reader r = inside(label);
	uint64_t part[5] = { 0 }; /* key, str, num, num_unit */
	uint32_t key;
	struct field f;

	while (next_field(&r, &f))
		if (f.number <= 4 && !f.is_bytes)
			part[f.number] = f.value;
	key = (uint32_t)part[1];
	for (unsigned i = 0; i < KEYS; i++)
		if (names[i].label && strcmp(text_at(q->s, key), names[i].label) == 0)
			return attribute(q, q->key[i], part[2] ? text_at(q->s, (uint32_t)part[2]) : NULL, part[3]);
	return attribute(q, key, part[2] ? text_at(q->s, (uint32_t)part[2]) : NULL, part[3]);
}

/* What is the same of a sample in every profile: its stack and its attributes. */
static void add_head(struct request *q, uint32_t sample)
{
	struct varint_reader r = bytes_of(&q->s->sample, sample);
	uint32_t stack = 0;
	struct field f;

	buf_reset(&q->part);
	while (next_field(&r, &f))
		if (f.number == 1 && f.is_bytes && f.value)
			stack = pprof_intern(q->s, &q->stack, f.bytes, f.value) + 1;
		else if (f.number == 3 && f.is_bytes)
			varint_add(&q->part, attribute_of_label(q, &f));
	put_number(&q->heads, SAMPLE_STACK, stack);
	if (q->part.len)
		put_bytes(&q->heads, SAMPLE_ATTRIBUTES, q->part.data, q->part.len);
}

static int add_heads(struct request *q)
{
	q->head = malloc(((size_t)q->s->sample.n + 1) * sizeof(*q->head));
	if (!q->head)
		return -ENOMEM;
	for (uint32_t i = 0; i < q->s->sample.n; i++) {
		q->head[i] = q->heads.len;
		add_head(q, i);
	}
	q->head[q->s->sample.n] = q->heads.len;
	return q->heads.failed ? -ENOMEM : 0;
}

static void put_type(struct request *q, struct buf *to, unsigned field, const uint32_t type[2])
{
	buf_reset(&q->item);
	put_number(&q->item, 1, type[0]);
	put_number(&q->item, 2, type[1]);
	put_bytes(to, field, q->item.data, q->item.len);
}

/* A sample that has nothing of a type is left out of that profile. */
static void put_samples(struct request *q, uint32_t type)
{
	for (uint32_t i = 0; i < q->s->sample.n; i++) {
		const uint64_t v = q->s->value[(size_t)i * q->s->stride + type];

		if (!v)
			continue;
		buf_reset(&q->list);
		varint_add(&q->list, v);
		buf_reset(&q->item);
		if (q->heads.len) /* without a stack and a label in any sample there are no heads */
			buf_add(&q->item, q->heads.data + q->head[i], q->head[i + 1] - q->head[i]);
		put_bytes(&q->item, SAMPLE_VALUES, q->list.data, q->list.len);
		put_bytes(&q->part, SAMPLES, q->item.data, q->item.len);
	}
}

/* Its id tells a receiver that a profile came twice: a document that is sent again is the same. */
static void put_profile(struct request *q, uint32_t type)
{
	uint32_t what[2];
	uint64_t id[2];

	memcpy(what, q->s->type.bytes.data + q->s->type.v[type].at, sizeof(what));
	buf_reset(&q->part);
	put_type(q, &q->part, VALUE_TYPE, what);
	put_samples(q, type);
	varint_add(&q->part, TIME << 3 | FIXED64);
	buf_add(&q->part, &q->s->time_ns,
		sizeof(q->s->time_ns)); /* little endian, as all machines that are built for */
	put_number(&q->part, DURATION, q->s->duration_ns);
	put_type(q, &q->part, PERIOD_KIND, q->s->period_type);
	put_number(&q->part, PERIOD_LENGTH, q->s->period);
	id[0] = hash_bytes(q->part.data, q->part.len);
	id[1] = hash_word(id[0], type + 1);
	put_bytes(&q->part, ID, id, sizeof(id));
	put_bytes(q->out, OTLP_ITEM >> 3, q->part.data, q->part.len);
	q->out->failed |= q->part.failed;
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a number stands in memory as on the wire");

static void put_profiles(struct request *q)
{
	uint32_t first = 0, name;

	for (uint32_t i = 0; i < q->s->type.n; i++) {
		memcpy(&name, q->s->type.bytes.data + q->s->type.v[i].at, sizeof(name));
		if (name == q->s->first_type)
			first = i;
	}
	put_profile(q, first);
	for (uint32_t i = 0; i < q->s->type.n; i++)
		if (i != first)
			put_profile(q, i);
}

/* Fields of a part become those of its kind here: to[field] is the number, 0 = it is left out. Bytes are those of a Line. */
static void put_part(struct request *q, unsigned table, struct varint_reader r, const uint8_t to[8])
{
	struct field f, in;

	while (next_field(&r, &f)) {
		if (f.number >= 8 || !to[f.number])
			continue;
		if (!f.is_bytes) {
			put_number(&q->part, to[f.number], f.value);
			continue;
		}
		buf_reset(&q->list);
		for (struct varint_reader line = inside(&f); next_field(&line, &in);)
			put_number(&q->list, in.number, in.value);
		put_bytes(&q->part, to[f.number], q->list.data, q->list.len);
	}
	put_bytes(&q->dictionary, table, q->part.data, q->part.len);
}

static void put_mapping(struct request *q, uint32_t at)
{
	static const uint8_t to[8] = { [2] = 1, [4] = 3, [5] = 4 }; /* memory_start, file_offset, filename */
	struct varint_reader r = bytes_of(&q->s->mapping, at);
	uint32_t build_id = 0;
	struct field f;

	while (next_field(&r, &f))
		if (f.number == 6 && !f.is_bytes && f.value)
			build_id = attribute(q, q->key[KEY_BUILD_ID], text_at(q->s, (uint32_t)f.value), 0);
	buf_reset(&q->part);
	put_number(&q->part, 2, q->s->limit[at]);
	if (build_id) {
		buf_reset(&q->list);
		varint_add(&q->list, build_id);
		put_bytes(&q->part, MAPPING_ATTRIBUTES, q->list.data, q->list.len);
	}
	put_part(q, MAPPINGS, bytes_of(&q->s->mapping, at), to);
}

static void put_table(struct request *q, unsigned table, const struct interned *t, const uint8_t to[8])
{
	put_bytes(&q->dictionary, table, "", 0);
	for (uint32_t i = 0; i < t->n; i++) {
		buf_reset(&q->part);
		put_part(q, table, bytes_of(t, i), to);
	}
}

/* Of parts that are messages of the dictionary already. field: they are a list of numbers, which is that field of one. */
static void put_whole_table(struct request *q, unsigned table, const struct interned *t, unsigned field)
{
	put_bytes(&q->dictionary, table, "", 0);
	for (uint32_t i = 0; i < t->n; i++) {
		buf_reset(&q->part);
		if (field)
			put_bytes(&q->part, field, t->bytes.data + t->v[i].at, t->v[i].len);
		else
			buf_add(&q->part, t->bytes.data + t->v[i].at, t->v[i].len);
		put_bytes(&q->dictionary, table, q->part.data, q->part.len);
	}
}

static void put_dictionary(struct request *q)
{
	static const uint8_t location[8] = { [2] = 1, [3] = 2, [4] = 3 }; /* mapping, address, lines */
	static const uint8_t function[8] = { [2] = 1, [3] = 2, [4] = 3, [5] = 4 }; /* names, file, line */

	put_bytes(&q->dictionary, MAPPINGS, "", 0);
	for (uint32_t i = 0; i < q->s->mapping.n; i++)
		put_mapping(q, i);
	put_table(q, LOCATIONS, &q->s->location, location);
	put_table(q, FUNCTIONS, &q->s->function, function);
	put_bytes(&q->dictionary, LINKS, "", 0);
	for (uint32_t i = 0; i < q->s->text.n; i++)
		otlp_string(&q->dictionary, STRINGS << 3 | 2, text_at(q->s, i));
	put_whole_table(q, ATTRIBUTES, &q->attribute, 0);
	put_whole_table(q, STACKS, &q->stack, 1);
	put_bytes(q->out, REQUEST_DICTIONARY, q->dictionary.data, q->dictionary.len);
}

static void request_free(struct request *q)
{
	struct interned *const tables[] = { &q->stack, &q->attribute };

	for (unsigned i = 0; i < 2; i++) {
		buf_free(&tables[i]->bytes);
		free(tables[i]->v);
		hash_free(&tables[i]->by_bytes);
	}
	free(q->head);
	buf_free(&q->heads);
	buf_free(&q->dictionary);
	buf_free(&q->part);
	buf_free(&q->list);
	buf_free(&q->item);
}

int pprof_sum_otlp(struct pprof_sum *s, const char *sensor, struct buf *out)
{
	struct request q = { .s = s, .out = out };
	struct buf head = { 0 };
	int rc;

	for (unsigned i = 0; i < KEYS; i++)
		q.key[i] = pprof_intern_text(s, names[i].key);
	otlp_make_head(&head, sensor, NULL, 0);
	rc = head.failed ? -ENOMEM : add_heads(&q);
	if (!rc && s->type.n) {
		const size_t from = out->len;

		put_profiles(&q);
		rc = otlp_enclose(&(struct push_part){ .head = head.data, .n_head = head.len }, out, from);
		put_dictionary(&q);
	}
	if (!rc && (out->failed || q.dictionary.failed || q.part.failed || q.list.failed || q.item.failed || s->failed))
		rc = -ENOMEM;
	request_free(&q);
	buf_free(&head);
	return rc;
}
