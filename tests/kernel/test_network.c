/* SPDX-License-Identifier: Apache-2.0 */
/* Traffic per cgroup on the running kernel, over loopback in a network namespace of our own, so
 * that the figures of the interface and the sizes in RFC 791, 768 and 8200 say what is right. */
#include "kernel/tree.h"
#include "kernel/worker.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <linux/types.h>
#include <net/if.h>
#include <network.h> /* include/ */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <bpf/libbpf.h>

#include "model/reading.h"
#include "network.skel.h"
#include "source/counters/network.h"

enum { UDP4 = 20 + 8, UDP6 = 40 + 8 }; /* bytes of headers above the payload */

struct net {
	struct tree x;
	struct network *n;
	struct schema schema;
	struct reading r;
};

static void net_open(struct net *w, unsigned max_cgroups)
{
	struct err err = { 0 };

	memset(w, 0, sizeof(*w));
	tree_open(&w->x, true);
	w->schema.n_cpus = 1;
	w->schema.cpus = calloc(1, sizeof(*w->schema.cpus));
	assert_int_equal(reading_init(&w->r, &w->schema), 0);
	if (network_open(&w->x.h, NULL, max_cgroups, &w->n, &err))
		fail_msg("%s", err.text);
}

static void net_close(struct net *w)
{
	network_close(w->n);
	reading_free(&w->r);
	free(w->schema.cpus);
	tree_close(&w->x);
}

static uint32_t add_row(struct net *w, const char *name)
{
	uint64_t id = tree_mkdir(&w->x, name);
	int64_t row;

	tree_poll(&w->x);
	row = reading_add_row(&w->r, cgroup_find(w->x.table, id));
	assert_true(row >= READING_SPECIAL_ROWS);
	return (uint32_t)row;
}

static void read_traffic(struct net *w)
{
	assert_int_equal(network_read(w->n, &w->r), 0);
}

static void assert_traffic(const struct net *w, uint32_t row, uint64_t rx_bytes, uint64_t rx_packets, uint64_t tx_bytes,
			   uint64_t tx_packets)
{
	const struct traffic *t = &w->r.rows[row].traffic;

	assert_int_equal(t->rx_bytes, rx_bytes);
	assert_int_equal(t->rx_packets, rx_packets);
	assert_int_equal(t->tx_bytes, tx_bytes);
	assert_int_equal(t->tx_packets, tx_packets);
}

static void test_datagrams(void **state)
{
	struct net w;
	uint32_t a, b;
	struct worker ka, kb;

	net_open(&w, 64);
	a = add_row(&w, "a");
	b = add_row(&w, "b");
	ka = start_worker(&w.x, "a");
	kb = start_worker(&w.x, "b");
	exchange(&ka, &kb, false, 50, 1000);
	read_traffic(&w);
	assert_traffic(&w, a, 0, 0, 50 * (1000 + UDP4), 50);
	assert_traffic(&w, b, 50 * (1000 + UDP4), 50, 0, 0);
	exchange(&kb, &ka, false, 7, 1);
	read_traffic(&w);
	read_traffic(&w);
	assert_traffic(&w, a, 7 * (1 + UDP4), 7, 50 * (1000 + UDP4), 50);
	assert_traffic(&w, b, 50 * (1000 + UDP4), 50, 7 * (1 + UDP4), 7);
	exchange(&ka, &kb, true, 10, 500);
	read_traffic(&w);
	assert_traffic(&w, b, 50 * (1000 + UDP4) + 10 * (500 + UDP6), 60, 7 * (1 + UDP4), 7);
	stop_worker(&ka);
	stop_worker(&kb);
	net_close(&w);
}

/* Each side received what the other sent, and both together are what the interface saw since then. */
static bool stream_agrees(const struct traffic *a, const struct traffic *b, uint64_t bytes, uint64_t packets)
{
	return a->tx_bytes + b->tx_bytes == bytes && a->tx_packets + b->tx_packets == packets &&
	       a->tx_bytes == b->rx_bytes && b->tx_bytes == a->rx_bytes && a->tx_packets == b->rx_packets &&
	       b->tx_packets == a->rx_packets;
}

