// SPDX-License-Identifier: Apache-2.0
/* The process that reads files of code for a profile: what it tells comes back, and it ends whatever a file does. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>
#include "profile/code_reader.h"

static void tell_first_byte(void *arg)
{
	char c;

	(void)arg;
	if (read(READER_FILE, &c, 1) == 1)
		reader_tell(&c, 1);
}

static void test_tells(void **state)
{
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct reader r;
	char c = 0;

	(void)state;
	assert_int_equal(reader_start(&r, &(struct reader_files){ fd, -1, -1, 0 }, tell_first_byte, NULL), 0);
	assert_int_equal(read(r.answers, &c, 1), 1);
	assert_int_equal(c, 0x7f);
	assert_int_equal(read(r.answers, &c, 1), 0);
	close(r.answers);
	assert_true(reader_end(&r));
	close(fd);
}

/* A file that never answers, read by a thread that blocks all signals, as the agent's do. */
static void test_file_that_never_answers(void **state)
{
	struct reader r;
	sigset_t all, before;
	int ends[2];
	char c;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	assert_int_equal(reader_start(&r, &(struct reader_files){ ends[0], -1, -1, 1 }, tell_first_byte, NULL), 0);
	assert_int_equal(read(r.answers, &c, 1), 0);
	close(r.answers);
	assert_false(reader_end(&r));
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tells),
		cmocka_unit_test(test_file_that_never_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
