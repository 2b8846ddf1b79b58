/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler.h"
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/parse.h"

#define CPUS_MAX 4096
#define RING_BYTES (128u << 10)
#define RECORDS_MAX (256u << 20) /* bytes taken at once */

struct ring {
	int fd;
	uint8_t *memory; /* a page of control, then RING_BYTES */
};

struct record {
	uint64_t time_ns;
	uint32_t at, size; /* in bytes */
};

struct sampler {
	struct ring *rings;
	uint32_t n_rings, rings_cap;
	size_t page;
	struct buf bytes;
	struct record *records;
	uint32_t n_records, records_cap;
	uint64_t lost;
};

#define WANTED (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_CGROUP)

/* What follows the header of each record, by WANTED. Other records end with struct tail. */
struct sample {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t time_ns, n_addresses, address[];
};
struct tail {
	uint32_t pid, tid;
	uint64_t time_ns;
};
struct comm_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	char comm[];
};
struct fork_record {
	struct perf_event_header header;
	uint32_t pid, parent, tid, parent_tid;
};
struct mmap_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t start, length, offset;
	uint32_t major, minor;
	uint64_t inode, generation;
	uint32_t rights, flags;
	char path[];
};
struct lost_record {
	struct perf_event_header header;
	uint64_t id, lost;
};

static int open_cpu(struct sampler *s, int cpu, unsigned rate_hz)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_period = NS_PER_S / rate_hz,
					.sample_type = WANTED,
					.disabled = 1,
					.exclude_idle = 1,
					.exclude_hv = 1,
					.mmap = 1,
					.mmap2 = 1,
					.comm = 1,
					.comm_exec = 1,
					.task = 1,
					.sample_id_all = 1,
					.use_clockid = 1,
					.clockid = CLOCK_MONOTONIC };
	struct ring r;

	if (ARRAY_ROOM(s->rings, s->rings_cap, s->n_rings + 1))
		return -ENOMEM;
	r.fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (r.fd < 0)
		return -errno;
	r.memory = mmap(NULL, s->page + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd, 0);
	if (r.memory == MAP_FAILED) {
		const int rc = -errno;

		close(r.fd);
		return rc;
	}
	s->rings[s->n_rings++] = r;
	return 0;
}

static int explain(int rc, struct err *err)
{
	if (rc == -EACCES || rc == -EPERM)
		return err_set(
			err, rc,
			"profile: sampling all CPUs was refused; run it as root, or give CAP_PERFMON and CAP_SYS_PTRACE");
	if (rc == -EINVAL)
		return err_set(err, rc,
			       "profile: the kernel cannot tell the cgroup of a sample; it needs Linux 5.7 and "
			       "CONFIG_CGROUP_PERF");
	if (rc == -ENOENT || rc == -ENOSYS)
		return err_set(err, rc, "profile: the kernel has no perf events; boot one with CONFIG_PERF_EVENTS");
	return err_set(err, rc, "profile: sampling cannot begin: %s; free descriptors or memory", strerror(-rc));
}

int sampler_open(unsigned rate_hz, struct sampler **ret, struct err *err)
{
	static uint8_t online[CPUS_MAX / 8];
	struct sampler *s = calloc(1, sizeof(*s));
	struct fsroot *root = NULL;
	char list[4096];
	int rc = s ? fsroot_open("/", &root) : -ENOMEM;

	if (!rc && (fsroot_read(root, "/sys/devices/system/cpu/online", list, sizeof(list)) <= 0 ||
		    parse_cpulist(list, online, CPUS_MAX) <= 0))
		rc = -ENODEV;
	fsroot_close(root);
	if (!rc) {
		s->page = (size_t)sysconf(_SC_PAGESIZE);
		s->bytes.limit = RECORDS_MAX;
	}
	for (int cpu = 0; !rc && cpu < CPUS_MAX; cpu++) {
		if (!(online[cpu / 8] & 1 << cpu % 8))
			continue;
		rc = open_cpu(s, cpu, rate_hz);
		if (rc == -ENODEV) /* it went offline */
			rc = 0;
	}
	if (rc) {
		sampler_close(s);
		return explain(rc, err);
	}
	*ret = s;
	return 0;
}

int sampler_start(struct sampler *s, struct err *err)
{
	for (uint32_t i = 0; i < s->n_rings; i++)
		if (ioctl(s->rings[i].fd, PERF_EVENT_IOC_ENABLE, 0) != 0)
			return explain(-errno, err);
	return 0;
}

