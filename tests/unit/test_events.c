/* SPDX-License-Identifier: Apache-2.0 */
/* Event names: every captured machine with an expect-events file (format: check_line), and what
 * each answer of perf_event_open becomes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>

#include "base/parse.h"
#include "events_fixture.h"
#include "source/counters/topology.h"

#define SYSROOT "tests/sysroot"
#define PMU "/sys/bus/event_source/devices"

static void check_cpus(const uint8_t *cpus, const char *list)
{
	uint8_t want[1024 / 8];

	assert_true(parse_cpulist(list, want, 1024) > 0);
	assert_memory_equal(cpus, want, sizeof(want));
}

/* The event has the CPUs of all its encodings: a split by it is possible where each CPU has one. */
static void check_union(const struct event_desc *d)
{
	uint8_t all[1024 / 8] = { 0 };

	for (unsigned n = 0; n < out.variants[0].n; n++)
		for (unsigned i = 0; i < sizeof(all); i++)
			all[i] |= out.variants[0].v[n].cpus[i];
	assert_memory_equal(d->cpus, all, sizeof(all));
}

/* "TYPE CONFIG[:CONFIG1] PMU CPUS [+ TYPE CONFIG[:CONFIG1] CPUS]..."; "-" = none. */
static void check_encodings(char *text)
{
	const struct event_desc *d = &out.set.ev[0];
	char pmu[32], cpus[32];
	unsigned long long config, config1 = 0;
	char *save = NULL, *part = strtok_r(text, "+", &save);
	unsigned type, n = 1;

	if (sscanf(part, "%u %llx:%llx %31s %31s", &type, &config, &config1, pmu, cpus) != 5)
		assert_true(sscanf(part, "%u %llx %31s %31s", &type, &config, pmu, cpus) >= 3);
	assert_event(0, type, config, config1);
	assert_string_equal(d->pmu, strcmp(pmu, "-") == 0 ? "" : pmu);
	assert_int_equal(d->cpus_only_known, strchr(part, ' ') && cpus[0] >= '0' && cpus[0] <= '9');
	if (d->cpus_only_known)
		check_cpus(out.variants[0].n ? out.variants[0].v[0].cpus : d->cpus, cpus);
	while ((part = strtok_r(NULL, "+", &save))) {
		const struct event_variant *v = &out.variants[0].v[n++];

		config1 = 0;
		if (sscanf(part, "%u %llx:%llx %31s", &type, &config, &config1, cpus) != 4)
			assert_int_equal(sscanf(part, "%u %llx %31s", &type, &config, cpus), 3);
		assert_int_equal(v->type, type);
		assert_int_equal(v->config, config);
		assert_int_equal(v->config1, config1);
		check_cpus(v->cpus, cpus);
	}
	assert_int_equal(out.variants[0].n, n > 1 ? n : 0);
	if (n > 1) {
		assert_int_equal(out.variants[0].v[0].type, d->type);
		assert_int_equal(out.variants[0].v[0].config, d->config);
		assert_int_equal(out.variants[0].v[0].config1, d->config1);
		check_union(d);
	}
}

static void check_fit(const struct fsroot *root, const struct perf_seam *seam, char *text)
{
	char *save = NULL, *names[SCHEMA_MAX_EVENTS];
	int cpu = atoi(strtok_r(text, " ", &save)), want = atoi(strtok_r(NULL, " ", &save));
	unsigned n = 0;

	while (n < SCHEMA_MAX_EVENTS && (names[n] = strtok_r(NULL, " ", &save)))
		n++;
	resolve_list(root, seam, false, names, n);
	assert_int_equal(out.set.n, n);
	assert_int_equal(events_fit_variants(seam, &out.set, out.variants, cpu), want);
}

/* core|msr NAME ok ENCODINGS | absent TEXT | error TEXT | clock; fit CPU RESULT NAME...;
 * topology CPUS PACKAGES; cpu N PACKAGE DIE CORE; model VENDOR FAMILY MODEL. */
