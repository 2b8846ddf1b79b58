/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic_table.h"
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/types.h>
#include <stdlib.h>
#include "base/hash.h"
#include "model/cgroup.h"
#include "traffic_hot.h"

#define BATCH 512u /* entries per system call; a hash bucket never holds as many */
#define IDLE_READS 60 /* looks without its traffic after which an entry without a row is dropped */

/* An entry of the kernel's table as it was at the last reading. */
struct seen {
	uint64_t id;
	struct traffic total;
	uint32_t row; /* hint: where its row was */
	uint16_t idle;
};

struct traffic_table {
	struct bpf_map *map;
	struct traffic_hot *hot; /* NULL: none */
	uint32_t *changed; /* the kernel's */
	unsigned due; /* readings that look into the hash */
	int map_fd;
	unsigned first, n_values; /* of struct traffic */
	unsigned n_cpus, max_entries;
	struct seen *seen; /* room for twice max_entries, so that pointers stay valid */
	unsigned n_seen;
	struct hash by_id;
	uint64_t *keys; /* BATCH */
	uint64_t *values; /* BATCH * n_cpus * n_values */
	uint64_t *one; /* n_cpus * n_values */
	struct traffic orphan; /* of forgotten cgroups, since the last reading */
	bool rows_indexed; /* hints are right, for the batch at hand */
	unsigned reads;
};

/* The last one takes the place of the one that goes. */
static void seen_remove(struct traffic_table *n, uint32_t i)
{
	const struct seen *last = &n->seen[--n->n_seen];

	hash_remove(&n->by_id, n->seen[i].id, i);
	if (i == n->n_seen)
		return;
	hash_move(&n->by_id, last->id, n->n_seen, i);
	n->seen[i] = *last;
}

/* The kernel's table never holds more ids than fit, and both are emptied together. */
static struct seen *seen_get(struct traffic_table *n, uint64_t id)
{
	uint32_t i = hash_find(&n->by_id, id);

	if (i == HASH_NONE) {
		i = n->n_seen++;
		hash_add(&n->by_id, id, i);
		n->seen[i] = (struct seen){ .id = id, .row = UINT32_MAX };
	}
	return &n->seen[i];
}

static struct traffic sum(const struct traffic_table *n, const uint64_t *per_cpu)
{
	struct traffic t = { 0 };

	for (unsigned i = 0; i < n->n_cpus * n->n_values; i++)
		traffic_values(&t)[n->first + i % n->n_values] += per_cpu[i];
	return t;
}

/* How often something was moved: every second value. */
static uint64_t times(const struct traffic_table *n, const struct traffic *d)
{
	uint64_t sum = 0;

	for (unsigned i = 1; i < n->n_values; i += 2)
		sum += traffic_const(d)[n->first + i];
	return sum;
}

static bool is_row_of(const struct reading *r, uint32_t row, uint64_t id)
{
	return row < r->n_rows && r->rows[row].used && r->rows[row].kind == ROW_CGROUP && r->rows[row].id == id;
}

/* Once per batch at most, and only when an id with traffic has no hint that holds. */
static void index_rows(struct traffic_table *n, const struct reading *r)
{
	for (uint32_t i = READING_SPECIAL_ROWS; i < r->n_rows; i++) {
		uint32_t at;

		if (!r->rows[i].used || r->rows[i].kind != ROW_CGROUP)
			continue;
		at = hash_find(&n->by_id, r->rows[i].id);
		if (at != HASH_NONE)
			n->seen[at].row = i;
	}
	n->rows_indexed = true;
}

static uint32_t row_of(struct traffic_table *n, struct reading *r, struct seen *s)
{
	if (s->id == TRAFFIC_TABLE_OTHER)
		return ROW_OTHER;
	if (!is_row_of(r, s->row, s->id) && !n->rows_indexed)
		index_rows(n, r);
	return is_row_of(r, s->row, s->id) ? s->row : ROW_OTHER;
}

static void take(struct traffic_table *n, struct reading *r, struct seen *s, const uint64_t *per_cpu)
{
	struct traffic now = sum(n, per_cpu), d = now;

	traffic_take_off(&d, &s->total);
	if (!traffic_any(&d, n->first, n->n_values)) {
		s->idle += s->idle < UINT16_MAX;
		return;
	}
	s->idle = 0;
	s->total = now;
	reading_add_traffic(r, row_of(n, r, s), &d);
	if (s->id == TRAFFIC_TABLE_OTHER)
		r->losses.folded += times(n, &d);
	else if (n->hot)
		traffic_hot_offer(n->hot, s->id);
}

static void take_batch(struct traffic_table *n, struct reading *r, unsigned count)
{
	/* All are entered before the first row is looked up, or the index would miss the later ones. */
	for (unsigned i = 0; i < count; i++)
		seen_get(n, n->keys[i]);
	n->rows_indexed = false;
	for (unsigned i = 0; i < count; i++)
		take(n, r, seen_get(n, n->keys[i]), n->values + (size_t)i * n->n_cpus * n->n_values);
}

