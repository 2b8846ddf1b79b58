/* SPDX-License-Identifier: Apache-2.0 */
/* Cgroups of a vjoule report: sizes, names, joined and folded rows, the cost of nothing new. */
#include "vjoule_fixture.h"

int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void *, size_t),
					      void (*free_hook)(const volatile void *));

static const struct encode_options document = { 0 }, v02 = { .dialect_v02 = true };
static unsigned allocations;

static void on_malloc(const volatile void *p, size_t size)
{
	(void)p;
	(void)size;
	allocations++;
}

static void on_free(const volatile void *p)
{
	(void)p;
}

/* n cgroups with paths of exactly `len` bytes. */
static char *many_rows(struct fixture *f, unsigned n, size_t len)
{
	char *paths = calloc(n + 1, len + 1);

	assert_non_null(paths);
	assert_int_equal(snapshot_reserve(&f->snap, n + READING_SPECIAL_ROWS, 1), 0);
	memset(f->snap.energy_uj, 0, sizeof(uint64_t) * f->snap.cap_energy);
	for (unsigned i = 0; i < n; i++) {
		char *path = paths + i * (len + 1);
		int used = snprintf(path, len + 1, "/g%u-", i);

		memset(path + used, 'x', len - (size_t)used);
		counted_row(f, path, 100 + i, i + 1);
	}
	return paths;
}

/* 28 + 4 f + 4 + 16 s + 2 + sum(8 + len + 16 m), and 24 + 10 s + 4 + sum(8 + len + 10 m). */
static void test_sizes(void **state)
{
	static const unsigned counts[] = { 0, 1, 500 };

	for (unsigned i = 0; i < 3; i++) {
		struct report r = { 0 };
		struct fixture f;
		unsigned n = counts[i];
		char *paths;

		fixture_init(&f, 4, 1);
		f.schema.cpufreq = true;
		three_events(&f);
		fixture_ready(&f);
		paths = many_rows(&f, n, 60);
		fixture_create(&f, &encode_vjoule, &v02);
		report_of(&r, &f, true);
		assert_int_equal(r.bytes - 4, 28 + 4 * 4 + 4 + 16 * 2 + 2 + n * (8 + 60 + 16 * 2) + (8 + 7 + 16 * 2) +
						      (8 + 1 + 16 * 2));
		assert_int_equal(r.n_cgroups, n + 2); /* `/kernel`, and `/` that all lie in */
		f.ops->destroy(f.encoder);
		fixture_create(&f, &encode_vjoule, &document);
		report_of(&r, &f, false);
		assert_int_equal(r.bytes - 4, 24 + 10 * 3 + 4 + n * (8 + 60 + 10 * 3) + (8 + 7 + 10 * 3));
		free(r.cgroups);
		free(paths);
		fixture_free(&f);
	}
}

static void test_names(void **state)
{
	/* clang-format off */
	static const struct { const char *path; bool document, changed; const char *v02; } cases[] = {
		{ "/", true, false, "/" }, { "/a b/\xff\n\x01", true, false, "/a b/\xff\n\x01" },
		{ "/..a/b..", true, false, "/..a/b.." }, { "/.../.", true, true, "/.../.~" },
		{ "/a/../b", false, false, NULL }, { "/..", false, false, NULL }, { "/a/..", false, false, NULL },
		{ "a", false, false, NULL }, { "", false, false, NULL }, { "/a/package", true, true, "/a/package~" },
		{ "/memory_max/b", true, true, "/memory_max~/b" }, { "/psys", true, true, "/psys~" },
		{ "/package_", true, false, "/package_" }, { "/packages", true, false, "/packages" },
		{ "/config.toml", true, true, "/config.toml~" }, { "/config.toml/x", true, true, "/config.toml~/x" },
		{ "/a/config.toml", true, false, "/a/config.toml" }, { "/formula.signal", true, true, "/formula.signal~" },
		{ "/m/machine-qemu\\x2d12\\x2dvm.scope", true, true, "/m/vm" },
		{ "/m/machine-qemu\\x2d12\\x2dvm.scope/libvirt/vcpu0", true, true, "/m/vm/libvirt/vcpu0" },
		{ "/m/machine-qemu\\x2d13\\x2dmy\\x2dvm.scope", true, true, "/m/my\\x2dvm" },
		{ "/m/machine-qemu\\x2d14\\x2dpackage.scope", true, true, "/m/package~" },
		{ "/m/machine-qemu\\x2d15\\x2d...scope", true, true, "/m/..~" },
		{ "/n/machine-qemu\\x2d16\\x2d.scope", true, true, "/n/machine~qemu\\x2d16\\x2d.scope" },
		{ "/n/machine-qemu\\x2d\\x2dvm.scope", true, true, "/n/machine~qemu\\x2d\\x2dvm.scope" },
		{ "/n/machine-qemu\\x2d1\\x2dvm.service", true, true, "/n/machine~qemu\\x2d1\\x2dvm.service" },
		{ "/n/machine-qemu\\x2d1\\x2dmachine-qemu.scope", true, true, "/n/machine~qemu" },
		{ "/n/x-machine-qemu-machine-qemu", true, true, "/n/x-machine~qemu-machine~qemu" },
		{ "/n/machine-qem", true, false, "/n/machine-qem" }, { "/n//o", true, false, NULL },
	};
	/* clang-format on */
	struct report r = { 0 };
	struct fixture f;

	for (unsigned d = 0; d < 2; d++) {
		unsigned refused = 0, changed = 0;

		fixture_init(&f, 1, 1);
		three_events(&f);
		fixture_ready(&f);
		for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
			counted_row(&f, cases[i].path, i, 5);
		fixture_create(&f, &encode_vjoule, d ? &v02 : &document);
		report_of(&r, &f, d);
		for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			const char *name = d ? cases[i].v02 : cases[i].document ? cases[i].path : NULL;

			refused += !name;
			changed += d && cases[i].changed;
			if (name && !report_find(&r, name))
				fail_msg("%s is not sent as %s", cases[i].path, name);
			if (!name || strcmp(name, cases[i].path) != 0)
				assert_null(report_find(&r, cases[i].path));
		}
		assert_int_equal(f.ops->stats(f.encoder)->withheld_rows, refused);
		assert_int_equal(f.ops->stats(f.encoder)->renamed_rows, changed);
		assert_non_null(strstr(f.ops->stats(f.encoder)->reason, "cannot be a name"));
		/* what is withheld counts for the machine all the same */
		assert_int_equal(r.system[0], 5 * sizeof(cases) / sizeof(cases[0]));
		fixture_free(&f);
	}
	free(r.cgroups);
}

