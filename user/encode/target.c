/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/text.h"
#include "target.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* One pass over the words of a path gives its hash and whether any byte is beyond plain text.
 * A multiplicative hash: the table is bounded by max-cgroups and equal hashes are compared. */
static uint64_t scan(const char *s, size_t n, bool *ret_check)
{
	const uint64_t ones = 0x0101010101010101ull, high = 0x8080808080808080ull;
	uint64_t h = n * 0x9e3779b97f4a7c15ull, odd = 0;

	for (size_t i = 0; i < n; i += 8) {
		uint64_t w = ones * 'x', quote, comma;

		memcpy(&w, s + i, n - i < 8 ? n - i : 8);
		quote = w ^ (ones * '"');
		comma = w ^ (ones * ',');
		odd |= w | (w - ones * 0x20) | ((quote - ones) & ~quote) | ((comma - ones) & ~comma) | (w + ones);
		h = (h ^ w) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 32;
	}
	*ret_check = odd & high;
	return h;
}

static int reserve(struct targets *t, unsigned rows)
{
	unsigned n_slots = 64;
	void *p;

	if (rows > t->cap_rows) {
		p = realloc(t->rows, (size_t)(rows + rows / 2) * sizeof(*t->rows));
		if (!p)
			return -ENOMEM;
		t->rows = p;
		t->cap_rows = rows + rows / 2;
	}
	while (n_slots < 2 * rows)
		n_slots *= 2;
	if (n_slots > t->n_slots) {
		p = realloc(t->slots, n_slots * sizeof(*t->slots));
		if (!p)
			return -ENOMEM;
		t->slots = p;
		t->n_slots = n_slots;
	}
	return 0;
}

/* The slot of a path: the one that holds it, or the empty one where it belongs. */
static uint32_t *find_slot(struct targets *t, const struct snapshot *s, const char *path, size_t len, uint64_t hash)
{
	for (unsigned i = (unsigned)(hash >> 7);; i++) {
		uint32_t *slot = &t->slots[i & (t->n_slots - 1)];
		const struct target_row *r = &t->rows[*slot == TARGET_NONE ? 0 : *slot];

		if (*slot == TARGET_NONE ||
		    (r->hash == hash && r->len == len && !memcmp(s->rows[*slot].path, path, len)))
			return slot;
	}
}

static void add_row(struct targets *t, const struct snapshot *s, unsigned i)
{
	const char *path = s->rows[i].path;
	struct target_row *r = &t->rows[i], *head;
	bool check;
	uint32_t *slot;

	*r = (struct target_row){ .next = TARGET_NONE };
	if (s->rows[i].kind != ROW_CGROUP)
		return;
	if (!path || path[0] != '/') {
		r->flags = TARGET_REFUSED;
		return;
	}
	r->len = (uint32_t)strlen(path);
	r->hash = scan(path, r->len, &check);
	r->flags = check ? TARGET_CHECK : 0;
	slot = find_slot(t, s, path, r->len, r->hash);
	if (*slot == TARGET_NONE) {
		*slot = i;
		return;
	}
	head = &t->rows[*slot];
	r->flags |= TARGET_JOINED;
	r->next = head->next;
	head->next = i;
}

static void mark_ancestors(struct targets *t, const struct snapshot *s, unsigned i)
{
	const char *path = s->rows[i].path;

	for (size_t n = t->rows[i].len; n-- > 1;) {
		uint32_t *slot;
		bool check;

		if (path[n] != '/')
			continue;
		slot = find_slot(t, s, path, n, scan(path, n, &check));
		if (*slot != TARGET_NONE)
			t->rows[*slot].flags |= TARGET_INNER;
	}
}

int targets_update(struct targets *t, const struct snapshot *s, bool find_inner)
{
	int err = reserve(t, s->n_rows);

	if (err)
		return err;
	memset(t->slots, 0xff, t->n_slots * sizeof(*t->slots));
	for (unsigned i = 0; i < s->n_rows; i++)
		add_row(t, s, i);
	for (unsigned i = 0; find_inner && i < s->n_rows; i++)
		if (s->rows[i].kind == ROW_CGROUP && !(t->rows[i].flags & TARGET_REFUSED))
			mark_ancestors(t, s, i);
	return 0;
}

void targets_free(struct targets *t)
{
	free(t->rows);
	free(t->slots);
	*t = (struct targets){ 0 };
}

/* Length of the character at s when it may be sent as it is, 0 when not. */
static size_t kept(const unsigned char *s, size_t left, bool csv)
{
	size_t n = text_utf8_len(s, left);

	if (n == 3 && !memcmp(s, REPLACEMENT, 3))
		return 0;
	if (csv && (s[0] < 0x20 || s[0] == 0x7f || s[0] == '"' || s[0] == ','))
		return 0;
	return n;
}

bool target_name(const struct snap_row *row, bool csv, char dst[TARGET_NAME_MAX])
{
	const unsigned char *s = (const unsigned char *)row->path;
	size_t left = strlen(row->path), at = 0;
	bool changed = left > CGROUP_PATH_MAX;

	for (left = changed ? CGROUP_PATH_MAX : left; left;) {
		size_t plain = csv ? 0 : text_plain_run(s, left), n = plain ? plain : kept(s, left, csv),
		       used = n ? n : 1;

		if (!n) {
			changed = true;
			if (text_utf8_len(s, left) > 1)
				used = 3; /* U+FFFD itself */
		}
		memcpy(dst + at, n ? (const char *)s : REPLACEMENT, n ? n : 3);
		at += n ? n : 3;
		s += used;
		left -= used;
	}
	dst[at] = '\0';
	if (changed)
		snprintf(dst + at, TARGET_NAME_MAX - at, "~%llu", (unsigned long long)row->id);
	return changed;
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

int target_sensor(const struct encode_options *o, const struct schema *s, char dst[TARGET_SENSOR_MAX], struct err *err)
{
	const char *name = o->sensor ? o->sensor : s->sensor;

	if (!*name || strlen(name) >= TARGET_SENSOR_MAX)
		return err_set(err, -EINVAL,
			       "sensor: the name must have 1 to %d bytes; set sensor:", TARGET_SENSOR_MAX - 1);
	if (!target_text_ok(name, o->csv))
		return err_set(err, -EINVAL, "sensor %s: not plain UTF-8 text%s; choose another sensor:", name,
			       o->csv ? " without comma and quote" : "");
	memcpy(dst, name, strlen(name) + 1);
	return 0;
}
