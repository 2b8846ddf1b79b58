// SPDX-License-Identifier: Apache-2.0
/* Trigger perf_event: the kernel's event of cgroup switches on every CPU, sampled at each, with the
 * program as its handler. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "counters.skel.h"
#include "counters_internal.h"

#define CGROUP_SWITCHES 11 /* PERF_COUNT_SW_CGROUP_SWITCHES, linux/perf_event.h since 5.13 */

static int open_switches(int cpu)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = CGROUP_SWITCHES,
					.sample_period = 1,
					.disabled = 1 };
	long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

/* On v2 the perf_event controller is on by itself, but the kernel only passes it down when the root's
 * controllers change (cgroup_propagate_control, kernel/cgroup/cgroup.c): until one was enabled there, all
 * cgroups are one to this event, and it never fires. */
static bool controllers_reach_down(const struct counters *c)
{
	char path[sizeof(c->o->hierarchy->mount) + 32], text[256];

	if (!c->o->hierarchy->v2 || c->o->hierarchy->private_namespace)
		return true;
	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", c->o->hierarchy->mount);
	return fsroot_read(c->root, path, text, sizeof(text)) != 0;
}

int counters_attach_perf_cpu(struct counters *c, unsigned cpu)
{
	int fd, err;

	bpf_link__destroy(c->perf_links[cpu]);
	c->perf_links[cpu] = NULL;
	fd = open_switches((int)cpu);
	if (fd < 0)
		return fd;
	c->perf_links[cpu] = bpf_program__attach_perf_event(c->skel->progs.switch_perf, fd);
	if (c->perf_links[cpu])
		return 0;
	err = -errno;
	close(fd);
	return err;
}

int counters_attach_perf(struct counters *c)
{
	c->perf_links = calloc(c->n_cpus, sizeof(struct bpf_link *));
	if (!c->perf_links)
		return -ENOMEM;
	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++) {
		int err = c->cpus[cpu].online ? counters_attach_perf_cpu(c, cpu) : 0;

		if (err)
			return err;
	}
	if (!controllers_reach_down(c))
		return -ENODEV;
	c->visit_idle = true; /* the kernel's side is not told of idle, so it cannot say which CPU is */
	return 0;
}
