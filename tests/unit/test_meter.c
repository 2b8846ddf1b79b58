/* SPDX-License-Identifier: Apache-2.0 */
/* Meters on their threads: a serial one behind a pseudo-terminal, a plug on loopback, a program, a FIFO. Each is also
 * what it should not be: silent, short, slow, false. Never a number that was not said. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>
#include <math.h>
#include <cmocka.h>
#include "meter_fixture.h"

enum fault { NONE, BAD_SUM, SHORT, SILENT, SLOW, HUGE_ANSWER, NONSENSE, REFUSED };

/* The other end. */
static struct {
	int fd;
	pthread_t thread;
	atomic_int fault;
	atomic_bool stop;
	atomic_uint watts10;
	atomic_int interval;
	atomic_bool in_answer; /* a slow one */
} far;

/* The meter is known not to answer. What is there is from before, and nothing comes. */
static void silent_for(struct fixture *f, unsigned ms)
{
	struct meter_sample s;

	while (meters_next(f->m, &f->c, &s))
		;
	usleep(ms * 1000);
	assert_false(meters_next(f->m, &f->c, &s));
}

static void answer(void)
{
	uint8_t a[11] = { 0x06, 0x0b, 0, 0, 0, 0, 0x39, 0x30, 0, 0, 0 }; /* channel 1: 123.45 W */
	unsigned counts = atomic_load(&far.watts10) * 10;
	size_t n = sizeof(a);

	for (unsigned i = 0; i < 4; i++)
		a[2 + i] = (uint8_t)(counts >> 8 * i);
	for (unsigned i = 0; i < 10; i++)
		a[10] = (uint8_t)(a[10] + a[i]);
	if (far.fault == BAD_SUM)
		a[10]++;
	if (far.fault == SHORT)
		n = 6;
	if (far.fault != SILENT)
		assert_int_equal(write(far.fd, a, n), n);
}

static void *serial_side(void *arg)
{
	static const uint8_t ask[] = { 0xa5, 0x08, 0x41, 0x00, 0x16, 0x4e, 0x08, 0x5a };
	static const uint8_t set[] = { 0xa5, 0x0a, 0x41, 0x00, 0xa8, 0x4d, 0x02 };
	uint8_t got[64], *at;
	size_t have = 0;

	while (!atomic_load(&far.stop)) {
		struct pollfd p = { .fd = far.fd, .events = POLLIN };
		ssize_t n = poll(&p, 1, 50) > 0 ? read(far.fd, got + have, sizeof(got) - have) : 0;

		have += n > 0 ? (size_t)n : 0;
		at = memmem(got, have, set, sizeof(set));
		/* the accumulation interval: a frame with two bytes for the register at 0xa8; who is late finds more behind it */
		if (at && got + have >= at + 10 && at[8] == 0 && at[9] == (uint8_t)(0xe7 + at[7])) {
			atomic_store(&far.interval, at[7]);
			have = (size_t)(got + have - (at + 10));
			memmove(got, at + 10, have);
			assert_int_equal(write(far.fd, "\x06", 1), 1);
		}
		if (have >= sizeof(ask) && memcmp(got + have - sizeof(ask), ask, sizeof(ask)) == 0) {
			have = 0;
			answer();
		} else if (have == sizeof(got)) {
			have = 0;
		}
	}
	return NULL;
}

