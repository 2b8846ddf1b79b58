/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of joulectl record: settings, marks, answers about devices. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/experiment/device_rows.h"
#include "ctl/experiment/limits.h"
#include "ctl/experiment/marks.h"

static void settings(void **state)
{
	static const char *const bad[] = { "", "0", "0W", "W", "1.5W", "-5", "+5", "0x10", "150w", "100000" };
	struct record_setting s = { 0 }, list[RECORD_SETTINGS_MAX];
	struct err err;
	unsigned n = 0;

	assert_int_equal(record_setting_power("150", &s, &err), 0);
	assert_string_equal(s.name, "150W");
	assert_int_equal(s.power_mw, 150000);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(record_setting_power(bad[i], &s, &err), -EINVAL);
	assert_int_equal(record_setting_clocks("877MHz,1065MHz", &s, &err), 0);
	assert_string_equal(s.name, "877MHz,1065MHz");
	assert_int_equal(s.mem_mhz, 877);
	assert_int_equal(s.gpu_mhz, 1065);
	assert_int_equal(record_setting_clocks("877", &s, &err), -EINVAL);
	assert_int_equal(record_setting_clocks("877,", &s, &err), -EINVAL);
	assert_int_equal(record_settings_sweep(" 100W 150;200W ", list, &n, &err), 0);
	assert_int_equal(n, 3);
	assert_string_equal(list[2].name, "200W");
	assert_int_equal(record_settings_sweep("877,1065 877,1222", list, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_string_equal(list[1].name, "877MHz,1222MHz");
	assert_int_equal(list[1].power_mw, 0);
	assert_int_equal(record_settings_sweep("100W x", list, &n, &err), -EINVAL);
	assert_int_equal(record_settings_sweep(" ", list, &n, &err), -EINVAL);
}

static int judge(struct record_marks *m, const char *line, struct record_mark *ret)
{
	struct err err = { 0 };
	int code = record_mark_parse(line, ret, &err);

	return code ? code : record_marks_judge(m, ret, 2000, &err);
}

/* Numbers are ours where none is given; what the reader of the format would stumble over is refused. */
static void marks(void **state)
{
	struct record_marks m = { .fd = -1 };
	struct record_mark k;

	record_marks_begin(&m, 1000);
	assert_int_equal(judge(&m, "train_begin", &k), 0);
	assert_int_equal(k.data, 0);
	assert_int_equal(k.time_ns, 2000);
	assert_int_equal(judge(&m, "epoch_end", &k), -EINVAL);
	assert_int_equal(judge(&m, "epoch_begin 1", &k), -EINVAL);
	assert_int_equal(judge(&m, "epoch_begin 0 1500", &k), 0);
	assert_int_equal(k.time_ns, 1500);
	assert_int_equal(judge(&m, "epoch_begin", &k), -EINVAL);
	assert_int_equal(judge(&m, "epoch_end 1", &k), -EINVAL);
	assert_int_equal(judge(&m, "epoch_end -", &k), 0);
	assert_int_equal(k.data, 0);
	assert_int_equal(judge(&m, "epoch_begin 0", &k), -EINVAL);
	assert_int_equal(judge(&m, "epoch_begin", &k), 0);
	assert_int_equal(k.data, 1);
	assert_int_equal(judge(&m, "batch_end 41", &k), 0);
	assert_int_equal(k.data, 41);
	assert_int_equal(judge(&m, "batch_end 1 999", &k), -EINVAL);
	assert_int_equal(judge(&m, "batch_end 1 2001", &k), -EINVAL);
	assert_int_equal(judge(&m, "batch_end -1", &k), -EINVAL);
	assert_int_equal(judge(&m, "batch_end 1 2 3", &k), -EINVAL);
	assert_int_equal(judge(&m, "experiment_begin", &k), -EINVAL);
	assert_int_equal(judge(&m, "", &k), -EINVAL);
	record_marks_begin(&m, 1000);
	assert_int_equal(judge(&m, "epoch_begin 0 1800", &k), 0);
	assert_int_equal(judge(&m, "epoch_end 0 1700", &k), 0); /* the clock was set back */
	assert_int_equal(k.time_ns, 1800);
}

static struct record_mark taken[4];
static unsigned n_taken, n_told;

static void on_mark(void *arg, const struct record_mark *mark)
{
	assert_true(n_taken < 4);
	taken[n_taken++] = *mark;
}

static void on_told(void *arg, const char *why)
{
	n_told++;
}

/* A last line without its end, and an epoch without one. */
static void marks_end(void **state)
{
	struct record_marks m = { .fd = -1 };
	struct record_mark k;
	int fds[2];
	int64_t end;

	record_marks_begin(&m, 1000);
	assert_int_equal(judge(&m, "epoch_begin", &k), 0);
	assert_int_equal(judge(&m, "epoch_end", &k), 0);
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	m.fd = fds[0];
	assert_int_equal(write(fds[1], "batch_end 4\nepoch_begin", 23), 23);
	end = record_marks_end(&m, on_mark, on_told, NULL);
	assert_int_equal(n_taken, 3);
	assert_int_equal(n_told, 1);
	assert_string_equal(taken[1].event, "epoch_begin");
	assert_string_equal(taken[2].event, "epoch_end");
	assert_int_equal(taken[2].data, 1);
	assert_int_equal(m.closed, 1);
	assert_true(taken[1].time_ns <= end && taken[2].time_ns == end);
	close(fds[1]);
	close(fds[0]);
}

/* Somebody writes without end, and rubbish: a part of it at a time, and some of it is told. */
static void marks_flood(void **state)
{
	struct record_marks m = { .fd = -1 };
	char block[4096];

	memset(block, 'x', sizeof(block));
	for (size_t i = 63; i < sizeof(block); i += 64)
		block[i] = '\n';
	record_marks_begin(&m, 1000);
	m.fd = memfd_create("marks", MFD_CLOEXEC);
	for (unsigned i = 0; i < 512; i++)
		assert_int_equal(write(m.fd, block, sizeof(block)), sizeof(block));
	assert_int_equal(lseek(m.fd, 0, SEEK_SET), 0);
	n_told = 0;
	record_marks_read(&m, on_mark, on_told, NULL);
	assert_int_equal(lseek(m.fd, 0, SEEK_CUR), 1 << 20);
	assert_int_equal(m.refused, (1 << 20) / 64);
	assert_int_equal(n_told, 21);
	close(m.fd);
}

static unsigned rows, samples, meters;
static struct gpu_row last_row;

static void on_row(void *arg, const struct gpu_row *row)
{
	rows++;
	last_row = *row;
}

static void on_sample(void *arg, const struct gpu_sample *s)
{
	samples++;
	assert_int_equal(s->value, 100000);
	assert_true(s->polled);
}

static void on_meter(void *arg, const struct meter_sample *s)
{
	meters++;
	assert_int_equal(s->power_uw, -5);
}

static int parse(const char *text, struct record_devices *d)
{
	const struct record_devices_take take = { on_row, on_sample, on_meter, NULL };

	return record_devices_parse_samples(text, strlen(text), d, &take, NULL);
}

static void device_samples(void **state)
{
	static const char *const bad[] = {
		"row 0 1",
		"row 0 1 128\n",
		"row 0 1 128 5 6\n",
		"row 0 1 999999 1\n",
		"row 0  1 128 5\n",
		"row 0 1 128 x\n",
		"sample 0 3 1 1 1\n",
		"meter 10 0 1 1\n",
		"next 1 2 3\n",
		"nonsense\n",
		" \n",
		"row 0 1 128 99999999999999999999\n",
		"row 0 1 128 \n5\n",
		"row 0 1 128 \t5\n",
	};
	struct record_devices d = { 0 };

	assert_int_equal(
		parse("row 1 1795313480123456789 136 -3 8\nsample 0 0 1795313480123456 100000 1\nmeter 9 9 5 -5\n"
		      "next 7 8 9 2\n",
		      &d),
		0);
	assert_int_equal(rows, 1);
	assert_int_equal(samples, 1);
	assert_int_equal(meters, 1);
	assert_int_equal(last_row.gpu, 1);
	assert_int_equal(last_row.v[3], -3);
	assert_int_equal(last_row.v[7], 8);
	assert_int_equal(d.rows, 7);
	assert_int_equal(d.meters, 9);
	assert_int_equal(d.missed, 2);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse(bad[i], &d), -EBADMSG);
	assert_int_equal(rows, 1);
}

static void device_list(void **state)
{
	static const char text[] =
		"{\"gpus\":[{\"gpu\":1,\"vendor\":\"nvidia\",\"name\":\"X\",\"uuid\":\"GPU-1\",\"fields\":129,\"rings\":7,"
		"\"cuda_version\":12020}],\"channels\":[{\"device\":1,\"channel\":2,\"type\":\"serial\",\"label\":\"y\"}],\"rows\":5}";
	struct record_devices d;

	assert_int_equal(record_devices_parse(text, strlen(text), &d, NULL), 0);
	assert_int_equal(d.n_gpus, 1);
	assert_string_equal(d.gpu[0].uuid, "GPU-1");
	assert_int_equal(d.gpu[0].fields, 129);
	assert_int_equal(d.channel[0].channel, 2);
	assert_int_equal(d.rows, 5);
	assert_int_equal(record_devices_parse("{}", 2, &d, NULL), -EBADMSG);
	assert_int_equal(record_devices_parse("x", 1, &d, NULL), -EBADMSG);
}

/* A recorder that has made the FIFO in dir and waits to be killed. */
static pid_t recorder_in(const char *dir, const int told[2])
{
	struct record_marks m;
	pid_t pid = fork();

	if (pid == 0) {
		close(told[0]);
		if (record_marks_open(&m, dir, NULL) != 0 || write(told[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(1);
	}
	return pid;
}

/* The command of a recording that was killed goes on: what it writes is taken, and who comes later is not held up. Old
 * were: a broken pipe, and a wait without end. */
static void marks_of_the_killed(void **state)
{
	char dir[] = "/tmp/jouled-marks-XXXXXX", path[64], byte, block[4096];
	int told[2], fd, later, status;
	pid_t pid;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/mark", dir);
	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	pid = recorder_in(dir, told);
	assert_int_equal(read(told[0], &byte, 1), 1);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	signal(SIGPIPE, SIG_IGN);
	alarm(60); /* a bound against hanging */
	memset(block, '\n', sizeof(block));
	for (unsigned i = 0; i < 100; i++) /* more than a pipe holds */
		assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
	later = open(path, O_WRONLY | O_CLOEXEC); /* before or after it was removed */
	assert_true(later >= 0 || errno == ENOENT);
	if (later >= 0)
		close(later);
	while (access(path, F_OK) == 0)
		usleep(1000);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
	alarm(0);
	close(fd);
	close(told[0]);
	close(told[1]);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings),
		cmocka_unit_test(marks),
		cmocka_unit_test(marks_end),
		cmocka_unit_test(marks_flood),
		cmocka_unit_test(marks_of_the_killed),
		cmocka_unit_test(device_samples),
		cmocka_unit_test(device_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
