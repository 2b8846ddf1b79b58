/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stddef.h>
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
#include "unwind.h"

#define CPUS_MAX 4096
#define RINGS_BYTES (64u << 20) /* of all CPUs together */
#define RING_LEAST (128u << 10)
#define RING_MOST (8u << 20)
#define STACK_LEAST (3u << 10) /* bytes of the stack that are copied with a sample */
#define STACK_MOST (56u << 10) /* a record has at most 64 KiB */
#define TAKEN_LATE 10 /* a ring has room for the samples of one part in so many of a second, and as many again */
#define RECORDS_MAX (256u << 20) /* bytes taken at once */

#define PERIOD_LEAST 1000 /* counts: no storm where an event was rare before */
#define PRECISE_MOST 3
#define COLUMNS_USUAL 3 /* that have a price at once: rings have room for so many */

static struct spare {
	size_t rings, ring_most; /* as above */
	size_t records;
	uint32_t stack_most;
	uint32_t rules; /* of struct unwind */
} spare = { RINGS_BYTES, RING_MOST, RECORDS_MAX, STACK_MOST, UNWIND_ROWS_MAX };

void sampler_be_frugal(void)
{
	spare = (struct spare){ 8u << 20, 1u << 20, 16u << 20, 16u << 10, 2u << 20 };
}

struct ring {
	int fd; /* cpu-clock */
	int event[SCHEMA_MAX_EVENTS]; /* -1 = not on this CPU; they write into the ring too */
	uint64_t id[STACK_COLUMNS]; /* the kernel's, by which a sample tells its column; 0 = none */
	int cpu;
	uint8_t *memory; /* a page of control, then ring_bytes */
};

struct sampled {
	uint64_t period; /* 0 = it is off */
	unsigned opened; /* on so many CPUs */
	int error; /* the first that the kernel gave */
};

struct record {
	uint64_t time_ns;
	uint32_t at, size; /* in bytes */
};

struct sampler {
	struct ring *rings;
	uint32_t n_rings, rings_cap;
	size_t page, ring_bytes;
	uint32_t stack_bytes;
	unsigned rate_hz;
	int cgroup; /* only what runs in it; -1 = everything */
	uint8_t online[CPUS_MAX / 8];
	struct sampled event[SCHEMA_MAX_EVENTS];
	struct unwind unwind;
	struct buf bytes;
	struct record *records;
	uint32_t n_records, records_cap;
	uint64_t lost;
	uint64_t taken[UINT16_MAX / 8 + 1]; /* the record that is taken now */
};

#define WANTED \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | \
	 PERF_SAMPLE_CGROUP | (UNWIND_HERE ? PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER : 0))

/* What follows the header of each record, by WANTED. Behind the addresses come the registers and the stack, where they
 * are unwound here, and the cgroup. Other records end with struct tail. */