static void check_line(const struct fsroot *root, const struct perf_seam *seam, const struct schema *s, char *line)
{
	char word[8], name[SCHEMA_NAME_MAX], verb[8], vendor[16];
	unsigned a, b, c, d;
	int at = 0;

	if (sscanf(line, "topology %u %u", &a, &b) == 2) {
		assert_int_equal(s->n_cpus, a);
		assert_int_equal(s->n_packages, b);
	} else if (sscanf(line, "cpu %u %u %u %u", &a, &b, &c, &d) == 4) {
		assert_int_equal(s->cpus[a].package, b);
		assert_int_equal(s->cpus[a].die, c);
		assert_int_equal(s->cpus[a].core, d);
	} else if (sscanf(line, "model %15s %u %u", vendor, &a, &b) == 3) {
		struct cpu_model m;

		cpu_model_read(root, &m);
		assert_string_equal(m.vendor, strcmp(vendor, "-") == 0 ? "" : vendor);
		assert_int_equal(m.family, a);
		assert_int_equal(m.model, b);
	} else if (strncmp(line, "fit ", 4) == 0) {
		check_fit(root, seam, line + 4);
	} else {
		assert_int_equal(sscanf(line, "%7s %95s %7s %n", word, name, verb, &at), 3);
		assert_true(strcmp(word, "core") == 0 || strcmp(word, "msr") == 0);
		resolve(root, seam, strcmp(word, "msr") == 0, name);
		if (strcmp(verb, "ok") == 0)
			check_encodings(line + at);
		else if (strcmp(verb, "absent") == 0)
			assert_absent(name, line + at);
		else if (strcmp(verb, "error") == 0)
			assert_error(line + at);
		else if (strcmp(verb, "clock") == 0)
			assert_int_equal(out.set.ev[0].kind, EVENT_TASK_CLOCK);
		else
			fail_msg("%s?", verb);
	}
}

static unsigned check_machine(const char *name)
{
	char path[512], text[8192], *line, *save = NULL;
	struct perf_seam seam = { 0 };
	struct schema s = { 0 };
	struct err err = { 0 };
	struct fsroot *root;
	unsigned n = 0;
	int rc;

	snprintf(path, sizeof(path), SYSROOT "/%s", name);
	rc = fsroot_open(path, &root);
	if (rc == -ENOTDIR)
		return 0;
	assert_int_equal(rc, 0);
	if (fsroot_read(root, "/expect-events", text, sizeof(text)) > 0) {
		assert_true(fsroot_exists(root, "/source"));
		assert_int_equal(perf_seam_recorded(root, &seam), 0);
		assert_int_equal(topology_read(root, &s, &err), 0);
		for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save), n++) {
			print_message("%s: %s\n", name, line);
			check_line(root, &seam, &s, line);
		}
	}
	free(s.cpus);
	perf_seam_free(&seam);
	fsroot_close(root);
	return n;
}

static void test_captured_machines(void **state)
{
	DIR *d = opendir(SYSROOT);
	const struct dirent *e;
	unsigned lines = 0;

	(void)state;
	assert_non_null(d);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			lines += check_machine(e->d_name);
	closedir(d);
	assert_true(lines >= 55);
}

/* --- perf_event_open's answers */

static void test_errnos(void **state)
{
	static const struct {
		int error;
		const char *reason;
	} absent[] = {
		{ EACCES, "denied; give CAP_PERFMON and set kernel.perf_event_paranoid to 2 or lower (it is unknown)" },
		{ EPERM, "denied" },
		{ ENOENT, "does not have it" },
		{ ENODEV, "does not count it" },
		{ EOPNOTSUPP, "cannot count it" },
		{ EINVAL, "refuses it" },
		{ EBUSY, "held by somebody else" },
		{ ENOSYS, "built without perf events" },
	};
	struct temp_root t = temp_root_new(), lax = temp_root_new();
	struct perf_seam seam = { .open = answer };
	int error = EACCES;

	(void)state;
	seam.ctx = &error;
	temp_root_put(&lax, "/proc/sys/kernel/perf_event_paranoid", "2\n");
	resolve(lax.root, &seam, false, "CYCLES");
	assert_absent("CYCLES", "denied; give CAP_PERFMON or run as root");
	temp_root_free(&lax);
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		error = absent[i].error;
		resolve(t.root, &seam, false, "CYCLES");
		assert_absent("CYCLES", absent[i].reason);
		assert_int_equal(out.set.n, 1);
		assert_int_equal(out.set.ev[0].kind, EVENT_TASK_CLOCK);
		assert_string_equal(out.set.ev[0].name, "TASK_CLOCK");
		assert_non_null(strstr(out.set.ev[0].reason, absent[i].reason));
		resolve(t.root, &seam, true, "CYCLES");
		assert_absent("CYCLES", absent[i].reason);
		assert_int_equal(out.set.n, 0);
	}
	error = EMFILE;
	resolve(t.root, &seam, false, "CYCLES");
	assert_int_equal(out.rc, -EMFILE);
	assert_non_null(strstr(out.err.text, "events.core: perf_event_open of CYCLES: "));
	temp_root_free(&t);
}

