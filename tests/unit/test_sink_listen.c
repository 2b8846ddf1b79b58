/* SPDX-License-Identifier: Apache-2.0 */
/* tcp-listen: many clients, some of which never read or leave half way. */
#include "sink_help.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/resource.h>

static struct loop *loop;
static char dir[] = "/tmp/jouled-listen-XXXXXX";
static char port_file[64];

static int setup(void **state)
{
	struct rlimit files = { 4096, 4096 };

	setrlimit(RLIMIT_NOFILE, &files);
	if (!mkdtemp(dir))
		return -1;
	snprintf(port_file, sizeof(port_file), "%s/port", dir);
	return loop_start(&loop);
}

static int teardown(void **state)
{
	loop_stop(loop);
	/* Fails when a test left something behind: nothing may stay. */
	return rmdir(dir);
}

static struct sink *open_tcp(const char *url, size_t queue)
{
	struct sink_options o = { .queue_bytes = queue, .port_file = port_file };

	return open_ok(url, &o, loop);
}

static uint16_t port_from_file(void)
{
	char text[16] = { 0 };
	int fd = open(port_file, O_RDONLY | O_CLOEXEC);
	unsigned port = 0;
	char end;

	assert_true(fd >= 0);
	assert_in_range(read(fd, text, sizeof(text)), 1, 5);
	close(fd);
	/* Bare decimal: nothing behind it (formats/vjoule.md section 2). */
	assert_int_equal(sscanf(text, "%u%c", &port, &end), 1);
	assert_in_range(port, 1, 65535);
	return (uint16_t)port;
}

static int dial(uint16_t port, int rcvbuf)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	if (rcvbuf)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof(rcvbuf));
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void test_port_file_and_preamble(void **state)
{
	struct sink *s = open_tcp("tcp-listen://127.0.0.1:0", 0);
	uint16_t port = port_from_file();
	struct stream early = { .preamble = "FIRST" }, late = { .preamble = "FIRST" };
	char word[12];

	snprintf(word, sizeof(word), ":%u;", port);
	assert_non_null(strstr(stats_of(s).state, word));
	/* Without a client nothing counts as lost: no client was promised it. */
	assert_int_equal(doc_submit(s, 0, 100), 0);
	int a = dial(port, 0);
	assert_true(WAIT_FOR(stats_of(s).clients == 1, 2000));
	assert_int_equal(stats_of(s).documents + stats_of(s).dropped_documents, 0);
	sink_set_preamble(s, "FIRST", 5);
	assert_int_equal(doc_submit(s, 1, 1000), 0);
	assert_true(WAIT_FOR((stream_read(&early, a), early.docs == 1), 2000));

	/* Comes before the next document: the preamble is there at once. */
	int b = dial(port, 0);
	assert_true(WAIT_FOR((stream_read(&late, b), late.preamble_seen == 5), 2000));
	assert_int_equal(doc_submit(s, 2, 1000), 0);
	assert_true(WAIT_FOR((stream_read(&late, b), late.docs == 1), 2000));
	assert_true(WAIT_FOR((stream_read(&early, a), early.docs == 2), 2000));
	assert_int_equal(late.last, 2);
	assert_int_equal(stats_of(s).documents, 3);
	sink_close(s, 1000000000u);
	assert_true(WAIT_FOR((stream_read(&early, a), early.eof), 2000));
	assert_int_equal(access(port_file, F_OK), -1);
	close(a);
	close(b);
	stream_free(&early);
	stream_free(&late);
}

static void test_busy_port_and_addresses(void **state)
{
	struct sink *s = open_tcp("tcp-listen://127.0.0.1:0", 0);
	char url[64];
	struct sink_options nowhere = { .port_file = "/nonexistent/port" };

	snprintf(url, sizeof(url), "tcp-listen://127.0.0.1:%u", port_from_file());
	open_fails(url, NULL, loop, -EADDRINUSE, "another program");
	open_fails("tcp-listen://192.0.2.1:0", NULL, loop, -EADDRNOTAVAIL, "no interface");
	open_fails("tcp-listen://127.0.0.1:0", &nowhere, loop, -ENOENT, "port-file");
	sink_close(s, 0);
	/* At once again: the port was freed. */
	sink_close(open_ok(url, NULL, loop), 0);
	int six = socket(AF_INET6, SOCK_STREAM, 0);
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	if (six >= 0 && bind(six, (struct sockaddr *)&a, sizeof(a)) == 0)
		sink_close(open_ok("tcp-listen://[::1]:0", NULL, loop), 0);
	else
		printf("SKIP test_busy_port_and_addresses/ipv6: no IPv6 loopback here\n");
	close(six);
}

