// SPDX-License-Identifier: Apache-2.0
/* The cost of counting the work of block devices: the kernel's own ns per request of our programs beside programs that do
 * nothing on the same tracepoints and beside the limit program, in turn; and requests per second of a loop device over memory with the source off and
 * on in turn. */
#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "bench.h"
#include "limit.skel.h"
#include "model/reading.h"
#include "source/counters/block.h"

#define DEVICE_BYTES (16u << 20)
#define READ_BYTES 4096
#define READS 5000 /* of a chunk */
#define MAX_REQUEST_NS 150
#define MAX_CGROUPS 1024
#define MAX_OF_LIMIT 1.10 /* where the limit program misses the goal, too */

static char device[32]; /* /dev/loopN */
static int held = -1; /* it goes with its last descriptor */

/* False where this kernel has no loop devices. */
static bool device_open(void)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), memory = memfd_create("jouled-bench", MFD_CLOEXEC);
	struct loop_info64 info = { .lo_flags = LO_FLAGS_AUTOCLEAR };

	if (memory < 0 || ftruncate(memory, DEVICE_BYTES))
		bench_die("memory of a loop device", errno);
	for (unsigned tries = 0; control >= 0 && held < 0 && tries < 20; tries++) {
		int n = ioctl(control, LOOP_CTL_GET_FREE);

		snprintf(device, sizeof(device), "/dev/loop%d", n);
		held = n < 0 ? -1 : open(device, O_RDWR | O_CLOEXEC);
		if (held >= 0 && (ioctl(held, LOOP_SET_FD, memory) || ioctl(held, LOOP_SET_STATUS64, &info))) {
			close(held);
			held = -1;
		}
	}
	close(memory);
	if (control >= 0)
		close(control);
	return held >= 0;
}

/* Requests per second, one at a time, past the cache. */
static double read_device(void)
{
	static void *room;
	int fd = open(device, O_RDONLY | O_DIRECT | O_CLOEXEC);
	uint64_t begin;

	if (fd < 0 || (!room && posix_memalign(&room, READ_BYTES, READ_BYTES)))
		bench_die(device, errno);
	begin = bench_now_ns();
	for (unsigned i = 0; i < READS; i++)
		if (pread(fd, room, READ_BYTES, (off_t)i * READ_BYTES % DEVICE_BYTES) != READ_BYTES)
			bench_die("reading the loop device", errno);
	begin = bench_now_ns() - begin;
	close(fd);
	return READS * 1e9 / (double)begin;
}

/* What the programs of this process whose names begin so have run, by their own descriptors. */
static void sum_runs(const char *name, uint64_t *ret_ns, uint64_t *ret_runs)
{
	DIR *d = opendir("/proc/self/fd");
	const struct dirent *e;

	*ret_ns = *ret_runs = 0;
	while (d && (e = readdir(d))) {
		struct bpf_prog_info info = { 0 };
		__u32 len = sizeof(info);

		/* other kinds of BPF objects have other contents, and no such name there */
		if (bpf_obj_get_info_by_fd(atoi(e->d_name), &info, &len) || strncmp(info.name, name, strlen(name)) != 0)
			continue;
		*ret_ns += info.run_time_ns;
		*ret_runs += info.run_cnt;
	}
	if (d)
		closedir(d);
}

/* Kernel's ns per request in one chunk: the part where a request begins and the part where it completes. */
static double request_ns(const char *begin, const char *complete)
{
	uint64_t begin_ns, begins, complete_ns, completes, ns, runs;

	sum_runs(begin, &ns, &runs);
	begin_ns = -ns;
	begins = -runs;
	sum_runs(complete, &ns, &runs);
	complete_ns = -ns;
	completes = -runs;
	read_device();
	sum_runs(begin, &ns, &runs);
	begin_ns += ns;
	begins += runs;
	sum_runs(complete, &ns, &runs);
	complete_ns += ns;
	completes += runs;
	if (completes < READS / 2 || begins < READS / 2) {
		fprintf(stderr, "bench: %s and %s ran %llu and %llu times in %d requests\n", begin, complete,
			(unsigned long long)begins, (unsigned long long)completes, READS);
		exit(1);
	}
	return (double)begin_ns / (double)begins + (double)complete_ns / (double)completes;
}

/* The two programs of the limit skeleton whose names begin so. */
static struct limit_bpf *limit_pair_attach(const char *begin, const char *complete)
{
	struct limit_bpf *skel = limit_bpf__open();
	struct bpf_program *p;

	if (!skel)
		bench_die("limit programs of a request", errno);
	bpf_object__for_each_program(p, skel->obj) bpf_program__set_autoload(
		p, !strcmp(bpf_program__name(p), begin) || !strcmp(bpf_program__name(p), complete));
	if (limit_bpf__load(skel) || limit_bpf__attach(skel))
		bench_die("attaching the limit programs of a request", errno);
	return skel;
}

