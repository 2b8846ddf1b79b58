/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/array.h"
#include "base/clock.h"
#include "code_reader.h"

#define WAIT_NS (20 * NS_PER_MS)

static bool load(const struct unwind_memory *m, uint64_t at, uint64_t *ret)
{
	if (at < m->at || m->n < sizeof(*ret) || at - m->at > m->n - sizeof(*ret))
		return false;
	memcpy(ret, m->bytes + (at - m->at), sizeof(*ret));
	return true;
}

/* Follows the chain of frame pointers: [rbp] is the caller's, the return address is above it. Where a program or a
 * thread begins rbp is 0 (System V ABI for x86-64, section 3.4.1); in the sampled function itself it may be any number. */
static enum unwind_step step_by_pointer(const struct unwind_memory *m, struct unwind_state *s)
{
	uint64_t bp, ip;

	if (!s->bp && s->called)
		return UNWIND_END;
	if (s->bp < s->sp || !load(m, s->bp, &bp) || !load(m, s->bp + 8, &ip))
		return UNWIND_CUT;
	*s = (struct unwind_state){ .ip = ip, .sp = s->bp + 16, .bp = bp, .called = true };
	return UNWIND_ON;
}

static bool cfa_of(const struct unwind_row *row, const struct unwind_memory *m, const struct unwind_state *s,
		   uint64_t *ret)
{
	const uint64_t offset = (uint64_t)(int64_t)row->cfa;

	switch (row->cfa_rule) {
	case UNWIND_CFA_SP:
		*ret = s->sp + offset;
		return true;
	case UNWIND_CFA_BP:
		*ret = s->bp + offset;
		return true;
	case UNWIND_CFA_AT_SP:
		return load(m, s->sp + offset, ret);
	case UNWIND_CFA_AT_BP:
		return load(m, s->bp + offset, ret);
	case UNWIND_CFA_PLT:
		*ret = s->sp + 8 + ((s->ip & 15) >= offset ? 8 : 0);
		return true;
	default:
		return false;
	}
}

/* A register of the caller. False: it is not known. */
static bool place_of(unsigned place, int16_t offset, const struct unwind_memory *m, const struct unwind_state *s,
		     uint64_t cfa, uint64_t *ret)
{
	const uint64_t base[] = { [UNWIND_AT_CFA] = cfa, [UNWIND_AT_SP] = s->sp, [UNWIND_AT_BP] = s->bp };

	return place >= UNWIND_AT_CFA && place <= UNWIND_AT_BP && load(m, base[place] + (uint64_t)(int64_t)offset, ret);
}

enum unwind_step unwind_step(const struct unwind_row *row, const struct unwind_memory *m, struct unwind_state *s)
{
	struct unwind_state caller = { .bp = s->bp };
	uint64_t cfa;

	if (!row)
		return step_by_pointer(m, s);
	if (row->cfa_rule == UNWIND_CFA_NONE)
		return UNWIND_END;
	/* a stack grows with every call, so a step that does not come back is none */
	if (!cfa_of(row, m, s, &cfa) || cfa <= s->sp || !place_of(row->ra_place, row->ra, m, s, cfa, &caller.ip))
		return UNWIND_CUT;
	/* a lost frame pointer matters only where a later rule asks for it */
	if (row->bp_place != UNWIND_SAME && !place_of(row->bp_place, row->bp, m, s, cfa, &caller.bp))
		caller.bp = 0;
	caller.sp = cfa;
	caller.called = !row->signal;
	*s = caller;
	return UNWIND_ON;
}

struct telling {
	struct unwind_row rows[256];
	unsigned n;
};

static int tell_row(void *arg, const struct unwind_row *row)
{
	struct telling *t = arg;

	t->rows[t->n++] = *row;
	if (t->n == sizeof(t->rows) / sizeof(t->rows[0])) {
		reader_tell(t->rows, sizeof(t->rows));
		t->n = 0;
	}
	return 0;
}

static void read_rows(void *arg)
{
	static struct telling t;

	unwind_rows_read(READER_FILE, tell_row, &t);
	reader_tell(t.rows, t.n * sizeof(t.rows[0]));
}

