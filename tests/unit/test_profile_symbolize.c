// SPDX-License-Identifier: Apache-2.0
/* A profile that is named later is the one that was named at once; another build id is not believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "profile/pprof_symbolize.h"
#include "profile/profile_data.h"
#include "profile/symbol_files.h"

#define SAMPLES 60

__attribute__((noinline)) int symbolize_probe_a(int a);
__attribute__((noinline)) int symbolize_probe_a(int a)
{
	return a * 3 + (int)getpid();
}

__attribute__((noinline)) int symbolize_probe_b(int a);
__attribute__((noinline)) int symbolize_probe_b(int a)
{
	return a * 5 + (int)getpid();
}

int main(void);

/* The same samples, with names or without. Below main lies what is no caller; every third stack does not reach main. */
static void make(bool no_names, struct buf *plain)
{
	struct profile p = { .rate_hz = 19, .began_ns = 5, .ended_ns = 1000000005, .ended_real_ns = 1000000000ll * 100 };
	const struct frame_wish wish = { .no_names = no_names };
	const struct profile_report r = { &p, PROFILE_ALL_DOMAINS };
	uint32_t process;

	assert_int_equal(code_open(&p.code), 0);
	process = code_process(&p.code, getpid());
	p.shares.n_domains = p.n_domains = 2;
	snprintf(p.domain[0].name, sizeof(p.domain[0].name), "package-0");
	snprintf(p.domain[1].name, sizeof(p.domain[1].name), "core-0");
	p.domain[0].summed = true;
	for (unsigned k = 0; k < SAMPLES; k++) {
		const struct stack st = { .cgroup = 1, .process = process, .n = 4 };
		const uintptr_t at[] = { (uintptr_t)symbolize_probe_a + k % 3, (uintptr_t)symbolize_probe_b + k % 5,
					 k % 3 ? (uintptr_t)main : (uintptr_t)symbolize_probe_a,
					 (uintptr_t)symbolize_probe_b };
		uint64_t frame[4];

		for (unsigned i = 0; i < 4; i++)
			assert_true(code_frame(&p.code, process, at[i], &frame[i]));
		stacks_add(&p.stacks, &st, frame, &(struct stack_sample){ STACK_TIME, 52631578 });
	}
	for (unsigned d = 0; d < 2; d++)
		row_shares_row(&p.shares, "/a", 1)->step_uj[d] = 1000003 / (d + 1);
	assert_int_equal(row_shares_split(&p.shares, &p.stacks), 0);
	p.names.wish = &wish;
	assert_int_equal(frame_names_fill(&p.names, &p.code, &p.stacks), 0);
	assert_int_equal(profile_pprof_plain(&r, "test", plain), 0);
	profile_free(&p);
}

