/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a recording and their note, on scripted GPUs (tests/gpu/fake_nvml.c): two recordings, a failed start, a GPU that is
 * away or does not tell its limit at recovery. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "ctl/experiment/limits.h"
#include "temp_root.h"

#define GPU(n) "GPU-fake" #n "-0000-1111-2222-333344445555"

static char library[512], root[128], said_all[2048];
static struct temp_root at;

static void script(const char *text)
{
	char path[128];

	temp_root_put(&at, "/script", text);
	snprintf(path, sizeof(path), "%s/script", at.dir);
	setenv("FAKE_NVML", path, 1);
}

static int make(void **state)
{
	char path[128];

	at = temp_root_new();
	temp_root_put(&at, "/limits/0", "250000 1215 1095\n");
	temp_root_put(&at, "/limits/1", "250000 1215 1095\n");
	snprintf(path, sizeof(path), "%s/limits", at.dir);
	setenv("FAKE_NVML_LIMITS", path, 1);
	snprintf(root, sizeof(root), "%s/data", at.dir);
	script("gpus 2\n");
	said_all[0] = '\0';
	return 0;
}

static int end(void **state)
{
	temp_root_free(&at);
	return 0;
}

static unsigned watts(unsigned gpu)
{
	char path[128];
	unsigned mw = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/limits/%u", at.dir, gpu);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%u", &mw), 1);
	fclose(f);
	return mw / 1000;
}

static int open_limits(const char *const *uuids, unsigned n, struct record_limits **ret, struct err *err)
{
	*err = (struct err){ 0 };
	return record_limits_open(&(struct record_limits_wish){ library, root, uuids, n }, ret, err);
}

static void said(void *arg, bool failed, const char *text)
{
	size_t n = strlen(said_all);

	snprintf(said_all + n, sizeof(said_all) - n, "%d %s\n", failed, text);
}

static const struct record_limits_recovery how = { said, NULL };

/* Also before the first of them has set anything. */
static void two_at_once(void **state)
{
	static const char *const both[] = { GPU(0), GPU(1) };
	const struct record_setting s = { .name = "150W", .power_mw = 150000 };
	struct record_limits *l, *other;
	struct err err;

	assert_int_equal(open_limits(both, 2, &l, &err), 0);
	assert_int_equal(open_limits(both + 1, 1, &other, &err), -EBUSY);
	assert_non_null(strstr(err.text, "another recording"));
	assert_int_equal(record_limits_set(l, &s, &err), 0);
	assert_int_equal(watts(1), 150);
	assert_int_equal(record_limits_close(l, &err), 0);
	assert_int_equal(watts(0), 250);
	assert_int_equal(watts(1), 250);
	assert_int_equal(open_limits(both + 1, 1, &other, &err), 0);
	assert_int_equal(record_limits_close(other, &err), 0);
}

#define STARTERS 4
#define ROUNDS 25

static bool put_byte(int fd)
{
	return write(fd, "", 1) == 1;
}

/* A process that begins when told, says how that went, and ends when told: its exit status is 1 when it got the GPU. */
static pid_t starter(const int begin[2], const int done[2], const int finish[2])
{
	static const char *const list[] = { GPU(0) };
	pid_t pid = fork();

	if (pid == 0) {
		struct record_limits *l = NULL;
		struct err err;
		char byte;
		int got;

		close(begin[1]);
		close(finish[1]);
		if (read(begin[0], &byte, 1) != 0)
			_exit(3);
		got = open_limits(list, 1, &l, &err);
		if (!put_byte(done[1]) || read(finish[0], &byte, 1) != 0)
			_exit(3);
		_exit(!got ? (record_limits_close(l, &err) ? 3 : 1) : got == -EBUSY ? 0 : 3);
	}
	return pid;
}

/* In the same moment, and none has set anything yet: one of them has the GPU, the others are told. */
static void many_at_once(void **state)
{
	for (unsigned r = 0; r < ROUNDS; r++) {
		int begin[2], done[2], finish[2], status;
		unsigned owners = 0;
		pid_t pid[STARTERS];
		char byte;

		assert_int_equal(pipe2(begin, O_CLOEXEC) | pipe2(done, O_CLOEXEC) | pipe2(finish, O_CLOEXEC), 0);
		for (unsigned i = 0; i < STARTERS; i++)
			pid[i] = starter(begin, done, finish);
		close(begin[0]);
		close(begin[1]);
		for (unsigned i = 0; i < STARTERS; i++)
			assert_int_equal(read(done[0], &byte, 1), 1);
		close(finish[0]);
		close(finish[1]);
		for (unsigned i = 0; i < STARTERS; i++) {
			assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
			owners += WEXITSTATUS(status) == 1;
		}
		assert_int_equal(owners, 1);
		close(done[0]);
		close(done[1]);
	}
	assert_false(record_limits_left(root));
}

