/* SPDX-License-Identifier: Apache-2.0 */
/* tcp clients against real sockets: peers that are away, slow, dead, or leave half way. */
#include "sink_help.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>

static struct loop *loop;
static bool private_net; /* ports that nobody else takes */

static bool lo_up(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool up = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &lo) == 0;

	close(fd);
	return up;
}

static int setup(void **state)
{
	int shared = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	/* Before any thread: a network namespace belongs to the thread that asked. */
	private_net = shared >= 0 && unshare(CLONE_NEWNET) == 0;
	if (private_net && !lo_up()) { /* CAP_NET_ADMIN is missing */
		private_net = false;
		if (setns(shared, CLONE_NEWNET) != 0)
			return -1;
	}
	close(shared);
	return loop_start(&loop);
}

static int teardown(void **state)
{
	loop_stop(loop);
	return 0;
}

/* A listening TCP socket of the test's own; port 0 = any, and *port becomes it. */
static int listener(int family, uint16_t *port, int rcvbuf)
{
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6,
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT,
				   .sin6_port = htons(*port) };
	struct sockaddr_in a4 = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons(*port) };
	struct sockaddr *a = family == AF_INET ? (struct sockaddr *)&a4 : (struct sockaddr *)&a6;
	socklen_t len = family == AF_INET ? sizeof(a4) : sizeof(a6);
	int one = 1, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (rcvbuf)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof(rcvbuf));
	if (bind(fd, a, len) != 0 || listen(fd, 16) != 0) {
		close(fd);
		return -1;
	}
	assert_int_equal(getsockname(fd, a, &len), 0);
	*port = ntohs(family == AF_INET ? a4.sin_port : a6.sin6_port);
	return fd;
}

static int accept_within(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 8 * ms), 1); /* as WAIT_FOR */
	return accept4(fd, NULL, NULL, SOCK_CLOEXEC);
}

static const char *tcp_url(const char *host, uint16_t port)
{
	static char url[100];

	snprintf(url, sizeof(url), "tcp://%s:%u", host, port);
	return url;
}

static uint16_t free_port(void)
{
	uint16_t port = 0;

	close(listener(AF_INET, &port, 0));
	return port;
}

static void receive_all(const char *url, int server)
{
	struct sink *s = open_ok(url, NULL, loop);
	struct stream st = { .preamble = "HEAD" };

	sink_set_preamble(s, "HEAD", 4);
	int fd = accept_within(server, 5000);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(doc_submit(s, i, 20 + i), 0);
	assert_true(WAIT_FOR((stream_read(&st, fd), st.docs == 1000), 5000));
	assert_int_equal(st.len, 0);
	assert_int_equal(stats_of(s).documents, 1000);
	assert_int_equal(stats_of(s).clients, 1);
	assert_true(stats_of(s).up);
	sink_close(s, 1000000000u);
	assert_true(WAIT_FOR((stream_read(&st, fd), st.eof), 2000));
	assert_int_equal(st.err, 0);
	close(fd);
	stream_free(&st);
}

static void test_addresses(void **state)
{
	uint16_t port = 0;
	int fd = listener(AF_INET, &port, 0);

	receive_all(tcp_url("127.0.0.1", port), fd);
	receive_all(tcp_url("localhost", port), fd);
	close(fd);
	port = 0;
	fd = listener(AF_INET6, &port, 0);
	if (fd < 0) {
		printf("SKIP test_addresses/ipv6: no IPv6 loopback here\n");
		return;
	}
	receive_all(tcp_url("[::1]", port), fd);
	close(fd);
}

static void test_unknown_host_is_retried(void **state)
{
	struct sink *s = open_ok("tcp://no.such.host.invalid:9", NULL, loop);

	assert_int_equal(doc_submit(s, 1, 100), 0);
	assert_true(WAIT_FOR(strstr(stats_of(s).state, "next try"), 10000));
	assert_false(stats_of(s).up);
	uint64_t t = now_ns();
	sink_close(s, 90000000000u);
	assert_true(now_ns() - t < 30000000000u);
}

