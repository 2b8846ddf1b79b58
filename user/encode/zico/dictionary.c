/* SPDX-License-Identifier: Apache-2.0 */
/* The dictionary of one session: strings by (type, text), methods by (class, name). Numbers are dense and
 * start at 1, for collectors keep them as indices of arrays. */
#include <stdlib.h>
#include <string.h>
#include "zico_internal.h"

#define SIGNATURE "()V"
#define METHODS_MAX 0xffffffu /* 24 bits of a record's first word */
#define FIRST_SLOTS 256u

static uint32_t hash_bytes(uint32_t h, const void *p, size_t n)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * 16777619u; /* FNV-1a */
	return h ^ h >> 15;
}

static struct zico_string_row *string_row(const struct zico_names *n, uint32_t id)
{
	return (struct zico_string_row *)n->string_rows.data + id - 1;
}

static struct zico_method_row *method_row(const struct zico_names *n, uint32_t id)
{
	return (struct zico_method_row *)n->method_rows.data + id - 1;
}

const char *zico_text_of(const struct zico_names *n, uint32_t id)
{
	return (const char *)n->bytes.data + string_row(n, id)->at;
}

static uint32_t string_hash(int type, const char *text)
{
	return hash_bytes(2166136261u + (uint32_t)type, text, strlen(text));
}

static uint32_t method_hash(const struct zico_method_row *m)
{
	return hash_bytes(2166136261u, m, sizeof(*m));
}

static uint32_t row_hash(const struct zico_names *n, const struct zico_table *t, uint32_t id)
{
	return t == &n->methods ? method_hash(method_row(n, id)) :
				  string_hash(string_row(n, id)->type, zico_text_of(n, id));
}

static void put_slot(struct zico_table *t, uint32_t hash, uint32_t id)
{
	uint32_t at = hash & (t->n_slots - 1);

	while (t->slots[at])
		at = (at + 1) & (t->n_slots - 1);
	t->slots[at] = id;
}

/* Room for one more at half load. */
static bool make_room(struct zico_names *n, struct zico_table *t)
{
	uint32_t n_slots = t->n_slots ? t->n_slots * 2 : FIRST_SLOTS, *slots;

	if ((t->n + 1) * 2 <= t->n_slots)
		return true;
	slots = calloc(n_slots, sizeof(*slots));
	if (!slots)
		return false;
	free(t->slots);
	t->slots = slots;
	t->n_slots = n_slots;
	for (uint32_t id = 1; id <= t->n; id++)
		put_slot(t, row_hash(n, t, id), id);
	return true;
}

static uint32_t fail(struct zico_names *n)
{
	n->failed = true;
	return 0;
}

static uint32_t add(struct zico_names *n, struct zico_table *t, uint32_t hash)
{
	put_slot(t, hash, ++t->n);
	return t->n;
}

uint32_t zico_string_id(struct zico *z, enum zico_string type, const char *text)
{
	struct zico_names *n = &z->names;
	struct zico_table *t = &n->strings;
	uint32_t hash = string_hash(type, text);
	struct zico_string_row row = { (uint32_t)n->bytes.len, (uint8_t)type };

	if (!make_room(n, t))
		return fail(n);
	for (uint32_t at = hash & (t->n_slots - 1); t->slots[at]; at = (at + 1) & (t->n_slots - 1))
		if (string_row(n, t->slots[at])->type == type && !strcmp(zico_text_of(n, t->slots[at]), text))
			return t->slots[at];
	buf_add(&n->bytes, text, strlen(text) + 1);
	buf_add(&n->string_rows, &row, sizeof(row));
	return n->bytes.failed || n->string_rows.failed ? fail(n) : add(n, t, hash);
}

uint32_t zico_class_id(struct zico *z, const struct span *s)
{
	return zico_string_id(z, ZICO_CLASS, zico_clean_class(z, s));
}

uint32_t zico_name_id(struct zico *z, const struct span *s)
{
	return zico_string_id(z, ZICO_METHOD, zico_clean_name(z, s));
}

uint32_t zico_method_id(struct zico *z, const struct span *s)
{
	struct zico_names *n = &z->names;
	struct zico_table *t = &n->methods;
	struct zico_method_row m = { zico_class_id(z, s), zico_name_id(z, s), 0 };
	uint32_t hash;

	m.signature_id = zico_string_id(z, ZICO_SIGNATURE, SIGNATURE);
	hash = method_hash(&m);
	if (n->failed || t->n == METHODS_MAX || !make_room(n, t))
		return fail(n);
	for (uint32_t at = hash & (t->n_slots - 1); t->slots[at]; at = (at + 1) & (t->n_slots - 1))
		if (!memcmp(method_row(n, t->slots[at]), &m, sizeof(m)))
			return t->slots[at];
	buf_add(&n->method_rows, &m, sizeof(m));
	return n->method_rows.failed ? fail(n) : add(n, t, hash);
}

static void forget_table(struct zico_table *t)
{
	if (t->slots)
		memset(t->slots, 0, t->n_slots * sizeof(*t->slots));
	t->n = t->told = 0;
}

void zico_names_forget(struct zico_names *n)
{
	forget_table(&n->strings);
	forget_table(&n->methods);
	buf_reset(&n->bytes);
	buf_reset(&n->string_rows);
	buf_reset(&n->method_rows);
	n->failed = false;
}

void zico_names_free(struct zico_names *n)
{
	free(n->strings.slots);
	free(n->methods.slots);
	buf_free(&n->bytes);
	buf_free(&n->string_rows);
	buf_free(&n->method_rows);
}