static void serial(void **state)
{
	struct meter_config c = { .type = (char *)"serial" };
	struct meter_sample s;
	struct fixture f;
	char name[64];
	int slave;

	assert_int_equal(openpty(&far.fd, &slave, name, NULL, NULL), 0);
	far.fault = NONE;
	atomic_store(&far.interval, -1);
	atomic_store(&far.stop, false);
	atomic_store(&far.watts10, 2500);
	pthread_create(&far.thread, NULL, serial_side, NULL);
	c.device = name;
	start(&f, &c, 1);
	for (unsigned i = 0; i < 40; i++) {
		assert_true(next(&f, &s, 10));
		assert_int_equal(s.power_uw, s.channel ? 123450000 : 250000000);
		assert_int_equal(s.device, 0);
	}
	assert_int_equal(atomic_load(&far.interval), 0); /* one cycle: the pace is 20 ms */
	for (int fault = BAD_SUM; fault <= SILENT; fault++) {
		atomic_store(&far.fault, fault);
		assert_true(warned(&f,
				   fault == BAD_SUM ? "wrong checksum" :
				   fault == SHORT   ? "short answer" :
						      "no answer",
				   40));
		silent_for(&f, 500);
		atomic_store(&far.fault, NONE);
		assert_true(warned(&f, "answers again", 40));
		assert_true(next(&f, &s, 10));
		assert_int_equal(s.power_uw, s.channel ? 123450000 : 250000000);
	}
	f.r.mono_ns = clock_mono_ns();
	meters_read(f.m, &f.r);
	assert_true(f.r.domains[0].units > 0);
	assert_false(f.r.domains[0].stale);
	finish(&f);
	atomic_store(&far.stop, true);
	pthread_join(far.thread, NULL);
	close(far.fd);
	close(slave);
}

static void serve_one(int fd)
{
	char request[1024], body[256], head[128];
	ssize_t n = read(fd, request, sizeof(request) - 1);
	int len;

	if (n <= 0)
		return;
	request[n] = '\0';
	snprintf(body, sizeof(body), "{\"StatusSNS\":{\"ENERGY\":{\"Power\":%u}}}", atomic_load(&far.watts10) / 10);
	if (far.fault == NONSENSE)
		snprintf(body, sizeof(body), "{\"StatusSNS\":{\"ENERGY\":{\"Power\":\"a lot\"}}}");
	if (far.fault == SILENT)
		return;
	len = snprintf(head, sizeof(head), "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
		       far.fault == REFUSED ? "401 Unauthorized" : "200 OK",
		       far.fault == HUGE_ANSWER ? (size_t)1 << 30 : strlen(body));
	if (write(fd, head, (size_t)len) != len)
		return;
	for (unsigned i = 0; far.fault == HUGE_ANSWER && i < 4096; i++)
		if (write(fd, request, (size_t)n) < 0)
			return;
	if (far.fault == SLOW)
		atomic_store(&far.in_answer, true);
	for (unsigned i = 0; far.fault == SLOW && i < 200 && !atomic_load(&far.stop); i++)
		usleep(50000); /* ten seconds within an answer */
	if (write(fd, body, strlen(body)) < 0)
		return;
}

static void *plug_side(void *arg)
{
	while (!atomic_load(&far.stop)) {
		struct pollfd p = { .fd = far.fd, .events = POLLIN };
		int fd = poll(&p, 1, 50) > 0 ? accept4(far.fd, NULL, NULL, SOCK_CLOEXEC) : -1;

		if (fd < 0)
			continue;
		serve_one(fd);
		close(fd);
	}
	return NULL;
}

static void plug(void **state)
{
	static const struct {
		int fault;
		const char *said;
	} faults[] = {
		{ NONSENSE, "no power in its answer (status 200)" },
		{ REFUSED, "no power in its answer (status 401)" },
		{ HUGE_ANSWER, "longer than 65536 bytes" },
		{ SILENT, "" },
	};
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(a);
	struct meter_config c = { .type = (char *)"tasmota", .pace_ns = 20 * NS_PER_MS };
	struct meter_sample s;
	struct fixture f;
	uint64_t begun;
	char url[64];

	signal(SIGPIPE, SIG_IGN);
	far.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(far.fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(far.fd, 8), 0);
	assert_int_equal(getsockname(far.fd, (struct sockaddr *)&a, &len), 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/", ntohs(a.sin_port));
	c.url = url;
	far.fault = NONE;
	atomic_store(&far.stop, false);
	atomic_store(&far.watts10, 420);
	pthread_create(&far.thread, NULL, plug_side, NULL);
	start(&f, &c, 1);
	assert_true(next(&f, &s, 10));
	assert_int_equal(s.power_uw, 42000000);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		atomic_store(&far.fault, faults[i].fault);
		assert_true(warned(&f, faults[i].said, 40));
		silent_for(&f, 300);
		atomic_store(&far.fault, NONE);
		assert_true(warned(&f, "answers again", 40));
	}
	/* in the middle of an answer that does not come, it ends at once */
	atomic_store(&far.fault, SLOW);
	for (unsigned i = 0; i < 6000 && !atomic_load(&far.in_answer); i++)
		usleep(10000);
	assert_true(atomic_load(&far.in_answer));
	silent_for(&f, 300);
	begun = clock_mono_ns();
	finish(&f);
	assert_true(clock_mono_ns() - begun < 4 * NS_PER_S);
	atomic_store(&far.stop, true);
	pthread_join(far.thread, NULL);
	close(far.fd);
}

