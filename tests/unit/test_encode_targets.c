/* SPDX-License-Identifier: Apache-2.0 */
/* Targets of the hwpc output: which rows, under which names, joined how; and what create refuses. */
#include "unit/encode_fixture.h"
#include "encode/target.h"

/* Of the sanitizers' run-time, whose header gcc leaves out (compiler-rt, allocator_interface.h). */
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
					      void (*on_free)(const volatile void *));

static void machine(struct fixture *f)
{
	fixture_init(f, 2, 1);
	fixture_event(&f->schema.core, "CYCLES", EVENT_PERF);
	fixture_domain(f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_ready(f);
}

static const char *encode(struct fixture *f)
{
	const char *text = fixture_encode(f);

	f->snap.end_real_ns += 1000000000;
	return text;
}

/* The report of a target; `name` as it stands in JSON. */
static const char *report_of(const char *text, const char *name, char *ret, size_t size)
{
	char key[256];
	const char *at;

	snprintf(key, sizeof(key), "\"target\":\"%s\",", name);
	at = strstr(text, key);
	if (!at)
		return NULL;
	assert_null(strstr(at + 1, key)); /* once */
	snprintf(ret, size, "%.*s", (int)strcspn(at, "\n"), at);
	return ret;
}

static bool has(const char *text, const char *name)
{
	char report[512];

	return report_of(text, name, report, sizeof(report));
}

static void test_which_rows(void **state)
{
	struct fixture f;
	const char *text;

	machine(&f);
	fixture_row(&f, "/", 1);
	fixture_row(&f, "/inner", 2);
	fixture_row(&f, "/inner/x/leaf", 3);
	fixture_row(&f, "/innermost", 4);
	fixture_row(&f, "/left-out", 5)->selected = false;
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = true });
	text = encode(&f);
	assert_true(has(text, "all") && has(text, "kernel") && has(text, "/") && has(text, "/inner"));
	assert_true(has(text, "/inner/x/leaf") && has(text, "/innermost"));
	assert_false(has(text, "/left-out") || has(text, "idle") || has(text, "irq+steal") || has(text, "other"));
	f.snap.rows[ROW_OTHER].time_ns = 5;
	assert_true(has(encode(&f), "other"));
	f.snap.rows[ROW_OTHER].time_ns = 0;
	assert_true(has(encode(&f), "other")); /* from then on: a target does not come and go */
	encode_hwpc.destroy(f.encoder);
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = true, .leaf_only = true });
	text = encode(&f);
	assert_true(has(text, "/inner/x/leaf") && has(text, "/innermost"));
	assert_false(has(text, "/") || has(text, "/inner") || has(text, "kernel") || has(text, "other"));
	f.snap.n_rows = READING_SPECIAL_ROWS + 1; /* the root alone is no leaf, hence no target */
	assert_string_equal(encode(&f), "");
	assert_non_null(strstr(f.ops->stats(f.encoder)->reason, "none besides all"));
	fixture_free(&f);
}

static void test_lost_counters(void **state)
{
	struct fixture f;
	struct snap_row *r;
	char report[512];
	const char *text;

	machine(&f);
	r = fixture_row(&f, "/lost", 1);
	fixture_cell(&f, r, 0, 100)->quality = QUALITY_LOST;
	r->quality = QUALITY_LOST;
	r = fixture_row(&f, "/part", 2);
	fixture_cell(&f, r, 0, 100)->quality = QUALITY_LOST;
	fixture_cell(&f, r, 1, 100)->counters[0] = r->counters[0] = 300;
	r->quality = QUALITY_LOST;
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .iso_time = true, .stand_ins = true });
	text = encode(&f);
	assert_false(has(text, "/lost"));
	assert_int_equal(f.ops->stats(f.encoder)->withheld_rows, 1);
	assert_non_null(strstr(f.ops->stats(f.encoder)->reason, "cgroup 1: none of its counters"));
	assert_non_null(strstr(report_of(text, "/part", report, sizeof(report)), "\"quality\":\"partial\""));
	fixture_free(&f);
}

