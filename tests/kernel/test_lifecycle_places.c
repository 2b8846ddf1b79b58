/* SPDX-License-Identifier: Apache-2.0 */
/* Lifecycle where it is less plain: v1 hierarchies with renames, mounts that show a part of the
 * tree, and the raw_tp entries. */
#include "kernel/tree.h"

#include <linux/types.h>
#include <lifecycle.h> /* include/ */
#include <sched.h>
#include <sys/mount.h>

#include <bpf/libbpf.h>
#include "lifecycle.skel.h"

static char mount_dir[128];

static uint32_t hierarchy_id_of(const char *name)
{
	char line[512], *at;
	uint32_t id = 0;
	FILE *f = fopen("/proc/self/cgroup", "r");

	while (f && fgets(line, sizeof(line), f))
		if ((at = strchr(line, ':')) && !strncmp(at + 1, name, strlen(name)) && at[1 + strlen(name)] == ':')
			id = (uint32_t)strtoul(line, NULL, 10);
	fclose(f);
	return id;
}

/* A named v1 hierarchy without controllers, mounted in our own mount namespace. */
static bool v1_open(struct tree *x)
{
	char name[64], options[128];

	memset(x, 0, sizeof(*x));
	snprintf(name, sizeof(name), "name=jouled-test-%d", getpid());
	snprintf(options, sizeof(options), "none,%s", name);
	if (mount("none", mount_dir, "cgroup", 0, options))
		return false;
	snprintf(x->h.mount, sizeof(x->h.mount), "%s", mount_dir);
	x->h.id = hierarchy_id_of(name);
	assert_int_not_equal(x->h.id, 0);
	tree_make_top(x);
	tree_watch(x, true);
	return true;
}

/* A hierarchy that is unmounted while its dead cgroups are still being freed stays until the next unmount. */
static void v1_close(struct tree *x)
{
	char name[64], options[128];

	tree_close(x);
	usleep(300000);
	assert_int_equal(umount2(mount_dir, MNT_DETACH), 0);
	snprintf(name, sizeof(name), "name=jouled-test-%d", getpid());
	snprintf(options, sizeof(options), "none,%s", name);
	for (int i = 0; i < 120 && hierarchy_id_of(name); i++) {
		usleep(500000);
		if (hierarchy_id_of(name) && !mount("none", mount_dir, "cgroup", 0, options))
			umount2(mount_dir, MNT_DETACH);
	}
	assert_int_equal(hierarchy_id_of(name), 0);
}

static void test_v1_rename(void **state)
{
	char longest[256], path[800];
	uint64_t a, below, deep, v2;
	struct tree x, other;

	if (!v1_open(&x)) {
		print_message("SKIP lifecycle_v1_rename: no cgroup v1 in this kernel or no right to mount it\n");
		return;
	}
	tree_open(&other, false);
	a = tree_mkdir(&x, "a");
	below = tree_mkdir(&x, "a/below");
	deep = tree_mkdir(&x, "a/below/deep");
	tree_poll(&x);
	tree_expect(&x, deep, "a/below/deep");
	assert_int_equal(renameat(x.top_fd, "a", x.top_fd, "b"), 0);
	tree_poll(&x);
	tree_expect(&x, a, "b");
	tree_expect(&x, below, "b/below");
	assert_int_equal(tree_expect(&x, deep, "b/below/deep")->renamed, 1);
	/* a rename that no longer fits the tracepoint's buffer */
	memset(longest, 'x', 255);
	longest[255] = '\0';
	snprintf(path, sizeof(path), "b/%.250s", longest);
	tree_mkdir(&x, path);
	snprintf(path, sizeof(path), "b/%.250s/%.250s", longest, longest);
	tree_mkdir(&x, path);
	assert_int_equal(renameat(x.top_fd, "b", x.top_fd, longest), 0);
	snprintf(path, sizeof(path), "%s/%.250s/%.250s", longest, longest, longest);
	a = tree_id(&x, path);
	tree_poll(&x);
	tree_expect(&x, a, path);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(renameat(x.top_fd, i & 1 ? "c" : longest, x.top_fd, i & 1 ? longest : "c"), 0);
	v2 = tree_mkdir(&other, "elsewhere");
	tree_poll(&x);
	tree_expect(&x, a, path);
	/* what happens in another hierarchy is not ours, and may carry our ids */
	if (cgroup_find(x.table, v2))
		assert_null(strstr(cgroup_find(x.table, v2)->path, "elsewhere"));
	tree_close(&other);
	v1_close(&x);
}

