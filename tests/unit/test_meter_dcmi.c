/* SPDX-License-Identifier: Apache-2.0 */
/* DCMI through the ioctls of the kernel's IPMI device. The device is a FIFO that polls as readable when a message waits, and
 * ioctl() is ours: what the driver would have done with the structures is done here, from linux/ipmi.h. */
#include <errno.h>
#include <linux/ipmi.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/clock.h"
#include "source/meter/meter_ops.h"
#include "source/meter/meters.h"

enum board { GOOD, LATE_FIRST, EVENT_FIRST, REFUSED, IDLE, SILENT, GONE, TRUNCATED };

/* now 57, smallest 56, largest 59, mean 57 W over 1000 ms, measuring; behind the completion code */
static const uint8_t reading[] = { 0x00, 0xdc, 0x39, 0x00, 0x38, 0x00, 0x3b, 0x00, 0x39, 0x00,
				   0xe3, 0x6f, 0x0a, 0x39, 0xe8, 0x03, 0x00, 0x00, 0x40 };

static atomic_int board;
static atomic_uint asked;
static long waiting[2];
static unsigned n_waiting;

static int send_command(int fd, const struct ipmi_req *r)
{
	static const uint8_t want[] = { 0xdc, 0x01, 0x00, 0x00 };
	const struct ipmi_system_interface_addr *to = (const void *)r->addr;

	if (atomic_load(&board) == GONE)
		return errno = ENODEV, -1;
	if (r->addr_len != sizeof(*to) || to->addr_type != IPMI_SYSTEM_INTERFACE_ADDR_TYPE ||
	    to->channel != IPMI_BMC_CHANNEL || r->msg.netfn != 0x2c || r->msg.cmd != 0x02 ||
	    r->msg.data_len != sizeof(want) || memcmp(r->msg.data, want, sizeof(want)) != 0)
		return errno = EINVAL, -1;
	atomic_fetch_add(&asked, 1);
	n_waiting = 0;
	if (atomic_load(&board) == SILENT)
		return 0;
	if (atomic_load(&board) == LATE_FIRST || atomic_load(&board) == EVENT_FIRST)
		waiting[n_waiting++] = atomic_load(&board) == LATE_FIRST ? r->msgid - 1 : -1;
	waiting[n_waiting++] = r->msgid;
	return write(fd, "xx", n_waiting) == (ssize_t)n_waiting ? 0 : -1;
}

static int receive(int fd, struct ipmi_recv *r)
{
	uint8_t answer[sizeof(reading)];
	size_t n = sizeof(answer);
	char one;

	if (read(fd, &one, 1) != 1)
		return -1;
	memcpy(answer, reading, sizeof(answer));
	r->msgid = waiting[0];
	r->recv_type = r->msgid < 0 ? IPMI_ASYNC_EVENT_RECV_TYPE : IPMI_RESPONSE_RECV_TYPE;
	waiting[0] = waiting[1];
	if (--n_waiting || r->msgid < 0)
		answer[2] = 99; /* not the one that was asked for */
	if (atomic_load(&board) == REFUSED)
		answer[0] = 0xc1, n = 1; /* invalid command */
	if (atomic_load(&board) == IDLE)
		answer[18] = 0;
	if (n > r->msg.data_len)
		n = r->msg.data_len;
	memcpy(r->msg.data, answer, n);
	r->msg.data_len = (unsigned short)n;
	if (atomic_load(&board) == TRUNCATED)
		return errno = EMSGSIZE, -1;
	return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (request == IPMICTL_SEND_COMMAND)
		return send_command(fd, arg);
	if (request == IPMICTL_RECEIVE_MSG_TRUNC)
		return receive(fd, arg);
	return errno = ENOTTY, -1;
}

struct fixture {
	struct fsroot *root;
	struct schema schema;
	struct meters *m;
	struct meter_cursor c;
	char path[64];
};

