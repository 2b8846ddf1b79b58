/* SPDX-License-Identifier: Apache-2.0 */
/* Records of bpf/lifecycle.bpf.c into the table of cgroups. Attached first, walked after, records
 * taken last: every path in the table is then at least as new as the oldest record, so
 *   mkdir of a known cgroup says nothing new about its path,
 *   rename and rmdir apply in the order of the ring, and later ones win. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "lifecycle.h"
#include "lifecycle.skel.h"
#include "walk.h"
#include "source/bpf_load.h"

#define WALKS_AT_ONCE 4 /* then a tree that is renamed all the time is left to its events */

static int consume(struct lifecycle *l)
{
	int rc = l->ring ? ring_buffer__consume(l->ring) : 0;

	return rc < 0 ? rc : 0;
}

/* A walk, then the records of the changes meanwhile. A directory renamed during the walk may have hidden its
 * children, so the walk is repeated. */
static int walk_and_consume(struct lifecycle *l, uint64_t born_ns)
{
	int rc = 0;

	l->walk_wanted = false;
	for (int i = 0; i < WALKS_AT_ONCE && !rc; i++) {
		l->renames = 0;
		rc = lifecycle_walk(l, born_ns);
		if (!rc)
			rc = consume(l);
		if (!l->renames)
			break;
	}
	return rc;
}

static uint64_t lifecycle_bpf_lost_cgroups(const struct lifecycle *l);

static uint64_t lifecycle_bpf_lost_moves(const struct lifecycle *l);

static void lifecycle_tell_moved(struct lifecycle *l, uint32_t cpu);

static int repair(struct lifecycle *l)
{
	uint64_t cgroups = lifecycle_bpf_lost_cgroups(l), moves = lifecycle_bpf_lost_moves(l);
	int rc = 0;

	if (cgroups != l->lost_cgroups || l->walk_wanted)
		rc = walk_and_consume(l, clock_mono_ns());
	if (moves != l->lost_moves || l->moves_owed)
		lifecycle_tell_moved(l, JD_EVERY_CPU);
	l->moves_owed = false;
	if (!rc)
		l->lost_cgroups = cgroups;
	l->lost_moves = moves;
	return rc;
}

static void lifecycle_bpf_arm(struct lifecycle *l, bool on);

/* Ends the rest: births wake again. Births that came meanwhile are found by a look at the ring. */
static bool watch_again(struct lifecycle *l, uint64_t now_ns)
{
	if (!l->watching || now_ns < l->due_ns)
		return false;
	lifecycle_bpf_arm(l, true);
	l->due_ns = UINT64_MAX;
	return true;
}

static bool lifecycle_bpf_armed(const struct lifecycle *l);

/* A birth that woke us, or one during the rest, begins a rest. A birth whose path is not known yet is asked for
 * again. */
static void rest(struct lifecycle *l, bool watched_again, uint64_t now_ns)
{
	if (!l->watching || l->due_ns != UINT64_MAX)
		return;
	if (watched_again && l->births)
		lifecycle_bpf_arm(l, false);
	l->rest_began = !lifecycle_bpf_armed(l) || l->n_pending;
	if (l->rest_began)
		l->due_ns = now_ns + l->rest_ns;
	else
		l->rest_ns = LIFECYCLE_REST_NS;
}

void lifecycle_rest(struct lifecycle *l, bool file_wanted)
{
	const bool plain = !file_wanted && !l->n_pending;

	if (plain && l->rest_began && l->rest_ns < LIFECYCLE_LONGEST_REST_NS)
		l->rest_ns *= 2; /* of the next one */
	if (!plain && l->due_ns != UINT64_MAX && l->due_ns > clock_mono_ns() + LIFECYCLE_REST_NS)
		l->due_ns = clock_mono_ns() + LIFECYCLE_REST_NS;
	if (!plain)
		l->rest_ns = LIFECYCLE_REST_NS;
	l->rest_began = false;
}

int lifecycle_take(struct lifecycle *l)
{
	uint64_t now_ns = clock_mono_ns();
	bool again;
	int rc;

	l->taken = l->births = 0;
	if (!l->skel)
		return lifecycle_walk(l, now_ns);
	again = watch_again(l, now_ns);
	rc = consume(l);
	if (!rc)
		rc = repair(l);
	lifecycle_settle_pending(l);
	rest(l, again, now_ns);
	return rc ? rc : (int)l->taken;
}

int lifecycle_poll(struct lifecycle *l)
{
	struct epoll_event edge;

	if (l->skel)
		epoll_wait(l->wake_fd, &edge, 1, 0); /* before the look at the ring: a later wake-up is a new one */
	return lifecycle_take(l);
}

