/* SPDX-License-Identifier: Apache-2.0 */
/* The names of a v0.2 report and all names above them, up to "/", each with the place of the name above it.
 * They are in tree order: '/' sorts before all other bytes, so the names below a name follow it directly. The
 * tree is made again when a name comes or goes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/array.h"
#include "vjoule.h"

static int tree_order(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t i = 0, n = a_len < b_len ? a_len : b_len;

	while (i < n && a[i] == b[i])
		i++;
	if (i == n)
		return a_len < b_len ? -1 : a_len > b_len;
	if (a[i] == '/' || b[i] == '/')
		return a[i] == '/' ? -1 : 1;
	return (uint8_t)a[i] < (uint8_t)b[i] ? -1 : 1;
}

static int compare(const struct vjoule_tree *t, const struct vjoule_place *a, const struct vjoule_place *b)
{
	return tree_order(vjoule_place_name(t, a), a->len, vjoule_place_name(t, b), b->len);
}

/* Part of heapsort: the heap has the largest on top. qsort may allocate. */
static void sift_down(struct vjoule_tree *t, unsigned n, unsigned i)
{
	struct vjoule_place moved = t->v[i];

	for (unsigned child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && compare(t, &t->v[child + 1], &t->v[child]) > 0)
			child++;
		if (compare(t, &moved, &t->v[child]) >= 0)
			break;
		t->v[i] = t->v[child];
	}
	t->v[i] = moved;
}

static void sort(struct vjoule_tree *t)
{
	for (unsigned i = t->n / 2; i-- > 0;)
		sift_down(t, t->n, i);
	for (unsigned n = t->n; n > 1;) {
		struct vjoule_place largest = t->v[0];

		t->v[0] = t->v[--n];
		t->v[n] = largest;
		sift_down(t, n, 0);
	}
}

static struct vjoule_place *find(const struct vjoule_tree *t, unsigned n, const char *name, size_t len)
{
	unsigned low = 0, high = n;

