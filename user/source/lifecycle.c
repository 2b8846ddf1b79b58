/* SPDX-License-Identifier: Apache-2.0 */
/* Records of bpf/lifecycle.bpf.c into the table of cgroups. Attached first, walked after, records
 * taken last: every path in the table is then at least as new as the oldest record, so
 *   mkdir of a known cgroup says nothing new about its path,
 *   rename and rmdir apply in the order of the ring, and later ones win. */
#include "lifecycle.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/clock.h"
#include "lifecycle_internal.h"

#define WALKS_AT_ONCE 4 /* a tree that is renamed all the time is left to its events */

static int consume(struct lifecycle *l)
{
	int r = l->ring ? ring_buffer__consume(l->ring) : 0;

	return r < 0 ? r : 0;
}

/* A walk, then the records of what happened meanwhile. A directory renamed under its eyes may have
 * hidden what is below: again. */
static int walk_and_consume(struct lifecycle *l, uint64_t born_ns)
{
	int r = 0;

	l->walk_wanted = false;
	for (int i = 0; i < WALKS_AT_ONCE && !r; i++) {
		l->renames = 0;
		r = lifecycle_walk(l, born_ns);
		if (!r)
			r = consume(l);
		if (!l->renames)
			break;
	}
	return r;
}

static int repair(struct lifecycle *l)
{
	uint64_t cgroups = lifecycle_bpf_lost_cgroups(l), moves = lifecycle_bpf_lost_moves(l);
	int r = 0;

	if (cgroups != l->lost_cgroups || l->walk_wanted)
		r = walk_and_consume(l, clock_mono_ns());
	if (moves != l->lost_moves || l->moves_owed)
		lifecycle_tell_moved(l, JD_EVERY_CPU);
	l->moves_owed = false;
	if (!r)
		l->lost_cgroups = cgroups;
	l->lost_moves = moves;
	return r;
}

int lifecycle_poll(struct lifecycle *l)
{
	int r;

	l->taken = 0;
	if (!l->skel) {
		r = lifecycle_walk(l, clock_mono_ns());
		return r;
	}
	r = consume(l);
	if (!r)
		r = repair(l);
	lifecycle_settle_pending(l);
	return r ? r : (int)l->taken;
}

int lifecycle_fd(const struct lifecycle *l)
{
	return l->ring ? ring_buffer__epoll_fd(l->ring) : -1;
}

uint64_t lifecycle_lost(const struct lifecycle *l)
{
	return lifecycle_bpf_lost_cgroups(l) + lifecycle_bpf_lost_moves(l);
}

struct cgroup *lifecycle_resolve(struct lifecycle *l, uint64_t id)
{
	struct cgroup *cg = cgroup_find(l->table, id);
	char path[CGROUP_PATH_MAX];
	int r;

	if (!cg && l->ring) {
		/* It may wait in the ring, and be dead by now. The caller is in the middle of a reading:
		 * tasks that moved are told at the next poll. */
		l->resolving = true;
		consume(l);
		l->resolving = false;
		cg = cgroup_find(l->table, id);
	}
	if (cg && (cg->resolved || cg->ended))
		return cg;
	r = lifecycle_path_of(l, id, path);
	if (!r)
		return cgroup_add(l->table, id, path, lifecycle_depth(path), 0);
	if (!cg) {
		lifecycle_placeholder(id, "", path);
		cg = cgroup_add(l->table, id, path, 1, 0);
		l->walk_wanted |= r == -EPERM;
	}
	if (cg)
		cg->resolved = false;
	if (r == -ESTALE)
		cgroup_end(l->table, id, clock_mono_ns());
	return cg;
}

static int open_mount(struct lifecycle *l, const struct hierarchy *h, struct err *err)
{
	struct stat st;
	int r = fsroot_open("/", &l->root);

	if (r)
		return err_set(err, r, "cgroup mount %s: %s", h->mount, strerror(-r));
	l->mount_fd = fsroot_openat(l->root, h->mount, O_RDONLY | O_DIRECTORY);
	if (l->mount_fd < 0)
		return err_set(err, l->mount_fd, "cgroup mount %s: %s; mount it or give read access", h->mount,
			       strerror(-l->mount_fd));
	if (fstat(l->mount_fd, &st))
		return err_set(err, -errno, "cgroup mount %s: %s", h->mount, strerror(errno));
	l->mount_id = st.st_ino;
	l->self_fd = fsroot_openat(l->root, "/proc/self/fd", O_PATH | O_DIRECTORY);
	r = l->self_fd < 0 ? l->self_fd : lifecycle_handle_init(l);
	if (r)
		return err_set(err, r, "/proc/self/fd: %s; mount /proc", strerror(-r));
	return 0;
}

int lifecycle_open(const struct hierarchy *h, bool bpf, const char *btf, struct cgroup_table *table,
		   const struct lifecycle_hooks *hooks, struct lifecycle **ret, struct err *err)
{
	struct lifecycle *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return err_set(err, -ENOMEM, "lifecycle: out of memory; free some");
	l->mount_fd = l->self_fd = -1;
	l->table = table;
	if (hooks)
		l->hooks = *hooks;
	r = open_mount(l, h, err);
	if (!r && bpf)
		r = lifecycle_bpf_open(l, (int)h->id, btf, err);
	if (!r) {
		r = walk_and_consume(l, 0);
		if (r)
			err_set(err, r, "cgroup mount %s: %s; read access to every directory is needed", h->mount,
				strerror(-r));
	}
	if (r) {
		lifecycle_close(l);
		return r;
	}
	if (bpf)
		buf_free(&l->todo);
	*ret = l;
	return 0;
}

void lifecycle_close(struct lifecycle *l)
{
	if (!l)
		return;
	lifecycle_bpf_close(l);
	if (l->mount_fd >= 0)
		close(l->mount_fd);
	if (l->self_fd >= 0)
		close(l->self_fd);
	fsroot_close(l->root);
	buf_free(&l->todo);
	free(l->dents);
	free(l);
}
