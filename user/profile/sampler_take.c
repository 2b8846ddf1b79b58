/* SPDX-License-Identifier: Apache-2.0 */
/* The records of the rings, in the order of time, become code and stacks. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "base/array.h"
#include "base/clock.h"
#include "sampler_state.h"

#define RECORD_LEAST 64 /* bytes; more smaller ones are not taken at once */

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
		if (!to || s->n_records >= s->bytes.limit / RECORD_LEAST ||
		    ARRAY_ROOM(s->records, s->records_cap, s->n_records + 1)) {
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

/* The kernel goes on to tell the first period of a clock after another one was set. */
static uint64_t time_of_sample(const struct sampler *s, uint64_t at_ns)
{
	return at_ns >= s->pace.since_ns ? s->pace.ns : s->pace.before_ns;
}

static void take_sample(struct sampler *s, const struct sample *r, struct code *code, struct stacks *stacks)
{
	const size_t room = (r->header.size - sizeof(*r)) / sizeof(uint64_t);
	struct reading g = { .r = r, .stack = { .kernel_thread = true } };

	if (r->header.size < sizeof(*r) || !room || r->n_addresses > room - 1 || !r->pid ||
	    !find_column(s, r->id, &g.what.column))
		return;
	g.what.period = g.what.column == STACK_TIME ? time_of_sample(s, r->time_ns) : r->period;
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
	if (s->bytes.cap > s->bytes.limit / 8)
		buf_free(&s->bytes);
	buf_reset(&s->bytes);
	s->n_records = 0;
}

void sampler_collect(void *sampler)
{
	copy_rings(sampler);
}
