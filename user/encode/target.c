/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/format/json.h"
#include "base/text.h"
#include "target.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Bits are set in the result where a byte is not plain text, is below '-' (quote and comma among others, all rare in
 * paths), or occurs in the names of readers' own files. */
static inline uint64_t odd_bytes(uint64_t w)
{
	const uint64_t ones = 0x0101010101010101ull;
	uint64_t big_p = w ^ (ones * 'P'); /* PowerReport.csv */

	return w | (w - ones * '-') | ((big_p - ones) & ~big_p) | (w + ones);
}

/* Computes in one pass over a path its hash, and whether it needs a check. The hash is made as hash_bytes() makes
 * it, but for the filling of the last words. */
static uint64_t scan(const char *s, size_t n, bool *ret_check)
{
	const uint64_t fill = 0x0101010101010101ull * 'x', seed = hash_seed();
	uint64_t h = hash_word(seed, n), odd = 0, w[2];

	for (; n > 16; n -= 16, s += 16) {
		memcpy(w, s, 16);
		odd |= odd_bytes(w[0]) | odd_bytes(w[1]);
		h = hash_pair(seed, h, w);
	}
	w[0] = w[1] = fill;
	memcpy(w, s, n);
	odd |= odd_bytes(w[0]) | odd_bytes(w[1]);
	*ret_check = odd & 0x8080808080808080ull;
	return hash_pair(seed, h, w);
}

/* Returns the first row with the path, TARGET_NONE when there is none. */
static uint32_t find(const struct targets *t, const struct snapshot *s, const char *path, size_t len, uint64_t hash)
{
	for (struct hash_walk w = hash_walk(&t->by_path, hash); hash_step(&w);)
		if (t->rows[w.at].len == len && !memcmp(s->rows[w.at].path, path, len))
			return w.at;
	return TARGET_NONE;
}

static void add_row(struct targets *t, const struct snapshot *s, unsigned i)
{
	const char *path = s->rows[i].path;
	struct target_row *r = &t->rows[i], *head;
	uint32_t first;
	uint64_t hash;
	bool check;

	*r = (struct target_row){ .next = TARGET_NONE,
				  .kind = s->rows[i].kind,
				  .key = s->rows[i].key,
				  .generation = s->rows[i].generation,
				  .renamed = s->rows[i].renamed };
	if (s->rows[i].kind != ROW_CGROUP)
		return;
	if (!path || path[0] != '/') {
		r->flags = TARGET_REFUSED;
		return;
	}
	r->len = (uint32_t)strlen(path);
	hash = scan(path, r->len, &check);
	r->flags = check || r->len > TARGET_COMPONENT_MAX ? TARGET_CHECK : 0;
	first = find(t, s, path, r->len, hash);
	if (first == TARGET_NONE) {
		hash_add(&t->by_path, hash, i);
		return;
	}
	head = &t->rows[first];
	r->flags |= TARGET_JOINED;
	r->next = head->next;
	head->next = i;
}

static void mark_ancestors(struct targets *t, const struct snapshot *s, unsigned i)
{
	const char *path = s->rows[i].path;

	for (size_t n = t->rows[i].len; n-- > 1;) {
		uint32_t above;
		bool check;

		if (path[n] != '/')
			continue;
		above = find(t, s, path, n, scan(path, n, &check));
		if (above != TARGET_NONE)
			t->rows[above].flags |= TARGET_INNER;
	}
}

static bool are_the_same(const struct targets *t, const struct snapshot *s)
{
	uint32_t differ = t->n_rows ^ s->n_rows;

	for (unsigned i = 0; i < s->n_rows && !differ; i++) {
		const struct target_row *r = &t->rows[i];
		const struct snap_row *row = &s->rows[i];

		differ = (r->key ^ row->key) | (r->generation ^ row->generation) | (r->renamed ^ row->renamed) |
			 (uint32_t)(r->kind != row->kind);
	}
	return !differ;
}

int targets_update(struct targets *t, const struct snapshot *s, bool find_inner)
{
	if (t->valid && t->inner == find_inner && are_the_same(t, s))
		return 0;
	t->valid = t->have_texts = false;
	if (ARRAY_ROOM(t->rows, t->cap_rows, s->n_rows) || hash_reserve(&t->by_path, s->n_rows))
		return -ENOMEM;
	hash_clear(&t->by_path);
	for (unsigned i = 0; i < s->n_rows; i++)
		add_row(t, s, i);
	for (unsigned i = 0; find_inner && i < s->n_rows; i++)
		if (s->rows[i].kind == ROW_CGROUP && !(t->rows[i].flags & TARGET_REFUSED))
			mark_ancestors(t, s, i);
	t->n_rows = s->n_rows;
	t->inner = find_inner;
	t->valid = true;
	return 0;
}

static void write_text(struct targets *t, const struct snapshot *s, uint32_t i)
{
	struct target_row *r = &t->rows[i];
	const char *text = s->rows[i].path;
	char name[TARGET_NAME_MAX];
	struct json j;

	r->text_at = (uint32_t)t->texts.len;
	if (r->flags & TARGET_CHECK) {
		r->flags |= target_name(&s->rows[i], false, name) ? TARGET_RENAMED : 0;
		text = name;
	}
	json_init(&j, &t->texts);
	json_str(&j, text);
	r->text_len = (uint32_t)(t->texts.len - r->text_at);
}

