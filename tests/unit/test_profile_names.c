// SPDX-License-Identifier: Apache-2.0
/* Names of frames: this program's own symbols by a reader without rights, perf maps, files that are no program. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "profile/frame_names.h"
#include "profile/symbol_query.h"

__attribute__((noinline)) int profile_names_probe(int a);
__attribute__((noinline)) int profile_names_probe(int a)
{
	return a * 3 + (int)getpid();
}

static void name_of(struct code *code, uint64_t address, const char *expected)
{
	const uint32_t process = code_process(code, getpid());
	struct stacks stacks = { 0 };
	struct frame_names names = { 0 };
	const struct stack s = { .process = process, .n = 1 };
	uint64_t frame = 0;

	assert_true(process > 0);
	assert_true(code_frame(code, process, address, &frame));
	stacks_add(&stacks, &s, &frame, &(struct stack_sample){ STACK_TIME, 1 });
	assert_int_equal(frame_names_fill(&names, code, &stacks), 0);
	assert_int_equal(names.failed, 0);
	assert_string_equal(frame_name(&names, frame)->text, expected);
	frame_names_free(&names);
	stacks_free(&stacks);
}

static void test_own_symbols(void **state)
{
	struct code code = { 0 };

	assert_int_equal(code_open(&code), 0);
	name_of(&code, (uintptr_t)profile_names_probe, "profile_names_probe");
	name_of(&code, (uintptr_t)profile_names_probe + 3, "profile_names_probe");
	assert_true(frame_name(&(struct frame_names){ 0 }, 1) == NULL);
	code_close(&code);
}

__attribute__((noinline)) int __libc_grow(int a);
int __libc_grow(int a)
{
	return a * 13 + (int)getpid();
}
extern __typeof(__libc_grow) aliased_grow __attribute__((weak, alias("__libc_grow")));
extern __typeof(__libc_grow) _aliased_grow __attribute__((alias("__libc_grow")));

/* Of several names for one function that is shown which programs call it by. */
static void test_aliases(void **state)
{
	struct code code = { 0 };

	assert_int_equal(code_open(&code), 0);
	name_of(&code, (uintptr_t)__libc_grow, "aliased_grow");
	code_close(&code);
}

__attribute__((noinline)) int of_cpp(int a) __asm__("_ZNK4wood4tree4growEiRKSt6vectorIiSaIiEE.isra.0");
int of_cpp(int a)
{
	return a * 5 + (int)getpid();
}

__attribute__((noinline)) int of_rust(int a) __asm__("_RNvNtCsgStHSCytQ6I_4wood4tree4grow");
int of_rust(int a)
{
	return a * 7 + (int)getpid();
}

__attribute__((noinline)) int of_old_rust(int a) __asm__("_ZN4wood4tree4grow17h0123456789abcdefE");
int of_old_rust(int a)
{
	return a * 9 + (int)getpid();
}

__attribute__((noinline)) int of_nobody(int a) __asm__("_ZN4wood_no_end");
int of_nobody(int a)
{
	return a * 11 + (int)getpid();
}

static void test_demangled(void **state)
{
	struct code code = { 0 };

	assert_int_equal(code_open(&code), 0);
	name_of(&code, (uintptr_t)of_cpp, "wood::tree::grow");
	name_of(&code, (uintptr_t)of_rust, "wood::tree::grow");
	name_of(&code, (uintptr_t)of_old_rust, "wood::tree::grow");
	name_of(&code, (uintptr_t)of_nobody, "_ZN4wood_no_end");
	code_close(&code);
}

static void test_data_is_no_code(void **state)
{
	struct code code = { 0 };
	uint64_t frame;

	assert_int_equal(code_open(&code), 0);
	assert_false(code_frame(&code, code_process(&code, getpid()), (uintptr_t)&code, &frame));
	assert_false(code_frame(&code, code_process(&code, getpid()), 0, &frame));
	code_close(&code);
}

/* A process keeps its mappings through a fork, loses them at exec, and its number is another process after its end. */
static void test_life(void **state)
{
	const struct code_mapped m = { .start = 0x1000, .length = 0x1000, .offset = 0x400, .path = "//anon" };
	struct code code = { 0 };
	uint32_t parent, child;
	uint64_t frame = 0;

	assert_int_equal(code_open(&code), 0);
	code_renamed(&code, 1 << 29, "first", true);
	code_mapped(&code, 1 << 29, &m);
	parent = code_process(&code, 1 << 29);
	code_forked(&code, 1 << 29, (1 << 29) + 1);
	child = code_process(&code, (1 << 29) + 1);
	assert_int_not_equal(parent, child);
	assert_string_equal(code.processes[child].comm, "first");
	assert_true(code_frame(&code, child, 0x1800, &frame));
	assert_false(code_frame(&code, child, 0x2000, &frame));
	code_renamed(&code, (1 << 29) + 1, "second", true);
	child = code_process(&code, (1 << 29) + 1);
	assert_string_equal(code.processes[child].comm, "second");
	assert_false(code_frame(&code, child, 0x1800, &frame));
	assert_true(code_frame(&code, parent, 0x1800, &frame));
	code_exited(&code, 1 << 29);
	assert_int_not_equal(code_process(&code, 1 << 29), parent);
	code_close(&code);
}