/* Acknowledgements come late, and a packet is counted at several places on its way: the counts are compared when the
 * interface has been still for a while. Books that miss a packet or have one twice never agree. */
static void wait_still(struct net *w, uint32_t a, uint32_t b, uint64_t bytes_before, uint64_t packets_before)
{
	uint64_t bytes = 0, packets = 0, packets_now;

	for (unsigned still = 0, i = 0; i < 1200 && still < 10; i++) {
		usleep(50000);
		interface_bytes(&packets_now);
		read_traffic(w);
		bytes = interface_bytes(&packets);
		still = packets == packets_now && stream_agrees(&w->r.rows[a].traffic, &w->r.rows[b].traffic,
								bytes - bytes_before, packets - packets_before) ?
				still + 1 :
				0;
	}
	assert_int_equal(w->r.rows[a].traffic.tx_bytes + w->r.rows[b].traffic.tx_bytes, bytes - bytes_before);
	assert_int_equal(w->r.rows[a].traffic.tx_packets + w->r.rows[b].traffic.tx_packets, packets - packets_before);
}

/* 20 MB over one connection: handshake, data and acknowledgements, each side's as the interface saw them. */
static void test_stream(void **state)
{
	struct task t = { ORDER_LISTEN, false, 7002, 20, 1000000 };
	uint64_t before, packets_before;
	const struct traffic *ta, *tb;
	struct worker ka, kb;
	uint32_t a, b;
	struct net w;

	net_open(&w, 64);
	a = add_row(&w, "a");
	b = add_row(&w, "b");
	ka = start_worker(&w.x, "a");
	kb = start_worker(&w.x, "b");
	before = interface_bytes(&packets_before);
	order(&kb, t);
	done(&kb);
	order(&ka, (struct task){ ORDER_CONNECT, false, 7002, 0, 0 });
	order(&kb, (struct task){ ORDER_ACCEPT, false, 7002, 0, 0 });
	done(&ka);
	done(&kb);
	t.order = ORDER_STREAM;
	order(&ka, t);
	t.order = ORDER_DRAIN;
	order(&kb, t);
	done(&ka);
	done(&kb);
	wait_still(&w, a, b, before, packets_before);
	ta = &w.r.rows[a].traffic;
	tb = &w.r.rows[b].traffic;
	printf("  a sent %llu bytes in %llu packets, b %llu in %llu\n", (unsigned long long)ta->tx_bytes,
	       (unsigned long long)ta->tx_packets, (unsigned long long)tb->tx_bytes,
	       (unsigned long long)tb->tx_packets);
	assert_int_equal(ta->tx_bytes, tb->rx_bytes);
	assert_int_equal(tb->tx_bytes, ta->rx_bytes);
	assert_int_equal(ta->tx_packets, tb->rx_packets);
	assert_int_equal(tb->tx_packets, ta->rx_packets);
	assert_in_range(ta->tx_bytes, 20000000, 22000000);
	stop_worker(&ka);
	stop_worker(&kb);
	net_close(&w);
}

/* No row yet: other's. Later its own. Forgotten: what was not read yet is other's too. */
static void test_rows_come_and_go(void **state)
{
	uint64_t other, id;
	struct worker ka, kb;
	struct net w;
	uint32_t b;

	net_open(&w, 64);
	tree_mkdir(&w.x, "early");
	b = add_row(&w, "b");
	ka = start_worker(&w.x, "early");
	kb = start_worker(&w.x, "b");
	exchange(&ka, &kb, false, 50, 100);
	read_traffic(&w);
	other = w.r.rows[ROW_OTHER].traffic.tx_packets;
	assert_true(other >= 50); /* and what the rest of the machine sends */
	tree_poll(&w.x);
	id = tree_id(&w.x, "early");
	assert_true(reading_add_row(&w.r, cgroup_find(w.x.table, id)) > b);
	exchange(&ka, &kb, false, 30, 100);
	read_traffic(&w);
	assert_traffic(&w, b + 1, 0, 0, 30 * (100 + UDP4), 30);
	exchange(&ka, &kb, false, 20, 100);
	network_forget(w.n, id);
	reading_drop_row(&w.r, b + 1);
	other = w.r.rows[ROW_OTHER].traffic.tx_packets;
	read_traffic(&w);
	assert_true(w.r.rows[ROW_OTHER].traffic.tx_packets >= other + 20);
	assert_traffic(&w, b, 100 * (100 + UDP4), 100, 0, 0);
	network_forget(w.n, 12345);
	/* the same id again begins at nothing */
	assert_true(reading_add_row(&w.r, cgroup_find(w.x.table, id)) == b + 1);
	exchange(&ka, &kb, false, 3, 100);
	read_traffic(&w);
	assert_traffic(&w, b + 1, 0, 0, 3 * (100 + UDP4), 3);
	stop_worker(&ka);
	stop_worker(&kb);
	net_close(&w);
}

