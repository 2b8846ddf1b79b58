/* SPDX-License-Identifier: Apache-2.0 */
/* The guard of the page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/http/web_guard.h"

static void test_secrets(void **state)
{
	struct web_guard a, b;

	assert_int_equal(web_guard_init(&a, 8480, true), 0);
	assert_int_equal(web_guard_init(&b, 8481, true), 0);
	assert_int_equal(strlen(a.token), 32);
	assert_int_equal(strspn(a.token, "0123456789abcdef"), 32);
	assert_string_not_equal(a.token, a.session);
	assert_string_not_equal(a.token, b.token);
	assert_string_not_equal(a.cookie, b.cookie);
}

static enum web_verdict judge(struct web_guard *g, const char *host, const char *cookie, const char *bearer,
			      const char *token)
{
	struct web_ask ask = { host, cookie, bearer, token };

	return web_guard_judge(g, &ask);
}

static void test_once(void **state)
{
	struct web_guard g;
	char cookie[128];

	web_guard_init(&g, 80, true);
	snprintf(cookie, sizeof(cookie), "a=b; jouled-80=%s; c=d", g.session);
	assert_int_equal(judge(&g, "127.0.0.1:80", NULL, NULL, NULL), WEB_UNKNOWN);
	assert_int_equal(judge(&g, "127.0.0.1:80", NULL, NULL, "00000000000000000000000000000000"), WEB_UNKNOWN);
	assert_int_equal(judge(&g, "127.0.0.1:80", NULL, NULL, ""), WEB_UNKNOWN);
	assert_int_equal(judge(&g, "127.0.0.1:80", NULL, NULL, g.token), WEB_ENTER);
	assert_int_equal(judge(&g, "127.0.0.1:80", NULL, NULL, g.token), WEB_SPENT);
	assert_int_equal(judge(&g, "127.0.0.1:80", cookie, NULL, NULL), WEB_ADMIT);
	assert_int_equal(judge(&g, "127.0.0.1:80", cookie, NULL, g.token), WEB_ENTER);
	/* the session is no token and the token no session */
	assert_int_equal(judge(&g, "127.0.0.1:80", NULL, NULL, g.session), WEB_UNKNOWN);
	snprintf(cookie, sizeof(cookie), "jouled-80=%s", g.token);
	assert_int_equal(judge(&g, "127.0.0.1:80", cookie, NULL, NULL), WEB_UNKNOWN);
	snprintf(cookie, sizeof(cookie), "xjouled-80=%s; jouled-8=%s; jouled-80=%sx; jouled-80=", g.session, g.session,
		 g.session);
	assert_int_equal(judge(&g, "127.0.0.1:80", cookie, NULL, NULL), WEB_UNKNOWN);
}

static void test_bearer_and_open(void **state)
{
	struct web_guard g;
	char bearer[64];

	web_guard_init(&g, 80, false);
	snprintf(bearer, sizeof(bearer), "Bearer %s", g.token);
	assert_int_equal(judge(&g, "[::1]:80", NULL, bearer, NULL), WEB_ADMIT);
	assert_int_equal(judge(&g, "[::1]:80", NULL, g.token, NULL), WEB_UNKNOWN);
	assert_int_equal(judge(&g, "[::1]:80", NULL, NULL, g.token), WEB_ENTER);
	assert_int_equal(judge(&g, "[::1]:80", NULL, NULL, g.token), WEB_ENTER);
	g.open = true;
	assert_int_equal(judge(&g, "10.0.0.1", NULL, NULL, NULL), WEB_ADMIT);
	assert_int_equal(judge(&g, "rebound.example", NULL, NULL, NULL), WEB_STRANGE_HOST);
}

static void test_hosts(void **state)
{
	static const char *const good[] = { "127.0.0.1",   "127.0.0.1:8480", "localhost",
					    "LocalHost:1", "[::1]",          "[fe80::1]:80" };
	static const char *const bad[] = {
		NULL,  "",      "example.com", "127.0.0.1.example.com", "localhost.evil", "[::1", "[]",
		"::1", "1.2.3", ":80",         "127.0.0.1@evil",        "[evil]:80"
	};
	struct web_guard g = { .open = true };
	char own[256] = "";

	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(judge(&g, good[i], NULL, NULL, NULL), WEB_ADMIT);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(judge(&g, bad[i], NULL, NULL, NULL), WEB_STRANGE_HOST);
	gethostname(own, sizeof(own) - 1);
	assert_int_equal(judge(&g, own, NULL, NULL, NULL), WEB_ADMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_secrets),
		cmocka_unit_test(test_once),
		cmocka_unit_test(test_bearer_and_open),
		cmocka_unit_test(test_hosts),
	};

	return cmocka_run_group_tests_name("web", tests, NULL, NULL);
}
