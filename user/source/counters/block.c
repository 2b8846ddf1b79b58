/* SPDX-License-Identifier: Apache-2.0 */
#include "block.h"
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <stddef.h>
#include <block.h> /* include/, not the one beside this file */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "block.skel.h"
#include "source/bpf_load.h"
#include "traffic_table.h"

_Static_assert(sizeof(struct jd_block) == TRAFFIC_BLOCK * sizeof(uint64_t), "the kernel's value is as ours");
_Static_assert(offsetof(struct jd_block_row, work) == sizeof(uint64_t), "an id, then the values");
_Static_assert(JD_BLOCK_OTHER == TRAFFIC_TABLE_OTHER, "one key for all others");

#define WITHOUT_REQUESTS_MAX 100 /* bytes of names */

/* How the task that asks for a request is seen. BEGIN_OLD: before Linux 5.11 the tracepoint had other arguments. */
enum begin { BEGIN_SEEN, BEGIN_OLD, BEGIN_UNSEEN };

/* The hierarchy of the io controller, which is called blkio on v1. */
enum io { IO_V2, IO_V1, IO_NONE };

struct block {
	struct block_bpf *skel;
	struct traffic_table *table;
	const struct fsroot *root;
	const char *btf;
	uint32_t hierarchy_id;
	uint64_t root_id;
	unsigned max_cgroups;
	enum begin begin;
	bool tp_btf, typed_task;
	enum io io;
	bool same; /* the io controller's hierarchy is the accounted one */
};

static void unload(struct block *b)
{
	traffic_table_close(b->table);
	block_bpf__destroy(b->skel);
	b->table = NULL;
	b->skel = NULL;
}

static void choose(struct block *b, bool tp_btf)
{
	struct bpf_program *const begins[2][2] = {
		[BEGIN_SEEN] = { b->skel->progs.begin_raw, b->skel->progs.begin_btf },
		[BEGIN_OLD] = { b->skel->progs.begin_old_raw, b->skel->progs.begin_old_btf },
	};

	bpf_choose_entries(b->skel->obj, tp_btf);
	for (unsigned i = 0; i < 2; i++)
		bpf_program__set_autoload(begins[i][tp_btf], b->begin == i);
}

static int attempt(void *ctx, bool tp_btf)
{
	struct block *b = ctx;
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = b->btf);
	struct traffic_table_options table = { .max_cgroups = b->max_cgroups,
					       .first = TRAFFIC_NETWORK,
					       .n = TRAFFIC_BLOCK };
	int rc;

	b->skel = block_bpf__open_opts(&opts);
	if (!b->skel)
		return -errno;
	b->tp_btf = tp_btf;
	b->skel->rodata->hierarchy_id = (int32_t)b->hierarchy_id;
	b->skel->rodata->root_id = b->root_id;
	b->skel->rodata->books = b->same;
	b->skel->rodata->typed_task = b->typed_task;
	choose(b, tp_btf);
	table.map = b->skel->maps.work;
	table.hot = b->skel->maps.hot;
	rc = traffic_table_open(&table, &b->table);
	if (!rc)
		rc = block_bpf__load(b->skel);
	if (!rc)
		rc = traffic_table_loaded(b->table, &b->skel->bss->work_changed);
	if (!rc)
		rc = block_bpf__attach(b->skel);
	if (rc)
		unload(b);
	return rc;
}

/* Which of the two lists of arguments block_getrq has: behind its context a bio, or a queue, a bio and a direction
 * (include/trace/events/block.h). */
static enum begin find_begin(const struct btf *btf)
{
	const struct btf_type *t;
	int32_t id = btf__find_by_name_kind(btf, "btf_trace_block_getrq", BTF_KIND_TYPEDEF);

	t = id > 0 ? btf__type_by_id(btf, btf__type_by_id(btf, (uint32_t)id)->type) : NULL;
	t = t && btf_is_ptr(t) ? btf__type_by_id(btf, t->type) : NULL;
	return t && btf_is_func_proto(t) && btf_vlen(t) > 2 ? BEGIN_OLD : BEGIN_SEEN;
}

/* What the kernel's BTF says of the tracepoint and of a helper of Linux 5.11. */
static void look_at_kernel(struct block *b)
{
	struct btf *btf = b->btf ? btf__parse(b->btf, NULL) : btf__load_vmlinux_btf();

	b->begin = BEGIN_SEEN;
	if (libbpf_get_error(btf))
		return; /* then no program loads either */
	b->begin = find_begin(btf);
	b->typed_task = btf__find_by_name_kind(btf, "bpf_get_current_task_btf", BTF_KIND_FUNC) > 0;
	btf__free(btf);
}

