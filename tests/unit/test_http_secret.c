/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets from files: the header made of them, what can be none, and that no message repeats them. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/http/secret.h"

static char path[] = "/tmp/jouled-secret-XXXXXX";
static char header[HTTP_SECRET_MAX * 2];
static struct err err;

static void put(const void *text, size_t n)
{
	int fd = open(path, O_WRONLY | O_TRUNC);

	assert_int_equal(write(fd, text, n), n);
	close(fd);
}

static int token(const char *text, size_t n)
{
	const struct http_secret_files f = { .token_file = path };

	put(text, n);
	err = (struct err){ 0 };
	return http_secret_header(&f, header, &err);
}

static void test_header(void **state)
{
	struct http_secret_files f = { .user = "Aladdin", .password_file = path };

	assert_int_equal(token("abc.def==\r\n", 11), 0);
	assert_string_equal(header, "Authorization: Bearer abc.def==");
	put("open sesame", 11); /* the example of RFC 7617 */
	assert_int_equal(http_secret_header(&f, header, &err), 0);
	assert_string_equal(header, "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
	f = (struct http_secret_files){ .token_file = path, .token_scheme = "Token" };
	assert_int_equal(http_secret_header(&f, header, &err), 0);
	assert_string_equal(header, "Authorization: Token open sesame");
	f = (struct http_secret_files){ 0 };
	assert_int_equal(http_secret_header(&f, header, &err), 0);
	assert_string_equal(header, "");
}

static void test_no_secret(void **state)
{
	static char large[HTTP_SECRET_MAX];

	memset(large, 'x', sizeof(large));
	assert_int_equal(token("", 0), -EACCES);
	assert_non_null(strstr(err.text, "empty"));
	assert_int_equal(token("\n", 1), -EACCES);
	assert_int_equal(token("hidden\nInjected: 1", 18), -EACCES);
	assert_non_null(strstr(err.text, "control"));
	assert_null(strstr(err.text, "hidden"));
	assert_string_equal(header, "");
	assert_int_equal(token("hid\0den", 7), -EACCES);
	assert_int_equal(token(large, sizeof(large)), -EACCES);
	assert_non_null(strstr(err.text, "longer"));
	assert_int_equal(token(large, sizeof(large) - 1), 0);
	unlink(path);
	assert_int_equal(http_secret_header(&(struct http_secret_files){ .token_file = path }, header, &err), -EACCES);
	assert_non_null(strstr(err.text, path));
	close(open(path, O_CREAT | O_WRONLY, 0600));
}

static void test_stamp(void **state)
{
	const char *const files[] = { NULL, path };
	uint64_t stamp;

	put("1", 1);
	stamp = http_files_stamp(files, 2);
	assert_int_equal(http_files_stamp(files, 2), stamp);
	put("12", 2);
	assert_int_not_equal(http_files_stamp(files, 2), stamp);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_header), cmocka_unit_test(test_no_secret),
					    cmocka_unit_test(test_stamp) };
	int rc;

	close(mkstemp(path));
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return rc;
}
