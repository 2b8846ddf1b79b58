/* SPDX-License-Identifier: Apache-2.0 */
/* Remote write: a series by its bytes, laid out by hand from prompb's field numbers; labels in order and longer than a byte
 * can say; items for the sender, also of damaged documents; series that end. tests/e2e/push.py decodes whole documents. */
#include "encode/push.h"
#include "unit/encode_fixture.h"

extern const struct encoder_ops encode_remote_write;
extern const struct push_format push_remote_write;

static char long_path[200];

static void document(struct fixture *f)
{
	fixture_init(f, 1, 1);
	fixture_domain(f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_ready(f);
	f->snap.domains[0].energy_uj = 1500000;
	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[0] = '/';
	fixture_row(f, long_path, 10);
	*snapshot_energy(&f->snap, 4, 0) = 1500000;
	fixture_create(f, &encode_remote_write, &(struct encode_options){ .sensor = f->schema.sensor });
	fixture_encode(f);
	f->out.len--; /* the NUL behind it */
}

/* jouled_energy_joules_total{domain="package",instance="node-7",job="jouled",package="0"} 1.5, at 1673603482630 ms. */
static const char energy[] = "\x0a\x7e"
			     "\x0a\x26\x0a\x08__name__\x12\x1ajouled_energy_joules_total"
			     "\x0a\x11\x0a\x06"
			     "domain\x12\x07package"
			     "\x0a\x12\x0a\x08instance\x12\x06node-7"
			     "\x0a\x0d\x0a\x03job\x12\x06jouled"
			     "\x0a\x0c\x0a\x07package\x12\x01"
			     "0"
			     "\x12\x10\x09\x00\x00\x00\x00\x00\x00\xf8\x3f\x10\x86\x88\xaa\xd4\xda\x30";

static void test_bytes(void **state)
{
	struct fixture f;

	document(&f);
	assert_non_null(memmem(f.out.data, f.out.len, energy, sizeof(energy) - 1));
	fixture_free(&f);
}

static void test_items(void **state)
{
	char name[200];
	struct fixture f;
	size_t at = 0, len, items = 0;
	bool longest = false;

	document(&f);
	for (; at < f.out.len && (len = push_remote_write.item(f.out.data + at, f.out.len - at)); at += len) {
		longest = longest || memmem(f.out.data + at, len, long_path, sizeof(long_path) - 1);
		items++;
	}
	assert_int_equal(at, f.out.len);
	assert_true(longest && items > 20);
	push_remote_write.name(energy, sizeof(energy) - 1, name, sizeof(name));
	assert_string_equal(name, "jouled_energy_joules_total{domain=\"package\", instance=\"node-7\", job=\"jouled\", "
				  "package=\"0\"}");
	for (size_t n = 0; n < sizeof(energy) - 1; n++) {
		char *cut = malloc(n + 1); /* so that a read behind its end is seen */

		memcpy(cut, energy, n);
		assert_int_equal(push_remote_write.item(cut, n), 0);
		push_remote_write.name(cut, n, name, sizeof(name));
		free(cut);
	}
	fixture_free(&f);
}

/* The name of the cgroup of a series as its sender says it; "" = of the machine. */
static void cgroup_of(const uint8_t *item, size_t len, char dst[300])
{
	char name[300];
	const char *from, *to;

	push_remote_write.name(item, len, name, sizeof(name));
	from = strstr(name, "cgroup=\"");
	to = from ? strchr(from + 8, '"') : NULL;
	snprintf(dst, 300, "%.*s", to ? (int)(to - from - 8) : 0, to ? from + 8 : "");
}

/* Series of a row stand behind each other, so that snappy packs the labels that they share. */
static void test_rows(void **state)
{
	char cgroup[300], seen[8][300] = { "" };
	unsigned n_seen = 0, of_last = 0;
	struct fixture f;
	size_t len;

	fixture_init(&f, 1, 1);
	fixture_domain(&f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_ready(&f);
	fixture_row(&f, "/b", 10);
	fixture_row(&f, "/a", 10);
	fixture_create(&f, &encode_remote_write, &(struct encode_options){ .sensor = f.schema.sensor });
	fixture_encode(&f);
	f.out.len--; /* the NUL behind it */
	for (size_t at = 0; at < f.out.len; at += len) {
		len = push_remote_write.item(f.out.data + at, f.out.len - at);
		assert_true(len);
		cgroup_of(f.out.data + at, len, cgroup);
		if (strcmp(cgroup, seen[n_seen]) != 0) {
			for (unsigned i = 0; i <= n_seen; i++)
				assert_string_not_equal(cgroup, seen[i]);
			assert_true(++n_seen < 8);
			memcpy(seen[n_seen], cgroup, sizeof(cgroup));
			of_last = 0;
		}
		of_last++;
	}
	assert_true(n_seen >= 2 && of_last >= 3);
	fixture_free(&f);
}

/* Checks the labels of one series: "__name__" first, the others in the order of their names, each once. name: as the sender says
 * them. */
static void check_order(const uint8_t *item, size_t len, const char *name)
{
	const uint8_t *first = memmem(item, len, "\x0a\x08__name__", 10);
	const char *key = strchr(name, '{'), *last = "";
	size_t n_last = 0, n;

	assert_true(first && first < (const uint8_t *)memmem(item, len, "\x0a\x08instance", 10));
	while (key && *key && *key != '}') {
		key += strspn(key, "{, ");
		n = strcspn(key, "=");
		assert_true(strncmp(last, key, n < n_last ? n : n_last) < (n > n_last));
		last = key;
		n_last = n;
		key = strchr(key + n + 2, '"') + 1;
	}
}

/* Every series, of the machine with up to three labels of its own, and of rows with many names, says its machine. */
static void test_labels(void **state)
{
	static const char pod_series[] =
		"jouled_cgroup_energy_joules_total{cgroup=\"/a\", container=\"c\", domain=\"package\", instance=\"node-7\", "
		"job=\"jouled\", job_id=\"4711\", namespace=\"n\", pod=\"p\", unit=\"u.service\"}";
	const struct names_draft all = { .field = { [NAME_NAMESPACE] = "n",
						    [NAME_POD] = "p",
						    [NAME_CONTAINER] = "c",
						    [NAME_UNIT] = "u.service",
						    [NAME_JOB] = "4711" } };
	unsigned pod = 0, build = 0, quality = 0;
	char name[500];
	struct fixture f;

	fixture_init(&f, 1, 1);
	fixture_domain(&f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_ready(&f);
	f.schema.domains[0].has_die = true;
	fixture_row(&f, "/a", 10)->names = names_new(&all);
	fixture_row(&f, "/b", 11);
	fixture_create(&f, &encode_remote_write, &(struct encode_options){ .sensor = f.schema.sensor });
	fixture_encode(&f);
	for (size_t at = 0, len; at < f.out.len - 1; at += len) {
		len = push_remote_write.item(f.out.data + at, f.out.len - at);
		assert_true(len);
		push_remote_write.name(f.out.data + at, len, name, sizeof(name));
		check_order(f.out.data + at, len, name);
		assert_non_null(strstr(name, "instance=\"node-7\", job=\"jouled\""));
		pod += !strcmp(name, pod_series);
		build += !strcmp(name, "jouled_build_info{instance=\"node-7\", job=\"jouled\", sensor=\"node-7\", "
				       "version=\"" JOULED_VERSION "\"}");
		quality += strstr(name, "{die=\"0\", domain=\"package\", instance=\"node-7\", job=\"jouled\", "
					"package=\"0\", quality=\"partial\"}") != NULL;
	}
	assert_int_equal(pod, 1);
	assert_int_equal(build, 1);
	assert_int_equal(quality, 1);
	names_put(f.snap.rows[4].names);
	fixture_free(&f);
}

/* Series of a cgroup in the document, and those of them that are said to have ended. */
struct found {
	unsigned series, ended;
};

static struct found find(struct fixture *f, const char *of)
{
	static const char stale[] = "\x12\x10\x09\x02\x00\x00\x00\x00\x00\xf0\x7f\x10";
	struct found n = { 0 };
	char cgroup[300];

	for (size_t at = 0, len; at < f->out.len - 1; at += len) {
		len = push_remote_write.item(f->out.data + at, f->out.len - at);
		assert_true(len);
		cgroup_of(f->out.data + at, len, cgroup);
		if (strcmp(cgroup, of) != 0)
			continue;
		n.series++;
		n.ended += memmem(f->out.data + at, len, stale, sizeof(stale) - 1) != NULL;
	}
	return n;
}

static void next(struct fixture *f)
{
	f->snap.start_ns += 1000000000;
	f->snap.end_ns += 1000000000;
	f->snap.end_real_ns += 1000000000;
	fixture_encode(f);
}

/* A cgroup ends, then one is renamed and a new one takes its name, then a range is not known any more: what the document
 * before had is said to have ended once, and nothing that goes on. */
static void test_ends(void **state)
{
	struct snap_row *a, *b;
	struct fixture f;
	unsigned of_a, of_b;

	fixture_init(&f, 1, 1);
	fixture_domain(&f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_ready(&f);
	a = fixture_row(&f, "/a", 10);
	b = fixture_row(&f, "/b", 11);
	b->traffic.rx_bytes = 5; /* so it has four series of the network */
	fixture_create(&f, &encode_remote_write, &(struct encode_options){ .sensor = f.schema.sensor, .keep_ns = 1 });
	fixture_encode(&f);
	of_a = find(&f, "/a").series;
	of_b = find(&f, "/b").series;
	assert_true(of_a >= 3 && of_b == of_a + 4);
	assert_int_equal(find(&f, "/a").ended + find(&f, "/b").ended, 0);
	/* it was alive in the interval before; it is kept for one more, and then it is gone */
	f.snap.n_rows--;
	next(&f);
	next(&f);
	assert_int_equal(find(&f, "/a").ended, 0);
	assert_int_equal(find(&f, "/b").series, of_b);
	assert_int_equal(find(&f, "/b").ended, of_b);
	next(&f);
	assert_int_equal(find(&f, "/b").series, 0);
	/* another name */
	a->path = "/c";
	a->renamed++;
	next(&f);
	assert_int_equal(find(&f, "/a").ended, of_a);
	assert_int_equal(find(&f, "/c").series, of_a);
	assert_int_equal(find(&f, "/c").ended, 0);
	/* and a new cgroup with the old one */
	a->path = "/d";
	a->renamed++;
	b = fixture_row(&f, "/c", 12);
	next(&f);
	assert_int_equal(find(&f, "/c").series, of_a);
	assert_int_equal(find(&f, "/c").ended, 0);
	assert_int_equal(find(&f, "/d").series, of_a);
	/* a range for one interval */
	*snapshot_energy(&f.snap, 4, 0) = 1500000;
	f.snap.uncertainty_ppm[4 * f.schema.n_domains] = 50000;
	next(&f);
	assert_int_equal(find(&f, "/d").series, of_a + 1);
	f.snap.uncertainty_ppm[4 * f.schema.n_domains] = SNAPSHOT_UNKNOWN;
	next(&f);
	assert_int_equal(find(&f, "/d").series, of_a + 1);
	assert_int_equal(find(&f, "/d").ended, 1);
	next(&f);
	assert_int_equal(find(&f, "/d").series, of_a);
	fixture_free(&f);
}

/* Two cgroups, of which /b is gone but not ended yet. Returns the series of /b. */
static unsigned gone(struct fixture *f)
{
	unsigned series;

	fixture_init(f, 1, 1);
	fixture_domain(f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_ready(f);
	fixture_row(f, "/a", 10);
	fixture_row(f, "/b", 11);
	fixture_create(f, &encode_remote_write, &(struct encode_options){ .sensor = f->schema.sensor, .keep_ns = 1 });
	fixture_encode(f);
	series = find(f, "/b").series;
	assert_true(series >= 3);
	f->snap.n_rows--;
	next(f);
	return series;
}

/* A document that is dropped, or cannot be made, says its ends once more in the next. */
static void test_ends_that_nobody_saw(void **state)
{
	struct buf little = { .limit = 64 };
	struct fixture f;
	unsigned series = gone(&f);

	next(&f);
	assert_int_equal(find(&f, "/b").ended, series);
	f.ops->lost(f.encoder);
	next(&f);
	assert_int_equal(find(&f, "/b").ended, series);
	assert_int_equal(find(&f, "/a").ended, 0);
	next(&f);
	assert_int_equal(find(&f, "/b").series, 0);
	fixture_free(&f);

	series = gone(&f);
	f.snap.start_ns += 1000000000;
	f.snap.end_ns += 1000000000;
	f.snap.end_real_ns += 1000000000;
	assert_int_equal(f.ops->encode(f.encoder, &f.snap, NULL, &little), -ENOMEM);
	next(&f);
	assert_int_equal(find(&f, "/b").ended, series);
	buf_free(&little);
	fixture_free(&f);
}

/* After a reload another encoder goes on, which may show less, and have fewer rows. */
static void test_an_heir_ends_what_it_does_not_show(void **state)
{
	struct encoder *old;
	struct fixture f;
	unsigned series = gone(&f);

	old = f.encoder;
	fixture_create(&f, &encode_remote_write, &(struct encode_options){ .sensor = f.schema.sensor });
	f.ops->inherit(f.encoder, old);
	f.ops->destroy(old);
	next(&f);
	assert_int_equal(find(&f, "/b").ended, series);
	assert_int_equal(find(&f, "/a").ended, 0);
	assert_int_equal(find(&f, "/a").series, series);
	next(&f);
	assert_int_equal(find(&f, "/b").series, 0);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_items),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_ends_that_nobody_saw),
		cmocka_unit_test(test_an_heir_ends_what_it_does_not_show),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
