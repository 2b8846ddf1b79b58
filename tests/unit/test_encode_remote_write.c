/* SPDX-License-Identifier: Apache-2.0 */
/* Remote write: a series by its bytes, laid out by hand from prompb's field numbers; labels in order and longer than a byte
 * can say; items for the sender, also of damaged documents. tests/e2e/push.py decodes whole documents. */
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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_bytes), cmocka_unit_test(test_items),
					    cmocka_unit_test(test_rows) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