/* Away at the start: queued up to the bound, the rest refused, all that was taken arrives. */
static void test_peer_comes_later(void **state)
{
	uint16_t port = free_port();
	struct sink_options o = { .queue_bytes = 100000 };
	struct sink *s = open_ok(tcp_url("127.0.0.1", port), &o, loop);
	struct stream st = { .preamble = "P" };
	unsigned taken = 0;

	sink_set_preamble(s, "P", 1);
	for (unsigned i = 0; i < 200; i++)
		taken += doc_submit(s, i, 1000) == 0;
	assert_in_range(taken, 90, 100);
	assert_int_equal(stats_of(s).queued, taken);
	assert_int_equal(stats_of(s).dropped_documents, 200 - taken);
	assert_int_equal(stats_of(s).dropped_bytes, (200 - taken) * 1000);
	assert_true(WAIT_FOR(strstr(stats_of(s).state, "Connection refused"), 2000));
	assert_false(stats_of(s).up);

	int server = listener(AF_INET, &port, 0), fd = accept_within(server, 5000);
	assert_true(WAIT_FOR((stream_read(&st, fd), st.docs == taken), 5000));
	assert_int_equal(stats_of(s).reconnects, 0);
	sink_close(s, 1000000000u);
	close(fd);
	close(server);
	stream_free(&st);
}

/* The peer leaves in the middle of a document: its rest must not begin the next connection. */
static void test_torn_document_is_not_continued(void **state)
{
	uint16_t port = 0;
	int server = listener(AF_INET, &port, 4096);
	struct sink_options o = { .queue_bytes = 64u << 20 };
	struct sink *s = open_ok(tcp_url("127.0.0.1", port), &o, loop);
	struct stream st = { .preamble = "NEW" };
	char part[1000];
	unsigned n = 0;

	sink_set_preamble(s, "NEW", 3);
	int fd = accept_within(server, 5000);
	/* More than any socket buffer takes (tcp_wmem's default maximum is 4 MiB). */
	for (; n < 4; n++)
		assert_int_equal(doc_submit(s, n, sizeof(doc_bytes)), 0);
	assert_int_equal(recv(fd, part, sizeof(part), MSG_WAITALL), sizeof(part));
	assert_memory_equal(part, "NEW", 3);
	assert_int_equal(stats_of(s).documents, 0);
	struct linger now = { .l_onoff = 1 };
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);

	fd = accept_within(server, 5000);
	assert_true(WAIT_FOR((stream_read(&st, fd), st.docs == 3), 20000));
	assert_int_equal(st.last, 3);
	assert_true(WAIT_FOR(stats_of(s).queued == 0, 1000));
	struct sink_stats c = stats_of(s);
	assert_int_equal(c.dropped_documents, 1);
	assert_int_equal(c.documents, 3);
	assert_int_equal(c.reconnects, 1);
	sink_close(s, 1000000000u);
	close(fd);
	close(server);
	stream_free(&st);
}

/* Many restarts of the peer, at any moment: what arrives is whole and in order, and
 * sent + dropped = submitted. Documents that the kernel took and the peer never read count as sent. */
static void test_restarting_peer(void **state)
{
	uint16_t port = 0;
	int server = listener(AF_INET, &port, 4096), fd = -1;
	struct sink *s = open_ok(tcp_url("127.0.0.1", port), NULL, loop);
	unsigned n = 0, refused = 0, connections = 0;

	sink_set_preamble(s, "HI", 2);
	struct stream st = { .preamble = "HI" };
	for (uint64_t end = now_ns() + 3000000000u; now_ns() < end || connections < 3;) {
		struct pollfd p = { .fd = server, .events = POLLIN };

		refused += doc_submit(s, n, 12 + n * 7919u % 30000) != 0;
		n++;
		if (fd < 0 && poll(&p, 1, 0) == 1) {
			fd = accept4(server, NULL, NULL, SOCK_CLOEXEC);
			connections++;
		}
		if (fd >= 0)
			stream_read(&st, fd);
		if (fd >= 0 && n % 97 == 0) {
			close(fd);
			fd = -1;
			stream_free(&st);
			st.preamble = "HI";
		}
		usleep(500);
	}
	struct sink_stats c = stats_of(s);
	assert_int_equal(c.documents + c.dropped_documents + c.queued, n);
	assert_true(c.dropped_documents >= refused);
	assert_int_equal(c.reconnects + 1 >= connections, 1);
	sink_close(s, 0);
	if (fd >= 0)
		close(fd);
	close(server);
	stream_free(&st);
}

