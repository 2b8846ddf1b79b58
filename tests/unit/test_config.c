/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: defaults, file, flags, and for every kind of mistake its own line and remedy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/config/config.h"

#define MAX_ARGS 32

static char path[] = "/tmp/jouled-config-XXXXXX";

static int setup(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static void put(const char *text, size_t len)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	fclose(f);
}

/* argv = "jouled -c FILE" and the words of flags, split at blanks. */
static int load(const char *flags, struct config **ret, enum config_action *ret_action, struct err *err)
{
	char *argv[MAX_ARGS] = { "jouled" }, *copy = strdup(flags ? flags : ""), *next;
	bool doctor = flags && strncmp(flags, "doctor", 6) == 0;
	int argc = 1, rc;

	if (doctor)
		argv[argc++] = "doctor";
	argv[argc++] = "-c";
	argv[argc++] = path;
	for (char *w = strtok_r(copy + (doctor ? 6 : 0), " ", &next); w; w = strtok_r(NULL, " ", &next))
		argv[argc++] = w;
	rc = config_load(argc, argv, ret, ret_action, err);
	free(copy);
	return rc;
}

static struct config *good(const char *yaml, const char *flags)
{
	struct config *c = NULL;
	enum config_action action;
	struct err err = { 0 };

	put(yaml, strlen(yaml));
	if (load(flags, &c, &action, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(action, ACTION_RUN);
	return c;
}

static void refused(const char *yaml, size_t len, const char *flags, const char *want)
{
	struct config *c = (struct config *)0x1;
	enum config_action action = (enum config_action)77;
	struct err err = { 0 };
	char full[600];
	int rc;

	put(yaml, len);
	rc = load(flags, &c, &action, &err);
	snprintf(full, sizeof(full), "%s%s", *want == ':' ? path : "", want);
	if (rc >= 0 || c != (struct config *)0x1 || action != (enum config_action)77)
		fail_msg("taken: %s", yaml);
	if (strncmp(err.text, full, strlen(full)) != 0)
		fail_msg("\"%s\" is not \"%s...\"", err.text, full);
	if (strchr(err.text, '\n') || !strpbrk(err.text, ";?"))
		fail_msg("no remedy, or not one line: %s", err.text);
}

static void bad(const char *yaml, const char *want)
{
	refused(yaml, strlen(yaml), "", want);
}

static void bad_flag(const char *flags, const char *want)
{
	refused("", 0, flags, want);
}

/* The figures are those of the design and of jouled.yaml(5). */
static void test_defaults(void **state)
{
	struct config *c = good("# nothing\n", "");
	char host[256];

	(void)state;
	assert_int_equal(gethostname(host, sizeof(host)), 0);
	assert_string_equal(c->machine.sensor, host);
	assert_int_equal(c->interval_ns, 1000000000);
	assert_int_equal(c->count, 0);
	assert_int_equal(c->machine.cgroups.include.n, 1);
	assert_string_equal(c->machine.cgroups.include.v[0], "/**");
	assert_int_equal(c->machine.cgroups.exclude.n, 0);
	assert_int_equal(c->machine.cgroups.max, 4096);
	assert_int_equal(c->machine.events.core.n, 3);
	assert_string_equal(c->machine.events.core.v[2], "LLC_MISSES");
	assert_int_equal(c->machine.events.msr.n, 3);
	assert_string_equal(c->machine.events.msr.v[0], "TSC");
	assert_true(c->machine.network);
	assert_int_equal(c->machine.trigger, TRIGGER_AUTO);
	assert_int_equal(c->machine.energy.rapl, RAPL_AUTO);
	assert_int_equal(c->machine.energy.estimate, ESTIMATE_AUTO);
	assert_true(c->machine.energy.estimate_idle_watts == 1.5 && c->machine.energy.estimate_max_watts == 8);
	assert_string_equal(c->formula.name, "share");
	assert_string_equal(c->formula.weight, "cycles");
	assert_string_equal(c->formula.idle, "own");
	for (unsigned i = 0; i < DOMAIN_GPU; i++)
		assert_true(isnan(c->formula.idle_watts[i]));
	assert_int_equal(c->outputs.n, 0);
	assert_string_equal(c->state_dir, "/var/lib/jouled");
	assert_string_equal(c->serving.socket.path, "/run/jouled/jouled.sock");
	assert_string_equal(c->machine.root, "/");
	assert_string_equal(c->program.file, path);
	config_free(c);
	config_free(NULL);
}

static void test_every_key(void **state)
{
	struct config *c = good(
		"sensor: node-7\ninterval: 500ms\n"
		"cgroups: { include: [\"/a/**\", /b], exclude: [/a/x], hierarchy: v1, max: 64, quota: 9 }\n"
		"trigger: perf_event\nclock: ktime\nevents: { core: [], msr: [APERF, MPERF] }\nnetwork: off\n"
		"rapl: msr\nrapl-poll: 20ms\ncross-check: yes\nestimate: off\nestimate-idle-watts: 0.5\n"
		"estimate-max-watts: 3\nformula: none\nweight: cycles-by-frequency\nidle: by-share\n"
		"idle-watts: { package: 10, core: 1, uncore: 2.5, dram: 3, psys: 20 }\n"
		"socket: { path: none, group: adm }\nstate-dir: /tmp/x\n"
		"outputs:\n"
		"  - { format: hwpc, to: \"tcp://127.0.0.1:9080?leaf-only&stand-ins=false\", interval: 2s, time: iso, queue: 64KiB }\n"
		"  - format: table\n    to: \"stdout:\"\n    limit: 5\n"
		"  - { format: power, to: \"tcp-listen://[::1]:0\", port-file: /run/p, file-format: csv }\n",
		"");

	(void)state;
	assert_string_equal(c->machine.sensor, "node-7");
	assert_int_equal(c->machine.cgroups.include.n, 2);
	assert_string_equal(c->machine.cgroups.include.v[1], "/b");
	assert_int_equal(c->machine.cgroups.hierarchy, HIERARCHY_V1);
	assert_int_equal(c->machine.cgroups.max, 64);
	assert_int_equal(c->machine.cgroups.quota, 9);
	assert_int_equal(c->machine.trigger, TRIGGER_PERF_EVENT);
	assert_int_equal(c->machine.clock, CLOCKMODE_KTIME);
	assert_int_equal(c->machine.events.core.n, 0);
	assert_int_equal(c->machine.events.msr.n, 2);
	assert_false(c->machine.network);
	assert_int_equal(c->machine.energy.rapl, RAPL_MSR);
	assert_int_equal(c->machine.energy.rapl_poll_ns, 20000000);
	assert_true(c->machine.energy.cross_check);
	assert_int_equal(c->machine.energy.estimate, ESTIMATE_OFF);
	assert_true(c->formula.idle_watts[DOMAIN_UNCORE] == 2.5 && c->formula.idle_watts[DOMAIN_PSYS] == 20);
	assert_null(c->serving.socket.path);
	assert_string_equal(c->serving.socket.group, "adm");
	assert_int_equal(c->outputs.n, 3);
	assert_string_equal(c->outputs.v[0].to, "tcp://127.0.0.1:9080");
	assert_true(c->outputs.v[0].leaf_only);
	assert_false(c->outputs.v[0].stand_ins);
	assert_int_equal(c->outputs.v[0].interval_ns, 2000000000);
	assert_int_equal(c->outputs.v[0].queue_bytes, 65536);
	assert_int_equal(c->outputs.v[0].line, 21);
	assert_true(c->outputs.v[1].stand_ins);
	assert_int_equal(c->outputs.v[1].limit, 5);
	assert_int_equal(c->outputs.v[1].queue_bytes, 4 << 20);
	assert_string_equal(c->outputs.v[2].port_file, "/run/p");
	assert_string_equal(c->outputs.v[2].file_format, "csv");
	config_free(c);
}

static void test_wrong_keys(void **state)
{
	(void)state;
	bad("sensor: a\n\nintervall: 3s\n", ":3: unknown key \"intervall\"; did you mean interval?");
	bad("cgroups:\n  max: 9\n  incldue: [/]\n", ":3: unknown key \"cgroups.incldue\"; did you mean include?");
	bad("outputs:\n  - { format: hwpc,\n      to: \"null:\", tmie: ms }\n",
	    ":3: unknown key \"outputs.tmie\"; did you mean time?");
	bad("zzzzzzzz: 1\n", ":1: unknown key \"zzzzzzzz\"; see jouled.yaml(5)");
	bad("replay: x\n", ":1: unknown key \"replay\""); /* a flag only */
	bad("? [a, b]\n: 1\n", ":1: unknown key");
	bad("interval: 1s\nsensor: x\ninterval: 2s\n", ":3: interval: given twice, first on line 1");
	bad("<<: { interval: 1s }\n", ":1: unknown key \"<<\"");
	bad("a: &x [*x]\n", ":1: unknown key \"a\"");
	bad("\"\\e[31m\": 1\n", ":1: unknown key \"\\x1b[31m\"");
	/* of two mistakes the first one */
	bad("interval: x\nnetwork: maybe\n", ":1: interval: ");
}

static void test_wrong_values(void **state)
{
	(void)state;
	bad("interval: 5\n", ":1: interval: \"5\" is not valid; expected a duration from 10ms to 1h");
	bad("interval: 9ms\n", ":1: interval: ");
	bad("interval: 3601s\n", ":1: interval: ");
	bad("interval: [1s]\n", ":1: interval: found a list; expected a duration");
	bad("interval:\n", ":1: interval: found nothing; expected a duration");
	bad("network: maybe\n", ":1: network: \"maybe\" is not valid; expected true or false");
	bad("network: \"true\"\n", ":1: network: ");
	bad("rapl: { mode: auto }\n", ":1: rapl: found a map; expected auto, powercap, perf, msr or none");
	bad("cgroups: 3\n", ":1: cgroups: found a single value; expected a map");
	bad("cgroups: { max: 12.5 }\n", ":1: cgroups.max: ");
	bad("cgroups: { max: -1 }\n", ":1: cgroups.max: ");
	bad("cgroups:\n  include:\n    - /a\n    - x\n", ":4: cgroups.include: \"x\" is not valid; expected a pattern");
	bad("cgroups: { include: [[/a]] }\n", ":1: cgroups.include: ");
	bad("events: { core: [A, B, C, D, E, F, G, H, I] }\n", ":1: events.core: more than 8 entries");
	bad("events: { core: [\"A B\"] }\n", ":1: events.core: ");
	bad("idle-watts: { package: many }\n", ":1: idle-watts.package: ");
	bad("idle-watts: { package: -1 }\n", ":1: idle-watts.package: ");
	bad("idle-watts: { package: .nan }\n", ":1: idle-watts.package: ");
	bad("sensor: \"it's\"\n", ":1: sensor: \"it's\" is not valid; expected a name without apostrophe");
	bad("sensor: \"a\\0b\"\n", ":1: sensor: the value holds a NUL byte");
	bad("sensor: \"a\\eb\"\n", ":1: sensor: \"a\\x1bb\" is not valid");
	bad("estimate-idle-watts: 9\n", ":1: estimate-max-watts: 8 W is below estimate-idle-watts, 9 W");
	bad("- a\n", ":1: found a list; expected keys");
	bad("interval: 1s\n---\nsensor: x\n", ":3: a second document; keep one");
}

static void test_wrong_outputs(void **state)
{
	(void)state;
	bad("outputs: { format: hwpc }\n", ":1: outputs: found a map; expected a list of at most 64 maps");
	bad("outputs:\n  - 3\n", ":2: outputs: found a single value");
	bad("outputs:\n  - to: \"stdout:\"\n", ":2: outputs.format: missing");
	bad("outputs:\n\n  - format: hwpc\n", ":3: outputs.to: missing");
	bad("outputs:\n  - format: table\n    to: \"stdout:\"\n    time: ms\n",
	    ":4: outputs.time: not an option of format table; it belongs to hwpc power");
	bad("outputs:\n  - format: table\n    to: \"stdout:?leaf-only\"\n", ":3: outputs.leaf-only: not an option");
	bad("outputs:\n  - format: table\n    to: stdio\n", ":3: outputs.to: \"stdio\" is no place for an output");
	bad("outputs:\n  - format: hwpc\n    to: \"stdout:\"\n    file-format: csv\n", ":4: outputs.file-format: ");
	bad("outputs:\n  - format: hwpc\n    to: \"stdout:\"\n    port-file: /x\n", ":4: outputs.port-file: ");
	bad("outputs:\n  - format: hwpc\n    to: \"stdout:?tiem=ms\"\n",
	    ":3: unknown option \"tiem\"; did you mean time?");
	bad("outputs:\n  - format: hwpc\n    to: \"stdout:?time=%zz\"\n", ":3: option time: ");
	bad("outputs:\n  - format: hwpc\n    to: \"stdout:?to=x\"\n", ":3: unknown option \"to\"");
	bad("outputs:\n  - format: hwpcc\n", ":2: outputs.format: \"hwpcc\" is not valid; expected hwpc, power,");
}

/* A message names the line of the key that it is about. */
static void test_lines_of_keys(void **state)
{
	static const char out[] = "outputs:\n  - format: otlp\n    to: \"http://h\"\n";
	static const char machine[] = "outputs:\n  - format: snapshot\n    to: \"unix-listen:///s\"\n    guest: /vm\n";
	static const char meter[] = "meters:\n  - type: redfish\n    url: \"https://h\"\n";
	char text[200];

	(void)state;
	snprintf(text, sizeof(text), "%s    key-file: /k\n", out);
	bad(text, ":4: outputs.key-file: a key without its certificate");
	snprintf(text, sizeof(text), "%s    token-file: /t\n    user: u\n", out);
	bad(text, ":4: outputs.token-file: a token and a user");
	snprintf(text, sizeof(text), "%s    user: u\n", out);
	bad(text, ":4: outputs.user: without the other");
	snprintf(text, sizeof(text), "%s    timeout: 1s\n    password-file: /p\n", out);
	bad(text, ":5: outputs.password-file: without the other");
	snprintf(text, sizeof(text), "%s    cgroups: [/a]\n", machine);
	bad(text, ":5: outputs.cgroups: a machine is told one sum");
	bad("outputs:\n  - format: snapshot\n    to: \"vsock-listen://x:1\"\n    guest: /vm\n", ":3: outputs.to: ");
	bad("outputs:\n  - format: snapshot\n    to: \"vsock-listen://any:1\"\n    guest: /vm\n",
	    ":4: outputs.guest: ");
	bad("meters:\n  - type: redfish\n    pace: 1s\n    url: \"http://h\"\n", ":4: meters.url: is no https://");
	snprintf(text, sizeof(text), "%s    pace: 1s\n    user: u\n", meter);
	bad(text, ":5: meters.user: without the other");
	snprintf(text, sizeof(text), "%s    password-file: /p\n", meter);
	bad(text, ":4: meters.password-file: without the other");
	bad("meters:\n  - type: dcmi\n    pace: 1s\n    ca-file: /c\n", ":4: meters.ca-file: is of type redfish alone");
}

/* What takes no snapshots has no interval, wherever it goes. */
static void test_interval_for_nothing(void **state)
{
	static const char *const formats[] = { "pprof", "otlp-profiles" };
	char text[200], want[100];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), "outputs:\n  - format: %s\n    to: \"http://h\"\n    interval: 2s\n",
			 formats[i]);
		snprintf(want, sizeof(want), ":4: outputs.interval: format %s sends ", formats[i]);
		bad(text, want);
	}
	bad_flag("-o pprof=http://h?interval=2s", "-o pprof=http://h?interval=2s: interval: format pprof sends one");
}