/* Reads rows to the end of the pipe. Meanwhile the samples go on. */
static bool take_rows(struct unwind *u, struct unwind_table *t, int fd)
{
	struct unwind_row part[256];
	uint64_t due_ns = clock_mono_ns() + WAIT_NS;
	size_t have = 0;
	ssize_t got;

	for (;;) {
		const int ready = poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, (int)(WAIT_NS / NS_PER_MS));

		if (u->meanwhile && clock_mono_ns() >= due_ns) {
			u->meanwhile(u->arg);
			due_ns = clock_mono_ns() + WAIT_NS;
		}
		if (ready <= 0)
			continue;
		got = read(fd, (uint8_t *)part + have, sizeof(part) - have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got == 0 && have == 0;
		have += (size_t)got;
		for (size_t i = 0; i < have / sizeof(part[0]); i++) {
			if (u->rows >= UNWIND_ROWS_MAX || ARRAY_ROOM(t->rows, t->cap, t->n + 1))
				return false;
			t->rows[t->n++] = part[i];
			u->rows++;
		}
		memmove(part, (uint8_t *)part + have / sizeof(part[0]) * sizeof(part[0]), have % sizeof(part[0]));
		have %= sizeof(part[0]);
	}
}

/* Drops the function in which a reader ended: without its end its last rule would reach over all that follows. */
static void drop_unended(struct unwind *u, struct unwind_table *t)
{
	while (t->n && t->rows[t->n - 1].cfa_rule != UNWIND_CFA_UNKNOWN) {
		t->n--;
		u->rows--;
	}
}

/* The end of a function comes before the begin of the next one at the same place. */
static int by_start(const void *a, const void *b)
{
	const struct unwind_row *x = a, *y = b;

	if (x->start != y->start)
		return x->start > y->start ? 1 : -1;
	return (x->cfa_rule != UNWIND_CFA_UNKNOWN) - (y->cfa_rule != UNWIND_CFA_UNKNOWN);
}

static bool same_rule(const struct unwind_row *a, const struct unwind_row *b)
{
	return a->cfa == b->cfa && a->ra == b->ra && a->bp == b->bp && a->cfa_rule == b->cfa_rule &&
	       a->ra_place == b->ra_place && a->bp_place == b->bp_place && a->signal == b->signal;
}

/* Sorts the rows, and keeps those where the rule changes. */
static void arrange(struct unwind *u, struct unwind_table *t)
{
	uint32_t kept = 0;

	if (t->n)
		qsort(t->rows, t->n, sizeof(*t->rows), by_start);
	for (uint32_t i = 0; i < t->n; i++) {
		if (i + 1 < t->n && t->rows[i + 1].start == t->rows[i].start)
			continue; /* it reaches over nothing */
		if (!kept || !same_rule(&t->rows[i], &t->rows[kept - 1]))
			t->rows[kept++] = t->rows[i];
	}
	u->rows -= t->n - kept;
	t->n = kept;
	if (kept && !ARRAY_RESIZE(t->rows, kept))
		t->cap = kept;
}

static void look(struct unwind *u, const struct code_file *file, struct unwind_table *t)
{
	struct reader reader;
	bool whole;

	t->looked = true;
	if (file->kind != CODE_ELF || file->fd < 0)
		return;
	if (reader_start(&reader, file->fd, read_rows, NULL) != 0) {
		u->failed++;
		return;
	}
	whole = take_rows(u, t, reader.answers);
	close(reader.answers);
	whole &= reader_end(&reader);
	u->failed += !whole;
	drop_unended(u, t);
	arrange(u, t);
}

const struct unwind_row *unwind_row_at(struct unwind *u, const struct code *code, uint64_t frame)
{
	const uint32_t file = frame_file(frame);
	struct unwind_table *t = &u->table[file < CODE_FILES_MAX ? file : CODE_UNKNOWN];
	uint32_t from = 0, to;

	if (!t->looked)
		look(u, &code->files[file], t);
	to = t->n;
	while (from < to) {
		const uint32_t mid = from + (to - from) / 2;

		if (t->rows[mid].start <= frame_offset(frame))
			from = mid + 1;
		else
			to = mid;
	}
	return from && t->rows[from - 1].cfa_rule != UNWIND_CFA_UNKNOWN ? &t->rows[from - 1] : NULL;
}

void unwind_free(struct unwind *u)
{
	for (unsigned i = 0; i < CODE_FILES_MAX; i++)
		free(u->table[i].rows);
	memset(u->table, 0, sizeof(u->table));
	u->rows = 0;
}