/* A service that was restarted: two cgroups, one name. */
static void test_joined(void **state)
{
	struct fixture f;
	struct snap_row *r;
	char report[512];

	machine(&f);
	r = fixture_row(&f, "/svc", 1);
	fixture_cell(&f, r, 1, 100)->counters[0] = 1000;
	r->ended = true;
	fixture_cell(&f, fixture_row(&f, "/svc/x", 2), 0, 7)->counters[0] = 70;
	r = fixture_row(&f, "/svc", 3);
	fixture_cell(&f, r, 0, 20)->counters[0] = 200;
	fixture_cell(&f, r, 1, 3)->counters[0] = 30;
	r = fixture_row(&f, "/svc", 4);
	fixture_cell(&f, r, 1, 1)->counters[0] = 4;
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = true });
	report_of(encode(&f), "/svc", report, sizeof(report));
	assert_non_null(strstr(report, "\"0\":{\"CYCLES\":200,\"time_enabled\":20,\"time_running\":20}"));
	assert_non_null(strstr(report, "\"1\":{\"CYCLES\":1034,\"time_enabled\":104,\"time_running\":104}"));
	fixture_free(&f);
}

static void test_names(void **state)
{
	/* raw path, id, its name in JSON (UTF-8 replacement: EF BF BD) */
	static const struct {
		const char *path;
		uint64_t id;
		const char *json;
	} names[] = {
		{ "/a\"b\\c\n\x01\x7f,'", 1, "/a\\\"b\\\\c\\n\\u0001\x7f,'" },
		{ "/\xe6\x97\xa5\xe6\x9c\xac", 2, "/\xe6\x97\xa5\xe6\x9c\xac" },
		{ "/x\xff", 3, "/x\xef\xbf\xbd~3" },
		{ "/x\xfe", 4, "/x\xef\xbf\xbd~4" }, /* not the same as the one before */
		{ "/x\xef\xbf\xbd", 5, "/x\xef\xbf\xbd~5" }, /* nor as what they became */
		{ "/x\xef\xbf\xbd~3", 6, "/x\xef\xbf\xbd~3~6" },
		{ "/\xed\xa0\x80/\xc0\xaf", 7, "/\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd/\xef\xbf\xbd\xef\xbf\xbd~7" },
	};
	struct fixture f;
	const char *text;

	machine(&f);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		fixture_row(&f, names[i].path, names[i].id);
	fixture_row(&f, "no-slash", 8);
	fixture_row(&f, "", 9);
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = true });
	text = encode(&f);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!has(text, names[i].json))
			fail_msg("no target %s in %s", names[i].json, text);
	assert_int_equal(f.ops->stats(f.encoder)->renamed_rows, 5);
	assert_int_equal(f.ops->stats(f.encoder)->withheld_rows, 2);
	fixture_free(&f);
}

static void test_csv_names(void **state)
{
	struct fixture f;
	char *path = calloc(1, 1200);
	const char *text;

	machine(&f);
	memset(path, 'y', 1100);
	for (unsigned i = 0; i < 1100; i += 100)
		path[i] = '/';
	fixture_row(&f, path, 1);
	fixture_row(&f, "/a,b", 2);
	fixture_row(&f, "/a\"b", 3);
	fixture_row(&f, "/a\nb\r", 4);
	fixture_row(&f, "/a b'\xc3\xa9", 5);
	fixture_create(&f, &encode_hwpc,
		       &(struct encode_options){ .stand_ins = true, .csv = true, .csv_group = "core" });
	text = encode(&f);
	assert_string_equal(text, "1673603482630,node-7,kernel,0,0,0,0,0\n"
				  "1673603482630,node-7,/a\xef\xbf\xbd"
				  "b~2,0,0,0,0,0\n"
				  "1673603482630,node-7,/a\xef\xbf\xbd"
				  "b~3,0,0,0,0,0\n"
				  "1673603482630,node-7,/a\xef\xbf\xbd"
				  "b\xef\xbf\xbd~4,0,0,0,0,0\n"
				  "1673603482630,node-7,/a b'\xc3\xa9,0,0,0,0,0\n");
	assert_int_equal(f.ops->stats(f.encoder)->renamed_rows, 3);
	assert_int_equal(f.ops->stats(f.encoder)->withheld_rows, 1);
	assert_non_null(strstr(f.ops->stats(f.encoder)->reason, "1023"));
	free(path);
	fixture_free(&f);
}

/* Longest component of a name. */
static size_t widest(const char *name)
{
	size_t most = 0;

	for (size_t n; *name; name += n + (name[n] == '/')) {
		n = strcspn(name, "/");
		most = n > most ? n : most;
	}
	return most;
}

