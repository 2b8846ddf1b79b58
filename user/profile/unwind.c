/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

/* Rows of a file as its reader tells them, in memory that is not of the heap: it takes no more than is used, is never copied
 * to grow, and goes back at once. A row is its start, then 0 for the end of a function, which comes before the begin of the
 * next one at the same place, then the number of its rule: so rows are in order as numbers are. */
struct told {
	uint64_t *v;
	uint32_t n, cap;
};
#define ROW(start, is_end, rule) ((uint64_t)(start) << 32 | (uint64_t) !(is_end) << 16 | (rule))

static uint32_t start_of(uint64_t row)
{
	return (uint32_t)(row >> 32);
}

static bool is_end(uint64_t row)
{
	return !(row >> 16 & 1);
}

/* The number of a row's rule. UNWIND_RULES_MAX: there is no room for another one. */
static uint16_t rule_of(struct unwind *u, struct unwind_row row)
{
	uint64_t key;

	row.start = 0;
	key = hash_bytes(&row, sizeof(row));
	for (struct hash_walk w = hash_walk(&u->by_rule, key); hash_step(&w);)
		if (memcmp(&u->rules[w.at], &row, sizeof(row)) == 0)
			return (uint16_t)w.at;
	if (u->n_rules == UNWIND_RULES_MAX || ARRAY_ROOM(u->rules, u->rules_cap, u->n_rules + 1) ||
	    hash_reserve(&u->by_rule, u->n_rules + 1))
		return UNWIND_RULES_MAX;
	hash_add(&u->by_rule, key, u->n_rules);
	u->rules[u->n_rules] = row;
	return (uint16_t)u->n_rules++;
}

static bool take_row(struct unwind *u, struct told *t, const struct unwind_row *row)
{
	const uint16_t rule = t->n < t->cap ? rule_of(u, *row) : UNWIND_RULES_MAX;

	if (rule == UNWIND_RULES_MAX)
		return false;
	t->v[t->n++] = ROW(row->start, row->cfa_rule == UNWIND_CFA_UNKNOWN, rule);
	return true;
}

/* Reads rows to the end of the pipe. Meanwhile the samples go on. */
static bool take_rows(struct unwind *u, struct told *t, int fd)
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
		for (size_t i = 0; i < have / sizeof(part[0]); i++)
			if (!take_row(u, t, &part[i]))
				return false;
		memmove(part, (uint8_t *)part + have / sizeof(part[0]) * sizeof(part[0]), have % sizeof(part[0]));
		have %= sizeof(part[0]);
	}
}

/* Drops the function in which a reader ended: without its end its last rule would reach over all that follows. */
static void drop_unended(struct told *t)
{
	while (t->n && !is_end(t->v[t->n - 1]))
		t->n--;
}

/* Lets the number at `at` sink in a heap whose greatest is first. */
static void sink(uint64_t *v, uint32_t n, uint32_t at)
{
	const uint64_t moved = v[at];

	for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
		child += child + 1 < n && v[child + 1] > v[child];
		if (v[child] <= moved)
			break;
		v[at] = v[child];
	}
	v[at] = moved;
}

/* Heapsort, in place: qsort(3) takes as much memory again. */
static void sort(uint64_t *v, uint32_t n)
{
	for (uint32_t i = n / 2; i-- > 0;)
		sink(v, n, i);
	while (n > 1) {
		const uint64_t last = v[--n];

		v[n] = v[0];
		v[0] = last;
		sink(v, n, 0);
	}
}

/* Sorts what was told, and keeps where the rule changes. False: no room; the table has none of it then. */
static bool arrange(struct unwind *u, struct told *from, struct unwind_table *t)
{
	uint32_t n = 0;

	sort(from->v, from->n);
	for (uint32_t i = 0; i < from->n; i++) {
		const uint64_t row = from->v[i];

		if (i + 1 < from->n && start_of(from->v[i + 1]) == start_of(row))
			continue; /* it reaches over nothing */
		if (!n || (uint16_t)row != (uint16_t)from->v[n - 1])
			from->v[n++] = row;
	}
	t->starts = calloc(n + 1, sizeof(*t->starts));
	t->rules = calloc(n + 1, sizeof(*t->rules));
	if (!t->starts || !t->rules)
		return false;
	for (; t->n < n; t->n++) {
		t->starts[t->n] = start_of(from->v[t->n]);
		t->rules[t->n] = (uint16_t)from->v[t->n];
	}
	u->rows += n;
	return true;
}

#define ROW_BYTES (sizeof(uint32_t) + sizeof(uint16_t))
#define RULE_BYTES (sizeof(struct unwind_row) + 4 * sizeof(struct hash_place))

static void tell_room(const struct unwind *u)
{
	room_set(u->room, ROOM_RULES, u->rows * ROW_BYTES + u->n_rules * RULE_BYTES);
}

/* How many rows of a file there is room for, twice over: as they are told, and as they are kept. */
static uint32_t rows_left(const struct unwind *u)
{
	const uint32_t most = u->rows_max ? u->rows_max : UNWIND_ROWS_MAX, left = most > u->rows ? most - u->rows : 0;
	const size_t fit = room_left(u->room) / (ROW_BYTES + sizeof(uint64_t));

	return fit < left ? (uint32_t)fit : left;
}

static bool read_file(struct unwind *u, const struct code_file *file, struct told *told, struct unwind_table *t)
{
	struct reader reader;
	bool whole;

	if (reader_start(&reader, &(struct reader_files){ file->fd, -1, -1, 0 }, read_rows, NULL) != 0)
		return false;
	whole = take_rows(u, told, reader.answers);
	close(reader.answers);
	whole &= reader_end(&reader);
	drop_unended(told);
	return arrange(u, told, t) && whole;
}

static void look(struct unwind *u, const struct code_file *file, struct unwind_table *t)
{
	struct told told = { .cap = rows_left(u) };
	const size_t bytes = (told.cap + 1) * sizeof(*told.v);

	t->looked = true;
	if (file->kind != CODE_ELF || file->fd < 0)
		return;
	told.v = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (told.v == MAP_FAILED) {
		u->failed++;
		return;
	}
	u->failed += !read_file(u, file, &told, t);
	tell_room(u);
	munmap(told.v, bytes);
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

		if (t->starts[mid] <= frame_offset(frame))
			from = mid + 1;
		else
			to = mid;
	}
	return from && u->rules[t->rules[from - 1]].cfa_rule != UNWIND_CFA_UNKNOWN ? &u->rules[t->rules[from - 1]] :
										     NULL;
}

void unwind_free(struct unwind *u)
{
	for (unsigned i = 0; i < CODE_FILES_MAX; i++) {
		free(u->table[i].starts);
		free(u->table[i].rules);
	}
	memset(u->table, 0, sizeof(u->table));
	free(u->rules);
	hash_free(&u->by_rule);
	u->rules = NULL;
	u->rows = u->n_rules = u->rules_cap = 0;
	tell_room(u);
}
