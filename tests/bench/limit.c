// SPDX-License-Identifier: Apache-2.0
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "bench.h"
#include "limit.skel.h"

#define LIMIT_MAX_EVENTS 8

struct limit {
	struct program p;
	struct limit_bpf *skel;
	struct bpf_link *link;
	const struct bpf_program *prog;
};

void prog_stats_fd(int prog_fd, uint64_t *ret_run_ns, uint64_t *ret_runs)
{
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);

	*ret_run_ns = *ret_runs = 0;
	if (bpf_obj_get_info_by_fd(prog_fd, &info, &len))
		return;
	*ret_run_ns = info.run_time_ns;
	*ret_runs = info.run_cnt;
}

static void limit_detach(struct program *p)
{
	struct limit *l = (struct limit *)p;

	bpf_link__destroy(l->link);
	limit_bpf__destroy(l->skel);
	free(l);
}

static void limit_stats(const struct program *p, uint64_t *ret_run_ns, uint64_t *ret_runs)
{
	prog_stats_fd(bpf_program__fd(((const struct limit *)p)->prog), ret_run_ns, ret_runs);
}

static const struct program_ops limit_ops = { limit_detach, limit_stats };

static unsigned msr_type(void)
{
	FILE *f = fopen("/sys/bus/event_source/devices/msr/type", "re");
	unsigned type = 0;
	int ok = f ? fscanf(f, "%u", &type) : 0;

	if (f)
		fclose(f);
	return ok == 1 ? type : PERF_TYPE_MAX;
}

bool bench_cycles(void)
{
	const char *name = getenv("EVENT");

	return name && !strcmp(name, "cycles");
}

/* msr/tsc/: a perf PMU whose read is one rdtsc; there is no PMU in most virtual machines. */
int counter_open(int cpu, bool times)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.pinned = 1,
		.read_format = times ? PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING : 0
	};
	int fd;

	attr.type = bench_cycles() ? PERF_TYPE_HARDWARE : msr_type();
	attr.config = PERF_COUNT_HW_CPU_CYCLES; /* 0, which is the TSC of the msr PMU too */
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static void open_events(struct limit_bpf *skel, unsigned n_events, unsigned n_cpus)
{
	int map = bpf_map__fd(skel->maps.events);

	for (unsigned i = 0; i < n_events; i++) {
		for (unsigned cpu = 0; cpu < n_cpus; cpu++) {
			__u32 key = i * n_cpus + cpu;
			int fd = counter_open((int)cpu, false);

			if (fd == -ENODEV)
				continue; /* offline */
			if (fd < 0 || bpf_map_update_elem(map, &key, &fd, BPF_ANY))
				bench_die("a counter", fd < 0 ? -fd : errno);
			close(fd); /* the map holds it */
		}
	}
}

struct program *limit_attach(enum limit_kind kind, unsigned n_events)
{
	struct limit *l = calloc(1, sizeof(*l));
	unsigned n_cpus = (unsigned)libbpf_num_possible_cpus();
	struct bpf_program *p;

	if (!l || !(l->skel = limit_bpf__open()))
		bench_die("limit program", errno);
	l->p.ops = &limit_ops;
	l->skel->rodata->n_events = n_events;
	l->skel->rodata->n_cpus = n_cpus;
	bpf_map__set_max_entries(l->skel->maps.events, LIMIT_MAX_EVENTS * n_cpus);
	l->prog = kind == LIMIT_EMPTY   ? l->skel->progs.empty :
		  kind == LIMIT_COMPARE ? l->skel->progs.compare :
					  l->skel->progs.limit;
	bpf_object__for_each_program(p, l->skel->obj) bpf_program__set_autoload(p, p == l->prog);
	if (limit_bpf__load(l->skel))
		bench_die("loading the limit program", errno);
	open_events(l->skel, n_events, n_cpus);
	l->link = bpf_program__attach(l->prog);
	if (!l->link)
		bench_die("attaching the limit program", errno);
	return &l->p;
}

void program_detach(struct program *p)
{
	if (p)
		p->ops->detach(p);
}

void program_stats(const struct program *p, uint64_t *ret_run_ns, uint64_t *ret_runs)
{
	p->ops->stats(p, ret_run_ns, ret_runs);
}
