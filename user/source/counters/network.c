/* SPDX-License-Identifier: Apache-2.0 */
/* Traffic of every cgroup: bpf/network.bpf.c counts, this reads the whole table in batches and adds
 * the increments to the rows. Traffic of a cgroup that has no row (folded, or gone while a socket
 * lives on) is the row `other`'s, so that the rows sum to everything. All memory is taken at open. */
#include "network.h"
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <network.h> /* include/, not the one beside this file */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/fsroot.h"
#include "base/hash.h"
#include "model/cgroup.h"
#include "network.skel.h"
#include "source/bpf_load.h"

#define BATCH 512u /* entries per system call; a hash bucket never holds as many */
#define IDLE_READS 60 /* readings without traffic after which an entry without a row is dropped */

/* An entry of the kernel's table as it was at the last reading. */
struct seen {
	uint64_t id;
	struct traffic total;
	uint32_t row; /* hint: where its row was */
	uint16_t idle;
};

struct network {
	struct network_bpf *skel;
	int map_fd;
	unsigned n_cpus, max_entries;
	struct seen *seen; /* room for twice max_entries, so that pointers stay valid */
	unsigned n_seen;
	struct hash by_id;
	uint64_t *keys; /* BATCH */
	struct jd_traffic *values; /* BATCH * n_cpus */
	struct jd_traffic *one; /* n_cpus */
	struct traffic orphan; /* of forgotten cgroups, since the last reading */
	bool rows_indexed; /* hints are right, for the batch at hand */
	unsigned reads;
};

/* The last one takes the place of the one that goes. */
static void seen_remove(struct network *n, uint32_t i)
{
	const struct seen *last = &n->seen[--n->n_seen];

	hash_remove(&n->by_id, n->seen[i].id, i);
	if (i == n->n_seen)
		return;
	hash_move(&n->by_id, last->id, n->n_seen, i);
	n->seen[i] = *last;
}

/* The kernel's table never holds more ids than fit, and both are emptied together. */
static struct seen *seen_get(struct network *n, uint64_t id)
{
	uint32_t i = hash_find(&n->by_id, id);

	if (i == HASH_NONE) {
		i = n->n_seen++;
		hash_add(&n->by_id, id, i);
		n->seen[i] = (struct seen){ .id = id, .row = UINT32_MAX };
	}
	return &n->seen[i];
}

static struct traffic sum(const struct network *n, const struct jd_traffic *per_cpu)
{
	struct traffic t = { 0 };

	for (unsigned i = 0; i < n->n_cpus; i++) {
		t.rx_bytes += per_cpu[i].rx_bytes;
		t.rx_packets += per_cpu[i].rx_packets;
		t.tx_bytes += per_cpu[i].tx_bytes;
		t.tx_packets += per_cpu[i].tx_packets;
	}
	return t;
}

static struct traffic difference(struct traffic now, const struct traffic *then)
{
	return (struct traffic){ now.rx_bytes - then->rx_bytes, now.rx_packets - then->rx_packets,
				 now.tx_bytes - then->tx_bytes, now.tx_packets - then->tx_packets };
}

static void add(struct traffic *t, const struct traffic *d)
{
	t->rx_bytes += d->rx_bytes;
	t->rx_packets += d->rx_packets;
	t->tx_bytes += d->tx_bytes;
	t->tx_packets += d->tx_packets;
}

static bool is_row_of(const struct reading *r, uint32_t row, uint64_t id)
{
	return row < r->n_rows && r->rows[row].used && r->rows[row].kind == ROW_CGROUP && r->rows[row].id == id;
}

/* Once per batch at most, and only when an id with traffic has no hint that holds. */
static void index_rows(struct network *n, const struct reading *r)
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

static struct reading_row *row_of(struct network *n, struct reading *r, struct seen *s)
{
	if (s->id == JD_TRAFFIC_OTHER)
		return &r->rows[ROW_OTHER];
	if (!is_row_of(r, s->row, s->id) && !n->rows_indexed)
		index_rows(n, r);
	return is_row_of(r, s->row, s->id) ? &r->rows[s->row] : &r->rows[ROW_OTHER];
}

static void take(struct network *n, struct reading *r, struct seen *s, const struct jd_traffic *per_cpu)
{
	struct traffic now = sum(n, per_cpu), d = difference(now, &s->total);

	if (!(d.rx_packets | d.tx_packets | d.rx_bytes | d.tx_bytes)) {
		s->idle += s->idle < UINT16_MAX;
		return;
	}
	s->idle = 0;
	s->total = now;
	add(&row_of(n, r, s)->traffic, &d);
	if (s->id == JD_TRAFFIC_OTHER)
		r->losses.folded += d.rx_packets + d.tx_packets;
}

static void take_batch(struct network *n, struct reading *r, unsigned count)
{
	/* All are entered before the first row is looked up, or the index would miss the later ones. */
	for (unsigned i = 0; i < count; i++)
		seen_get(n, n->keys[i]);
	n->rows_indexed = false;
	for (unsigned i = 0; i < count; i++)
		take(n, r, seen_get(n, n->keys[i]), n->values + (size_t)i * n->n_cpus);
}

