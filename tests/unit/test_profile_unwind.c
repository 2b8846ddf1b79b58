// SPDX-License-Identifier: Apache-2.0
/* Callers by the rules of .eh_frame: of this program, through its own functions, a jump table, a signal and the C library,
 * against the unwinder of the compiler's runtime; steps by fabricated rules; rules and stacks that lie. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>
#include <cmocka.h>
#include "profile/unwind.h"

#if UNWIND_HERE
#define FRAMES 64
#define COPIED 65536

/* Where this program is, as both unwinders see it. */
static struct seen {
	uint64_t judge[FRAMES], walked[FRAMES];
	unsigned n_judge, n_walked;
	enum unwind_step end;
	size_t most, used; /* bytes of the stack */
} seen;
static struct code code;
static struct unwind rules;

static _Unwind_Reason_Code note(struct _Unwind_Context *c, void *arg)
{
	if (seen.n_judge < FRAMES)
		seen.judge[seen.n_judge++] = _Unwind_GetIP(c);
	return _URC_NO_REASON;
}

/* The stack from sp on, up to its end: by the kernel, for which it is memory like any other. */
static size_t copy_stack(uint64_t sp, uint8_t *to)
{
	const int fd = open("/proc/self/mem", O_RDONLY);
	ssize_t n = pread(fd, to, seen.most, (off_t)sp);

	assert_true(n > 0);
	close(fd);
	return (size_t)n;
}

__attribute__((noinline)) static void walk(void)
{
	static uint8_t bytes[COPIED];
	static ucontext_t here;
	struct unwind_state s;
	struct unwind_memory m;
	const uint32_t process = code_process(&code, getpid());

	_Unwind_Backtrace(note, NULL);
	assert_int_equal(getcontext(&here), 0);
	s = (struct unwind_state){ .ip = (uint64_t)here.uc_mcontext.gregs[REG_RIP],
				   .sp = (uint64_t)here.uc_mcontext.gregs[REG_RSP],
				   .bp = (uint64_t)here.uc_mcontext.gregs[REG_RBP] };
	m = (struct unwind_memory){ bytes, s.sp, copy_stack(s.sp, bytes) };
	seen.end = UNWIND_ON;
	while (seen.end == UNWIND_ON && seen.n_walked < FRAMES) {
		uint64_t frame;

		seen.walked[seen.n_walked++] = s.ip;
		if (!code_frame(&code, process, s.ip - s.called, &frame))
			break;
		seen.end = unwind_step(unwind_row_at(&rules, &code, frame), &m, &s);
		seen.used = s.sp - m.at;
	}
}

__attribute__((noinline)) static int by_size(const void *a, const void *b)
{
	if (!seen.n_walked)
		walk();
	return *(const int *)a - *(const int *)b;
}

/* Through qsort of the C library, with a frame whose size only its frame pointer knows. */
__attribute__((noinline)) static int below(unsigned n)
{
	volatile char *room = __builtin_alloca(n);
	int v[] = { 3, 1, 2 };

	room[0] = (char)n;
	qsort(v, 3, sizeof(v[0]), by_size);
	return v[0] + room[0];
}

static void on_signal(int number)
{
	below(100);
}

/* The judge stands in walk(), too, at another instruction; from its caller on both must say the same. */
static void check(void)
{
	assert_int_equal(rules.failed, 0);
	assert_true(seen.n_walked > 8 && seen.n_judge > 8);
	assert_int_equal(seen.end, UNWIND_END);
	/* the judge names the last frame, of which nothing is known, once more on some releases */
	assert_in_range(seen.n_judge, seen.n_walked, seen.n_walked + 1);
	for (unsigned i = 1; i < seen.n_walked; i++)
		assert_int_equal(seen.walked[i], seen.judge[i]);
}

static void begin(void)
{
	memset(&seen, 0, sizeof(seen));
	seen.most = COPIED;
	if (!code.n_files)
		assert_int_equal(code_open(&code), 0);
}

static void test_own_stack(void **state)
{
	begin();
	below(300);
	check();
}

static void test_signal(void **state)
{
	const struct sigaction a = { .sa_handler = on_signal };

	begin();
	assert_int_equal(sigaction(SIGUSR2, &a, NULL), 0);
	raise(SIGUSR2);
	check();
}

/* A stack that is copied in part ends where the copy does, and says so. */
static void test_cut(void **state)
{
	unsigned whole;
	size_t used;

	begin();
	below(300);
	whole = seen.n_walked;
	used = seen.used;
	begin();
	seen.most = used / 2;
	below(300);
	assert_int_equal(seen.end, UNWIND_CUT);
	assert_in_range(seen.n_walked, 2, whole - 1);
	for (unsigned i = 1; i < seen.n_walked; i++)
		assert_int_equal(seen.walked[i], seen.judge[i]);
	unwind_free(&rules);
	code_close(&code);
}