static void test_broken_files(void **state)
{
	char *big = malloc((1 << 20) + 1);

	(void)state;
	bad("interval: 1s\n  a: [\n", ":");
	bad("interval: [1s\n\n\nsensor: x\n", ":");
	refused("interval: 1s\nsensor: \xff\n", 24, "", ":2: byte 0xff is not UTF-8");
	refused("\xff\xfe\x61\x00", 4, "", ":1: byte 0xff is not UTF-8");
	memset(big, '#', (1 << 20) + 1);
	refused(big, (1 << 20) + 1, "", ": larger than 1 MiB");
	memset(big, '[', 1 << 20);
	refused(big, 100000, "", ":");
	free(big);
	bad_flag("-c /nonexistent/file", "/nonexistent/file: cannot be read: No such file");
	bad_flag("-c /tmp", "/tmp: cannot be read: Is a directory");
}

static void test_flags(void **state)
{
	struct config *c = good(
		"interval: 2s\nrapl: perf\noutputs: [{ format: table, to: \"stdout:\" }]\n",
		"-i 20ms -qv -n5 --rapl=none --formula none --idle by-time --trigger none --estimate off "
		"--socket none --state-dir /s --root /r");

	(void)state;
	assert_int_equal(c->interval_ns, 20000000);
	assert_int_equal(c->count, 5);
	assert_true(c->program.quiet && c->program.verbose);
	assert_int_equal(c->machine.energy.rapl, RAPL_NONE);
	assert_string_equal(c->formula.name, "none");
	assert_string_equal(c->formula.idle, "by-time");
	assert_int_equal(c->machine.trigger, TRIGGER_NONE);
	assert_int_equal(c->machine.energy.estimate, ESTIMATE_OFF);
	assert_null(c->serving.socket.path);
	assert_string_equal(c->state_dir, "/s");
	assert_string_equal(c->machine.root, "/r");
	assert_int_equal(c->outputs.n, 1);
	config_free(c);

	c = good("outputs: [{ format: table, to: \"stdout:\" }]\n",
		 "-o hwpc=unix:///a%20b?time=iso -onull: --output=power=file:///p?file-format=csv --replay - --btf /b");
	assert_int_equal(c->outputs.n, 3);
	assert_string_equal(c->outputs.v[0].format, "hwpc");
	assert_string_equal(c->outputs.v[0].time, "iso");
	assert_string_equal(c->outputs.v[1].format, "null");
	assert_string_equal(c->outputs.v[1].to, "null:");
	assert_string_equal(c->outputs.v[2].to, "file:///p");
	assert_int_equal(c->outputs.v[2].line, 0);
	assert_string_equal(c->program.replay, "-");
	config_free(c);
}

