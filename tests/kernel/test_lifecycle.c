/* SPDX-License-Identifier: Apache-2.0 */
/* Births and ends of cgroups on the running kernel: what the table says against what the kernel's
 * own directory tree says (inode numbers by stat, names by the calls that made them). */
#include "kernel/tree.h"

#include <ftw.h>
#include <poll.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static struct tree *walked;
static unsigned walked_count;

static int compare_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const char *below = path + strlen(walked->h.mount);
	struct cgroup *cg;

	if (type != FTW_D || strncmp(below, walked->top, strlen(walked->top)))
		return 0;
	walked_count++;
	cg = cgroup_find(walked->table, st->st_ino);
	if (!cg || strcmp(cg->path, below) || cg->level != ftw->level || cg->born_ns)
		fail_msg("%s: not as the walk says", below);
	return 0;
}

static void test_first_walk(void **state)
{
	struct tree x;
	char name[64];

	tree_open(&x, true);
	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		tree_mkdir(&x, name);
		snprintf(name, sizeof(name), "d%d/below", i);
		tree_mkdir(&x, name);
	}
	lifecycle_close(x.l);
	cgroup_table_free(x.table);
	tree_watch(&x, true); /* anew: all of them existed before */
	walked = &x;
	walked_count = 0;
	nftw(x.h.mount, compare_entry, 32, FTW_PHYS);
	assert_int_equal(walked_count, 101);
	tree_close(&x);
}

static void check_born_and_ended(bool bpf)
{
	struct tree x;
	struct cgroup *cg;
	uint64_t before, id;

	tree_open(&x, bpf);
	assert_int_equal(lifecycle_fd(x.l) >= 0, bpf);
	before = clock_mono_ns();
	id = tree_mkdir(&x, "one");
	tree_poll(&x);
	cg = tree_expect(&x, id, "one");
	assert_int_equal(cg->level, 2);
	assert_in_range(cg->born_ns, before, clock_mono_ns());
	assert_false(cg->ended);
	before = clock_mono_ns();
	tree_rmdir(&x, "one");
	tree_poll(&x);
	assert_ptr_equal(tree_expect(&x, id, "one"), cg);
	assert_true(cg->ended);
	assert_in_range(cg->ended_ns, before, clock_mono_ns());
	/* lived and died between two polls: with events it is still named */
	id = tree_mkdir(&x, "short");
	tree_rmdir(&x, "short");
	tree_poll(&x);
	if (bpf)
		assert_true(tree_expect(&x, id, "short")->ended);
	tree_close(&x);
}

static void test_born_and_ended(void **state)
{
	check_born_and_ended(true);
}

static void test_without_bpf(void **state)
{
	check_born_and_ended(false);
}

static void test_names(void **state)
{
	static const char *const names[] = { "\"quotes\" and 'apostrophes'",
					     "comma,semicolon;",
					     "back\\slash",
					     " ",
					     "\x01\x02\x1b[31m\x7f",
					     "\xff\xfe\xc3\x28",
					     "*?[a]",
					     "a.service",
					     "\xe2\x82\xac",
					     "x (deleted)",
					     "..." };
	char longest[256];
	uint64_t ids[16];
	struct tree x;
	unsigned n = sizeof(names) / sizeof(names[0]);

	tree_open(&x, true);
	for (unsigned i = 0; i < n; i++)
		ids[i] = tree_mkdir(&x, names[i]);
	memset(longest, 'L', 255);
	longest[255] = '\0';
	ids[n] = tree_mkdir(&x, longest);
	/* kernel/cgroup/cgroup.c, cgroup_mkdir: no newline, which would break /proc/PID/cgroup */
	assert_int_equal(mkdirat(x.top_fd, "new\nline", 0755), -1);
	assert_int_equal(errno, EINVAL);
	tree_poll(&x);
	for (unsigned i = 0; i < n; i++)
		tree_expect(&x, ids[i], names[i]);
	tree_expect(&x, ids[n], longest);
	tree_close(&x);
}

