// SPDX-License-Identifier: Apache-2.0
/* A virtual machine's side: lines out of a torn stream, totals over epochs and gaps, a host that goes and comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "source/guest/host_totals.h"
#include "temp_root.h"

#define LONG_WAIT_NS (60 * NS_PER_S)

static char *line_of(char *text, size_t size, unsigned epoch, unsigned number, uint64_t uj, const char *more)
{
	snprintf(text, size, "jouled-share 1 epoch=%016x number=%u interval_ns=100000000 package-1=%" PRIu64 "%s\n",
		 epoch, number, uj, more);
	return text;
}

static struct share share_of(unsigned epoch, unsigned number, uint64_t uj, const char *more)
{
	char text[256];
	struct share s;

	line_of(text, sizeof(text), epoch, number, uj, more);
	assert_int_equal(share_read(text, strlen(text) - 1, &s), 0);
	return s;
}

static struct schema schema;
static struct host_totals totals;

static void begin(uint64_t uj)
{
	struct share s = share_of(1, 1, uj, " dram-0=7");

	memset(&schema, 0, sizeof(schema));
	schema.n_packages = 1;
	assert_int_equal(host_totals_init(&totals, &s, "unix:///x", &schema), 0);
	assert_true(host_totals_add(&totals, &s, NS_PER_S, NS_PER_S));
}

static struct reading_domain package_at(uint64_t now_ns)
{
	struct reading r = { .mono_ns = now_ns };

	host_totals_read(&totals, &r);
	return r.domains[0];
}

static bool add(unsigned second, struct share s)
{
	return host_totals_add(&totals, &s, second * NS_PER_S, second * NS_PER_S);
}

static void test_domains_as_on_the_host(void **state)
{
	begin(1000);
	assert_int_equal(schema.n_domains, 2);
	assert_string_equal(schema.domains[0].name, "package-1");
	assert_int_equal(schema.domains[0].package, 1);
	assert_int_equal(schema.domains[0].interface, ENERGY_HOST);
	assert_non_null(strstr(schema.domains[0].reason, "measured (host)"));
	assert_int_equal(schema.domains[1].kind, DOMAIN_DRAM);
	assert_int_equal(schema.n_packages, 2);
	assert_string_equal(energy_interface_name(ENERGY_HOST), "host");
}

static void test_names_that_this_machine_has(void **state)
{
	struct share s = share_of(1, 1, 0, "");

	begin(0);
	assert_int_equal(host_totals_init(&totals, &s, "x", &schema), -EEXIST);
	schema.n_domains = SCHEMA_MAX_DOMAINS;
	assert_int_equal(host_totals_init(&totals, &s, "x", &schema), -E2BIG);
}

static void test_totals_begin_at_the_first_line(void **state)
{
	struct reading_domain d;

	begin(1000000);
	assert_int_equal(package_at(NS_PER_S).units, 0);
	assert_true(add(2, share_of(1, 2, 1000300, " dram-0=7")));
	d = package_at(2 * NS_PER_S + 5);
	assert_int_equal(d.units, 300);
	assert_int_equal(d.time_ns, 2 * NS_PER_S);
	assert_false(d.estimated);
	/* lines that were lost lose nothing */
	assert_true(add(30, share_of(1, 900, 1009999, "")));
	assert_int_equal(package_at(30 * NS_PER_S).units, 9999);
}

static void test_an_old_line_again(void **state)
{
	begin(1000);
	assert_true(add(2, share_of(1, 5, 2000, "")));
	assert_false(add(3, share_of(1, 5, 9000, "")));
	assert_false(add(3, share_of(1, 4, 1500, "")));
	assert_int_equal(package_at(3 * NS_PER_S).units, 1000);
}

static void test_totals_that_began_anew(void **state)
{
	begin(5000);
	assert_true(add(2, share_of(1, 2, 6000, "")));
	assert_int_equal(package_at(2 * NS_PER_S).resets, 0);
	assert_true(add(3, share_of(2, 1, 9000, "")));
	assert_int_equal(package_at(3 * NS_PER_S).units, 1000);
	assert_int_equal(package_at(3 * NS_PER_S).resets, 1);
	assert_true(add(4, share_of(2, 2, 9005, "")));
	assert_int_equal(package_at(4 * NS_PER_S).units, 1005);
}

