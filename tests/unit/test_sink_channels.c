// SPDX-License-Identifier: Apache-2.0
/* A listener whose clients have channels: each gets its own, one that has none gets nothing, and nobody takes the
 * room of others. */
#include "sink_help.h"
#include <sys/un.h>
#include "base/unix_listen.h"
#include "sink/server.h"

#define TURNS 10000 /* ms: machines are loaded */

struct door {
	uint32_t next; /* channel of who comes next, 0 = turned away */
};

static int door_admit(void *arg, int fd, uint32_t *ret_channel)
{
	const struct door *d = arg;

	*ret_channel = __atomic_load_n(&d->next, __ATOMIC_SEQ_CST);
	return *ret_channel ? 0 : -EPERM;
}

static const struct sink_ops ops = {
	.scheme = "test", .wake = server_wake, .restart = server_wake, .close = server_close
};

struct world {
	struct loop *loop;
	struct sink *sink;
	struct door *door;
	struct unix_file file;
};

static void begin(struct world *w)
{
	const struct sink_options o = { 0 };
	struct server_place place = { .admit = door_admit };
	char path[64];

	memset(w, 0, sizeof(*w));
	assert_int_equal(loop_start(&w->loop), 0);
	snprintf(path, sizeof(path), "/tmp/jouled-channels-%d", (int)getpid());
	place.fd = unix_listen_file(path, 0600, (gid_t)-1, &w->file);
	assert_true(place.fd >= 0);
	place.arg = w->door = calloc(1, sizeof(*w->door));
	assert_int_equal(server_start(&ops, &place, &o, w->loop, &w->sink), 0);
}

static void end(struct world *w)
{
	sink_close(w->sink, 0);
	loop_stop(w->loop);
	unix_listen_remove(&w->file);
}

static uint32_t clients(struct world *w)
{
	struct sink_stats st;

	sink_get_stats(w->sink, &st);
	return st.clients;
}

static int come(struct world *w, uint32_t channel)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	__atomic_store_n(&w->door->next, channel, __ATOMIC_SEQ_CST);
	memcpy(un.sun_path, w->file.path, sizeof(un.sun_path));
	assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	return fd;
}

/* It was let in: the next one comes after that. */
static int enter(struct world *w, uint32_t channel)
{
	uint32_t before = clients(w);
	int fd = come(w, channel);

	assert_true(WAIT_FOR(clients(w) == before + 1, TURNS));
	return fd;
}

static void expect(int fd, const char *text)
{
	char got[64] = "";
	size_t n = 0;

	while (n < strlen(text)) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t more;

		assert_int_equal(poll(&p, 1, TURNS), 1);
		more = read(fd, got + n, strlen(text) - n);
		assert_true(more > 0);
		n += (size_t)more;
	}
	assert_string_equal(got, text);
}

static bool is_closed(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char c;

	return poll(&p, 1, TURNS) == 1 && read(fd, &c, 1) <= 0;
}

static void test_each_its_own(void **state)
{
	struct world w;
	int a, b, again, stranger;

	begin(&w);
	a = enter(&w, 1);
	b = enter(&w, 2);
	again = enter(&w, 1);
	stranger = come(&w, 0);
	assert_true(is_closed(stranger));
	sink_submit_to(w.sink, 1, "one", 3);
	sink_submit_to(w.sink, 2, "two", 3);
	sink_submit_to(w.sink, 3, "nobody", 6);
	sink_submit(w.sink, "all", 3);
	expect(a, "oneall");
	expect(again, "oneall");
	expect(b, "twoall");
	close(a);
	close(b);
	close(again);
	close(stranger);
	end(&w);
}

static void test_a_crowd_is_turned_away(void **state)
{
	struct world w;
	int many[4], other, more;

	begin(&w);
	for (unsigned i = 0; i < 4; i++)
		many[i] = enter(&w, 7);
	more = come(&w, 7);
	assert_true(is_closed(more));
	other = enter(&w, 8);
	sink_submit_to(w.sink, 8, "eight", 5);
	expect(other, "eight");
	for (unsigned i = 0; i < 4; i++)
		close(many[i]);
	close(other);
	close(more);
	end(&w);
}

/* Whoever has gone gives its place back though nothing is sent, and so does who stops sending. */
static void test_who_has_gone_has_no_place(void **state)
{
	struct world w;
	int many[4], next;

	begin(&w);
	for (unsigned i = 0; i < 4; i++)
		many[i] = enter(&w, 7);
	close(many[0]);
	assert_int_equal(shutdown(many[1], SHUT_WR), 0);
	assert_true(WAIT_FOR(clients(&w) == 2, TURNS));
	assert_true(is_closed(many[1]));
	next = enter(&w, 7);
	sink_submit_to(w.sink, 7, "seven", 5);
	expect(next, "seven");
	for (unsigned i = 1; i < 4; i++)
		close(many[i]);
	close(next);
	end(&w);
}

/* What a channel holds has no exception for a large document. */
static void test_too_large_for_a_channel(void **state)
{
	static char large[100000];
	struct world w;
	int a;

	begin(&w);
	a = enter(&w, 1);
	memset(large, 'x', sizeof(large));
	sink_submit_to(w.sink, 1, large, sizeof(large));
	assert_true(WAIT_FOR(clients(&w) == 0, TURNS));
	close(a);
	end(&w);
}

/* A client that does not read is closed long before the sink's own bound, and the others go on. */
static void test_who_does_not_read(void **state)
{
	static char line[8000];
	struct sink_stats st;
	struct world w;
	int deaf, other;

	begin(&w);
	deaf = enter(&w, 1);
	memset(line, 'x', sizeof(line));
	for (unsigned i = 0; i < 400 && clients(&w); i++) {
		sink_submit_to(w.sink, 1, line, sizeof(line));
		assert_true(WAIT_FOR((sink_get_stats(w.sink, &st), st.queued < 20 || !st.clients), TURNS));
	}
	assert_true(WAIT_FOR(clients(&w) == 0, TURNS));
	other = enter(&w, 2);
	sink_submit_to(w.sink, 2, "two", 3);
	expect(other, "two");
	close(deaf);
	close(other);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_its_own),
		cmocka_unit_test(test_a_crowd_is_turned_away),
		cmocka_unit_test(test_who_has_gone_has_no_place),
		cmocka_unit_test(test_too_large_for_a_channel),
		cmocka_unit_test(test_who_does_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