static void test_longest_name(void **state)
{
	static char path[4099];
	struct report r = { 0 };
	struct fixture f;

	for (size_t len = 4095; len <= 4098; len++) {
		fixture_init(&f, 1, 1);
		fixture_ready(&f);
		memset(path, 'a', len);
		path[0] = '/';
		path[len] = '\0';
		counted_row(&f, path, 1, 5);
		fixture_create(&f, &encode_vjoule, &document);
		report_of(&r, &f, false);
		assert_int_equal(report_find(&r, path) != NULL, len <= 4096);
		fixture_free(&f);
	}
	free(r.cgroups);
}

/* A name is judged anew when it changes, and when its key gets another row. */
static void test_renamed(void **state)
{
	struct report r = { 0 };
	struct fixture f;
	struct snap_row *row;

	fixture_init(&f, 1, 1);
	fixture_ready(&f);
	row = counted_row(&f, "/before", 1, 5);
	fixture_create(&f, &encode_vjoule, &document);
	report_of(&r, &f, false);
	assert_non_null(report_find(&r, "/before"));
	row->path = "/..";
	row->renamed++;
	report_of(&r, &f, false);
	assert_int_equal(r.n_cgroups, 1);
	row->path = "/another-and-longer";
	row->generation++;
	report_of(&r, &f, false);
	assert_non_null(report_find(&r, "/another-and-longer"));
	free(r.cgroups);
	fixture_free(&f);
}

/* Removed and made again within an interval, also while it stays so, and after it has gone. */
static void test_same_path_twice(void **state)
{
	struct report r = { 0 };
	struct fixture f;

	fixture_init(&f, 1, 1);
	three_events(&f);
	fixture_ready(&f);
	counted_row(&f, "/b", 3, 7);
	counted_row(&f, "/a", 1, 10)->ended = true;
	counted_row(&f, "/a", 2, 100);
	fixture_create(&f, &encode_vjoule, &document);
	for (unsigned i = 0; i < 2; i++) {
		report_of(&r, &f, false);
		assert_int_equal(r.n_cgroups, 3);
		assert_int_equal(report_find(&r, "/a")[0], 110);
		assert_int_equal(report_find(&r, "/a")[2], 110000);
		assert_int_equal(report_find(&r, "/b")[0], 7);
		assert_int_equal(r.system[0], 117);
	}
	f.snap.rows[5] = f.snap.rows[6];
	f.snap.n_rows--;
	report_of(&r, &f, false);
	assert_int_equal(report_find(&r, "/a")[0], 100);
	free(r.cgroups);
	fixture_free(&f);
}

static void test_lost_counters(void **state)
{
	struct report r = { 0 };
	struct fixture f;
	struct snap_row *lost;

	fixture_init(&f, 1, 1);
	fixture_event(&f.schema.core, "CYCLES", EVENT_PERF);
	fixture_ready(&f);
	lost = counted_row(&f, "/lost", 1, 10);
	lost->counters[0] = 0;
	lost->quality = QUALITY_LOST;
	counted_row(&f, "/partial", 2, 10)->quality = QUALITY_PARTIAL;
	fixture_create(&f, &encode_vjoule, &document);
	report_of(&r, &f, false);
	assert_null(report_find(&r, "/lost"));
	assert_int_equal(report_find(&r, "/partial")[0], 10);
	assert_int_equal(f.ops->stats(f.encoder)->withheld_rows, 1);
	free(r.cgroups);
	fixture_free(&f);
}

