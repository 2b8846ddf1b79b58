/* SPDX-License-Identifier: Apache-2.0 */
/* Meters that lie, flood, fall silent in part or leave children behind: the right value, or none and a word about it. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
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
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>
#include "meter_fixture.h"

#define OK_HEAD "HTTP/1.1 200 OK\r\nConnection: close\r\n"
#define GOOD "{\"meters\":[{\"power\":99,\"is_valid\":false},{\"power\":7,\"is_valid\":true}]}"

/* The plug's answer now, whole, and its answer to /trap, which no client may ask for. */
static struct {
	int fd;
	pthread_t thread;
	atomic_bool stop;
	atomic_uint trapped;
	pthread_mutex_t lock;
	char text[70000];
	size_t n;
} far;

/* Both, in any order. */
static bool warned_both(struct fixture *f, const char *one, const char *other)
{
	uint64_t until = clock_mono_ns() + 60 * NS_PER_S;
	unsigned seen = 0;
	char text[256];

	for (; clock_mono_ns() < until && seen != 3; usleep(10000))
		while (meters_next_warning(f->m, text, sizeof(text)))
			seen |= strstr(text, one) ? 1 : strstr(text, other) ? 2 : 0;
	return seen == 3;
}

static void say(const void *text, size_t n)
{
	pthread_mutex_lock(&far.lock);
	memcpy(far.text, text, n);
	far.n = n;
	pthread_mutex_unlock(&far.lock);
}

static void say_text(const char *head, const char *body)
{
	char all[4096];

	snprintf(all, sizeof(all), "%s\r\n%s", head, body);
	say(all, strlen(all));
}

static void serve(int fd)
{
	static const char trap[] = OK_HEAD "\r\n{\"meters\":[{\"power\":666},{\"power\":666}]}";
	char request[1024];
	ssize_t n = read(fd, request, sizeof(request) - 1);

	if (n <= 0)
		return;
	request[n] = '\0';
	if (strstr(request, "/trap")) {
		atomic_fetch_add(&far.trapped, 1);
		n = write(fd, trap, sizeof(trap) - 1);
		return;
	}
	pthread_mutex_lock(&far.lock);
	n = write(fd, far.text, far.n);
	pthread_mutex_unlock(&far.lock);
}

static void *plug_side(void *arg)
{
	(void)arg;
	while (!atomic_load(&far.stop)) {
		struct pollfd p = { .fd = far.fd, .events = POLLIN };
		int fd = poll(&p, 1, 50) > 0 ? accept4(far.fd, NULL, NULL, SOCK_CLOEXEC) : -1;

		if (fd < 0)
			continue;
		serve(fd);
		close(fd);
	}
	return NULL;
}

/* 8 MiB of blanks around an answer, in a few KiB. */
static void say_bomb(void)
{
	static const char head[] = OK_HEAD "Content-Encoding: gzip\r\n\r\n";
	static unsigned char out[60000];
	size_t len = 8u << 20;
	char *blank = malloc(len);
	z_stream z = { 0 };

	assert_non_null(blank);
	memset(blank, ' ', len);
	memcpy(blank, "{\"meters\":[{\"power\":666},{\"power\":666}]}", 40);
	memcpy(out, head, sizeof(head) - 1);
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (unsigned char *)blank;
	z.avail_in = (unsigned)len;
	z.next_out = out + sizeof(head) - 1;
	z.avail_out = sizeof(out) - sizeof(head);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	free(blank);
	say(out, (size_t)(z.next_out - out));
}

