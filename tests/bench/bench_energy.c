// SPDX-License-Identifier: Apache-2.0
/* One read of an energy counter through our own sources, on stand-ins of the same shape, since most
 * virtual machines have no RAPL: powercap on a real sysfs attribute (bind-mounted over energy_uj in
 * a tree of our own), perf on msr/tsc/ of the own and of another CPU. Then all domains polled at 1 kHz. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "own.h"
#include "source/energy/energy.h"
#include "source/counters/topology.h"

#define READS 2000
#define NUMERIC_ATTRIBUTE "/sys/kernel/uevent_seqnum"
#define MAX_READ_NS 1000
#define POLLS 1000
#define LOOK_ROUNDS 5
#define MAX_LOOK_RATIO 1.25
#define POLL_NS 1000000
#define MAX_POLL_SHARE 0.0025

static const struct {
	const char *dir, *name;
} zones[] = {
	{ "intel-rapl:0", "package-0" }, { "intel-rapl:0:0", "core" }, { "intel-rapl:0:1", "uncore" },
	{ "intel-rapl:0:2", "dram" },    { "intel-rapl:1", "psys" },
};
#define N_ZONES (sizeof(zones) / sizeof(zones[0]))

static char top[64];

static void put(const char *path, const char *text)
{
	char full[256], *slash;
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", top, path);
	for (slash = full + strlen(top) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
	f = fopen(full, "we");
	if (!f || fputs(text, f) < 0 || fclose(f))
		bench_die(full, errno);
}

static void put_zone(unsigned i)
{
	char path[200], full[300];

	snprintf(path, sizeof(path), "sys/class/powercap/%s/name", zones[i].dir);
	put(path, zones[i].name);
	snprintf(path, sizeof(path), "sys/class/powercap/%s/max_energy_range_uj", zones[i].dir);
	put(path, "262143328850\n");
	snprintf(path, sizeof(path), "sys/class/powercap/%s/energy_uj", zones[i].dir);
	put(path, "1\n");
	snprintf(full, sizeof(full), "%s/%s", top, path);
	if (mount(NUMERIC_ATTRIBUTE, full, NULL, MS_BIND, NULL))
		bench_die(NUMERIC_ATTRIBUTE, errno);
}

static void make_tree(const char *cpumask)
{

	snprintf(top, sizeof(top), "/tmp/jouled-bench-XXXXXX");
	if (!mkdtemp(top) || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		bench_die("a mount namespace", errno);
	for (unsigned i = 0; i < N_ZONES; i++)
		put_zone(i);
	put("sys/devices/system/cpu/possible", "0-1\n");
	put("sys/devices/system/cpu/present", "0-1\n");
	put("sys/devices/system/cpu/online", "0-1\n");
	put("sys/bus/event_source/devices/power/type", "9\n");
	put("sys/bus/event_source/devices/power/cpumask", cpumask);
	put("sys/bus/event_source/devices/power/events/energy-pkg", "event=0x02\n");
	put("sys/bus/event_source/devices/power/events/energy-pkg.unit", "Joules\n");
	put("sys/bus/event_source/devices/power/events/energy-pkg.scale", "2.3283064365386962890625e-10\n");
}

static void remove_tree(void)
{
	char path[256];
	pid_t pid;

	for (unsigned i = 0; i < N_ZONES; i++) {
		snprintf(path, sizeof(path), "%s/sys/class/powercap/%s/energy_uj", top, zones[i].dir);
		umount(path);
	}
	pid = fork();
	if (pid == 0) {
		execlp("rm", "rm", "-rf", top, NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

/* Whatever the source asks for, it gets msr/tsc/ of the CPU it named. */
static int open_tsc(void *ctx, const struct event_variant *event, int cpu, bool pinned)
{
	return counter_open(cpu, true);
}

/* The system call alone that a read of a source makes: the limit program. */
struct plain {
	int fd;
	bool seekable;
};

