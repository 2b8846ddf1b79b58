// SPDX-License-Identifier: Apache-2.0
/* The cost of counting the work of block devices: the kernel's own ns per request of our programs beside programs that do
 * nothing on the same tracepoints, in turn; and requests per second of a loop device over memory with the source off and
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
#include "source/counters/block.h"

#define DEVICE_BYTES (16u << 20)
#define READ_BYTES 4096
#define READS 5000 /* of a chunk */
#define MAX_REQUEST_NS 150
#define MAX_CGROUPS 1024

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
	uint64_t begin_ns, begins, complete_ns, completes;

	read_device();
	sum_runs(begin, &begin_ns, &begins);
	sum_runs(complete, &complete_ns, &completes);
	if (completes < READS / 2 || begins < READS / 2) {
		fprintf(stderr, "bench: %s and %s ran %llu and %llu times in %d requests\n", begin, complete,
			(unsigned long long)begins, (unsigned long long)completes, READS);
		exit(1);
	}
	return (double)begin_ns / (double)begins + (double)complete_ns / (double)completes;
}

static struct limit_bpf *empty_attach(void)
{
	struct limit_bpf *skel = limit_bpf__open();
	struct bpf_program *p;

	if (!skel)
		bench_die("empty block programs", errno);
	bpf_object__for_each_program(p, skel->obj)
		bpf_program__set_autoload(p, p == skel->progs.empty_begin || p == skel->progs.empty_complete);
	if (limit_bpf__load(skel) || limit_bpf__attach(skel))
		bench_die("attaching the empty block programs", errno);
	return skel;
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
	struct samples off, on, empty_ns, ns;
};

static void measure(struct figures *f, const struct fsroot *root, const struct hierarchy *h, bool on_first)
{
	struct limit_bpf *empty;
	struct block *b;
	int stats;

	for (unsigned i = 0; i < 2; i++) {
		bool on = on_first == !i;

		b = on ? attach(root, h) : NULL;
		samples_add(on ? &f->on : &f->off, read_device());
		block_close(b);
	}
	stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (stats < 0)
		bench_die("BPF statistics", -stats);
	empty = empty_attach();
	samples_add(&f->empty_ns, request_ns("empty_begin", "empty_complete"));
	limit_bpf__destroy(empty);
	b = attach(root, h);
	samples_add(&f->ns, request_ns("begin_", "complete_"));
	block_close(b);
	close(stats);
}

static void report(const struct figures *f)
{
	double least = samples_quantile(&f->ns, 0) - samples_quantile(&f->empty_ns, 0);
	double median = samples_median(&f->ns) - samples_median(&f->empty_ns);
	double off = samples_median(&f->off), on = samples_median(&f->on);

	printf("\nA request of a block device, kernel's ns (least, quartiles): programs that do nothing %.0f %.0f %.0f %.0f, ours "
	       "%.0f %.0f %.0f %.0f; requests/s (quartiles) without %.0f %.0f %.0f, with %.0f %.0f %.0f\n",
	       samples_quantile(&f->empty_ns, 0), samples_quantile(&f->empty_ns, 0.25), samples_median(&f->empty_ns),
	       samples_quantile(&f->empty_ns, 0.75), samples_quantile(&f->ns, 0), samples_quantile(&f->ns, 0.25),
	       samples_median(&f->ns), samples_quantile(&f->ns, 0.75), samples_quantile(&f->off, 0.25), off,
	       samples_quantile(&f->off, 0.75), samples_quantile(&f->on, 0.25), on, samples_quantile(&f->on, 0.75));
	report_goal("block: a request", verdict_of(median <= MAX_REQUEST_NS), "at most 150 ns a request",
		    "%.0f ns more than programs that do nothing (least of the rounds %.0f)", median, least);
	report_goal("block: requests of a loop device over memory", PASS, "measured",
		    "%.0f /s without, %.0f /s with (%.3f x)", off, on, on / off);
}

int bench_block(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 21;
	struct figures f = { 0 };
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
	groups_make(1);
	if (groups_join(0))
		bench_die("a cgroup", errno);
	read_device();
	for (unsigned i = 0; i < rounds && i < BENCH_MAX_SAMPLES; i++)
		measure(&f, root, &h, i % 2);
	report(&f);
	fsroot_close(root);
	close(held);
	return 0;
}