int targets_write_texts(struct targets *t, const struct snapshot *s)
{
	if (t->have_texts)
		return 0;
	buf_reset(&t->texts);
	for (uint32_t i = 0; i < s->n_rows; i++)
		if (s->rows[i].kind == ROW_CGROUP && !(t->rows[i].flags & (TARGET_REFUSED | TARGET_JOINED)))
			write_text(t, s, i);
	t->have_texts = !t->texts.failed;
	return t->have_texts ? 0 : -ENOMEM;
}

void targets_free(struct targets *t)
{
	free(t->rows);
	buf_free(&t->texts);
	hash_free(&t->by_path);
	*t = (struct targets){ 0 };
}

/* Length of the character at s, or 0 when it cannot be sent unchanged. */
static size_t kept(const unsigned char *s, size_t left, bool csv)
{
	size_t n = text_utf8_len(s, left);

	if (n == 3 && !memcmp(s, REPLACEMENT, 3))
		return 0;
	if (csv && (s[0] < 0x20 || s[0] == 0x7f || s[0] == '"' || s[0] == ','))
		return 0;
	return n;
}

/* Cuts dst from len to at most `most` bytes of valid UTF-8. A replacement character ends a text that was cut. */
static size_t cut(char *dst, size_t len, size_t most)
{
	size_t n = most - strlen(REPLACEMENT);

	if (len <= most)
		return len;
	while (((unsigned char)dst[n] & 0xc0) == 0x80)
		n--;
	memcpy(dst + n, REPLACEMENT, strlen(REPLACEMENT));
	return n + strlen(REPLACEMENT);
}

/* Writes one component, at most TARGET_COMPONENT_MAX bytes; returns its length. */
static size_t put_component(char *dst, const unsigned char *s, size_t left, bool csv)
{
	static const char own[] = "PowerReport.csv"; /* a file in each target's directory of PowerAPI's CSV output */
	const bool is_own = left == sizeof(own) - 1 && !memcmp(s, own, left);
	size_t at = 0;

	while (left) {
		size_t plain = csv || is_own ? 0 : text_plain_run(s, left);
		size_t n = plain ? plain : is_own && *s == '.' ? 0 : kept(s, left, csv), used = n ? n : 1;

		if (!n && text_utf8_len(s, left) > 1)
			used = 3; /* U+FFFD itself */
		memcpy(dst + at, n ? (const char *)s : REPLACEMENT, n ? n : 3);
		at += n ? n : 3;
		s += used;
		left -= used;
	}
	return cut(dst, at, TARGET_COMPONENT_MAX);
}

/* Adds the id, which makes a changed name unique. The last component is shortened to make room. */
static void add_id(char *dst, size_t len, uint64_t id)
{
	char suffix[24];
	size_t more = (size_t)snprintf(suffix, sizeof(suffix), "~%llu", (unsigned long long)id), start;

	len = cut(dst, len, TARGET_BYTES_MAX - more);
	start = (size_t)((char *)memrchr(dst, '/', len) + 1 - dst);
	len = start + cut(dst + start, len - start, TARGET_COMPONENT_MAX - more);
	memcpy(dst + len, suffix, more + 1);
}

bool target_name(const struct snap_row *row, bool csv, char dst[TARGET_NAME_MAX])
{
	const char *s = row->path;
	size_t len = strnlen(s, CGROUP_PATH_MAX), at = 0;
	bool check;

	scan(s, len, &check);
	if (!check && *s == '/' && len <= TARGET_COMPONENT_MAX) {
		/* the usual path stays as it is, whatever its components */
		memcpy(dst, s, len + 1);
		return false;
	}
	for (size_t from = 0, n; from < len; from += n + 1) {
		const char *end = memchr(s + from + 1, '/', len - from - 1);

		n = end ? (size_t)(end - s) - from - 1 : len - from - 1;
		dst[at++] = '/';
		at += put_component(dst + at, (const unsigned char *)s + from + 1, n, csv);
	}
	dst[at] = '\0';
	if (at == len && at <= TARGET_BYTES_MAX && !s[len] && !memcmp(dst, s, len) && !strstr(dst, REPLACEMENT))
		return false;
	add_id(dst, at, row->id);
	return true;
}

bool target_text_ok(const char *text, bool csv)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t left = strlen(text);

	while (left) {
		size_t n = kept(s, left, csv);

		if (!n)
			return false;
		s += n;
		left -= n;
	}
	return true;
}

int target_sensor(const char *name, bool csv, char dst[TARGET_SENSOR_MAX], struct err *err)
{
	if (!*name || strlen(name) >= TARGET_SENSOR_MAX)
		return err_set(
			err, -EINVAL,
			"sensor: the name must have 1 to %d bytes, because readers make names of files of it; set sensor:",
			TARGET_SENSOR_MAX - 1);
	if (!target_text_ok(name, csv))
		return err_set(err, -EINVAL, "sensor %s: not plain UTF-8 text%s; choose another sensor:", name,
			       csv ? " without comma and quote" : "");
	memcpy(dst, name, strlen(name) + 1);
	return 0;
}
