/* SPDX-License-Identifier: Apache-2.0 */
/* Rows by path: one that stays keeps its totals and history, and every part of a path has a row, for a
 * cgroup without processes of its own is in no snapshot but may be the parent of many. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "top.h"

#define FIRST_HASH 256u
#define ROWS_MAX (1u << 17) /* more than any machine has; a recording may say anything */
#define PATHS_MAX ((size_t)64 << 20) /* bytes of them */

/* FNV-1a, 64 bits (RFC 9923) */
static uint64_t hash_of(const char *s, size_t n)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)s[i]) * 0x100000001b3ull;
	return h ^ h >> 29;
}

static void link_row(struct top_view *v, struct top_row *r)
{
	struct top_row **at = &v->hash[hash_of(r->path, strlen(r->path)) & (v->cap_hash - 1)];

	r->chain = *at;
	*at = r;
}

static bool grow(struct top_view *v)
{
	unsigned cap = v->cap_hash ? 2 * v->cap_hash : FIRST_HASH;
	struct top_row **hash = calloc(cap, sizeof(*hash));
	struct top_row **rows = realloc(v->rows, cap * sizeof(*rows));

	if (rows)
		v->rows = rows;
	if (!hash || !rows) {
		free(hash);
		return false;
	}
	free(v->hash);
	v->hash = hash;
	v->cap_hash = v->cap_rows = cap;
	for (unsigned i = 0; i < v->n_rows; i++)
		link_row(v, v->rows[i]);
	return true;
}

static struct top_row *find(const struct top_view *v, const char *path, size_t n)
{
	if (!v->cap_hash)
		return NULL;
	for (struct top_row *r = v->hash[hash_of(path, n) & (v->cap_hash - 1)]; r; r = r->chain)
		if (strncmp(r->path, path, n) == 0 && !r->path[n])
			return r;
	return NULL;
}

static void free_row(struct top_row *r)
{
	free(r->path);
	free(r->name);
	free(r->title);
	free(r->label);
	free(r);
}

static struct top_row *add(struct top_view *v, const char *path, size_t n, enum row_kind kind)
{
	struct top_row *r;
	const char *slash;

	if (v->n_rows == ROWS_MAX || v->path_bytes + n > PATHS_MAX || (v->n_rows == v->cap_rows && !grow(v)))
		return NULL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->kind = kind;
	r->path = strndup(path, n);
	r->name = r->path ? top_clean(r->path) : NULL;
	if (!r->name) {
		free_row(r);
		return NULL;
	}
	slash = strrchr(r->name, '/');
	r->leaf = slash && slash[1] ? slash + 1 : r->name;
	v->rows[v->n_rows++] = r;
	v->path_bytes += n;
	link_row(v, r);
	return r;
}

/* Every ancestor too. Iterative: a path may have two thousand parts. */
struct top_row *top_row_get(struct top_view *v, const char *path, enum row_kind kind)
{
	struct top_row *first = NULL, *below = NULL;
	size_t n = strlen(path);

	for (;;) {
		struct top_row *r = find(v, path, n);
		bool known = r != NULL;

		if (!r)
			r = add(v, path, n, kind);
		if (!r)
			return NULL;
		if (below)
			below->parent = r;
		if (!first)
			first = r;
		if (known || kind != ROW_CGROUP || n <= 1)
			return first;
		below = r;
		while (n > 1 && path[n - 1] != '/')
			n--;
		n -= n > 1;
	}
}

bool top_entitled(const struct names *n)
{
	return *names_text(n, NAME_POD) || *names_text(n, NAME_CONTAINER) || *names_text(n, NAME_MACHINE);
}

int top_row_entitle(struct top_view *v, struct top_row *r, const struct names *n)
{
	char title[3 * (NAMING_TEXT_MAX + 1)];
	char *copy, *label;

	if (!top_entitled(n) || names_title(n, title, sizeof(title)) <= 0 ||
	    (r->title && strcmp(r->title, title) == 0) || v->path_bytes + strlen(title) > PATHS_MAX)
		return 0;
	copy = strdup(title);
	label = copy ? top_clean(copy) : NULL;
	if (!label) {
		free(copy);
		return -ENOMEM;
	}
	v->path_bytes += strlen(title) - (r->title ? strlen(r->title) : 0);
	free(r->title);
	free(r->label);
	r->title = copy;
	r->label = label;
	return 0;
}

void top_rows_sweep(struct top_view *v)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < v->n_rows; i++)
		if (v->rows[i]->seen == v->tick)
			kept++;
	if (kept == v->n_rows)
		return;
	kept = 0;
	memset(v->hash, 0, v->cap_hash * sizeof(*v->hash));
	for (unsigned i = 0; i < v->n_rows; i++) {
		struct top_row *r = v->rows[i];

		if (r->seen == v->tick) {
			v->rows[kept++] = r;
			link_row(v, r);
		} else {
			v->path_bytes -= strlen(r->path) + (r->title ? strlen(r->title) : 0);
			free_row(r);
		}
	}
	v->n_rows = kept;
}

void top_rows_free(struct top_view *v)
{
	for (unsigned i = 0; i < v->n_rows; i++)
		free_row(v->rows[i]);
	free(v->rows);
	free(v->hash);
}