static struct plain plain_powercap(void)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/sys/class/powercap/%s/energy_uj", top, zones[0].dir);
	return (struct plain){ open(path, O_RDONLY | O_CLOEXEC), true };
}

static struct plain plain_perf(void)
{
	return (struct plain){ counter_open(HARNESS_CPU, true), false };
}

static void read_plain(const struct plain *p)
{
	char bytes[32];

	if ((p->seekable ? pread(p->fd, bytes, sizeof(bytes), 0) : read(p->fd, bytes, sizeof(bytes))) <= 0)
		bench_die("a plain read", errno);
}

static void read_in_turn(const struct energy_source_ops *ops, struct energy_source *e, const struct plain *p,
			 struct samples *ret_ns, struct samples *ret_plain_ns)
{
	const unsigned each = READS / 100;
	uint64_t units, t0;

	for (unsigned i = 0; i < 100; i++) {
		t0 = bench_now_ns();
		for (unsigned k = 0; k < each; k++)
			if (ops->read(e, 0, 0, &units))
				bench_die("an energy counter", EIO);
		samples_add(ret_ns, (double)(bench_now_ns() - t0) / each);
		t0 = bench_now_ns();
		for (unsigned k = 0; p && k < each; k++)
			read_plain(p);
		samples_add(ret_plain_ns, (double)(bench_now_ns() - t0) / each);
	}
}

static void report_read(const char *name, const struct samples *ns, const struct samples *plain_ns, bool beside)
{
	double own = samples_median(ns), plain = samples_median(plain_ns);

	printf("| %s | %.0f | %.0f to %.0f |", name, own, samples_quantile(ns, 0.25), samples_quantile(ns, 0.75));
	if (!beside) {
		puts(" |");
		return;
	}
	printf(" %.0f |\n", plain);
	report_goal("14", verdict_beside(own <= MAX_READ_NS, plain <= MAX_READ_NS),
		    "an energy counter read in at most 1 us", "%s: %.0f ns; its system call alone %.0f ns", name, own,
		    plain);
}

/* open_plain NULL: no goal. */
static void measure(const char *name, const struct energy_source_ops *ops, const char *cpumask,
		    struct plain (*open_plain)(void))
{
	struct perf_seam seam = { .open = open_tsc };
	struct samples ns = { 0 }, plain_ns = { 0 };
	struct energy_source *e = NULL;
	struct fsroot *root = NULL;
	struct schema schema = { 0 };
	struct plain plain = { -1, false };
	struct err err = { 0 };

	make_tree(cpumask);
	if (open_plain)
		plain = open_plain();
	if (fsroot_open(top, &root) || topology_read(root, &schema, &err) ||
	    ops->open(root, &seam, &schema, &e, &err)) {
		report_goal("14", NOT_RUN, "an energy counter read in at most 1 us", "not run: %s: %s", name, err.text);
	} else {
		read_in_turn(ops, e, open_plain ? &plain : NULL, &ns, &plain_ns);
		report_read(name, &ns, &plain_ns, open_plain);
		ops->close(e);
	}
	if (plain.fd >= 0)
		close(plain.fd);
	free(schema.cpus);
	fsroot_close(root);
	remove_tree();
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

enum look { LOOK_NOT, LOOK_PLAIN, LOOK_RAPL, N_LOOKS };

/* Parts of a CPU: what a thread takes that wakes up a thousand times a second for so many looks. LOOK_NOT does nothing
 * then, and LOOK_PLAIN reads the bytes of each domain alone: the limit programs. */
static double look_share(enum look look, struct rapl *rp, const int *fds)
{
	uint64_t start = bench_now_ns(), used = cpu_ns(), at = start;
	char text[32];

	for (unsigned i = 0; i < POLLS; i++) {
		at += POLL_NS;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME,
				&(struct timespec){ (time_t)(at / 1000000000), (long)(at % 1000000000) }, NULL);
		if (look == LOOK_RAPL)
			rapl_poll(rp, bench_now_ns(), bench_now_ns());
		for (unsigned k = 0; look == LOOK_PLAIN && k < N_ZONES; k++)
			if (pread(fds[k], text, sizeof(text), 0) <= 0)
				bench_die("energy_uj", errno);
	}
	return (double)(cpu_ns() - used) / (double)(bench_now_ns() - start);
}