/* A program of Go's has no .eh_frame, but a table of its functions: of one, here, that has 24 bytes of its own on the stack. Its
 * text begins where a relocation says, as in a program that may be loaded anywhere. */
__asm__(".pushsection .text\n"
	"	nop\n" /* not at the begin of the table's text */
	".Lgo_text:\n"
	".skip 16, 0x90\n"
	".globl go_calls\n"
	".type go_calls, @function\n"
	"go_calls:\n"
	"	sub $24, %rsp\n"
	".Lgo_deep:\n"
	"	call *%rdi\n"
	"	add $24, %rsp\n"
	".Lgo_flat:\n"
	"	ret\n"
	".Lgo_end:\n"
	".size go_calls, . - go_calls\n"
	".popsection\n"
	".pushsection .data.rel.ro.gopclntab, \"aw\"\n"
	".Lgo: .long 0xfffffff1\n"
	".byte 0, 0, 1, 8\n"
	".quad 1, 0, .Lgo_text, .Lgo_names - .Lgo, 0, 0, .Lgo_depths - .Lgo, .Lgo_list - .Lgo\n"
	".Lgo_names: .asciz \"\"\n"
	".Lgo_name: .asciz \"main.calls\"\n"
	".Lgo_depths: .byte 2, .Lgo_deep - go_calls, 48, .Lgo_flat - .Lgo_deep, 47, .Lgo_end - .Lgo_flat, 0\n"
	".Lgo_list: .long go_calls - .Lgo_text, .Lgo_function - .Lgo_list, .Lgo_end - .Lgo_text\n"
	".Lgo_function: .long go_calls - .Lgo_text, .Lgo_name - .Lgo_names, 0, 0, 0\n"
	".popsection\n");
void go_calls(void (*f)(void));

__attribute__((noinline)) static void through_go(void)
{
	go_calls(walk);
	seen.most += 0; /* no tail call */
}

static void test_go(void **state)
{
	unsigned at = 0;

	begin();
	through_go();
	assert_int_equal(seen.end, UNWIND_END);
	while (at < seen.n_walked &&
	       (seen.walked[at] <= (uintptr_t)go_calls || seen.walked[at] > (uintptr_t)go_calls + 20))
		at++;
	assert_in_range(at, 1, 2);
	assert_in_range(seen.walked[at + 1], (uintptr_t)through_go, (uintptr_t)through_go + 200);
	assert_true(seen.n_walked > at + 4);
}

/* A file with more rules than there is room for: the rules that were read reach over their own functions only. */
static void test_no_room(void **state)
{
	const uintptr_t here = (uintptr_t)walk;
	uint64_t frame = 0;

	begin();
	assert_true(code_frame(&code, code_process(&code, getpid()), here, &frame));
	for (uint32_t room = 1; room < 40; room++) {
		struct unwind_table *t = &rules.table[frame_file(frame)];

		rules.failed = 0;
		rules.rows = UNWIND_ROWS_MAX - room;
		unwind_row_at(&rules, &code, frame);
		assert_int_equal(rules.failed, 1);
		assert_true(t->n <= room);
		assert_int_equal(rules.rows, UNWIND_ROWS_MAX - room + t->n);
		if (t->n)
			assert_int_equal(rules.rules[t->rules[t->n - 1]].cfa_rule, UNWIND_CFA_UNKNOWN);
		assert_true(t->n || room < 20);
		unwind_free(&rules);
	}
	rules.failed = 0;
	code_close(&code);
}

static void expect(struct unwind_row row, struct unwind_state from, enum unwind_step step, struct unwind_state to)
{
	const uint64_t words[] = { 0x100, 0x101, 0x102, 0x103, 0x1038, 0x105, 0x106, 0x107 };
	const struct unwind_memory m = { (const uint8_t *)words, 0x1000, sizeof(words) };

	assert_int_equal(unwind_step(&row, &m, &from), step);
	if (step != UNWIND_ON)
		return;
	assert_int_equal(from.ip, to.ip);
	assert_int_equal(from.sp, to.sp);
	assert_int_equal(from.bp, to.bp);
	assert_int_equal(from.called, to.called);
}