/* The line "blkio ID CGROUPS ENABLED" of /proc/cgroups. */
static enum io find_io(const struct fsroot *root, uint32_t *ret_id)
{
	char text[4096], *line;
	unsigned id, cgroups, enabled;

	if (fsroot_read(root, "/proc/cgroups", text, sizeof(text)) <= 0)
		return IO_NONE;
	line = strstr(text, "\nblkio");
	if (!line || sscanf(line, "\nblkio %u %u %u", &id, &cgroups, &enabled) != 3 || !enabled)
		return IO_NONE;
	*ret_id = id;
	return id ? IO_V1 : IO_V2;
}

static uint64_t find_root(const struct fsroot *root, const char *mount)
{
	int fd = fsroot_openat(root, mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st = { 0 };

	if (fd < 0)
		return JD_BLOCK_OTHER;
	if (fstat(fd, &st) != 0)
		st.st_ino = JD_BLOCK_OTHER;
	close(fd);
	return st.st_ino;
}

int block_open(const struct fsroot *root, const struct hierarchy *h, const char *btf, unsigned max_cgroups,
	       struct block **ret, struct err *err)
{
	struct block *b = calloc(1, sizeof(*b));
	uint32_t io_id = 0;
	int rc;

	if (!b)
		return err_set(err, -ENOMEM, "block: out of memory; free some, or lower cgroups.max");
	b->root = root;
	b->btf = btf;
	b->max_cgroups = max_cgroups;
	b->hierarchy_id = h->id;
	b->root_id = find_root(root, h->mount);
	b->io = find_io(root, &io_id);
	b->same = b->io != IO_NONE && io_id == h->id;
	bpf_log_begin();
	look_at_kernel(b);
	rc = bpf_load_entries(attempt, b);
	if (rc && rc != -EPERM && rc != -EACCES) {
		b->begin = BEGIN_UNSEEN;
		rc = bpf_load_entries(attempt, b);
	}
	if (rc) {
		free(b);
		return bpf_explain(err, rc, root, "block", "set block: false");
	}
	*ret = b;
	return 0;
}

int block_read(struct block *b, struct reading *r)
{
	return traffic_table_read(b->table, r);
}

void block_forget(struct block *b, uint64_t cgroup_id)
{
	traffic_table_forget(b->table, cgroup_id);
}

void block_close(struct block *b)
{
	if (!b)
		return;
	unload(b);
	free(b);
}

uint64_t block_lost(const struct block *b)
{
	const struct bpf_program *prog = b->tp_btf ? b->skel->progs.complete_btf : b->skel->progs.complete_raw;
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);

	return bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &len) == 0 ? info.recursion_misses : 0;
}

const char *block_state(const struct block *b)
{
	return b->same ? "ok" : "estimated";
}

/* Names of devices without a queue of requests, which have no directory mq. */
static void find_unseen(const struct fsroot *root, char *dst, size_t size)
{
	int fd = fsroot_openat(root, "/sys/block", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	size_t len = 0;

	*dst = '\0';
	while (dir && (e = readdir(dir))) {
		char path[sizeof("/slaves") + sizeof(e->d_name)];

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/mq", e->d_name);
		if (faccessat(dirfd(dir), path, F_OK, 0) == 0)
			continue;
		if (len + strlen(e->d_name) + 8 > size) {
			snprintf(dst + len, size - len, ", ...");
			break;
		}
		len += (size_t)snprintf(dst + len, size - len, "%s%s", len ? ", " : "", e->d_name);
	}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}

void block_describe(const struct block *b, char *dst, size_t size)
{
	const char *who =
		b->same        ? "by the io controller" :
		b->io == IO_V1 ? "by the task that began it, writeback to the root: the io controller is on cgroup v1" :
				 "by the task that began it, writeback to the root: no io controller";
	const char *further = b->begin == BEGIN_UNSEEN  ? "; this kernel does not show who begins a request" :
			      b->same && b->io == IO_V2 ? ", below it by the task that began it" :
							  "";
	char unseen[WITHOUT_REQUESTS_MAX], pushed[112] = "";

	if (b->skel->bss->pushed_out)
		snprintf(pushed, sizeof(pushed),
			 "; of up to %llu requests the task was forgotten, there were too many at once",
			 (unsigned long long)b->skel->bss->pushed_out);
	find_unseen(b->root, unseen, sizeof(unseen));
	snprintf(dst, size, "bytes and requests per cgroup, %s%s%s%s%s", who, further, pushed,
		 *unseen ? "; no requests, so only what is below them counts: " : "", unseen);
}