void sampler_stop(struct sampler *s)
{
	for (uint32_t i = 0; i < s->n_rings; i++)
		ioctl(s->rings[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

static uint64_t time_of(const struct perf_event_header *h)
{
	struct tail t;

	if (h->type == PERF_RECORD_SAMPLE)
		return h->size >= sizeof(struct sample) ? ((const struct sample *)h)->time_ns : 0;
	if (h->size < sizeof(*h) + sizeof(t))
		return 0;
	memcpy(&t, (const uint8_t *)h + h->size - sizeof(t), sizeof(t));
	return t.time_ns;
}

static void copy_wrapped(uint8_t *dst, const uint8_t *ring, uint64_t at, size_t n)
{
	const size_t from = at % RING_BYTES, first = n < RING_BYTES - from ? n : RING_BYTES - from;

	memcpy(dst, ring + from, first);
	memcpy(dst + first, ring, n - first);
}

static void copy_ring(struct sampler *s, const struct ring *r)
{
	struct perf_event_mmap_page *control = (void *)r->memory;
	const uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = control->data_tail;

	while (tail < head) {
		struct perf_event_header h;
		uint8_t *to;

		copy_wrapped((uint8_t *)&h, r->memory + s->page, tail, sizeof(h));
		if (h.size < sizeof(h) || h.size > head - tail || h.size % 8)
			break; /* no record ends like this */
		to = buf_reserve(&s->bytes, h.size);
		if (!to || ARRAY_ROOM(s->records, s->records_cap, s->n_records + 1)) {
			s->lost++;
		} else {
			copy_wrapped(to, r->memory + s->page, tail, h.size);
			s->records[s->n_records++] = (struct record){ time_of((const void *)to), (uint32_t)s->bytes.len,
								      h.size };
			s->bytes.len += h.size;
		}
		tail += h.size;
	}
	__atomic_store_n(&control->data_tail, head, __ATOMIC_RELEASE);
}

static int by_time(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns > y->time_ns ? 1 : -1;
	return (x->at > y->at) - (x->at < y->at);
}

/* The addresses of a sample are where it ran, then return addresses: the call is before these. Each part begins with a
 * marker of its space. */
static void take_sample(const struct sample *r, struct code *code, struct stacks *stacks)
{
	const size_t room = (r->header.size - sizeof(*r)) / sizeof(uint64_t);
	struct stack s = { .kernel_thread = true };
	uint64_t frames[STACK_FRAMES_MAX], space = PERF_CONTEXT_KERNEL;
	bool called = false;

	if (r->header.size < sizeof(*r) || !room || r->n_addresses > room - 1 || !r->pid)
		return;
	s.cgroup = r->address[r->n_addresses];
	s.process = code_process(code, (int)r->pid);
	for (uint64_t i = 0; i < r->n_addresses && !s.broken; i++) {
		uint64_t address = r->address[i];

		if (address >= (uint64_t)PERF_CONTEXT_MAX) {
			space = address;
			s.kernel_thread &= space != PERF_CONTEXT_USER;
			called = space == PERF_CONTEXT_USER ? false : called;
			continue;
		}
		if (space == PERF_CONTEXT_USER) {
			s.broken = s.n == STACK_FRAMES_MAX ||
				   !code_frame(code, s.process, address - called, &frames[s.n]);
			s.n += !s.broken;
		} else if (s.n < STACK_FRAMES_MAX / 2) {
			frames[s.n++] = frame_of(CODE_KERNEL, address - called);
		}
		called = true;
	}
	stacks_add(stacks, &s, frames);
}

/* Text that is in a record from `text` on, if a NUL ends it before the tail. */
static bool ends(const struct perf_event_header *h, const char *text)
{
	const size_t at = (size_t)(text - (const char *)h);

	return h->size >= at + sizeof(struct tail) + 1 && memchr(text, 0, h->size - at - sizeof(struct tail));
}

static void take_mmap(const struct mmap_record *r, struct code *code)
{
	const struct code_mapped m = { .start = r->start,
				       .length = r->length,
				       .offset = r->offset,
				       .device = (uint64_t)r->major << 32 | r->minor,
				       .inode = r->inode,
				       .path = r->path };

	if ((r->rights & PROT_EXEC) && ends(&r->header, r->path))
		code_mapped(code, (int)r->pid, &m);
}

static void take(struct sampler *s, const struct perf_event_header *h, struct code *code, struct stacks *stacks)
{
	const struct comm_record *comm = (const void *)h;
	const struct fork_record *fork_of = (const void *)h;

	switch (h->type) {
	case PERF_RECORD_SAMPLE:
		take_sample((const void *)h, code, stacks);
		break;
	case PERF_RECORD_MMAP2:
		take_mmap((const void *)h, code);
		break;
	case PERF_RECORD_COMM:
		if (comm->pid == comm->tid && ends(h, comm->comm))
			code_renamed(code, (int)comm->pid, comm->comm, h->misc & PERF_RECORD_MISC_COMM_EXEC);
		break;
	case PERF_RECORD_FORK:
		if (h->size >= sizeof(*fork_of) && fork_of->pid != fork_of->parent)
			code_forked(code, (int)fork_of->parent, (int)fork_of->pid);
		break;
	case PERF_RECORD_EXIT:
		if (h->size >= sizeof(*fork_of) && fork_of->pid == fork_of->tid)
			code_exited(code, (int)fork_of->pid);
		break;
	case PERF_RECORD_LOST:
		s->lost += h->size >= sizeof(struct lost_record) ? ((const struct lost_record *)h)->lost : 1;
		break;
	default:
		break;
	}
}

void sampler_drain(struct sampler *s, struct code *code, struct stacks *stacks)
{
	buf_reset(&s->bytes);
	s->n_records = 0;
	for (uint32_t i = 0; i < s->n_rings; i++)
		copy_ring(s, &s->rings[i]);
	if (s->n_records)
		qsort(s->records, s->n_records, sizeof(*s->records), by_time);
	for (uint32_t i = 0; i < s->n_records; i++)
		take(s, (const void *)(s->bytes.data + s->records[i].at), code, stacks);
}

uint64_t sampler_lost(const struct sampler *s)
{
	return s ? s->lost : 0;
}

void sampler_close(struct sampler *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n_rings; i++) {
		munmap(s->rings[i].memory, s->page + RING_BYTES);
		close(s->rings[i].fd);
	}
	free(s->rings);
	free(s->records);
	buf_free(&s->bytes);
	free(s);
}