static void start(struct fixture *f, int first)
{
	struct meter_config c = { .type = (char *)"dcmi", .device = f->path, .pace_ns = 20 * NS_PER_MS };
	struct err err = { 0 };

	memset(f, 0, sizeof(*f));
	snprintf(f->path, sizeof(f->path), "/tmp/jouled-ipmi-%d", (int)getpid());
	unlink(f->path);
	assert_int_equal(mkfifo(f->path, 0600), 0);
	atomic_store(&board, first);
	assert_int_equal(fsroot_open("/", &f->root), 0);
	assert_int_equal(meters_open(f->root, &(struct meters_config){ &c, 1 }, &f->schema, &f->m, &err), 0);
	meters_cursor(f->m, &f->c);
	assert_int_equal(meters_start(f->m), 0);
}

static void finish(struct fixture *f)
{
	meters_close(f->m);
	fsroot_close(f->root);
	unlink(f->path);
}

static bool next(struct fixture *f, struct meter_sample *ret)
{
	uint64_t until = clock_mono_ns() + 30 * NS_PER_S;

	for (; clock_mono_ns() < until; usleep(2000))
		if (meters_next(f->m, &f->c, ret))
			return true;
	return false;
}

static bool warned(struct fixture *f, const char *part)
{
	uint64_t until = clock_mono_ns() + 30 * NS_PER_S;
	char text[256];

	for (; clock_mono_ns() < until; usleep(2000))
		while (meters_next_warning(f->m, text, sizeof(text)))
			if (strstr(text, part))
				return true;
	return false;
}

/* 57 W, whatever else waits in the queue. */
static void answers(void **state)
{
	static const int boards[] = { GOOD, LATE_FIRST, EVENT_FIRST, TRUNCATED };
	struct meter_sample s;
	struct fixture f;

	for (size_t i = 0; i < sizeof(boards) / sizeof(boards[0]); i++) {
		start(&f, boards[i]);
		for (unsigned k = 0; k < 3; k++) {
			assert_true(next(&f, &s));
			assert_int_equal(s.power_uw, 57000000);
			assert_int_equal(s.channel, 0);
		}
		finish(&f);
	}
}

/* No value, and why. */
static void refuses(void **state)
{
	static const struct {
		int board;
		const char *said;
	} boards[] = {
		{ REFUSED, "may have no DCMI" },
		{ IDLE, "does not measure its power" },
		{ GONE, "No such device" },
	};
	struct meter_sample s;
	struct fixture f;

	for (size_t i = 0; i < sizeof(boards) / sizeof(boards[0]); i++) {
		start(&f, boards[i].board);
		assert_true(warned(&f, boards[i].said));
		assert_false(meters_next(f.m, &f.c, &s));
		atomic_store(&board, GOOD);
		assert_true(warned(&f, "answers again"));
		assert_true(next(&f, &s));
		assert_int_equal(s.power_uw, 57000000);
		finish(&f);
	}
}

/* A controller that does not answer holds nobody up at the end. */
static void silent(void **state)
{
	uint64_t begun, until = clock_mono_ns() + 30 * NS_PER_S;
	struct fixture f;

	atomic_store(&asked, 0);
	start(&f, SILENT);
	while (!atomic_load(&asked) && clock_mono_ns() < until)
		usleep(1000);
	begun = clock_mono_ns();
	finish(&f);
	assert_true(clock_mono_ns() - begun < 4 * NS_PER_S); /* it would wait for five */
}

/* A board that measures and tells 0 W has no value. */
static void zero(void **state)
{
	uint8_t answer[sizeof(reading)];
	int64_t uw = -1;

	memcpy(answer, reading, sizeof(answer));
	assert_int_equal(meter_dcmi_decode(answer, sizeof(answer), &uw), 0);
	assert_int_equal(uw, 57000000);
	answer[2] = 0;
	assert_int_equal(meter_dcmi_decode(answer, sizeof(answer), &uw), -ENODATA);
	answer[3] = 1;
	assert_int_equal(meter_dcmi_decode(answer, sizeof(answer), &uw), 0);
	assert_int_equal(uw, 256000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(answers), cmocka_unit_test(refuses),
					    cmocka_unit_test(zero), cmocka_unit_test(silent) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