#define CLIENTS 200
#define MUTE 50
#define DOCS 400
#define DOC_BYTES 20000

/* 50 of 200 clients never read. The others get every byte, the caller never waits, and per client
 * what was offered is delivered or dropped. */
static void test_many_clients_some_mute(void **state)
{
	struct sink *s = open_tcp("tcp-listen://127.0.0.1:0", 1u << 20);
	static struct stream st[CLIENTS];
	uint16_t port = port_from_file();
	uint64_t worst = 0, docs = 0;
	int fd[CLIENTS];

	sink_set_preamble(s, "P", 1);
	for (unsigned i = 0; i < CLIENTS; i++) {
		fd[i] = dial(port, i < MUTE ? 4096 : 0);
		st[i].preamble = "P";
	}
	assert_true(WAIT_FOR(stats_of(s).clients == CLIENTS, 10000));
	for (unsigned n = 0; n < DOCS; n++) {
		uint64_t t = now_ns();

		while (doc_submit(s, n, DOC_BYTES))
			usleep(1000);
		t = now_ns() - t;
		worst = t > worst ? t : worst;
		do
			for (unsigned i = MUTE; i < CLIENTS; i++)
				stream_read(&st[i], fd[i]);
		while (n % 8 == 7 && st[MUTE].docs < n);
	}
	for (unsigned i = MUTE; i < CLIENTS; i++) {
		assert_true(WAIT_FOR((stream_read(&st[i], fd[i]), st[i].docs == DOCS), 10000));
		docs += st[i].docs;
	}
	struct sink_stats c = stats_of(s);
	assert_int_equal(c.clients, CLIENTS - MUTE);
	assert_int_equal(c.queued, 0);
	assert_non_null(strstr(c.state, "50 too slow"));
	assert_int_equal(docs, (uint64_t)(CLIENTS - MUTE) * DOCS);
	/* Each mute one was offered documents until the one that did not fit. */
	assert_true(c.documents >= docs);
	assert_in_range(c.dropped_documents, MUTE, (uint64_t)MUTE * DOCS - 1);
	assert_true(c.documents + c.dropped_documents <= (uint64_t)CLIENTS * DOCS);
	/* Each held at most its bound: 1 MiB, the one that did not fit on top. */
	assert_true(c.dropped_bytes <= (uint64_t)MUTE * ((1u << 20) + DOC_BYTES));
	assert_true(c.dropped_bytes >= (uint64_t)MUTE * ((1u << 20) - 2 * DOC_BYTES));
	assert_true(worst < 10000000000u); /* a mute one would hold it for ever */
	for (unsigned i = 0; i < CLIENTS; i++) {
		close(fd[i]);
		stream_free(&st[i]);
	}
	assert_true(WAIT_FOR((doc_submit(s, DOCS, 100), stats_of(s).clients == 0), 30000));
	sink_close(s, 1000000000u);
}

