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

#include "../base/fsroot.h"
#include "../model/cgroup.h"
#include "bpf_log.h"
#include "network.skel.h"

#define BATCH 512u /* entries per system call; a hash bucket never holds as many */
#define IDLE_READS 60 /* an entry without a row that says nothing for so long is dropped */

/* What an entry of the kernel's table held at the last reading. */
struct seen {
	uint64_t id;
	struct traffic total;
	uint32_t row; /* hint: where its row was */
	uint16_t idle;
	bool used;
};

struct network {
	struct network_bpf *skel;
	int map_fd;
	unsigned n_cpus, max_entries;
	struct seen *seen; /* open addressing; at most half of it used */
	unsigned capacity; /* a power of two */
	uint64_t *keys; /* BATCH */
	struct jd_traffic *values; /* BATCH * n_cpus */
	struct jd_traffic *one; /* n_cpus */
	struct traffic orphan; /* of forgotten cgroups, since the last reading */
	bool rows_indexed; /* hints are right, for the batch at hand */
	unsigned reads;
};

static unsigned place(const struct network *n, uint64_t id)
{
	unsigned i = (unsigned)((id * 0x9e3779b97f4a7c15ull) >> 32) & (n->capacity - 1);

	while (n->seen[i].used && n->seen[i].id != id)
		i = (i + 1) & (n->capacity - 1);
	return i;
}

static void seen_remove(struct network *n, unsigned i)
{
	unsigned mask = n->capacity - 1;

	n->seen[i].used = false;
	/* What follows in the run may have been pushed here: it finds its place again. */
	for (unsigned j = (i + 1) & mask; n->seen[j].used; j = (j + 1) & mask) {
		struct seen s = n->seen[j];

		n->seen[j].used = false;
		n->seen[place(n, s.id)] = s;
	}
}

/* The kernel's table never holds more ids than fit, and both are emptied together. */
static struct seen *seen_get(struct network *n, uint64_t id)
{
	struct seen *s = &n->seen[place(n, id)];

	if (!s->used)
		*s = (struct seen){ .id = id, .used = true, .row = UINT32_MAX };
	return s;
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
		struct seen *s;

		if (!r->rows[i].used || r->rows[i].kind != ROW_CGROUP)
			continue;
		s = &n->seen[place(n, r->rows[i].id)];
		if (s->used)
			s->row = i;
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
	/* All are entered before any asks for its row, or the index would miss the later ones. */
	for (unsigned i = 0; i < count; i++)
		seen_get(n, n->keys[i]);
	n->rows_indexed = false;
	for (unsigned i = 0; i < count; i++)
		take(n, r, seen_get(n, n->keys[i]), n->values + (size_t)i * n->n_cpus);
}

/* A socket may outlive its cgroup, and then its entry would stay for ever. */
static void drop_idle(struct network *n, const struct reading *r)
{
	for (unsigned i = 0; i < n->capacity; i++) {
		const struct seen *s = &n->seen[i];

		if (s->used && s->idle >= IDLE_READS && s->id != JD_TRAFFIC_OTHER && !is_row_of(r, s->row, s->id))
			network_forget(n, s->id);
	}
}

int network_read(struct network *n, struct reading *r)
{
	uint64_t at, done = 0; /* opaque to us; the kernel wants room for a key */
	void *from = NULL;
	int err = 0;

	while (!err && done <= n->max_entries) {
		__u32 count = BATCH;

		if (bpf_map_lookup_batch(n->map_fd, from, &at, n->keys, n->values, &count, NULL)) {
			err = -errno;
			if (err != -ENOENT)
				break;
		}
		take_batch(n, r, count);
		done += count;
		from = &at;
	}
	add(&r->rows[ROW_OTHER].traffic, &n->orphan);
	n->orphan = (struct traffic){ 0 };
	if (err && err != -ENOENT)
		return err;
	if (++n->reads % IDLE_READS == 0)
		drop_idle(n, r);
	return 0;
}

void network_forget(struct network *n, uint64_t cgroup_id)
{
	unsigned i = place(n, cgroup_id);
	struct traffic d;

	if (!n->seen[i].used || cgroup_id == JD_TRAFFIC_OTHER)
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
	n->capacity = 64;
	while (n->capacity < 2 * n->max_entries)
		n->capacity *= 2;
	n->seen = calloc(n->capacity, sizeof(*n->seen));
	n->keys = calloc(BATCH, sizeof(*n->keys));
	n->values = calloc((size_t)BATCH * n->n_cpus, sizeof(*n->values));
	n->one = calloc(n->n_cpus, sizeof(*n->one));
	return n->seen && n->keys && n->values && n->one ? 0 : -ENOMEM;
}

static int load(struct network *n, const char *btf)
{
	struct bpf_object_open_opts opts = { .sz = sizeof(opts), .btf_custom_path = btf };
	uint64_t other = JD_TRAFFIC_OTHER;
	int r;

	n->skel = network_bpf__open_opts(&opts);
	if (!n->skel)
		return -errno;
	r = bpf_map__set_max_entries(n->skel->maps.traffic, n->max_entries);
	if (!r)
		r = network_bpf__load(n->skel);
	if (r)
		return r;
	n->map_fd = bpf_map__fd(n->skel->maps.traffic);
	return bpf_map_update_elem(n->map_fd, &other, n->one, BPF_NOEXIST) ? -errno : 0;
}

/* Links, not attachments: they end with this process however it ends, and share the cgroup with
 * whatever else is attached there. */
static int attach(struct network *n, const struct hierarchy *h)
{
	struct fsroot *root;
	int r = fsroot_open("/", &root), fd;

	if (r)
		return r;
	fd = fsroot_openat(root, h->mount, O_RDONLY | O_DIRECTORY);
	fsroot_close(root);
	if (fd < 0)
		return fd;
	n->skel->links.ingress = bpf_program__attach_cgroup(n->skel->progs.ingress, fd);
	r = n->skel->links.ingress ? 0 : -errno;
	if (!r) {
		n->skel->links.egress = bpf_program__attach_cgroup(n->skel->progs.egress, fd);
		r = n->skel->links.egress ? 0 : -errno;
	}
	close(fd);
	return r;
}

static int explain(struct err *err, int r)
{
	const char *why = bpf_log_last();

	if (r == -EPERM || r == -EACCES)
		return err_set(err, r,
			       "network: the kernel refused to attach to the root cgroup; give CAP_NET_ADMIN "
			       "and CAP_BPF, remove a program that is attached there alone, or set network: false");
	return err_set(err, r, "network: %s; check jouled doctor, or set network: false", *why ? why : strerror(-r));
}

int network_open(const struct hierarchy *h, const char *btf, unsigned max_cgroups, struct network **ret,
		 struct err *err)
{
	struct network *n;
	int r;

	if (!h->v2)
		return err_set(err, -EOPNOTSUPP,
			       "network: the accounted hierarchy is cgroup v1, which counts no traffic; "
			       "use hierarchy: v2 or set network: false");
	n = calloc(1, sizeof(*n));
	if (!n)
		return err_set(err, -ENOMEM, "network: out of memory; free some or lower max-cgroups");
	bpf_log_reset();
	r = allocate(n, max_cgroups);
	if (!r)
		r = load(n, btf);
	if (!r)
		r = attach(n, h);
	if (r) {
		network_close(n);
		return explain(err, r);
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
	free(n->keys);
	free(n->values);
	free(n->one);
	free(n);
}