int lifecycle_fd(const struct lifecycle *l)
{
	return l->wake_fd;
}

void lifecycle_watch_births(struct lifecycle *l)
{
	l->watching = l->skel != NULL;
	if (!l->watching)
		return;
	l->due_ns = 0; /* from the next look on */
	l->rest_ns = LIFECYCLE_REST_NS;
}

uint64_t lifecycle_due(const struct lifecycle *l)
{
	return l->due_ns;
}

uint64_t lifecycle_lost(const struct lifecycle *l)
{
	return lifecycle_bpf_lost_cgroups(l) + lifecycle_bpf_lost_moves(l);
}

static void lifecycle_placeholder(uint64_t id, const char *cut, char ret_path[CGROUP_PATH_MAX]);

struct cgroup *lifecycle_resolve(struct lifecycle *l, uint64_t id)
{
	struct cgroup *cg = cgroup_find(l->table, id);
	char path[CGROUP_PATH_MAX];
	int rc;

	if (!cg && l->ring) {
		/* Its record may wait in the ring, and the cgroup may have ended by now. The caller is in the
		 * middle of a reading, so tasks that moved are told at the next poll. */
		l->resolving = true;
		consume(l);
		l->resolving = false;
		cg = cgroup_find(l->table, id);
	}
	if (cg && (cg->resolved || cg->ended))
		return cg;
	rc = lifecycle_path_of(l, id, path);
	if (!rc)
		return cgroup_add(l->table, id, path, lifecycle_depth(path), 0);
	if (!cg) {
		lifecycle_placeholder(id, "", path);
		cg = cgroup_add(l->table, id, path, 1, 0);
		l->walk_wanted |= rc == -EPERM;
	}
	if (cg)
		cg->resolved = false;
	if (rc == -ESTALE)
		cgroup_end(l->table, id, clock_mono_ns());
	return cg;
}

static int open_mount(struct lifecycle *l, const struct hierarchy *h, struct err *err)
{
	struct stat st;
	int rc = fsroot_open("/", &l->root);

	if (rc)
		return err_set(err, rc, "cgroup mount %s: %s", h->mount, strerror(-rc));
	l->mount_fd = fsroot_openat(l->root, h->mount, O_RDONLY | O_DIRECTORY);
	if (l->mount_fd < 0)
		return err_set(err, l->mount_fd, "cgroup mount %s: %s; mount it or give read access", h->mount,
			       strerror(-l->mount_fd));
	if (fstat(l->mount_fd, &st))
		return err_set(err, -errno, "cgroup mount %s: %s", h->mount, strerror(errno));
	l->mount_id = st.st_ino;
	l->self_fd = fsroot_openat(l->root, "/proc/self/fd", O_PATH | O_DIRECTORY);
	rc = l->self_fd < 0 ? l->self_fd : lifecycle_handle_init(l);
	if (rc)
		return err_set(err, rc, "/proc/self/fd: %s; mount /proc", strerror(-rc));
	return 0;
}

static int lifecycle_bpf_open(struct lifecycle *l, int hierarchy_id, const char *btf, struct err *err);

int lifecycle_open(const struct lifecycle_options *o, struct lifecycle **ret, struct err *err)
{
	struct lifecycle *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return err_set(err, -ENOMEM, "lifecycle: out of memory; free some");
	l->mount_fd = l->self_fd = l->wake_fd = -1;
	l->due_ns = UINT64_MAX;
	l->table = o->table;
	l->hooks = o->hooks;
	l->sees_part = o->hierarchy->private_namespace;
	rc = open_mount(l, o->hierarchy, err);
	if (!rc && o->bpf)
		rc = lifecycle_bpf_open(l, (int)o->hierarchy->id, o->btf, err);
	if (!rc) {
		rc = walk_and_consume(l, 0);
		if (rc)
			err_set(err, rc, "cgroup mount %s: %s; read access to every directory is needed",
				o->hierarchy->mount, strerror(-rc));
	}
	if (rc) {
		lifecycle_close(l);
		return rc;
	}
	if (o->bpf)
		buf_free(&l->todo);
	*ret = l;
	return 0;
}

static void lifecycle_bpf_close(struct lifecycle *l);

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

/* Loading of bpf/lifecycle.bpf.c: the same programs as tp_btf or, where those are refused, raw_tp. */

struct load_request {
	struct lifecycle *l;
	int hierarchy_id;
	const char *btf;
};