/* A total that falls, or leaps beyond what a machine can draw, is not believed. */
static void test_totals_that_cannot_be(void **state)
{
	begin(5000);
	assert_true(add(2, share_of(1, 2, 4000, "")));
	assert_int_equal(package_at(2 * NS_PER_S).units, 0);
	assert_int_equal(package_at(2 * NS_PER_S).resets, 1);
	assert_true(add(3, share_of(1, 3, UINT64_MAX, "")));
	assert_int_equal(package_at(3 * NS_PER_S).units, 0);
	assert_int_equal(package_at(3 * NS_PER_S).dropped, 1);
	assert_int_equal(package_at(3 * NS_PER_S).resets, 1);
}

#define HOUR_UJ (3600ull * 200 * 1000000) /* of a machine that draws 200 W */

/* The machine stood still and its host went on: an hour of lines at once. */
static void test_lines_that_waited(void **state)
{
	begin(0);
	assert_true(add(2, share_of(1, 36001, HOUR_UJ, "")));
	assert_true(package_at(2 * NS_PER_S).units == HOUR_UJ);
	for (unsigned i = 1; i <= 10; i++)
		assert_true(host_totals_add(
			&totals, &(struct share[]){ share_of(1, 36001 + 3600 * i, HOUR_UJ + HOUR_UJ / 10 * i, "") }[0],
			2 * NS_PER_S + i, 2 * NS_PER_S + i));
	assert_true(package_at(3 * NS_PER_S).units == 2 * HOUR_UJ);
	assert_int_equal(package_at(3 * NS_PER_S).dropped, 0);
	/* not for ever: more than a day ahead is no time that passed (22 hours are left) */
	assert_true(add(3, share_of(1, 100000000, 2 * HOUR_UJ + 21 * 50 * HOUR_UJ, "")));
	assert_int_equal(package_at(3 * NS_PER_S).dropped, 0);
	assert_true(add(4, share_of(1, 200000000, 2 * HOUR_UJ + 21 * 50 * HOUR_UJ + HOUR_UJ, "")));
	assert_int_equal(package_at(4 * NS_PER_S).dropped, 1);
}

/* Several lines between two readings. */
static void test_qualities_of_all_lines(void **state)
{
	static struct host_lines l;
	char text[1024], a[256];
	struct share s;
	bool any = false;

	begin(1);
	strcpy(text, line_of(a, sizeof(a), 1, 2, 2, ":estimated"));
	strcat(text, line_of(a, sizeof(a), 1, 3, 3, ":lost"));
	strcat(text, line_of(a, sizeof(a), 1, 4, 4, ""));
	host_lines_add(&l, text, strlen(text), &s, &any);
	assert_true(any);
	assert_int_equal(s.domains[0].quality, QUALITY_ESTIMATED | QUALITY_PARTIAL);
	/* of another epoch nothing is known */
	line_of(a, sizeof(a), 2, 1, 9, "");
	host_lines_add(&l, a, strlen(a), &s, &any);
	assert_int_equal(s.domains[0].quality, 0);
	/* the energy of a measured line is not stale because nothing followed it */
	any = false;
	strcpy(text, line_of(a, sizeof(a), 1, 5, 5, ""));
	strcat(text, line_of(a, sizeof(a), 1, 6, 5, ":stale"));
	host_lines_add(&l, text, strlen(text), &s, &any);
	assert_int_equal(s.domains[0].quality, 0);

	assert_true(add(2, share_of(1, 2, 2, ":estimated")));
	assert_true(add(3, share_of(1, 3, 3, "")));
	assert_true(package_at(3 * NS_PER_S).estimated);
	assert_true(package_at(4 * NS_PER_S).estimated);
	assert_true(add(5, share_of(1, 4, 4, "")));
	assert_false(package_at(5 * NS_PER_S).estimated);
}