/* Twelve senders, room for four: each is counted in full or in the row other, and said so. */
static void test_full_table(void **state)
{
	unsigned own = 0, size = 100 + UDP4;
	struct worker to, from[12];
	uint32_t rows[12];
	char name[16];
	struct net w;

	net_open(&w, 4);
	add_row(&w, "to");
	to = start_worker(&w.x, "to");
	for (unsigned i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "from%u", i);
		rows[i] = add_row(&w, name);
		from[i] = start_worker(&w.x, name);
		exchange(&from[i], &to, false, 10, 100);
	}
	read_traffic(&w);
	for (unsigned i = 0; i < 12; i++) {
		const struct traffic *t = &w.r.rows[rows[i]].traffic;

		assert_true(t->tx_packets == 0 || (t->tx_packets == 10 && t->tx_bytes == 10 * size));
		own += t->tx_packets == 10;
		stop_worker(&from[i]);
	}
	assert_true(own <= 4);
	assert_true(w.r.rows[ROW_OTHER].traffic.tx_bytes >= (12 - own) * 10 * size);
	assert_true(w.r.losses.folded >= (12 - own) * 10);
	stop_worker(&to);
	net_close(&w);
}

/* The kernel's table of traffic. */
static int traffic_map(void)
{
	__u32 ids[64];
	unsigned n = own_bpf_ids("map_id:\t", ids, 64);

	for (unsigned i = 0; i < n; i++) {
		struct bpf_map_info info = { 0 };
		__u32 len = sizeof(info);
		int fd = bpf_map_get_fd_by_id(ids[i]);

		if (!bpf_obj_get_info_by_fd(fd, &info, &len) && !strcmp(info.name, "traffic"))
			return fd;
		close(fd);
	}
	fail_msg("no table of traffic");
	return -1;
}

/* What is put into the table behind the program's back is not told, and so is not looked for until a packet comes. Programs
 * of the machine send when they like, so there are several tries. */
static void test_quiet_table_is_left_alone(void **state)
{
	struct jd_traffic *t = calloc((size_t)libbpf_num_possible_cpus(), sizeof(*t));
	struct worker ka, kb;
	bool unseen = false;
	struct net w;
	uint64_t id;
	uint32_t a;
	int fd;

	net_open(&w, 64);
	a = add_row(&w, "a");
	add_row(&w, "b");
	id = tree_id(&w.x, "a");
	fd = traffic_map();
	t[0].rx_packets = 1;
	ka = start_worker(&w.x, "a");
	kb = start_worker(&w.x, "b");
	for (unsigned i = 0; i < 1000 && !unseen; i++) {
		for (unsigned k = 0; k < 3; k++)
			read_traffic(&w);
		t[0].rx_bytes += 1000;
		assert_int_equal(bpf_map_update_elem(fd, &id, t, BPF_ANY), 0);
		read_traffic(&w);
		unseen = w.r.rows[a].traffic.rx_bytes < t[0].rx_bytes;
	}
	assert_true(unseen);
	exchange(&kb, &ka, false, 1, 100);
	read_traffic(&w);
	assert_traffic(&w, a, t[0].rx_bytes + 100 + UDP4, 2, 0, 0);
	close(fd);
	free(t);
	stop_worker(&ka);
	stop_worker(&kb);
	net_close(&w);
}