/* A reader makes directories of a name: as long as it was, it may be too long once it is UTF-8. */
static void test_names_of_files(void **state)
{
	static const struct {
		const char *piece;
		unsigned times;
	} makes[] = {
		{ "\xff", 100 },  { "\xff", 255 }, { "\xc3\xa9\xff", 85 }, { "\xf0\x9f\x90\xb3\xfe", 51 },
		{ "a\xff", 127 },
	};
	static char paths[64][CGROUP_PATH_MAX];
	char name[TARGET_NAME_MAX], other[TARGET_NAME_MAX];
	struct snap_row row = { .id = 18446744073709551615u };

	for (unsigned i = 0; i < sizeof(makes) / sizeof(makes[0]); i++) {
		for (unsigned below = 0; below < 2; below++) {
			char *path = paths[0];

			snprintf(path, CGROUP_PATH_MAX, "/x/");
			for (unsigned n = 0; n < makes[i].times; n++)
				strcat(path, makes[i].piece);
			strcat(path, below ? "/y" : "");
			row.path = path;
			for (unsigned csv = 0; csv < 2; csv++) {
				assert_true(target_name(&row, csv, name));
				assert_in_range(widest(name), 200, 255);
				assert_true(target_text_ok(name, false) ==
					    false); /* U+FFFD is in it: no path is sent like that */
				assert_non_null(strstr(name, "~18446744073709551615"));
				assert_int_equal(memcmp(name, "/x/", 3), 0);
			}
		}
	}
	/* as long as can be, and as it is */
	memset(paths[0], 'a', 256);
	paths[0][0] = '/';
	paths[0][256] = '\0';
	row.path = paths[0];
	assert_false(target_name(&row, false, name));
	assert_string_equal(name, paths[0]);

	/* deep: cut, and still two */
	for (unsigned i = 0; i < 2; i++) {
		memset(paths[i], 'd', 4000);
		for (unsigned at = 0; at < 4000; at += 200)
			paths[i][at] = '/';
		paths[i][3999] = i ? 'x' : 'y';
		paths[i][4000] = '\0';
	}
	row.path = paths[0];
	assert_true(target_name(&row, false, name));
	row.path = paths[1];
	row.id = 2;
	assert_true(target_name(&row, false, other));
	assert_true(strlen(name) <= 3600 && strlen(other) <= 3600 && strlen(other) > 3500);
	assert_string_not_equal(name, other);
}

/* A path is looked at closely when it may be no name: the file of PowerAPI's in the directory of each target, long ones. */
static void test_own_files(void **state)
{
	static char deep[4001];
	struct fixture f;
	const char *text;

	machine(&f);
	memset(deep, 'd', 4000);
	for (unsigned at = 0; at < 4000; at += 200)
		deep[at] = '/';
	fixture_row(&f, "/a/PowerReport.csv", 1);
	fixture_row(&f, "/PowerReport.csv/b", 2);
	fixture_row(&f, "/a/PowerReport.csv2", 3);
	fixture_row(&f, "/a/xPowerReport.csv", 4);
	fixture_row(&f, deep, 5);
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = true });
	text = encode(&f);
	assert_non_null(strstr(text, "\"/a/PowerReport\xef\xbf\xbd"
				     "csv~1\""));
	assert_non_null(strstr(text, "\"/PowerReport\xef\xbf\xbd"
				     "csv/b~2\""));
	assert_non_null(strstr(text, "\"/a/PowerReport.csv2\""));
	assert_non_null(strstr(text, "\"/a/xPowerReport.csv\""));
	assert_null(strstr(text, deep));
	assert_non_null(strstr(text, "\xef\xbf\xbd~5\""));
	assert_int_equal(f.ops->stats(f.encoder)->renamed_rows, 3);
	fixture_free(&f);
}

static void refused(struct fixture *f, const struct encode_options *o, const char *word)
{
	struct encoder *e = NULL;
	struct err err = { 0 };

	assert_int_equal(encode_hwpc.create(o, &f->schema, &e, &err), -EINVAL);
	assert_null(e);
	if (!strstr(err.text, word))
		fail_msg("'%s' has no '%s'", err.text, word);
}

