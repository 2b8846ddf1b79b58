/* SPDX-License-Identifier: Apache-2.0 */
/* Processes in cgroups of their own that send and receive over loopback on command, and what the interface
 * says of it. */
#ifndef JD_TEST_WORKER_H
#define JD_TEST_WORKER_H
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "kernel/tree.h"

/* A process in a cgroup that does what it is told, and says when it is done. */
struct worker {
	pid_t pid;
	int to, from;
};

enum order {
	ORDER_BIND = 1,
	ORDER_SEND,
	ORDER_RECEIVE,
	ORDER_LISTEN,
	ORDER_CONNECT,
	ORDER_ACCEPT,
	ORDER_STREAM,
	ORDER_DRAIN
};

struct task {
	enum order order;
	bool v6;
	uint16_t port;
	unsigned count, size;
};

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static inline socklen_t loopback(const struct task *t, union address *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (t->v6)
		ret->v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
						 .sin6_port = htons(t->port),
						 .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	else
		ret->v4 = (struct sockaddr_in){ .sin_family = AF_INET,
						.sin_port = htons(t->port),
						.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	return t->v6 ? sizeof(ret->v6) : sizeof(ret->v4);
}

static inline bool move_bytes(int fd, const struct task *t, bool out)
{
	static char data[65536];
	size_t left = (size_t)t->count * t->size;

	while (left) {
		size_t n = left < sizeof(data) ? left : sizeof(data);
		ssize_t r = out ? write(fd, data, n) : read(fd, data, n);

		if (r <= 0)
			return false;
		left -= (size_t)r;
	}
	return true;
}

static inline bool datagrams(int fd, const struct task *t, bool out)
{
	static char data[65536];
	union address a;
	socklen_t len = loopback(t, &a);

	for (unsigned i = 0; i < t->count; i++)
		if ((out ? sendto(fd, data, t->size, 0, &a.any, len) : recv(fd, data, sizeof(data), 0)) != t->size)
			return false;
	return true;
}

static inline bool obey(const struct task *t)
{
	static int fd = -1, listener = -1;
	union address a;
	socklen_t len = loopback(t, &a);
	int kind = t->order <= ORDER_RECEIVE ? SOCK_DGRAM : SOCK_STREAM;
	int segment = 4000; /* several to a packet */

	switch (t->order) {
	case ORDER_BIND:
	case ORDER_LISTEN:
		fd = listener = socket(a.any.sa_family, kind, 0);
		if (kind == SOCK_STREAM && setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment)))
			return false;
		return !bind(fd, &a.any, len) && (kind == SOCK_DGRAM || !listen(fd, 5));
	case ORDER_SEND:
		fd = socket(a.any.sa_family, kind, 0);
		return datagrams(fd, t, true) && !close(fd);
	case ORDER_RECEIVE:
		return datagrams(fd, t, false) && !close(fd);
	case ORDER_CONNECT:
		fd = socket(a.any.sa_family, kind, 0);
		return !connect(fd, &a.any, len);
	case ORDER_ACCEPT:
		fd = accept(listener, NULL, NULL);
		return fd >= 0;
	default:
		return move_bytes(fd, t, t->order == ORDER_STREAM);
	}
}

static inline struct worker start_worker(const struct tree *x, const char *cgroup)
{
	int to[2], from[2];
	struct worker k;
	struct task t;

	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	k.pid = fork();
	if (!k.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		tree_join(x, cgroup, 0);
		while (read(to[0], &t, sizeof(t)) == sizeof(t)) {
			bool good = obey(&t);

			if (write(from[1], &good, sizeof(good)) != sizeof(good))
				break;
		}
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	k.to = to[1];
	k.from = from[0];
	return k;
}

static inline void order(const struct worker *k, struct task t)
{
	assert_int_equal(write(k->to, &t, sizeof(t)), sizeof(t));
}

static inline void done(const struct worker *k)
{
	bool good = false;

	assert_int_equal(read(k->from, &good, sizeof(good)), sizeof(good));
	assert_true(good);
}

static inline void stop_worker(const struct worker *k)
{
	kill(k->pid, SIGKILL);
	waitpid(k->pid, NULL, 0);
	close(k->to);
	close(k->from);
}

/* count datagrams of size bytes from one to the other. */
static inline void exchange(const struct worker *from, const struct worker *to, bool v6, unsigned count, unsigned size)
{
	struct task t = { ORDER_BIND, v6, 7001, count, size };

	order(to, t);
	done(to);
	t.order = ORDER_SEND;
	order(from, t);
	done(from);
	t.order = ORDER_RECEIVE;
	order(to, t);
	done(to);
}

/* Bytes and packets sent on lo, whose driver counts from the IP header on (drivers/net/loopback.c). */
static inline uint64_t interface_bytes(uint64_t *ret_packets)
{
	unsigned long long v[16] = { 0 };
	char line[512], *at;
	FILE *f = fopen("/proc/self/net/dev", "r");

	while (f && fgets(line, sizeof(line), f))
		if ((at = strstr(line, "lo:")))
			for (int i = 0; i < 10; i++)
				v[i] = strtoull(i ? at : at + 3, &at, 10);
	fclose(f);
	*ret_packets = v[9];
	return v[8];
}

#endif
