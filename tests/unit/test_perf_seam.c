/* SPDX-License-Identifier: Apache-2.0 */
/* The perf seam: what the recorded file says is what open answers, and the live one is the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include "source/counters/events.h"
#include "temp_root.h"

static struct perf_seam recorded(const struct temp_root *t, const char *text)
{
	struct perf_seam seam = { 0 };

	temp_root_put(t, "/perf-seam", text);
	assert_int_equal(perf_seam_recorded(t->root, &seam), 0);
	return seam;
}

static int ask(const struct perf_seam *s, uint32_t type, uint64_t config, int cpu)
{
	return s->open(s->ctx, &(struct event_variant){ .type = type, .config = config }, cpu, true);
}

static void test_first_match_wins(void **state)
{
	struct temp_root t = temp_root_new();
	struct perf_seam s = recorded(
		&t, "# comment\n\n0 0x100000000 3 EACCES  # inline\n0 * 3 EBUSY\n* 7 * EINVAL\n4 7 0 ok\n");

	(void)state;
	assert_int_equal(ask(&s, 0, 0x100000000, 3), -EACCES);
	assert_int_equal(ask(&s, 0, 1, 3), -EBUSY);
	assert_int_equal(ask(&s, 4, 7, 0), -EINVAL);
	assert_int_equal(ask(&s, 4, 8, 0), -ENOENT);
	assert_int_equal(ask(&s, 0, 1, 2), -ENOENT);
	perf_seam_free(&s);
	assert_null(s.ctx);
	perf_seam_free(&s);
	perf_seam_free(NULL);
	temp_root_free(&t);
}

static void test_value_from_a_file(void **state)
{
	struct temp_root t = temp_root_new();
	struct perf_seam s = recorded(&t, "9 2 0 ok perf/pkg\n9 3 0 ok perf/none\n9 4 0 ok\n");
	uint64_t words[3] = { 7, 7, 7 }, word;
	int fd;

	(void)state;
	temp_root_put(&t, "/perf/pkg", "18446744073709551615\n");
	fd = ask(&s, 9, 2, 0);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(read(fd, &word, sizeof(word)), sizeof(word));
	assert_true(word == UINT64_MAX);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(perf_seam_read(fd, words), 0);
		assert_true(words[0] == UINT64_MAX && words[1] > 0 && words[1] == words[2]);
	}
	close(fd);
	assert_int_equal(ask(&s, 9, 3, 0), -ENOENT);
	fd = ask(&s, 9, 4, 0);
	assert_int_equal(perf_seam_read(fd, words), 0);
	assert_int_equal(words[0], 0);
	close(fd);
	perf_seam_free(&s);
	temp_root_free(&t);
}

static void test_starved(void **state)
{
	struct temp_root t = temp_root_new();
	struct perf_seam s = recorded(&t, "0 0 * starved\n");
	uint64_t words[3] = { 7, 7, 7 };
	int fd = ask(&s, 0, 0, 0);

	(void)state;
	assert_int_equal(perf_seam_read(fd, words), -ENODATA);
	assert_int_equal(words[0], 7);
	close(fd);
	fd = s.open(s.ctx, &(struct event_variant){ 0 }, 0, false);
	assert_int_equal(perf_seam_read(fd, words), 0);
	assert_true(words[2] < words[1]);
	close(fd);
	perf_seam_free(&s);
	temp_root_free(&t);
}

static void test_file_that_leads_out(void **state)
{
	struct temp_root t = temp_root_new();
	struct perf_seam s = recorded(&t, "0 0 * ok ../../../../proc/sys/kernel/perf_event_paranoid\n");

	(void)state;
	assert_true(ask(&s, 0, 0, 0) < 0);
	perf_seam_free(&s);
	temp_root_free(&t);
}

static void test_refused_files(void **state)
{
	static const char *const bad[] = {
		"0 0 0\n",
		"0 0 0 maybe\n",
		"x 0 0 ok\n",
		"0 0 0 ok file more\n",
		"0 0 0 EACCES file\n",
		"0 -1 0 ok\n",
		"0 0 0 ok 0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456\n",
	};
	struct temp_root t = temp_root_new();
	struct perf_seam s = { 0 };
	char many[257 * 11 + 1] = "";

	(void)state;
	assert_int_equal(perf_seam_recorded(t.root, &s), -ENOENT);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		temp_root_put(&t, "/perf-seam", bad[i]);
		assert_int_equal(perf_seam_recorded(t.root, &s), -EINVAL);
	}
	for (int i = 0; i < 257; i++)
		strcat(many, "0 0 * ok  \n");
	temp_root_put(&t, "/perf-seam", many);
	assert_int_equal(perf_seam_recorded(t.root, &s), -E2BIG);
	assert_null(s.open);
	temp_root_free(&t);
}

/* A software event needs no PMU; its clock can be held against the kernel's own. */
static void test_live_counts(void **state)
{
	struct perf_seam s = perf_seam_live();
	uint64_t a[3], b[3];
	int fd = ask(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0);

	(void)state;
	if (fd == -EACCES || fd == -EPERM || fd == -ENOSYS) {
		printf("SKIP perf_seam_live: perf_event_open: %s\n", strerror(-fd));
		return;
	}
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(perf_seam_read(fd, a), 0);
	usleep(20000);
	assert_int_equal(perf_seam_read(fd, b), 0);
	assert_in_range(b[0] - a[0], 15000000, 2000000000);
	assert_in_range(b[1] - a[1], 15000000, 2000000000);
	assert_true(b[1] == b[2]);
	close(fd);
	assert_int_equal(ask(&s, 0x7fffffff, 0, 0), -ENOENT);
	assert_true(ask(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 100000) < 0);
	perf_seam_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_match_wins), cmocka_unit_test(test_value_from_a_file),
		cmocka_unit_test(test_starved),          cmocka_unit_test(test_file_that_leads_out),
		cmocka_unit_test(test_refused_files),    cmocka_unit_test(test_live_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