static void test_refused(void **state)
{
	static char longest[202];
	struct fixture f;

	machine(&f);
	memset(longest, 's', 201);
	refused(&f, &(struct encode_options){ .sensor = longest }, "1 to 200 bytes");
	longest[200] = '\0';
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .sensor = longest });
	f.ops->destroy(f.encoder);
	refused(&f, &(struct encode_options){ .sensor = "bob's" }, "apostrophe");
	refused(&f, &(struct encode_options){ .sensor = "" }, "sensor");
	refused(&f, &(struct encode_options){ .sensor = "a\xff" }, "UTF-8");
	refused(&f, &(struct encode_options){ .sensor = "a,b", .csv = true, .csv_group = "core" }, "comma");
	refused(&f, &(struct encode_options){ .csv = true }, "rapl, msr and core");
	refused(&f, &(struct encode_options){ .csv = true, .csv_group = "sys" }, "sys");
	refused(&f, &(struct encode_options){ .csv = true, .csv_group = "core", .iso_time = true }, "iso");
	fixture_event(&f.schema.core, "cpu/event=0x3c,umask=0x0/", EVENT_PERF);
	refused(&f, &(struct encode_options){ .csv = true, .csv_group = "core" }, "cpu/event");
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = true });
	fixture_free(&f);
}

static void test_no_events(void **state)
{
	struct fixture f;
	char report[512];

	machine(&f);
	f.schema.core.n = 0;
	fixture_cell(&f, fixture_row(&f, "/a", 1), 0, 42);
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = true });
	assert_non_null(
		strstr(report_of(encode(&f), "/a", report, sizeof(report)), "{\"TASK_CLOCK\":42,\"time_enabled\":42,"));
	fixture_free(&f);
}

/* The text must be whole or not there at all. */
static void test_no_memory(void **state)
{
	struct fixture f;

	machine(&f);
	fixture_row(&f, "/a", 1);
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = true });
	for (f.out.limit = 64; f.out.limit < 600; f.out.limit += 37) {
		int code;

		f.out.len = 0;
		f.out.failed = false;
		buf_add_str(&f.out, "before");
		code = f.ops->encode(f.encoder, &f.snap, NULL, &f.out);
		assert_true(code == -ENOMEM && f.out.len == 6);
		buf_free(&f.out);
	}
	f.out.limit = 0;
	assert_true(strlen(encode(&f)) > 600);
	fixture_free(&f);
}

/* Many ticks of hostile paths, all different as bytes, through a reader that ends when a target is
 * sent twice, a line is not JSON or not UTF-8, or anything else in the tick is wrong. */
static void test_hostile_paths(void **state)
{
	static const char *const pieces[] = { "\xff",
					      "\xef\xbf\xbd",
					      "~",
					      "5",
					      "\"",
					      "\\",
					      "\n",
					      "\x1f",
					      "\x7f",
					      ",",
					      "/",
					      "\xc3\xa9",
					      "PowerReport.csv/",
					      "\xc3",
					      "\xa9",
					      "\xf0\x9f\x90\xb3",
					      "\xf0\x9f",
					      "\xed\xa0\x80",
					      "a",
					      "12345678",
					      "'" };
	static char paths[40][64];
	struct buf ticks = { 0 };
	struct fixture f;
	unsigned seed = 7;
	int status;

	machine(&f);
	for (unsigned i = 0; i < 40; i++)
		fixture_cell(&f, fixture_row(&f, paths[i], i + 1), i % 2, i)->counters[0] = i;
	fixture_create(&f, &encode_hwpc, &(struct encode_options){ .stand_ins = true });
	for (unsigned tick = 0; tick < 50; tick++) {
		for (unsigned i = 0; i < 40; i++) {
			/* the first two letters keep them apart: the rest is chance */
			snprintf(paths[i], sizeof(paths[i]), "/%c%s", 'A' + i / 2, i % 2 ? "\xff" : "\xfe");
			for (unsigned n = 0; n < i % 7; n++) {
				seed = seed * 1103515245 + 12345;
				strncat(paths[i], pieces[(seed >> 16) % 21], sizeof(paths[i]) - strlen(paths[i]) - 1);
			}
		}
		buf_add_str(&ticks, encode(&f));
	}
	buf_add_char(&ticks, '\0');
	assert_int_equal(f.ops->stats(f.encoder)->withheld_ticks, 0);
	assert_int_equal(f.ops->stats(f.encoder)->renamed_rows, 50 * 40);
	status = fixture_python("check_smartwatts.py", (const char *const[]){ "--min-ticks", "50", NULL },
				(char *)ticks.data);
	if (status == 77)
		printf("SKIP test_encode_targets.hostile_paths: no python3\n");
	assert_true(status == 0 || status == 77);
	buf_free(&ticks);
	fixture_free(&f);
}

static unsigned allocations;

static void on_malloc(const volatile void *p, size_t n)
{
	allocations++;
}

static void on_free(const volatile void *p)
{
}

