/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "base/array.h"
#include "base/clock.h"
#include "base/parse.h"
#include "model/snapshot.h"
#include "sampler_state.h"

#define RINGS_BYTES (64u << 20) /* of all CPUs together */
#define RING_LEAST (128u << 10)
#define RING_MOST (8u << 20)
#define STACK_LEAST (3u << 10) /* bytes of the stack that are copied with a sample */
#define STACK_MOST (56u << 10) /* a record has at most 64 KiB */
#define TAKEN_LATE 10 /* a ring has room for the samples of one part in so many of a second, and as many again */
#define RECORDS_MAX (256u << 20) /* bytes taken at once */

#define PACE_SAMPLES 64 /* a CPU has of one pace, at least */
#define PERIOD_LEAST 1000 /* counts: no storm where an event was rare before */
#define PRECISE_MOST 3
#define COLUMNS_USUAL \
	4 /* rings have room for so many times the rate: as samples of three priced counters beside time */

/* How much memory a sampler may have. */
struct spare {
	size_t rings, ring_most; /* of all CPUs together, and of one */
	size_t records;
	uint32_t stack_most;
	uint32_t rules; /* of struct unwind */
};

static struct spare spare = { RINGS_BYTES, RING_MOST, RECORDS_MAX, STACK_MOST, UNWIND_ROWS_MAX };

void sampler_be_frugal(void)
{
	spare = (struct spare){ 8u << 20, 1u << 20, 4u << 20, 16u << 10, 2u << 20 };
}

#define WANTED \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | \
	 PERF_SAMPLE_CGROUP | (UNWIND_HERE ? PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER : 0))

static struct perf_event_attr attr_of(const struct sampler *s)
{
	return (struct perf_event_attr){ .size = sizeof(struct perf_event_attr),
					 .sample_type = WANTED,
					 .disabled = 1,
					 .exclude_callchain_user = UNWIND_HERE,
					 .sample_regs_user = UNWIND_REGISTERS,
					 .sample_stack_user = UNWIND_HERE ? s->stack_bytes : 0,
					 .sample_id_all = 1,
					 .use_clockid = 1,
					 .clockid = CLOCK_MONOTONIC };
}

static int open_fd(const struct sampler *s, struct perf_event_attr *attr, int cpu)
{
	const unsigned long flags = PERF_FLAG_FD_CLOEXEC | (s->cgroup >= 0 ? PERF_FLAG_PID_CGROUP : 0);
	const int fd = (int)syscall(SYS_perf_event_open, attr, s->cgroup, cpu, -1, flags);

	return fd < 0 ? -errno : fd;
}

/* Opens an event as precise as the PMU takes it: without that, the address is some instructions late. */
static int open_precisely(const struct sampler *s, struct perf_event_attr *attr, int cpu)
{
	int fd = -EINVAL;

	for (unsigned precise = PRECISE_MOST + 1; fd < 0 && precise-- > 0;) {
		attr->precise_ip = precise & 3;
		fd = open_fd(s, attr, cpu);
	}
	return fd;
}