/* A socket may outlive its cgroup, and then its entry would stay for ever. */
static void drop_idle(struct network *n, const struct reading *r)
{
	for (unsigned i = n->n_seen; i-- > 0;) {
		const struct seen *s = &n->seen[i];

		if (s->idle >= IDLE_READS && s->id != JD_TRAFFIC_OTHER && !is_row_of(r, s->row, s->id))
			network_forget(n, s->id);
	}
}

int network_read(struct network *n, struct reading *r)
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
	add(&r->rows[ROW_OTHER].traffic, &n->orphan);
	n->orphan = (struct traffic){ 0 };
	if (rc && rc != -ENOENT)
		return rc;
	if (++n->reads % IDLE_READS == 0)
		drop_idle(n, r);
	return 0;
}

void network_forget(struct network *n, uint64_t cgroup_id)
{
	uint32_t i = hash_find(&n->by_id, cgroup_id);
	struct traffic d;

	if (i == HASH_NONE || cgroup_id == JD_TRAFFIC_OTHER)
		return;
	if (!bpf_map_lookup_elem(n->map_fd, &cgroup_id, n->one)) {
		d = difference(sum(n, n->one), &n->seen[i].total);
		add(&n->orphan, &d);
		bpf_map_delete_elem(n->map_fd, &cgroup_id);
	}
	seen_remove(n, i);
}

static int allocate(struct network *n, unsigned max_cgroups)
{
	int cpus = libbpf_num_possible_cpus();

	if (cpus < 0)
		return cpus;
	n->n_cpus = (unsigned)cpus;
	n->max_entries = max_cgroups + 1; /* and JD_TRAFFIC_OTHER */
	n->seen = calloc(2 * (size_t)n->max_entries, sizeof(*n->seen));
	n->keys = calloc(BATCH, sizeof(*n->keys));
	n->values = calloc((size_t)BATCH * n->n_cpus, sizeof(*n->values));
	n->one = calloc(n->n_cpus, sizeof(*n->one));
	if (!n->seen || !n->keys || !n->values || !n->one)
		return -ENOMEM;
	return hash_reserve(&n->by_id, 2 * (size_t)n->max_entries);
}

static int load(struct network *n, const char *btf)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = btf);
	uint64_t other = JD_TRAFFIC_OTHER;
	int rc;

	n->skel = network_bpf__open_opts(&opts);
	if (!n->skel)
		return -errno;
	rc = bpf_map__set_max_entries(n->skel->maps.traffic, n->max_entries);
	if (!rc)
		rc = network_bpf__load(n->skel);
	if (rc)
		return rc;
	n->map_fd = bpf_map__fd(n->skel->maps.traffic);
	return bpf_map_update_elem(n->map_fd, &other, n->one, BPF_NOEXIST) ? -errno : 0;
}

/* Links, not attachments: they end with this process however it ends, and share the cgroup with other programs that
 * are attached there. */
static int attach(struct network *n, const struct hierarchy *h)
{
	struct fsroot *root;
	int rc = fsroot_open("/", &root), fd;

	if (rc)
		return rc;
	fd = fsroot_openat(root, h->mount, O_RDONLY | O_DIRECTORY);
	fsroot_close(root);
	if (fd < 0)
		return fd;
	n->skel->links.ingress = bpf_program__attach_cgroup(n->skel->progs.ingress, fd);
	rc = n->skel->links.ingress ? 0 : -errno;
	if (!rc) {
		n->skel->links.egress = bpf_program__attach_cgroup(n->skel->progs.egress, fd);
		rc = n->skel->links.egress ? 0 : -errno;
	}
	close(fd);
	return rc;
}

static int explain(struct err *err, int r)
{
	if (r == -EPERM || r == -EACCES)
		return err_set(err, r,
			       "network: the kernel refused to attach to the root cgroup; give CAP_NET_ADMIN "
			       "and CAP_BPF, remove a program that is attached there alone, or set network: false");
	return bpf_explain(err, r, NULL, "network", "set network: false");
}

int network_open(const struct hierarchy *h, const char *btf, unsigned max_cgroups, struct network **ret,
		 struct err *err)
{
	struct network *n;
	int rc;

	if (!h->v2)
		return err_set(err, -EOPNOTSUPP,
			       "network: the accounted hierarchy is cgroup v1, which counts no traffic; "
			       "use hierarchy: v2 or set network: false");
	n = calloc(1, sizeof(*n));
	if (!n)
		return err_set(err, -ENOMEM, "network: out of memory; free some, or lower cgroups.max");
	bpf_log_begin();
	rc = allocate(n, max_cgroups);
	if (!rc)
		rc = load(n, btf);
	if (!rc)
		rc = attach(n, h);
	if (rc) {
		network_close(n);
		return explain(err, rc);
	}
	*ret = n;
	return 0;
}

void network_close(struct network *n)
{
	if (!n)
		return;
	network_bpf__destroy(n->skel);
	free(n->seen);
	hash_free(&n->by_id);
	free(n->keys);
	free(n->values);
	free(n->one);
	free(n);
}