	while (low < high) {
		unsigned mid = (low + high) / 2;
		int order = tree_order(name, len, vjoule_place_name(t, &t->v[mid]), t->v[mid].len);

		if (order == 0)
			return &t->v[mid];
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

static bool is_below(const struct vjoule_tree *t, const struct vjoule_place *p, const struct vjoule_place *top)
{
	const char *name = vjoule_place_name(t, p), *above = vjoule_place_name(t, top);

	return p->len > top->len && !memcmp(name, above, top->len) && (top->len == 1 || name[top->len] == '/');
}

static void set_parents(struct vjoule_tree *t)
{
	for (unsigned i = 0; i < t->n; i++) {
		uint32_t p = i ? i - 1 : VJOULE_NO_PLACE;

		while (p != VJOULE_NO_PLACE && !is_below(t, &t->v[i], &t->v[p]))
			p = t->v[p].parent;
		t->v[i].parent = p;
	}
}

static void add_place(struct vjoule_tree *t, const char *name, uint32_t len, uint32_t at)
{
	t->v[t->n++] = (struct vjoule_place){ .offset = (uint32_t)t->text.len, .len = len, .at = at };
	buf_add(&t->text, name, len);
}

/* Returns the length in bytes of the longest name above b that a also has, as itself or above it. a comes
 * before b in tree order. */
static uint32_t common(const struct vjoule_tree *t, const struct vjoule_place *a, const struct vjoule_place *b)
{
	const char *x = vjoule_place_name(t, a), *y = vjoule_place_name(t, b);
	uint32_t n = a->len < b->len ? a->len : b->len, at = 0, whole = 0;

	while (at < n && x[at] == y[at]) {
		if (y[at] == '/')
			whole = at;
		at++;
	}
	return at == a->len && at < b->len && y[at] == '/' ? at : whole;
}

/* Counts the names above t->v[i] that no earlier entry has. With add it adds them. */
static unsigned above(struct vjoule_tree *t, unsigned i, bool add)
{
	const struct vjoule_place p = t->v[i];
	const char *name = vjoule_place_name(t, &p);
	uint32_t known = i ? common(t, &t->v[i - 1], &p) : 0;
	unsigned n = 0;

	for (uint32_t at = p.len; at-- > 1;) {
		if (name[at] != '/')
			continue;
		if (at <= known)
			break;
		n++;
		if (add)
			t->v[t->n++] = (struct vjoule_place){ .offset = p.offset, .len = at, .at = VJOULE_NO_PLACE };
	}
	return n;
}

static int add_above(struct vjoule_tree *t)
{
	unsigned n = t->n, more = 0;

	for (unsigned i = 0; i < n; i++)
		more += above(t, i, false);
	if (ARRAY_ROOM(t->v, t->cap, n + more))
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		above(t, i, true);
	if (more)
		sort(t);
	return 0;
}

/* Adds the names of this report: rows, extras, and "/", which may be a row. */
static int add_names(struct encoder *e, const struct snapshot *s, struct vjoule_tree *t)
{
	bool root = false;

	t->n = 0;
	buf_reset(&t->text);
	if (ARRAY_ROOM(t->v, t->cap, e->n_send + VJOULE_EXTRAS + 1))
		return -ENOMEM;
	for (unsigned i = 0; i < e->n_send; i++) {
		const struct snap_row *row = &s->rows[e->send[i]];

		add_place(t, vjoule_text(e, row), e->names[row->key].len, i);
		root |= e->names[row->key].len == 1;
	}
	add_place(t, "/kernel", strlen("/kernel"), VJOULE_EXTRA_AT(VJOULE_KERNEL));
	add_place(t, "/other", strlen("/other"), VJOULE_EXTRA_AT(VJOULE_OTHER));
	if (!root)
		add_place(t, "/", 1, VJOULE_NO_PLACE);
	if (t->text.failed)
		return -ENOMEM;
	sort(t);
	return add_above(t);
}

/* Adds the names of the last report that are not among them. */
static int add_old(struct vjoule_tree *t, const struct vjoule_tree *old)
{
	unsigned n = t->n;

	if (ARRAY_ROOM(t->v, t->cap, n + old->n))
		return -ENOMEM;
	for (unsigned i = 0; i < old->n; i++) {
		const struct vjoule_place *o = &old->v[i];
		struct vjoule_place *same = o->sent ? find(t, n, vjoule_place_name(old, o), o->len) : NULL;

		if (!o->sent)
			continue;
		if (!same) {
			add_place(t, vjoule_place_name(old, o), o->len, VJOULE_NO_PLACE);
			same = &t->v[t->n - 1];
		}
		same->sent = true;
	}
	if (t->text.failed)
		return -ENOMEM;
	if (t->n > n)
		sort(t);
	return 0;
}

int vjoule_tree_make(struct encoder *e, const struct snapshot *s)
{
	struct vjoule_tree *old = &e->tree, *t = &e->spare, swap;
	int rc = add_names(e, s, t);

	if (!rc)
		rc = add_old(t, old);
	if (rc)
		return rc;
	set_parents(t);
	swap = *old;
	*old = *t;
	*t = swap;
	return 0;
}

/* Names that are safe for a formula. Both released formulas make file paths of them. simple_formula keeps files in a
 * directory per cgroup and ends when it meets a directory in place of a file or the reverse. It also shortens names
 * that hold "machine-qemu": several cgroups get one name, and it removes files by the short name that it keeps under
 * the long one. So a name that it would shorten is never sent. The name of the machine is sent in place of its scope,
 * as simple_formula intends. */

#define MACHINE "machine-qemu"
#define SEPARATOR "\\x2d" /* a '-' as systemd writes it in the name of a unit */
#define COMPONENT_MAX 255 /* limit of file systems */

static bool is_one(const char *s, size_t len, const char *word)
{
	return strlen(word) == len && !memcmp(s, word, len);
}

static bool is_result_file(const char *s, size_t len)
{
	static const char *const files[] = { "package", "memory", "pp0", "pp1", "psys" };
	static const char *const kinds[] = { "_max", "_min", "_moy" };

	for (unsigned i = 0; len > 4 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!memcmp(s + len - 4, kinds[i], 4)) {
			len -= 4;
			break;
		}
	}
	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (is_one(s, len, files[i]))
			return true;
	return false;
}

/* Finds NAME in machine-qemu\x2dN\x2dNAME.scope. Returns its length, 0 = not such a scope. */
static size_t machine_of(const char *s, size_t len, const char **ret)
{
	static const char head[] = MACHINE SEPARATOR, tail[] = ".scope";
	size_t at = sizeof(head) - 1, n = sizeof(SEPARATOR) - 1, digits = at;

	if (len < at || memcmp(s, head, at) != 0)
		return 0;
	while (at < len && s[at] >= '0' && s[at] <= '9')
		at++;
	if (at == digits || len - at <= n + sizeof(tail) - 1 || memcmp(s + at, SEPARATOR, n) != 0 ||
	    memcmp(s + len - (sizeof(tail) - 1), tail, sizeof(tail) - 1) != 0)
		return 0;
	*ret = s + at + n;
	return len - at - n - (sizeof(tail) - 1);
}

/* Writes a component as it is sent, at most one byte longer than s. Returns its length. */
static size_t put_component(char *dst, const char *s, size_t len, bool first)
{
	const char *from = s;
	size_t n = machine_of(s, len, &from);
	char *found;

	n = n ? n : len;
	memcpy(dst, from, n);
	while ((found = memmem(dst, n, MACHINE, strlen(MACHINE))))
		found[strlen("machine")] = '~';
	if (is_result_file(dst, n) || is_one(dst, n, ".") || is_one(dst, n, "..") ||
	    (first && (is_one(dst, n, "config.toml") || is_one(dst, n, "formula.signal"))))
		dst[n++] = '~';
	return n;
}

static bool component_ok(enum vjoule_dialect d, const char *s, size_t len)
{
	return !is_one(s, len, "..") && (d == VJOULE_DOCUMENT || (len && len <= COMPONENT_MAX));
}

bool vjoule_name_ok(enum vjoule_dialect d, const char *name, size_t len)
{
	if (!len || len > vjoule_name_max(d) || name[0] != '/' || memchr(name, 0, len))
		return false;
	for (size_t at = 1, n; at < len; at += n + 1) {
		const char *end = memchr(name + at, '/', len - at);

		n = end ? (size_t)(end - name) - at : len - at;
		if (!component_ok(d, name + at, n))
			return false;
	}
	return true;
}

unsigned vjoule_name_kind(const char *name, size_t len)
{
	return is_one(name, len, "/kernel") ? NAME_KERNEL : is_one(name, len, "/other") ? NAME_OTHER : NAME_OK;
}

size_t vjoule_v02_name(const char *path, size_t len, char dst[2 * VJOULE_V02_NAME_MAX])
{
	size_t to = 0;

	for (size_t at = 1, n; at < len; at += n + 1) {
		const char *end = memchr(path + at, '/', len - at);

		n = end ? (size_t)(end - path) - at : len - at;
		dst[to++] = '/';
		to += put_component(dst + to, path + at, n, at == 1);
	}
	if (!to)
		dst[to++] = '/';
	return to;
}

/* True when another path has this name already. Only names that differ from their path can collide. */
static bool is_taken(struct encoder *e, const struct snapshot *s, uint32_t row, uint64_t *ret_hash)
{
	const char *name = vjoule_text(e, &s->rows[row]);
	uint32_t len = e->names[s->rows[row].key].len;

	*ret_hash = hash_bytes(name, len);
	for (struct hash_walk w = hash_walk(&e->by_name, *ret_hash); hash_step(&w);) {
		const struct snap_row *other = &s->rows[w.at];

		if (e->names[other->key].len == len && !memcmp(vjoule_text(e, other), name, len))
			return strcmp(other->path, s->rows[row].path) != 0;
	}
	return false;
}

/* Appends the cgroup's id to the name. It replaces the end of a component that would get too long. */
static int add_id(struct vjoule_name *n, const struct snap_row *row)
{
	const char *name = n->text ? n->text : row->path;
	const char *last = memrchr(name, '/', n->len);
	size_t start = (size_t)(last + 1 - name), keep = n->len;
	char suffix[24], *text;
	size_t more = (size_t)snprintf(suffix, sizeof(suffix), "~%llu", (unsigned long long)row->id);

	if (keep - start + more > COMPONENT_MAX)
		keep = start + COMPONENT_MAX - more;
	text = malloc(keep + more + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, name, keep);
	memcpy(text + keep, suffix, more + 1);
	free(n->text);
	n->text = text;
	n->len = (uint32_t)(keep + more);
	return 0;
}

/* Gives the row a name of its own, with ids as needed. A name that has no room for an id is not sent. */
static int settle(struct encoder *e, const struct snapshot *s, uint32_t row)
{
	struct vjoule_name *n = &e->names[s->rows[row].key];
	uint64_t hash = 0;
	int rc = 0;

	for (unsigned turns = 0; !n->settled && turns < 4 && !rc; turns++) {
		n->settled = !is_taken(e, s, row, &hash) && (!n->text || vjoule_name_kind(n->text, n->len) == NAME_OK);
		rc = n->settled ? 0 : add_id(n, &s->rows[row]);
	}
	if (!n->settled)
		n->kind = NAME_REFUSED;
	else
		hash_add(&e->by_name, hash, row);
	return rc;
}

/* The order in which rows get names: rows that had a name, new rows sent unchanged, other new rows, ended rows.
 * Ended rows come last, so that a restarted machine keeps its name. */
static unsigned rank(const struct vjoule_name *n, const struct snap_row *row)
{
	if (n->settled)
		return row->ended ? 3 : 0;
	return n->text ? 2 : 1;
}

static int take_names(struct encoder *e, const struct snapshot *s)
{
	int rc = 0;

	for (unsigned turn = 0; turn < 4; turn++) {
		for (unsigned i = 0; i < e->n_send && !rc; i++) {
			const struct snap_row *row = &s->rows[e->send[i]];
			struct vjoule_name *n = &e->names[row->key];

			if (n->kind != NAME_OK || rank(n, row) != turn)
				continue;
			n->settled = false;
			rc = settle(e, s, e->send[i]);
		}
	}
	return rc;
}

int vjoule_settle_names(struct encoder *e, const struct snapshot *s)
{
	bool any = false;

	for (unsigned i = 0; i < e->n_send; i++)
		any |= e->names[s->rows[e->send[i]].key].text != NULL;
	if (any) {
		hash_clear(&e->by_name);
		return hash_reserve(&e->by_name, e->n_send) || take_names(e, s) ? -ENOMEM : 0;
	}
	for (unsigned i = 0; i < e->n_send; i++)
		e->names[s->rows[e->send[i]].key].settled = true;
	return 0;
}
