// SPDX-License-Identifier: Apache-2.0
/* A storm of births and ends of cgroups, with the lifecycle program off and on in turn; how long a
 * reading takes to learn of 10 000 new ones; what one unknown id costs. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "own.h"

#define STORM 1000
#define MANY 10000
#define MAX_SLOWDOWN 1.25
#define MAX_RESOLVE_NS 3000
#define FILEID_KERNFS 0xfe

struct watcher {
	struct fsroot *root;
	struct hierarchy hierarchy;
	struct cgroup_table *table;
	struct lifecycle *lifecycle;
	pthread_t thread;
	atomic_bool stop;
};

static struct watcher w;

static void start(bool bpf)
{
	struct err err = { 0 };

	const struct lifecycle_options o = { .hierarchy = &w.hierarchy, .table = cgroup_table_new(), .bpf = bpf };

	w.table = o.table;
	if (!w.table || lifecycle_open(&o, &w.lifecycle, &err)) {
		fprintf(stderr, "bench: %s\n", err.text);
		exit(1);
	}
}

static void stop(void)
{
	lifecycle_close(w.lifecycle);
	cgroup_table_free(w.table);
}

/* As the agent does: takes records when the ring says so. */
static void *drain(void *arg)
{
	struct pollfd p = { lifecycle_fd(w.lifecycle), POLLIN, 0 };

	(void)arg;
	while (!atomic_load(&w.stop))
		if (poll(&p, 1, 10) > 0)
			lifecycle_poll(w.lifecycle);
	return NULL;
}

