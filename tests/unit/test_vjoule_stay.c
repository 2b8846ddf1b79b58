/* SPDX-License-Identifier: Apache-2.0 */
/* v0.2: a name is sent with all that it lies in, and names leave from the leaves up, whatever comes, goes, and is
 * folded; no two cgroups have one; what simple_formula does with any of it never ends it. */
#include "vjoule_fixture.h"

static const struct encode_options v02 = { .dialect_v02 = true };

static bool see_root;

/* `/` is in every report: it is left out of `names` unless it is asked for. */
static void expect(struct fixture *f, struct report *r, const char *names)
{
	char got[400] = "";

	report_of(r, f, true);
	for (unsigned i = 0; i < r->n_cgroups; i++)
		if (strcmp(r->cgroups[i].name, "/kernel") != 0 && (r->cgroups[i].name[1] || see_root))
			snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s ", r->cgroups[i].name);
	assert_string_equal(got, names);
}

static void test_leaves_first(void **state)
{
	struct report r = { 0 };
	struct fixture f;

	fixture_init(&f, 1, 1);
	three_events(&f);
	fixture_ready(&f);
	counted_row(&f, "/a", 1, 5);
	counted_row(&f, "/a/b/c", 2, 5);
	counted_row(&f, "/a-b", 3, 5);
	counted_row(&f, "/a/b", 4, 5);
	fixture_create(&f, &encode_vjoule, &v02);
	expect(&f, &r, "/a /a/b/c /a-b /a/b ");
	f.snap.n_rows = READING_SPECIAL_ROWS;
	expect(&f, &r, "/a /a/b ");
	assert_int_equal(report_find(&r, "/a")[0] | report_find(&r, "/a/b")[0], 0);
	expect(&f, &r, "/a ");
	/* it comes back while it was going: as itself */
	f.snap.n_rows = READING_SPECIAL_ROWS + 1;
	expect(&f, &r, "/a ");
	assert_int_equal(report_find(&r, "/a")[0], 5);
	f.snap.n_rows = READING_SPECIAL_ROWS;
	expect(&f, &r, "");
	expect(&f, &r, "");
	free(r.cgroups);
	fixture_free(&f);
}

/* The parents of a name are sent with it, whether anything ever ran in them or not. */
static void test_parents_come_along(void **state)
{
	struct report r = { 0 };
	struct fixture f;

	fixture_init(&f, 1, 1);
	three_events(&f);
	fixture_ready(&f);
	counted_row(&f, "/p/c", 1, 5);
	counted_row(&f, "/p-/c", 2, 5);
	counted_row(&f, "/kernel/x/y", 3, 5);
	fixture_create(&f, &encode_vjoule, &v02);
	expect(&f, &r, "/p/c /p-/c /kernel/x/y /kernel/x /p /p- ");
	expect(&f, &r, "/p/c /p-/c /kernel/x/y /kernel/x /p /p- ");
	assert_int_equal(report_find(&r, "/p")[0], 0);
	f.snap.rows[READING_SPECIAL_ROWS + 1].selected = false;
	expect(&f, &r, "/p/c /kernel/x/y /kernel/x /p /p- ");
	expect(&f, &r, "/p/c /kernel/x/y /kernel/x /p ");
	/* nor does the kernel's row need to be there for what lies below that name */
	f.snap.rows[ROW_KERNEL].selected = false;
	report_of(&r, &f, true);
	report_of(&r, &f, true);
	assert_non_null(report_find(&r, "/kernel"));
	f.snap.n_rows = READING_SPECIAL_ROWS;
	expect(&f, &r, "/kernel/x /p ");
	report_of(&r, &f, true);
	assert_int_equal(r.n_cgroups, 2);
	assert_non_null(report_find(&r, "/kernel"));
	report_of(&r, &f, true);
	assert_int_equal(r.n_cgroups, 1);
	free(r.cgroups);
	fixture_free(&f);
}

#define SCOPE(n, name) "/m/machine-qemu\\x2d" n "\\x2d" name ".scope"