/* After a loss of events the maps are those that /proc tells, and a process of another name is another one. */
static void test_loss(void **state)
{
	const struct code_mapped m = { .start = 0x1000, .length = 0x1000, .path = "//anon" };
	struct code code = { 0 };
	uint32_t at, ended;
	uint64_t frame = 0;

	assert_int_equal(code_open(&code), 0);
	at = code_process(&code, getpid());
	code_mapped(&code, getpid(), &m);
	code_renamed(&code, 1 << 29, "gone", true);
	code_mapped(&code, 1 << 29, &m);
	ended = code_process(&code, 1 << 29);
	assert_int_equal(code_process(&code, getpid()), at);
	assert_true(code_frame(&code, at, 0x1800, &frame));
	code_lost(&code);
	assert_int_equal(code_process(&code, getpid()), at);
	assert_false(code_frame(&code, at, 0x1800, &frame));
	assert_true(code_frame(&code, at, (uintptr_t)profile_names_probe, &frame));
	assert_int_equal(code_process(&code, 1 << 29), ended);
	assert_true(code_frame(&code, ended, 0x1800, &frame));
	code_renamed(&code, getpid(), "other", false);
	code_lost(&code);
	assert_int_not_equal(code_process(&code, getpid()), at);
	assert_true(code_frame(&code, code_process(&code, getpid()), (uintptr_t)profile_names_probe, &frame));
	code_close(&code);
}

/* A name that only the table of Go's functions has. */
__asm__(".pushsection .text\n"
	".Lgo_text: .skip 64, 0x90\n"
	".globl go_behind\n"
	"go_behind: ret\n"
	".popsection\n"
	".pushsection .gopclntab, \"a\"\n"
	".Lgo: .long 0xfffffffb\n"
	".byte 0, 0, 1, 8\n"
	".quad 2\n"
	".quad 0x1111, 0\n" /* nonsense: it ends before it begins */
	".quad 0x1000, .Lgo_function - .Lgo, 0x7fffffffffffffff\n"
	".Lgo_function: .quad 0x1000\n"
	".long .Lgo_name - .Lgo, 0, 0, 0\n"
	".Lgo_name: .asciz \"main.(*T).work\"\n"
	".popsection\n");
extern char go_behind[];

static void test_go(void **state)
{
	struct code code = { 0 };

	assert_int_equal(code_open(&code), 0);
	name_of(&code, (uintptr_t)go_behind - 30, "main.(*T).work");
	name_of(&code, (uintptr_t)profile_names_probe, "profile_names_probe");
	code_close(&code);
}

static void expect(const char *text, uint64_t address, const char *name)
{
	struct symbol_query q = { .offset = address };

	perf_map_read(text, strlen(text), &q, 1);
	if (name)
		assert_string_equal(q.name, name);
	else
		assert_null(q.name);
	free(q.name);
}

static void test_perf_map(void **state)
{
	static const char text[] = "1000 20 py::outer:file.py\n0x2000 0x10 two words\nbad\n3000 zz no\n4000 10\n"
				   "1008 4 inner\n5000 8 last";

	expect(text, 0x1000, "py::outer:file.py");
	expect(text, 0x100a, "inner");
	expect(text, 0x1020, NULL);
	expect(text, 0x2005, "two words");
	expect(text, 0x3000, NULL);
	expect(text, 0x4000, NULL);
	expect(text, 0x5007, "last");
	expect("ffffffffffffffff ffffffffffffffff x\n", UINT64_MAX, "x");
	expect("11112222333344445 10 x\n", 0x5, NULL);
	expect("10 10 __x\n10 10 x\n10 10 _x\n", 0x15, "x");
	expect("10 10 _x\n18 10 y\n", 0x19, "_x"); /* another function, though as large */
	expect("10 10 _x\n10 10 _", 0x15, "_x");
}

static void test_no_program(void **state)
{
	char path[] = "/tmp/profile-names-XXXXXX";
	struct symbol_query q = { .offset = 4 };
	int fd = mkstemp(path);
	Elf *elf;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "\177ELF no", 8), 8);
	assert_true(elf_version(EV_CURRENT) != EV_NONE);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_int_equal(elf_symbols_of(elf, NULL, &q, 1), -ENOEXEC);
	assert_true(elf_lines_of(elf, NULL, NULL, &q, 1, NULL, NULL));
	elf_end(elf);
	assert_null(q.name);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_symbols), cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_demangled),   cmocka_unit_test(test_data_is_no_code),
		cmocka_unit_test(test_life),        cmocka_unit_test(test_perf_map),
		cmocka_unit_test(test_no_program),  cmocka_unit_test(test_loss),
		cmocka_unit_test(test_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
