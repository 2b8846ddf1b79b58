/* SPDX-License-Identifier: Apache-2.0 */
/* Rights to ask the socket, and the cgroups that are a user's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>
#include "serve/routes.h"

#define GROUP 108

static enum serve_access ask(gid_t group, bool coarse, const struct http_peer *p)
{
	struct serve s = { .o = { .group = group, .others_coarse = coarse } };

	return serve_access_of(&s, p);
}

static void groups(void **state)
{
	static const struct http_peer
		first = { .local = true, .uid = 1000, .gid = 1000, .n_groups = 1, .groups = { GROUP } },
		last = { .local = true, .uid = 1000, .gid = 1000, .n_groups = 3, .groups = { 4, 27, GROUP } },
		primary = { .local = true, .uid = 1000, .gid = GROUP },
		behind = { .local = true, .uid = 1000, .gid = 1000, .n_groups = 2, .groups = { 4, 27, GROUP } },
		none = { .local = true, .uid = 1000, .gid = 1000 };

	for (unsigned coarse = 0; coarse < 2; coarse++) {
		enum serve_access others = coarse ? ACCESS_COARSE : ACCESS_NONE;

		assert_int_equal(ask(GROUP, coarse, &first), ACCESS_FULL);
		assert_int_equal(ask(GROUP, coarse, &last), ACCESS_FULL);
		assert_int_equal(ask(GROUP, coarse, &primary), ACCESS_FULL);
		assert_int_equal(ask(GROUP, coarse, &behind), others);
		assert_int_equal(ask(GROUP, coarse, &none), others);
		assert_int_equal(ask((gid_t)-1, coarse, &last), others);
	}
}

static void owners(void **state)
{
	const struct http_peer root = { .local = true, .uid = 0, .gid = 12 },
			       us = { .local = true, .uid = geteuid(), .gid = 12 },
			       other = { .local = true, .uid = geteuid() + 1, .gid = 0 };

	assert_int_equal(ask((gid_t)-1, false, &root), ACCESS_FULL);
	assert_int_equal(ask((gid_t)-1, false, &us), ACCESS_FULL);
	assert_int_equal(ask((gid_t)-1, false, &other), ACCESS_NONE);
}

static void slices(void **state)
{
	assert_true(serve_in_user_slice("/user.slice/user-1000.slice", 1000));
	assert_true(serve_in_user_slice("/user.slice/user-1000.slice/session-3.scope", 1000));
	assert_true(serve_in_user_slice("/user-1000.slicer/user-1000.slice/a", 1000));
	assert_false(serve_in_user_slice("/user.slice/user-1000.slicer", 1000));
	assert_false(serve_in_user_slice("/user.slice/user-10001.slice", 1000));
	assert_false(serve_in_user_slice("/user.slice/user-100.slice", 1000));
	assert_false(serve_in_user_slice("/user.slice/xuser-1000.slice", 1000));
	assert_false(serve_in_user_slice("/user.slice", 1000));
	assert_false(serve_in_user_slice("/", 1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups),
		cmocka_unit_test(owners),
		cmocka_unit_test(slices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