/* Two paths, one name: the first keeps it, among new ones the one that is called so; the other has its id behind it. */
static void test_names_differ(void **state)
{
	struct report r = { 0 };
	struct fixture f;
	struct snap_row *ended;

	fixture_init(&f, 1, 1);
	three_events(&f);
	fixture_ready(&f);
	counted_row(&f, SCOPE("1", "vm"), 11, 1);
	counted_row(&f, "/m/vm", 12, 2);
	counted_row(&f, SCOPE("2", "vm"), 13, 3);
	counted_row(&f, "/m/package~", 14, 4);
	counted_row(&f, "/m/package", 15, 5);
	counted_row(&f, "/machine-qemu\\x2d1\\x2dkernel.scope", 16, 6);
	fixture_create(&f, &encode_vjoule, &v02);
	for (unsigned i = 0; i < 2; i++) {
		expect(&f, &r, "/m/vm~11 /m/vm /m/vm~13 /m/package~ /m/package~~15 /kernel~16 /m ");
		assert_int_equal(report_find(&r, "/m/vm")[0], 2);
		assert_int_equal(report_find(&r, "/m/package~~15")[0], 5);
	}
	f.ops->destroy(f.encoder);

	f.snap.n_rows = READING_SPECIAL_ROWS;
	ended = counted_row(&f, SCOPE("1", "vm"), 11, 1);
	fixture_create(&f, &encode_vjoule, &v02);
	expect(&f, &r, "/m/vm /m ");
	counted_row(&f, "/m/vm", 12, 2);
	expect(&f, &r, "/m/vm /m/vm~12 /m ");
	/* while it is not selected, its name may be taken */
	ended->selected = false;
	counted_row(&f, SCOPE("2", "vm"), 13, 2);
	expect(&f, &r, "/m/vm~12 /m/vm /m ");
	ended->selected = true;
	expect(&f, &r, "/m/vm~11 /m/vm~12 /m/vm /m ");
	/* a machine that is started again within an interval is what it was before */
	f.snap.rows[READING_SPECIAL_ROWS + 2].ended = true;
	counted_row(&f, SCOPE("3", "vm"), 14, 4);
	expect(&f, &r, "/m/vm~11 /m/vm~12 /m/vm~13 /m/vm /m ");
	assert_int_equal(report_find(&r, "/m/vm")[0], 4);
	free(r.cgroups);
	fixture_free(&f);
}

/* No component grows beyond what a file system takes, and what cannot be told apart is told to be withheld. */
static void test_longest_component(void **state)
{
	static char plain[300] = "/m/", scope[300];
	struct report r = { 0 };
	struct fixture f;

	memset(plain + 3, 'v', 230);
	snprintf(scope, sizeof(scope), SCOPE("1", "%s"), plain + 3);
	assert_int_equal(strlen(scope) - 3, 255 + 2);
	fixture_init(&f, 1, 1);
	three_events(&f);
	fixture_ready(&f);
	counted_row(&f, scope, 1, 1);
	fixture_create(&f, &encode_vjoule, &v02);
	report_of(&r, &f, true);
	assert_int_equal(f.ops->stats(f.encoder)->withheld_rows, 1); /* 257 bytes: no cgroup */
	f.ops->destroy(f.encoder);

	f.snap.n_rows = READING_SPECIAL_ROWS;
	memset(plain + 3, 'v', 255);
	plain[3 + 255] = '\0';
	memset(scope, 0, sizeof(scope));
	memcpy(scope, plain, 3 + 255);
	memcpy(scope + 3, "machine-qemu", 12);
	counted_row(&f, scope, 18446744073709551615u, 1);
	memcpy(plain + 3, "machine~qemu", 12);
	counted_row(&f, plain, 2, 2);
	fixture_create(&f, &encode_vjoule, &v02);
	report_of(&r, &f, true);
	assert_int_equal(report_find(&r, plain)[0], 2);
	memcpy(plain + 3 + 255 - 21, "~18446744073709551615", 21);
	assert_int_equal(report_find(&r, plain)[0], 1);
	free(r.cgroups);
	fixture_free(&f);
}

/* The root contains all others. */
static void test_root(void **state)
{
	struct report r = { 0 };
	struct fixture f;

	fixture_init(&f, 1, 1);
	fixture_ready(&f);
	counted_row(&f, "/x", 1, 5);
	counted_row(&f, "/", 2, 5);
	fixture_create(&f, &encode_vjoule, &v02);
	see_root = true;
	expect(&f, &r, "/x / ");
	assert_int_equal(report_find(&r, "/")[0], 5000);
	f.snap.rows[5].selected = false;
	expect(&f, &r, "/x / ");
	assert_int_equal(report_find(&r, "/")[0], 0);
	f.snap.rows[4].selected = false;
	/* files of the formula's own lie in it */
	expect(&f, &r, "/ ");
	expect(&f, &r, "/ ");
	see_root = false;
	free(r.cgroups);
	fixture_free(&f);
}

