/* SPDX-License-Identifier: Apache-2.0 */
/* A listening sink whose documents change their meaning: old readers leave, nobody mixes the two. */
#include "sink_help.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

static struct loop *loop;
static char dir[] = "/tmp/jouled-restart-XXXXXX";
static char port_file[64];

static int setup(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	snprintf(port_file, sizeof(port_file), "%s/port", dir);
	return loop_start(&loop);
}

static int teardown(void **state)
{
	loop_stop(loop);
	return rmdir(dir);
}

static struct sink *open_listener(unsigned max_clients, uint16_t *ret_port)
{
	struct sink_options o = { .port_file = port_file, .max_clients = max_clients };
	struct sink *s = open_ok("tcp-listen://127.0.0.1:0", &o, loop);
	FILE *f = fopen(port_file, "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%hu", ret_port), 1);
	fclose(f);
	return s;
}

static int dial(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void test_old_readers_leave(void **state)
{
	uint16_t port;
	struct sink *s = open_listener(0, &port);
	struct stream old = { .preamble = "OLD" }, new = { .preamble = "NEWER" };
	int a, b;

	sink_set_preamble(s, "OLD", 3);
	a = dial(port);
	assert_true(WAIT_FOR(stats_of(s).clients == 1, 2000));
	assert_int_equal(doc_submit(s, 1, 1000), 0);
	assert_true(WAIT_FOR((stream_read(&old, a), old.docs == 1), 2000));
	assert_int_equal(sink_restart(s, "NEWER", 5), 0);
	assert_int_equal(doc_submit(s, 2, 1000), 0);
	assert_true(WAIT_FOR((stream_read(&old, a), old.eof), 2000));
	assert_int_equal(old.docs, 1);
	assert_int_equal(old.len, 0); /* ended behind a whole document */
	b = dial(port);
	assert_true(WAIT_FOR(stats_of(s).clients == 1, 2000));
	assert_int_equal(doc_submit(s, 3, 1000), 0);
	assert_true(WAIT_FOR((stream_read(&new, b), new.docs == 1), 2000));
	assert_int_equal(new.last, 3);
	/* a preamble alone is no new meaning: who is there stays */
	assert_int_equal(sink_set_preamble(s, "NEWER", 5), 0);
	assert_int_equal(doc_submit(s, 4, 1000), 0);
	assert_true(WAIT_FOR((stream_read(&new, b), new.docs == 2), 2000));
	sink_close(s, 0);
	close(a);
	close(b);
	stream_free(&old);
	stream_free(&new);
}

static atomic_bool stop;

/* Dials again and again; every byte of a connection must be of one letter. */
static void *dial_on(void *arg)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(*(uint16_t *)arg) };
	uintptr_t mixed = 0;

	while (!stop) {
		uint8_t bytes[4096];
		size_t n = 0;
		ssize_t got;
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0)
			n = sizeof(bytes); /* the end */

		while (n < sizeof(bytes) && (got = read(fd, bytes + n, sizeof(bytes) - n)) > 0)
			n += (size_t)got;
		for (size_t i = 1; i < n && n < sizeof(bytes); i++)
			mixed += bytes[i] != bytes[0];
		close(fd);
	}
	return (void *)mixed;
}

/* Documents are single letters in the hundreds, their preamble the same letter. */
static void test_epochs_never_mix(void **state)
{
	uint16_t port;
	struct sink *s = open_listener(0, &port);
	pthread_t threads[4];
	uint8_t letter[100];
	void *mixed;

	sink_set_preamble(s, "A", 1);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, dial_on, &port), 0);
	for (unsigned i = 0; i < 3000; i++) {
		memset(letter, 'A' + (int)(i / 20 % 26), sizeof(letter));
		if (i % 20 == 0)
			assert_int_equal(sink_restart(s, letter, 1), 0);
		sink_submit(s, letter, sizeof(letter));
		usleep(100);
	}
	stop = true;
	sink_close(s, 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(threads[i], &mixed), 0);
		assert_ptr_equal(mixed, NULL);
	}
}

static void test_only_who_listens(void **state)
{
	struct sink *s = open_ok("null:", NULL, loop);

	assert_int_equal(sink_restart(s, "X", 1), -EOPNOTSUPP);
	sink_close(s, 0);
}

static void test_max_clients(void **state)
{
	uint16_t port;
	struct sink *s = open_listener(2, &port);
	int fd[5];

	for (unsigned i = 0; i < 5; i++)
		fd[i] = dial(port);
	assert_true(WAIT_FOR(strstr(stats_of(s).state, "3 turned away"), 5000));
	assert_int_equal(stats_of(s).clients, 2);
	for (unsigned i = 0; i < 5; i++)
		close(fd[i]);
	sink_close(s, 0);
}

/* The file of a successor stays. */
static void test_port_file_is_its_own(void **state)
{
	uint16_t port, other;
	struct sink *s = open_listener(0, &port), *next = open_listener(0, &other);

	sink_close(s, 0);
	assert_int_equal(access(port_file, F_OK), 0);
	sink_close(next, 0);
	assert_int_equal(access(port_file, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_old_readers_leave),    cmocka_unit_test(test_epochs_never_mix),
		cmocka_unit_test(test_only_who_listens),     cmocka_unit_test(test_max_clients),
		cmocka_unit_test(test_port_file_is_its_own),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