/* Renames that were lost come back with the walk. */
static void test_v1_lost_rename(void **state)
{
	struct tree x;
	uint64_t id, child;

	if (!v1_open(&x)) {
		print_message("SKIP lifecycle_v1_lost_rename: no cgroup v1 in this kernel or no right to mount it\n");
		return;
	}
	id = tree_mkdir(&x, "n0");
	child = tree_mkdir(&x, "n0/child");
	tree_poll(&x);
	for (int i = 0; i < 12000; i++)
		assert_int_equal(renameat(x.top_fd, i & 1 ? "n1" : "n0", x.top_fd, i & 1 ? "n0" : "n1"), 0);
	assert_int_equal(renameat(x.top_fd, "n0", x.top_fd, "final"), 0);
	assert_true(lifecycle_lost(x.l) > 0);
	tree_poll(&x);
	tree_expect(&x, id, "final");
	tree_expect(&x, child, "final/child");
	v1_close(&x);
}

/* Inside the mounted part: below the mount. Outside: the whole path where an event told it, and the
 * id alone by handle, from which the kernel gives no path there. */
static void check_part(struct tree *all, struct tree *part)
{
	uint64_t in, out;
	char path[256];

	tree_watch(part, true);
	in = tree_mkdir(all, "part/in");
	tree_mkdir(all, "out");
	out = tree_mkdir(all, "out/side");
	tree_poll(part);
	assert_string_equal(cgroup_find(part->table, tree_id(all, "part"))->path, "/");
	assert_string_equal(cgroup_find(part->table, in)->path, "/in");
	assert_int_equal(cgroup_find(part->table, in)->level, 1);
	snprintf(path, sizeof(path), "%s/out/side", all->top);
	assert_string_equal(cgroup_find(part->table, out)->path, path);
	assert_int_equal(cgroup_find(part->table, out)->level, 3);
	lifecycle_close(part->l);
	cgroup_table_free(part->table);

	tree_watch(part, false);
	assert_string_equal(lifecycle_resolve(part->l, in)->path, "/in");
	snprintf(path, sizeof(path), "/?%llu", (unsigned long long)out);
	assert_string_equal(lifecycle_resolve(part->l, out)->path, path);
	assert_false(cgroup_find(part->table, out)->resolved);
	tree_poll(part);
	assert_false(cgroup_find(part->table, out)->ended);
	tree_rmdir(all, "part/in");
	tree_rmdir(all, "out/side");
	tree_poll(part);
	assert_true(cgroup_find(part->table, in)->ended);
	assert_true(cgroup_find(part->table, out)->ended);
	lifecycle_close(part->l);
	cgroup_table_free(part->table);
}

static void test_bind_mount(void **state)
{
	struct tree all, part = { 0 };
	char path[CGROUP_PATH_MAX + 128];

	tree_open(&all, false);
	tree_mkdir(&all, "part");
	snprintf(path, sizeof(path), "%s%s/part", all.h.mount, all.top);
	part.h = all.h;
	snprintf(part.h.mount, sizeof(part.h.mount), "%s", mount_dir);
	if (mount(path, mount_dir, NULL, MS_BIND, NULL)) {
		print_message("SKIP lifecycle_bind_mount: no right to mount (%s)\n", strerror(errno));
	} else {
		check_part(&all, &part);
		assert_int_equal(umount2(mount_dir, MNT_DETACH), 0);
	}
	tree_close(&all);
}