/* A report without package energy is to simple_formula one without cgroups. */
static void test_silent_counter(void **state)
{
	struct report r = { 0 };
	struct fixture f;

	fixture_init(&f, 1, 1);
	three_events(&f);
	fixture_domain(&f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_ready(&f);
	counted_row(&f, "/a/b", 1, 5);
	counted_row(&f, "/", 1, 5);
	fixture_create(&f, &encode_vjoule, &v02);
	f.snap.domains[0].energy_uj = 1000000;
	expect(&f, &r, "/a/b /a ");
	f.snap.domains[0].energy_uj = 0;
	buf_reset(&f.out);
	for (unsigned i = 1; i <= 7; i++) {
		assert_int_equal(f.ops->encode(f.encoder, &f.snap, NULL, &f.out), 0);
		assert_int_equal(f.out.len, 0);
		assert_int_equal(f.ops->stats(f.encoder)->withheld_ticks, i);
	}
	assert_non_null(strstr(f.ops->stats(f.encoder)->reason, "no energy"));
	f.snap.domains[0].energy_uj = 7000000;
	expect(&f, &r, "/a/b /a ");
	assert_true(r.energy[2] == 7.0f);
	free(r.cgroups);
	fixture_free(&f);
}

static unsigned random_below(uint64_t *seed, unsigned n)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(*seed >> 33) % n;
}

#define NODES 1200
#define TICKS 150

/* Node i lies below node (i - 1) / 3: 0 is the top. Some are machines, some are called as the formula calls files. */
static void node_path(char *dst, size_t size, unsigned i)
{
	char up[400] = "";

	if (i)
		node_path(up, sizeof(up), (i - 1) / 3);
	if (i % 7 == 3)
		snprintf(dst, size, "%s/machine-qemu\\x2d%u\\x2d%s.scope", up, i % 2 + 1, i % 3 ? "vm" : "package");
	else if (i % 7 == 4)
		snprintf(dst, size, "%s/%s", up, i % 2 ? "vm" : "pp0");
	else
		snprintf(dst, size, "%s/node-of-a-tree-%u", up, i);
}

/* A tree that grows and is cut at random, too large for a report, with changing consumers: what the
 * formula does with it must never end it. */
static void run_random(const char *path, uint64_t seed)
{
	const char *args[] = { path, NULL };
	static char names[NODES][400];
	static bool alive[NODES];
	struct fixture f;
	FILE *out = fopen(path, "we");
	int status;

	assert_non_null(out);
	fixture_init(&f, 2, 1);
	three_events(&f);
	fixture_domain(&f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_ready(&f);
	assert_int_equal(snapshot_reserve(&f.snap, NODES + READING_SPECIAL_ROWS, 1), 0);
	fixture_create(&f, &encode_vjoule, &v02);
	assert_int_equal(f.ops->preamble(f.encoder, &f.schema, &f.out), 0);
	memset(alive, 0, sizeof(alive));
	for (unsigned t = 0; t < TICKS; t++) {
		unsigned large = 200 + random_below(&seed, 800);

		/* the counter answers, or does not for as long as the formula would take for the end of all cgroups */
		f.snap.domains[0].energy_uj = t % 30 < 22 ? 1000000 : 0;
		f.snap.n_rows = READING_SPECIAL_ROWS;
		for (unsigned i = 0; i < NODES; i++) {
			struct snap_row *row;

			node_path(names[i], sizeof(names[i]), i);
			if (!alive[i])
				alive[i] = i < large && (!i || alive[(i - 1) / 3]) && random_below(&seed, 3);
			else
				alive[i] = random_below(&seed, 50) && (!i || alive[(i - 1) / 3]);
			if (!alive[i])
				continue;
			row = counted_row(&f, names[i], i, random_below(&seed, 1000));
			row->key = READING_SPECIAL_ROWS + i;
			row->generation = t / 10;
		}
		assert_int_equal(f.ops->encode(f.encoder, &f.snap, NULL, &f.out), 0);
	}
	assert_int_equal(fwrite(f.out.data, 1, f.out.len, out), f.out.len);
	assert_int_equal(fclose(out), 0);
	assert_true(f.ops->stats(f.encoder)->folded_rows > 1000);
	assert_int_equal(f.ops->stats(f.encoder)->withheld_ticks, TICKS / 30 * 8);
	assert_true(f.ops->stats(f.encoder)->renamed_rows > 1000);
	status = fixture_python("check_vjoule_formula.py", args, "");
	if (status == 77)
		printf("SKIP test_formula_survives: no python3\n");
	else
		assert_int_equal(status, 0);
	fixture_free(&f);
}

static void test_formula_survives(void **state)
{
	char path[] = "/tmp/jouled-stay-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	for (uint64_t seed = 1; seed <= 3; seed++)
		run_random(path, seed);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaves_first),
		cmocka_unit_test(test_parents_come_along),
		cmocka_unit_test(test_names_differ),
		cmocka_unit_test(test_longest_component),
		cmocka_unit_test(test_root),
		cmocka_unit_test(test_silent_counter),
		cmocka_unit_test(test_formula_survives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