/* Each is told, gives no value, and is over when the plug is itself again. */
static void hostile(void **state)
{
	static const char *const answers[][2] = {
		{ "HTTP/1.1 302 Found\r\nLocation: /trap\r\nConnection: close\r\nContent-Length: 0\r\n", "" },
		{ OK_HEAD "Transfer-Encoding: chunked\r\n",
		  "zz\r\n{\"meters\":[{\"power\":666},{\"power\":666}]}\r\n0\r\n\r\n" },
		{ OK_HEAD "Transfer-Encoding: chunked\r\n", "28\r\n{\"meters\":[{\"power\":666},{\"power\":666}]}" },
		{ OK_HEAD "Content-Length: 1000\r\n", "{\"meters\":[{\"power\":666},{\"power\":666}]}" },
		{ OK_HEAD "Content-Length: 39\r\nContent-Length: 2\r\n",
		  "{\"meters\":[{\"power\":NaN},{\"power\":1e308}]}" },
		{ OK_HEAD, "{\"meters\":[{\"power\":1e308},{\"power\":-1e13}]}" },
		{ OK_HEAD, "{\"meters\":[{\"power\":1},{\"power\":2},{\"power\":3}]}" },
		{ "HTTP/1.1 500 Oops\r\nConnection: close\r\n", "{\"meters\":[{\"power\":666},{\"power\":666}]}" },
		{ "\x16\x03\x01\x02", "" },
	};
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	const size_t n = sizeof(answers) / sizeof(answers[0]);
	struct meter_config c = { .type = (char *)"shelly", .pace_ns = 10 * NS_PER_MS };
	socklen_t len = sizeof(a);
	struct meter_sample s;
	struct fixture f;
	char url[64];

	signal(SIGPIPE, SIG_IGN);
	pthread_mutex_init(&far.lock, NULL);
	far.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(far.fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(far.fd, 8), 0);
	assert_int_equal(getsockname(far.fd, (struct sockaddr *)&a, &len), 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", ntohs(a.sin_port));
	c.url = url;
	say_text(OK_HEAD, GOOD);
	pthread_create(&far.thread, NULL, plug_side, NULL);
	start(&f, &c, 1);
	for (size_t i = 0; i <= n; i++) {
		for (unsigned k = 0; k < 3; k++) {
			assert_true(next(&f, &s, 60));
			assert_int_equal(s.channel, 1); /* the first one's measurement failed */
			assert_int_equal(s.power_uw, 7000000);
		}
		if (i == n)
			say_bomb();
		else
			say_text(answers[i][0], answers[i][1]);
		assert_true(warned(&f, "meter 0 (shelly): ", 60));
		while (meters_next(f.m, &f.c, &s))
			assert_int_equal(s.power_uw, 7000000);
		say_text(OK_HEAD, GOOD);
		assert_true(warned(&f, "answers again", 60));
	}
	assert_int_equal(atomic_load(&far.trapped), 0);
	finish(&f);
	atomic_store(&far.stop, true);
	pthread_join(far.thread, NULL);
	close(far.fd);
}

/* As fast as it can: what is taken is bounded, and whoever else is there keeps its place. */
static void flood(void **state)
{
	char *yes[] = { (char *)"yes", (char *)"d0c0=5" };
	struct meter_config c = { .type = (char *)"command", .command = { yes, 2 } };
	struct meter_sample s;
	struct fixture f;
	uint64_t begun, n = 0;

	start(&f, &c, 1);
	assert_true(next(&f, &s, 60));
	begun = clock_mono_ns();
	while (meters_next(f.m, &f.c, &s)) /* what is from before */
		;
	for (; clock_mono_ns() < begun + NS_PER_S; usleep(10000))
		while (meters_next(f.m, &f.c, &s)) {
			assert_int_equal(s.power_uw, 5000000);
			n++;
		}
	/* a value every 20 ms, for as long as that second really was */
	assert_true(n >= 1 && n <= (clock_mono_ns() - begun) / (15 * NS_PER_MS));
	assert_int_equal(f.c.missed, 0);
	finish(&f);
}

/* A process that a meter's program started in its group ends with it, even if it ignores the signal. */
static void orphans(void **state)
{
	char path[] = "/tmp/jouled-orphan-XXXXXX", script[256];
	char *words[] = { (char *)"sh", (char *)"-c", script };
	struct meter_config c = { .type = (char *)"command", .command = { words, 3 } };
	uint64_t until;
	struct meter_sample s;
	struct fixture f;
	FILE *file;
	int pid = 0, fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	snprintf(script, sizeof(script), "(trap '' TERM; exec sleep 300) >/dev/null & echo $! >%s; echo d0c0=1; wait",
		 path);
	start(&f, &c, 1);
	assert_true(next(&f, &s, 60));
	file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d", &pid), 1);
	fclose(file);
	assert_int_equal(kill(pid, 0), 0);
	finish(&f);
	for (until = clock_mono_ns() + 10 * NS_PER_S; kill(pid, 0) == 0 && clock_mono_ns() < until;) {
		char stat[64], text[256] = "";

		snprintf(stat, sizeof(stat), "/proc/%d/stat", pid);
		file = fopen(stat, "re");
		if (!file || !fgets(text, sizeof(text), file) || strstr(text, ") Z "))
			pid = 0; /* dead; whoever inherits it may wait for it late */
		if (file)
			fclose(file);
		if (!pid)
			break;
		usleep(10000);
	}
	assert_true(!pid || (kill(pid, 0) != 0 && errno == ESRCH));
	unlink(path);
}

static struct reading_domain take(struct fixture *f, unsigned domain)
{
	f->r.mono_ns = clock_mono_ns();
	usleep(20000);
	meters_read(f->m, &f->r);
	return f->r.domains[domain];
}

/* One of two channels falls silent, a FIFO has nobody who writes. */
static void silence(void **state)
{
	char path[] = "/tmp/jouled-silent-XXXXXX";
	char *words[] = { (char *)"sh", (char *)"-c",
			  (char *)"echo d0c0=1 d0c1=2; while :; do echo d0c0=1; sleep 0.1; done" };
	struct meter_config c[] = { { .type = (char *)"command", .command = { words, 3 } },
				    { .type = (char *)"fifo", .device = path } };
	struct reading_domain a, b;
	struct fixture f;
	uint64_t until;

	assert_non_null(mkdtemp(path));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	start(&f, c, 2);
	assert_true(warned_both(&f, "meter 0 (command): d0c1 has no value; the energy of the meter is partial",
				"meter 1 (fifo): it has not said a value yet"));
	a = take(&f, 0);
	for (b = a, until = clock_mono_ns() + 30 * NS_PER_S;
	     (b.errors < a.errors + 2 || b.units == a.units) && clock_mono_ns() < until;)
		b = take(&f, 0);
	assert_true(b.errors >= a.errors + 2);
	assert_true(b.units > a.units);
	a = take(&f, 1);
	assert_true(a.stale);
	assert_int_equal(a.units, 0);
	finish(&f);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile),
		cmocka_unit_test(flood),
		cmocka_unit_test(orphans),
		cmocka_unit_test(silence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