static double limit_pair_ns(const char *begin, const char *complete)
{
	struct limit_bpf *skel = limit_pair_attach(begin, complete);
	double ns = (read_device(), request_ns(begin, complete));

	limit_bpf__destroy(skel);
	return ns;
}

static struct block *attach(const struct fsroot *root, const struct hierarchy *h)
{
	struct err err = { 0 };
	struct block *b;

	if (block_open(root, h, NULL, MAX_CGROUPS, &b, &err)) {
		fprintf(stderr, "bench: %s\n", err.text);
		exit(1);
	}
	return b;
}

struct figures {
	struct samples off, on; /* requests per second */
	struct samples empty, limit, first, own; /* ns of a request; first: before the first reading */
	struct reading r;
};

static void measure_rate(struct figures *f, const struct fsroot *root, const struct hierarchy *h, bool on_first)
{
	for (unsigned i = 0; i < 2; i++) {
		bool on = on_first == !i;
		struct block *b = on ? attach(root, h) : NULL;

		samples_add(on ? &f->on : &f->off, read_device());
		block_close(b);
	}
}

/* Each pair of programs has had as many requests before the ones that count. */
static void measure(struct figures *f, const struct fsroot *root, const struct hierarchy *h)
{
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	struct block *b;

	if (stats < 0)
		bench_die("BPF statistics", -stats);
	samples_add(&f->empty, limit_pair_ns("empty_begin", "empty_complete"));
	samples_add(&f->limit, limit_pair_ns("limit_begin", "limit_complete"));
	b = attach(root, h);
	samples_add(&f->first, request_ns("begin_", "complete_"));
	if (block_read(b, &f->r))
		bench_die("a reading", errno);
	samples_add(&f->own, request_ns("begin_", "complete_"));
	block_close(b);
	close(stats);
}

static void print_ns(const char *what, const struct samples *s)
{
	printf("| %s | %.0f | %.0f | %.0f | %.0f |\n", what, samples_quantile(s, 0), samples_quantile(s, 0.25),
	       samples_median(s), samples_quantile(s, 0.75));
}

static void report(const struct figures *f)
{
	double empty = samples_median(&f->empty), limit = samples_median(&f->limit) - empty;
	double own = samples_median(&f->own) - empty,
	       least = samples_quantile(&f->own, 0) - samples_quantile(&f->empty, 0);
	double off = samples_median(&f->off), on = samples_median(&f->on);

	printf("\n### A request of a block device, kernel's ns\n\n| programs | least | quartile | median | quartile |\n|---|---|---|---|---|\n");
	print_ns("that do nothing", &f->empty);
	print_ns("limit", &f->limit);
	print_ns("jouled, before its first reading", &f->first);
	print_ns("jouled", &f->own);
	report_goal(
		"block: a request",
		verdict_beside(own <= MAX_REQUEST_NS, limit <= MAX_REQUEST_NS || own > MAX_OF_LIMIT * limit),
		"at most 150 ns a request",
		"%.0f ns more than programs that do nothing (least of the rounds %.0f); limit program %.0f; before the "
		"first reading %.0f",
		own, least, limit, samples_median(&f->first) - empty);
	report_goal("block: requests of a loop device over memory", PASS, "measured",
		    "%.0f /s (quartiles %.0f, %.0f) without, %.0f /s (%.0f, %.0f) with (%.3f x)", off,
		    samples_quantile(&f->off, 0.25), samples_quantile(&f->off, 0.75), on,
		    samples_quantile(&f->on, 0.25), samples_quantile(&f->on, 0.75), on / off);
}

int bench_block(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 21;
	struct schema schema = { .n_cpus = 1 };
	static struct figures f;
	struct err err = { 0 };
	struct hierarchy h;
	struct fsroot *root;

	if (!device_open()) {
		report_goal("block: a request", NOT_RUN, "at most 150 ns a request",
			    "no loop devices; load the module loop");
		return 0;
	}
	if (fsroot_open("/", &root) || hierarchy_detect(root, HIERARCHY_AUTO, &h, &err))
		bench_die("hierarchy", 1);
	schema.cpus = calloc(1, sizeof(*schema.cpus));
	if (!schema.cpus || reading_init(&f.r, &schema))
		bench_die("memory", ENOMEM);
	groups_make(1);
	if (groups_join(0))
		bench_die("a cgroup", errno);
	read_device();
	for (unsigned i = 0; i < rounds && i < BENCH_MAX_SAMPLES; i++) {
		measure_rate(&f, root, &h, i % 2);
		measure(&f, root, &h);
	}
	report(&f);
	reading_free(&f.r);
	free(schema.cpus);
	fsroot_close(root);
	close(held);
	return 0;
}
