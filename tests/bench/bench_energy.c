// SPDX-License-Identifier: Apache-2.0
/* One read of an energy counter through our own sources, on stand-ins of the same shape, since most
 * virtual machines have no RAPL: powercap on a real sysfs attribute (bind-mounted over energy_uj in
 * a tree of our own), perf on msr/tsc/ of the own and of another CPU. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "own.h"
#include "source/energy.h"
#include "source/topology.h"

#define READS 2000
#define NUMERIC_ATTRIBUTE "/sys/kernel/uevent_seqnum"
#define MAX_READ_NS 1000

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

static void make_tree(const char *cpumask)
{
	char path[256];

	snprintf(top, sizeof(top), "/tmp/jouled-bench-XXXXXX");
	if (!mkdtemp(top) || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		bench_die("a mount namespace", errno);
	put("sys/class/powercap/intel-rapl:0/name", "package-0\n");
	put("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n");
	put("sys/class/powercap/intel-rapl:0/energy_uj", "1\n");
	snprintf(path, sizeof(path), "%s/sys/class/powercap/intel-rapl:0/energy_uj", top);
	if (mount(NUMERIC_ATTRIBUTE, path, NULL, MS_BIND, NULL))
		bench_die(NUMERIC_ATTRIBUTE, errno);
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

	snprintf(path, sizeof(path), "%s/sys/class/powercap/intel-rapl:0/energy_uj", top);
	umount(path);
	pid = fork();
	if (pid == 0) {
		execlp("rm", "rm", "-rf", top, NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

/* Whatever the source asks for, it gets msr/tsc/ of the CPU it named. */
static int open_tsc(void *ctx, uint32_t type, uint64_t config, uint64_t config1, uint64_t config2, int cpu, bool pinned)
{
	return counter_open(cpu, true);
}

static void measure(const char *name, const struct energy_source_ops *ops, const char *cpumask, bool gate)
{
	struct perf_seam seam = {.open = open_tsc};
	struct energy_source *e = NULL;
	struct samples ns = {0};
	struct fsroot *root = NULL;
	struct schema schema = {0};
	struct err err = {0};
	uint64_t units, t0;

	make_tree(cpumask);
	if (fsroot_open(top, &root) || topology_read(root, &schema, &err) || ops->open(root, &seam, &schema, &e, &err)) {
		report_goal("14", NOT_RUN, "an energy counter read in at most 1 us", "not run: %s: %s", name, err.text);
	} else {
		for (unsigned i = 0; i < 100; i++) {
			t0 = bench_now_ns();
			for (unsigned k = 0; k < READS / 100; k++)
				if (ops->read(e, 0, 0, &units))
					bench_die(name, EIO);
			samples_add(&ns, (double)(bench_now_ns() - t0) / (READS / 100));
		}
		printf("| %s | %.0f | %.0f to %.0f |\n", name, samples_median(&ns), samples_quantile(&ns, 0.25), samples_quantile(&ns, 0.75));
		if (gate)
			report_goal("14", verdict_of(samples_median(&ns) <= MAX_READ_NS), "an energy counter read in at most 1 us",
				    "%s: %.0f ns", name, samples_median(&ns));
		ops->close(e);
	}
	free(schema.cpus);
	fsroot_close(root);
	remove_tree();
}

int bench_energy(int argc, char **argv)
{
	puts("\n### One read of an energy counter, ns\n\nStand-ins, not RAPL: a sysfs attribute of one number for powercap, msr/tsc/ for perf.\n");
	puts("| interface | ns | quartiles |\n|---|---|---|");
	measure("powercap (kept descriptor, sysfs)", &energy_powercap, "0\n", true);
	measure("perf, own CPU", &energy_perf, "1\n", true);
	measure("perf, another CPU", &energy_perf, "0\n", false);
	return 0;
}