static int by_line(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Folded stacks in an order of their own, and the sum of all samples. */
static char *folded(const struct pprof_sum *s, const char *drop)
{
	struct buf out = { 0 }, sorted = { 0 };
	char *line[2 * SAMPLES], *rest;
	unsigned n = 0;

	assert_int_equal(pprof_sum_folded(s, &out), 0);
	buf_add_char(&out, '\0');
	for (char *at = strtok_r((char *)out.data, "\n", &rest); at; at = strtok_r(NULL, "\n", &rest))
		line[n++] = at;
	qsort(line, n, sizeof(*line), by_line);
	for (unsigned i = 0; i < n; i++)
		if (!drop || !strstr(line[i], drop))
			buf_printf(&sorted, "%s\n", line[i]);
	buf_add_char(&sorted, '\0');
	buf_free(&out);
	return (char *)sorted.data;
}

static int add(void *arg, const struct pprof_sample *s)
{
	uint64_t *sum = arg;

	sum[0] += s->samples;
	sum[1] += s->energy_uj;
	return 0;
}

static struct pprof_sum *read_plain(const struct buf *plain)
{
	struct pprof_sum *s = pprof_sum_new(SIZE_MAX);

	assert_non_null(s);
	assert_int_equal(pprof_sum_add(s, plain->data, plain->len, &(struct pprof_filter){ 0 }), 0);
	return s;
}

struct told {
	unsigned files, found;
	enum symbols_why why; /* of this program */
	uint32_t named;
};

static void tell(void *arg, const struct symbols_of_file *f)
{
	struct told *t = arg;

	t->files++;
	if (!strstr(f->file->path, "test_profile_symbolize"))
		return;
	t->found++;
	t->why = f->why;
	t->named = f->named;
}

/* Names it here. */
static struct pprof_sum *named_later(const struct buf *bare, struct told *told)
{
	struct symbol_files files = { .tell = tell, .arg = told };
	struct pprof_sum *s = read_plain(bare), *ret = NULL;

	*told = (struct told){ 0 };
	assert_int_equal(symbol_files_open(&files), 0);
	assert_int_equal(pprof_symbolize(s, symbol_files_name, &files, &ret), 0);
	symbol_files_close(&files);
	pprof_sum_free(s);
	return ret;
}

static void test_same_as_at_once(void **state)
{
	struct buf bare = { 0 }, plain = { 0 }, again = { 0 };
	uint64_t had[2] = { 0 }, has[2] = { 0 };
	struct pprof_sum *once, *later, *without;
	char *a, *b, *c;
	struct told told;

	make(true, &bare);
	make(false, &plain);
	once = read_plain(&plain);
	without = read_plain(&bare);
	later = named_later(&bare, &told);
	assert_int_equal(told.found, 1);
	assert_int_equal(told.why, SYMBOLS_FOUND);
	a = folded(once, NULL);
	b = folded(later, NULL);
	c = folded(without, NULL);
	assert_string_equal(a, b);
	assert_non_null(strstr(a, ";main;symbolize_probe_b;symbolize_probe_a "));
	assert_non_null(strstr(a, ";[truncated];symbolize_probe_b;symbolize_probe_a;symbolize_probe_b;"));
	assert_null(strstr(c, "symbolize_probe"));
	assert_null(strstr(c, ";main"));
	assert_int_equal(pprof_sum_each(without, add, had), 0);
	assert_int_equal(pprof_sum_each(later, add, has), 0);
	assert_memory_equal(had, has, sizeof(had));
	assert_int_equal(had[0], SAMPLES);
	assert_int_equal(had[1], 1000003);
	/* what has its names is left alone */
	assert_int_equal(pprof_sum_write(later, &again), 0);
	pprof_sum_free(later);
	later = named_later(&again, &told);
	free(b);
	b = folded(later, NULL);
	assert_string_equal(a, b);
	assert_int_equal(told.found, 0);
	free(a);
	free(b);
	free(c);
	buf_free(&bare);
	buf_free(&plain);
	buf_free(&again);
	pprof_sum_free(once);
	pprof_sum_free(without);
	pprof_sum_free(later);
}

/* A file of the right name and the wrong build id. */
static void test_other_build(void **state)
{
	char own[BUILD_ID_TEXT] = "";
	struct buf bare = { 0 };
	struct pprof_sum *later;
	uint8_t *at;
	struct told told;
	char *text;
	FILE *self = fopen("/proc/self/exe", "r");
	Elf *elf;

	assert_non_null(self);
	assert_int_not_equal(elf_version(EV_CURRENT), EV_NONE);
	elf = elf_begin(fileno(self), ELF_C_READ, NULL);
	elf_build_id_of(elf, own);
	elf_end(elf);
	fclose(self);
	assert_true(strlen(own) > 4);
	make(true, &bare);
	at = memmem(bare.data, bare.len, own, strlen(own));
	assert_non_null(at);
	at[3] = at[3] == 'a' ? 'b' : 'a';
	later = named_later(&bare, &told);
	assert_int_equal(told.why, SYMBOLS_OTHER);
	assert_int_equal(told.named, 0);
	text = folded(later, NULL);
	assert_null(strstr(text, "symbolize_probe"));
	assert_non_null(strstr(text, "[test_profile_symbolize+0x"));
	free(text);
	pprof_sum_free(later);
	at[0] = '/'; /* no build id at all: nothing is looked for by it */
	later = named_later(&bare, &told);
	assert_int_equal(told.why, SYMBOLS_NO_ID);
	pprof_sum_free(later);
	buf_free(&bare);
}

static int refuse(void *arg, const struct symbolize_file *file, uint64_t *frames, uint32_t n, struct frame_names *ret)
{
	(void)file, (void)frames, (void)ret;
	*(uint32_t *)arg += n;
	return -ENOMEM;
}

static void test_failure(void **state)
{
	struct buf bare = { 0 };
	struct pprof_sum *s, *ret;
	uint32_t asked = 0;

	make(true, &bare);
	s = read_plain(&bare);
	assert_int_equal(pprof_symbolize(s, refuse, &asked, &ret), -ENOMEM);
	assert_null(ret);
	assert_true(asked > 3);
	pprof_sum_free(s);
	buf_free(&bare);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_same_as_at_once), cmocka_unit_test(test_other_build),
					    cmocka_unit_test(test_failure) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
