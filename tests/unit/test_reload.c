/* SPDX-License-Identifier: Apache-2.0 */
/* Which changes of the configuration are refused while the agent runs: all that only its start reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "agent/reload.h"

static char path[] = "/tmp/jouled-reload-XXXXXX";

static int begin(void **state)
{
	int fd = mkstemp(path);

	return fd < 0 ? -1 : close(fd);
}

static int end(void **state)
{
	return unlink(path);
}

static struct config *config_of(const char *yaml)
{
	char *argv[] = { "jouled", "-c", path, NULL };
	struct config *c = NULL;
	enum config_action action;
	struct err err = { 0 };
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(yaml, f) >= 0);
	fclose(f);
	if (config_load(3, argv, &c, &action, &err) != 0)
		fail_msg("%s: %s", yaml, err.text);
	return c;
}

static void check(const char *before, const char *after, const char *key)
{
	struct config *a = config_of(before), *b = config_of(after);
	const char *refused = reload_refused(a, b);

	if (key ? !refused || strcmp(refused, key) != 0 : refused != NULL)
		fail_msg("'%s' to '%s': %s, not %s", before, after, refused ? refused : "taken", key ? key : "taken");
	assert_null(reload_refused(b, b));
	config_free(a);
	config_free(b);
}

#define TRACES "outputs: [{ format: zico, to: 'http://127.0.0.1:8640' }]\n"
#define FUNCTION "{ binary: /bin/true, symbol: main }"

static void test_refused(void **state)
{
	static const struct {
		const char *before, *after, *key;
	} changes[] = {
		{ "state-dir: /a", "state-dir: /b", "state-dir" },
		{ "", "sensor: other", "sensor" },
		{ "", "events: { core: [TASK_CLOCK] }", "events.core" },
		{ "", "cgroups: { max: 100 }", "cgroups.max" },
		{ "", "network: false", "network" },
		{ "", "calibrate: wall", "calibrate" },
		{ "", "socket: { path: /a }", "socket.path" },
		{ "web: { listen: '127.0.0.1:0', open: true }", "web: { listen: '127.0.0.1:0' }", "web" },
		{ "web: { listen: '127.0.0.1:0' }", "", "web" },
		{ "web: { token-file: /a }", "web: { token-file: /b }", "web" },
		{ "", "history: { keep: 1h }", "history.keep or size" },
		{ "", "price: 0.2", "price or carbon" },
		{ "", "spans: { processes: true }", "spans.processes" },
		{ "", "spans: { functions: [" FUNCTION "] }", "spans.functions" },
		{ "spans: { functions: [" FUNCTION "] }", "spans: { functions: [{ binary: /bin/true, symbol: exit }] }",
		  "spans.functions" },
		{ "", TRACES, "whether an output takes traces" },
		{ "", "profile: { frequency: 19 }", "profile" },
		{ "", "metrics: { top: 5 }", "metrics.top" },
		{ "", "seccomp: log", "seccomp" },
	};

	for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		check(changes[i].before, changes[i].after, changes[i].key);
}

/* Traces that went may come back: what sees processes stays. */
static void test_traces_again(void **state)
{
	struct config *first = config_of(TRACES), *second = config_of(""), *third = config_of(TRACES);

	reload_inherit(first, second);
	assert_null(reload_refused(first, second));
	reload_inherit(second, third);
	assert_null(reload_refused(second, third));
	config_free(first);
	config_free(second);
	config_free(third);
}

static void test_taken(void **state)
{
	check("", "interval: 5s", NULL);
	check("", "cgroups: { include: [/a/**] }", NULL);
	check("", "formula: model", NULL);
	check("", "outputs: [{ format: power, to: 'null:' }]", NULL);
	/* what sees processes was loaded at the start */
	check(TRACES, "", NULL);
	check("spans: { processes: true }", "spans: { processes: true }\n" TRACES, NULL);
	check("spans: { functions: [" FUNCTION "] }", "spans: { functions: [" FUNCTION "] }\n" TRACES, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_refused), cmocka_unit_test(test_taken),
					    cmocka_unit_test(test_traces_again) };

	return cmocka_run_group_tests(tests, begin, end);
}