static void test_private_namespace(void **state)
{
	int ns = open("/proc/self/ns/cgroup", O_RDONLY | O_CLOEXEC);
	char path[CGROUP_PATH_MAX + 128];
	struct tree all, part = { 0 };
	int fd;

	tree_open(&all, false);
	if (!all.h.v2) {
		print_message("SKIP lifecycle_private_namespace: no cgroup v2 here\n");
		tree_close(&all);
		return;
	}
	tree_mkdir(&all, "part");
	part.h = all.h;
	snprintf(part.h.mount, sizeof(part.h.mount), "%s", mount_dir);
	tree_join(&all, "part", 0);
	assert_int_equal(unshare(CLONE_NEWCGROUP), 0);
	assert_int_equal(mount("none", mount_dir, "cgroup2", 0, NULL), 0);
	check_part(&all, &part);
	assert_int_equal(umount2(mount_dir, MNT_DETACH), 0);
	assert_int_equal(setns(ns, CLONE_NEWCGROUP), 0);
	close(ns);
	snprintf(path, sizeof(path), "%s/cgroup.procs", all.h.mount);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(write(fd, "0", 1), 1);
	close(fd);
	tree_close(&all);
}

struct taken {
	struct jd_lifecycle_event e[8];
	unsigned n;
	uint64_t id;
};

static int take(void *ctx, void *data, size_t n)
{
	const struct jd_lifecycle_event *e = data;
	struct taken *t = ctx;

	if ((e->cgroup_id == t->id || !t->id) && t->n < 8) {
		memset(&t->e[t->n], 0, sizeof(t->e[0]));
		memcpy(&t->e[t->n], e, n);
		t->e[t->n++].mono_ns = 0;
	}
	return 0;
}

static struct lifecycle_bpf *load_entries(bool btf, struct taken *t, struct ring_buffer **ret_ring)
{
	struct lifecycle_bpf *skel = lifecycle_bpf__open();
	struct bpf_program *p;

	assert_non_null(skel);
	bpf_object__for_each_program(p, skel->obj)
		bpf_program__set_autoload(p, !strstr(bpf_program__name(p), btf ? "_raw" : "_btf"));
	assert_int_equal(lifecycle_bpf__load(skel), 0);
	assert_int_equal(lifecycle_bpf__attach(skel), 0);
	*ret_ring = ring_buffer__new(bpf_map__fd(skel->maps.events), take, t, NULL);
	assert_non_null(*ret_ring);
	return skel;
}

/* Both sets of entries see the same: record by record, byte by byte but for the time. */
static void test_both_entries(void **state)
{
	struct taken btf = { .n = 0 }, raw = { .n = 0 };
	struct ring_buffer *btf_ring, *raw_ring;
	struct lifecycle_bpf *btf_skel, *raw_skel;
	struct tree x;

	tree_open(&x, true);
	if (!x.h.v2) {
		print_message("SKIP lifecycle_both_entries: no cgroup v2 here\n");
		tree_close(&x);
		return;
	}
	btf_skel = load_entries(true, &btf, &btf_ring);
	raw_skel = load_entries(false, &raw, &raw_ring);
	btf.id = raw.id = tree_mkdir(&x, "seen twice");
	tree_rmdir(&x, "seen twice");
	ring_buffer__consume(btf_ring);
	ring_buffer__consume(raw_ring);
	assert_int_equal(btf.n, 2);
	assert_int_equal(btf.e[0].kind, JD_CGROUP_MKDIR);
	assert_int_equal(btf.e[1].kind, JD_CGROUP_RMDIR);
	assert_int_equal(raw.n, btf.n);
	assert_memory_equal(raw.e, btf.e, sizeof(raw.e));
	ring_buffer__free(btf_ring);
	ring_buffer__free(raw_ring);
	lifecycle_bpf__destroy(btf_skel);
	lifecycle_bpf__destroy(raw_skel);
	tree_close(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_v1_rename),    cmocka_unit_test(test_v1_lost_rename),
		cmocka_unit_test(test_bind_mount),   cmocka_unit_test(test_private_namespace),
		cmocka_unit_test(test_both_entries),
	};
	int r;

	snprintf(mount_dir, sizeof(mount_dir), "%.90s/jouled-test-%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
		 getpid());
	if (mkdir(mount_dir, 0700) || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
		perror("private mount namespace");
		return 1;
	}
	r = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(mount_dir);
	return r;
}