struct sample {
	struct perf_event_header header;
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time_ns, period, n_addresses, address[];
};
struct tail {
	uint32_t pid, tid;
	uint64_t time_ns, id;
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
	attr.sample_period = NS_PER_S / s->rate_hz;
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
		size_rings(s);
		rc = open_all(s);
	}
	if (rc) {
		sampler_close(s);
		return explain(rc, err);
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
	return rc ? explain(rc, err) : 0;
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

uint64_t sampler_period_for(const struct sampler *s, uint64_t counts, uint64_t cpu_ns)
{
	const double seconds = (double)cpu_ns / (double)NS_PER_S;

	return counts && cpu_ns ? 1 + (uint64_t)((double)counts / seconds / s->rate_hz) : 0;
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

static void copy_wrapped(const struct sampler *s, uint8_t *dst, const uint8_t *ring, uint64_t at, size_t n)
{
	const size_t from = at % s->ring_bytes, first = n < s->ring_bytes - from ? n : s->ring_bytes - from;

	memcpy(dst, ring + from, first);
	memcpy(dst + first, ring, n - first);
}

/* What of a sample is copied: of the room for the stack, often most of the record, only what the kernel found. */
struct parts {
	size_t size_at; /* of the word that says how much room the stack has */
	uint64_t room, found; /* bytes, in whole words */
};

static uint64_t word_at(const struct sampler *s, const uint8_t *ring, uint64_t at)
{
	uint64_t word;

	copy_wrapped(s, (uint8_t *)&word, ring, at, sizeof(word));
	return word;
}

/* False: the record has no such parts, and is copied as it is. */
static bool find_parts(const struct sampler *s, const uint8_t *ring, uint64_t at, const struct perf_event_header *h,
		       struct parts *ret)
{
	const uint64_t n = h->size >= sizeof(struct sample) ?
				   word_at(s, ring, at + offsetof(struct sample, n_addresses)) :
				   UINT16_MAX;
	uint64_t regs = sizeof(struct sample) + 8 * n;

	if (!UNWIND_HERE || h->type != PERF_RECORD_SAMPLE || n > UINT16_MAX / 8 || regs + 16 > h->size)
		return false;
	ret->size_at = regs + 8 + (word_at(s, ring, at + regs) == PERF_SAMPLE_REGS_ABI_NONE ? 0 : 24);
	if (ret->size_at + 8 > h->size)
		return false;
	ret->room = word_at(s, ring, at + ret->size_at);
	if (!ret->room || ret->room % 8 || ret->room > h->size || ret->size_at + 8 + ret->room + 8 > h->size)
		return false;
	ret->found = (word_at(s, ring, at + ret->size_at + 8 + ret->room) + 7) & ~7ull;
	return ret->found < ret->room;
}

/* Copies a record. Returns its size in the copy. */
static uint32_t copy_record(const struct sampler *s, uint8_t *to, const uint8_t *ring, uint64_t at,
			    const struct perf_event_header *h)
{
	struct perf_event_header head = *h;
	struct parts p;
	size_t rest;

	if (!find_parts(s, ring, at, h, &p)) {
		copy_wrapped(s, to, ring, at, h->size);
		return h->size;
	}
	rest = p.size_at + 8 + p.room;
	head.size = (uint16_t)(h->size - (p.room - p.found));
	copy_wrapped(s, to, ring, at, p.size_at + 8 + p.found);
	copy_wrapped(s, to + p.size_at + 8 + p.found, ring, at + rest, h->size - rest);
	memcpy(to, &head, sizeof(head));
	memcpy(to + p.size_at, &p.found, sizeof(p.found));
	return head.size;
}

static void copy_ring(struct sampler *s, const struct ring *r)
{
	struct perf_event_mmap_page *control = (void *)r->memory;
	const uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = control->data_tail;

	while (tail < head) {
		struct perf_event_header h;
		uint8_t *to;

		copy_wrapped(s, (uint8_t *)&h, r->memory + s->page, tail, sizeof(h));
		if (h.size < sizeof(h) || h.size > head - tail || h.size % 8)
			break; /* no record ends like this */
		to = buf_reserve(&s->bytes, h.size);
		if (!to || ARRAY_ROOM(s->records, s->records_cap, s->n_records + 1)) {
			s->lost++;
		} else {
			const uint32_t size = copy_record(s, to, r->memory + s->page, tail, &h);

			s->records[s->n_records++] = (struct record){ time_of((const void *)to), (uint32_t)s->bytes.len,
								      size };
			s->bytes.len += size;
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

/* A sample while it is read: what follows its addresses, and its stack as far as it is known. */
struct reading {
	const struct sample *r;
	const uint64_t *at, *end; /* words that are not yet read */
	struct stack stack;
	struct stack_sample what;
	uint64_t frames[STACK_FRAMES_MAX];
};

/* The addresses of a sample are where it ran, then return addresses: the call is before these. Each part begins with a
 * marker of its space. */
static void take_addresses(struct reading *g, struct code *code)
{
	struct stack *s = &g->stack;
	uint64_t space = PERF_CONTEXT_KERNEL;
	bool called = false;

	for (uint64_t i = 0; i < g->r->n_addresses && !s->broken; i++) {
		uint64_t address = g->r->address[i];

		if (address >= (uint64_t)PERF_CONTEXT_MAX) {
			space = address;
			s->kernel_thread &= space != PERF_CONTEXT_USER;
			called = space == PERF_CONTEXT_USER ? false : called;
			continue;
		}
		if (space == PERF_CONTEXT_USER) {
			s->broken = s->n == STACK_FRAMES_MAX ||
				    !code_frame(code, s->process, address - called, &g->frames[s->n]);
			s->n += !s->broken;
		} else if (s->n < STACK_FRAMES_MAX / 2) {
			g->frames[s->n++] = frame_of(CODE_KERNEL, address - called);
		}
		called = true;
	}
}

/* Walks from the sampled function to the program's start. */
static void walk(struct reading *g, struct unwind *u, struct code *code, const struct unwind_memory *m,
		 struct unwind_state *state)
{
	struct stack *s = &g->stack;
	enum unwind_step step = UNWIND_ON;

	while (step == UNWIND_ON) {
		uint64_t frame;

		if (s->n == STACK_FRAMES_MAX || !code_frame(code, s->process, state->ip - state->called, &frame))
			break;
		g->frames[s->n++] = frame;
		step = unwind_step(unwind_row_at(u, code, frame), m, state);
	}
	s->whole = step == UNWIND_END;
	s->broken = !s->whole;
}

/* The registers and the copied stack of user space (perf_event_open(2), PERF_SAMPLE_REGS_USER and STACK_USER). False:
 * the record is shorter than it says. */
static bool take_registers(struct reading *g, struct unwind *u, struct code *code)
{
	struct unwind_memory m = { 0 };
	struct unwind_state state = { 0 };
	uint64_t abi, room;

	if (g->end - g->at < 2)
		return false;
	abi = *g->at++;
	if (abi != PERF_SAMPLE_REGS_ABI_NONE) {
		if (g->end - g->at < 4)
			return false;
		state = (struct unwind_state){ .bp = g->at[0], .sp = g->at[1], .ip = g->at[2] };
		g->at += 3;
	}
	room = *g->at++;
	if (room % sizeof(*g->at) || room / sizeof(*g->at) + !!room > (uint64_t)(g->end - g->at))
		return false;
	m.bytes = (const uint8_t *)g->at;
	m.at = state.sp;
	g->at += room / sizeof(*g->at);
	m.n = room ? *g->at++ : 0;
	if (m.n > room)
		return false;
	if (abi == PERF_SAMPLE_REGS_ABI_NONE)
		return true; /* a kernel thread */
	g->stack.kernel_thread = false;
	if (abi == PERF_SAMPLE_REGS_ABI_64)
		walk(g, u, code, &m, &state);
	else
		g->stack.broken = true;
	return true;
}

/* The column of an id. False: nobody has it. */
static bool find_column(const struct sampler *s, uint64_t id, unsigned *ret)
{
	for (uint32_t i = 0; i < s->n_rings; i++)
		for (unsigned c = 0; c < STACK_COLUMNS; c++)
			if (s->rings[i].id[c] == id) {
				*ret = c;
				return true;
			}
	return false;
}

static void take_sample(struct sampler *s, const struct sample *r, struct code *code, struct stacks *stacks)
{
	const size_t room = (r->header.size - sizeof(*r)) / sizeof(uint64_t);
	struct reading g = { .r = r, .stack = { .kernel_thread = true } };

	if (r->header.size < sizeof(*r) || !room || r->n_addresses > room - 1 || !r->pid ||
	    !find_column(s, r->id, &g.what.column))
		return;
	g.what.period = r->period;
	g.at = r->address + r->n_addresses;
	g.end = r->address + room;
	g.stack.process = code_process(code, (int)r->pid);
	take_addresses(&g, code);
	if (UNWIND_HERE && !take_registers(&g, &s->unwind, code))
		return;
	if (g.at == g.end)
		return;
	g.stack.cgroup = *g.at;
	stacks_add(stacks, &g.stack, g.frames, &g.what);
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
		take_sample(s, (const void *)h, code, stacks);
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
		code_lost(code);
		break;
	default:
		break;
	}
}

/* Copies what the rings have, behind the records that are there, in the order of time. */
static void copy_rings(void *arg)
{
	struct sampler *s = arg;
	const uint32_t before = s->n_records;

	for (uint32_t i = 0; i < s->n_rings; i++)
		copy_ring(s, &s->rings[i]);
	if (s->n_records > before)
		qsort(s->records + before, s->n_records - before, sizeof(*s->records), by_time);
}

void sampler_drain(struct sampler *s, struct code *code, struct stacks *stacks)
{
	s->unwind.meanwhile = copy_rings;
	s->unwind.arg = s;
	copy_rings(s);
	for (uint32_t i = 0; i < s->n_records; i++) {
		const struct record *r = &s->records[i];

		/* a copy, because records are added and move while a file is read */
		memcpy(s->taken, s->bytes.data + r->at, r->size);
		take(s, (const void *)s->taken, code, stacks);
	}
	if (s->bytes.cap > spare.records / 8)
		buf_free(&s->bytes);
	buf_reset(&s->bytes);
	s->n_records = 0;
}

void sampler_collect(void *sampler)
{
	copy_rings(sampler);
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