static void test_stand_in(void **state)
{
	struct temp_root t = temp_root_new();

	(void)state;
	resolve_list(t.root, &yes, false, NULL, 0);
	assert_int_equal(out.rc, 0);
	assert_int_equal(out.set.n, 1);
	assert_int_equal(out.set.ev[0].kind, EVENT_TASK_CLOCK);
	assert_non_null(strstr(out.set.ev[0].reason, "no core event is configured"));
	resolve_list(t.root, &yes, true, NULL, 0);
	assert_int_equal(out.set.n, 0);
	resolve(t.root, &yes, false, "task-clock");
	assert_string_equal(out.set.ev[0].name, "task-clock");
	assert_string_equal(out.set.ev[0].reason, "");
	temp_root_free(&t);
}

static void test_limits(void **state)
{
	char *nine[] = { "cycles",        "instructions", "cache_misses", "cache-references", "branches",
			 "branch-misses", "bus-cycles",   "ref-cycles",   "LLC_MISSES" };
	char *twice[] = { "CYCLES", "INSTRUCTIONS", "CYCLES" }, *many[17], text[17][16], longest[SCHEMA_NAME_MAX + 1];
	struct temp_root t = temp_root_new();

	(void)state;
	resolve_list(t.root, &yes, false, nine, 9);
	assert_int_equal(out.rc, -E2BIG);
	resolve_list(t.root, &yes, false, nine, 8);
	assert_int_equal(out.rc, 0);
	assert_int_equal(out.set.n, 8);
	for (unsigned i = 0; i < 8; i++)
		assert_string_equal(out.set.ev[i].name, nine[i]);
	resolve_list(t.root, &yes, false, twice, 3);
	assert_error("CYCLES is named twice");
	for (unsigned i = 0; i < 17; i++) {
		snprintf(text[i], sizeof(text[i]), "cpu/c%u/", i);
		many[i] = text[i];
	}
	resolve_list(t.root, &yes, false, many, 17);
	assert_int_equal(out.rc, -E2BIG);
	resolve(t.root, &yes, false, "");
	assert_error("name of 0 bytes");
	memset(longest, 'A', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	resolve(t.root, &yes, false, longest);
	assert_error("name of 96 bytes");
	longest[sizeof(longest) - 2] = '\0';
	resolve(t.root, &yes, false, longest);
	assert_error("unknown event AAAA");
	resolve(t.root, &yes, false, "X\033[2J\n\xff");
	assert_error("X\\x1b[2J\\x0a\\xff");
	temp_root_free(&t);
}

/* --- events of the switch program */

static void put_siblings(const struct temp_root *t)
{
	temp_root_put(t, "/sys/devices/system/cpu/online", "0-1\n");
	temp_root_put(t, "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0-1\n");
}

static struct event_group group_of(const struct temp_root *t, enum trigger_mode trigger)
{
	return (struct event_group){ .root = t->root,
				     .seam = &yes,
				     .set = &out.set,
				     .variants = out.variants,
				     .absent = &out.absent,
				     .trigger = trigger };
}

static void test_switch_events(void **state)
{
	static const char *const names[] = { "SIBLING_BUSY", "idle-exits" };
	static char *both[] = { "SIBLING_BUSY", "idle-exits" };
	const struct str_list list = { .v = both, .n = 2 };
	struct temp_root t = temp_root_new();
	struct event_group none = group_of(&t, TRIGGER_NONE);

	(void)state;
	resolve(t.root, &yes, false, names[0]);
	assert_absent(names[0], "no core of this machine runs two threads");
	put_siblings(&t);
	for (int i = 0; i < 2; i++) {
		resolve(t.root, &yes, false, names[i]);
		assert_int_equal(out.rc, 0);
		assert_int_equal(out.set.ev[0].kind, i ? EVENT_IDLE_EXITS : EVENT_SIBLING_BUSY);
		assert_string_equal(out.set.ev[0].name, names[i]);
		assert_false(out.set.ev[0].added);
		resolve(t.root, &yes, true, names[i]);
		assert_error("list it under events.core");
	}
	assert_int_equal(events_resolve(&list, &none, &out.err), 0);
	assert_int_equal(out.absent.n, 2);
	assert_non_null(strstr(out.absent.ev[1].reason, "trigger none does not see"));
	assert_int_equal(out.set.ev[0].kind, EVENT_TASK_CLOCK);
	temp_root_free(&t);
}

/* Those that the agent adds are marked, are there once, and go again without a switch program. */
static void test_added_events(void **state)
{
	char *names[] = { "CYCLES", "IDLE_EXITS", "INSTRUCTIONS" };
	struct temp_root t = temp_root_new();
	struct event_group group = group_of(&t, TRIGGER_AUTO), none = group_of(&t, TRIGGER_NONE);

	(void)state;
	resolve_list(t.root, &yes, false, names, 3);
	events_add("SIBLING_BUSY", &group);
	assert_int_equal(out.set.n, 3); /* no SMT: nothing to say about what nobody asked for */
	assert_int_equal(out.absent.n, 0);
	put_siblings(&t);
	events_add("SIBLING_BUSY", &none);
	assert_int_equal(out.set.n, 3);
	events_add("SIBLING_BUSY", &group);
	events_add("IDLE_EXITS", &group);
	assert_int_equal(out.set.n, 4);
	assert_true(out.set.ev[3].added && out.set.ev[3].kind == EVENT_SIBLING_BUSY);
	assert_false(out.set.ev[1].added);
	events_lose_switches(&group);
	assert_int_equal(out.set.n, 2);
	assert_string_equal(out.set.ev[1].name, "INSTRUCTIONS");
	assert_absent("IDLE_EXITS", "no switch program runs");
	resolve(t.root, &yes, false, "SIBLING_BUSY");
	events_lose_switches(&group);
	assert_int_equal(out.set.ev[0].kind, EVENT_TASK_CLOCK);
	assert_non_null(strstr(out.set.ev[0].reason, "SIBLING_BUSY"));
	temp_root_free(&t);
}

static void test_added_events_find_no_room(void **state)
{
	char *eight[] = { "cycles",   "instructions",  "cache_misses", "cache-references",
			  "branches", "branch-misses", "bus-cycles",   "ref-cycles" };
	struct temp_root t = temp_root_new();
	struct event_group group = group_of(&t, TRIGGER_AUTO);

	(void)state;
	resolve_list(t.root, &yes, false, eight, 8);
	events_add("IDLE_EXITS", &group);
	assert_int_equal(out.set.n, 8);
	assert_string_equal(out.set.ev[7].name, "ref-cycles");
	temp_root_free(&t);
}

/* --- one encoding per CPU, and whether all fit */

static void test_event_on_cpu(void **state)
{
	struct event_desc e = { .type = 1, .config = 2 };
	struct event_variants v = { .n = 2,
				    .v = { { .type = 1, .config = 2, .cpus = { 0x0f } },
					   { .type = 8, .config = 3, .cpus = { 0, 0, 0xff } } } };
	struct event_variant got = { 0 };

	(void)state;
	assert_int_equal(event_on_cpu(&e, NULL, 4000, &got), 0);
	assert_int_equal(got.type, 1);
	e.cpus_only_known = 1;
	e.cpus[0] = 0x0f;
	assert_int_equal(event_on_cpu(&e, NULL, 16, &got), -ENODEV);
	e.cpus[2] = 0xff; /* of both encodings */
	assert_int_equal(event_on_cpu(&e, &v, 3, &got), 0);
	assert_int_equal(got.config, 2);
	assert_int_equal(event_on_cpu(&e, &v, 16, &got), 0);
	assert_int_equal(got.type, 8);
	assert_int_equal(event_on_cpu(&e, &v, 4, &got), -ENODEV);
	assert_int_equal(event_on_cpu(&e, &v, 1024, &got), -ENODEV);
}

/* A core that was off line at the start is in no PMU's list then. */
static void test_cpu_came(void **state)
{
	struct event_set set = { .n = 3 };
	struct event_variants v[SCHEMA_MAX_EVENTS] = {
		{ .n = 2, .v = { { 0, 0x400000000, .cpus = { 3 } }, { 0, 0x800000000, .cpus = { 0x30 } } } }
	};
	struct temp_root t = temp_root_new();

	(void)state;
	temp_root_put(&t, PMU "/cpu_core/type", "4\n");
	temp_root_put(&t, PMU "/cpu_core/cpus", "0-3\n");
	temp_root_put(&t, PMU "/cpu_atom/type", "8\n");
	temp_root_put(&t, PMU "/cpu_atom/cpus", "4-5\n");
	set.ev[0] = (struct event_desc){
		.kind = EVENT_PERF, .config = 0x400000000, .cpus_only_known = 1, .cpus = { 0x33 }
	};
	set.ev[1] = (struct event_desc){ .kind = EVENT_PERF, .type = 8, .cpus_only_known = 1, .cpus = { 0x30 } };
	set.ev[2] = (struct event_desc){ .kind = EVENT_PERF, .type = 1 };
	events_cpu_came(t.root, &set, v, 2);
	assert_int_equal(set.ev[0].cpus[0], 0x37);
	assert_int_equal(v[0].v[0].cpus[0], 7);
	assert_int_equal(v[0].v[1].cpus[0], 0x30);
	assert_int_equal(set.ev[1].cpus[0], 0x30);
	assert_int_equal(set.ev[2].cpus[0], 0);
	events_cpu_came(t.root, &set, v, 6);
	events_cpu_came(t.root, &set, v, 5000);
	assert_int_equal(set.ev[0].cpus[0], 0x37);
	temp_root_free(&t);
}

static int fit(const char *answers, int cpu)
{
	char *names[] = { "CYCLES", "INSTRUCTIONS", "TASK_CLOCK" };
	struct temp_root t = temp_root_new();
	struct perf_seam seam;
	int ret;

	temp_root_put(&t, "/perf-seam", "0 * * ok\n");
	assert_int_equal(perf_seam_recorded(t.root, &seam), 0);
	resolve_list(t.root, &seam, false, names, 3);
	assert_int_equal(out.set.n, 3);
	perf_seam_free(&seam);
	temp_root_put(&t, "/perf-seam", answers);
	assert_int_equal(perf_seam_recorded(t.root, &seam), 0);
	ret = events_fit(&seam, &out.set, cpu);
	perf_seam_free(&seam);
	temp_root_free(&t);
	return ret;
}

static void test_fit(void **state)
{
	const struct event_set clock = { .n = 1, .ev = { { .kind = EVENT_TASK_CLOCK } } };

	(void)state;
	assert_int_equal(fit("0 * * ok\n", 0), 1);
	assert_int_equal(fit("0 0 * ok\n0 1 * starved\n", 0), 0);
	assert_int_equal(fit("0 0 * ok\n0 1 * EBUSY\n", 0), 0);
	assert_int_equal(fit("0 * 0 ok\n0 * 1 starved\n", 1), 0);
	assert_int_equal(fit("0 0 * EACCES\n0 1 * EBUSY\n", 0), -EACCES);
	assert_int_equal(events_fit(&yes, &clock, 0), 1);
}

static void test_live(void **state)
{
	struct perf_seam seam = perf_seam_live();
	struct fsroot *root;

	(void)state;
	assert_int_equal(fsroot_open("/", &root), 0);
	resolve(root, &seam, false, "PERF_COUNT_SW_PAGE_FAULTS");
	if (out.rc == 0 && out.absent.n &&
	    (strstr(out.absent.ev[0].reason, "denied") || strstr(out.absent.ev[0].reason, "without perf"))) {
		printf("SKIP events_live: %s\n", out.absent.ev[0].reason);
	} else {
		assert_event(0, 1, 2, 0); /* PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS (perf_event.h) */
		assert_int_equal(events_fit(&seam, &out.set, 0), 1);
	}
	fsroot_close(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_captured_machines),
		cmocka_unit_test(test_errnos),
		cmocka_unit_test(test_stand_in),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_switch_events),
		cmocka_unit_test(test_added_events),
		cmocka_unit_test(test_added_events_find_no_room),
		cmocka_unit_test(test_event_on_cpu),
		cmocka_unit_test(test_cpu_came),
		cmocka_unit_test(test_fit),
		cmocka_unit_test(test_live),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