/* A peer that accepts and never reads: the caller is not held up and the bound holds. */
static void test_peer_never_reads(void **state)
{
	uint16_t port = 0;
	int server = listener(AF_INET, &port, 4096);
	struct sink_options o = { .queue_bytes = 1u << 20 };
	struct sink *s = open_ok(tcp_url("127.0.0.1", port), &o, loop),
		    *other = open_ok(tcp_url("127.0.0.1", port), NULL, loop);
	unsigned refused = 0;
	uint64_t worst = 0;

	int a = accept_within(server, 5000), b = accept_within(server, 5000);
	for (unsigned i = 0; i < 200; i++) {
		uint64_t t = now_ns();

		refused += doc_submit(s, i, 100000) == -ENOBUFS;
		t = now_ns() - t;
		worst = t > worst ? t : worst;
		usleep(200);
	}
	/* Two buffers of the kernel take a few MiB at most, the queue one. */
	assert_in_range(refused, 100, 190);
	assert_true(worst < 10000000000u); /* it would wait for ever */
	struct sink_stats c = stats_of(s);
	assert_int_equal(c.documents + c.dropped_documents + c.queued, 200);
	assert_int_equal(c.dropped_documents, refused);
	assert_true(c.queued <= 10);

	/* One of the two connections is the other sink's: it still works. */
	struct stream sa = { 0 }, sb = { 0 };
	assert_int_equal(doc_submit(other, 1000, 5000), 0);
	assert_true(WAIT_FOR(stats_of(other).documents == 1, 2000));
	uint64_t t = now_ns();
	sink_close(s, 300000000u);
	t = now_ns() - t;
	assert_in_range(t, 250000000u, 30000000000u);
	sink_close(other, 1000000000u);
	assert_true(WAIT_FOR((stream_read(&sa, a), stream_read(&sb, b), sa.last == 1000 || sb.last == 1000), 5000));
	stream_free(&sa);
	stream_free(&sb);
	close(a);
	close(b);
	close(server);
}

/* Accepting and leaving at once must not become a busy loop: 0.1 + 0.2 + 0.4 + 0.8 s ... */
static void test_backoff_grows(void **state)
{
	uint16_t port = 0;
	int server = listener(AF_INET, &port, 0);
	struct sink *s = open_ok(tcp_url("127.0.0.1", port), NULL, loop);
	struct sink_stats c = stats_of(s);
	uint64_t t = now_ns();
	unsigned connections = 0;

	while (now_ns() - t < 60000000000u && (connections < 5 || c.reconnects != connections - 1 ||
					       !strstr(c.state, "closed by the peer, next try in"))) {
		struct pollfd p = { .fd = server, .events = POLLIN };

		if (poll(&p, 1, 1) == 1) {
			close(accept4(server, NULL, NULL, SOCK_CLOEXEC));
			connections++;
		}
		c = stats_of(s);
	}
	t = now_ns() - t;
	assert_true(connections >= 5);
	assert_int_equal(c.reconnects, connections - 1);
	assert_non_null(strstr(c.state, "closed by the peer, next try in"));
	assert_true(t >= 1400000000u);
	sink_close(s, 0);
	close(server);
}

/* A peer that answers "refused" must not make the end wait. */
static void test_close_while_away(void **state)
{
	struct sink *s = open_ok(tcp_url("127.0.0.1", free_port()), NULL, loop);
	uint64_t t;

	assert_int_equal(doc_submit(s, 1, 100), 0);
	assert_true(WAIT_FOR(strstr(stats_of(s).state, "refused"), 2000));
	t = now_ns();
	sink_close(s, 90000000000u);
	assert_true(now_ns() - t < 30000000000u);
}

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	close(fd);
	return done;
}

/* Where nobody listens and the system gives each connection the very port that it asks for, TCP joins a socket to itself. That is
 * nobody's connection: the documents wait for the server. */