/* Documents that clients got and lost add up exactly when clients leave in the middle. */
static void test_leaving_clients_are_counted(void **state)
{
	struct sink *s = open_tcp("tcp-listen://127.0.0.1:0", 64u << 20);
	uint16_t port = port_from_file();
	int fd[5];

	for (unsigned i = 0; i < 5; i++)
		fd[i] = dial(port, 4096);
	assert_true(WAIT_FOR(stats_of(s).clients == 5, 2000));
	for (unsigned n = 0; n < 6; n++)
		assert_int_equal(doc_submit(s, n, sizeof(doc_bytes)), 0);
	assert_true(WAIT_FOR(stats_of(s).queued == 5 * 6, 30000));
	for (unsigned i = 0; i < 5; i++) {
		struct linger now = { .l_onoff = 1 };

		setsockopt(fd[i], SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		close(fd[i]);
	}
	assert_true(WAIT_FOR(stats_of(s).clients == 0, 30000));
	assert_int_equal(stats_of(s).documents, 0);
	assert_int_equal(stats_of(s).dropped_documents, 5 * 6);
	assert_int_equal(stats_of(s).dropped_bytes, 5 * 6 * sizeof(doc_bytes));
	assert_int_equal(stats_of(s).queued, 0);
	sink_close(s, 0);
}

/* A document that is larger than the queue goes to a client for which nothing waits, and no second one waits behind it. */
static void test_larger_than_the_queue(void **state)
{
	struct sink *s = open_tcp("tcp-listen://127.0.0.1:0", 100000);
	uint16_t port = port_from_file();
	struct stream st = { 0 };
	int fd = dial(port, 0);

	assert_true(WAIT_FOR(stats_of(s).clients == 1, 2000));
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(doc_submit(s, i, 1u << 20), 0);
		assert_true(WAIT_FOR((stream_read(&st, fd), st.docs == i + 1), 10000));
		assert_true(WAIT_FOR(stats_of(s).documents == i + 1 && stats_of(s).queued == 0, 2000));
	}
	assert_int_equal(stats_of(s).dropped_documents, 0);
	close(fd);
	assert_true(WAIT_FOR((doc_submit(s, 3, 100), stats_of(s).clients == 0), 30000));
	fd = dial(port, 4096);
	assert_true(WAIT_FOR(stats_of(s).clients == 1 && stats_of(s).queued == 0, 2000));
	assert_int_equal(doc_submit(s, 4, sizeof(doc_bytes)), 0);
	assert_true(WAIT_FOR(doc_submit(s, 5, 100) == 0, 10000)); /* at once it is still with the sink */
	assert_true(WAIT_FOR(stats_of(s).clients == 0, 10000));
	assert_non_null(strstr(stats_of(s).state, "1 too slow"));
	close(fd);
	stream_free(&st);
	sink_close(s, 0);
}

static void test_too_many_clients(void **state)
{
	struct sink *s = open_tcp("tcp-listen://127.0.0.1:0", 0);
	uint16_t port = port_from_file();
	int fd[520];
	char c;

	for (unsigned i = 0; i < 520; i++)
		fd[i] = dial(port, 0);
	assert_true(WAIT_FOR(strstr(stats_of(s).state, "8 turned away"), 30000));
	assert_int_equal(stats_of(s).clients, 512);
	assert_true(recv(fd[519], &c, 1, 0) <= 0);
	/* Room again when one leaves: it is noticed at the latest by writing to it. */
	close(fd[0]);
	assert_true(WAIT_FOR((doc_submit(s, 1, 100), stats_of(s).clients == 511), 30000));
	fd[0] = dial(port, 0);
	assert_true(WAIT_FOR(stats_of(s).clients == 512, 30000));
	for (unsigned i = 0; i < 520; i++)
		close(fd[i]);
	sink_close(s, 0);
}

/* No descriptors left: clients wait in the backlog and are served when there is room. */
static void test_out_of_descriptors(void **state)
{
	struct sink *s = open_tcp("tcp-listen://127.0.0.1:0", 0);
	struct rlimit before, low;
	int fd = dial(port_from_file(), 0);

	assert_true(WAIT_FOR(stats_of(s).clients == 1, 2000));
	int waiting = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	getrlimit(RLIMIT_NOFILE, &before);
	low = before;
	low.rlim_cur = (rlim_t)waiting + 1;
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(port_from_file()) };
	setrlimit(RLIMIT_NOFILE, &low);
	assert_int_equal(connect(waiting, (struct sockaddr *)&a, sizeof(a)), 0);
	bool said = WAIT_FOR(strstr(stats_of(s).state, "Too many open files"), 2000);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_true(said);
	assert_true(WAIT_FOR(stats_of(s).clients == 2, 30000));
	assert_null(strstr(stats_of(s).state, "Too many"));
	close(fd);
	close(waiting);
	sink_close(s, 0);
}