static void test_qualities(void **state)
{
	begin(1);
	assert_true(add(2, share_of(1, 2, 2, ":estimated")));
	assert_true(package_at(2 * NS_PER_S).estimated);
	assert_true(add(3, share_of(1, 3, 3, ":partial")));
	assert_false(package_at(3 * NS_PER_S).estimated);
	assert_int_equal(package_at(3 * NS_PER_S).dropped, 1);
	assert_true(add(4, share_of(1, 4, 3, ":lost")));
	assert_int_equal(package_at(4 * NS_PER_S).dropped, 2);
	assert_int_equal(package_at(4 * NS_PER_S).time_ns, 3 * NS_PER_S);
	assert_true(add(5, share_of(1, 5, 4, ":stale")));
	assert_int_equal(package_at(5 * NS_PER_S).time_ns, 3 * NS_PER_S);
	assert_true(add(6, share_of(1, 6, 4, "")));
	assert_int_equal(package_at(6 * NS_PER_S).time_ns, 6 * NS_PER_S);
	assert_int_equal(package_at(6 * NS_PER_S).dropped, 2);
}

/* A value without news keeps its time; by this a consumer knows that it is stale. */
static void test_silence_stands_still(void **state)
{
	struct reading r = { .mono_ns = 90 * NS_PER_S };

	begin(1);
	assert_int_equal(package_at(80 * NS_PER_S).time_ns, NS_PER_S);
	/* a domain that the host does not tell of any more */
	assert_true(add(4, share_of(1, 2, 2, "")));
	host_totals_read(&totals, &r);
	assert_int_equal(r.domains[0].time_ns, 4 * NS_PER_S);
	assert_int_equal(r.domains[1].time_ns, NS_PER_S);
}

/* However the bytes come, and whatever stands before and between them. */
static void test_torn_streams(void **state)
{
	static struct host_lines l;
	char text[1024] = "ckage-0=12\n\n", a[256], b[256];
	struct share s = { 0 };
	bool any;

	strcat(text, line_of(a, sizeof(a), 1, 1, 5, ""));
	strcat(text, "jouled-share 1 epoch=00000000");
	strcat(text, line_of(a, sizeof(a), 1, 2, 6, ""));
	strcat(text, line_of(b, sizeof(b), 1, 3, 7, ""));
	for (size_t piece = 1; piece < strlen(text); piece++) {
		unsigned n = 0;

		for (size_t at = 0; at < strlen(text); at += piece) {
			size_t len = strlen(text) - at < piece ? strlen(text) - at : piece;

			any = false;
			host_lines_add(&l, text + at, len, &s, &any);
			n += any;
		}
		assert_in_range(n, 1, 2);
		assert_int_equal(s.number, 3);
		assert_int_equal(s.domains[0].uj, 7);
	}
}

static void test_a_line_without_end(void **state)
{
	static struct host_lines l;
	char junk[5000], a[256];
	struct share s = { 0 };
	bool any = false;

	memset(junk, 'j', sizeof(junk));
	for (unsigned i = 0; i < 100; i++)
		host_lines_add(&l, junk, sizeof(junk), &s, &any);
	host_lines_add(&l, "\n", 1, &s, &any);
	assert_false(any);
	line_of(a, sizeof(a), 1, 1, 5, "");
	host_lines_add(&l, a, strlen(a), &s, &any);
	assert_true(any);
}

