/* SPDX-License-Identifier: Apache-2.0 */
/* Traffic of every cgroup: bpf/network.bpf.c counts, a table of the kernel keeps it. */
#include "network.h"
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <network.h> /* include/, not the one beside this file */
#include <stdlib.h>
#include <unistd.h>
#include "base/fsroot.h"
#include "network.skel.h"
#include "source/bpf_load.h"
#include "traffic_table.h"

_Static_assert(sizeof(struct jd_traffic) == TRAFFIC_NETWORK * sizeof(uint64_t), "the kernel's value is as ours");
_Static_assert(JD_TRAFFIC_OTHER == TRAFFIC_TABLE_OTHER, "one key for all others");

struct network {
	struct network_bpf *skel;
	struct traffic_table *table;
};

static int load(struct network *n, const char *btf, unsigned max_cgroups)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = btf);
	struct traffic_table_options table = { .max_cgroups = max_cgroups, .n = TRAFFIC_NETWORK };
	int rc;

	n->skel = network_bpf__open_opts(&opts);
	if (!n->skel)
		return -errno;
	table.map = n->skel->maps.traffic;
	rc = traffic_table_open(&table, &n->table);
	if (!rc)
		rc = network_bpf__load(n->skel);
	return rc ? rc : traffic_table_loaded(n->table, &n->skel->bss->traffic_changed);
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

int network_read(struct network *n, struct reading *r)
{
	return traffic_table_read(n->table, r);
}

void network_forget(struct network *n, uint64_t cgroup_id)
{
	traffic_table_forget(n->table, cgroup_id);
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
	rc = load(n, btf, max_cgroups);
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
	traffic_table_close(n->table);
	network_bpf__destroy(n->skel);
	free(n);
}