/* Readings one after the other while packets go: whatever moment one falls on, the last two have everything. */
static void test_read_while_sending(void **state)
{
	struct task t = { ORDER_BIND, false, 7001, 5, 20 };
	struct worker ka, kb;
	struct net w;
	uint32_t a, b;

	net_open(&w, 64);
	a = add_row(&w, "a");
	b = add_row(&w, "b");
	ka = start_worker(&w.x, "a");
	kb = start_worker(&w.x, "b");
	for (unsigned i = 1; i <= 2000; i++) {
		struct pollfd said = { .fd = ka.from, .events = POLLIN };

		t.order = ORDER_BIND;
		order(&kb, t);
		done(&kb);
		t.order = ORDER_SEND;
		order(&ka, t);
		while (poll(&said, 1, 0) == 0)
			read_traffic(&w);
		done(&ka);
		t.order = ORDER_RECEIVE;
		order(&kb, t);
		done(&kb);
		read_traffic(&w);
		read_traffic(&w);
		assert_traffic(&w, a, 0, 0, (uint64_t)i * 5 * (20 + UDP4), i * 5);
		assert_traffic(&w, b, (uint64_t)i * 5 * (20 + UDP4), i * 5, 0, 0);
	}
	stop_worker(&ka);
	stop_worker(&kb);
	net_close(&w);
}

/* Two agents at once: both see everything, and one leaving does not disturb the other. */
static void test_beside_others(void **state)
{
	struct err err = { 0 };
	struct network *second;
	struct worker ka, kb;
	struct reading r2;
	struct net w;
	uint32_t a;

	net_open(&w, 64);
	a = add_row(&w, "a");
	add_row(&w, "b");
	assert_int_equal(network_open(&w.x.h, NULL, 64, &second, &err), 0);
	assert_int_equal(reading_init(&r2, &w.schema), 0);
	assert_true(reading_add_row(&r2, w.r.rows[a].cgroup) == a);
	ka = start_worker(&w.x, "a");
	kb = start_worker(&w.x, "b");
	exchange(&ka, &kb, false, 9, 9);
	read_traffic(&w);
	assert_int_equal(network_read(second, &r2), 0);
	assert_traffic(&w, a, 0, 0, 9 * (9 + UDP4), 9);
	assert_int_equal(r2.rows[a].traffic.tx_packets, 9);
	network_close(second);
	exchange(&ka, &kb, false, 1, 9);
	read_traffic(&w);
	assert_traffic(&w, a, 0, 0, 10 * (9 + UDP4), 10);
	reading_free(&r2);
	stop_worker(&ka);
	stop_worker(&kb);
	net_close(&w);
}

/* Programs of others: several at our root, one that its cgroup has for itself below; and where one
 * has our own root for itself, the refusal says so. */
