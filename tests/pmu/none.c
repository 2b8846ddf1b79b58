/* SPDX-License-Identifier: Apache-2.0 */
/* LD_PRELOAD: a machine without a PMU. perf_event_open of hardware, cache and raw events and of every PMU of a CPU is answered
 * with ENOENT, as the kernel does where there is none; software events, msr, power and uprobe go on. libpfm, libbpf and jouled all call
 * syscall(2). NO_PMU=1 makes tests/guard.sh run a test so. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>

static int is_type(const char *pmu, unsigned type)
{
	char path[128];
	unsigned n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", pmu);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%u", &n) != 1)
		n = 0;
	fclose(f);
	return n && n == type;
}

long syscall(long number, ...)
{
	static long (*next)(long, ...);
	const struct perf_event_attr *attr;
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "syscall");
	attr = (const struct perf_event_attr *)a[0];
	if (number == SYS_perf_event_open && attr &&
	    (attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE || attr->type == PERF_TYPE_RAW ||
	     is_type("cpu", attr->type) || is_type("cpu_core", attr->type) || is_type("cpu_atom", attr->type))) {
		errno = ENOENT;
		return -1;
	}
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