/* Longer than the tracepoint's 1023 bytes: by handle; longer than PATH_MAX: nobody can say. */
static void test_deep(void **state)
{
	char deep[CGROUP_PATH_MAX * 2] = "", step[252];
	int fd, next;
	struct tree x;
	struct stat st;

	tree_open(&x, true);
	fd = dup(x.top_fd);
	for (int i = 0; i < 18; i++) {
		memset(step, 'a' + i, 251);
		step[251] = '\0';
		assert_int_equal(mkdirat(fd, step, 0755), 0);
		next = openat(fd, step, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
		assert_int_equal(fstat(fd, &st), 0);
		snprintf(deep + strlen(deep), sizeof(deep) - strlen(deep), "%s%s", *deep ? "/" : "", step);
		tree_poll(&x);
		usleep(1000);
		tree_poll(&x);
		if (strlen(x.h.mount) + strlen(x.top) + 1 + strlen(deep) < CGROUP_PATH_MAX)
			tree_expect(&x, st.st_ino, deep);
		else
			assert_false(cgroup_find(x.table, st.st_ino)->resolved);
	}
	assert_false(cgroup_find(x.table, st.st_ino)->ended);
	close(fd);
	tree_close(&x);
}

/* Each lives 20 ms, a thousand of them, and none is missed. */
static void test_short_lives(void **state)
{
	static uint64_t ids[1000];
	struct tree x;
	char name[32];

	tree_open(&x, true);
	for (int i = 0; i < 1020; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		if (i < 1000)
			ids[i] = tree_mkdir(&x, name);
		usleep(1000);
		snprintf(name, sizeof(name), "s%d", i - 20);
		if (i >= 20)
			tree_rmdir(&x, name);
		if (i % 100 == 0)
			tree_poll(&x);
	}
	tree_poll(&x);
	assert_int_equal(lifecycle_lost(x.l), 0);
	for (int i = 0; i < 1000; i++) {
		struct cgroup *cg;

		snprintf(name, sizeof(name), "s%d", i);
		cg = tree_expect(&x, ids[i], name);
		assert_true(cg->ended && cg->ended_ns - cg->born_ns >= 20 * NS_PER_MS);
	}
	assert_in_range(cgroup_table_sweep(x.table, UINT64_MAX), 1000, 1100);
	tree_close(&x);
}

#define STORM 10000
static uint64_t storm_ids[STORM];

static unsigned living(const struct tree *x)
{
	unsigned n = 0;
	char name[32];

	for (int i = 0; i < STORM; i++) {
		const struct cgroup *cg = cgroup_find(x->table, storm_ids[i]);

		if (!cg || cg->ended)
			continue;
		snprintf(name, sizeof(name), "m%d", i);
		tree_expect(x, storm_ids[i], name);
		n++;
	}
	return n;
}

/* Nobody polls while 10,000 are made: the ring overflows, says so, and one walk repairs it. */
static void test_storm_overflow(void **state)
{
	struct tree x;
	uint64_t lost, start;
	char name[32];
	int taken;

	tree_open(&x, true);
	for (int i = 0; i < STORM; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		assert_int_equal(mkdirat(x.top_fd, name, 0755), 0);
	}
	lost = lifecycle_lost(x.l);
	start = clock_mono_ns();
	taken = lifecycle_poll(x.l);
	printf("  taken %d, lost %llu, repaired in %.1f ms\n", taken, (unsigned long long)lost,
	       (double)(clock_mono_ns() - start) / 1e6);
	assert_true(lost > 0);
	assert_true((uint64_t)taken + lost >= STORM);
	for (int i = 0; i < STORM; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		storm_ids[i] = tree_id(&x, name);
	}
	assert_int_equal(living(&x), STORM);
	for (int i = 0; i < STORM; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		tree_rmdir(&x, name);
	}
	assert_true(lifecycle_lost(x.l) > lost);
	tree_poll(&x);
	assert_int_equal(living(&x), 0);
	cgroup_table_sweep(x.table, UINT64_MAX);
	for (int i = 0; i < STORM; i++)
		assert_null(cgroup_find(x.table, storm_ids[i]));
	tree_close(&x);
}

/* With these calls deadly, the source goes on: no walk, no openat, no handle per poll. */
static void forbid_file_calls(void)
{
#define DEADLY(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		DEADLY(__NR_openat),
		DEADLY(__NR_openat2),
		DEADLY(__NR_getdents64),
		DEADLY(__NR_open_by_handle_at),
		DEADLY(__NR_name_to_handle_at),
		DEADLY(__NR_statx),
		DEADLY(__NR_newfstatat),
		DEADLY(__NR_readlinkat),
		DEADLY(__NR_bpf),
#ifdef __NR_open
		DEADLY(__NR_open),
#endif
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		_exit(3);
}

static void test_no_file_calls(void **state)
{
	struct tree x;
	int status, fd;
	pid_t pid;

	tree_open(&x, true);
	for (int i = 0; i < 2; i++) { /* first the filter works, then the source needs nothing it forbids */
		pid = fork();
		if (!pid) {
			forbid_file_calls();
			fd = i ? -1 : open("/", O_RDONLY);
			for (int k = 0; k < 1000; k++) {
				if (mkdirat(x.top_fd, "poll", 0755) || lifecycle_poll(x.l) < 1 ||
				    unlinkat(x.top_fd, "poll", AT_REMOVEDIR) || lifecycle_poll(x.l) < 1)
					_exit(2);
			}
			_exit(fd >= 0);
		}
		waitpid(pid, &status, 0);
		if (i)
			assert_int_equal(status, 0);
		else
			assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	}
	tree_close(&x);
}

static void test_resolve(void **state)
{
	struct tree x, y;
	struct cgroup *cg;
	uint64_t id;

	tree_open(&x, true);
	id = tree_mkdir(&x, "later");
	assert_non_null(lifecycle_resolve(x.l, id)); /* its record still waits */
	tree_expect(&x, id, "later");
	tree_poll(&x);
	tree_expect(&x, id, "later");
	id = tree_mkdir(&x, "dead");
	tree_rmdir(&x, "dead");
	assert_non_null(lifecycle_resolve(x.l, id));
	assert_true(tree_expect(&x, id, "dead")->ended);
	y = x; /* without events: by handle alone */
	tree_watch(&y, false);
	id = tree_mkdir(&x, "by handle (deleted)");
	assert_non_null(lifecycle_resolve(y.l, id));
	assert_int_equal(tree_expect(&y, id, "by handle (deleted)")->level, 2);
	cg = lifecycle_resolve(y.l, 1ull << 40);
	assert_string_equal(cg->path, "/?1099511627776");
	assert_true(!cg->resolved && cg->ended);
	assert_ptr_equal(lifecycle_resolve(y.l, 1ull << 40), cg);
	lifecycle_close(y.l);
	cgroup_table_free(y.table);
	tree_close(&x);
}

#define FOR_EVER (60 * NS_PER_S)

/* Until lifecycle_poll is wanted, as the measuring thread waits; false: it is not, after so long. */
static bool wait_wanted(const struct tree *x, uint64_t most_ns)
{
	uint64_t now = clock_mono_ns(), due = lifecycle_due(x->l), left = due > now ? due - now : 0;
	struct pollfd p = { .fd = lifecycle_fd(x->l), .events = POLLIN };
	struct timespec ts;

	left = left < most_ns ? left : most_ns;
	ts = (struct timespec){ (time_t)(left / NS_PER_S), (long)(left % NS_PER_S) };
	return ppoll(&p, 1, &ts, NULL) == 1 || clock_mono_ns() >= due;
}

/* A birth is told without any reading: the first one at once, one that follows it after a rest. */
static void test_birth_wakes(void **state)
{
	struct tree x;
	uint64_t id, before;

	tree_open(&x, true);
	assert_int_equal(lifecycle_due(x.l), UINT64_MAX);
	lifecycle_watch_births(x.l);
	while (lifecycle_due(x.l) != UINT64_MAX) { /* others make cgroups, too */
		assert_true(wait_wanted(&x, FOR_EVER));
		tree_poll(&x);
	}
	before = clock_mono_ns();
	id = tree_mkdir(&x, "first");
	while (!cgroup_find(x.table, id)) {
		assert_true(wait_wanted(&x, FOR_EVER));
		tree_poll(&x);
	}
	tree_expect(&x, id, "first");
	assert_in_range(lifecycle_due(x.l), before + LIFECYCLE_REST_NS, clock_mono_ns() + LIFECYCLE_REST_NS);
	id = tree_mkdir(&x, "second");
	while (!cgroup_find(x.table, id)) {
		assert_true(wait_wanted(&x, FOR_EVER));
		tree_poll(&x);
	}
	tree_expect(&x, id, "second");
	/* A reading takes it without asking whether it was woken: nothing is lost, and the next poll is not held up. */
	id = tree_mkdir(&x, "third");
	while (!cgroup_find(x.table, id)) {
		assert_true(wait_wanted(&x, FOR_EVER));
		assert_true(lifecycle_take(x.l) >= 0);
	}
	tree_expect(&x, id, "third");
	tree_poll(&x);
	tree_rmdir(&x, "first");
	tree_rmdir(&x, "second");
	tree_rmdir(&x, "third");
	tree_close(&x);
}

/* Makes a cgroup, waits until it is known, and says of each poll whether a file is wanted. Returns how long the rest is that
 * the last poll left, from just before it. */
static uint64_t rest_after_birth(struct tree *x, const char *name, bool file_wanted)
{
	uint64_t id = tree_mkdir(x, name), before = 0;

	while (!cgroup_find(x->table, id)) {
		assert_true(wait_wanted(x, FOR_EVER));
		before = clock_mono_ns();
		tree_poll(x);
		lifecycle_rest(x->l, file_wanted && cgroup_find(x->table, id));
	}
	tree_rmdir(x, name);
	assert_int_not_equal(lifecycle_due(x->l), UINT64_MAX);
	return lifecycle_due(x->l) - before;
}

static void wait_quiet(struct tree *x)
{
	while (lifecycle_due(x->l) != UINT64_MAX) { /* others make cgroups, too */
		assert_true(wait_wanted(x, FOR_EVER));
		tree_poll(x);
		lifecycle_rest(x->l, false);
	}
}

/* Births that need no file, one after the other, until a rest is the longest. */
static void make_rests_long(struct tree *x)
{
	uint64_t rest_ns = 0;

	for (unsigned i = 0; i < 1000 && rest_ns < LIFECYCLE_LONGEST_REST_NS; i++)
		rest_ns = rest_after_birth(x, "plain", false);
	assert_true(rest_ns >= LIFECYCLE_LONGEST_REST_NS);
}

static void want_a_file(struct tree *x)
{
	rest_after_birth(x, "wants-a-file", true);
	assert_true(lifecycle_due(x->l) <= clock_mono_ns() + LIFECYCLE_REST_NS);
}

/* Rests grow in a storm whose births need no file. They are short again from one that does, and after a quiet time. */
static void test_rests_grow(void **state)
{
	static void (*const ends[])(struct tree *) = { want_a_file, wait_quiet };
	struct tree x;

	tree_open(&x, true);
	lifecycle_watch_births(x.l);
	for (unsigned e = 0; e < 2; e++) {
		bool quick = false;

		make_rests_long(&x);
		for (unsigned i = 0; i < 100 && !quick; i++) { /* again, because others make cgroups in between, too */
			ends[e](&x);
			rest_after_birth(&x, "after", false);
			quick = lifecycle_due(x.l) <= clock_mono_ns() + LIFECYCLE_REST_NS;
		}
		assert_true(quick);
	}
	tree_close(&x);
}

#define BIRTHS 3000

/* However many are born, whoever waits for them is woken once a rest, and sees all of them. */
static void test_births_bounded(void **state)
{
	uint64_t begin, elapsed, most;
	unsigned polls = 0, seen = 0, pos = 0, moved = 0;
	struct cgroup *cg;
	struct tree x;
	char name[32];
	int status;
	pid_t pid;

	tree_open(&x, true);
	lifecycle_watch_births(x.l);
	tree_poll(&x);
	begin = clock_mono_ns();
	pid = fork();
	for (int i = 0; pid == 0 && i < BIRTHS; i++) {
		snprintf(name, sizeof(name), "b%d", i);
		if (mkdirat(x.top_fd, name, 0755) || unlinkat(x.top_fd, name, AT_REMOVEDIR))
			_exit(1);
	}
	if (pid == 0)
		_exit(0);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (!wait_wanted(&x, 50 * NS_PER_MS))
			continue;
		tree_poll(&x);
		polls++;
	}
	assert_int_equal(status, 0);
	tree_poll(&x);
	elapsed = clock_mono_ns() - begin;
	while ((cg = cgroup_next(x.table, &pos)))
		seen += strncmp(cg->path, x.top, strlen(x.top)) == 0 && strncmp(cg->path + strlen(x.top), "/b", 2) == 0;
	assert_int_equal(seen, BIRTHS);
	for (unsigned i = 0; i < 1024; i++)
		moved += x.moved[i];
	most = 2 * elapsed / LIFECYCLE_REST_NS + moved +
	       4; /* a rest ends by its time, or by a wake-up that came just before it */
	printf("%d births in %llu ms: %u polls\n", BIRTHS, (unsigned long long)(elapsed / NS_PER_MS), polls);
	assert_true(polls <= most); /* none where all were born before the first look */
	tree_close(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_walk),     cmocka_unit_test(test_born_and_ended),
		cmocka_unit_test(test_without_bpf),    cmocka_unit_test(test_names),
		cmocka_unit_test(test_deep),           cmocka_unit_test(test_short_lives),
		cmocka_unit_test(test_storm_overflow), cmocka_unit_test(test_no_file_calls),
		cmocka_unit_test(test_resolve),        cmocka_unit_test(test_birth_wakes),
		cmocka_unit_test(test_rests_grow),     cmocka_unit_test(test_births_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