/* 3000 cgroups do not fit v0.2: the smallest are added up, nothing is lost, the largest stay. */
static void test_fold(void **state)
{
	struct report r = { 0 };
	struct fixture f;
	unsigned n = 3000;
	char *paths;
	int64_t sum = 0;

	fixture_init(&f, 2, 1);
	three_events(&f);
	fixture_domain(&f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_ready(&f);
	f.snap.domains[0].energy_uj = 1000000;
	paths = many_rows(&f, n, 80);
	fixture_create(&f, &encode_vjoule, &v02);
	report_of(&r, &f, true);
	assert_true(r.bytes <= 65483 && r.bytes + 8 + 80 + 32 > 65483);
	for (unsigned i = 0; i < r.n_cgroups; i++)
		sum += r.cgroups[i].values[0];
	assert_int_equal(sum, (int64_t)n * (n + 1) / 2);
	assert_int_equal(r.system[0], sum);
	assert_int_equal(f.ops->stats(f.encoder)->folded_rows, n - (r.n_cgroups - 3)); /* `/`, `/kernel`, `/other` */
	/* without a formula by time, the last rows have most of it */
	assert_null(report_find(&r, paths));
	assert_non_null(report_find(&r, paths + (n - 1) * 81));
	/* with one, by its package energy */
	snprintf(f.snap.formula, sizeof(f.snap.formula), "share");
	*snapshot_energy(&f.snap, READING_SPECIAL_ROWS, 0) = 5;
	report_of(&r, &f, true);
	assert_non_null(report_find(&r, paths));
	/* two of one path fold as one */
	f.snap.rows[f.snap.n_rows - 1].path = paths;
	f.snap.rows[f.snap.n_rows - 1].renamed++;
	report_of(&r, &f, true);
	assert_int_equal(report_find(&r, paths)[0], 1 + n);
	sum = 0;
	for (unsigned i = 0; i < r.n_cgroups; i++)
		sum += r.cgroups[i].values[0];
	assert_int_equal(r.system[0], sum);
	free(r.cgroups);
	free(paths);
	fixture_free(&f);
}

static void test_no_allocation(void **state)
{
	for (unsigned d = 0; d < 2; d++) {
		struct fixture f;
		unsigned before = 0;
		char *paths;

		fixture_init(&f, 2, 1);
		three_events(&f);
		fixture_ready(&f);
		paths = many_rows(&f, 1000, 92);
		fixture_create(&f, &encode_vjoule, d ? &v02 : &document);
		for (unsigned i = 0; i < 20; i++) {
			if (i == 2)
				before = allocations;
			buf_reset(&f.out);
			assert_int_equal(f.ops->encode(f.encoder, &f.snap, NULL, &f.out), 0);
		}
		assert_true(before > 0);
		assert_int_equal(allocations, before);
		free(paths);
		fixture_free(&f);
	}
}

/* A whole stream as the independent reader of tests/golden sees it. */
static void test_independent_reader(void **state)
{
	char path[] = "/tmp/jouled-vjoule-XXXXXX";
	const char *args[] = { "--check", "--quiet", "--count", "3", path, NULL };
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	for (unsigned d = 0; d < 2; d++) {
		struct fixture f;
		char *paths;
		int status;

		fixture_init(&f, 2, 1);
		f.schema.cpufreq = true;
		three_events(&f);
		fixture_domain(&f, DOMAIN_PACKAGE, 0, "package-0");
		fixture_ready(&f);
		f.snap.domains[0].energy_uj = 1000000;
		paths = many_rows(&f, 500, 92);
		fixture_create(&f, &encode_vjoule, d ? &v02 : &document);
		assert_int_equal(f.ops->preamble(f.encoder, &f.schema, &f.out), 0);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(f.ops->encode(f.encoder, &f.snap, NULL, &f.out), 0);
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, f.out.data, f.out.len, 0), f.out.len);
		status = fixture_python("read_vjoule.py", args, "");
		if (status == 77)
			printf("SKIP test_independent_reader: no python3\n");
		else
			assert_int_equal(status, 0);
		free(paths);
		fixture_free(&f);
	}
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_longest_name),
		cmocka_unit_test(test_renamed),
		cmocka_unit_test(test_same_path_twice),
		cmocka_unit_test(test_lost_counters),
		cmocka_unit_test(test_fold),
		cmocka_unit_test(test_no_allocation),
		cmocka_unit_test(test_independent_reader),
	};

	__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