static int attempt(void *ctx, bool tp_btf)
{
	const struct load_request *q = ctx;
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = q->btf);
	struct lifecycle_bpf *skel = lifecycle_bpf__open_opts(&opts);
	struct lifecycle *l = q->l;
	int rc;

	if (!skel)
		return -errno;
	skel->rodata->hierarchy_id = q->hierarchy_id;
	/* The root directory of every kernfs tree has inode 1 (fs/kernfs/dir.c). */
	skel->rodata->mount_id = l->mount_id == 1 ? 0 : l->mount_id;
	bpf_choose_entries(skel->obj, tp_btf);
	rc = bpf_load_attach(skel->skeleton);
	if (rc) {
		lifecycle_bpf__destroy(skel);
		return rc;
	}
	l->skel = skel;
	return 0;
}

/* Edge-triggered: records that were put into the ring without a wake-up must not make it readable, or a storm of them
 * would keep its reader awake. */
static int open_wake(struct lifecycle *l)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };

	l->wake_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->wake_fd < 0 || epoll_ctl(l->wake_fd, EPOLL_CTL_ADD, bpf_map__fd(l->skel->maps.events), &e) != 0)
		return -errno;
	return 0;
}

/* Loads and attaches, tp_btf first, raw_tp where that is refused. */
static int lifecycle_bpf_open(struct lifecycle *l, int hierarchy_id, const char *btf, struct err *err)
{
	struct load_request q = { .l = l, .hierarchy_id = hierarchy_id, .btf = btf };
	int rc;

	bpf_log_begin();
	rc = bpf_load_entries(attempt, &q);
	if (rc)
		goto out;
	l->ring = ring_buffer__new(bpf_map__fd(l->skel->maps.events), lifecycle_record, l, NULL);
	rc = l->ring ? open_wake(l) : -errno;
out:
	return rc ? bpf_explain(err, rc, l->root, "lifecycle events", "use trigger: none") : 0;
}

static void lifecycle_bpf_close(struct lifecycle *l)
{
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	l->wake_fd = -1;
	ring_buffer__free(l->ring);
	lifecycle_bpf__destroy(l->skel);
	l->ring = NULL;
	l->skel = NULL;
}

/* Written by the kernel while this reads. */
static uint64_t lifecycle_bpf_lost_cgroups(const struct lifecycle *l)
{
	return l->skel ? __atomic_load_n(&l->skel->bss->lost_cgroups, __ATOMIC_RELAXED) : 0;
}

static uint64_t lifecycle_bpf_lost_moves(const struct lifecycle *l)
{
	return l->skel ? __atomic_load_n(&l->skel->bss->lost_moves, __ATOMIC_RELAXED) : 0;
}

static void lifecycle_bpf_arm(struct lifecycle *l, bool on)
{
	__atomic_store_n(&l->skel->bss->wake_for_birth, on, __ATOMIC_SEQ_CST);
}

/* True while the next birth is to wake us and has not come yet. */
static bool lifecycle_bpf_armed(const struct lifecycle *l)
{
	return __atomic_load_n(&l->skel->bss->wake_for_birth, __ATOMIC_RELAXED);
}

/* One record of the ring into the table.
 *
 * * Paths are below the mount. Where only a subtree is mounted (private namespace, bind mount) the record says how
 * many components lie above it; a cgroup outside keeps its path from the hierarchy's root. No walk and no handle
 * gives their names: one that was there before the start is "/?<id>". */

#define PENDING_NS (1 * NS_PER_S)

/* The record's path below the mount. */
static const char *mapped_path(const struct jd_lifecycle_event *e)
{
	const char *path = e->path;

	if (e->mount_level == JD_OUTSIDE)
		return path;
	for (uint32_t i = 0; i < e->mount_level && *path; i++) {
		const char *next = strchr(path + 1, '/');

		path = next ? next : "";
	}
	return *path ? path : "/";
}

static uint16_t mapped_level(const struct jd_lifecycle_event *e)
{
	uint32_t level = e->mount_level == JD_OUTSIDE || e->mount_level > e->level ? e->level :
										     e->level - e->mount_level;

	return level < UINT16_MAX ? (uint16_t)level : UINT16_MAX;
}

/* Placeholder for a path that is not known in full: its known part, less the component that was cut. */
static void lifecycle_placeholder(uint64_t id, const char *cut, char ret_path[CGROUP_PATH_MAX])
{
	const char *end = strrchr(cut, '/');
	int n = end ? (int)(end - cut) : 0;

	snprintf(ret_path, CGROUP_PATH_MAX, "%.*s/?%llu", n, cut, (unsigned long long)id);
}

static void pend(struct lifecycle *l, uint64_t id)
{
	for (unsigned i = 0; i < l->n_pending; i++)
		if (l->pending[i] == id)
			return;
	if (l->n_pending < LIFECYCLE_PENDING)
		l->pending[l->n_pending++] = id;
	else
		l->walk_wanted = true;
}