static void test_beside_legacy(void **state)
{
	struct network_bpf *legacy = network_bpf__open_and_load();
	struct err err = { 0 };
	struct worker ka, kb;
	struct network *n;
	char path[CGROUP_PATH_MAX];
	struct net w;
	uint32_t a;
	int prog, fd;

	assert_non_null(legacy);
	prog = bpf_program__fd(legacy->progs.egress);
	net_open(&w, 64);
	a = add_row(&w, "a");
	add_row(&w, "b");
	fd = openat(w.x.top_fd, "a", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(bpf_prog_attach(prog, w.x.top_fd, BPF_CGROUP_INET_EGRESS, BPF_F_ALLOW_MULTI), 0);
	assert_int_equal(bpf_prog_attach(prog, fd, BPF_CGROUP_INET_EGRESS, 0), 0);
	ka = start_worker(&w.x, "a");
	kb = start_worker(&w.x, "b");
	exchange(&ka, &kb, false, 9, 9);
	read_traffic(&w);
	assert_traffic(&w, a, 0, 0, 9 * (9 + UDP4), 9);
	stop_worker(&ka);
	stop_worker(&kb);
	/* a's own cgroup taken for the accounted root */
	snprintf(path, sizeof(path), "%.2000s%s/a", w.x.h.mount, w.x.top);
	snprintf(w.x.h.mount, sizeof(w.x.h.mount), "%s", path);
	assert_int_equal(network_open(&w.x.h, NULL, 64, &n, &err), -EPERM);
	assert_non_null(strstr(err.text, "attached there alone"));
	w.x.h.mount[strlen(path) - strlen(w.x.top) - 2] = '\0';
	assert_int_equal(bpf_prog_detach2(prog, fd, BPF_CGROUP_INET_EGRESS), 0);
	assert_int_equal(bpf_prog_detach2(prog, w.x.top_fd, BPF_CGROUP_INET_EGRESS), 0);
	close(fd);
	network_bpf__destroy(legacy);
	net_close(&w);
}

static void test_refusals(void **state)
{
	struct hierarchy v1 = { .v2 = false }, v2;
	struct err err = { 0 };
	struct network *n;
	struct tree x;
	int status;
	pid_t pid;

	assert_int_equal(network_open(&v1, NULL, 64, &n, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "cgroup v1"));
	tree_open(&x, false);
	v2 = x.h;
	pid = fork();
	if (!pid) {
		int r = setgid(65534) || setuid(65534) ? 0 : network_open(&v2, NULL, 64, &n, &err);

		printf("  %s\n", err.text);
		fflush(stdout);
		_exit(r != -EPERM || !strstr(err.text, "CAP_NET_ADMIN"));
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	tree_close(&x);
}

static void test_nothing_left(void **state)
{
	__u32 progs[32], links[32];
	unsigned n_progs, n_links;
	int ready[2], status;
	struct net w;
	pid_t pid;

	/* made before the fork, so that the child's death shows what the kernel cleans */
	net_open(&w, 64);
	n_progs = own_bpf_ids("prog_id:\t", progs, 32);
	n_links = own_bpf_ids("link_id:\t", links, 32);
	assert_int_equal(n_links, 6); /* four of the lifecycle source, two of ours */
	net_close(&w);
	assert_all_gone(progs, n_progs, links, n_links);

	assert_int_equal(pipe(ready), 0);
	tree_open(&w.x, false);
	pid = fork();
	if (!pid) {
		struct err err = { 0 };

		if (network_open(&w.x.h, NULL, 64, &w.n, &err))
			_exit(1);
		n_links = own_bpf_ids("link_id:\t", links, 32);
		if (write(ready[1], links, sizeof(links)) < 0)
			_exit(1);
		pause();
	}
	memset(links, 0, sizeof(links));
	assert_int_equal(read(ready[0], links, sizeof(links)), sizeof(links));
	assert_false(all_gone(NULL, 0, links, 2));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	assert_all_gone(NULL, 0, links, 2);
	tree_close(&w.x);
	close(ready[0]);
	close(ready[1]);
}

/* lo cuts large packets of TCP into segments before it counts them, as the books do: uncut, a packet of two segments
 * is one there and two here. Busy machines send such ones now and then. */
static bool private_loopback(void)
{
	struct ethtool_value cut = { .cmd = ETHTOOL_STSO, .data = 0 };
	struct ifreq up = { .ifr_name = "lo", .ifr_flags = IFF_UP },
		     tso = { .ifr_name = "lo", .ifr_data = (void *)&cut };
	int fd = unshare(CLONE_NEWNET) ? -1 : socket(AF_INET, SOCK_DGRAM, 0);
	bool done = fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &up) && !ioctl(fd, SIOCETHTOOL, &tso);

	if (fd >= 0)
		close(fd);
	return done;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_datagrams),
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_rows_come_and_go),
		cmocka_unit_test(test_full_table),
		cmocka_unit_test(test_beside_others),
		cmocka_unit_test(test_beside_legacy),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_nothing_left),
		cmocka_unit_test(test_quiet_table_is_left_alone),
		cmocka_unit_test(test_read_while_sending),
	};

	if (!private_loopback()) {
		perror("private network namespace");
		return 1;
	}
	alarm(850); /* a lost datagram must not hang the run */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