static void leave_note(void)
{
	temp_root_put(&at, "/data/_limits-1-0/limits",
		      GPU(0) " 250000 1215 1095 0 150000 0 0 0 0\n" GPU(1) " 250000 1215 1095 0 150000 0 0 0 0\n");
	temp_root_put(&at, "/limits/1", "150000 1215 1095\n");
}

/* Killed between its note and its first setting: there is nothing to put back, and no driver is needed to know that. */
static void killed_before_anything(void **state)
{
	unsigned failed;

	temp_root_put(&at, "/data/_limits-1-0/limits", GPU(0) " 0 0 0 0 0 0 0 0 0\n");
	assert_int_equal(record_limits_recover(root, "/nowhere/libnvidia-ml.so.1", &how, &failed), 1);
	assert_int_equal(failed, 0);
	temp_root_put(&at, "/data/_limits-1-0/limits", GPU(0) " 0 0 0 0 0 0 0 0 0\n");
	temp_root_put(&at, "/data/_limits-2-0/limits.new", "half");
	assert_false(record_limits_left(root));
	assert_false(fsroot_exists(at.root, "/data/_limits-1-0"));
	assert_false(fsroot_exists(at.root, "/data/_limits-2-0"));
	leave_note();
	assert_true(record_limits_left(root));
}

/* It leaves nothing that a later one would stumble over. */
static void failed_start(void **state)
{
	static const char *const list[] = { GPU(0), GPU(7) };
	struct record_limits *l;
	struct err err;
	unsigned failed;

	assert_int_equal(open_limits(list, 2, &l, &err), -ENODEV);
	assert_false(record_limits_left(root));
	assert_int_equal(record_limits_recover(root, library, &how, &failed), 0);
	assert_int_equal(open_limits(list, 1, &l, &err), 0);
	assert_int_equal(record_limits_close(l, &err), 0);
}

static void one_is_away(void **state)
{
	unsigned failed;

	leave_note();
	temp_root_put(&at, "/limits/0", "150000 1215 1095\n");
	script("gpus 2\nlost 0\n");
	assert_int_equal(record_limits_recover(root, library, &how, &failed), 1);
	assert_int_equal(failed, 1);
	assert_non_null(strstr(said_all, "1 GPU " GPU(0) ": not found"));
	assert_non_null(strstr(said_all, "0 GPU " GPU(1) ": power limit put back from 150 W to 250 W"));
	assert_int_equal(watts(0), 150);
	assert_int_equal(watts(1), 250);
	assert_true(record_limits_left(root));
	script("gpus 2\n");
	assert_int_equal(record_limits_recover(root, library, &how, &failed), 1);
	assert_int_equal(failed, 0);
	assert_int_equal(watts(0), 250);
	assert_false(record_limits_left(root));
}

/* A limit that cannot be read is taken for still set. */
static void one_does_not_tell(void **state)
{
	unsigned failed;

	leave_note();
	temp_root_put(&at, "/limits/0", "0 1215 1095\n");
	assert_int_equal(record_limits_recover(root, library, &how, &failed), 1);
	assert_int_equal(failed, 0);
	assert_int_equal(watts(0), 250);
	assert_int_equal(watts(1), 250);
}

int main(void)
{
#define IN_ROOT(f) cmocka_unit_test_setup_teardown(f, make, end)
	const struct CMUnitTest tests[] = {
		IN_ROOT(two_at_once),  IN_ROOT(many_at_once), IN_ROOT(killed_before_anything),
		IN_ROOT(failed_start), IN_ROOT(one_is_away),  IN_ROOT(one_does_not_tell)
	};
	const char *b = getenv("B");

	if (!realpath(b ? b : "build", library))
		return 1;
	strcat(library, "/gpu/libnvidia-ml.so.1");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
