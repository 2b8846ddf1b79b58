/* SPDX-License-Identifier: Apache-2.0 */
/* The dictionary of one session: strings by (type, text), methods by (class, name). Numbers are dense and start
 * at 1, because collectors use them as indices of arrays. */
#include <stdlib.h>
#include <string.h>
#include "zico.h"

#define SIGNATURE "()V"
#define METHODS_MAX 0xffffffu /* 24 bits of a record's first word */

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

static uint32_t fail(struct zico_names *n)
{
	n->failed = true;
	return 0;
}

static uint32_t add(struct zico_table *t, uint64_t key)
{
	hash_add(&t->by_content, key, ++t->n);
	return t->n;
}

uint32_t zico_string_id(struct zico *z, enum zico_string type, const char *text)
{
	struct zico_names *n = &z->names;
	struct zico_table *t = &n->strings;
	const uint64_t key = hash_word(hash_text(text), type);
	struct zico_string_row row = { (uint32_t)n->bytes.len, (uint8_t)type };

	for (struct hash_walk w = hash_walk(&t->by_content, key); hash_step(&w);)
		if (string_row(n, w.at)->type == type && !strcmp(zico_text_of(n, w.at), text))
			return w.at;
	if (hash_reserve(&t->by_content, (size_t)t->n + 1) != 0)
		return fail(n);
	buf_add(&n->bytes, text, strlen(text) + 1);
	buf_add(&n->string_rows, &row, sizeof(row));
	return n->bytes.failed || n->string_rows.failed ? fail(n) : add(t, key);
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
	uint64_t key;

	m.signature_id = zico_string_id(z, ZICO_SIGNATURE, SIGNATURE);
	key = hash_bytes(&m, sizeof(m));
	if (n->failed)
		return fail(n);
	for (struct hash_walk w = hash_walk(&t->by_content, key); hash_step(&w);)
		if (!memcmp(method_row(n, w.at), &m, sizeof(m)))
			return w.at;
	if (t->n == METHODS_MAX || hash_reserve(&t->by_content, (size_t)t->n + 1) != 0)
		return fail(n);
	buf_add(&n->method_rows, &m, sizeof(m));
	return n->method_rows.failed ? fail(n) : add(t, key);
}

static void forget_table(struct zico_table *t)
{
	hash_clear(&t->by_content);
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
	hash_free(&n->strings.by_content);
	hash_free(&n->methods.by_content);
	buf_free(&n->bytes);
	buf_free(&n->string_rows);
	buf_free(&n->method_rows);
}