/* After the first interval no encoder takes memory any more. */
static void test_steady_state(void **state)
{
	static const struct encoder_ops *const ops[] = { &encode_hwpc, &encode_power, &encode_table };
	static char paths[40][32];
	struct fixture f;

	machine(&f);
	for (unsigned i = 0; i < 40; i++) {
		snprintf(paths[i], sizeof(paths[i]), i % 3 ? "/group-%u" : "/gr\xff-%u", i);
		fixture_cell(&f, fixture_row(&f, paths[i], i + 1), i % 2, 1000 * i)->counters[0] = i;
		f.snap.rows[f.snap.n_rows - 1].quality = i % 5 ? 0 : QUALITY_MULTIPLEXED;
	}
	snprintf(f.snap.formula, sizeof(f.snap.formula), "share");
	for (unsigned i = 0; i < 3; i++) {
		fixture_create(&f, ops[i], &(struct encode_options){ .stand_ins = true });
		allocations = 0;
		encode(&f);
		assert_true(allocations > 0); /* they are seen */
		allocations = 0;
		for (unsigned n = 0; n < 5; n++)
			encode(&f);
		assert_int_equal(allocations, 0);
		ops[i]->destroy(f.encoder);
		f.ops = NULL;
	}
	fixture_free(&f);
}

/* One step of a machine whose cgroups come, go and are renamed. */
static void change_rows(struct fixture *f, unsigned step)
{
	static const char *const paths[] = { "/a", "/a/b", "/a/b/c", "/q\"uote", "/PowerReport.csv", "/x,y", "/b" };
	struct snap_row *r = &f->snap.rows[READING_SPECIAL_ROWS + step % 5], other = *r;

	switch (step % 7) {
	case 1:
		r->path = paths[step * 5 % 7];
		r->renamed++;
		break;
	case 3:
		r->path = paths[step * 3 % 7]; /* often one that another row has, too */
		r->generation++;
		r->id = 100 + step;
		break;
	case 4:
		r->selected = !r->selected;
		break;
	case 5:
		*r = f->snap.rows[READING_SPECIAL_ROWS];
		f->snap.rows[READING_SPECIAL_ROWS] = other;
		break;
	case 6:
		f->snap.n_rows += step % 2 ? 1u : -1u;
		break;
	}
	f->snap.end_real_ns += 1000000000;
}

/* An encoder that has seen the rows before writes what one does that has not. */
static void test_kept_names(void **state)
{
	const struct encode_options options[] = { { .stand_ins = true },
						  { .stand_ins = true, .leaf_only = true },
						  { .stand_ins = true, .csv = true, .csv_group = "core" } };
	const struct encoder_ops *all[] = { &encode_hwpc, &encode_power };

	for (unsigned k = 0; k < 6; k++) {
		struct encoder *old, *fresh;
		struct buf kept = { 0 }, want = { 0 };
		struct fixture f;
		struct err err;

		machine(&f);
		for (unsigned i = 0; i < 6; i++)
			fixture_cell(&f, fixture_row(&f, i % 2 ? "/a" : "/b/c", i + 1), i % 2, 10 + i);
		f.snap.n_rows--;
		assert_int_equal(all[k / 3]->create(&options[k % 3], &f.schema, &old, &err), 0);
		for (unsigned step = 0; step < 140; step++) {
			assert_int_equal(all[k / 3]->create(&options[k % 3], &f.schema, &fresh, &err), 0);
			buf_reset(&kept);
			buf_reset(&want);
			assert_int_equal(all[k / 3]->encode(old, &f.snap, NULL, &kept), 0);
			assert_int_equal(all[k / 3]->encode(fresh, &f.snap, NULL, &want), 0);
			all[k / 3]->destroy(fresh);
			assert_int_equal(kept.len, want.len);
			assert_memory_equal(kept.data, want.data, want.len);
			change_rows(&f, step);
		}
		all[k / 3]->destroy(old);
		buf_free(&kept);
		buf_free(&want);
		fixture_free(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_which_rows),     cmocka_unit_test(test_lost_counters),
		cmocka_unit_test(test_joined),         cmocka_unit_test(test_names),
		cmocka_unit_test(test_names_of_files), cmocka_unit_test(test_own_files),
		cmocka_unit_test(test_csv_names),      cmocka_unit_test(test_refused),
		cmocka_unit_test(test_no_events),      cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_hostile_paths),  cmocka_unit_test(test_steady_state),
		cmocka_unit_test(test_kept_names),
	};

	__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