/* Opens a counter on a CPU, writing into that CPU's ring. */
static int open_event(const struct sampler *s, struct ring *r, unsigned event, const struct event_variant *v)
{
	struct perf_event_attr attr = attr_of(s);
	int fd;

	attr.type = v->type;
	attr.config = v->config;
	attr.config1 = v->config1;
	attr.config2 = v->config2;
	attr.sample_period = UINT32_MAX; /* until one is set */
	fd = open_precisely(s, &attr, r->cpu);
	if (fd >= 0 && (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, r->fd) != 0 ||
			ioctl(fd, PERF_EVENT_IOC_ID, &r->id[STACK_EVENT + event]) != 0)) {
		const int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

void sampler_events(struct sampler *s, const struct event_set *events, const struct event_variants *variants)
{
	for (unsigned i = 0; i < events->n; i++) {
		struct sampled *e = &s->event[i];

		e->error = -ENOENT;
		for (uint32_t k = 0; k < s->n_rings && events->ev[i].kind == EVENT_PERF; k++) {
			struct ring *r = &s->rings[k];
			struct event_variant v;
			int fd = event_on_cpu(&events->ev[i], variants ? &variants[i] : NULL, (unsigned)r->cpu, &v);

			fd = fd ? fd : open_event(s, r, i, &v);
			e->opened += fd >= 0;
			r->event[i] = fd < 0 ? -1 : fd;
			if (fd < 0 && fd != -ENODEV)
				e->error = fd;
		}
	}
}

static void close_ring(const struct sampler *s, const struct ring *r)
{
	for (unsigned i = 0; i < SCHEMA_MAX_EVENTS; i++)
		if (r->event[i] >= 0)
			close(r->event[i]);
	if (r->memory != MAP_FAILED)
		munmap(r->memory, s->page + s->ring_bytes);
	close(r->fd);
}

static int open_cpu(struct sampler *s, int cpu)
{
	struct perf_event_attr attr = attr_of(s);
	struct ring r = { .cpu = cpu };

	if (ARRAY_ROOM(s->rings, s->rings_cap, s->n_rings + 1))
		return -ENOMEM;
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.sample_period = s->pace.ns;
	attr.exclude_idle = 1;
	attr.exclude_hv = 1;
	attr.mmap = 1;
	attr.mmap2 = 1;
	attr.comm = 1;
	attr.comm_exec = 1;
	attr.task = 1;
	r.fd = open_fd(s, &attr, cpu);
	if (r.fd < 0)
		return r.fd;
	memset(r.event, 0xff, sizeof(r.event));
	r.memory = mmap(NULL, s->page + s->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd, 0);
	if (r.memory == MAP_FAILED || ioctl(r.fd, PERF_EVENT_IOC_ID, &r.id[STACK_TIME]) != 0) {
		const int rc = -errno;

		close_ring(s, &r);
		return rc;
	}
	s->rings[s->n_rings++] = r;
	return 0;
}

/* Rings as large as all CPUs may have together. */
static void size_rings(struct sampler *s)
{
	unsigned cpus = 0;

	for (unsigned i = 0; i < CPUS_MAX / 8; i++)
		cpus += (unsigned)__builtin_popcount(s->online[i]);
	s->ring_bytes = spare.ring_most;
	while (s->ring_bytes > RING_LEAST && s->ring_bytes * cpus > spare.rings)
		s->ring_bytes /= 2;
}

/* As much of a stack as the rate leaves room for in a ring, in whole words. */
static void size_stacks(struct sampler *s)
{
	const unsigned rate_hz = s->rate_hz * COLUMNS_USUAL;
	const size_t room = s->ring_bytes / 2 / (rate_hz / TAKEN_LATE + 1) & ~(size_t)7;

	s->stack_bytes = room > spare.stack_most ? spare.stack_most : room < STACK_LEAST ? STACK_LEAST : (uint32_t)room;
}

static int explain(const struct sampler *s, int rc, struct err *err)
{
	if (rc == -EACCES || rc == -EPERM)
		return err_set(
			err, rc,
			"profile: sampling all CPUs was refused; run it as root, or give CAP_PERFMON and CAP_SYS_PTRACE");
	if (rc == -EINVAL)
		return err_set(err, rc,
			       "profile: the kernel cannot tell the cgroup of a sample; it needs Linux 5.7 and "
			       "CONFIG_CGROUP_PERF");
	if (rc == -ENOENT && s->cgroup >= 0)
		return err_set(err, rc,
			       "profile: perf does not know the cgroup, as no controller is on for it; write +pids to "
			       "cgroup.subtree_control of the cgroup above it");
	if (rc == -ENOENT || rc == -ENOSYS)
		return err_set(err, rc, "profile: the kernel has no perf events; boot one with CONFIG_PERF_EVENTS");
	return err_set(err, rc, "profile: sampling cannot begin: %s; free descriptors or memory", strerror(-rc));
}

static void close_rings(struct sampler *s)
{
	for (uint32_t i = 0; i < s->n_rings; i++)
		close_ring(s, &s->rings[i]);
	s->n_rings = 0;
	memset(s->event, 0, sizeof(s->event));
}

/* Who may not lock much memory gets smaller rings: mmap(2) says EPERM then. */
static int open_all(struct sampler *s)
{
	int rc;

	do {
		rc = 0;
		size_stacks(s);
		for (int cpu = 0; !rc && cpu < CPUS_MAX; cpu++) {
			if (!(s->online[cpu / 8] & 1 << cpu % 8))
				continue;
			rc = open_cpu(s, cpu);
			if (rc == -ENODEV) /* it went offline */
				rc = 0;
		}
		if (rc) {
			close_rings(s);
			s->ring_bytes /= 2;
		}
	} while (rc == -EPERM && s->ring_bytes >= RING_LEAST);
	return rc;
}

int sampler_open(unsigned rate_hz, struct sampler **ret, struct err *err)
{
	struct sampler *s = calloc(1, sizeof(*s));
	struct fsroot *root = NULL;
	char list[4096];
	int rc = s ? fsroot_open("/", &root) : -ENOMEM;

	if (s)
		s->cgroup = -1;
	if (!rc && (fsroot_read(root, "/sys/devices/system/cpu/online", list, sizeof(list)) <= 0 ||
		    parse_cpulist(list, s->online, CPUS_MAX) <= 0))
		rc = -ENODEV;
	fsroot_close(root);
	if (!rc) {
		s->page = (size_t)sysconf(_SC_PAGESIZE);
		s->bytes.limit = spare.records;
		s->unwind.rows_max = spare.rules;
		s->rate_hz = rate_hz;
		s->pace = (struct pace){ .ns = NS_PER_S / rate_hz, .before_ns = NS_PER_S / rate_hz };
		size_rings(s);
		rc = open_all(s);
	}
	if (rc) {
		explain(s, rc, err);
		sampler_close(s);
		return rc;
	}
	*ret = s;
	return 0;
}

int sampler_narrow(struct sampler *s, int cgroup, struct err *err)
{
	int rc;

	close_rings(s);
	size_rings(s);
	s->cgroup = cgroup;
	rc = open_all(s);
	s->cgroup = -1;
	if (rc == -EINVAL || rc == -EBADF) { /* no directory of the hierarchy that perf events are in */
		size_rings(s);
		rc = open_all(s);
	} else if (!rc) {
		s->cgroup = fcntl(cgroup, F_DUPFD_CLOEXEC, 0); /* for counters */
		rc = s->cgroup < 0 ? -errno : 0;
	}
	return rc ? explain(s, rc, err) : 0;
}

bool sampler_outdated(const struct snapshot *s)
{
	bool away = s->suspended_ns >= NS_PER_MS; /* less is the time between reading two clocks */

	for (unsigned i = 0; i < s->schema->n_cpus; i++)
		away |= s->cpus[i].online && s->cpus[i].offline_ns;
	return away;
}

int sampler_start(struct sampler *s, struct err *err)
{
	for (uint32_t i = 0; i < s->n_rings; i++)
		if (ioctl(s->rings[i].fd, PERF_EVENT_IOC_ENABLE, 0) != 0)
			return explain(s, -errno, err);
	return 0;
}

void sampler_stop(struct sampler *s)
{
	for (unsigned i = 0; i < SCHEMA_MAX_EVENTS; i++)
		sampler_period(s, i, 0);
	for (uint32_t i = 0; i < s->n_rings; i++)
		ioctl(s->rings[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

static void set_period(const struct sampler *s, unsigned event, uint64_t period)
{
	for (uint32_t i = 0; i < s->n_rings; i++) {
		const int fd = s->rings[i].event[event];

		if (fd < 0)
			continue;
		if (period)
			ioctl(fd, PERF_EVENT_IOC_PERIOD, &period);
		ioctl(fd, period ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
	}
}

uint64_t sampler_mean_ns(const struct sampler *s)
{
	return NS_PER_S / s->rate_hz;
}

uint64_t sampler_rest_ns(const struct sampler *s)
{
	return PACE_SAMPLES * sampler_mean_ns(s);
}

/* On a CPU that refuses it, samples stand for a little more or less than they should until the next one. */
void sampler_pace(struct sampler *s, uint64_t ns)
{
	const uint64_t before_ns = s->pace.ns;
	unsigned set = 0;

	for (uint32_t i = 0; i < s->n_rings; i++)
		set += ioctl(s->rings[i].fd, PERF_EVENT_IOC_PERIOD, &ns) == 0;
	if (set)
		s->pace = (struct pace){ ns, before_ns, clock_mono_ns() };
}

void sampler_period(struct sampler *s, unsigned event, uint64_t period)
{
	struct sampled *e = &s->event[event];

	period = period && period < PERIOD_LEAST ? PERIOD_LEAST : period;
	if (!e->opened || period == e->period)
		return;
	set_period(s, event, period);
	e->period = period;
}

uint64_t sampler_period_of(const struct sampler *s, unsigned event)
{
	return s->event[event].period;
}

uint64_t sampler_period_for(const struct sampler *s, uint64_t counts, uint64_t cpu_ns, double times)
{
	const double seconds = (double)cpu_ns / (double)NS_PER_S;

	return counts && cpu_ns ? 1 + (uint64_t)((double)counts / seconds / s->rate_hz / times) : 0;
}

const char *sampler_lacks(const struct sampler *s, unsigned event)
{
	const struct sampled *e = &s->event[event];

	if (e->opened)
		return NULL;
	if (e->error == -EOPNOTSUPP || e->error == -EINVAL)
		return "the PMU cannot interrupt";
	if (e->error == -ENOENT || e->error == -ENODEV)
		return "there is no such counter here";
	return strerrordesc_np(-e->error);
}

void sampler_use_room(struct sampler *s, struct room *room)
{
	s->unwind.room = room;
}

void sampler_forget(struct sampler *s)
{
	unwind_free(&s->unwind);
}

uint64_t sampler_unread(const struct sampler *s)
{
	return s ? s->unwind.failed : 0;
}

uint64_t sampler_lost(const struct sampler *s)
{
	return s ? s->lost : 0;
}

void sampler_close(struct sampler *s)
{
	if (!s)
		return;
	close_rings(s);
	if (s->cgroup >= 0)
		close(s->cgroup);
	free(s->rings);
	free(s->records);
	unwind_free(&s->unwind);
	buf_free(&s->bytes);
	free(s);
}