static void test_wrong_flags(void **state)
{
	(void)state;
	bad_flag("--intervl 3s", "--intervl: unknown option; did you mean --interval?");
	bad_flag("-x", "-x: unknown option; see");
	bad_flag("run", "run: not an option; see");
	bad_flag("-i", "-i: needs a value; ");
	bad_flag("--count", "--count: needs a value; ");
	bad_flag("--check=1", "--check: takes no value; ");
	bad_flag("-i bad", "--interval: \"bad\" is not valid; expected a duration");
	bad_flag("-n 0", "--count: ");
	bad_flag("-o hwpc", "-o hwpc: no format and place; expected FORMAT=URL");
	bad_flag("-o x=stdout:", "-o x=stdout:: format: \"x\" is not valid; expected hwpc");
	bad_flag("-o table=stdout:?time=ms", "-o table=stdout:?time=ms: time: not an option of format table");
	bad_flag("-o hwpc=stdout:?interval=1ms", "-o hwpc=stdout:?interval=1ms: interval: ");
}

static void action(const char *flags, enum config_action want)
{
	struct config *c = NULL;
	enum config_action a;
	struct err err = { 0 };

	assert_int_equal(load(flags, &c, &a, &err), 0);
	assert_int_equal(a, want);
	config_free(c);
}

static void test_actions(void **state)
{
	(void)state;
	put("", 0);
	action("doctor --rapl msr", ACTION_DOCTOR);
	action("--check", ACTION_CHECK);
	put("nonsense", 8); /* help and version answer all the same */
	action("--version", ACTION_VERSION);
	action("--help", ACTION_HELP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_every_key),
		cmocka_unit_test(test_wrong_keys),
		cmocka_unit_test(test_wrong_values),
		cmocka_unit_test(test_wrong_outputs),
		cmocka_unit_test(test_broken_files),
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_wrong_flags),
		cmocka_unit_test(test_actions),
		cmocka_unit_test(test_lines_of_keys),
		cmocka_unit_test(test_interval_for_nothing),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