/* A socket may outlive its cgroup, and then its entry would stay for ever. */
static void drop_idle(struct traffic_table *n, const struct reading *r)
{
	for (unsigned i = n->n_seen; i-- > 0;) {
		const struct seen *s = &n->seen[i];

		if (s->idle >= IDLE_READS && s->id != TRAFFIC_TABLE_OTHER && !is_row_of(r, s->row, s->id))
			traffic_table_forget(n, s->id);
	}
}

/* Twice after a change: the kernel's program may add and tell so while the first look is under way. */
static bool look_due(struct traffic_table *n)
{
	if (__atomic_exchange_n(n->changed, 0, __ATOMIC_SEQ_CST))
		n->due = 2;
	if (!n->due)
		return false;
	n->due--;
	return true;
}

static int read_hash(struct traffic_table *n, struct reading *r)
{
	uint64_t at, done = 0; /* opaque to us; the kernel wants room for a key */
	void *from = NULL;
	int rc = 0;

	while (!rc && done <= n->max_entries) {
		__u32 count = BATCH;

		if (bpf_map_lookup_batch(n->map_fd, from, &at, n->keys, n->values, &count, NULL)) {
			rc = -errno;
			if (rc != -ENOENT)
				break;
		}
		take_batch(n, r, count);
		done += count;
		from = &at;
	}
	if (rc && rc != -ENOENT)
		return rc;
	if (++n->reads % IDLE_READS == 0)
		drop_idle(n, r);
	return 0;
}

/* An id that the hash no longer knows is of a cgroup that is forgotten. */
static void read_hot(struct traffic_table *n, struct reading *r)
{
	struct traffic d;
	uint64_t id;

	n->rows_indexed = false;
	traffic_hot_begin(n->hot);
	while (traffic_hot_next(n->hot, &id, &d)) {
		uint32_t i = hash_find(&n->by_id, id);

		if (i != HASH_NONE)
			n->seen[i].idle = 0;
		reading_add_traffic(r, i == HASH_NONE ? ROW_OTHER : row_of(n, r, &n->seen[i]), &d);
	}
}

int traffic_table_read(struct traffic_table *n, struct reading *r)
{
	int rc = look_due(n) ? read_hash(n, r) : 0;

	if (n->hot)
		read_hot(n, r);
	reading_add_traffic(r, ROW_OTHER, &n->orphan);
	n->orphan = (struct traffic){ 0 };
	return rc;
}

void traffic_table_forget(struct traffic_table *n, uint64_t cgroup_id)
{
	uint32_t i = hash_find(&n->by_id, cgroup_id);
	struct traffic d;

	if (i == HASH_NONE || cgroup_id == TRAFFIC_TABLE_OTHER)
		return; /* and then it has no hot row */
	if (n->hot) {
		traffic_hot_forget(n->hot, cgroup_id, &d);
		traffic_add(&n->orphan, &d);
	}
	if (!bpf_map_lookup_elem(n->map_fd, &cgroup_id, n->one)) {
		d = sum(n, n->one);
		traffic_take_off(&d, &n->seen[i].total);
		traffic_add(&n->orphan, &d);
		bpf_map_delete_elem(n->map_fd, &cgroup_id);
	}
	seen_remove(n, i);
}

static int allocate(struct traffic_table *n, unsigned max_cgroups)
{
	int cpus = libbpf_num_possible_cpus();

	if (cpus < 0)
		return cpus;
	n->n_cpus = (unsigned)cpus;
	n->max_entries = max_cgroups + 1; /* and TRAFFIC_TABLE_OTHER */
	n->seen = calloc(2 * (size_t)n->max_entries, sizeof(*n->seen));
	n->keys = calloc(BATCH, sizeof(*n->keys));
	n->values = calloc((size_t)BATCH * n->n_cpus * n->n_values, sizeof(*n->values));
	n->one = calloc((size_t)n->n_cpus * n->n_values, sizeof(*n->one));
	if (!n->seen || !n->keys || !n->values || !n->one)
		return -ENOMEM;
	return hash_reserve(&n->by_id, 2 * (size_t)n->max_entries);
}

int traffic_table_open(const struct traffic_table_options *o, struct traffic_table **ret)
{
	struct traffic_table *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return -ENOMEM;
	t->map = o->map;
	t->first = o->first;
	t->n_values = o->n;
	rc = allocate(t, o->max_cgroups);
	if (!rc)
		rc = bpf_map__set_max_entries(o->map, t->max_entries);
	if (!rc && o->hot)
		rc = traffic_hot_open(o->hot, t->n_cpus, o->first, o->n, &t->hot);
	if (rc) {
		traffic_table_close(t);
		return rc;
	}
	*ret = t;
	return 0;
}

int traffic_table_loaded(struct traffic_table *t, uint32_t *changed)
{
	uint64_t other = TRAFFIC_TABLE_OTHER;

	t->changed = changed;
	t->map_fd = bpf_map__fd(t->map);
	if (bpf_map_update_elem(t->map_fd, &other, t->one, BPF_NOEXIST))
		return -errno;
	return t->hot ? traffic_hot_loaded(t->hot) : 0;
}

void traffic_table_close(struct traffic_table *t)
{
	if (!t)
		return;
	traffic_hot_close(t->hot);
	free(t->seen);
	hash_free(&t->by_id);
	free(t->keys);
	free(t->values);
	free(t->one);
	free(t);
}