/* Full path of the record's cgroup into path. False when it could not be had (yet). */
static bool full_path(const struct lifecycle *l, const struct jd_lifecycle_event *e, char ret_path[CGROUP_PATH_MAX])
{
	const char *path = mapped_path(e);

	if (!(e->flags & JD_PATH_TRUNCATED)) {
		memcpy(ret_path, path, strlen(path) + 1);
		return true;
	}
	if (e->kind != JD_CGROUP_RMDIR && !lifecycle_path_of(l, e->cgroup_id, ret_path))
		return true;
	lifecycle_placeholder(e->cgroup_id, path, ret_path);
	return false;
}

static struct cgroup *add_record(struct lifecycle *l, const struct jd_lifecycle_event *e, uint64_t born_ns)
{
	char path[CGROUP_PATH_MAX];
	bool full = full_path(l, e, path);
	struct cgroup *cg = cgroup_add(l->table, e->cgroup_id, path, mapped_level(e), born_ns);

	if (!cg) {
		l->walk_wanted = true;
		return NULL;
	}
	if (!full) {
		cg->resolved = false;
		if (e->kind != JD_CGROUP_RMDIR)
			pend(l, cg->id);
	}
	return cg;
}

static void take_mkdir(struct lifecycle *l, const struct jd_lifecycle_event *e)
{
	struct cgroup *cg = cgroup_find(l->table, e->cgroup_id);

	l->births++;
	if (!cg || !cg->resolved)
		add_record(l, e, e->mono_ns);
	else if (!cg->born_ns)
		cg->born_ns = e->mono_ns;
}

/* A cgroup whose birth was lost, or that ended before the walk, is still named by this record. */
static void take_rmdir(struct lifecycle *l, const struct jd_lifecycle_event *e)
{
	if (!cgroup_find(l->table, e->cgroup_id))
		add_record(l, e, 0);
	cgroup_end(l->table, e->cgroup_id, e->mono_ns);
}

static void take_rename(struct lifecycle *l, const struct jd_lifecycle_event *e)
{
	char path[CGROUP_PATH_MAX];

	l->renames++;
	if (!cgroup_find(l->table, e->cgroup_id)) {
		add_record(l, e, 0);
		return;
	}
	if (full_path(l, e, path)) {
		cgroup_rename(l->table, e->cgroup_id, path);
		return;
	}
	cgroup_rename(l->table, e->cgroup_id, path);
	cgroup_find(l->table, e->cgroup_id)->resolved = false;
	pend(l, e->cgroup_id);
}

/* cpu may be JD_EVERY_CPU */
static void lifecycle_tell_moved(struct lifecycle *l, uint32_t cpu)
{
	int n;

	if (!l->hooks.task_moved)
		return;
	if (cpu != JD_EVERY_CPU) {
		l->hooks.task_moved(l->hooks.ctx, cpu);
		return;
	}
	n = libbpf_num_possible_cpus();
	for (int i = 0; i < n; i++)
		l->hooks.task_moved(l->hooks.ctx, (unsigned)i);
}

int lifecycle_record(void *ctx, void *data, size_t n)
{
	const struct jd_lifecycle_event *e = data;
	struct lifecycle *l = ctx;
	size_t head = offsetof(struct jd_lifecycle_event, path);

	if (n <= head || n > sizeof(*e) || e->path_len >= n - head || e->path[e->path_len])
		return 0;
	l->taken++;
	switch (e->kind) {
	case JD_CGROUP_MKDIR:
		take_mkdir(l, e);
		break;
	case JD_CGROUP_RMDIR:
		take_rmdir(l, e);
		break;
	case JD_CGROUP_RENAME:
		take_rename(l, e);
		break;
	case JD_TASK_MOVED:
		if (l->resolving)
			l->moves_owed = true;
		else
			lifecycle_tell_moved(l, e->cpu);
		break;
	}
	return 0;
}

/* A new cgroup is announced a moment before the kernel lets its handle be opened. */
void lifecycle_settle_pending(struct lifecycle *l)
{
	uint64_t now = l->n_pending ? clock_mono_ns() : 0;
	char path[CGROUP_PATH_MAX];
	unsigned kept = 0;

	for (unsigned i = 0; i < l->n_pending; i++) {
		struct cgroup *cg = cgroup_find(l->table, l->pending[i]);

		if (!cg || cg->ended || cg->resolved)
			continue;
		if (!lifecycle_path_of(l, cg->id, path))
			cgroup_rename(l->table, cg->id, path);
		else if (now < cg->born_ns + PENDING_NS)
			l->pending[kept++] = cg->id;
	}
	l->n_pending = kept;
}