static void look_in_turn(struct rapl *rp, double *ret_share)
{
	struct samples s[N_LOOKS] = { 0 };
	int fds[N_ZONES];
	char path[256];

	for (unsigned i = 0; i < N_ZONES; i++) {
		snprintf(path, sizeof(path), "%s/sys/class/powercap/%s/energy_uj", top, zones[i].dir);
		fds[i] = open(path, O_RDONLY | O_CLOEXEC);
		if (fds[i] < 0)
			bench_die(path, errno);
	}
	for (unsigned i = 0; i < LOOK_ROUNDS; i++)
		for (unsigned look = 0; look < N_LOOKS; look++)
			samples_add(&s[look], look_share((enum look)look, rp, fds));
	for (unsigned look = 0; look < N_LOOKS; look++)
		ret_share[look] = samples_median(&s[look]);
	for (unsigned i = 0; i < N_ZONES; i++)
		close(fds[i]);
}

static void measure_poll(void)
{
	static const char goal[] = "RAPL at 1 kHz, all domains: at most 0.25 % of a CPU";
	struct perf_seam seam = { .open = open_tsc };
	struct rapl_options options = { .seam = &seam, .mode = RAPL_POWERCAP, .poll_ns = POLL_NS };
	struct fsroot *root = NULL;
	struct schema schema = { 0 };
	struct rapl *rp = NULL;
	struct err err = { 0 };
	double share[N_LOOKS];

	make_tree("0\n");
	if (fsroot_open(top, &root) == 0)
		options.root = root;
	if (!root || topology_read(root, &schema, &err) || rapl_open(&options, &schema, &rp, &err)) {
		report_goal("14", NOT_RUN, goal, "not run: %s", err.text);
	} else {
		look_in_turn(rp, share);
		printf("\n%u domains looked at 1000 times a second: %.3f %% of a CPU; waking up alone %.3f %%, waking up and one pread each %.3f %%.\n",
		       schema.n_domains, share[LOOK_RAPL] * 100, share[LOOK_NOT] * 100, share[LOOK_PLAIN] * 100);
		report_goal("14",
			    verdict_beside(schema.n_domains == N_ZONES && share[LOOK_RAPL] <= MAX_POLL_SHARE,
					   share[LOOK_PLAIN] <= MAX_POLL_SHARE),
			    goal, "%u domains: %.2f %%; waking up alone %.2f %%, waking up and one pread each %.2f %%",
			    schema.n_domains, share[LOOK_RAPL] * 100, share[LOOK_NOT] * 100, share[LOOK_PLAIN] * 100);
		report_goal("14",
			    verdict_of(share[LOOK_RAPL] - share[LOOK_NOT] <=
				       MAX_LOOK_RATIO * (share[LOOK_PLAIN] - share[LOOK_NOT])),
			    "RAPL at 1 kHz: the looks at most 1.25 x one pread a domain", "%.2f x",
			    (share[LOOK_RAPL] - share[LOOK_NOT]) / (share[LOOK_PLAIN] - share[LOOK_NOT]));
	}
	rapl_close(rp);
	free(schema.cpus);
	fsroot_close(root);
	remove_tree();
}

int bench_energy(int argc, char **argv)
{
	puts("\n### One read of an energy counter, ns\n\nStand-ins, not RAPL: a sysfs attribute of one number for powercap, msr/tsc/ for perf.\n");
	puts("| interface | ns | quartiles | its system call alone |\n|---|---|---|---|");
	measure("powercap (kept descriptor, sysfs)", &energy_powercap, "0\n", plain_powercap);
	measure("perf, own CPU", &energy_perf, "1\n", plain_perf);
	measure("perf, another CPU", &energy_perf, "0\n", NULL);
	measure_poll();
	return 0;
}