static int listen_at(const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	unlink(path);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

static void say(int fd, unsigned epoch, unsigned number, uint64_t uj)
{
	char text[256];

	line_of(text, sizeof(text), epoch, number, uj, "");
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static struct reading_domain now_of(struct host *h)
{
	struct reading r = { .mono_ns = clock_mono_ns() };

	host_read(h, &r);
	return r.domains[0];
}

#define UNTIL(cond) \
	do { \
		uint64_t end_ = clock_mono_ns() + LONG_WAIT_NS; \
		bool held_; \
		while (!(held_ = (cond)) && clock_mono_ns() < end_) \
			usleep(2000); \
		assert_true(held_); \
	} while (0)

static bool warned(struct host *h, const char *word)
{
	char text[300] = "";

	return host_next_warning(h, text, sizeof(text)) && strstr(text, word);
}

static int open_host(const struct temp_root *t, const char *place, uint64_t wait_ns, struct host **ret, struct err *err)
{
	const struct host_options o = { .root = t->root, .place = place, .wait_ns = wait_ns };

	return host_open(&o, &schema, ret, err);
}

static void test_a_host_that_comes_back(void **state)
{
	struct temp_root t = temp_root_new();
	char path[128], place[160];
	struct err err = { 0 };
	struct host *h;
	int listener, fd, go[2], status;
	pid_t other;

	snprintf(path, sizeof(path), "%s/s", t.dir);
	snprintf(place, sizeof(place), "unix://%s", path);
	memset(&schema, 0, sizeof(schema));
	listener = listen_at(path);
	/* the connection waits in the backlog: nobody need accept it first */
	assert_int_equal(open_host(&t, place, 50 * NS_PER_MS, &h, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "nothing is told there"));
	close(accept(listener, NULL, NULL));
	close(listener);
	unlink(path);
	assert_int_equal(open_host(&t, place, 50 * NS_PER_MS, &h, &err), -ENOENT);
	assert_int_equal(schema.n_domains, 0);

	listener = listen_at(path);
	assert_int_equal(pipe(go), 0);
	other = fork();
	if (other == 0) {
		/* a host of its own: one line, another when it was taken, then it goes */
		fd = accept(listener, NULL, NULL);
		say(fd, 1, 1, 1000);
		if (read(go[0], path, 1) == 1)
			say(fd, 1, 2, 1500);
		_exit(0);
	}
	assert_int_equal(open_host(&t, place, LONG_WAIT_NS, &h, &err), 0);
	assert_int_equal(host_start(h), 0);
	assert_int_equal(write(go[1], "x", 1), 1);
	UNTIL(now_of(h).units == 500);
	UNTIL(warned(h, "away"));
	fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	say(fd, 1, 3, 1600);
	UNTIL(now_of(h).units == 600);
	UNTIL(warned(h, "again"));
	say(fd, 2, 1, 77);
	UNTIL(now_of(h).resets == 1);
	say(fd, 2, 2, 78);
	UNTIL(now_of(h).units == 601);
	host_close(h);
	assert_int_equal(waitpid(other, &status, 0), other);
	close(go[0]);
	close(go[1]);
	close(fd);
	close(listener);
	temp_root_free(&t);
}

static void test_places(void **state)
{
	static const char *const good[] = { "vsock://2:7000", "vsock://0:1", "unix:///a", "/dev/virtio-ports/x" };
	static const char *const bad[] = { "",
					   "/",
					   "vsock://",
					   "vsock://2",
					   "vsock://2:",
					   "vsock://:1",
					   "vsock://2:0",
					   "vsock://2:4294967295",
					   "vsock://4294967295:1",
					   "vsock://-1:1",
					   "vsock://2:7x",
					   "unix://a",
					   "tcp://1:2",
					   "x" };

	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(host_place_check(good[i], NULL), 0);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(host_place_check(bad[i], NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_domains_as_on_the_host),
		cmocka_unit_test(test_names_that_this_machine_has),
		cmocka_unit_test(test_totals_begin_at_the_first_line),
		cmocka_unit_test(test_an_old_line_again),
		cmocka_unit_test(test_totals_that_began_anew),
		cmocka_unit_test(test_totals_that_cannot_be),
		cmocka_unit_test(test_lines_that_waited),
		cmocka_unit_test(test_qualities_of_all_lines),
		cmocka_unit_test(test_qualities),
		cmocka_unit_test(test_silence_stands_still),
		cmocka_unit_test(test_torn_streams),
		cmocka_unit_test(test_a_line_without_end),
		cmocka_unit_test(test_a_host_that_comes_back),
		cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
