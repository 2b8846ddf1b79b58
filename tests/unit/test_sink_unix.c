/* SPDX-License-Identifier: Apache-2.0 */
/* unix and unix-listen: a socket that comes later, and names that must not be taken from others. */
#include "sink_help.h"

#include <sys/un.h>

static struct loop *loop;
static char dir[] = "/tmp/jouled-unix-XXXXXX";
static char sock[64], sock_url[80];

static int setup(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	snprintf(sock, sizeof(sock), "%s/sock", dir);
	snprintf(sock_url, sizeof(sock_url), "unix-listen://%s", sock);
	return loop_start(&loop);
}

static int teardown(void **state)
{
	loop_stop(loop);
	/* Fails when a test left something behind: nothing may stay. */
	return rmdir(dir);
}

static int accept_within(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, ms), 1);
	return accept4(fd, NULL, NULL, SOCK_CLOEXEC);
}

static int dial_unix(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	close(fd);
	return -errno;
}

static void test_unix_client(void **state)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char url[130];

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", sock);
	snprintf(url, sizeof(url), "unix://%s", a.sun_path);
	struct sink *s = open_ok(url, NULL, loop);
	struct stream st = { 0 };
	assert_int_equal(doc_submit(s, 0, 100), 0);
	assert_true(WAIT_FOR(strstr(stats_of(s).state, "No such file"), 2000));
	int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(server, 1), 0);
	int fd = accept_within(server, 5000);
	for (unsigned i = 1; i < 300; i++)
		assert_int_equal(doc_submit(s, i, 3000), 0);
	assert_true(WAIT_FOR((stream_read(&st, fd), st.docs == 300), 5000));
	sink_close(s, 1000000000u);
	close(fd);
	close(server);
	unlink(a.sun_path);
	stream_free(&st);
}

static void test_unix_listen(void **state)
{
	struct sink_options open_to_all = { .mode = 0666 };
	struct sink *s = open_ok(sock_url, NULL, loop);
	struct stream st = { .preamble = "U" };
	struct stat info;

	assert_int_equal(stat(sock, &info), 0);
	assert_int_equal(info.st_mode & 07777, 0660);
	sink_set_preamble(s, "U", 1);
	int fd = dial_unix(sock);
	assert_true(fd >= 0);
	assert_true(WAIT_FOR(stats_of(s).clients == 1, 2000));
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(doc_submit(s, i, 30000), 0);
	assert_true(WAIT_FOR((stream_read(&st, fd), st.docs == 100), 5000));
	/* Somebody listens: it must stay as it is. */
	open_fails(sock_url, NULL, loop, -EADDRINUSE, "another program");
	int second = dial_unix(sock);
	assert_true(second >= 0);
	close(second);
	sink_close(s, 1000000000u);
	assert_int_equal(access(sock, F_OK), -1);
	close(fd);
	stream_free(&st);
	s = open_ok(sock_url, &open_to_all, loop);
	assert_int_equal(stat(sock, &info), 0);
	assert_int_equal(info.st_mode & 07777, 0666);
	sink_close(s, 0);
}

static void test_unix_names(void **state)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd;

	/* A file that is no socket. */
	fd = open(sock, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	open_fails(sock_url, NULL, loop, -EEXIST, "not a socket");
	assert_int_equal(access(sock, F_OK), 0);
	unlink(sock);
	/* A link to somewhere is no socket either. */
	assert_int_equal(symlink("/tmp", sock), 0);
	open_fails(sock_url, NULL, loop, -EEXIST, "not a socket");
	unlink(sock);

	/* Left behind by a crash. */
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", sock);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	close(fd);
	struct sink *s = open_ok(sock_url, NULL, loop);

	/* Taken over by a successor: not ours to remove at the end. */
	unlink(sock);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	sink_close(s, 0);
	assert_int_equal(access(sock, F_OK), 0);
	close(fd);
	unlink(sock);

	/* A datagram socket that somebody holds answers with another error than "refused". */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	open_fails(sock_url, NULL, loop, -EADDRINUSE, "another program");
	close(fd);
	unlink(sock);
	open_fails("unix-listen:///nonexistent/dir/sock", NULL, loop, -ENOENT, "create the directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unix_client),
		cmocka_unit_test(test_unix_listen),
		cmocka_unit_test(test_unix_names),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
