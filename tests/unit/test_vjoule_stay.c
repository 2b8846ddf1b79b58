/* SPDX-License-Identifier: Apache-2.0 */
/* v0.2: names leave from the leaves up, whatever comes, goes, and is folded. */
#include "vjoule_fixture.h"

static const struct encode_options v02 = { .dialect_v02 = true };

static void expect(struct fixture *f, struct report *r, const char *names)
{
	char got[400] = "";

	report_of(r, f, true);
	for (unsigned i = 0; i < r->n_cgroups; i++)
		if (strcmp(r->cgroups[i].name, "/kernel") != 0)
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
	expect(&f, &r, "/x / ");
	f.snap.rows[5].selected = false;
	expect(&f, &r, "/x / ");
	f.snap.rows[4].selected = false;
	expect(&f, &r, "/ ");
	expect(&f, &r, "");
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

/* Node i lies below node (i - 1) / 3: 0 is the top. */
static void node_path(char *dst, size_t size, unsigned i)
{
	char up[400] = "";

	if (i)
		node_path(up, sizeof(up), (i - 1) / 3);
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
		assert_int_equal(f.ops->encode(f.encoder, &f.snap, &f.out), 0);
	}
	assert_int_equal(fwrite(f.out.data, 1, f.out.len, out), f.out.len);
	assert_int_equal(fclose(out), 0);
	assert_true(f.ops->stats(f.encoder)->folded_rows > 1000);
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
		cmocka_unit_test(test_root),
		cmocka_unit_test(test_formula_survives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