static void test_own_port_is_no_peer(void **state)
{
	static const char range[] = "/proc/sys/net/ipv4/ip_local_port_range";
	const struct sockaddr_in a = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				       .sin_port = htons(40000) };
	uint16_t port = 40000;

	if (!private_net || !write_file(range, "40000 40000")) {
		print_message(
			"SKIP sink-client-own-port: the range of ports cannot be set (as root, in a network namespace)\n");
		skip();
	}
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&a, sizeof(a)), 0); /* to itself */
	const struct linger reset = { .l_onoff = 1 };
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);

	struct sink *s = open_ok("tcp://127.0.0.1:40000", NULL, loop);
	assert_int_equal(doc_submit(s, 7, 100), 0);
	assert_true(WAIT_FOR(strstr(stats_of(s).state, "refused, next try in"), 5000));
	assert_int_equal(stats_of(s).documents, 0);
	assert_true(write_file(range, "32768 60999"));
	int server = -1;
	assert_true(WAIT_FOR(server >= 0 || (server = listener(AF_INET, &port, 0)) >= 0, 5000));
	struct stream st = { 0 };
	fd = accept_within(server, 30000);
	assert_true(WAIT_FOR((stream_read(&st, fd), st.docs == 1), 5000));
	assert_int_equal(st.last, 7);
	sink_close(s, 0);
	close(fd);
	close(server);
	stream_free(&st);
}

/* Seconds that the state line promises, 0 when it promises nothing. */
static double next_try(struct sink *s)
{
	struct sink_stats st = stats_of(s);
	const char *at = strstr(st.state, "next try in ");

	return at ? atof(at + strlen("next try in ")) : 0;
}

/* Documents queued at the end are still delivered when the peer has come back meanwhile. */
static void test_close_delivers(void **state)
{
	uint16_t port = free_port();
	struct sink *s = open_ok(tcp_url("127.0.0.1", port), NULL, loop);
	struct stream st = { 0 };

	for (unsigned i = 0; i < 50; i++)
		assert_int_equal(doc_submit(s, i, 5000), 0);
	/* Far enough into the back-off that only the close's own try can be so early. */
	assert_true(WAIT_FOR(next_try(s) >= 6, 20000));
	int server = listener(AF_INET, &port, 0);
	uint64_t t = now_ns();
	sink_close(s, 20000000000u);
	assert_true(now_ns() - t < 5000000000u);
	int fd = accept_within(server, 1000);
	assert_true(WAIT_FOR((stream_read(&st, fd), st.eof), 2000));
	assert_int_equal(st.docs, 50);
	assert_int_equal(st.len, 0);
	close(fd);
	close(server);
	stream_free(&st);
}

/* A peer that talks: its bytes are thrown away, and our end is no reset that eats documents. */
static void test_peer_that_talks(void **state)
{
	uint16_t port = 0;
	int server = listener(AF_INET, &port, 0);
	struct sink *s = open_ok(tcp_url("127.0.0.1", port), NULL, loop);
	struct stream st = { 0 };
	char noise[20000] = { 0 };

	int fd = accept_within(server, 5000);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(send(fd, noise, sizeof(noise), MSG_DONTWAIT | MSG_NOSIGNAL), sizeof(noise));
		assert_int_equal(doc_submit(s, i, 9000), 0);
		usleep(2000);
	}
	sink_close(s, 2000000000u);
	assert_true(WAIT_FOR((stream_read(&st, fd), st.eof || st.err), 2000));
	assert_int_equal(st.err, 0);
	assert_int_equal(st.docs, 20);
	close(fd);
	close(server);
	stream_free(&st);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),           cmocka_unit_test(test_unknown_host_is_retried),
		cmocka_unit_test(test_peer_comes_later),    cmocka_unit_test(test_torn_document_is_not_continued),
		cmocka_unit_test(test_restarting_peer),     cmocka_unit_test(test_peer_never_reads),
		cmocka_unit_test(test_backoff_grows),       cmocka_unit_test(test_close_while_away),
		cmocka_unit_test(test_close_delivers),      cmocka_unit_test(test_peer_that_talks),
		cmocka_unit_test(test_own_port_is_no_peer),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