/* A client that has ended its own sending (nc < /dev/null) still wants to read. */
static void test_half_closed_client(void **state)
{
	struct sink *s = open_tcp("tcp-listen://127.0.0.1:0", 0);
	struct stream st = { 0 };
	int fd = dial(port_from_file(), 0);

	shutdown(fd, SHUT_WR);
	assert_true(WAIT_FOR(stats_of(s).clients == 1, 2000));
	usleep(50000);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(doc_submit(s, i, 5000), 0);
	assert_true(WAIT_FOR((stream_read(&st, fd), st.docs == 10), 2000));
	sink_close(s, 0);
	close(fd);
	stream_free(&st);
}

struct to_end {
	int fd;
	size_t bytes;
	bool clean;
};

static void *read_to_end(void *arg)
{
	struct to_end *e = arg;
	static char junk[65536];
	ssize_t n;

	while ((n = read(e->fd, junk, sizeof(junk))) > 0)
		e->bytes += (size_t)n;
	e->clean = n == 0;
	return NULL;
}

/* A sink with one client that has read nothing of what is queued for it. */
static struct sink *open_with_client(unsigned documents, int *ret_client)
{
	struct sink *s = open_tcp("tcp-listen://127.0.0.1:0", 64u << 20);

	*ret_client = dial(port_from_file(), 4096);
	assert_true(WAIT_FOR(stats_of(s).clients == 1, 2000));
	for (unsigned i = 0; i < documents; i++)
		assert_int_equal(doc_submit(s, i, 1u << 20), 0);
	return s;
}

/* Everything queued is delivered before the end, however long it takes. */
static void test_close_drains(void **state)
{
	struct to_end end = { 0 };
	struct sink *s = open_with_client(20, &end.fd);
	pthread_t reader;

	assert_int_equal(pthread_create(&reader, NULL, read_to_end, &end), 0);
	sink_close(s, 300000000000u);
	pthread_join(reader, NULL);
	assert_true(end.clean);
	assert_int_equal(end.bytes, 20u << 20);
	close(end.fd);
}

/* A client that does not read has its time, and cannot hold up the end. */
static void test_close_gives_up(void **state)
{
	int mute;
	struct sink *s = open_with_client(20, &mute);
	uint64_t t = now_ns();

	sink_close(s, 1000000000u);
	t = now_ns() - t;
	assert_true(t >= 800000000u);
	close(mute);
}

static bool is_refused(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), err;

	assert_true(fd >= 0);
	err = connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 ? 0 : errno;
	close(fd);
	return err == ECONNREFUSED;
}

static void *close_with_patience(void *arg)
{
	sink_close(arg, 300000000000u);
	return NULL;
}

/* A client that connects again as soon as it is closed must be refused: so the end of listening comes first. */
static void test_close_stops_listening_first(void **state)
{
	struct sink *s = open_tcp("tcp-listen://127.0.0.1:0", 64u << 20);
	uint16_t port = port_from_file();
	int client = dial(port, 4096);
	struct to_end end = { .fd = client };
	pthread_t closer;

	assert_true(WAIT_FOR(stats_of(s).clients == 1, 10000));
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(doc_submit(s, i, 1u << 20), 0);
	assert_int_equal(pthread_create(&closer, NULL, close_with_patience, s), 0);
	/* It has read nothing: closing waits for it, and already nobody else comes in or is sent here. */
	assert_true(WAIT_FOR(is_refused(port), 60000));
	assert_true(WAIT_FOR(access(port_file, F_OK) != 0, 60000)); /* right after it */
	read_to_end(&end);
	assert_true(end.clean);
	assert_int_equal(end.bytes, 8u << 20);
	pthread_join(closer, NULL);
	close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_port_file_and_preamble),
		cmocka_unit_test(test_busy_port_and_addresses),
		cmocka_unit_test(test_many_clients_some_mute),
		cmocka_unit_test(test_leaving_clients_are_counted),
		cmocka_unit_test(test_larger_than_the_queue),
		cmocka_unit_test(test_too_many_clients),
		cmocka_unit_test(test_out_of_descriptors),
		cmocka_unit_test(test_half_closed_client),
		cmocka_unit_test(test_close_drains),
		cmocka_unit_test(test_close_gives_up),
		cmocka_unit_test(test_close_stops_listening_first),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