static void pin_self(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void make_and_remove(double *ret_mkdir_ns, double *ret_rmdir_ns)
{
	uint64_t t0, t1, t2;
	char path[400];

	t0 = bench_now_ns();
	for (unsigned i = 0; i < STORM; i++) {
		snprintf(path, sizeof(path), "%s/s%u", groups_dir(), i);
		if (mkdir(path, 0755))
			bench_die(path, errno);
	}
	t1 = bench_now_ns();
	for (unsigned i = 0; i < STORM; i++) {
		snprintf(path, sizeof(path), "%s/s%u", groups_dir(), i);
		if (rmdir(path))
			bench_die(path, errno);
	}
	t2 = bench_now_ns();
	*ret_mkdir_ns = (double)(t1 - t0) / STORM;
	*ret_rmdir_ns = (double)(t2 - t1) / STORM;
}

static void storm(unsigned rounds, struct samples off[2], struct samples on[2])
{
	double ns[2];

	for (unsigned i = 0; i < 2 * rounds; i++) {
		bool with = i & 1;

		if (with) {
			start(true);
			atomic_store(&w.stop, false);
			pthread_create(&w.thread, NULL, drain, NULL);
		}
		pin_self(BENCH_CPU);
		make_and_remove(&ns[0], &ns[1]);
		pin_self(HARNESS_CPU);
		if (with) {
			atomic_store(&w.stop, true);
			pthread_join(w.thread, NULL);
			stop();
		}
		for (unsigned k = 0; k < 2; k++)
			samples_add(with ? &on[k] : &off[k], ns[k]);
	}
}

static void report_storm(const struct samples off[2], const struct samples on[2])
{
	static const char *const what[] = { "mkdir", "rmdir" };

	printf("\n### Births and ends of %d cgroups, lifecycle program off and on in turn\n\n| | off ns | on ns | ratio |\n|---|---|---|---|\n",
	       STORM);
	for (unsigned k = 0; k < 2; k++) {
		double a = samples_median(&off[k]), b = samples_median(&on[k]);

		printf("| %s | %.0f (%.0f to %.0f) | %.0f (%.0f to %.0f) | %.2f |\n", what[k], a,
		       samples_quantile(&off[k], 0.25), samples_quantile(&off[k], 0.75), b,
		       samples_quantile(&on[k], 0.25), samples_quantile(&on[k], 0.75), b / a);
		report_goal("12", verdict_of(b <= MAX_SLOWDOWN * a), "mkdir and rmdir at most 25 % slower",
			    "%s %.2f x (%.1f against %.1f us)", what[k], b / a, b / 1e3, a / 1e3);
	}
}

static void many(void)
{
	unsigned before;
	uint64_t t0;
	double ms;

	start(true);
	before = cgroup_table_count(w.table);
	atomic_store(&w.stop, false);
	pthread_create(&w.thread, NULL, drain, NULL);
	groups_make(MANY);
	atomic_store(&w.stop, true);
	pthread_join(w.thread, NULL);
	t0 = bench_now_ns();
	lifecycle_poll(w.lifecycle);
	ms = (double)(bench_now_ns() - t0) / 1e6;
	report_goal("11", verdict_of(cgroup_table_count(w.table) - before >= MANY && !lifecycle_lost(w.lifecycle)),
		    "storm of 10 000: every new cgroup known at the next reading",
		    "%u known, %llu records lost, last poll %.2f ms", cgroup_table_count(w.table) - before,
		    (unsigned long long)lifecycle_lost(w.lifecycle), ms);
	stop();
}

/* The limit program: the three calls by which the kernel gives the path of a cgroup's id, and nothing else. self_fd is
 * /proc/self/fd, so that the path to it is walked once, not at each id. */
static double plain_resolve_ns(int mount_fd, int self_fd, uint64_t id)
{
	union {
		struct file_handle h;
		unsigned char space[sizeof(struct file_handle) + sizeof(id)];
	} handle = { .h = { .handle_bytes = sizeof(id), .handle_type = FILEID_KERNFS } };
	uint64_t t0 = bench_now_ns();
	char name[16], path[4096];
	int fd;

	memcpy(handle.h.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(mount_fd, &handle.h, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		bench_die("a handle", errno);
	snprintf(name, sizeof(name), "%d", fd);
	if (readlinkat(self_fd, name, path, sizeof(path)) <= 0)
		bench_die(name, errno);
	close(fd);
	return (double)(bench_now_ns() - t0);
}

static int open_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		bench_die(path, errno);
	return fd;
}

static uint64_t id_of_group(unsigned i)
{
	char path[400];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%u", groups_dir(), i);
	if (stat(path, &st))
		bench_die(path, errno);
	return st.st_ino;
}

static double own_resolve_ns(uint64_t id)
{
	uint64_t t0 = bench_now_ns();
	const struct cgroup *c = lifecycle_resolve(w.lifecycle, id);
	double ns = (double)(bench_now_ns() - t0);

	if (!c || !c->resolved)
		bench_die("an id was not resolved", ENOENT);
	return ns;
}

/* The table is opened without events and emptied of what it walked: every id is an unknown one. The two take turns at being
 * first, since the second finds the kernel's code in the caches, and each has cgroups of its own. */
static void resolve(void)
{
	struct samples ns = { 0 }, plain = { 0 };
	int mount_fd = open_folder(groups_mount()), self_fd = open_folder("/proc/self/fd");

	for (unsigned i = 0; i < MANY; i += MANY / 200) {
		uint64_t ours = id_of_group(i), other = id_of_group(i + 1);
		bool first = i / (MANY / 200) & 1;

		if (first)
			samples_add(&plain, plain_resolve_ns(mount_fd, self_fd, other));
		samples_add(&ns, own_resolve_ns(ours));
		if (!first)
			samples_add(&plain, plain_resolve_ns(mount_fd, self_fd, other));
	}
	close(self_fd);
	close(mount_fd);
	report_goal("11",
		    verdict_beside(samples_median(&ns) <= MAX_RESOLVE_NS, samples_median(&plain) <= MAX_RESOLVE_NS),
		    "an unknown id resolved in at most 3 us",
		    "%.2f us (%.2f to %.2f); its three calls alone %.2f us (%.2f to %.2f)", samples_median(&ns) / 1e3,
		    samples_quantile(&ns, 0.25) / 1e3, samples_quantile(&ns, 0.75) / 1e3, samples_median(&plain) / 1e3,
		    samples_quantile(&plain, 0.25) / 1e3, samples_quantile(&plain, 0.75) / 1e3);
}

int bench_storm(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 21;
	struct samples off[2] = { 0 }, on[2] = { 0 };
	struct err err = { 0 };

	if (fsroot_open("/", &w.root) || hierarchy_detect(w.root, HIERARCHY_AUTO, &w.hierarchy, &err))
		bench_die("cgroup hierarchy", ENOENT);
	storm(rounds, off, on);
	report_storm(off, on);
	start(false); /* before the many exist: it does not know them */
	struct lifecycle *blind = w.lifecycle;
	struct cgroup_table *blind_table = w.table;

	many();
	w.lifecycle = blind;
	w.table = blind_table;
	resolve();
	stop();
	fsroot_close(w.root);
	return 0;
}