static void test_rules(void **state)
{
	const struct unwind_state at = { .ip = 0x40b, .sp = 0x1000, .bp = 0x1010 };
	struct unwind_row row = { .cfa_rule = UNWIND_CFA_SP, .cfa = 8, .ra_place = UNWIND_AT_CFA, .ra = -8 };

	expect(row, at, UNWIND_ON, (struct unwind_state){ 0x100, 0x1008, 0x1010, true });
	row.cfa_rule = UNWIND_CFA_BP;
	row.bp_place = UNWIND_AT_CFA;
	row.bp = 0;
	expect(row, at, UNWIND_ON, (struct unwind_state){ 0x102, 0x1018, 0x103, true });
	row.bp_place = UNWIND_LOST;
	expect(row, at, UNWIND_ON, (struct unwind_state){ 0x102, 0x1018, 0, true });
	row = (struct unwind_row){ UNWIND_CFA_PLT, 11, -8, 0, UNWIND_CFA_PLT, UNWIND_AT_CFA, UNWIND_SAME, 0 };
	expect(row, at, UNWIND_ON, (struct unwind_state){ 0x101, 0x1010, 0x1010, true });
	expect(row, (struct unwind_state){ 0x40a, 0x1000, 0, true }, UNWIND_ON,
	       (struct unwind_state){ 0x100, 0x1008, 0, true });
	row = (struct unwind_row){ 0, 0x20, 0x10, 0x18, UNWIND_CFA_AT_SP, UNWIND_AT_SP, UNWIND_AT_SP, 1 };
	expect(row, at, UNWIND_ON, (struct unwind_state){ 0x102, 0x1038, 0x103, false });
	row.cfa_rule = UNWIND_CFA_AT_BP;
	row.cfa = 0x10;
	row.bp_place = UNWIND_AT_BP;
	row.bp = -16;
	expect(row, at, UNWIND_ON, (struct unwind_state){ 0x102, 0x1038, 0x100, false });
	/* a frame that lies below, one whose address is outside, no rule, no caller */
	row = (struct unwind_row){ .cfa_rule = UNWIND_CFA_SP, .cfa = 0, .ra_place = UNWIND_AT_CFA, .ra = -8 };
	expect(row, at, UNWIND_CUT, at);
	row.cfa = 0x50;
	expect(row, at, UNWIND_CUT, at);
	row.cfa_rule = UNWIND_CFA_OTHER;
	expect(row, at, UNWIND_CUT, at);
	row.cfa_rule = UNWIND_CFA_NONE;
	expect(row, at, UNWIND_END, at);
}

static void test_frame_pointer(void **state)
{
	const uint64_t words[] = { 0x1010, 0x500, 0, 0x600, 7 };
	const struct unwind_memory m = { (const uint8_t *)words, 0x1000, sizeof(words) };
	struct unwind_state s = { .ip = 0x400, .sp = 0x1000, .bp = 0x1000 }, none = { .ip = 0x400, .sp = 0x1000 };

	assert_int_equal(unwind_step(NULL, &m, &s), UNWIND_ON);
	assert_int_equal(s.ip, 0x500);
	assert_int_equal(unwind_step(NULL, &m, &s), UNWIND_ON);
	assert_int_equal(s.ip, 0x600);
	assert_int_equal(unwind_step(NULL, &m, &s), UNWIND_END);
	assert_int_equal(unwind_step(NULL, &m, &none),
			 UNWIND_CUT); /* in the sampled function 0 is a number like any other */
}

/* Whatever rows and stacks say, a walk goes up the stack and ends. */
static void test_lies(void **state)
{
	uint64_t words[64];
	const struct unwind_memory m = { (const uint8_t *)words, 0x7000, sizeof(words) };
	struct unwind_row row;

	srand(7);
	for (unsigned round = 0; round < 200000; round++) {
		struct unwind_state s = { .ip = (uint64_t)rand(), .sp = 0x7000, .bp = 0x7000 + (uint64_t)rand() % 600 };
		uint64_t before;
		unsigned steps = 0;

		for (unsigned i = 0; i < 64; i++)
			words[i] = rand() % 4 ? 0x7000 + (uint64_t)rand() % 600 : (uint64_t)rand() << 33;
		do {
			for (unsigned i = 0; i < sizeof(row); i++)
				((uint8_t *)&row)[i] = (uint8_t)rand();
			row.cfa = rand() % 2 ? row.cfa : row.cfa % 256;
			row.ra = rand() % 2 ? row.ra : row.ra % 256;
			row.cfa_rule %= 8;
			row.ra_place %= 6;
			row.bp_place %= 6;
			before = s.sp;
			assert_true(steps++ < sizeof(words));
		} while (unwind_step(rand() % 8 ? &row : NULL, &m, &s) == UNWIND_ON && s.sp > before);
		assert_true(s.sp >= before);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_stack),     cmocka_unit_test(test_signal),  cmocka_unit_test(test_go),
		cmocka_unit_test(test_cut),           cmocka_unit_test(test_no_room), cmocka_unit_test(test_rules),
		cmocka_unit_test(test_frame_pointer), cmocka_unit_test(test_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
	puts("SKIP unwind: only x86-64 is unwound by rules");
	return 0;
}
#endif