static void command(void **state)
{
	char *words[] = { (char *)"sh", (char *)"-c",
			  (char *)"echo hello; while :; do echo d0c0=12.5 d1c2=3; sleep 0.05; done" };
	char *ends[] = { (char *)"sh", (char *)"-c", (char *)"echo d0c0=1; exit 3" },
	     *none[] = { (char *)"/nowhere/meter" };
	struct meter_config c[] = { { .type = (char *)"command", .command = { words, 3 } },
				    { .type = (char *)"command", .command = { none, 1 } },
				    { .type = (char *)"command", .command = { ends, 3 } } };
	struct meter_sample s;
	struct meter_desc d;
	struct fixture f;
	unsigned seen = 0;

	start(&f, c, 3);
	while (seen != 7) {
		assert_true(next(&f, &s, 10));
		if (s.device == 0 && s.channel == 0 && s.power_uw == 12500000)
			seen |= 1;
		else if (s.device == 1 && s.channel == 2 && s.power_uw == 3000000)
			seen |= 2;
		else if (s.device == 2 && s.channel == 0 && s.power_uw == 1000000)
			seen |= 4;
		else
			fail();
	}
	assert_true(warned(&f, "meter 2 (command): sh: it ended", 10));
	assert_int_equal(meters_channels(f.m), 3);
	meters_desc(f.m, 1, &d);
	assert_int_equal(d.device * 10 + d.channel, 12);
	finish(&f);
}

/* One that ends each time without a word never answers. */
static void mute(void **state)
{
	char *words[] = { (char *)"sh", (char *)"-c", (char *)"sleep 0.4" };
	struct meter_config c = { .type = (char *)"command", .command = { words, 3 } };
	struct fixture f;

	start(&f, &c, 1);
	assert_true(warned(&f, "sh: it ended", 20));
	assert_false(warned(&f, "again;", 4));
	finish(&f);
}

static void fifo(void **state)
{
	char path[] = "/tmp/jouled-fifo-XXXXXX", line[8192];
	struct meter_config c = { .type = (char *)"fifo", .device = path };
	struct meter_sample s;
	struct fixture f;
	int fd;

	assert_non_null(mktemp(path));
	assert_int_equal(mkfifo(path, 0600), 0);
	start(&f, &c, 1);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	/* a line that never ends, and one with a value behind it that belongs to it */
	memset(line, 'x', sizeof(line));
	memcpy(line + sizeof(line) - 9, " d0c0=7\n", 8);
	assert_int_equal(write(fd, line, sizeof(line) - 1), sizeof(line) - 1);
	assert_int_equal(write(fd, "d0c", 3), 3);
	usleep(100000);
	assert_int_equal(write(fd, "1=5\n", 4), 4);
	close(fd);
	assert_true(next(&f, &s, 10));
	assert_int_equal(s.channel, 1);
	assert_int_equal(s.power_uw, 5000000);
	silent_for(&f, 100);
	finish(&f);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(serial), cmocka_unit_test(plug), cmocka_unit_test(command),
		cmocka_unit_test(mute),   cmocka_unit_test(fifo),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
